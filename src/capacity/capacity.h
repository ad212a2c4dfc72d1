#pragma once
/* How many accelerators a storage feeds: runs of one workload with growing numbers of them, each a
 * run of the program itself with its result folder. docs/capacity.md. */
#include <jansson.h>

#include "base/thread.h"
#include "capacity/spread.h"
#include "readback/knee.h"
#include "workload/workload.h"

#define CAPACITY_NAME "capacity.json"

struct capacity_options {
	const char *program;          /* path of the stoker to run */
	const char *workload;         /* NULL: none was named */
	const char *name;             /* of the workload, for people */
	const char *config_dir;       /* NULL */
	const char *const *overrides; /* of the user, in their order */
	size_t override_count;
	const char *folder;             /* of results */
	uint32_t max;                   /* accelerators, or writers */
	double time_s;                  /* of the training of one point, at most */
	double target;                  /* percent */
	const struct spread_host *host; /* that the accelerators are spread over, with ssh; */
	size_t hosts;                   /* 0: this one, without it */
	const struct str_list *ssh;     /* words that 'stoker run' needs for that */
	bool keep_data;                 /* what was generated for the search stays */
	const struct stop_flag *stop;
};

/* One run of a point, as its result says. NaN: not known. */
struct capacity_run {
	uint32_t accelerators;
	unsigned repeat; /* from 1: folder "ACCELERATORS/REPEAT" */
	uint64_t steps;  /* of a rank that were asked for */
	bool full;       /* it cannot be longer: time, or data */
	bool outdated;   /* the storage has changed since */
	bool client;     /* the client limited it, and AU misses the target */
	double au, error, blocks, step_s;
	double disturbed; /* points of AU lost for want of a processor; half of it is in `error` */
	double whole_au;
	/* read in the time that is measured, not before it; bytes that requests returned */
	double samples_per_s, bytes_per_s;
	/* Share of the processors, 0 to 1: with any program, of the host that had it hardest; with
	 * this run, of all its hosts. */
	double client_busy, run_busy;
	double cached_share;       /* of the bytes, from the page cache */
	double seconds;            /* wall time of the process */
	char storage[16];          /* measured.storage */
	char cause[32], text[512]; /* limit */
	char remedy[200];
	bool client_failed; /* a verdict about this machine */
	char failed[64];    /* a verdict that fails, other than the length of the run; "" */
};

enum capacity_event_kind {
	CAPACITY_GENERATE, /* data is being generated: `bytes` */
	CAPACITY_RUN,      /* a run begins: seconds it is expected to take, NaN */
	CAPACITY_TICK,     /* ten times a second meanwhile: seconds since it began */
	CAPACITY_FOUND,    /* a run was already there */
	CAPACITY_DONE,     /* a run ended */
	CAPACITY_CHANGED,  /* the storage is another than at first: the search begins again */
};

struct capacity_event {
	enum capacity_event_kind kind;
	uint32_t accelerators;
	unsigned repeat;
	double seconds, expected_s, bytes;
	const struct capacity_run *run; /* of FOUND and DONE */
};
typedef void (*capacity_event_fn)(void *arg, const struct capacity_event *event);

struct capacity {
	const struct capacity_options *o;
	struct capacity_run *run; /* in the order in which they were made */
	size_t runs;
	struct knee knee; /* of those that are not outdated */
	bool complete;
	bool changed; /* the storage changed; AU of one number before and after */
	uint32_t changed_at;
	double changed_from, changed_to;
	char stopped_by[ERR_TEXT_MAX];   /* why it ends below `max` without a knee: too few files,
					    ...; "" */
	double need_samples, need_bytes; /* of one accelerator at 100 %; NaN */
	char data[1024];                 /* where the samples are */
	bool made_data;
	double seconds; /* of all runs */
	capacity_event_fn tell;
	void *arg;
};

/* Searches, or goes on with a search of the same settings in o->folder. Each run ends in its folder
 * before the next begins, so that a killed search loses one run. ERR_CANCELED once the stop is set:
 * what is known is in `c`. ERR_USAGE: the folder has another search; the workload has no AU.
 * Release in any case. */
int capacity_find(struct capacity *c, const struct workload *w, const struct capacity_options *o,
		  capacity_event_fn tell, void *arg, struct err *e);
void capacity_release(struct capacity *c);

/* The run that tells best why more accelerators miss the target: the longest of the smallest number
 * that does; NULL: none does. */
const struct capacity_run *capacity_limited(const struct capacity *c);
/* The longest run of a number; NULL. */
const struct capacity_run *capacity_longest(const struct capacity *c, uint32_t accelerators);

/* "17 accelerators (95 %: 16 to 18)", "at least 24 accelerators", "no accelerator". Appended. */
void capacity_put_answer(const struct capacity *c, struct buf *out);
/* The answer, what the storage delivered, what limits, and the curve. */
void capacity_text(const struct capacity *c, struct buf *out);
json_t *capacity_json(const struct capacity *c);
/* One line of the curve, for progress. */
void capacity_put_run(const struct capacity *c, const struct capacity_run *r, struct buf *out);
