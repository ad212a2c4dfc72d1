#pragma once
/* A plan: what so many accelerators need, whether what was measured says that they get it, and what
 * that rests on. */
#include "base/buf.h"
#include "base/map.h"
#include "plan/goodput.h"
#include "plan/point_fit.h"
#include "result/basis.h"

#include <jansson.h>

/* No further than this from what was measured, where the shape of the waits' tail is assumed: a
 * range from ln N to sqrt(N) says nothing there. */
#define SIZING_FAR 30
/* The same of the accelerators of a run that is simulated: 1,024 from one are tested. */
#define SIZING_SIMULATED_FAR 1024
#define SIZING_ROWS_MAX 64
#define SIZING_TEXT 300

/* Low and high: 5 and 95 % of the sets of parameters that agree with the points (a simulation: 2.5
 * and 97.5 %). */
struct sizing_range {
	double low, mid, high;
};

enum sizing_answer { SIZING_NO, SIZING_YES, SIZING_UNKNOWN };

/* What decides most of a row. */
enum sizing_reason {
	REASON_POINTS,  /* nothing assumed: what was measured */
	REASON_RANK,    /* that the readers of an accelerator ask for more than was seen */
	REASON_HOST,    /* that a host gives more than was seen */
	REASON_STORAGE, /* that the storage gives more than was seen */
	REASON_EITHER,  /* which of the two was at its end */
	REASON_SHAPE,   /* how the slowest rank's wait grows */
	REASON_SIZE,    /* what a byte and what a sample costs */
	REASON_OTHER,   /* that another accelerator leaves the system what it is */
	REASON_GAP,     /* what AU leaves out */
	REASON_RUN,     /* in the simulation's words */
};

struct sizing_row {
	double accelerators, hosts;
	/* Of the storage, for the target; and for accelerators that are always busy. */
	double need_samples, need_bytes, need_opens, need_requests;
	double full_samples, full_bytes;
	/* Shares, 0 to 1. */
	struct sizing_range au, share;
	struct sizing_range samples_per_s;
	/* Not bounded: no measurement has seen the end of what limits this one. `low` is what was
	 * measured, and `mid` and `high` hold where nothing more is in the way. */
	bool bounded;
	enum sizing_answer passes;    /* AU reaches the target */
	enum sizing_answer enough;    /* so does the share by rate */
	char limit[80];               /* "waits for the slowest accelerator" */
	char assumption[SIZING_TEXT]; /* that decides most; "" */
	char next[SIZING_TEXT];       /* the measurement that would settle most; "" */
	/* What simpler rules say, share by rate: as in the nearest point; the same, and no more
	 * bytes/s than any point had. */
	double linear_share, cap_share;
	bool simulated; /* from a run of this program, not from points */
};

/* The most accelerators that pass, as many on each host. */
struct sizing_most {
	bool known; /* a target is set, and the points say something */
	struct sizing_range n;
	bool bounded;
	double searched; /* none above it was looked at */
};

struct sizing {
	struct duty plan;
	const struct point *point; /* borrowed */
	size_t points;
	bool grows;
	struct sizing_row *row; /* heap */
	size_t rows;
	struct sizing_most most; /* on the hosts of the plan */
	struct str_list notes;   /* sentences without a full stop */
	bool has_goodput;
	struct goodput_input checkpoint;
	struct goodput goodput; /* for the first row's accelerators */
	bool mtbf_given, restart_given;
};

struct sizing_question {
	const struct duty *plan;
	const double *accelerators;
	size_t count;
	double hosts; /* 0: so many that each has as many accelerators as in the points */
	bool grows;
	/* From runs of this program, on the storage that they had: fills au, share, samples_per_s,
	 * limit, assumption of the row and `simulated`. 1: done; 0: this run cannot say, go by the
	 * points; negative: refused. NULL: none. */
	int (*simulate)(void *arg, struct sizing_row *row, struct err *e);
	void *arg;
	/* Before each of these, which may take seconds; NULL: nobody asks. */
	void (*tell)(const struct sizing_row *row);
};

/* ERR_DATA for what the points do not bear, ERR_USAGE for what cannot be. Release in any case. */
int sizing_find(struct sizing *s, const struct sizing_question *q, const struct point *p, size_t n,
		struct err *e);
void sizing_release(struct sizing *s);

/* Text for a terminal of so many columns: the first screen answers. */
void sizing_text(const struct sizing *s, size_t columns, struct buf *out);
json_t *sizing_json(const struct sizing *s);

/* ---- from runs of this program, simulated ---- */

struct sizing_run {
	const struct point *point; /* borrowed */
	struct basis basis;
};

struct sizing_runs {
	struct sizing_run *run; /* borrowed */
	size_t runs;
	const struct duty *plan;
	struct str_list *notes; /* gets why a run was not used, once */
};

/* The `simulate` of a question; `arg` is a struct sizing_runs. By the run with most accelerators of
 * those with no more than the row's; the mean of up to 8 where it was repeated. */
int sizing_by_run(void *arg, struct sizing_row *row, struct err *e);
