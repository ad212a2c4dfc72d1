#pragma once
/* One run, from a loaded workload to a written result: generation, training, evaluation. The only
 * place where the tables of stores, formats and loaders are joined. */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/thread.h"
#include "comm/comm.h"
#include "result/result.h"
#include "workload/workload.h"

/* ---- how far a run is: what its ranks publish, gathered now and then for whoever shows it ---- */

enum progress_phase {
	PROGRESS_GENERATE,
	PROGRESS_CHECK,
	PROGRESS_TRAIN,
	PROGRESS_EVAL,
	PROGRESS_CHECKPOINT, /* writing or reading back; within training too */
	PROGRESS_VERIFY,
	PROGRESS_PROBE,  /* after training: other numbers of readers */
	PROGRESS_FINISH, /* all is measured; results are proved and written */
};

/* A rank of this process, training alone, of its finished steps. */
struct rank_progress {
	uint64_t steps;
	int64_t train_ns;   /* from the begins of its epochs to the end of its last step */
	int64_t compute_ns; /* of that: the emulated computation */
	int64_t wait_ns;    /* of that: the exposed wait for batches */
	const char *doing;  /* "waits for a batch"; static text */
	bool late;          /* the others wait for it, or will: it is not at the barrier */
};

/* Where device_read_bytes comes from. */
enum device_source {
	DEVICE_UNKNOWN, /* not sampled, or nothing to sample */
	DEVICE_DISK,    /* the whole disk under the dataset, whoever used it */
	DEVICE_CALLS,   /* no such disk: bytes that this process's read calls returned */
};

/* Told to the caller now and then from a thread of the run's own; valid during the call. Counters
 * grow while a phase lasts, and those of training as long as the run does. */
struct run_progress {
	enum progress_phase phase;
	int64_t elapsed_ns;   /* of generation, check or verification; else since ranks began */
	uint64_t done, total; /* files (verification: bytes), training steps of all epochs, or of a
			       * checkpoint benchmark checkpoints */
	uint64_t skipped;     /* generation: of `done`, those that were there before */
	uint64_t bytes, bytes_total; /* written, payload of all ranks here, or of checkpoints */
	/* bytes_total 0: not known */
	uint64_t samples; /* delivered to all ranks here, evaluation too */
	/* By the workers here, also for batches that no rank has yet: samples, and bytes that
	 * requests returned (run.measure=none: payload). */
	uint64_t read_samples, read_bytes;
	/* ---- training; the rest is 0 elsewhere ---- */
	bool training; /* false in a checkpoint benchmark */
	uint32_t epoch, epochs;
	uint64_t epoch_done, epoch_total; /* steps of the epoch, or of the evaluation under way */
	uint32_t probe_done, probe_total; /* numbers of readers, in PROGRESS_PROBE */
	uint64_t eval_done, eval_total;   /* evaluation steps of all epochs */
	int64_t eval_ns;                  /* in evaluations, to the end of the last step */
	uint64_t saves, saves_total, loads, loads_total; /* checkpoints that this process ended */
	bool saves_by_time;                              /* how many there will be is not known */
	uint64_t checkpoint_bytes;                       /* of them, all ranks here */
	uint64_t train_samples, train_bytes;             /* of finished training steps */
	int64_t train_ns, compute_ns, wait_ns;           /* sums over the ranks here */
	uint32_t ranks, ranks_here, first_rank;          /* of all processes; of this one */
	const struct rank_progress *rank;                /* `ranks_here` of them */
	/* ---- cumulative, of the moment device_ns ---- */
	enum device_source device;
	char device_name[64]; /* of DEVICE_DISK */
	int64_t device_ns;
	uint64_t device_read_bytes, device_written_bytes;
};

/* ---- the run ---- */

struct run_options {
	uint32_t ranks;         /* of all processes */
	struct net *net;        /* NULL: this process is alone */
	struct comm *processes; /* with a net: this process among them */
	struct fabric *fabric;  /* the launcher's MPI, for comm.barrier; NULL: none is kept */
	int64_t start_wall_ns;
	struct stop_flag *stop; /* set by signal handling: the run ends early and keeps results */
	/* Called about every progress_ns (at least 100 ms), more seldom where so many ranks are
	 * looked at that it would cost over 1 % of a processor. It should not block. May be NULL.
	 */
	void (*progress)(void *arg, const struct run_progress *p);
	void *progress_arg;
	int64_t progress_ns;
	bool dataset_only; /* stoker generate */
	bool one_of_many;  /* of a study or a search, whose other runs tell what this one cannot */
};

/* With a net all processes call this. Process 0 gathers what all measured and writes the results;
 * when it is lost, another one does so with what it has itself. r->speaks tells which one it was;
 * elsewhere `r` holds no more than this process's part.
 *
 * Carries out the workflow of `w`. Fills `r` whatever happens (status and reason tell), writes the
 * output folder unless dataset_only, and returns 0, or the reason's code. A missed metric.au is not
 * an error here. `d` must outlive `r`. */
int run_execute(const struct workload *w, const struct run_options *o, struct dataset *d,
		struct result *r, struct err *e);

/* Removes from a folder what an earlier run wrote there as its result, and nothing else. Fine when
 * there is none; negative when one cannot be removed. */
int run_forget_results(const char *folder, struct err *e);
