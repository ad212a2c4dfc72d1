#pragma once
/* The folder on this host into which MosaicML Streaming and LitData download whole shards of a
 * remote dataset before they read samples of them (reader.cache_folder). There is one for the
 * training files and one for those of the evaluation, each in a folder of its own, and the ranks of
 * a process share it: which shards are there, being downloaded or gone, and how many bytes they
 * have, is one account under one lock, as the libraries keep it in shared memory and lock files.
 *
 * A shard is copied to NAME.tmp and named when it is whole, so that what has its name can be read.
 * The copy is removed when it fails or the run is stopped; one that hangs in the storage stays,
 * and the next run removes it. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/thread.h"
#include "dataset/dataset.h"
#include "metric/fetched.h"
#include "store/store.h"
#include "workload/workload.h"

struct shard_cache;

/* Whether the workload downloads shards. */
bool shard_cache_wanted(const struct workload *w);
/* Memory of the account of a dataset. */
uint64_t shard_cache_bytes(const struct dataset *d);

/* Everything that is borrowed stays where it is. Nothing is looked at yet. */
int shard_cache_create(struct shard_cache **out, const struct dataset *d, enum dataset_kind kind,
		       struct store *remote, struct err *e);
/* Before training, once the dataset was checked: makes the folder and locks it, refuses one that is
 * the dataset's own or holds another dataset, removes copies that were not finished, downloads the
 * index if it is not there, and finds the shards that are. */
int shard_cache_set_up(struct shard_cache *c, const struct stop_flag *stop, struct err *e);
/* What is in the folder stays. Accepts NULL. */
void shard_cache_destroy(struct shard_cache *c);

/* What its files are read with, and their names there. */
struct store *shard_cache_store(const struct shard_cache *c);
int shard_cache_path(const struct shard_cache *c, uint64_t file, char *out, size_t size,
		     struct err *e);
/* ---- copying: of one worker ---- */

/* Bytes of one request: what boto3 asks for, and the least that shutil.copy asks for. */
#define SHARD_PIECE (8u << 20)

struct shard_copier {
	struct shard_cache *cache;
	struct blob *from, *to;
	unsigned char *piece; /* SHARD_PIECE; NULL where the store sends by itself */
	pthread_mutex_t lock; /* one shard at a time */
	/* What ends it early: a bit in the one, or the other. */
	const _Atomic uint32_t *halt;
	const struct stop_flag *stop;
	_Atomic int64_t *progress_ns; /* may be NULL */
	struct fetched *fetched;      /* where it counts, in steps that no other thread loses */
};

uint64_t shard_copier_bytes(struct store *remote);
int shard_copier_init(struct shard_copier *k, struct shard_cache *c, struct err *e);
/* Accepts a zeroed one. */
void shard_copier_release(struct shard_copier *k);

/* ---- the account ---- */

enum shard_state { SHARD_REMOTE, SHARD_PREPARING, SHARD_LOCAL };

/* What it is now; negative, with its sentence, once a download of this cache has failed. */
int shard_cache_state(struct shard_cache *c, uint64_t file, struct err *e);
/* MosaicML Streaming: downloads a shard that is not there and not under way, and notes that it was
 * used. First the shards used longest ago are removed until it fits (reader.cache_limit). */
int shard_cache_prepare(struct shard_copier *k, uint64_t file, struct err *e);
/* A sample of it was read. */
void shard_cache_touch(struct shard_cache *c, uint64_t file);
/* Its file is gone although it counts as there: it was removed between the two. */
void shard_cache_missed(struct shard_cache *c, uint64_t file);
/* LitData: one more worker will read it, and it is downloaded unless it is there or under way. */
int shard_cache_claim(struct shard_copier *k, uint64_t file, bool again, struct err *e);
/* A worker has read what it wanted of it. */
void shard_cache_disclaim(struct shard_cache *c, uint64_t file);
/* Removes it unless others will read it. */
int shard_cache_remove(struct shard_copier *k, uint64_t file, struct err *e);
/* Whether the folder has reached its limit. */
bool shard_cache_is_full(struct shard_cache *c);
/* LitData: the dataset is larger than the limit, so chunks go once they are read. */
bool shard_cache_passes_through(const struct shard_cache *c);
