/* Any bytes as an HDF5 file, as they are and with the checksums put right behind them, which lets
 * damage through to what checksums would have kept from it. */
#include "format/hdf5.h"
#include "format_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void set_sum(uint8_t *p, size_t size, size_t at, size_t n)
{
	if (n <= size - at && size - at - n >= 4)
		hdf5_put(p + at + n, hdf5_checksum(p + at, n), 4);
}

/* The header that begins at `at`; returns the length that it says it has. */
static size_t header_bytes(const uint8_t *p, size_t left)
{
	size_t width = (size_t)1 << (p[5] & 3);
	size_t first = 6 + (p[5] & 0x20 ? 16 : 0) + (p[5] & 0x10 ? 4 : 0) + width;

	if (left < first)
		return left;
	return first + (size_t)hdf5_get(p + first - width, width > 4 ? 4 : width);
}

static void repair(uint8_t *p, size_t size)
{
	size_t array = 0;

	if (size >= 48)
		set_sum(p, size, 0, 44);
	for (size_t i = 0; size >= 32 && i < size - 32; i++) {
		if (memcmp(p + i, "OHDR", 4) == 0)
			set_sum(p, size, i, header_bytes(p + i, size - i));
		if (memcmp(p + i, "FAHD", 4) == 0) {
			array = (size_t)p[i + 6] * p[i + 8];
			set_sum(p, size, i, 24);
		}
		if (memcmp(p + i, "FADB", 4) == 0)
			set_sum(p, size, i, 14 + array);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;

	if (size > 1u << 20)
		return 0;
	fuzz_read("hdf5", data, size);
	copy = xmalloc(size + 1);
	memcpy(copy, data, size);
	repair(copy, size);
	fuzz_read("hdf5", copy, size);
	free(copy);
	return 0;
}
