#pragma once
/* What the files of a result folder say before anything of it is judged. */
#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/folder_lock.h"

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
