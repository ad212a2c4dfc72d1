#pragma once
/* Where a rank's time went: how a worker's time in a batch divides, and how the rank's wait for
 * that batch divides with it. */
#include <stdbool.h>
#include <stdint.h>

#include "metric/step.h"

/* What a worker does with a batch. */
enum work_kind {
	WORK_OPEN,       /* opening and closing */
	WORK_META,       /* stat, headers, indexes */
	WORK_DATA,       /* payload requests */
	WORK_DECODE,     /* in the format's read, in no request */
	WORK_PREPROCESS, /* reader.preprocess_time */
	WORK_TRANSPORT,  /* packing for the rank */
	WORK_FRAMEWORK,  /* the framework's own code, from loading to packing (framework.costs) */
	WORK_NO_CPU,     /* any of these, while ready to run and without a processor */
	WORK_KINDS
};

/* ns; of all threads that worked at the batch. As measured, WORK_NO_CPU is a part of the others. */
struct batch_work {
	int64_t ns[WORK_KINDS];
};

/* The framework's own code about a batch, outside the work of its readers: processor time, ns, in
 * the order in which it runs. All zeros without framework.costs. */
struct batch_costs {
	int64_t start_ns; /* before its indexes were sent, by the rank: its workers were started */
	int64_t start_late_ns; /* meanwhile, the rank was without a processor */
	int64_t begin_ns;      /* before it was begun, by its worker, which had just been started */
	int64_t pack_ns;       /* after it was done, by its worker */
	int64_t pin_ns;        /* by the thread that pins */
	int64_t hand_ns; /* at last, by the rank; what it took over meanwhile of others included */
};

extern const char *const wait_part_names[WAIT_PARTS]; /* as in result.json */

/* One batch as the worker saw it. */
struct batch_span {
	int64_t sent_ns, begun_ns, done_ns;
	int64_t late_ns;      /* before it was begun, its worker had no processor */
	int64_t rank_late_ns; /* after it was done, the rank had none */
	const struct batch_work *work;
	struct batch_costs costs;
};

/* Totals of one rank in the training of one epoch; of finished steps alone. */
struct epoch_split {
	int64_t wait_ns[WAIT_PARTS]; /* sums to the exposed wait */
	int64_t work_ns[WORK_KINDS]; /* workers' time in the batches delivered; WORK_NO_CPU is
				      * taken off the others in proportion */
	uint64_t batches;
	uint64_t ready;     /* batches that lay ready, summed over the asks */
	double service_ns;  /* sum of done - begun, and of packing by the framework */
	double service_sq;  /* and of its squares */
	double delivery_ns; /* between done and got, of the batches that were waited for, without
			     * the framework's code */
	uint64_t waited;    /* how many those are */
	/* Of the framework's code: in the waits, before an epoch's first batch was begun; by the
	 * rank at each step, within its waits and outside; only outside of them. */
	int64_t framework_start_ns, framework_step_ns, framework_loop_ns;
	int64_t framework_late_ns; /* outside of waits too: it had no processor */
};

/* Evenly spread values of a series of unknown length: every stride-th. All zeros: empty. */
#define SERVICE_KEPT 256
struct service_times {
	uint32_t n;
	uint64_t stride, seen;
	int64_t ns[SERVICE_KEPT];
};

/* Divides the wait of a step, [ask, got], by what its batch's worker did in it: before the indexes
 * were sent the workers starved, then the batch was queued (start-up, both, when it is the epoch's
 * first), from begun to done in proportion to the batch's own work, then it was on its way. What
 * the worker, or the rank after it, waited for a processor is a part of its own, and so is the
 * framework's code. Sums to got - ask exactly. Fills t->share, and the times of the batch. */
void wait_split(int64_t out[WAIT_PARTS], struct step_times *t, const struct batch_span *b,
		bool first);
/* The same from t->share, in ns, to within the rounding of the shares; sums to got - ask. */
void wait_split_again(int64_t out[WAIT_PARTS], const struct step_times *t);
/* The share `of_ns` is of `all_ns`, for late_compute, over_compute and
 * late_barrier; and back. */
uint16_t late_share(int64_t of_ns, int64_t all_ns);
int64_t late_ns(uint16_t share, int64_t all_ns);
/* Of the step's computation what whole-run AU does not count: beyond the time that was asked for,
 * because the rank had no processor or stood still. */
int64_t step_late_ns(const struct step_times *t);
/* The computation without what was late for want of a processor, s. */
double step_computed_s(const struct step_times *t);
/* Takes up to `ns` of the step's wait off its other parts, in proportion, for WAIT_NO_CPU, in the
 * step and in the totals it was added to (NULL: none); returns how much that was. */
int64_t wait_split_take(struct epoch_split *s, struct step_times *t, int64_t ns);
/* Adds finished step `i` of the steps `all` with its batch. */
void epoch_split_add(struct epoch_split *s, const int64_t wait[WAIT_PARTS],
		     const struct step_times *all, uint64_t i, const struct batch_span *b);
void epoch_split_merge(struct epoch_split *into, const struct epoch_split *from);
void service_times_add(struct service_times *s, int64_t ns);
