#pragma once
/* Curves of AU over the number of accelerators, of the runs of a report that differ in nothing
 * else: a search of 'stoker capacity', or a study that varies `processes`. */
#include "readback/groups.h"
#include "readback/knee.h"

struct curve {
	const char *model; /* borrowed from a record */
	char *factors;     /* what sets it apart from the model's other runs; "" */
	struct knee knee;
	char *text;      /* the knee in a sentence */
	size_t emulated; /* runs whose storage is a store of the program */
	json_t *search;  /* what the search that made its runs says (capacity.json), which the knee
			  * is then of; NULL */
};

struct curves {
	struct curve *v;
	size_t n;
};

/* Of each model with runs of two or more numbers of accelerators that have a target. Runs may also
 * differ in what only decides their length (files, steps, epochs). A run counts as in the groups,
 * and also if nothing is wrong with it but its length: steady_au leaves out what that spoils.
 * Where all runs are of one search that has ended, the knee is that of the search, which knows of
 * checkpoints and of runs that do not count.
 * Release with curves_release. */
void curves_build(struct curves *out, const struct run_groups *g);
void curves_release(struct curves *c);

/* "16 accelerators (95 %: 16 to 17)", "at least 24 accelerators", "no accelerator (95 %: 0 to 1)".
 * Appended. */
void curve_put_answer(const struct knee *k, struct buf *out);
