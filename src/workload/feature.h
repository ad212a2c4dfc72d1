#pragma once
/* What this version has, of the keys whose values it does not all have or that name a backend. */
#include <stdbool.h>
#include <stddef.h>

#define FEATURE_VALUES_MAX 64

/* The values of `key` that this version has, at most FEATURE_VALUES_MAX, and how many; 0: it has
 * all. The names of backends come from their tables. */
size_t feature_values(const char *key, const char *out[FEATURE_VALUES_MAX]);
/* The same, joined by ", ", into `out`. Returns `out`. */
char *feature_list(const char *key, char *out, size_t out_size);
/* Whether this version can do what `key` asks for with `value`. */
bool feature_has(const char *key, const char *value);
