#pragma once
/* The jpeg format's reader, for tests. */
#include "format/format.h"

/* Bytes that decoding asked for beyond the reader's own memory. */
size_t jpeg_reader_beyond(const struct reader *r);
