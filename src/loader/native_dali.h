#pragma once
/* The state of the loader with DALI's own readers, shared by its files: setup, threads, policy. */
#include "dataset/order_stream.h"
#include "loader/crew.h"
#include "loader/dali_source.h"

/* One place of a batch. */
struct dali_work {
	struct dali_item *item; /* NULL: the sample before is repeated */
	uint64_t sample, payload;
};

/* A batch on its way. */
struct dali_group {
	struct batch batch; /* first: what is handed out */
	struct dali_work *work;
};

struct native_dali {
	struct loader base;
	struct loader_config config;
	struct dali_source source;
	uint64_t batch_size, depth, groups, items; /* depth: of the reader's ring */
	bool async;                                /* an executor thread processes ahead */

	struct dali_reader reader;
	struct dali_copier *copier;
	uint32_t copiers;
	struct worker_stat *stat; /* the reader's, then the copiers' */
	struct dali_group *group;
	struct dali_work *work;
	struct dali_item *item;
	unsigned char *kept;
	uint64_t kept_bytes;
	struct order_held *held_samples; /* of the shuffle buffer */
	struct rng_np rng;               /* of preprocess times */
	bool preprocess;

	/* slots: places in the reader's ring that are free; places: those of the pipeline's output
	 * queue; the other queues carry what they are named after. */
	struct queue slots, places, spare, free_items, raw, todo, done, ready;

	struct dali_thread {
		struct native_dali *loader;
		void (*main)(struct native_dali *l, uint32_t i);
		uint32_t index;
		pthread_t thread;
		bool running;
		_Atomic uint32_t ended; /* futex word: the thread's last act */
	} * thread;
	uint32_t threads;

	struct order order;
	uint64_t steps, handed;
	uint32_t held;
	bool open;
	_Atomic uint32_t halt;
	_Atomic int64_t woken_ns;
	_Atomic uint32_t stuck;
	/* for describe */
	_Atomic uint64_t epoch, last_step, waiting;
	_Atomic int64_t waiting_since;
};

/* Batches processed and not handed out: the pipeline's prefetch_queue_depth, as DALI has it. */
#define DALI_PIPELINE_DEPTH 2

void native_dali_window(const struct workload *w, uint32_t *workers, uint64_t *batches);
int native_dali_memory_bytes(const struct loader_config *c, uint64_t *out, struct err *e);
int native_dali_create(struct loader **out, const struct loader_config *c, struct err *e);
/* Frees everything; no thread runs. */
void native_dali_release(struct native_dali *l);
/* Puts every batch, sample and token where an epoch begins. No thread runs. */
void native_dali_rewind(struct native_dali *l);
void native_dali_close_queues(struct native_dali *l);

/* The threads' functions. */
void native_dali_read(struct native_dali *l, uint32_t i);
void native_dali_execute(struct native_dali *l, uint32_t i);
void native_dali_copy(struct native_dali *l, uint32_t i);
/* Copies and decodes all samples of a batch, on the copiers. False when called off. */
bool native_dali_process(struct native_dali *l, struct dali_group *g);

extern const struct loader_ops loader_native_dali;
