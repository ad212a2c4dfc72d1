#pragma once
/* A format without files, for tests of loaders: each read waits at a gate until the test lets its
 * worker pass, and can be told to fail. Lanes are workers by number. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "loader/loader.h"

#define LANES 16
#define NO_SAMPLE UINT64_MAX
#define PATIENCE_S 20
#define PAYLOAD 100u

struct reader {
	uint32_t lane;
	const struct io *io;
};

struct fake {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool open;              /* reads pass without waiting */
	uint64_t inside[LANES]; /* sample that waits at the gate */
	bool pass[LANES];
	uint32_t lanes;   /* workers of the loader */
	uint32_t readers; /* initialised so far */
	uint32_t readers_open;
	uint64_t fail_sample; /* this read fails with ERR_DATA */
	uint32_t fail_reader; /* the n-th reader_init fails, from 1 */
	uint64_t samples_per_file;
	size_t reader_bytes;
	struct reader_config told; /* to the last reader */
	const struct io *io;       /* given to the last reader */
	void *memory[LANES];       /* given to each lane's reader, the last time */
	_Atomic uint64_t begun, done;
	/* Told of each read when it begins, under the lock; may be NULL. */
	void (*on_read)(uint32_t lane, uint64_t sample);
};

static struct fake fake = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
};

/* A failure while threads run: gives the lock back, so that later tests can still report. */
#define fake_fail(...)                                                                             \
	do {                                                                                       \
		pthread_mutex_unlock(&fake.lock);                                                  \
		fail_msg(__VA_ARGS__);                                                             \
	} while (0)

