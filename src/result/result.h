#pragma once
/* What a run measured: the one source of every file, table and page. Filled by run/, rendered here.
 * Owned by the run; released with result_release. */
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/sysinfo.h"
#include "base/system.h"
#include "checkpoint/checkpoint.h"
#include "dataset/dataset.h"
#include "dataset/order_proof.h"
#include "dataset/residency.h"
#include "dataset/verify.h"
#include "metric/host_io.h"
#include "metric/io_stat.h"
#include "metric/memory_pressure.h"
#include "metric/proc_io.h"
#include "metric/series.h"
#include "metric/slow_samples.h"
#include "metric/split.h"
#include "metric/span.h"
#include "metric/step.h"
#include "workload/workload.h"

/* One checkpoint on one rank, written or read back. Times monotonic, ns. */
struct checkpoint_times {
	uint32_t number;      /* within the epoch, from 1 */
	int64_t epoch, step;  /* in the name of its folder */
	uint64_t total_steps; /* of the epoch, made before it */
	bool done;            /* whole; else only what was known when the run ended is here */
	/* From its turn to the moment at which the rank's files are whole; with
	 * checkpoint.rank_sync those of all ranks. */
	int64_t begin_ns, end_ns, begin_wall_ns, end_wall_ns;
	int64_t stall_ns;  /* the rank stood still: the whole of it, or what async leaves */
	int64_t wait_ns;   /* of that: for the checkpoint before it */
	int64_t stage_ns;  /* of that: for the copy to memory */
	int64_t waited_ns; /* async: the next one, or the end of the run, waited for it */
	struct checkpoint_stat stat;
	/* Counters of the process before and after, and of the disk below the folder. */
	struct proc_io io_before, io_after;
	bool disk_known;
	uint64_t disk_before_bytes, disk_after_bytes; /* written; of a read back: read */
};

/* Bytes of a rank's requests to the store in a phase of an epoch, metadata and data. */
struct requested {
	bool known; /* else its readers never came to rest, or nothing is counted */
	uint64_t asked_bytes, returned_bytes;
};

struct rank_epoch {
	int64_t begin_wall_ns, train_end_wall_ns, end_wall_ns;
	int64_t begin_ns, train_end_ns, end_ns;
	struct phase *block; /* at least one when trained */
	uint32_t blocks, block_capacity;
	struct checkpoint_times *save, *load; /* in the order of their turns */
	uint32_t saves, loads;                /* that began */
	uint32_t save_capacity;
	uint64_t steps_planned;
	bool has_eval;
	struct phase eval;
	struct order_proof delivered, eval_delivered; /* samples */
	/* What the loader says was not, where it has an order of its own (loader_ops). */
	struct order_proof rest, eval_rest;
	bool accounted, eval_accounted;
	struct epoch_split split; /* of the waits of training */
	uint64_t payload_bytes,
		eval_payload_bytes; /* of samples read from the store for this rank, counted by
				     * its workers; a reader's own copy of a file adds none */
	struct requested train_requested, eval_requested;
};

struct rank_result {
	struct rank_epoch *epoch;         /* `epochs_begun` of struct result are valid */
	struct io_stat train_io, eval_io; /* all epochs, merged over this rank's workers */
	struct io_stat save_io, load_io;  /* of checkpoints */
	int64_t worker_busy_ns, worker_idle_ns, preprocess_ns;
	int64_t drain_ns; /* after the last epoch: for the checkpoint under way */
	int64_t transport_ns, unpack_ns, pin_ns; /* as in struct worker_stat */
	int64_t train_busy_ns;        /* the part of worker_busy_ns that the training loader has */
	uint32_t workers;             /* reader threads of the training loader; 0: inline */
	uint64_t prefetch_batches;    /* batches that may exist beyond the one in use: P * W */
	struct service_times service; /* done - begun of training batches, in their order */
	struct slow_samples slow;     /* the training samples that took longest to read */
	int64_t sample_ns;            /* the mean; 0: not known */
	bool lost; /* its process ended before it told what it had measured: all else is 0 */
};

