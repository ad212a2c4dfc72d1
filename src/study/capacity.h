#pragma once
/* How many accelerators a storage feeds: runs of one workload with growing numbers of them, each a
 * run of the program itself with its result folder; and how fast it takes checkpoints.
 * docs/capacity.md. */
#include <jansson.h>

#include "readback/knee.h"
#include "result/judgement.h"
#include "run/foresee.h"
#include "study/runner.h"
#include "readback/sums.h"
#include "workload/workload.h"

#define CAPACITY_NAME "capacity.json"

/* ---- hosts ---- */

/* A host, and how many processes it has where every process of the list has the same ranks. */
struct spread_host {
	const char *name;
	uint32_t processes;
};

uint32_t spread_processes(const struct spread_host *host, size_t hosts);
/* Appends "--hosts", LIST, "-n", N for the run. As the list says where the processes can have as
 * many each; else the hosts get what is left in turn, and every process the most that divides what
 * each host has. Hosts without an accelerator are left out. */
void spread_put(const struct spread_host *host, size_t hosts, uint32_t accelerators,
		struct str_list *command);

/* ---- the search ---- */

/* Another workload that trains on the same storage meanwhile, with a number that stays. */
#define CAPACITY_OTHERS_MOST 8
struct capacity_other {
	struct runner_base base;
	const char *name;
	uint32_t accelerators;
	double target;            /* percent */
	const struct workload *w; /* NULL: made again from capacity.json */
};

struct capacity_options {
	struct runner_base base;
	const char *name;               /* of the workload, for people */
	const char *folder;             /* of results */
	uint32_t max;                   /* accelerators, or writers */
	double time_s;                  /* of the training of one point, at most */
	double target;                  /* percent */
	const struct spread_host *host; /* that the accelerators are spread over, with ssh; */
	size_t hosts;                   /* 0: this one, without it */
	const struct str_list *ssh;     /* words that 'stoker run' needs for that */
	const struct capacity_other *other;
	size_t others;                /* CAPACITY_OTHERS_MOST at most */
	bool keep_data;               /* what was generated for the search stays */
	bool small;                   /* the workload is one that small_run shrank */
	const struct str_list *typed; /* overrides that tell its runs from others; NULL: all */
	const struct stop_flag *stop;
};

/* One run of a point, as its result says. NaN: not known. */
struct capacity_run {
	uint32_t accelerators;
	unsigned repeat; /* from 1: folder "ACCELERATORS/REPEAT" */
	uint64_t steps;  /* of a rank that were asked for */
	bool full;       /* it cannot be longer: time, or data */
	bool confirms;   /* made to show what varies slowly */
	bool probes;     /* the storage was probed after it, which tells what limits */
	bool outdated;   /* the storage has changed since, or it was too short, or read a cache */
	bool client;     /* the client limited it, and AU misses the target */
	/* AU of the whole workload, its checkpoints included, and its standard error. */
	double au, error, blocks, step_s;
	double between_au; /* the same between checkpoints */
	/* With other workloads beside it: what it had itself, and they while it was measured. Then
	 * `au` is that of the one which is nearest to its target, or below it most: AU / its
	 * target, times the target of the search. */
	double own_au; /* NaN: no training */
	struct {
		double au, error;
	} other[CAPACITY_OTHERS_MOST];
	int others, first; /* of the others the one that `au` is of; -1: itself */
	/* As the workload says: steps and checkpoints of a run with so many accelerators, or
	 * seconds between two; each stops training for so long. 0: it writes none. */
	double whole_steps, saves, save_every_s, stall_s;
	double measured_s, varies_s, slowed_s; /* struct steady_au */
	double read_s;                         /* a reader took for a batch */
	double request_bytes;                  /* mean of a read */
	double request_s, fast_s;              /* median of its time; an eighth took no longer */
	bool fresh;                            /* nothing had read its data since it was made */
	bool warm;           /* its first epoch was slower than later ones: only that counts */
	double samples_read; /* different ones */
	double disturbed; /* points of AU lost for want of a processor; half of it is in `error` */
	double whole_au;
	/* read in the time that is measured, not before it; bytes that requests returned */
	double samples_per_s, bytes_per_s;
	/* Share of the processors, 0 to 1: with any program, of the host that had it hardest; with
	 * this run, of all its hosts. */
	double client_busy, run_busy;
	double cached_share; /* of the bytes, from the page cache */
	double seconds;      /* wall time of the process */
	enum cause cause;    /* limit */
	char text[1024];     /* the same in sentences */
	/* What reads of two sizes say that ends the rate of many readers; CAUSE_NONE: nothing. */
	enum cause probed;
	char probed_text[256];
	char failed[64]; /* a verdict that fails, other than the length of the run; "" */
	struct run_name name;
};

