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
/* The text with other bytes than UTF-8 as \xff, or each as U+FFFD. On the heap. */
enum utf8_others { UTF8_AS_HEX, UTF8_AS_REPLACEMENT };
char *utf8_valid(const char *text, enum utf8_others how);
