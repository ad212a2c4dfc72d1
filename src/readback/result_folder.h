#pragma once
/* What the files of a result folder say before anything of it is judged. */
#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/folder_lock.h"

/* As json_loadb, of a file that others may have made: one that would take gigabytes of memory is
 * refused before any of it is read. */
json_t *json_of_text(const struct buf *text, json_error_t *why);
/* A file of the folder that holds a JSON object of at most 256 MiB. Python's NaN and Infinity
 * become null. NULL and `e`: -ENOENT, -ENOTDIR it is absent; ERR_DATA it is damaged, and where;
 * others it cannot be read. */
json_t *result_folder_json(const char *folder, const char *name, struct err *e);
/* Of a whole result.json: the run trained, evaluated or wrote checkpoints, and so left a
 * summary.json. */
bool result_has_summary(const json_t *result);
/* Whether a run still writes into the folder, and who. */
bool result_folder_is_used(const char *folder, char who[FILE_LOCK_WHO_MAX]);
/* The sentence for that. Heap string. */
char *result_folder_used_text(const char *folder, const char *who);

/* Who wrote a result folder: this program, or DLIO, whose files have the same names. */

/* Any of its files says that this program wrote it: by base/program.h, or as versions before that
 * mark did, in hydra.yaml, config.yaml and traces. Files that are missing, damaged or cannot be
 * read say nothing, so that one of them is enough. */
bool author_is_us(const char *folder);
/* Whether a result.json has what every version of this program writes into one. ERR_DATA names the
 * keys that are missing or hold something else; `folder` is for the sentence. */
int result_check_keys(const char *folder, const json_t *result, struct err *e);
/* A whole result.json is one of this program, not of another that uses the same name. */
bool author_of_result(const json_t *result);
