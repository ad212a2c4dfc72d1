/* Any bytes as a chunk of LitData. */
#include "format_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size <= 1u << 20)
		fuzz_read("litdata", data, size);
	return 0;
}
