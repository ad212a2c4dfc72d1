/* Any bytes as a csv file, plain and gzip, and compressed as a valid gzip file. */
#include <zlib.h>

#include "format_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void compressed(const uint8_t *data, size_t size)
{
	uLong room = compressBound(size) + 64;
	uint8_t *out = xmalloc(room);
	z_stream z = {0};

	if (deflateInit2(&z, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		abort();
	z.next_in = (Bytef *)(uintptr_t)data;
	z.avail_in = (uInt)size;
	z.next_out = out;
	z.avail_out = (uInt)room;
	if (deflate(&z, Z_FINISH) != Z_STREAM_END)
		abort();
	fuzz_read("csv", out, z.total_out);
	deflateEnd(&z);
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 1u << 20)
		return 0;
	fuzz_begin("csv");
	fuzz.spec.compression = "none";
	fuzz_read("csv", data, size);
	fuzz.spec.compression = "gzip";
	fuzz_read("csv", data, size);
	compressed(data, size);
	return 0;
}
