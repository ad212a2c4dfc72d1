#pragma once
#include <stddef.h>

/* Bytes of the well-formed UTF-8 sequence at the start of a NUL-terminated text; 0 when it is none.
 */
size_t utf8_length(const char *text);
