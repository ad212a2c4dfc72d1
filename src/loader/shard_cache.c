/* Shards of a remote dataset on this host: the account of them, and their copies. */
#include "loader/shard_cache.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/folder_lock.h"
#include "base/saturate.h"
#include "base/str.h"
#include "dataset/listing.h"
#include "workload/key.h"

#define TEMPORARY ".tmp"
#define LOCK_NAME ".stoker_cache.lock"
#define LITDATA_LIMIT 100000000000u /* max_cache_size "100GB" */
#define SIZE_UNKNOWN UINT64_MAX
#define SHARDS_LISTED 32 /* a list of a thousand names takes as long as a few requests for one */
#define LEAST_SHARDS 4   /* that cache_limit must hold, as Streaming demands */

struct shard_cache {
	const struct dataset *d;
	enum dataset_kind kind;
	struct store *remote, *local;
	char *folder; /* of this kind */
	struct file_lock held;
	bool mds;
	uint64_t limit;        /* bytes; 0: none */
	uint64_t index_bytes;  /* which Streaming counts, too */
	uint64_t files, total; /* total: bytes of all */

	pthread_mutex_t lock; /* of what follows */
	uint64_t used;        /* bytes of shards, and of MDS's index */
	unsigned char *state; /* enum shard_state, of each shard */
	uint64_t *size;
	int64_t *touched;
	uint32_t *claims;
	struct err failed; /* of the first download; code 0: none */
};

bool shard_cache_wanted(const struct workload *w)
{
	return workload_loader(w)->deal != DEAL_NONE && w->reader.cache_folder &&
	       w->reader.cache_folder[0];
}

/* Of one shard. */
#define ENTRY_BYTES (sizeof(unsigned char) + sizeof(uint64_t) + sizeof(int64_t) + sizeof(uint32_t))

uint64_t shard_cache_bytes(const struct dataset *d)
{
	uint64_t files = u64_sum(d->files[DATASET_TRAIN], d->files[DATASET_EVAL]);

	return u64_sum(u64_product(files, ENTRY_BYTES), 2 * sizeof(struct shard_cache));
}

int shard_cache_create(struct shard_cache **out, const struct dataset *d, enum dataset_kind kind,
		       struct store *remote, struct err *e)
{
	const struct workload *w = d->workload;
	struct shard_cache *c = try_calloc(1, sizeof(*c), "a cache of shards", e);
	uint64_t n = d->files[kind];
	int rc;

	if (!c)
		return -ENOMEM;
	pthread_mutex_init(&c->lock, NULL);
	*out = c;
	c->d = d;
	c->kind = kind;
	c->remote = remote;
	c->held.fd = -1;
	c->mds = workload_loader(w)->deal == DEAL_MDS;
	c->limit = (uint64_t)w->reader.cache_limit;
	if (c->limit == 0 && !c->mds)
		c->limit = LITDATA_LIMIT;
	c->files = n;
	c->folder = path_join(w->reader.cache_folder, dataset_kind_folder[kind]);
	c->state = try_calloc(n, sizeof(*c->state), "a cache of shards", e);
	c->size = c->state ? try_calloc(n, sizeof(*c->size), "a cache of shards", e) : NULL;
	c->touched = c->size ? try_calloc(n, sizeof(*c->touched), "a cache of shards", e) : NULL;
	c->claims = c->touched ? try_calloc(n, sizeof(*c->claims), "a cache of shards", e) : NULL;
	rc = c->claims ? store_create(&c->local, workload_key_row("storage.store")->def, NULL, e)
		       : -ENOMEM;
	if (rc < 0) {
		shard_cache_destroy(c);
		*out = NULL;
	}
	return rc;
}

void shard_cache_destroy(struct shard_cache *c)
{
	if (!c)
		return;
	file_unlock(&c->held);
	if (c->local)
		store_destroy(c->local);
	pthread_mutex_destroy(&c->lock);
	free(c->folder);
	free(c->state);
	free(c->size);
	free(c->touched);
	free(c->claims);
	free(c);
}

struct store *shard_cache_store(const struct shard_cache *c)
{
	return c->local;
}

int shard_cache_path(const struct shard_cache *c, uint64_t file, char *out, size_t size,
		     struct err *e)
{
	char far[DATASET_PATH_MAX];
	int rc = dataset_path(c->d, c->kind, file, far, sizeof(far), e), n;

	if (rc < 0)
		return rc;
	n = snprintf(out, size, "%s/%s", c->folder, path_basename(far));
	if (n >= 0 && (size_t)n < size)
		return 0;
	return err_set(e, -ENAMETOOLONG, "the path of a shard below '%.200s...' is too long",
		       c->folder);
}

