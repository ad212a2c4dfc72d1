#pragma once
/* What a run measured: the one source of every file, table and page. Filled by run/, rendered here,
 * kept whole in measures.bin: each member of these structs has its row in measures.c.
 * Owned by the run; released with result_release. */
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "checkpoint/checkpoint.h"
#include "dataset/dataset.h"
#include "dataset/order_proof.h"
#include "dataset/presence.h"
#include "dataset/residency.h"
#include "metric/fetched.h"
#include "metric/host_io.h"
#include "metric/io_stat.h"
#include "metric/memory_pressure.h"
#include "metric/proc_io.h"
#include "metric/processors.h"
#include "metric/series.h"
#include "metric/slow_samples.h"
#include "metric/span.h"
#include "metric/split.h"
#include "metric/step.h"
#include "os/sysinfo.h"
#include "os/system.h"
#include "result/judgement.h"
#include "result/probe.h"
#include "store/servers.h"
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
	struct epoch_split eval_split;
	uint64_t payload_bytes,
		eval_payload_bytes; /* of samples read from the store for this rank, counted by
				     * its workers; a reader's own copy of a file adds none */
	struct requested train_requested, eval_requested;
	/* Of shards downloaded into reader.cache_folder: the requests above are of that folder. */
	struct fetched train_fetched, eval_fetched;
	/* Processor time spent as the framework's own code would (framework.costs). */
	int64_t framework_ns, eval_framework_ns;
};

struct rank_result {
	struct rank_epoch *epoch; /* `epochs_begun` of struct result are valid */
	struct io_stat train_io;  /* all epochs, merged over this rank's workers */
	struct io_stat *save_io,
		*load_io; /* of checkpoints; NULL: none are written, or read back */
	int64_t worker_busy_ns, worker_idle_ns, preprocess_ns;
	int64_t drain_ns; /* after the last epoch: for the checkpoint under way */
	int64_t transport_ns, unpack_ns, pin_ns; /* as in struct worker_stat */
	/* Processor time spent as the framework's own code would (framework.costs), by this rank
	 * and its threads; and by which this program's own work exceeded the laws. */
	int64_t framework_ns, framework_beyond_ns;
	int64_t train_busy_ns;        /* the part of worker_busy_ns that the training loader has */
	uint32_t workers;             /* reader threads of the training loader; 0: inline */
	uint64_t prefetch_batches;    /* batches that may exist beyond the one in use: P * W */
	struct service_times service; /* done - begun of training batches, in their order */
	struct slow_samples slow;     /* the training samples that took longest to read */
	int64_t sample_ns;            /* the mean; 0: not known */
	bool lost; /* its process ended before it sent its results: all else is 0 */
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
	int64_t host_cpu_ns;                  /* of all processes in that time; 0: unknown */
	struct memory_pressure memory;        /* in training, of the host that was shortest of it */
	uint32_t memory_process;              /* one on that host */
	/* Of the process whose threads waited longest for a processor, or that stood still. */
	struct processors cpu_train, cpu_eval;
	uint32_t cpu_train_process, cpu_eval_process;
	int64_t cpu_eval_ns;          /* of all processes, in evaluation */
	struct sysinfo_pair *meminfo; /* snapshot at its start */
	size_t meminfo_count;
	/* The dataset in this machine's page cache: before it was evicted, if it was, when the
	 * epoch began, and after its evaluation. */
	bool evicted;
	int64_t evict_ns;          /* how long that took, outside every measured time */
	uint64_t own_mapped_bytes; /* mapped by this program when that began, and not let go */
	struct residency cache_found, cache_start, cache_end;
	struct residency cache_eval; /* of the evaluation files, before the evaluation */
	int64_t eval_wall_ns;
	char order_note[256]; /* the exactly-once sentence */
	enum order_kept order_kept;
	char eval_order_note[256]; /* the same of the evaluation; empty when there was none */
	enum order_kept eval_order_kept;
};

enum run_status { RUN_COMPLETE, RUN_INTERRUPTED, RUN_FAILED };

/* What a barrier of all ranks costs by itself, measured before training with nobody to wait for. */
enum barrier_way { BARRIER_THREADS, BARRIER_SOCKETS, BARRIER_MPI };
struct barrier_cost {
	uint32_t count; /* barriers; 0: none were measured */
	double median_s, mean_s, max_s;
	enum barrier_way way;
	uint32_t processes;
	uint32_t depth;  /* of the connections between processes: 1 without a tree */
	double messages; /* that this process sends and receives for one */
	/* comm.barrier: of processes alone, over each; 0: not measured */
	double sockets_s, mpi_s;
	char library[128]; /* of MPI; "": none was used */
};

