#pragma once
/* MD5 (RFC 1321), for names only: DFTracer's hashes are made of it. */
#include <stddef.h>

void md5(const void *data, size_t n, unsigned char out[16]);
