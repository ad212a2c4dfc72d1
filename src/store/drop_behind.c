/* A store over another that leaves nothing in the page cache for long: what was read is given up
 * when its blob is closed, or, in a blob that stays open, whenever a window's worth of bytes was
 * read. The pages read ahead go with the rest at the close, also those that another reader of the
 * same file may still have wanted; but not those on their way from the device just then. */
#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "store/store.h"

struct drop_config {
	int64_t window;
};

static const struct opt drop_options[] = {
	STORE_OPTION("window", struct drop_config, window, OPT_I64, int64_t, "8388608",
		     "How many bytes are read from an open file before they are dropped; closing a "
		     "file drops all of it.",
		     .min = 4096, .max = 1e12, .unit = "bytes"),
};

struct drop_store {
	struct store base;
	uint64_t window;
};

struct drop_blob {
	struct blob base;
	pthread_mutex_t lock; /* of what follows: several reads may be under way */
	bool read;            /* anything, since it was opened */
	uint64_t low, high;   /* what was read since the last drop lies in between */
	uint64_t bytes;       /* and is that much */
};

static int drop_create(struct store **out, const void *config, struct store *lower, struct err *e)
{
	struct drop_store *d = xcalloc(1, sizeof(*d));

	(void)lower;
	(void)e;
	d->window = (uint64_t)((const struct drop_config *)config)->window;
	*out = &d->base;
	return 0;
}

static void drop_destroy(struct store *s)
{
	free(s);
}

static void forget_range(struct drop_blob *db)
{
	db->low = UINT64_MAX;
	db->high = 0;
	db->bytes = 0;
}

static int drop_open(struct store *s, const char *path, unsigned how, struct blob *b, struct err *e)
{
	struct drop_blob *db = (struct drop_blob *)b;
	int rc = store_open(s->lower, path, how, store_blob_below(b), e);

	if (rc < 0)
		return rc;
	pthread_mutex_init(&db->lock, NULL);
	db->read = false;
	forget_range(db);
	return 0;
}

static ssize_t drop_pread(struct blob *b, void *p, size_t n, uint64_t offset, struct err *e)
{
	const struct drop_store *d = (const struct drop_store *)b->store;
	struct drop_blob *db = (struct drop_blob *)b;
	ssize_t r = store_pread(store_blob_below(b), p, n, offset, e);
	uint64_t low = 0, high = 0;

	if (r <= 0)
		return r;
	pthread_mutex_lock(&db->lock);
	db->read = true;
	db->bytes += (uint64_t)r;
	if (offset < db->low)
		db->low = offset;
	if (offset + (uint64_t)r > db->high)
		db->high = offset + (uint64_t)r;
	if (db->bytes >= d->window) {
		low = db->low;
		high = db->high;
		forget_range(db);
	}
	pthread_mutex_unlock(&db->lock);
	if (low < high) {
		int rc = store_drop(store_blob_below(b), low, high - low, e);

		if (rc < 0)
			return rc;
	}
	return r;
}

static int drop_close(struct blob *b, struct err *e)
{
	struct drop_blob *db = (struct drop_blob *)b;
	int rc = db->read ? store_drop(store_blob_below(b), 0, 0, e) : 0;
	int closed = store_close(store_blob_below(b), rc ? NULL : e);

	pthread_mutex_destroy(&db->lock);
	return rc ? rc : closed;
}

const struct store_ops store_drop_behind = {
	.is.name = "drop_behind",
	.is.help = "drops data from the page cache once it has been read, so that no byte is "
		   "served from it twice",
	.is.flags = STORE_IS_SHIM | STORE_DROPS_BEHIND,
	.is.options = drop_options,
	.is.option_count = sizeof(drop_options) / sizeof(drop_options[0]),
	.is.config_bytes = sizeof(struct drop_config),
	.blob_bytes = sizeof(struct drop_blob),
	.create = drop_create,
	.destroy = drop_destroy,
	.open = drop_open,
	.close = drop_close,
	.pread = drop_pread,
};
