#pragma once
/* Runs that go on beside a row of the runner: other workloads on the same storage. Each trains
 * before the row's own run begins, and is stopped once that has ended, so that its result is one of
 * a run that was interrupted. It lies in "FOLDER/.beside/NAME" with its log, where reports do not
 * look for results. */
#include "base/thread.h"
#include "conf/opt.h"
#include "os/child.h"

#define BESIDE_FOLDER ".beside"

struct beside {
	char *name;              /* of its folder; heap */
	struct str_list command; /* without "-o" and what tells of its progress */
	uint64_t ready;          /* steps of training after which the row begins */
	double limit_s;          /* by which it has made them */
	struct child child;
	char *log, *progress; /* heap */
};

/* Starts them, and waits until all are ready. A failure has ended them. Call from the main thread.
 * `folder`: of the row, as it is named meanwhile. */
int beside_start(struct beside *b, size_t n, const char *folder, const struct stop_flag *stop,
		 struct err *e);
/* Stops them. Fails with the sentence of one that had ended before. */
int beside_end(struct beside *b, size_t n, const struct stop_flag *stop, struct err *e);
void beside_release(struct beside *b, size_t n);
