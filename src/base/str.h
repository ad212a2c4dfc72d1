#pragma once
/* Strings, numbers and units. */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);

/* Prints behind what is in `out`, an array of `size` bytes, as far as there is room. */
void str_append(char *out, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Whole-string conversions: true only when every character was used and the value fits. */
bool str_to_i64(const char *s, int64_t *out);
bool str_to_u64(const char *s, uint64_t *out);
bool str_to_f64(const char *s, double *out);

/* Edit distance (insert, delete, replace, swap of neighbours), case ignored. */
unsigned str_distance(const char *a, const char *b);
/* The candidate nearest to `word`, or NULL when none is near enough to suggest. `names` holds `n`
 * strings. */
const char *str_nearest(const char *word, const char *const *names, size_t n);

/* A number for people: so many significant digits, a whole number in full, and no power of ten but
 * for what is below 1e-9 or not below 1e15: "0.000123", "1.4", "1400". Returns `out`. */
char *str_number(double v, unsigned digits, char *out, size_t out_size);
/* The same in an array that lasts as long as the block. */
#define NUMBER(v, digits) str_number(v, digits, (char[32]){0}, 32)
/* "1.5 GiB", "980 MiB", "12 B". Returns `out`. */
char *str_bytes(double bytes, char *out, size_t out_size);
/* "1 h 02 min", "3 min 05 s", "4.2 s", "310 ms". Returns `out`. */
char *str_seconds(double seconds, char *out, size_t out_size);

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
