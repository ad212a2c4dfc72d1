#pragma once
/* What judging a result yields: filled once by judge/judge.h, rendered by the writers here. */
#include <stdbool.h>
#include <stdint.h>

#include "metric/slow_samples.h"
#include "metric/split.h"
#include "result/basis.h"
#include "words/words.h"

/* ---- where the wall time of training went: disjoint parts that sum to it ---- */

enum time_part {
	TIME_COMPUTE,
	TIME_WAIT, /* the parts of the exposed wait, in the order of enum wait_part */
	TIME_WAIT_END = TIME_WAIT + WAIT_PARTS - 1,
	TIME_SKEW,       /* at the barrier, until the last rank arrived */
	TIME_COLLECTIVE, /* at the barrier, after the last rank arrived */
	TIME_CHECKPOINT,
	TIME_OTHER, /* between the times of the steps: the rest of the wall time */
	TIME_PARTS,
	/* Of waits, and of computation and barriers that were late for want of a processor. */
	TIME_NO_CPU = TIME_WAIT + WAIT_NO_CPU,
	/* Of waits, and of the rank's own code beside them. */
	TIME_FRAMEWORK = TIME_WAIT + WAIT_FRAMEWORK
};

/* As in result.json and in the table. */
extern const char *const time_part_names[TIME_PARTS];

/* By the definitions of docs/metrics.md; the division of waits is metric/split.h. */
struct decomposition {
	uint32_t ranks;            /* that are not lost: means are over these */
	double wall_s;             /* of training, mean over ranks */
	double mean_s[TIME_PARTS]; /* mean over ranks; sums to wall_s */
	double critical_wall_s;    /* from the first rank's begin to the last one's end, summed over
				      epochs */
	double critical_s[TIME_PARTS]; /* in each step, of the rank that came last; sums to it */
	double work_s[WORK_KINDS];     /* workers' time in delivered batches, all ranks */
	/* Of mean_s[TIME_NO_CPU]: not in waits. */
	double late_compute_s, late_barrier_s, late_framework_s;
	double framework_loop_s;  /* of mean_s[TIME_FRAMEWORK]: not in waits */
	double framework_step_s;  /* the rank's own code at its steps, in waits and not */
	double framework_start_s; /* of waits: before the first batches of epochs were begun */
	double hidden_io_s;       /* of that: in requests while no rank waited for them */
	double ready_mean;        /* batches ready when a rank asked for one */
	uint64_t steps;           /* of all ranks */
	uint64_t batches, common_steps;       /* delivered; made by every rank */
	double service_mean_s, service_dev_s; /* a batch from begun to done */
	double delivery_mean_s;               /* from done to got, where it was waited for */
	uint32_t last_rank;                   /* arrived last at the barrier most often */
	double last_share;                    /* in this share of the steps */
	double last_behind_s;                 /* how far behind the one before it, on average */
	enum time_part last_part;             /* in which its time exceeds the mean most */
	uint32_t last_node;        /* its ranks came last most often, relative to their number */
	double last_node_share;    /* in this share of the steps; 0 with one node */
	uint32_t last_node_ranks;  /* ranks of that node */
	double last_node_behind_s; /* in those steps: the last of them behind the ranks of other
				      nodes, on average */
};

/* ---- the ledger of bytes: one line for each place between the samples and the storage where bytes
 * of training were counted, each compared with an earlier one ---- */

enum ledger_key {
	LEDGER_WANTED,   /* sample data delivered from the store, decoded */
	LEDGER_ASKED,    /* bytes in files, of the store, by metadata and data requests */
	LEDGER_RETURNED, /* by these */
	LEDGER_REMOTE,   /* of the remote dataset, downloaded into reader.cache_folder; the two
			  * above are of that folder then */
	LEDGER_CALLS,    /* by read calls of this program, as the kernel counts them (rchar) */
	LEDGER_CHARGED,  /* fetched for this program from below the page cache (read_bytes) */
	LEDGER_CLIENT,   /* returned by the client of a network file system */
	LEDGER_FETCHED,  /* fetched by it from its servers */
	LEDGER_DEVICE,   /* read from the whole devices under the dataset's file system */
	LEDGER_DISKS,    /* read from the disks below these devices */
	LEDGER_NETWORK,  /* received by the network's interfaces */
	LEDGER_LINES
};

