#pragma once
/* What limits a run, and what would change it, read from result.json: sentences are made anew of
 * its facts. A result of a version that wrote none is told by its text. */
#include <jansson.h>

#include "result/judgement.h"

/* Of the object "limit". WORDS_SHORT: what limits, a clause; WORDS_LONG: and what changes would do.
 * Heap; NULL: it does not say. */
char *limit_told(const json_t *limit, enum words_form form);
/* The same of its remedy. */
char *remedy_told(const json_t *limit, enum words_form form);
/* Of the object "framework_costs"; false: there is none. */
bool costs_effect_read(const json_t *costs, struct costs_effect *out);
/* A change of "what_if", as it is in the file but for its sentences. */
json_t *what_if_told(const json_t *change);
