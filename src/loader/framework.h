#pragma once
/* Processor time that a framework's own code would spend (framework.costs), spent by the thread
 * that would spend it: busy, so that it competes for processors as the framework does. Of work that
 * this program did itself in the same place (decoding, copying, packing) only the rest is spent, so
 * that the sum is the framework's. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/thread.h"
#include "metric/io_waits.h"
#include "workload/framework_costs.h"

/* Totals of one thread. */
struct framework_spent {
	int64_t cpu_ns;    /* processor time */
	int64_t beyond_ns; /* by which this program's own work took longer than the law */
};

/* A sample that is being loaded. */
struct framework_load {
	const struct cost_law *law; /* NULL: nothing is spent before it is read */
	double bytes;               /* of its data, as far as is known */
	double off;                 /* of this time from the law, as a fraction of it */
	uint64_t data;              /* bytes asked for so far */
	uint32_t heads, heads_most; /* requests before its data; of the sample before it */
	int64_t spent_ns, took_ns;  /* processor time between the requests, and time */
};

/* One thread's. */
struct framework_code {
	const struct framework_costs *costs; /* NULL: none, nothing is ever spent */
	/* What ends spending early: a flag, and bits of a word. Each may be NULL. */
	const struct stop_flag *stop;
	const _Atomic uint32_t *halt;
	uint32_t halts;
	struct framework_spent *spent; /* where it counts */
	uint64_t key, draws;           /* of the spread of single times */
	bool dlio;                     /* compat.dlio: its own code, too */
	bool alone;                    /* a rank without workers */
	uint64_t been; /* rows spent at least once, by bits; 0 again for a new worker */
	struct framework_load load;
	/* The clock, and the thread's, when each row was spent last; of loading behind the others.
	 */
	struct {
		int64_t clock_ns, thread_ns;
	} left[COST_ROWS + 1];
};

static inline bool framework_on(const struct framework_code *f)
{
	return f->costs != NULL;
}

/* Processor time of the calling thread, ns. Costs a system call. */
int64_t framework_thread_ns(void);

/* Spends what the law gives, drawn with its spread, less `own_ns` of processor time that the thread
 * spent on the same work. Returns the processor time spent, ns: less than that if it was ended
 * early, within a fraction of a millisecond. Nothing and 0 without costs. */
int64_t framework_spend(struct framework_code *f, enum cost_row row, double samples, double bytes,
			int64_t own_ns);
/* The same for what has no samples; adds to *late_ns the time that the thread was without a
 * processor meanwhile. */
int64_t framework_spend_once(struct framework_code *f, enum cost_row row, int64_t *late_ns);
/* A new worker of DLIO imports the library of its format. Returns the processor time spent, ns. */
int64_t framework_spend_import(struct framework_code *f, const struct format_facts *format);
/* Begins loading a sample of so many bytes: until framework_spend_load, framework_load_between may
 * be called before each of its requests for `asked` bytes. It spends what of the law the framework
 * would have spent by then, less `own_ns` of this sample so far. Returns the time that it took, ns.
 */
void framework_load_begin(struct framework_code *f, const struct format_facts *format,
			  double bytes);
int64_t framework_load_between(struct framework_code *f, uint64_t asked, int64_t own_ns);
/* The same for loading a sample, less what was spent between its requests. opened: its file was
 * opened for it. What the thread waited since it loaded the sample before, this sample's requests
 * included, is what the law's after_wait is of. within: these requests, by COST_EACH_WAIT_S; NULL:
 * not known one by one. */
int64_t framework_spend_load(struct framework_code *f, const struct format_facts *format,
			     bool opened, double bytes, const struct io_waits *within,
			     int64_t own_ns);