enum ledger_state { LEDGER_AGREES, LEDGER_EXPLAINED, LEDGER_FLAGGED };

struct ledger_line {
	bool known;
	double bytes;
	int against;             /* the line it is compared with; -1: none */
	enum ledger_state state; /* explained or flagged: they differ by more than 1 % */
	struct fact why;         /* REASON_NONE where they agree */
};

struct ledger {
	struct ledger_line line[LEDGER_LINES];
};

extern const char *const ledger_keys[LEDGER_LINES];
extern const char *const ledger_titles[LEDGER_LINES];

/* ---- the samples that took longest to read ---- */

#define STRAGGLING_SAMPLES 10

struct stragglers {
	uint32_t samples;
	struct straggling_sample {
		uint32_t rank;
		struct slow_sample of;
	} sample[STRAGGLING_SAMPLES]; /* the longest first */
	double mean_s; /* to read a sample, over ranks that measured it; 0: unknown */
};

/* ---- a few requests of one kind that take far longer than the others of it ---- */

enum slow_kind { SLOW_NONE, SLOW_OPENS, SLOW_CLOSES, SLOW_STATS, SLOW_READS };

struct slow_requests {
	enum slow_kind kind;
	double count, all;       /* slow ones; of that kind */
	double slow_s;           /* that the slow ones took, of all ranks */
	double each_s, others_s; /* mean of a slow one, and of another one */
	double longest_s;        /* a wait for a batch that these explain */
};

/* ---- reads by their folder and file ---- */

struct by_name {
	enum {
		NAME_NOTHING,
		NAME_SLOW_FOLDERS, /* reads of some are slow, wherever and whenever */
		NAME_SLOW_FILES,
		NAME_TURNS_FOLDER, /* reads of one folder wait for each other */
		NAME_TURNS_FILE,
	} what;
	double slow, all;        /* folders or files of which reads were seen: slow ones; all */
	uint32_t folder;         /* read_name_folder of a slow one */
	double slow_s, others_s; /* mean of a slow read, and of another one; of turns: beside one
				  * of the same name, and without */
	double share;            /* of the time of reads: what the slow ones take beyond that */
};

/* ---- whether training went on as it began: docs/metrics.md, "Change during the run" ---- */

enum steady_change {
	CHANGE_NONE,
	CHANGE_LEVEL,    /* at one moment, and for good */
	CHANGE_TREND,    /* little by little */
	CHANGE_ALTERNATE /* between two rates, again and again */
};

/* As in result.json. */
extern const char *const steady_change_names[];

#define STALLS_KEPT 4
/* One heavy wait among many light ones. */
struct stall {
	uint32_t epoch, rank; /* the epoch from 1; the rank that waited longest for it, or read */
	uint64_t step;        /* of the epoch, from 1 */
	double at_s;          /* its begin, since the run began */
	double length_s;      /* how long reading (or the process) stood still */
	double waited_s;      /* of that, a rank waited; the rest was hidden by prefetching */
	bool process;         /* all threads stood still: no matter of the storage */
};

/* What ranks saw of the storage, and how that changed: times are of training alone. "Before" is all
 * before the last change, "last" what followed it (of a trend: the last quarter). */
