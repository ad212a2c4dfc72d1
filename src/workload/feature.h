#pragma once
/* What this version has. A feature that comes is one line in feature.c. */
#include <stdbool.h>

/* Whether this version can do what `key` asks for with `value`. */
bool feature_has(const char *key, const char *value);
/* All values of `key` that it has, joined by ", ", into `out`. Returns `out`. */
char *feature_list(const char *key, char *out, unsigned long out_size);
