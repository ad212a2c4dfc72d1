#pragma once
/* Base64 (RFC 4648), as headers hold it. */
#include <stddef.h>

/* As much as `size` allows, with its padding and a zero. */
void base64(const void *bytes, size_t n, char *out, size_t size);
