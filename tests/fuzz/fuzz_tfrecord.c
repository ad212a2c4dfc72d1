/* Any bytes as a TFRecord file, with right checksums where the input leaves room for them, and as
 * an Example message in a block of its exact size. */
#include <endian.h>

#include "codec/crc.h"
#include "format/tfrecord/tfrecord.h"
#include "format_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void message(const uint8_t *data, size_t size)
{
	struct example x;

	if (example_parse(data, size, &x, NULL) < 0 || !x.image)
		return;
	if (x.image < data || x.image > data + size ||
	    x.image_bytes > (size_t)(data + size - x.image))
		abort();
}

/* Puts the checksums of up to two records right, so that what lies behind them is reached. */
static void mend(uint8_t *p, size_t size)
{
	for (int i = 0; i < 2 && size >= 16; i++) {
		uint64_t n;
		uint32_t crc = htole32(crc32c_masked(crc32c_update(0, p, 8)));

		memcpy(p + 8, &crc, 4);
		memcpy(&n, p, 8);
		n = le64toh(n);
		if (n > size - 16)
			return;
		crc = htole32(crc32c_masked(crc32c_update(0, p + 12, n)));
		memcpy(p + 12 + n, &crc, 4);
		p += n + 16;
		size -= n + 16;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;

	if (size > 1u << 20)
		return 0;
	message(data, size);
	fuzz_read("tfrecord", data, size);
	copy = xmalloc(size + 1);
	memcpy(copy, data, size);
	mend(copy, size);
	fuzz_read("tfrecord", copy, size);
	free(copy);
	return 0;
}