/* One of several processes of a run. */
struct result_process {
	char hostname[128];
	uint32_t node; /* of `nodes`; hosts numbered by their first process */
	uint32_t first_rank, ranks;
	bool lost, own;                          /* own: the one that holds this result */
	int64_t wall_offset_ns, offset_error_ns; /* its clock minus process 0's, and half the round
						  * trip of that measurement; wall times in the
						  * result are by process 0's clock */
	uint64_t peak_rss_bytes;
	struct host_facts host; /* of the first process of each node that is not lost */
	struct host_memory {
		struct sysinfo_pair *pairs;
		size_t count;
	} * meminfo; /* as host; at the start of each epoch, epochs_planned of them */
};

/* Process-wide counters around one epoch. */
struct epoch_usage {
	struct proc_io train, eval;           /* differences over the phases */
	struct host_io host_train, host_eval; /* the same of the hosts' counters */
	int64_t cpu_ns, wall_ns;              /* training part */
	int64_t host_cpu_ns;                  /* of all processes meanwhile; 0: not known */
	struct memory_pressure memory;        /* in training, of the host that was shortest of it */
	uint32_t memory_process;              /* one on that host */
	struct sysinfo_pair *meminfo;         /* snapshot at its start */
	size_t meminfo_count;
	/* The dataset in this machine's page cache: before it was evicted, if it was, when the
	 * epoch began, and after its evaluation. */
	bool evicted;
	int64_t evict_ns; /* how long that took, outside every measured time */
	struct residency cache_found, cache_start, cache_end;
	char order_note[256]; /* the exactly-once sentence */
	bool order_proved;
	char eval_order_note[256]; /* the same of the evaluation; empty when there was none */
	bool eval_order_proved;
};

enum verdict_level { VERDICT_PASS, VERDICT_WARN, VERDICT_FAIL, VERDICT_UNKNOWN };

struct verdict {
	char check[24]; /* "steady", "whole-run", "bytes", "dataset", "config", ... */
	enum verdict_level level;
	char text[640]; /* one or two sentences with the figures */
};

/* What the model (predict/model.h) says of the same run with something changed. */
#define WHAT_IF_MAX 20
struct outlook {
	bool known;
	char why[160];            /* when not known */
	double measured_au;       /* whole-run, percent */
	double modeled_au;        /* the same by the model */
	double fixed_s, shared_s; /* of reading a batch: whatever else is read; alone */
	bool sharing_known;       /* whether more readers share one capacity could be seen */
	double latency_share, stream_share, shared_share; /* of the time of reads, by read_fit.h */
	uint32_t workers_needed;                          /* of a rank for 90 %; 0: not reached */
	bool needed_known;                                /* by all explanations of the reads */
	double needed_au;
	double unordered_au; /* were batches handed out as they come; NAN: they are, or W < 2 */
	double window_au;    /* with four times the window; NAN without workers */
	uint32_t changes;
	struct what_if {
		char change[96];       /* "key=value key=value", or a storage in words */
		bool known;            /* the explanations of the reads agree */
		double au;             /* percent; when known */
		double low, high;      /* percent: by all explanations */
		double error;          /* points that `au` may be off */
		double rate, rate_now; /* bytes/s that it asks of the storage; that it gave */
	} change[WHAT_IF_MAX];
};

/* What held the run back most. */
struct limit {
	char cause[32];    /* a word: docs/metrics.md */
	char text[400];    /* one sentence */
	double loss_share; /* of the wall time of training, in percent */
};

enum run_status { RUN_COMPLETE, RUN_INTERRUPTED, RUN_FAILED };

