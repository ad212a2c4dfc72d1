#pragma once
/* Numbers as text in csv files: what pandas writes for a column of an element type, and what its
 * parser takes for a number. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/elem.h"

/* The longest number with what follows it. */
#define CSV_NUMBER_MAX 32u

/* Writes one element, without a separator. Returns the end. Room for CSV_NUMBER_MAX. Floats are the
 * shortest text that reads back as the same value of the type; a NaN is "nan". */
typedef char *(*csv_put_fn)(char *out, const unsigned char *element);
/* NULL for a type that has no such text (complex numbers). */
csv_put_fn csv_put_of(const struct elem_type *elem);
/* Characters of an element and its separator in the mean over its values, in hundredths, rounded
 * up. */
unsigned csv_mean_chars(const struct elem_type *elem);
/* What these become compressed with gzip as our files are, measured, in hundredths of a byte. */
unsigned csv_mean_gzip_bytes(const struct elem_type *elem);

/* The value of a whole field. An empty one is a NaN; "True" is 1, "False" 0. False when it is none.
 */
bool csv_parse(const char *text, size_t n, double *out);