struct steadiness {
	bool known;                    /* steps enough to tell */
	enum steady_change change;     /* of the time of a step; else of what computation hid */
	bool changed;                  /* the rate of training did */
	bool hidden;                   /* only reading did: computation covered it */
	uint32_t rank;                 /* whose reading changed alone; UINT32_MAX: not one rank's */
	uint32_t epoch;                /* from 1: where the last part begins */
	uint64_t step;                 /* of that epoch, from 1 */
	double at_s;                   /* the same in seconds since the run began */
	double last_share;             /* of the training time that is the last part */
	double before_rate, last_rate; /* samples/s, all ranks */
	double before_au, last_au, whole_au; /* percent, no step excluded, without lateness */
	double late_percent; /* of the time, computation was late for want of a processor */
	double before_read_s, last_read_s;   /* to read a batch, mean over ranks */
	double before_payload, last_payload; /* bytes/s, by the mean size of a sample */
	double slow_s, period_s;             /* alternating: a slow phase; from one to the next */
	uint32_t slow_phases;                /* alternating */
	double kept_up_s;                    /* hidden trend: until workers no longer keep up, after
					      * the end; 0: not in sight */
	double read_busy;                    /* of the workers' time in the last part, reading */
	enum time_part part;                 /* of a step's time, in which the difference is most */
	double cut_share;  /* of the time, in no rate above: a stall, or those of the start */
	bool stalls_again; /* several, not all at the start: they are in the rates above */
	uint32_t stalls;   /* of them the longest are kept */
	double stalled_s;  /* ranks waited in them, of training, mean over ranks */
	double au_without_stalls; /* percent: computation over what is left of the time */
	struct stall stall[STALLS_KEPT];
};

struct judgement;

/* ---- verdicts ---- */

enum verdict_level { VERDICT_PASS, VERDICT_WARN, VERDICT_FAIL, VERDICT_UNKNOWN };

/* What a warning or a failure takes from the numbers: in spite of them, ... */
enum taken {
	TAKES_STORAGE = 1u << 0,    /* it was not the storage that was measured */
	TAKES_PART = 1u << 1,       /* nor in part: something else served the rest */
	TAKES_CHECKPOINT = 1u << 2, /* checkpoints did not reach the storage, or come from it */
	TAKES_LASTING = 1u << 3,    /* a longer run would have other rates */
	TAKES_WINDOW = 1u << 4,     /* the whole run has: a part of it was chosen */
	TAKES_CLIENT = 1u << 5,     /* this machine lacked what training needs */
	TAKES_CONTENT = 1u << 6,    /* other samples were read than the workload describes */
	TAKES_END = 1u << 7,        /* the run did not come to its end */
	TAKES_ORIGIN = 1u << 8,     /* it is not known where the bytes came from */
	TAKES_TARGET = 1u << 9,     /* nor where those of checkpoints went */
};
#define TAKEN_KINDS 10
extern const char *const taken_names[TAKEN_KINDS]; /* as in result.json, by bit */

/* What several verdicts say one thing about: a single line where there is little room. */
enum verdict_about {
	ABOUT_ITSELF,   /* nothing that another verdict is about */
	ABOUT_ORIGIN,   /* whether the bytes came from the storage */
	ABOUT_LENGTH,   /* whether the run was long enough and went on as it began */
	ABOUT_MACHINE,  /* whether this machine was what limited it */
	ABOUT_WORKLOAD, /* what was said of the workload before the run, too */
};

struct verdict {
	char check[24]; /* the name of its row: "steady", "bytes", "dataset", ... */
	enum verdict_level level;
	enum verdict_about about; /* of its row */
	unsigned takes;      /* enum taken; of a level that is no warning or failure, only what is
			      * not known: TAKES_ORIGIN, TAKES_TARGET */
	enum reason instead; /* INSTEAD_*: what was measured in place of the storage; else
			      * REASON_NONE */
	struct fact origin;  /* TAKES_ORIGIN: what is known of where the bytes came from */
	struct fact_list facts; /* what it found, in the order in which it is said */
	uint32_t first_bad;     /* the fact that it is so bad for, */
	uint32_t end_bad;       /* and from which on the facts are of something else */
};

/* What the numbers are numbers of, by the verdicts alone. */
enum measured_storage {
	MEASURED_STORAGE,
	MEASURED_PART,     /* and something else */
	MEASURED_EMULATED, /* a store inside this program */
	MEASURED_NOT,
	MEASURED_UNKNOWN, /* where the bytes came from */
	MEASURED_KINDS
};
extern const char *const measured_names[MEASURED_KINDS]; /* as in result.json */

