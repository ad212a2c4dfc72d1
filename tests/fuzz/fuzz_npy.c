/* Any bytes as an npy file, and as an npy header in a block of its exact size. */
#include "format/numpy/npy.h"
#include "format_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void header(const uint8_t *data, size_t size)
{
	struct npy_array a;
	size_t total;
	int before = npy_prefix_bytes(data, size, 0, NULL);

	if (before < 0 || size < (size_t)before || npy_header_length(data, 0, &total, NULL) < 0)
		return;
	/* the text as long as the input is, too */
	npy_header_parse(data, size, 0, &a, NULL);
	if (size >= total && npy_header_parse(data, total, 0, &a, NULL) == 0 && a.elem) {
		unsigned char out[NPY_HEADER_WRITTEN_MAX];
		struct npy_array b;
		size_t n = npy_header_write(out, a.elem, a.ndims, a.dims);

		if (npy_header_parse(out, n, 0, &b, NULL) < 0 || b.data_bytes != a.data_bytes)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 1u << 20)
		return 0;
	header(data, size);
	fuzz_read("npy", data, size);
	return 0;
}
