/* Any bytes as a safetensors file. */
#include "checkpoint_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 1u << 20)
		return 0;
	fuzz_begin("safetensors");
	fuzz_file(data, size);
	return 0;
}