/* Waits until `condition`, with the lock held; a test that waits too long has failed. */
#define fake_await(condition)                                                                      \
	do {                                                                                       \
		struct timespec until_;                                                            \
		clock_gettime(CLOCK_REALTIME, &until_);                                            \
		until_.tv_sec += PATIENCE_S;                                                       \
		while (!(condition))                                                               \
			if (pthread_cond_timedwait(&fake.changed, &fake.lock, &until_) != 0)       \
				fake_fail("line %d: not reached: %s", __LINE__, #condition);       \
	} while (0)

static inline void fake_reset(uint32_t workers, bool open)
{
	pthread_mutex_lock(&fake.lock);
	fake.open = open;
	fake.lanes = workers ? workers : 1;
	fake.readers = fake.readers_open = 0;
	fake.fail_sample = NO_SAMPLE;
	fake.fail_reader = 0;
	fake.begun = fake.done = 0;
	fake.reader_bytes = 4096;
	fake.on_read = NULL;
	for (int i = 0; i < LANES; i++) {
		fake.inside[i] = NO_SAMPLE;
		fake.pass[i] = false;
	}
	pthread_mutex_unlock(&fake.lock);
}

static inline void fake_gate(bool open)
{
	pthread_mutex_lock(&fake.lock);
	fake.open = open;
	pthread_cond_broadcast(&fake.changed);
	pthread_mutex_unlock(&fake.lock);
}

static inline void fake_await_inside(uint32_t lane, uint64_t sample)
{
	pthread_mutex_lock(&fake.lock);
	fake_await(fake.inside[lane] != NO_SAMPLE);
	if (fake.inside[lane] != sample)
		fake_fail("worker %u reads sample %llu instead of %llu", lane,
			  (unsigned long long)fake.inside[lane], (unsigned long long)sample);
	pthread_mutex_unlock(&fake.lock);
}

/* Lets the sample of a lane pass, once it is at the gate. */
static inline void fake_pass(uint32_t lane)
{
	pthread_mutex_lock(&fake.lock);
	fake_await(fake.inside[lane] != NO_SAMPLE);
	fake.pass[lane] = true;
	pthread_cond_broadcast(&fake.changed);
	fake_await(!fake.pass[lane]);
	pthread_mutex_unlock(&fake.lock);
}

static size_t fake_reader_bytes(const struct reader_config *c, const struct store *s)
{
	(void)c, (void)s;
	return fake.reader_bytes;
}

static int fake_reader_init(void *memory, const struct reader_config *c, const struct io *io,
			    struct reader **out, struct err *e)
{
	struct reader *r = memory;
	bool fails;

	pthread_mutex_lock(&fake.lock);
	fake.told = *c;
	r->lane = fake.readers++ % fake.lanes;
	r->io = fake.io = io;
	fake.memory[r->lane] = memory;
	fails = fake.readers == fake.fail_reader;
	fake.readers_open += !fails;
	pthread_mutex_unlock(&fake.lock);
	*out = r;
	return fails ? err_set(e, -ENOMEM, "fake: no reader") : 0;
}

static int fake_reader_close(struct reader *r, struct err *e)
{
	(void)r, (void)e;
	pthread_mutex_lock(&fake.lock);
	fake.readers_open--;
	pthread_mutex_unlock(&fake.lock);
	return 0;
}

static int fake_read(struct reader *r, const char *path, const struct file_spec *f, uint64_t index,
		     struct sample *out, struct err *e)
{
	uint64_t sample = f->file_index * fake.samples_per_file + index;
	uint64_t fail;

	fake.begun++;
	pthread_mutex_lock(&fake.lock);
	if (fake.on_read)
		fake.on_read(r->lane, sample);
	if (!fake.open) {
		fake.inside[r->lane] = sample;
		pthread_cond_broadcast(&fake.changed);
		while (!fake.open && !fake.pass[r->lane])
			pthread_cond_wait(&fake.changed, &fake.lock);
		fake.inside[r->lane] = NO_SAMPLE;
		fake.pass[r->lane] = false;
		pthread_cond_broadcast(&fake.changed);
	}
	fail = fake.fail_sample;
	pthread_mutex_unlock(&fake.lock);
	fake.done++;
	if (sample == fail)
		return err_set(e, ERR_DATA, "'%s' is broken", path);
	r->io->stat->kind[IO_DATA].requests++;
	*out = (struct sample){.payload_bytes = PAYLOAD};
	return 0;
}

static const struct format_ops fake_format = {
	.is.name = "fake",
	.is.extension = "bin",
	.reader_bytes = fake_reader_bytes,
	.reader_init = fake_reader_init,
	.reader_close = fake_reader_close,
	.read = fake_read,
};

/* A store that only knows request sizes: files are the fake format's own. */
static int fake_stat(struct store *s, const char *path, struct store_stat *out, struct err *e)
{
	bool file = strstr(path, ".bin");

	(void)s, (void)e;
	*out = (struct store_stat){.is_dir = !file, .block_bytes = file ? 4096 : 12288};
	return 0;
}

static const struct store_ops fake_store = {.is.name = "fake", .stat = fake_stat};

/* All that a loader is given, by hand. */
struct rig {
	struct workload workload;
	struct dataset dataset;
	struct store store;
	struct stop_flag stop;
	_Atomic int64_t progress_ns;
	struct loader_config config;
	struct loader *loader;
};

static char rig_folder[] = "/nowhere/data", rig_prefix[] = "img", rig_compression[] = "none";

static inline void rig_init(struct rig *r, uint32_t workers, uint64_t prefetch, uint64_t samples,
			    uint64_t samples_per_file, uint64_t batch)
{
	memset(r, 0, sizeof(*r));
	r->workload.reader.read_threads = workers;
	r->workload.reader.prefetch_size = (int64_t)prefetch;
	r->workload.reader.in_order = true;
	r->workload.reader.persistent_workers = true;
	r->workload.reader.batch_size = (int64_t)batch;
	r->workload.reader.sample_shuffle = SHUFFLE_SEED;
	r->workload.train.seed = 123;
	r->workload.train.seed_change_epoch = true;
	r->store.ops = &fake_store;
	r->dataset.format = &fake_format;
	r->dataset.elem = elem_find("uint8");
	r->dataset.folder = rig_folder;
	r->dataset.prefix = rig_prefix;
	r->dataset.files[DATASET_TRAIN] = samples / samples_per_file;
	r->dataset.name_total[DATASET_TRAIN] = samples / samples_per_file;
	r->dataset.samples_per_file = samples_per_file;
	r->dataset.ndims = 1;
	r->dataset.dims[0] = PAYLOAD;
	r->dataset.compression = rig_compression;
	r->dataset.form = (struct file_spec){.elem = r->dataset.elem,
					     .ndims = 1,
					     .dims = {PAYLOAD},
					     .samples = samples_per_file,
					     .compression = rig_compression};
	r->dataset.max_sample_bytes = PAYLOAD;
	r->dataset.max_file_bytes = PAYLOAD * samples_per_file;
	fake.samples_per_file = samples_per_file;
	r->config = (struct loader_config){
		.workload = &r->workload,
		.dataset = &r->dataset,
		.kind = DATASET_TRAIN,
		.store = &r->store,
		.batch_size = batch,
		.stop = &r->stop,
		.progress_ns = &r->progress_ns,
	};
}

static inline void rig_create_loader(struct rig *r, const char *name)
{
	struct err e;

	if (loader_find(name)->create(&r->loader, &r->config, &e) != 0)
		fail_msg("%s", e.text);
}

static inline void rig_create(struct rig *r)
{
	rig_create_loader(r, "pytorch");
}

static inline void rig_order(const struct rig *r, struct order *o, uint32_t ranks, uint64_t epoch)
{
	order_init(o, &r->workload, dataset_samples(&r->dataset, r->config.kind), ranks,
		   r->config.batch_size, (uint64_t)r->workload.train.seed, epoch);
}
