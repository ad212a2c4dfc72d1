#pragma once
/* Who wrote a result folder: this program, or DLIO, whose files have the same names. */
#include <jansson.h>
#include <stdbool.h>

/* Any of its files says that this program wrote it: by base/program.h, or as versions before that
 * mark did, in hydra.yaml, config.yaml and traces. Files that are missing, damaged or cannot be
 * read say nothing, so that one of them is enough. */
bool author_is_us(const char *folder);
/* A whole result.json is one of this program, not of another that uses the same name. */
bool author_of_result(const json_t *result);