/* ---- copying ---- */

/* A store that moves bytes to a descriptor by itself, as the libraries' copy of local files does.
 */
static bool sends(const struct store *s)
{
	return s->ops->send != NULL;
}

uint64_t shard_copier_bytes(struct store *remote)
{
	return store_blob_bytes(remote) + sizeof(struct shard_copier) + 4096 +
	       (sends(remote) ? 0 : SHARD_PIECE);
}

int shard_copier_init(struct shard_copier *k, struct shard_cache *c, struct err *e)
{
	*k = (struct shard_copier){.cache = c};
	pthread_mutex_init(&k->lock, NULL);
	k->from = store_blob_new(c->remote, e);
	k->to = k->from ? store_blob_new(c->local, e) : NULL;
	if (k->to && !sends(c->remote))
		k->piece = buffer_alloc(SHARD_PIECE, "a piece of a shard", e);
	return k->to && (k->piece || sends(c->remote)) ? 0 : -ENOMEM;
}

void shard_copier_release(struct shard_copier *k)
{
	if (!k->cache)
		return;
	pthread_mutex_destroy(&k->lock);
	buffer_free(k->piece, SHARD_PIECE);
	free(k->from);
	free(k->to);
	k->cache = NULL;
}

static bool called_off(const struct shard_copier *k)
{
	return stop_is_set(k->stop) ||
	       (k->halt && atomic_load_explicit(k->halt, memory_order_acquire));
}

static void count(uint64_t *to, uint64_t n)
{
	__atomic_fetch_add(to, n, __ATOMIC_RELAXED);
}

/* The next piece; 0 at the end. */
static ssize_t copy_piece(struct shard_copier *k, uint64_t at, uint64_t size, struct err *e)
{
	uint64_t left = size - at, block = size > SHARD_PIECE ? size : SHARD_PIECE;
	ssize_t got, put;

	if (!k->piece)
		return k->cache->remote->ops->send(k->from, store_descriptor(k->to), (size_t)block,
						   at, e);
	if (left == 0)
		return 0;
	got = store_pread(k->from, k->piece, left < SHARD_PIECE ? (size_t)left : SHARD_PIECE, at,
			  e);
	if (got <= 0)
		return got;
	put = store_pwrite(k->to, k->piece, (size_t)got, at, e);
	return put < 0 ? put : got;
}

static int copy_open(struct shard_copier *k, uint64_t size, struct err *e)
{
	uint64_t at = 0;

	for (;;) {
		ssize_t n;

		if (called_off(k))
			return err_set(e, ERR_CANCELED, "a shard was not downloaded");
		n = copy_piece(k, at, size, e);
		if (n < 0)
			return (int)n;
		if (k->progress_ns)
			atomic_store_explicit(k->progress_ns, clock_now_ns(), memory_order_relaxed);
		if (n == 0)
			break;
		count(&k->fetched->requests, 1);
		count(&k->fetched->bytes, (uint64_t)n);
		at += (uint64_t)n;
	}
	if (at == size)
		return 0;
	return err_set(e, ERR_DATA, "it ended after %" PRIu64 " of %" PRIu64 " bytes", at, size);
}

/* Both open; *size becomes that of the remote one. */
static int copy_to(struct shard_copier *k, const char *from, const char *to, struct err *e)
{
	struct shard_cache *c = k->cache;
	struct store_stat st = {0};
	int rc = store_open(c->remote, from, STORE_READ, k->from, e), closed;

	if (rc < 0)
		return rc;
	rc = store_stat_blob(k->from, &st, e);
	if (rc == 0)
		rc = store_open(c->local, to, STORE_WRITE | STORE_CREATE, k->to, e);
	if (rc == 0) {
		rc = copy_open(k, st.bytes, e);
		closed = store_close(k->to, rc == 0 ? e : NULL);
		rc = rc < 0 ? rc : closed;
	}
	closed = store_close(k->from, rc == 0 ? e : NULL);
	return rc < 0 ? rc : closed;
}

static int download_path(struct shard_copier *k, const char *from, const char *to, struct err *e)
{
	char tmp[DATASET_PATH_MAX + sizeof(TEMPORARY)];
	struct shard_cache *c = k->cache;
	int64_t begin = clock_now_ns();
	int rc;

	snprintf(tmp, sizeof(tmp), "%s" TEMPORARY, to);
	rc = copy_to(k, from, tmp, e);
	if (rc == 0)
		rc = store_rename(c->local, tmp, to, e);
	if (rc < 0)
		store_remove(c->local, tmp, NULL);
	__atomic_fetch_add(&k->fetched->busy_ns, clock_now_ns() - begin, __ATOMIC_RELAXED);
	if (rc < 0 && rc != ERR_CANCELED)
		err_wrap(e, "downloading '%s' into the cache '%s' (reader.cache_folder)", from,
			 c->folder);
	return rc;
}

