#pragma once
/* What the objects of result.json are of: a part of struct result, or a view of it that is made
 * while the object is written. AT_S is the type of `x` in the rows of section S. Private to
 * fields*.c. */
#include "result/supply.h"

/* Requests of all ranks; too large for a stack. */
struct io_sum {
	struct io_stat io;
};

struct epoch_at {
	uint32_t i;
	const struct epoch_metrics *e;
	const struct epoch_usage *u;
	const struct epoch_judgement *j;
};

/* How a measure spreads over the ranks of an epoch. */
enum rank_measure {
	RANK_AU,
	RANK_WHOLE,
	RANK_RATE,
	RANK_WAIT,
	RANK_BARRIER,
	RANK_WALL,
	RANK_MEASURES
};

struct over_ranks {
	struct series_stat of[RANK_MEASURES];
};

struct processors_at {
	const struct processors *p;
	const struct processor_group *g; /* whose quota it felt most; NULL: none */
	uint32_t process;
};

struct io_at {
	const struct io_stat *io;
	enum io_kind kind;
};

struct checkpoint_at {
	double stall, au, without, drain;
};

struct saves_at {
	bool load;
	struct series_stat duration, rate;
	struct io_stat io;
};

struct saved_at {
	bool load, async;
	struct checkpoint_measure c;
};

struct trace_at {
	uint64_t kept, dropped;
};

struct rank_at {
	const struct rank_result *of;
	uint64_t payload, samples, requests;
	double compute, late, wall, wait, barrier;
};

struct host_at {
	uint32_t node;
	const struct result_process *first;
	const struct host_facts *facts;
};

/* All servers together. */
struct servers_at {
	const struct result *r;
	struct server_counts whole, timed;
};

typedef struct result AT_RUN, AT_GENERATION, AT_MEMORY;
/* of TOLD rows alone */
typedef struct result AT_VERDICT, AT_MEASURED, AT_LIMIT, AT_WHAT_IF, AT_CONFIGURED, AT_INTEGRITY;
typedef struct io_sum AT_TRAINING, AT_EVALUATION;
typedef struct epoch_at AT_EPOCH, AT_EVALUATED;
typedef struct over_ranks AT_OVER_RANKS;
typedef struct proc_io AT_PROCESS_IO;
typedef struct host_io AT_HOST_IO;
typedef struct memory_pressure AT_MEMORY_PRESSURE;
typedef struct processors_at AT_PROCESSORS;
typedef struct epoch_usage AT_PAGE_CACHE;
typedef struct decomposition AT_DECOMPOSITION, AT_SLOWEST_RANK, AT_SLOWEST_HOST;
typedef struct stragglers AT_STRAGGLERS;
typedef struct straggling_sample AT_SLOW_SAMPLE;
typedef struct busy_reading AT_READING;
typedef struct steadiness AT_STEADINESS;
typedef struct stall AT_STALL;
typedef struct io_at AT_IO_KIND;
typedef struct hist AT_LATENCY;
typedef struct io_latency AT_SIZED;
typedef struct ledger_line AT_LEDGER;
typedef struct checkpoint_at AT_CHECKPOINT;
typedef struct saves_at AT_SAVES;
typedef struct saved_at AT_SAVED;
typedef struct dataset AT_DATASET;
typedef struct survey AT_EXTENTS, AT_CONTENT;
typedef struct trace_at AT_TRACE;
typedef struct rank_at AT_RANK;
typedef struct host_at AT_HOST;
typedef struct result_process AT_HOST_PROCESS;
typedef struct host_facts AT_ENVIRONMENT, AT_VERSIONS;
typedef struct host_io_source AT_STORAGE_PATH;
typedef struct memory_copy AT_MEMORY_COPY;
typedef struct supply AT_NEED, AT_SUPPLY;
typedef struct probe AT_PROBE;
typedef struct probe_point AT_PROBE_POINT;
typedef struct barrier_cost AT_BARRIER;
typedef struct servers_at AT_OBJECT_STORE;
typedef struct server_use AT_SERVER;
typedef struct server_counts AT_SERVER_COUNTS, AT_SERVER_REQUESTS, AT_SERVER_AGAIN;

/* Each fills `room` and returns it. */
const struct io_sum *training_view(const struct result *r, void *room);
const struct io_sum *evaluation_view(const struct result *r, void *room);
const struct epoch_at *epoch_view(const struct result *r, const struct run_metrics *m, size_t i,
				  void *room);
const struct over_ranks *over_ranks_view(const struct result *r, uint32_t epoch, void *room);
const struct processors_at *processors_view(const struct processors *p, uint32_t process,
					    void *room);
const struct io_at *io_view(const struct io_stat *io, size_t kind, void *room);
/* NULL: of no request. */
const struct io_latency *sized_view(const struct io_at *io, size_t size_class);
const struct checkpoint_at *checkpoint_view(const struct result *r, void *room);
const struct saves_at *saves_view(const struct result *r, bool load, void *room);
/* Checkpoints that were begun, of all epochs. */
size_t saves_count(const struct result *r, bool load);
const struct saved_at *saved_view(const struct result *r, const struct saves_at *of, size_t i,
				  void *room);
const struct trace_at *trace_view(const struct result *r, void *room);
const struct rank_at *rank_view(const struct result *r, const struct run_metrics *m, size_t rank,
				void *room);
const struct host_at *host_view(const struct result *r, size_t node, void *room);
const struct supply *need_view(const struct result *r, const struct run_metrics *m, void *room);
const struct servers_at *servers_view(const struct result *r, void *room);

/* ---- single figures that take more than an expression ---- */

double seconds(int64_t ns);
/* 0 where the whole is. */
double per(uint64_t sum, uint64_t n); /* 0 of none */
double part_of(double part, double whole, double scale);
double a_second(uint64_t n, const struct probe_point *p);
/* The look into the page cache that an epoch's figures are of; whether there was one, and whether
 * it was one of several hosts. */
const struct residency *cache_look(const struct epoch_usage *u);
bool cache_looked(const struct epoch_usage *u);
bool cache_of_hosts(const struct result *r, const struct epoch_usage *u);
/* Why a look failed; "": none did; NULL: nobody looked. */
const char *page_cache_why(const struct epoch_usage *u);
bool changed_once(const struct steadiness *c);
bool rank_has_costs(const struct rank_result *k);
const char *node_hostname(const struct result *r, uint32_t node);
/* NULL: nothing was checked. */
const char *checked_by(const struct presence_result *p);
extern const char *const work_names[WORK_KINDS];
extern const char *const result_status_names[];
extern const char *const ledger_states[];
extern const char *const sizes_names[];
