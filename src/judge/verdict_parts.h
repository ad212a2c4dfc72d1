#pragma once
/* What the files of verdicts share. Private to this folder. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "result/result.h"
#include "store/store.h"

/* A new verdict of that name, passed. */
static inline struct verdict *add(struct result *r, const char *check)
{
	struct verdict *v;

	if (r->verdicts == sizeof(r->verdict) / sizeof(r->verdict[0]))
		r->verdicts--;
	v = &r->verdict[r->verdicts++];
	*v = (struct verdict){0};
	snprintf(v->check, sizeof(v->check), "%s", check);
	return v;
}

/* Appends to its sentence. */
__attribute__((format(printf, 2, 3))) static inline void say(struct verdict *v, const char *fmt,
							     ...)
{
	size_t n = strlen(v->text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(v->text + n, sizeof(v->text) - n, fmt, ap);
	va_end(ap);
}

static inline void worsen(struct verdict *v, enum verdict_level level)
{
	static const int badness[] = {
		[VERDICT_PASS] = 0, [VERDICT_UNKNOWN] = 1, [VERDICT_WARN] = 2, [VERDICT_FAIL] = 3};

	if (badness[level] > badness[v->level])
		v->level = level;
}

static inline const char *bytes_text(double v, char out[32])
{
	return str_bytes(v, out, 32);
}

/* Whether the bytes asked for are those wanted, and where they came from. */
void verdict_bytes(struct result *r, const struct run_metrics *m);
/* Whether the lines of the ledger of bytes agree. */
void verdict_ledger(struct result *r);
/* What held the run back: r->limit and r->outlook. */
void verdict_limit(struct result *r, const struct run_metrics *m);
/* Whether the page cache served most of what was read. */
bool limit_cached(const struct result *r);
/* Whether memory was too short for the run; then the sentence is in `out`. */
bool limit_memory(const struct result *r, char *out, size_t size);
/* The row of the store below all shims; NULL when there is none of that name. */
const struct store_ops *verdict_base_store(const struct workload *w);
/* Whether checkpoints were written, and how much of them reached a disk. */
void verdict_checkpoint(struct result *r);
/* What the page cache held of the dataset, by looks before and after each epoch. */
void verdict_page_cache(struct result *r);
