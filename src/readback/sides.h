#pragma once
/* What each side of a comparison measured, and whether that is the same thing. */
#include "conf/opt.h"
#include "readback/record.h"

/* One side: runs r[index[0..n)], each once. */
struct side {
	const struct run_record *r;
	const size_t *index;
	size_t n;
};

/* The share of the bytes returned in training, 0 to 1, that the page cache served; NaN when it is
 * not known. */
double sides_cached_share(const struct run_record *r);

/* The values of a key in two runs as text, from where both have them: result.json, or .hydra. False
 * when one of them does not tell. Released by the caller. */
bool sides_key(const struct run_record *a, const struct run_record *b, const struct opt *row,
	       char **x, char **y);

/* Sentences with both values. `unlike`: the numbers do not mean the same on both sides, or not in
 * all runs of one, so that a test of their difference would answer no question. `doubts`: what else
 * a reader has to know before the numbers. */
void sides_compare(const struct side *a, const struct side *b, struct str_list *unlike,
		   struct str_list *doubts);
