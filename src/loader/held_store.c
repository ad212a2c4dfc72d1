/* Bytes in memory, as a store. */
#include "loader/held_store.h"

#include <string.h>

static const struct held_store *held_of(const struct blob *b)
{
	return (const struct held_store *)(const void *)b->store;
}

static int held_open(struct store *s, const char *path, unsigned how, struct blob *b, struct err *e)
{
	(void)s, (void)path, (void)how, (void)b, (void)e;
	return 0;
}

static int held_close(struct blob *b, struct err *e)
{
	(void)b, (void)e;
	return 0;
}

static ssize_t held_pread(struct blob *b, void *p, size_t n, uint64_t offset, struct err *e)
{
	const struct held_store *s = held_of(b);
	uint64_t at = offset - s->begin;

	(void)e;
	if (offset < s->begin || at >= s->n)
		return 0;
	if (n > s->n - at)
		n = (size_t)(s->n - at);
	memcpy(p, s->data + at, n);
	return (ssize_t)n;
}

static int held_stat(struct blob *b, struct store_stat *out, struct err *e)
{
	(void)e;
	*out = (struct store_stat){.bytes = held_of(b)->file_bytes, .block_bytes = 4096};
	return 0;
}

static const struct store_ops held_ops = {
	.is.name = "held",
	.blob_bytes = sizeof(struct blob),
	.open = held_open,
	.close = held_close,
	.pread = held_pread,
	.stat_blob = held_stat,
};

void held_store_init(struct held_store *s)
{
	*s = (struct held_store){.base = {.ops = &held_ops}};
}
