#pragma once
/* Shared by the files that read a result folder back. Private to this folder. */
#include <jansson.h>
#include <stdarg.h>

#include "readback/record.h"

/* A JSON file of the folder as an object; NaN and Infinity are null. NULL and `e` when it cannot be
 * read. */
json_t *record_json(const char *folder, const char *name, struct err *e);
/* NaN, or "", when the key is not there or of another kind. */
double record_number(const json_t *object, const char *key);
void record_text(const json_t *object, const char *key, char *out, size_t out_size);
/* "2025-11-30T18:35:03.913547", local, as Unix time; NaN when it is none. */
double record_time(const char *text);
/* Reads N_output.json and N_per_epoch_stats.json of every rank. Missing files become notes. */
int record_ranks(struct run_record *r, struct err *e);
void record_note(struct run_record *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
