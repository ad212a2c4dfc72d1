#pragma once
/* Reading a result.json that may hold anything: what is absent or of another kind is NULL or NaN.
 * Private to judge/recorded*.c. */
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

static inline const json_t *part(const json_t *o, const char *key)
{
	return json_object_get(o, key);
}

static inline double figure(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

static inline bool says(const json_t *o, const char *key, const char *text)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s && strcmp(s, text) == 0;
}

static inline const json_t *epochs_of(const json_t *result)
{
	return part(part(result, "training"), "epochs");
}

struct workload;
/* Bytes in files that one byte of decoded samples of training takes; 1: not recorded. */
double recorded_file_share(const json_t *result, const struct workload *w);
