#pragma once
/* Work that storage may never answer, in a thread of its own that can be left behind: what a run
 * does outside its ranks, from the folder of results to the facts about a file system. Private to
 * run/. */
#include <stdbool.h>

#include "base/err.h"
#include "run/shared.h"

struct apart {
	int (*work)(void *arg, struct err *e);
	void *arg;         /* left to `work` with the thread: not on the stack, never freed then */
	const char *place; /* what may not answer: "the folder 'X'"; copied */
	/* Ended when its thread has not used a processor for so long, that is, has been in one call
	 * to the system; 0: never. For work of one thread only. */
	double limit_s;
	/* After the run: a stop does not end it, as it writes down what was measured; a second
	 * signal does, once the work has been in one call for as long as threads get to leave. */
	bool after;
};

/* Returns what `work` returned, with its error. When it was left behind, *stuck becomes true (else
 * it stays): ERR_CANCELED or the cause of the stop, or -ETIMEDOUT when the limit was over, which is
 * then the cause of the run's end unless `after`. */
int run_apart(struct run_stop *s, const struct apart *a, bool *stuck, struct err *e);
