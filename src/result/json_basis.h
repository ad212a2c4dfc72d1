#pragma once
/* What a run tells of larger ones: key "fleet" of result.json has what it rests on. The models
 * themselves are made of measures again by who needs them (readback/audit.h). */
#include <jansson.h>

#include "result/basis.h"

json_t *json_basis(const struct basis *b);
/* Results of schema 1 have the models in that key. Numbers that no run has are refused: not known,
 * with the reason. */
void json_basis_of_schema_1(const json_t *result, struct basis *out);
