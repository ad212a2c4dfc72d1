/* A store for a test: files whose bytes are all combined with a key, so that only it can read what
 * it wrote. */
#include <stdint.h>

#include "base/alloc.h"
#include "store/posix.h"

struct toy_config {
	int64_t key;
};

static const struct opt toy_options[] = {
	{.key = "key",
	 .type = OPT_I64,
	 .offset = OPT_FIELD(struct toy_config, key, int64_t),
	 .def = "90",
	 .min = 1,
	 .max = 255,
	 .help = "What the bytes of toys are combined with."},
};

struct toy {
	struct store base;
	unsigned char key;
};

static int toy_create(struct store **out, const void *config, struct store *lower, struct err *e)
{
	const struct toy_config *c = config;
	struct toy *t = xcalloc(1, sizeof(*t));

	(void)lower, (void)e;
	t->key = (unsigned char)c->key;
	*out = &t->base;
	return 0;
}

static unsigned char key_of(const struct blob *b)
{
	return ((const struct toy *)b->store)->key;
}

static ssize_t toy_pread(struct blob *b, void *p, size_t n, uint64_t offset, struct err *e)
{
	ssize_t got = posix_pread(b, p, n, offset, e);

	for (ssize_t i = 0; i < got; i++)
		((unsigned char *)p)[i] ^= key_of(b);
	return got;
}

static ssize_t toy_pwrite(struct blob *b, const void *p, size_t n, uint64_t offset, struct err *e)
{
	unsigned char piece[4096];

	for (size_t done = 0; done < n;) {
		size_t now = n - done < sizeof(piece) ? n - done : sizeof(piece);
		ssize_t rc;

		for (size_t i = 0; i < now; i++)
			piece[i] = ((const unsigned char *)p)[done + i] ^ key_of(b);
		rc = posix_pwrite(b, piece, now, offset + done, e);
		if (rc < 0)
			return rc;
		done += now;
	}
	return (ssize_t)n;
}

const struct store_ops store_toy = {
	.is.name = "toy",
	.is.help = "files that only this store can read",
	.is.flags = STORE_HAS_FILES,
	.is.options = toy_options,
	.is.option_count = sizeof(toy_options) / sizeof(toy_options[0]),
	.is.config_bytes = sizeof(struct toy_config),
	.blob_bytes = sizeof(struct posix_blob),
	.create = toy_create,
	.destroy = posix_destroy,
	.open = posix_open,
	.close = posix_close,
	.pread = toy_pread,
	.pwrite = toy_pwrite,
	.sync = posix_sync,
	.stat_blob = posix_stat_blob,
	.stat = posix_stat,
	.mkdirs = posix_mkdirs,
	.list = posix_list,
	.remove = posix_remove,
	.rename = posix_rename,
	.sync_dir = posix_sync_dir,
	.space = posix_space,
	.drop = posix_drop,
};
