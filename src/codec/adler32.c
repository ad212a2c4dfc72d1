/* Adler-32 by libdeflate. */
#include "codec/adler32.h"

#include <libdeflate.h>

uint32_t adler32_update(uint32_t adler, const void *bytes, size_t n)
{
	/* libdeflate takes a null pointer as "begin anew", whatever `adler` is */
	return n ? libdeflate_adler32(adler, bytes, n) : adler;
}
