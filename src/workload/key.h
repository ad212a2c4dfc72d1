#pragma once
/* Keys: which there are, where they were set, and what is said about them. All are without
 * "workload.". */
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "conf/opt.h"
#include "workload/workload.h"

/* The row that the key, or the alias `key`, stands for; NULL when it is neither. */
const struct opt *workload_key_row(const char *key);
/* Whether `key` is a row, an alias, a section of either, or below a map that is one value. */
bool workload_key_known(const char *key);
bool workload_section_known(const char *key);
/* Whether `key` is the map of a store's own options, which the store reads. */
bool workload_store_section(const char *key);
/* The key that the alias `key` stands for, or NULL. */
const char *workload_alias_of(const char *key);

/* "FILE: line N: ", for the start of a sentence, or "" when the place is not known. Into `out`;
 * returns it. */
const char *workload_place(const struct node_mark *m, char *out, size_t out_size);
/* " (FILE: line N)", for the end of a sentence, or "". */
const char *workload_place_behind(const struct node_mark *m, char *out, size_t out_size);
/* As workload_place, of where `key` was set. */
char *workload_where(const struct workload *w, const char *key, char *out, size_t out_size);
/* err_set with workload_where before it. */
int workload_key_error(const struct workload *w, int code, struct err *e, const char *key,
		       const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Adds an error to w->errors; equal sentences count once. Returns 0, so that checking can go on. */
int workload_keep_error(struct workload *w, const struct err *e);
/* The first of w->errors as an error; 0 when there is none. */
int workload_first_error(const struct workload *w, struct err *e);
/* Whether a file or an override set `key`. */
bool workload_is_set(const struct workload *w, const char *key);
/* Whether the user did: an override, or a file that is not of a workload built in. */
bool workload_is_chosen(const struct workload *w, const char *key);
/* Where: the later one has the last word. */
int workload_set_in(const struct workload *w,
		    const char *key); /* ORIGIN_DEFAULT, _FILE, _OVERRIDE */