static int download(struct shard_copier *k, uint64_t file, struct err *e)
{
	struct shard_cache *c = k->cache;
	char from[DATASET_PATH_MAX], to[DATASET_PATH_MAX];
	int rc = dataset_path(c->d, c->kind, file, from, sizeof(from), e);

	if (rc == 0)
		rc = shard_cache_path(c, file, to, sizeof(to), e);
	if (rc < 0)
		return rc;
	pthread_mutex_lock(&k->lock);
	rc = download_path(k, from, to, e);
	pthread_mutex_unlock(&k->lock);
	if (rc == 0)
		count(&k->fetched->shards, 1);
	return rc;
}

/* ---- the account ---- */

static int failure(struct shard_cache *c, struct err *e)
{
	if (c->failed.code && e)
		*e = c->failed;
	return c->failed.code;
}

int shard_cache_state(struct shard_cache *c, uint64_t file, struct err *e)
{
	int rc;

	pthread_mutex_lock(&c->lock);
	rc = failure(c, e);
	if (rc == 0)
		rc = c->state[file];
	pthread_mutex_unlock(&c->lock);
	return rc;
}

/* Its lock is held. */
static int take_away(struct shard_copier *k, uint64_t file, struct err *e)
{
	struct shard_cache *c = k->cache;
	char path[DATASET_PATH_MAX];
	int rc = shard_cache_path(c, file, path, sizeof(path), e);

	if (rc == 0)
		rc = store_remove(c->local, path, e);
	if (rc == -ENOENT)
		rc = 0;
	c->state[file] = SHARD_REMOTE;
	c->used -= c->size[file];
	count(&k->fetched->removed, 1);
	count(&k->fetched->removed_bytes, c->size[file]);
	return rc < 0 ? err_wrap(e, "making room in the cache '%s'", c->folder) : 0;
}

/* Its lock is held. */
static int make_room(struct shard_copier *k, uint64_t file, struct err *e)
{
	struct shard_cache *c = k->cache;
	int rc = 0;

	while (rc == 0 && c->limit && c->limit < c->used + c->size[file]) {
		uint64_t coldest = UINT64_MAX;

		for (uint64_t i = 0; i < c->files; i++)
			if (c->state[i] == SHARD_LOCAL &&
			    (coldest == UINT64_MAX || c->touched[i] < c->touched[coldest]))
				coldest = i;
		if (coldest == UINT64_MAX)
			return err_set(e, ERR_USAGE,
				       "reader.cache_limit is %" PRIu64 " bytes, and no shard can "
				       "be removed to make room for another: raise it",
				       c->limit);
		rc = take_away(k, coldest, e);
	}
	return rc;
}

/* Downloads one that was marked SHARD_PREPARING and accounted for. */
static int bring(struct shard_copier *k, uint64_t file, struct err *e)
{
	struct shard_cache *c = k->cache;
	struct err why = {0};
	int rc = download(k, file, &why);

	pthread_mutex_lock(&c->lock);
	c->touched[file] = clock_now_ns();
	c->state[file] = rc == 0 ? SHARD_LOCAL : SHARD_REMOTE;
	if (rc == 0)
		c->used += c->size[file];
	else if (rc != ERR_CANCELED && c->failed.code == 0) {
		c->failed = why;
		c->failed.code = rc;
	}
	pthread_mutex_unlock(&c->lock);
	if (rc < 0 && e)
		*e = why;
	return rc;
}

int shard_cache_prepare(struct shard_copier *k, uint64_t file, struct err *e)
{
	struct shard_cache *c = k->cache;
	bool mine = false;
	int rc;

	pthread_mutex_lock(&c->lock);
	rc = failure(c, e);
	if (rc == 0 && c->state[file] == SHARD_LOCAL)
		c->touched[file] = clock_now_ns();
	if (rc == 0 && c->state[file] == SHARD_REMOTE) {
		rc = make_room(k, file, e);
		mine = rc == 0;
		if (mine)
			c->state[file] = SHARD_PREPARING;
		else if (e && c->failed.code == 0)
			c->failed = *e;
	}
	pthread_mutex_unlock(&c->lock);
	return mine ? bring(k, file, e) : rc;
}