struct result {
	const struct workload *workload; /* borrowed */
	const struct dataset *dataset;   /* borrowed; NULL when neither trained nor generated */
	enum run_status status;
	bool stuck; /* threads hang in the system and still use what the run was given: release
		     * nothing, end the process */
	struct err reason; /* when not complete */
	int64_t begin_wall_ns, end_wall_ns;
	int64_t begin_ns;      /* the same moment as begin_wall_ns on the monotonic clock */
	struct series *series; /* of the machine while training; NULL: not sampled */
	bool trained, evaluated, generated;
	bool checkpointed; /* checkpoints were asked for and the ranks began */
	struct checkpoint_totals checkpoint_totals;
	uint64_t checkpoint_parameters;
	struct {
		uint64_t files, skipped, bytes;
		int64_t wall_ns;
	} generation;
	uint32_t ranks, epochs_planned, epochs_begun; /* begun by every rank */
	uint32_t epochs_done;
	uint64_t steps_per_epoch, eval_steps; /* planned, after whole-batch cutting */
	uint64_t dropped_samples;             /* an epoch; fill no whole step */
	struct rank_result *rank;             /* `ranks_here` of them, from first_rank on */
	uint32_t ranks_here, first_rank;      /* all, from 0, where results are written */
	struct epoch_usage *usage; /* epochs_planned of them; sums over processes, but wall_ns */
	struct host_io_source *host_source; /* owned: what is below the dataset's folder here */
	struct result_process *process;     /* `processes` of them; NULL: this process was alone */
	uint32_t processes, nodes;
	bool speaks; /* this process writes the results and tells people */
	struct host_facts host;
	struct system_facts system;  /* with the file system of the dataset */
	uint64_t memory_bound_bytes; /* stated before timing */
	uint64_t peak_rss_bytes;
	struct presence_result presence;
	uint64_t shuffle_seed; /* what order_init was given */
	struct verdict verdict[20];
	uint32_t verdicts;
	struct outlook outlook; /* with the verdicts */
	struct limit limit;
	struct trace *trace; /* owned; NULL: none is kept */
	char folder[4096];   /* the output folder */
};

void result_release(struct result *r);

/* The lowest rank that is not lost; 0 when all are. */
uint32_t result_present_rank(const struct result *r);
/* The host of a rank and what is known of it: of r->host, or of the first process there that told.
 */
const struct host_facts *result_rank_host(const struct result *r, uint32_t rank);
/* What /proc/meminfo of a rank's host said at the start of epoch `epoch` (from 0). */
void result_rank_memory(const struct result *r, uint32_t rank, uint32_t epoch,
			const struct sysinfo_pair **pairs, size_t *count);
/* The facts of node 0..nodes-1 (one node when the process was alone); NULL: it told nothing. */
const struct host_facts *result_node_host(const struct result *r, uint32_t node);
/* Over all nodes: CPUs that the processes may use, and memory in GiB. */
double result_cpus(const struct result *r);
double result_memory_gib(const struct result *r);

/* ---- derived (result/metrics.c) ---- */

/* Statistics of a series: population standard deviation, as DLIO. count 0: the others are 0. */
struct series_stat {
	uint64_t count;
	double mean, stdev, min, max;
};

/* One rank in one epoch. */
struct rank_epoch_metrics {
	bool train_valid, eval_valid;
	char why[256], eval_why[256];      /* when not valid */
	double train_au, train_throughput; /* as metrics_phase, over the blocks */
	double whole_au;
	double exposed_wait_s, barrier_wait_s, compute_s, wall_s; /* of the training part */
	double eval_au, eval_throughput, eval_wall_s;
	uint64_t steps, measured_steps, samples, payload_bytes;
	uint64_t eval_steps, eval_samples, eval_payload_bytes;
};

struct epoch_metrics {
	double train_au;         /* DLIO's definition, mean over ranks, percent */
	double train_throughput; /* samples/s, sum over ranks, of the measured window */
	double whole_au; /* compute / wall of the training part, nothing excluded, percent */
	double whole_au_min, whole_au_max; /* over ranks */
	double whole_throughput;           /* samples/s over the whole training part */
	double whole_payload_rate; /* payload bytes/s over the whole training part, really read */
	double exposed_wait_s, barrier_wait_s, compute_s, wall_s; /* means over ranks */
	double eval_au, eval_throughput;
	bool train_valid, eval_valid; /* false: too few steps for the window; *_why says so */
	char why[256], eval_why[256];
	uint64_t measured_steps;
	double train_au_min, train_au_max; /* over ranks */
	double train_io_mib, eval_io_mib;  /* MiB/s of the throughputs above */
	bool has_eval;
	uint64_t steps;                  /* made by each rank; 0: the epoch trained nothing */
	uint64_t samples, payload_bytes; /* training, all ranks */
	uint64_t eval_samples, eval_payload_bytes;
	double eval_wall_s; /* longest over ranks */
};

