#pragma once
/* What a run tells of larger ones, as result.json has it: key "fleet". */
#include <jansson.h>

#include "result/basis.h"

json_t *json_basis(const struct basis *b);
/* Reads it back. Numbers that no run has are refused: not known, with the reason. */
void json_basis_read(const json_t *result, struct basis *out);
