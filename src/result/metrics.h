#pragma once
/* The measures of a run: accelerator utilization, throughput, waits and checkpoints, derived from
 * the times of its steps. Definitions: docs/metrics.md. */
#include "result/result.h"

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
	double compute_late_s; /* of compute_s: late for want of a processor, not in whole_au */
	double late_percent;   /* that of wall_s */
	double eval_au, eval_throughput, eval_wall_s;
	uint64_t steps, measured_steps, samples, payload_bytes;
	uint64_t eval_steps, eval_samples, eval_payload_bytes;
};

struct epoch_metrics {
	double train_au;         /* DLIO's definition, mean over ranks, percent */
	double train_throughput; /* samples/s, sum over ranks, of the measured window */
	double whole_au; /* of the training part, no step excluded, percent: compute / wall, without
			  * what computation was late for want of a processor */
	double whole_au_min, whole_au_max; /* over ranks */
	double whole_throughput;           /* samples/s over the whole training part */
	double whole_payload_rate; /* payload bytes/s over the whole training part, really read */
	double exposed_wait_s, barrier_wait_s, compute_s, wall_s; /* means over ranks */
	double compute_late_s, late_percent; /* means over ranks: see struct rank_epoch_metrics */
	double eval_au, eval_throughput;
	bool train_valid, eval_valid; /* false: too few steps for the window; *_why says so */
	char why[256], eval_why[256];
	uint64_t measured_steps;
	double train_au_min, train_au_max; /* over ranks */
	double train_io_mib, eval_io_mib;  /* MiB/s of the throughputs above */
	bool has_eval;
	uint64_t steps;                  /* made by each rank; 0: the epoch trained nothing */
	double longest_s;                /* of the training part, over ranks */
	uint64_t samples, payload_bytes; /* training, all ranks */
	uint64_t eval_samples, eval_payload_bytes;
	double eval_wall_s; /* longest over ranks */
};

/* Of all finished epochs together, nothing excluded: what leads wherever one number is shown. An
 * epoch counts by its time, so that a slow one weighs what it took. NAN: no epoch made a step. */
struct whole_run {
	double au;           /* as epoch_metrics.whole_au, mean over ranks */
	double throughput;   /* samples/s, all ranks */
	double payload_rate; /* bytes/s of samples, really read from the store */
};

struct run_metrics {
	struct whole_run whole;
	struct epoch_metrics *epoch; /* epochs_done of them */
	uint32_t epochs;
	struct series_stat train_au, train_throughput, whole_au, whole_throughput, payload_rate;
	double late_percent; /* mean over epochs: what whole_au is lower by than compute / wall */
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

/* The measured steps [*lo, *hi) of a block or evaluation, by index in its own list. `total`: steps
 * of its epoch, or of the evaluation. */
void metrics_window(const struct result *r, const struct phase *p, uint64_t total, uint64_t *lo,
		    uint64_t *hi);

/* Everything about one rank in epoch `epoch` (from 0, < epochs_begun). Pure. */
void metrics_rank_epoch(const struct result *r, uint32_t rank, uint32_t epoch,
			struct rank_epoch_metrics *out);
/* Statistics of the finite values of a list. */
struct series_stat series_stat_of(const double *v, size_t n);
/* Bytes of the training samples: of the dataset, or by the configured length with compat.dlio. */
double metrics_data_bytes(const struct result *r);

/* ---- checkpoints (checkpoint_metrics.c) ---- */

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
/* What of it training stood still, s: the longest of a rank, since all meet in the next step, or
 * the mean where none follows. */
double checkpoint_stall_s(const struct result *r, const struct checkpoint_measure *m);
/* Over those that are done: seconds, and GiB/s by the size above. The longest rank's time, or rank
 * 0's with compat.dlio. */
void checkpoint_series(const struct result *r, bool load, struct series_stat *duration,
		       struct series_stat *rate);
/* Training time of the finished epochs in which ranks stood still for checkpoints: the longest of a
 * rank for each, since all meet in the next step (the mean where none follows); and whole-run AU
 * with it and with it taken out (percent; NaN when nothing was trained). */
void checkpoint_cost(const struct result *r, double *stall_s, double *au, double *au_without);
