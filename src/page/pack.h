#pragma once
/* Data of a page that is unpacked when it is needed. */
#include "base/buf.h"

/* Appends `n` bytes, packed as gzip does and in the 64 characters of base64. */
void pack_put(struct buf *out, const char *bytes, size_t n);