struct run_metrics {
	struct epoch_metrics *epoch; /* epochs_done of them */
	uint32_t epochs;
	struct series_stat train_au, train_throughput, whole_au, whole_throughput, payload_rate;
	struct series_stat eval_au, eval_throughput;
	struct series_stat train_io, eval_io; /* MiB/s, by the windows of train_au and eval_au */
	/* The evaluations as summary.json lists them: one value an evaluation; with compat.dlio one
	 * a rank and evaluation. NaN where there is no valid value. */
	double *eval_au_list, *eval_throughput_list;
	uint32_t evals;
	bool overshoot_known; /* the emulated time is constant */
	double compute_overshoot_mean_s, compute_overshoot_max_s; /* of the emulated waits */
	uint64_t payload_bytes; /* training, all finished epochs */
	uint64_t device_bytes;  /* training, all begun epochs: as the requests are counted */
	bool device_known;
};

/* By DLIO's definitions with their defects mended, or exactly as DLIO computes them when the
 * workload has compat.dlio. Formulas: docs/metrics.md. */
int metrics_compute(struct run_metrics *m, const struct result *r, struct err *e);
void metrics_release(struct run_metrics *m);

/* One block or evaluation on one rank by DLIO's definition: AU in percent and samples/s of the
 * rank. false with a reason when the window holds no step. */
bool metrics_phase(const struct result *r, const struct phase *p, double *au, double *throughput,
		   uint64_t *measured, char *why, size_t why_size);

/* Everything about one rank in epoch `epoch` (from 0, < epochs_begun). Pure. */
void metrics_rank_epoch(const struct result *r, uint32_t rank, uint32_t epoch,
			struct rank_epoch_metrics *out);
/* Statistics of the finite values of a list. */
struct series_stat series_stat_of(const double *v, size_t n);
/* Bytes of the training samples: of the dataset, or by the configured length with compat.dlio. */
double metrics_data_bytes(const struct result *r);

/* One checkpoint over all ranks; seconds. */
struct checkpoint_measure {
	uint32_t epoch, number; /* from 1 */
	bool done;              /* on every rank */
	double duration_s;      /* the longest of a rank: MLPerf's */
	double shortest_s, first_rank_s;
	double span_s; /* from the first rank's turn to the last one's end */
	double rate;   /* bytes/s: the size of all ranks over duration_s, the least of a rank */
	double stall_mean_s, stall_max_s, wait_max_s, stage_max_s;
	double write_max_s;   /* async: in the background */
	double hidden_mean_s; /* of that, while the rank did not wait for it */
	uint64_t files, payload_bytes, file_bytes;
	/* While it lasted, whatever caused them: bytes that this process gave to the page cache or
	 * the disk (of a read: had fetched), and that the disk below the folder took (gave). */
	bool process_known, disk_known;
	uint64_t process_bytes, disk_bytes;
};

/* Bytes of the tensors of all ranks, or what DLIO takes them for with compat.dlio. */
double checkpoint_size_bytes(const struct result *r);
/* Number `index` (from 0) of epoch `epoch` (from 0); false when no rank began it. Pure. */
bool checkpoint_measure_of(const struct result *r, uint32_t epoch, uint32_t index, bool load,
			   struct checkpoint_measure *out);
/* Over those that are done: seconds, and GiB/s by the size above. The longest rank's time, or rank
 * 0's with compat.dlio. */
void checkpoint_series(const struct result *r, bool load, struct series_stat *duration,
		       struct series_stat *rate);
/* Training time of the finished epochs in which ranks stood still for checkpoints: the longest of a
 * rank for each, since all meet in the next step (the mean where none follows); and whole-run AU
 * with it and with it taken out (percent; NaN when nothing was trained). */
void checkpoint_cost(const struct result *r, double *stall_s, double *au, double *au_without);

/* Fills r->verdict from the measures (judge/verdict.c). */
void verdicts_compute(struct result *r, const struct run_metrics *m);

/* ---- renderings ---- */

/* A row of the sink table: what it writes into the output folder. */
struct sink_ops {
	const char *name, *help;
	int (*render)(const struct result *r, const struct run_metrics *m, struct err *e);
};
extern const struct sink_ops *const sink_table[]; /* NULL-terminated, written by the build */

/* The result as people read it on a terminal, verdicts first. */
void report_text(const struct result *r, const struct run_metrics *m, bool color, struct buf *out);
/* DLIO's closing block of [METRIC] lines. */
void report_dlio_metric_lines(const struct result *r, const struct run_metrics *m, struct buf *out);
