#pragma once
/* What those who look for the limit of a run share. Each of them is one function, a row of the
 * tables in limit.c with the cause that it names: it says whether its arithmetic explains the loss,
 * and if so adds the facts that show it. They are asked in the order of the tables. */
#include "judge/cpu_loss.h"
#include "predict/stations.h"
#include "result/metrics.h"
#include "result/result.h"

/* To what lost time went; disjoint. What ranks wait for busy workers, or for a rank whose data is
 * late, is divided by what is waited for there. */
enum lost_to {
	LOST_REQUESTS, /* of the workers, to the store */
	LOST_DECODE,
	LOST_PREPROCESS,
	LOST_TRANSPORT,
	LOST_FRAMEWORK, /* the framework's own code */
	LOST_NO_CPU,    /* threads had no processor, or stood still */
	LOST_START,     /* the first batches of epochs were not begun */
	LOST_CHECKPOINT,
	LOST_BARRIER, /* computation takes ranks differently long */
	LOST_BETWEEN, /* between steps, and in the barrier itself */
	LOST_UNTOLD,
	LOST_KINDS
};

/* All that requests returned, and how fast this machine's memory could give it. */
struct limit_reading {
	double bytes, requests;
	double readers;      /* threads that read */
	double threads;      /* of them, those that can run at once */
	bool cached;         /* the page cache, or a store in memory, has the samples */
	double copy;         /* bytes/s that as many threads can copy; 0: not known */
	double each_s, size; /* of a request: mean time and bytes, by the counters of the run */
	double per_s;        /* requests of all readers */
};

struct limit_view {
	const struct result *r;
	const struct run_metrics *m;
	struct limit *limit;
	struct outlook *outlook;
	const struct decomposition *d;
	struct store_law law;
	struct stations stations;
	double compute, wait, skew, loss; /* mean over ranks, s */
	double skew_of_compute; /* of skew: because computation takes ranks differently long */
	double first;           /* of wait: for the first batches of epochs */
	double lost_to_data;    /* s: wait, and the part of skew that is not of compute */
	double workers;         /* of a rank, at least 1 */
	double busy, inside;    /* of the workers' time: with batches; in requests */
	double work, io;        /* s of the workers, all ranks: all; in requests */
	double cpu;             /* s of the process in the finished epochs */
	struct cpu_loss no_cpu;
	bool short_of_cpu; /* what was lost without a processor is most of the loss, or spoils it */
	double lost[LOST_KINDS];      /* s, mean over ranks; sum to `loss` */
	enum lost_to doing;           /* where most of it went */
	struct limit_reading reading; /* with LOST_REQUESTS */
	bool advised;                 /* said already: a probe could tell what is not known */
	char place[96];               /* "storage"; "file system nfs4" where that is all we know */
};

/* Adds what limits it, and what a change would do. */
void limit_found(struct limit_view *v, struct fact f);
void limit_would(struct limit_view *v, struct fact f);
/* Adds what more workers would do. */
void limit_workers_would(struct limit_view *v);
/* Of what kind of request the time is, where that is one of several. */
void limit_tell_kind(struct limit_view *v);
/* Ends what is said of requests: their kind, what lies between, what more workers would do. */
bool limit_end_reading(struct limit_view *v);

/* Threads without a processor (limit_cpu.c). */
void limit_view_cpu(struct limit_view *v);
/* s, also of one rank that the others wait for. */
double limit_lost_to_cpu(const struct limit_view *v);
bool limit_at_no_processor(struct limit_view *v);
bool limit_at_hypervisor(struct limit_view *v);
bool limit_at_own_decoding(struct limit_view *v);
bool limit_at_own_framework(struct limit_view *v);
bool limit_at_other_programs(struct limit_view *v);
bool limit_at_quota(struct limit_view *v);
bool limit_at_interruption(struct limit_view *v);
/* A change in the middle of the run (limit_unsteady.c), and the s lost to each. */
double limit_lost_to_stalls(const struct limit_view *v);
double limit_lost_to_phases(const struct limit_view *v);
double limit_lost_to_slower_part(const struct limit_view *v);
bool limit_at_stall(struct limit_view *v);
bool limit_at_phases(struct limit_view *v);
bool limit_at_slower_part(struct limit_view *v);
/* Whether predictions would be from two different storages, and why. */
bool limit_no_forecast(const struct limit_view *v, struct fact *why);
/* The framework's own code (framework.costs). */
bool limit_at_framework(struct limit_view *v);
/* A host, a rank, or ranks that wait for each other (limit_ranks.c), and the s lost to one. */
double limit_lost_to_host(const struct limit_view *v);
double limit_lost_to_rank(const struct limit_view *v);
bool limit_at_host(struct limit_view *v);
bool limit_at_rank(struct limit_view *v);
bool limit_at_barrier(struct limit_view *v);
/* Fills v->lost, once all above it is filled; and the largest part of it (limit_share.c). */
void limit_view_lost(struct limit_view *v);
enum lost_to limit_most_lost(const struct limit_view *v);
/* What the workers of a rank are short of, or do most (limit_workers.c). */
double limit_lost_to_worker(const struct limit_view *v); /* s */
bool limit_at_worker(struct limit_view *v);
bool limit_at_window(struct limit_view *v);
bool limit_at_number(struct limit_view *v);
bool limit_at_start(struct limit_view *v);
bool limit_at_unmeasured(struct limit_view *v);
bool limit_at_others_decoding(struct limit_view *v);
bool limit_at_decoding(struct limit_view *v);
bool limit_at_preprocessing(struct limit_view *v);
bool limit_at_transport(struct limit_view *v);
/* Readers that slow each other down (limit_contention.c). */
struct fall {
	double readers, rate; /* about as many as the run has, and their samples/s; 0: no fall */
	double fewer, best;   /* those that got most */
};
struct fall contention_probed(const struct probe *p);
bool limit_at_contention(struct limit_view *v);
/* Requests that servers refused or lost (limit_server.c), and the s lost to that. */
double limit_lost_to_repetitions(const struct limit_view *v);
bool limit_at_throttle(struct limit_view *v);
bool limit_at_repetitions(struct limit_view *v);
/* Whether no model of requests holds for that, and why. */
bool limit_is_repeated(const struct limit_view *v, struct fact *why);
/* Requests of one kind (limit_kinds.c), and the s lost to them. */
double limit_lost_to_closes(const struct limit_view *v);
double limit_lost_to_lookups(const struct limit_view *v);
double limit_lost_to_slow_names(const struct limit_view *v); /* opens, closes, look-ups */
double limit_lost_to_slow_reads(const struct limit_view *v);
bool limit_at_closes(struct limit_view *v);
bool limit_at_lookups(struct limit_view *v);
bool limit_at_tail(struct limit_view *v);
double limit_lost_by_name(const struct limit_view *v); /* slow folders and files; their turns */
bool limit_at_slow_files(struct limit_view *v);
bool limit_at_turns(struct limit_view *v);
/* What of requests limits (limit_store.c); one of them always does. */
void limit_view_reading(struct limit_view *v);
bool limit_at_memory_bandwidth(struct limit_view *v);
bool limit_at_memory_reads(struct limit_view *v);
bool limit_at_opens(struct limit_view *v);
bool limit_at_metadata(struct limit_view *v);
bool limit_at_unseen_requests(struct limit_view *v);
bool limit_at_queue(struct limit_view *v);
bool limit_at_request_rate(struct limit_view *v);
bool limit_at_bandwidth(struct limit_view *v);
bool limit_at_stream(struct limit_view *v);
bool limit_at_latency(struct limit_view *v);
bool limit_at_storage(struct limit_view *v);
