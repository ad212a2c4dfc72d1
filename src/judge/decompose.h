#pragma once
/* Where the wall time of training went: disjoint parts that sum to it. By the definitions of
 * docs/metrics.md; the division of waits is metric/split.h. */
#include "base/buf.h"
#include "result/result.h"

enum time_part {
	TIME_COMPUTE,
	TIME_WAIT, /* the parts of the exposed wait, in the order of enum wait_part */
	TIME_WAIT_END = TIME_WAIT + WAIT_PARTS - 1,
	TIME_SKEW,       /* at the barrier, for ranks that came later */
	TIME_COLLECTIVE, /* between the last rank's arrival and going on */
	TIME_CHECKPOINT,
	TIME_OTHER, /* everything between; what is left of the wall time */
	TIME_PARTS
};

/* As in result.json and in the table. */
extern const char *const time_part_names[TIME_PARTS];

struct decomposition {
	uint32_t ranks;            /* that are not lost: what means are over */
	double wall_s;             /* of training, mean over ranks */
	double mean_s[TIME_PARTS]; /* mean over ranks; sums to wall_s */
	double critical_wall_s;    /* from the first rank's begin to the last one's end, summed */
	double critical_s[TIME_PARTS];        /* in each step of the last; sums to it */
	double work_s[WORK_KINDS];            /* workers' time in delivered batches, all ranks */
	double hidden_io_s;                   /* of that, requests that no rank waited for */
	double ready_mean;                    /* batches that lay ready when a rank asked */
	uint64_t steps;                       /* of all ranks */
	uint64_t batches, common_steps;       /* delivered; made by every rank */
	double service_mean_s, service_dev_s; /* a batch from begun to done */
	double delivery_mean_s;               /* from done to got, where it was waited for */
	uint32_t last_rank;                   /* came last to the barrier most often */
	double last_share;                    /* in this share of the steps */
	double last_behind_s;                 /* how far behind the one before it, on average */
	enum time_part last_part;             /* in which it spends more than the mean */
	uint32_t last_node;        /* whose ranks came last most often, for their number */
	double last_node_share;    /* in this share of the steps; 0 with one node */
	uint32_t last_node_ranks;  /* it has so many */
	double last_node_behind_s; /* the last of them behind all other nodes', on average then */
};

/* Over the epochs [from, to) of the begun ones. Pure. */
void decompose(const struct result *r, uint32_t from, uint32_t to, struct decomposition *out);
/* The exposed wait, of the mean or the critical path. */
double decompose_wait(const double part[TIME_PARTS]);
/* The table of the text report. `bold` and `plain` are put around its title. */
void decompose_text(const struct decomposition *d, const char *bold, const char *plain,
		    struct buf *out);
