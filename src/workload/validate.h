#pragma once
/* The steps of workload_load after the document is composed. */
#include <stdbool.h>

#include "base/err.h"
#include "workload/workload.h"

/* type.c: the fields of `w` from w->tree by the rows, with origins; unknown keys, aliases and keys
 * without effect become warnings (unknown ones errors when `strict`). */
int workload_type(struct workload *w, bool strict, struct err *e);
/* Whether `key` (without "workload.") is a row, an alias, or a section of either. */
bool workload_key_known(const char *key);
bool workload_section_known(const char *key);
/* The key that the alias `key` stands for, or NULL. */
const char *workload_alias_of(const char *key);

/* derive.c: what follows from other keys: data loader, element type, stdevs, compat.dlio. */
int workload_derive(struct workload *w, struct err *e);
/* validate.c: the rules across keys. `ranks` >= 1. */
int workload_validate(struct workload *w, int64_t ranks, struct err *e);

/* Where `key` was set, "FILE: line N: " or "", for the start of a sentence. Into `out`; returns it.
 */
char *workload_where(const struct workload *w, const char *key, char *out, size_t out_size);
/* err_set with workload_where before it. */
int workload_key_error(const struct workload *w, int code, struct err *e, const char *key,
		       const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Whether a file or an override set `key`. */
bool workload_is_set(const struct workload *w, const char *key);
