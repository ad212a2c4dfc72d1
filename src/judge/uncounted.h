#pragma once
/* Bytes that no device delivered: of a file system that does not report its reads to the kernel, or
 * of names that are one file. Of training and of evaluations alike. */
#include "judge/verdict.h"

/* What was read, and what is known of it. */
struct uncounted {
	bool eval;           /* of evaluations: their files, before them */
	double cached_share; /* of the files, in the page cache then; negative: not known */
	double request_rate; /* bytes/s of one request; 0: not known */
	bool direct;         /* O_DIRECT */
};

/* The page cache is as good as empty. */
extern const double uncounted_left_share;

/* Says that the file system does not report its reads: what the page cache held decides. */
void uncounted_judge(struct verdict *v, const struct result *r, const struct uncounted *u);
/* Further names of a file (hard or symbolic links) may be more than a tenth of the files of that
 * kind.
 */
bool uncounted_are_links(const struct result *r, enum dataset_kind kind);
/* What the page cache served are names of files that were read before. */
struct fact uncounted_links(const struct result *r);