void shard_cache_touch(struct shard_cache *c, uint64_t file)
{
	pthread_mutex_lock(&c->lock);
	c->touched[file] = clock_now_ns();
	pthread_mutex_unlock(&c->lock);
}

void shard_cache_missed(struct shard_cache *c, uint64_t file)
{
	char path[DATASET_PATH_MAX];

	if (shard_cache_path(c, file, path, sizeof(path), NULL) < 0 || file_exists(path))
		return;
	pthread_mutex_lock(&c->lock);
	if (c->state[file] == SHARD_LOCAL) {
		c->state[file] = SHARD_REMOTE;
		c->used -= c->size[file];
	}
	pthread_mutex_unlock(&c->lock);
}

int shard_cache_claim(struct shard_copier *k, uint64_t file, bool again, struct err *e)
{
	struct shard_cache *c = k->cache;
	bool mine = false;
	int rc;

	pthread_mutex_lock(&c->lock);
	rc = failure(c, e);
	c->claims[file] += !again;
	if (rc == 0 && c->state[file] == SHARD_REMOTE) {
		c->state[file] = SHARD_PREPARING;
		mine = true;
	}
	pthread_mutex_unlock(&c->lock);
	return mine ? bring(k, file, e) : rc;
}

void shard_cache_disclaim(struct shard_cache *c, uint64_t file)
{
	pthread_mutex_lock(&c->lock);
	c->claims[file] -= c->claims[file] > 0;
	pthread_mutex_unlock(&c->lock);
}

int shard_cache_remove(struct shard_copier *k, uint64_t file, struct err *e)
{
	struct shard_cache *c = k->cache;
	int rc = 0;

	pthread_mutex_lock(&c->lock);
	if (c->claims[file] == 0 && c->state[file] == SHARD_LOCAL)
		rc = take_away(k, file, e);
	pthread_mutex_unlock(&c->lock);
	return rc;
}

bool shard_cache_is_full(struct shard_cache *c)
{
	bool full;

	pthread_mutex_lock(&c->lock);
	full = c->used >= c->limit;
	pthread_mutex_unlock(&c->lock);
	return full;
}

bool shard_cache_passes_through(const struct shard_cache *c)
{
	return c->total > c->limit;
}

/* ---- before training ---- */

/* Eviction would remove the dataset. */
static int is_dataset(const struct shard_cache *c, const char *far, struct err *e)
{
	struct store_stat st;
	struct stat own;

	if (!(store_base_flags(c->remote) & STORE_HAS_FILES) ||
	    store_stat_path(c->remote, far, &st, NULL) < 0 || stat(c->folder, &own) != 0 ||
	    st.inode == 0 || st.inode != own.st_ino || st.device != own.st_dev)
		return 0;
	return err_set(
		e, ERR_USAGE,
		"reader.cache_folder: '%s' is the folder of the dataset itself, which is not "
		"copied onto itself: name another one, on a disk of this host",
		c->folder);
}

static int lock_folder(struct shard_cache *c, struct err *e)
{
	AUTO_FREE char *path = path_join(c->folder, LOCK_NAME);
	char who[FILE_LOCK_WHO_MAX];
	int rc = file_lock(&c->held, path, who, e);

	if (rc != -EBUSY)
		return rc;
	return err_set(e, ERR_USAGE,
		       "reader.cache_folder: '%s' is in use%s%s, which would remove shards that "
		       "this run needs: name another one",
		       c->folder, who[0] ? " by " : "", who);
}

static int fetch_index(struct shard_copier *k, const char *far, struct err *e)
{
	const char *name = k->cache->d->format->is.folder_file;
	AUTO_FREE char *from = path_join(far, name), *to = path_join(k->cache->folder, name);
	struct stat st;
	int rc = file_exists(to) ? 0 : download_path(k, from, to, e);

	if (rc == 0 && stat(to, &st) == 0)
		k->cache->index_bytes = (uint64_t)st.st_size;
	return rc;
}

struct sizes_listed {
	struct shard_cache *cache;
	const struct stop_flag *stop;
};

static int take_size(void *arg, const char *name, bool is_dir, uint64_t bytes)
{
	struct sizes_listed *l = arg;
	struct shard_cache *c = l->cache;
	char path[DATASET_PATH_MAX];
	uint64_t file, total;

	if (stop_is_set(l->stop))
		return ERR_CANCELED;
	if (!is_dir && listing_parse(c->d, name, &file, &total) && file < c->files &&
	    dataset_path(c->d, c->kind, file, path, sizeof(path), NULL) == 0 &&
	    strcmp(path_basename(path), name) == 0)
		c->size[file] = bytes;
	return 0;
}

