/* Logs of strace. */
#include "trace_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

extern const struct trace_reader trace_reader_strace;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return trace_fuzz(&trace_reader_strace, data, size);
}
