/* Any bytes as an HDF5 file, as they are and with the checksums put right behind them, which lets
 * damage through to what checksums would have kept from it. */
#include "format/hdf5/hdf5_shape.h"
#include "format_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void set_sum(uint8_t *p, size_t size, size_t at, size_t n)
{
	if (n <= size - at && size - at - n >= 4)
		le_put(p + at + n, hdf5_checksum(p + at, n), 4);
}

/* The header that begins at `at`; returns the length that it says it has. */
static size_t header_bytes(const uint8_t *p, size_t left)
{
	size_t width = (size_t)1 << (p[5] & 3);
	size_t first = 6 + (p[5] & 0x20 ? 16 : 0) + (p[5] & 0x10 ? 4 : 0) + width;

	if (left < first)
		return left;
	return first + (size_t)le_get(p + first - width, width > 4 ? 4 : width);
}

/* The tree's node at `at` with n records, and those under it; of at most two levels, whose pointers
 * have nine bytes. */
static void repair_node(uint8_t *p, size_t size, size_t at, size_t n, size_t record, unsigned depth)
{
	size_t used = 6 + n * record;

	if (depth > 1 || at >= size || size - at < used + 9 * (n + 1))
		return;
	for (size_t i = 0; depth > 0 && i <= n; i++) {
		const uint8_t *child = p + at + used + 9 * i;

		repair_node(p, size, (size_t)le_get(child, 8), child[8], record, depth - 1);
	}
	set_sum(p, size, at, depth ? used + 9 * (n + 1) : used);
}

/* What the header of the heap says that its blocks need. */
struct heap {
	size_t root, width, rows, first, offset;
};

static void repair_dense(uint8_t *p, size_t size, size_t at, struct heap *h)
{
	uint8_t *x = p + at;

	if (memcmp(x, "BTHD", 4) == 0 && size - at >= 38) {
		repair_node(p, size, (size_t)le_get(x + 16, 8), x[24], x[10], x[12]);
		set_sum(p, size, at, 34);
	}
	if (memcmp(x, "FRHP", 4) == 0 && size - at >= 146) {
		*h = (struct heap){.root = (size_t)le_get(x + 132, 8),
				   .width = x[110],
				   .rows = x[140],
				   .first = (size_t)le_get(x + 112, 4),
				   .offset = x[128] / 8u};
		set_sum(p, size, at, 142);
	}
	if (memcmp(x, "FHIB", 4) == 0)
		set_sum(p, size, at, 13 + h->offset + 8 * h->width * (at == h->root ? h->rows : 1));
	if (memcmp(x, "FHDB", 4) == 0 && h->first <= size - at && h->first >= 17 + h->offset) {
		le_put(x + 13 + h->offset, 0, 4);
		le_put(x + 13 + h->offset, hdf5_checksum(x, h->first), 4);
	}
}

static void repair(uint8_t *p, size_t size)
{
	struct heap heap = {0};
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
		repair_dense(p, size, i, &heap);
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