struct measured {
	enum measured_storage storage;
	unsigned taken;      /* enum taken, of all verdicts */
	enum reason instead; /* INSTEAD_*: what served in place of the storage, where it did */
	struct fact origin;  /* REASON_NONE: where the bytes came from is known */
	/* What the numbers are of, then what is taken from them, as noun phrases; none: nothing
	 * was measured. The verdicts that take one of by[i] say fact i. */
	struct fact_list facts;
	unsigned by[FACTS_MOST];
};
/* "the page cache"; returns `out`. */
char *measured_instead(const struct measured *m, char *out, unsigned size);
/* One sentence of them, with the names of the verdicts. */
void measured_put(struct buf *out, const struct judgement *j);

/* ---- what would change the result, by the model (predict/model.h) ---- */

/* What the framework's own code would take from whole-run AU, or has taken. */
struct costs_effect {
	bool said;        /* it is known well enough, and matters */
	bool spent;       /* the run has spent these costs: `au` is without them; else with them */
	char profile[72]; /* that says what they are */
	double au;        /* percent; NAN: only the interval is known */
	double low, high;
	/* NAN where they are not known or not another figure: by DLIO's definition; and whole-run
	 * AU without DLIO's own code, which `au` has where the run has not spent any */
	double dlio_au, loop_au;
};
/* Its sentence; of one that is `said`. */
struct fact costs_effect_fact(const struct costs_effect *c);

#define WHAT_IF_MAX 28
struct outlook {
	bool known;
	struct fact why;          /* when not known; REASON_NONE: nothing is said of it */
	double measured_au;       /* whole-run, percent */
	double modeled_au;        /* the same by the model */
	double stalled_share;     /* of the wall time, by checkpoints */
	double fixed_s, shared_s; /* of reading a batch: whatever else is read; alone */
	bool sharing_known;       /* whether more readers share one capacity could be seen */
	/* of the time of reads, by read_fit.h */
	double latency_share, stream_share, shared_share, queue_share;
	/* What a sentence may promise, with its interval; NAN where nothing may be promised: it
	 * does not apply, or the explanations of the reads say too different things. */
	uint32_t workers_needed; /* of a rank for 90 %; 0: not reached */
	bool needed_known;       /* by all explanations of the reads */
	uint32_t workers_best;   /* where none reach 90 %: the fewest of a rank that reach about
				  * the most; 0: it is what there is, or is not known */
	double needed_au, needed_low, needed_high; /* of either; */
	/* the least where each worker finds a processor; what they give where the processors of
	 * this machine preprocess, if these are too few for all at once (else NAN): in needed_low
	 */
	double needed_sure, needed_here;
	double ranks_each, processors;                      /* of a host */
	double unordered_au, unordered_low, unordered_high; /* batches handed out as they come */
	double window_au, window_low, window_high;          /* with four times the window */
	bool refuted;       /* the times of requests go by no explanation of them */
	bool probed;        /* the reads of a probe were taken in, too */
	bool probe_can;     /* tell what is untold */
	bool probe_evicts;  /* only if it may take out of the page cache what training left there */
	struct fact untold; /* why the effect of more readers is not known; REASON_NONE: it is */
	struct costs_effect costs; /* may be said where nothing else is known */
	uint32_t changes;
	struct what_if {
		char keys[192];        /* "key=value key=value"; empty: no keys make it */
		struct fact what;      /* REASON_NONE: the keys say it */
		bool known;            /* there is a figure: what it rests on agrees */
		enum reason why;       /* when not known; it has no figures */
		uint32_t workers;      /* that the keys ask for; 0: they ask for something else */
		double au;             /* percent; when known */
		double low, high;      /* percent: by all explanations, with `here`; */
		double sure, here;     /* as needed_sure, needed_here */
		double error;          /* points that `au` may be off */
		double rate, rate_now; /* bytes/s that it asks of the storage; that it gave */
		/* A setting that leaves training as it is: of the loader, of how samples lie in
		 * files and are read, or of checkpoints; a change of the storage alone. */
		bool of_setting, of_checkpoints, of_storage;
	} change[WHAT_IF_MAX];
};