struct result {
	const struct workload *workload; /* borrowed */
	const struct dataset *dataset;   /* borrowed; NULL when neither trained nor generated */
	enum run_status status;
	bool stuck;      /* threads hang in the system and still use what the run was given: release
			  * nothing, end the process */
	bool unwritable; /* `folder` does not answer: the results are elsewhere, or nowhere */
	struct err reason; /* when not complete */
	int64_t begin_wall_ns, end_wall_ns;
	int64_t begin_ns;      /* the same moment as begin_wall_ns on the monotonic clock */
	struct series *series; /* of the machine while training; NULL: not sampled */
	bool trained, evaluated, generated;
	bool only_evaluated; /* ranks began, to evaluate without training */
	bool checkpointed;   /* checkpoints were asked for and the ranks began */
	struct checkpoint_totals checkpoint_totals;
	uint64_t checkpoint_parameters;
	struct {
		uint64_t files, skipped, bytes;
		int64_t wall_ns;
		double mean_file_bytes; /* of training, else of evaluation; 0, NAN: not known */
	} generation;
	uint32_t ranks, epochs_planned, epochs_begun; /* begun by every rank */
	uint32_t epochs_done;
	uint64_t steps_per_epoch, eval_steps; /* planned, after whole-batch cutting */
	uint64_t dropped_samples;             /* in each epoch; they do not fill a whole step */
	struct rank_result *rank;             /* `ranks_here` of them, from first_rank on */
	struct io_stat *eval_io; /* of evaluations, all ranks here; NULL: nothing is evaluated */
	uint32_t ranks_here, first_rank; /* all, from 0, where results are written */
	struct epoch_usage *usage; /* epochs_planned of them; sums over processes, but wall_ns */
	struct host_io_source *host_source; /* owned: what is below the dataset's folder here */
	struct host_io_source *checkpoint_source; /* owned: below the folder of checkpoints here;
						   * NULL: none are made, or not in files */
	struct result_process *process; /* `processes` of them; NULL: this process was alone */
	uint32_t processes, nodes;
	bool speaks; /* this process writes and prints the results */
	struct host_facts host;
	struct system_facts system;  /* with the file system of the dataset */
	uint64_t memory_bound_bytes; /* stated before timing */
	uint64_t peak_rss_bytes;
	struct presence_result presence;
	uint64_t shuffle_seed; /* what order_init was given */
	struct barrier_cost barrier;
	struct servers servers; /* those that the store talks to; none: it has none */
	/* What threads copy together in this machine's memory, measured after the run where it read
	 * from memory. 0: it did not, or it is not known. */
	struct memory_copy {
		uint32_t threads;
		double bytes_per_s;
	} memory_copy;
	struct probe probe;      /* after training, where it was asked for */
	struct judgement judged; /* by judge/, once all else is there */
	struct trace *trace;     /* owned; NULL: none is kept */
	char folder[4096];       /* the output folder */
	char build[64];          /* of the program that made it, of one read back; "" */
	char id[33]; /* of this run and no other: 32 hexadecimal digits; "": none was drawn */
};

void result_release(struct result *r);

/* Whether shards were downloaded into a cache on each host before they were read. */
bool result_caches(const struct result *r);
/* What was downloaded in an epoch (from 0), of all ranks that are not lost. */
struct fetched result_fetched(const struct result *r, uint32_t epoch, bool eval);
/* The lowest rank that is not lost; 0 when all are. */
uint32_t result_present_rank(const struct result *r);
/* Of that rank, as all have as many: workers, and batches that may be read ahead. */
uint32_t result_workers(const struct result *r);
uint64_t result_window(const struct result *r);
/* The host of a rank: r->host, or the facts that the first process there sent. */
const struct host_facts *result_rank_host(const struct result *r, uint32_t rank);
/* What /proc/meminfo of a rank's host said at the start of epoch `epoch` (from 0). */
void result_rank_memory(const struct result *r, uint32_t rank, uint32_t epoch,
			const struct sysinfo_pair **pairs, size_t *count);
/* The facts of node 0..nodes-1 (one node when the process was alone); NULL: it sent none. */
const struct host_facts *result_node_host(const struct result *r, uint32_t node);
/* Processors that a process of that host may use; all where that is not known. */
double result_usable_cpus(const struct host_facts *h);
/* Time of a training step of all ranks, without checkpoints, s; and how much of it the barrier's
 * own cost is, 0..1. NAN: not known. */
double result_step_s(const struct result *r);
double result_barrier_share(const struct result *r);
/* "threads", "sockets", "mpi". */
const char *result_barrier_way(const struct barrier_cost *b);
/* Processor time in an epoch (from 0) that is no work of this program but the framework's own code
 * (framework.costs), ns; of all ranks that are not lost. */
double result_framework_ns(const struct result *r, uint32_t epoch, bool eval);
/* Of the servers of the store, in the timed part: how much of the time of all requests of readers
 * and writers was void tries and pauses before repetitions, 0..1; and processor time of all
 * processes for 10^9 bytes received, s. NAN: not known. */
double result_again_share(const struct result *r);
double result_cpu_per_gb(const struct result *r);
/* The path of the file of a sample of training; "" when it has none. */
const char *result_sample_file(const struct result *r, uint64_t sample, char *path, size_t size);
/* What the bytes of a line were counted at: "vda", "eth0", "nfs4"; "" where that needs no word. */
const char *result_ledger_place(const struct result *r, enum ledger_key key, char *out,
				size_t out_size);