/* The sizes of many shards from one list, where the store's lists have them. What a list does not
 * have is asked for by itself, as all of them are where listing is not allowed. */
static void list_sizes(struct shard_cache *c, const char *far, const struct stop_flag *stop)
{
	struct sizes_listed l = {.cache = c, .stop = stop};
	struct err unused;

	for (uint64_t i = 0; i < c->files; i++)
		c->size[i] = SIZE_UNKNOWN;
	if (c->files >= SHARDS_LISTED)
		store_list_sizes(c->remote, far, take_size, &l, &unused);
}

/* Sizes are those of the remote files: of a dataset that others made they follow from nothing. */
static int find_shard(struct shard_cache *c, uint64_t file, struct err *e)
{
	char far[DATASET_PATH_MAX], near[DATASET_PATH_MAX];
	char unfinished[DATASET_PATH_MAX + sizeof(TEMPORARY)];
	struct store_stat st = {.bytes = c->size[file]};
	struct stat own;
	int rc = dataset_path(c->d, c->kind, file, far, sizeof(far), e);

	if (rc == 0)
		rc = shard_cache_path(c, file, near, sizeof(near), e);
	if (rc == 0 && st.bytes == SIZE_UNKNOWN)
		rc = store_stat_path(c->remote, far, &st, e);
	if (rc < 0)
		return rc;
	c->size[file] = st.bytes;
	c->total += st.bytes;
	if (stat(near, &own) == 0) {
		if (!S_ISREG(own.st_mode) || (uint64_t)own.st_size != st.bytes)
			return err_set(e, ERR_DATA,
				       "the cache (reader.cache_folder) holds '%s' with %" PRIu64
				       " bytes, and the dataset's '%s' has %" PRIu64
				       ": it is of another dataset. Empty the folder, or name "
				       "another one",
				       near, (uint64_t)own.st_size, far, st.bytes);
		c->state[file] = SHARD_LOCAL;
		c->touched[file] = clock_now_ns();
		c->used += st.bytes;
	}
	snprintf(unfinished, sizeof(unfinished), "%s" TEMPORARY, near);
	if (unlink(unfinished) != 0 && errno != ENOENT)
		return err_sys(e, errno, "cannot remove the unfinished download '%s'", unfinished);
	return 0;
}

static int check_limit(const struct shard_cache *c, struct err *e)
{
	uint64_t most = 0;

	for (uint64_t i = 0; i < c->files; i++)
		most = c->size[i] > most ? c->size[i] : most;
	if (!c->mds || c->limit == 0)
		return 0;
	if (c->limit < u64_product(LEAST_SHARDS, most))
		return err_set(e, ERR_USAGE,
			       "reader.cache_limit is %" PRIu64
			       " bytes, and MosaicML Streaming demands %d times the largest shard, "
			       "which has %" PRIu64 ": raise it to %" PRIu64 " or more",
			       c->limit, LEAST_SHARDS, most, u64_product(LEAST_SHARDS, most));
	/* it counts the index, too, which is never removed */
	if (c->limit < u64_sum(c->index_bytes, most))
		return err_set(e, ERR_USAGE,
			       "reader.cache_limit is %" PRIu64
			       " bytes, of which the index of the dataset takes %" PRIu64
			       " and its largest shard %" PRIu64 ": raise it to %" PRIu64
			       " or more",
			       c->limit, c->index_bytes, most,
			       u64_sum(c->index_bytes, u64_product(LEAST_SHARDS, most)));
	return 0;
}

int shard_cache_set_up(struct shard_cache *c, const struct stop_flag *stop, struct err *e)
{
	struct fetched unused = {0};
	struct shard_copier k;
	char far[DATASET_PATH_MAX];
	int rc = file_mkdirs(c->folder, e);

	if (rc == 0)
		rc = dataset_folder(c->d, c->kind, 0, far, sizeof(far), e);
	if (rc == 0)
		rc = is_dataset(c, far, e);
	if (rc == 0)
		rc = lock_folder(c, e);
	if (rc < 0)
		return rc;
	rc = shard_copier_init(&k, c, e);
	k.stop = stop;
	k.fetched = &unused;
	if (rc == 0)
		rc = fetch_index(&k, far, e);
	shard_copier_release(&k);
	if (rc == 0)
		list_sizes(c, far, stop);
	for (uint64_t i = 0; i < c->files && rc == 0; i++)
		rc = stop_is_set(stop) ? err_set(e, ERR_CANCELED, "the run was stopped")
				       : find_shard(c, i, e);
	c->used += c->mds ? c->index_bytes : 0;
	return rc < 0 ? rc : check_limit(c, e);
}
