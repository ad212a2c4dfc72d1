/* Files read by mapping them and copying out of the mapping: the kernel sees page faults and no
 * read calls. Copies go through store/mapped.h, so that a file cut short under the mapping is an
 * error and no signal. A mapping reaches as far as the file did when it was first read from; a read
 * beyond that looks again. Blobs open for writing read and write as posix does. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "store/mapped.h"
#include "store/posix.h"

enum advice { ADVICE_NORMAL, ADVICE_SEQUENTIAL, ADVICE_RANDOM };

static const char *const advices[] = {"normal", "sequential", "random", NULL};

struct mmap_config {
	int advice;
};

static const struct opt mmap_options[] = {
	STORE_OPTION("advice", struct mmap_config, advice, OPT_ENUM, int, "normal",
		     "The advice given to the kernel for each mapping (madvise): normal reads "
		     "around a fault, sequential reads far ahead, random reads single pages.",
		     .choices = advices),
};

struct mmap_store {
	struct store base;
	int advice; /* of madvise(2) */
};

struct mmap_blob {
	struct posix_blob posix;
	bool writing;
	pthread_rwlock_t lock; /* of map: read by those who copy, several at once */
	struct store_map map;
};

static int mmap_create(struct store **out, const void *config, struct store *lower, struct err *e)
{
	static const int advice[] = {[ADVICE_NORMAL] = MADV_NORMAL,
				     [ADVICE_SEQUENTIAL] = MADV_SEQUENTIAL,
				     [ADVICE_RANDOM] = MADV_RANDOM};
	const struct mmap_config *c = config;
	struct mmap_store *m;
	int rc = store_map_works(e);

	(void)lower;
	if (rc < 0)
		return rc;
	m = xcalloc(1, sizeof(*m));
	m->advice = advice[c->advice];
	*out = &m->base;
	return 0;
}

static int mmap_open(struct store *s, const char *path, unsigned how, struct blob *b, struct err *e)
{
	struct mmap_blob *mb = (struct mmap_blob *)b;
	int rc = posix_open(s, path, how, b, e);

	if (rc < 0)
		return rc;
	mb->map = (struct store_map){0};
	mb->writing = how & STORE_WRITE;
	pthread_rwlock_init(&mb->lock, NULL);
	return 0;
}

static int mmap_close(struct blob *b, struct err *e)
{
	struct mmap_blob *mb = (struct mmap_blob *)b;

	store_unmap(&mb->map);
	pthread_rwlock_destroy(&mb->lock);
	return posix_close(b, e);
}

/* Maps the file anew where it is longer than what is mapped. */
static int extend_mapping(struct mmap_blob *mb, uint64_t end, struct err *e)
{
	const struct mmap_store *m = (const struct mmap_store *)mb->posix.base.store;
	struct store_stat st;
	int rc;

	if (end <= mb->map.bytes)
		return 0;
	rc = posix_stat_blob(&mb->posix.base, &st, e);
	if (rc < 0 || st.bytes <= mb->map.bytes)
		return rc;
	store_unmap(&mb->map);
	rc = store_map(&mb->posix.base, st.bytes, &mb->map, e);
	if (rc == 0 && m->advice != MADV_NORMAL)
		madvise((void *)(uintptr_t)mb->map.at, (size_t)mb->map.bytes, m->advice);
	return rc;
}

/* The range is mapped, as far as the file goes, and stays so: the lock is held for reading. On
 * failure it is not held. */
static int hold_mapping(struct mmap_blob *mb, uint64_t end, struct err *e)
{
	uint64_t mapped = 0;

	for (;;) {
		int rc;

		pthread_rwlock_rdlock(&mb->lock);
		if (end <= mb->map.bytes || (mapped && mb->map.bytes >= mapped))
			return 0;
		pthread_rwlock_unlock(&mb->lock);
		pthread_rwlock_wrlock(&mb->lock);
		rc = extend_mapping(mb, end, e);
		mapped = mb->map.bytes;
		/* an empty file has nothing to map */
		if (rc < 0 || mapped == 0) {
			pthread_rwlock_unlock(&mb->lock);
			if (rc == 0)
				pthread_rwlock_rdlock(&mb->lock);
			return rc;
		}
		pthread_rwlock_unlock(&mb->lock);
	}
}

static ssize_t mmap_pread(struct blob *b, void *p, size_t n, uint64_t offset, struct err *e)
{
	struct mmap_blob *mb = (struct mmap_blob *)b;
	int rc;

	if (mb->writing)
		return posix_pread(b, p, n, offset, e);
	rc = hold_mapping(mb, offset + n, e);
	if (rc < 0)
		return rc;
	if (offset >= mb->map.bytes)
		n = 0;
	else if (n > mb->map.bytes - offset)
		n = (size_t)(mb->map.bytes - offset);
	if (n > 0)
		rc = store_map_copy(&mb->map, offset, p, n, e);
	pthread_rwlock_unlock(&mb->lock);
	return rc < 0 ? rc : (ssize_t)n;
}

/* What is mapped cannot be dropped from the cache, so the mapping goes first; the next read makes
 * another. */
static int mmap_drop(struct blob *b, uint64_t offset, uint64_t bytes, struct err *e)
{
	struct mmap_blob *mb = (struct mmap_blob *)b;

	pthread_rwlock_wrlock(&mb->lock);
	store_unmap(&mb->map);
	pthread_rwlock_unlock(&mb->lock);
	return posix_drop(b, offset, bytes, e);
}

const struct store_ops store_mmap = {
	.is.name = "mmap",
	.is.help = "files read by mapping them and copying (page faults); written with pwrite",
	.is.flags = STORE_HAS_FILES | STORE_MAPS,
	.is.options = mmap_options,
	.is.option_count = sizeof(mmap_options) / sizeof(mmap_options[0]),
	.is.config_bytes = sizeof(struct mmap_config),
	.blob_bytes = sizeof(struct mmap_blob),
	.create = mmap_create,
	.destroy = posix_destroy,
	.open = mmap_open,
	.close = mmap_close,
	.pread = mmap_pread,
	.pwrite = posix_pwrite,
	POSIX_NAME_OPS,
	.map = posix_map,
	.drop = mmap_drop,
};
