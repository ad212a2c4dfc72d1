#pragma once
#include <stddef.h>
#include <stdint.h>

/* Bytes of the well-formed UTF-8 sequence at the start of `n` bytes, and its character; 0 when
 * there is none. NUL is a character of one byte. */
size_t utf8_decode(const char *text, size_t n, uint32_t *code);
/* Bytes of the well-formed UTF-8 sequence at the start of a NUL-terminated text; 0 when it is none.
 */
size_t utf8_length(const char *text);
/* How many of the first `n` bytes remain when a sequence that `n` cut is left out. */
size_t utf8_whole(const char *text, size_t n);
