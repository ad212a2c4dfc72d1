#pragma once
/* What a run's batches cost, as the model takes it: made to agree with the run itself, once for
 * each explanation of its reads that is as good as the others. */
#include "predict/cadence.h"
#include "predict/model.h"
#include "predict/probe_curve.h"
#include "predict/read_fit.h"
#include "result/result.h"

/* Where some reads take most of the time, unlike all others, no law of single requests holds: they
 * stand for the others, with their bytes. The first ones of files, whatever law else fits; large
 * ones only in place of a ceiling of requests, since their bytes may be what takes the time. */
struct read_places {
	enum read_kind { READS_ALIKE, READS_FIRST, READS_LARGE } slow;
	uint64_t large;           /* bytes: READS_LARGE have as many or more */
	double slow_ns, other_ns; /* mean of a read */
	double share;             /* of the reads: slow ones */
};

/* What the store is to reads and to opens, by all ranks' logs of training. */
struct store_law {
	struct read_law reads;
	struct read_law opens; /* and stats by name; each counts as one byte */
	struct read_places places;
	double open_ns; /* mean of an open alone; 0: not known */
	double stat_s;  /* that metadata requests for no bytes took, of all ranks */
	bool probed;    /* the reads of a probe were taken in, too */
	double plateau; /* samples/s that a probe's readers did not get beyond; 0: none */
	const struct probe *probe; /* borrowed, where it was taken in; else NULL */
};

/* s and bytes of a batch. */
struct costs {
	enum loader_rule rule;
	double service, service_dev; /* of a run from begun to done; the deviation of batches */
	double open, reads, decode; /* reads: metadata and data; decode: and the framework's code */
	double framework;           /* of that, the framework's code */
	double preprocess;          /* waited, as a real job computes */
	uint32_t hosts;
	double close;                     /* of files */
	double later;                     /* reads that the first of their file stands for */
	double requests, bytes;           /* that asked for bytes; what they returned */
	double data_requests, data_bytes; /* of these, for data */
	double opens;                     /* and stats by name */
	double files;                     /* opened */
	double samples;
	double native;  /* requests of a batch with native access */
	double payload; /* bytes that one request for each sample would return, */
	double plain;   /* and of arrays without any packing; 0: not known */
	double cpu;     /* of the process */
	double others;  /* processors that other programs used */
	double taken;   /* points of AU that a second run may differ by, as processors were taken */
	struct store_law law;
};

/* One explanation. */
struct variant {
	struct read_rates rates, opens;
	bool tabled;         /* no explanation, but the times by how many requests are under way */
	bool split_only;     /* differs from another one only in what goes with requests or bytes */
	struct model m;      /* as it was */
	double scale;        /* of the law's times, that the run is met */
	double open_latency; /* s of a batch: part of m.delay_s */
	double latency;      /* s of a batch: part of m.delay_s */
	double close, later; /* s of a batch: parts of m.delay_s */
	double decode;       /* s of a batch: part of m.delay_s, where it is not m.cpu_s */
	double preprocess;   /* s of a batch: part of m.delay_s */
	struct modeled reproduced; /* the run itself, by this model */
	struct probe_curve curve;  /* what a probe says of it */
};

/* packing.h */
struct packing {
	uint64_t samples, files; /* of a file; files of training */
	uint64_t eval_files;     /* 0: none are evaluated */
	/* Another format, whose reader keeps files open and reads samples alone; NULL: the run's.
	 */
	const struct format_facts *format;
	double opens;           /* as a share of those of now, */
	double requests, bytes; /* and of reads: of a sample alone, without its file's metadata */
	double framework;       /* s of a batch, of the framework's code: it stays */
	double begin_s;         /* that a reader takes to open its files one after another */
};

/* own_work.h: processor time in s, but for what is waited for the store */
struct own_work {
	double fork_s, begin_s; /* of a worker: in its rank, one after another; in itself */
	double batch_s;         /* of a batch, in whoever reads it: beyond what the run took */
	double take_s;          /* of a batch, in the rank */
	double pin_s;           /* of a batch, in a thread between worker and rank */
	double step_s;          /* of a step, in the rank */
	double end_s;           /* of an epoch, in the rank, after its last step */
	double ready_s;         /* of a worker, before its first batch: waited */
	double saved_s;         /* of a batch: not waited any more */
	uint64_t steps;         /* of an epoch, at most */
};

#define VARIANTS_MAX (2 * READ_LAWS_MAX + 4)
struct variants {
	struct costs costs;
	struct cadence cadence;
	struct packing packing;           /* outlook.c's, where it applies */
	struct own_work framework;        /* the same */
	const struct workload *w;         /* borrowed */
	struct variant one[VARIANTS_MAX]; /* the best first */
	uint32_t count;
	struct model base;               /* of a run that reads nothing */
	double service_sure;             /* standard error of the mean time of a batch, of it */
	bool slow_worker;                /* of others, nothing is known */
	bool few_steps;                  /* the run had too few to foretell another one */
	uint64_t prefetch;               /* of a worker (PyTorch) or of all */
	double *compute, *spread, *size; /* the models' */
};

struct store_law costs_store_law(const struct result *r);
/* Reads, or opens, of training that the ranks on the host of the first one have kept: they share
 * its clock. `times` as many readers share the store. Reads are those of `places` alone. Released
 * with free(); NULL: there are none. */
struct read_seen *costs_reads(const struct result *r, bool opens, const struct read_places *places,
			      struct read_set *set, double *times);
/* Whether the run tells what more readers would get: a queue or a ceiling, or that there is none
 * far beyond `rate` requests/s. If not, a limit just above law->most under way would look the same.
 */
bool costs_law_told(const struct read_law *law, double rate);
/* From the first `epochs` epochs, whose decomposition is r->judged.time and whose reads go by
 * `law`; false with out->why when there is no model. Needs variants_release in any case. */
bool variants_make(struct variants *v, const struct result *r, uint32_t epochs,
		   const struct store_law *law, struct outlook *out);
/* In place of all explanations, what was measured of reads and opens by how many are under way;
 * false where the run itself is not met. */
bool variants_table(struct variants *v);
/* In place of all explanations, that a batch takes what it took, whatever else is read. False where
 * too little was measured even for that. */
bool variants_plain(struct variants *v);
/* So many workers; the window and the runs follow by the loader's rule. */
void rule_workers(const struct variants *v, uint32_t workers, struct model *m);
/* prefetch_size times so much. */
void rule_window(const struct variants *v, double by, struct model *m);
void variants_release(struct variants *v);