/* The changes with a figure, those that give most first, and then the others: their numbers. */
void what_if_order(const struct outlook *o, uint32_t order[WHAT_IF_MAX]);

/* The change in words: its keys, or what it is. */
void what_if_put(struct buf *out, const struct what_if *w);

enum cause {
	CAUSE_NONE,
#define CAUSE(id, name, of) CAUSE_##id,
#include "result/causes.def"
#undef CAUSE
	CAUSES
};
enum {
	CAUSE_OF_STORAGE = 1u << 0, /* what the storage gives limits */
	CAUSE_OF_CLIENT = 1u << 1,  /* this machine does: another one could let it give more */
	CAUSE_OF_SAMPLES = 1u << 2  /* the work of the loader on samples that were read */
};
/* As in result.json; "" of CAUSE_NONE. And back: CAUSE_NONE where there is no such name. */
const char *cause_name(enum cause cause);
/* The same for people: "other programs". Returns `out`. */
const char *cause_text(enum cause cause, char out[32]);
enum cause cause_of(const char *name);
unsigned cause_is_of(enum cause cause);

/* What held the run back most. */
struct limit {
	enum cause cause;         /* docs/metrics.md; CAUSE_NONE: nothing can be said */
	struct fact_list facts;   /* the cause, then what else shows it */
	struct fact_list effects; /* what a change would do */
	/* The change that is predicted to help most, with what it gives, or why none is known;
	 * empty: none is needed. */
	struct fact_list remedy;
	double loss_share;  /* of the wall time of training, in percent */
	double cause_share; /* of the lost time: goes to the cause; percent; 0: is not about it */
};
/* All of it in whole sentences: what limits, and what a change would do. */
void limit_put(struct buf *out, const struct limit *l);

/* ---- all of it ---- */

/* Of one epoch that was begun. Bytes are NAN where they are not known, or there was no evaluation;
 * known lines of training sum up to those of the ledger. */
struct epoch_judgement {
	struct decomposition time; /* all 0 where the epoch was not finished */
	double train_bytes[LEDGER_LINES], eval_bytes[LEDGER_LINES];
};

/* Batches that were read while the readers were busy, of all ranks. */
struct busy_reading {
	double wall_s; /* of training */
	double busy_s, batches;
	/* Of these: after every rank had used what the start of its epoch reads ahead. */
	double later_s, later_batches;
};

struct judgement {
	struct verdict *verdict; /* owned; `verdicts` of them, in the order of their table */
	uint32_t verdicts;
	struct decomposition time;     /* over the finished epochs */
	struct epoch_judgement *epoch; /* owned; `epochs` of them: those that were begun */
	uint32_t epochs;
	struct ledger ledger; /* over the epochs that were begun */
	struct stragglers stragglers;
	struct busy_reading reading; /* over the finished epochs */
	struct slow_requests slow;
	struct by_name by_name;
	struct steadiness steady, eval_steady; /* over the finished epochs */
	struct measured measured;
	struct limit limit;
	struct outlook outlook;
	struct basis *basis; /* owned; NULL: nothing is told of larger runs */
};

void judgement_release(struct judgement *j);

/* ---- how the levels of verdicts look on a terminal, in both forms of a result ---- */

#define TEXT_BOLD "\033[1m"
#define TEXT_PLAIN "\033[0m"

struct level_look {
	enum verdict_level level;
	const char *word;  /* "FAIL" */
	const char *color; /* the escape sequence that begins it */
};

#define LEVEL_LOOKS 4
#define LEVEL_LOOKS_BAD 2 /* the first ones are failures and warnings */
/* Each level once, the worst first. */
extern const struct level_look level_looks[LEVEL_LOOKS];