enum capacity_event_kind {
	CAPACITY_GENERATE, /* data is being generated: `bytes` */
	CAPACITY_RUN,      /* a run begins: seconds it is expected to take, NaN */
	CAPACITY_TICK,     /* ten times a second meanwhile: seconds since it began */
	CAPACITY_FOUND,    /* a run was already there */
	CAPACITY_DONE,     /* a run ended */
	CAPACITY_CHANGED,  /* the storage is another than at first: the search begins again */
	CAPACITY_LONGER,   /* it varies: points last `seconds` at least from here on */
};

struct capacity_event {
	enum capacity_event_kind kind;
	uint32_t accelerators;
	unsigned repeat;
	double seconds, expected_s, bytes;
	double done;                    /* of the data, 0 to 1; NaN */
	const char *data;               /* where it is */
	const struct capacity_run *run; /* of FOUND and DONE */
};
typedef void (*capacity_event_fn)(void *arg, const struct capacity_event *event);

struct capacity {
	const struct capacity_options *o;
	struct capacity_run *run; /* in the order in which they were made */
	size_t runs, room;
	struct knee knee; /* of those that are not outdated */
	bool complete;
	bool changed; /* the storage changed; AU of one number before and after */
	uint32_t changed_at;
	double changed_from, changed_to;
	bool warms;  /* what was read before came faster: a cache of the storage */
	bool helped; /* many reads of what met the target were faster than any of the first run */
	double least_s;   /* of the measured steps of a point: two periods of what varies; 0 */
	double least_use; /* the same times accelerators, as a credit may be used up; 0 */
	char left_out[ERR_TEXT_MAX];     /* of the workload, and why; "" */
	char stopped_by[ERR_TEXT_MAX];   /* why it ends below `max` without a knee: too few files,
					    ...; "" */
	double need_samples, need_bytes; /* of one accelerator at 100 %; NaN */
	double seconds;                  /* of all runs */
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

/* The answer, what the storage delivered, what limits, and the curve. */
void capacity_text(const struct capacity *c, struct buf *out);
json_t *capacity_json(const struct capacity *c);
/* One line of the curve, for progress. */
void capacity_put_run(const struct capacity_run *r, struct buf *out);

/* ---- checkpoints ---- */

/* One number of writers. NaN: not known. */
struct writers_point {
	uint32_t writers;
	double bytes;                 /* of a checkpoint, all writers */
	double write_s, read_s;       /* of one checkpoint, the slowest writer; mean */
	double write_rate, read_rate; /* bytes/s */
	double read_cached;           /* share of the bytes that the page cache gave back */
	double seconds;
	struct run_name name;
};

/* How fast a storage takes and gives back checkpoints: runs of checkpoints alone with 1, 2, 4, ...
 * writers, until more of them bring nothing. */
struct writers {
	struct writers_point point[32];
	size_t points;
	bool complete;
	char stopped_by[ERR_TEXT_MAX]; /* why more writers could not be measured; "" */
};

/* As capacity_find; o->max is the largest number of writers. The checkpoints are synced, and lie in
 * a folder of their own below checkpoint.checkpoint_folder, which is removed after each run. */
int writers_find(struct writers *x, const struct workload *w, const struct capacity_options *o,
		 capacity_event_fn tell, void *arg, struct err *e);
void writers_text(const struct writers *x, const struct capacity_options *o, struct buf *out);
json_t *writers_json(const struct writers *x, const struct capacity_options *o);

/* ---- what both searches share ---- */

/* The folder of a search: of one search at a time, and of those with the same settings alone, so
 * that no other search's runs are taken or replaced. */
struct search_folder {
	char key[SHA256_HEX]; /* of the settings; for capacity.json */
	struct file_lock lock;
};

/* Makes the folder and locks it. `of`: what is searched. ERR_USAGE when it has another search, one
 * that is running, or results of anything else. Ends with file_unlock in any case. */
int search_folder_open(struct search_folder *f, const struct capacity_options *o, const char *of,
		       struct err *e);
/* Writes `answer`, which it takes, as capacity.json. */
int search_folder_save(const struct search_folder *f, const struct capacity_options *o,
		       json_t *answer, struct err *e);
/* The row of a run with so many accelerators and these overrides beyond the user's. */
void search_row(const struct capacity_options *o, uint32_t accelerators, unsigned repeat,
		uint64_t steps, const struct str_list *keys, struct runner_row *row);
/* Its command alone, of this or another workload. */
void search_command(const struct capacity_options *o, const struct runner_base *base,
		    uint32_t accelerators, const struct str_list *keys, struct str_list *command);
extern const char search_mark[], search_log[];
/* Whether a failure only means that this machine has too little for so many. */
bool search_lacks_resources(const struct err *why);

/* ---- its data ---- */

/* Where the samples of a search come from, and how many steps of a run they are enough for: a
 * dataset that is there, one that is generated for the search and grows with it, or one that each
 * run makes in its own memory. */

enum samples_kind {
	SAMPLES_GIVEN, /* files that are there */
	SAMPLES_OWN,   /* files generated for the search */
	SAMPLES_RUN,   /* of each run: its store keeps nothing, or there are no files */
};

struct samples {
	enum samples_kind kind;
	char *folder;   /* of the dataset */
	char *above;    /* the nearest folder above it, or itself, that was there before; NULL */
	uint64_t files; /* SAMPLES_OWN: that the next run has; SAMPLES_RUN: that it generates */
	uint64_t made;  /* SAMPLES_OWN: that an earlier or this search began to generate; 0: none */
	bool whole;     /* SAMPLES_OWN: it has generated them all */
	double given;   /* SAMPLES_GIVEN: samples */
	double file_bytes;
	uint64_t per_file, batch;
	uint32_t workers; /* of a rank */
	uint64_t ahead;   /* batches */
	bool evicts;      /* it is read cold unless the user says otherwise */
	bool cold;        /* each epoch is */
	bool within;      /* checkpoints are written between the steps of an epoch */
	bool unread;      /* nothing has read it since it was generated */
	bool anew; /* SAMPLES_OWN: generated before each run, as a cache keeps what is read */
};

/* What a point is asked for. */
struct samples_want {
	uint64_t measured; /* steps beyond those that the start leaves out */
	uint64_t first;    /* the least of them: a longer point reads its data again */
	bool saves;        /* it writes a checkpoint at least */
	bool beside;       /* it goes on until it is stopped, with data for `first` */
};

/* How a point is run: 0 steps: all of each epoch. */
struct samples_plan {
	uint64_t steps; /* of a rank, all epochs; as many as can be had, at most `want` */
	uint64_t epochs;
	bool all;            /* more cannot be had */
	double samples_read; /* different ones, by all ranks */
};

/* ERR_USAGE when the workload cannot be searched: it does not train, or computes in no time. */
int samples_init(struct samples *s, const struct workload *w, struct err *e);
void samples_release(struct samples *s);
/* Plans the steps of `accelerators`. `keys` gets
 * what the run has to be told. -ENODATA, with the sentence: there are too few files for this number
 * of accelerators, and no more can be had; -ENOMEM: this machine has too little memory; *most gets
 * how many it is enough for. Generates nothing: what is planned depends on the numbers asked for so
 * far alone. */
int samples_plan(struct samples *s, const struct capacity *c, uint32_t accelerators,
		 const struct samples_want *want, struct samples_plan *plan, struct str_list *keys,
		 uint32_t *most, struct err *e);
/* Steps that begin an epoch, and are not measured. */
uint64_t samples_left_out(const struct samples *s);
/* What the workload itself says of a run with so many accelerators, none of the search's keys. As
 * run_foresee. */
int samples_whole_run(const struct capacity *c, uint32_t accelerators, struct run_foresight *f,
		      struct err *e);
/* Generates the files that were planned, where they are not there. */
int samples_make(struct samples *s, const struct capacity *c, struct err *e);
/* Removes what was generated, unless it is to be kept; also of a search that was interrupted. */
int samples_clean(const struct samples *s, const struct capacity *c, struct err *e);

/* ---- its next point ---- */

/* Which number of accelerators is measured next: doubling, then between the numbers that meet the
 * target and those that miss it, then again near the knee. A pure function of what was measured, so
 * that a search which was killed goes the same way again. */

/* Runs of one number, at most. */
#define SEARCH_RUNS_MOST 3
/* Of the two numbers at the knee. */
#define SEARCH_RUNS_KNEE 2

struct search_step {
	bool done;
	uint32_t accelerators;
	bool longer;   /* it is near the knee, or was not decided */
	bool confirms; /* it is to show what varies slowly, too */
	bool probes;   /* and what limits */
};

/* What a search may measure. */
struct search_bounds {
	double target;  /* percent */
	uint32_t most;  /* numbers above are not measured */
	uint32_t whole; /* from SEARCH_WHOLE_FROM times that on only its multiples; 0: any */
	bool once;      /* a number at the knee needs no second run */
};
#define SEARCH_WHOLE_FROM 50

/* The next step after `run`s, in the order in which they were made. A client that limits ends the
 * way upwards like a storage. */
struct search_step search_next(const struct knee_run *run, size_t runs,
			       const struct search_bounds *b);
