/* Finds stores by name, builds them from expressions, and counts and times what passes through. */
#include "store/store.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"

/* More parts than this is a mistake, not a stack of shims. */
#define PARTS_MAX 8

static _Thread_local int64_t served_rank = -1;

void store_serve_rank(uint32_t rank)
{
	served_rank = rank;
}

int64_t store_served_rank(void)
{
	return served_rank;
}

const struct store_ops *store_find(const char *name)
{
	for (size_t i = 0; store_table[i]; i++) {
		if (strcmp(store_table[i]->is.name, name) == 0)
			return store_table[i];
	}
	return NULL;
}

static int unknown_store(const char *name, const char *expression, struct err *e)
{
	const char *known[64];
	struct buf list = {0};
	const char *near;
	size_t n = 0;

	for (size_t i = 0; store_table[i] && n < 64; i++) {
		known[n++] = store_table[i]->is.name;
		buf_printf(&list, "%s%s", i ? ", " : "", store_table[i]->is.name);
	}
	near = str_nearest(name, known, n);
	if (near)
		err_set(e, ERR_USAGE,
			"unknown store '%s' (in '%s'); did you mean '%s'? The stores are: %s", name,
			expression, near, list.data ? list.data : "");
	else
		err_set(e, ERR_USAGE, "unknown store '%s' (in '%s'); the stores are: %s", name,
			expression, list.data ? list.data : "");
	buf_release(&list);
	return ERR_USAGE;
}

static int unknown_option(const struct store_ops *ops, const char *key,
			  const struct node_mark *mark, struct err *e)
{
	const char *near = opt_nearest_key(ops->is.options, ops->is.option_count, key);
	char where[300];

	node_mark_text(*mark, where, sizeof(where));
	if (ops->is.option_count == 0)
		return err_set(e, ERR_USAGE,
			       "%s: unknown key 'storage.%s.%s': the store '%s' has no options",
			       where, ops->is.name, key, ops->is.name);
	if (near)
		return err_set(e, ERR_USAGE,
			       "%s: unknown key 'storage.%s.%s'; did you mean 'storage.%s.%s'?",
			       where, ops->is.name, key, ops->is.name, near);
	return err_set(
		e, ERR_USAGE,
		"%s: unknown key 'storage.%s.%s'; 'stoker show stores' lists the supported keys",
		where, ops->is.name, key);
}

static int read_options(const struct store_ops *ops, const struct node *storage, void *config,
			struct err *e)
{
	const struct node *own =
		storage && storage->kind == NODE_MAP ? node_get(storage, ops->is.name) : NULL;
	int rc = opt_set_defaults(ops->is.options, ops->is.option_count, config, e);

	if (rc < 0 || !own || own->kind == NODE_NULL)
		return rc;
	if (own->kind != NODE_MAP) {
		char where[300];

		return err_set(e, ERR_USAGE,
			       "%s: 'storage.%s' is a %s; a map of the store's options is expected",
			       node_mark_text(own->mark, where, sizeof(where)), ops->is.name,
			       node_kind_name(own->kind));
	}
	for (size_t i = 0; i < own->n; i++) {
		const struct opt *row =
			opt_find(ops->is.options, ops->is.option_count, own->key[i]);
		struct err why;

		if (!row)
			return unknown_option(ops, own->key[i], &own->key_mark[i], e);
		rc = opt_set_node(row, own->child[i], config, &why);
		if (rc < 0)
			return err_set(e, rc, "storage.%s: %s", ops->is.name, why.text);
	}
	return 0;
}

/* Takes over `lower` in any case. */
static int create_part(struct store **out, const struct store_ops *ops, const struct node *storage,
		       struct store *lower, struct err *e)
{
	void *config = xcalloc(1, ops->is.config_bytes ? ops->is.config_bytes : 1);
	int rc = read_options(ops, storage, config, e) ?: ops->create(out, config, lower, e);

	if (rc == 0) {
		(*out)->ops = ops;
		(*out)->lower = lower;
	} else {
		store_destroy(lower);
	}
	opt_release(ops->is.options, ops->is.option_count, config);
	free(config);
	return rc;
}

/* Cuts "a + b+c" at the plus signs into trimmed names; `text` is written to. */
static int split_expression(char *text, const char *expression, char **part, size_t *count,
			    struct err *e)
{
	size_t n = 0;

	for (char *p = text; p;) {
		char *plus = strchr(p, '+');
		size_t len;

		if (plus)
			*plus = '\0';
		p += strspn(p, " \t");
		len = strlen(p);
		while (len && (p[len - 1] == ' ' || p[len - 1] == '\t'))
			p[--len] = '\0';
		if (len == 0)
			return err_set(
				e, ERR_USAGE,
				"the store '%s' has an empty part; write it like 'throttle+posix'",
				expression);
		if (n == PARTS_MAX)
			return err_set(e, ERR_USAGE, "the store '%s' has more than %d parts",
				       expression, PARTS_MAX);
		part[n++] = p;
		p = plus ? plus + 1 : NULL;
	}
	*count = n;
	return 0;
}

static int find_parts(const char *expression, char *const *part, size_t n,
		      const struct store_ops **ops, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		bool shim;

		ops[i] = store_find(part[i]);
		if (!ops[i])
			return unknown_store(part[i], expression, e);
		shim = ops[i]->is.flags & STORE_IS_SHIM;
		if (shim && i + 1 == n)
			return err_set(e, ERR_USAGE,
				       "'%s' modifies another store and holds no data itself: "
				       "write '%s+posix' instead of '%s'",
				       part[i], expression, expression);
		if (!shim && i + 1 < n)
			return err_set(e, ERR_USAGE,
				       "in the store '%s', '%s' must come last: it cannot have a "
				       "store below it",
				       expression, part[i]);
	}
	return 0;
}

int store_create(struct store **out, const char *expression, const struct node *storage,
		 struct err *e)
{
	AUTO_FREE char *text = xstrdup(expression);
	const struct store_ops *ops[PARTS_MAX];
	char *part[PARTS_MAX];
	struct store *s = NULL;
	size_t n = 0;
	int rc = split_expression(text, expression, part, &n, e);

	if (rc == 0)
		rc = find_parts(expression, part, n, ops, e);
	while (rc == 0 && n > 0) {
		struct store *above = NULL;

		n--;
		rc = create_part(&above, ops[n], storage, s, e);
		s = above;
	}
	if (rc == 0)
		*out = s;
	return rc;
}

void store_destroy(struct store *s)
{
	while (s) {
		struct store *lower = s->lower;

		s->ops->destroy(s);
		s = lower;
	}
}

size_t store_blob_bytes(const struct store *s)
{
	size_t n = 0;

	for (; s; s = s->lower)
		n += store_blob_align(s->ops->blob_bytes);
	return n;
}

unsigned store_base_flags(const struct store *s)
{
	while (s->lower)
		s = s->lower;
	return s->ops->is.flags;
}

struct blob *store_blob_new(const struct store *s, struct err *e)
{
	return try_calloc(1, store_blob_bytes(s), "an open file of a store", e);
}

/* ---- operations, passed on by shims that leave them out ---- */

#define HANDLER(s, op)                                                                             \
	({                                                                                         \
		struct store *handler_ = (s);                                                      \
                                                                                                   \
		while (!handler_->ops->op) {                                                       \
			assert(handler_->lower);                                                   \
			handler_ = handler_->lower;                                                \
		}                                                                                  \
		handler_;                                                                          \
	})

#define BLOB_HANDLER(b, op)                                                                        \
	({                                                                                         \
		struct blob *blob_ = (b);                                                          \
                                                                                                   \
		while (!blob_->store->ops->op) {                                                   \
			assert(blob_->store->lower);                                               \
			blob_ = store_blob_below(blob_);                                           \
		}                                                                                  \
		blob_;                                                                             \
	})

/* A store's sentences about a path name it; those about a blob do not. */
static int of_path(int rc, struct err *e)
{
	return rc < 0 ? err_named(rc, e) : rc;
}

int store_open(struct store *s, const char *path, unsigned how, struct blob *b, struct err *e)
{
	b->store = s;
	while (!s->ops->open) {
		b = store_blob_below(b);
		b->store = s = s->lower;
	}
	return of_path(s->ops->open(s, path, how, b, e), e);
}

int store_close(struct blob *b, struct err *e)
{
	b = BLOB_HANDLER(b, close);
	return b->store->ops->close(b, e);
}

int store_sync(struct blob *b, struct err *e)
{
	b = BLOB_HANDLER(b, sync);
	return b->store->ops->sync(b, e);
}

int store_stat_blob(struct blob *b, struct store_stat *out, struct err *e)
{
	b = BLOB_HANDLER(b, stat_blob);
	return b->store->ops->stat_blob(b, out, e);
}

int store_stat_path(struct store *s, const char *path, struct store_stat *out, struct err *e)
{
	s = HANDLER(s, stat);
	return of_path(s->ops->stat(s, path, out, e), e);
}

int store_mkdirs(struct store *s, const char *path, struct err *e)
{
	s = HANDLER(s, mkdirs);
	return of_path(s->ops->mkdirs(s, path, e), e);
}

int store_list(struct store *s, const char *path, store_list_fn fn, void *arg, struct err *e)
{
	s = HANDLER(s, list);
	return of_path(s->ops->list(s, path, fn, arg, e), e);
}

int store_list_sizes(struct store *s, const char *path, store_sizes_fn fn, void *arg, struct err *e)
{
	const struct store *last = s;

	while (!last->ops->list_sizes && last->lower)
		last = last->lower;
	if (!last->ops->list_sizes)
		return -ENOTSUP;
	s = HANDLER(s, list_sizes);
	return s->ops->list_sizes(s, path, fn, arg, e);
}

int store_remove(struct store *s, const char *path, struct err *e)
{
	s = HANDLER(s, remove);
	return of_path(s->ops->remove(s, path, e), e);
}

int store_rename(struct store *s, const char *from, const char *to, struct err *e)
{
	s = HANDLER(s, rename);
	return of_path(s->ops->rename(s, from, to, e), e);
}

int store_sync_dir(struct store *s, const char *path, struct err *e)
{
	s = HANDLER(s, sync_dir);
	return of_path(s->ops->sync_dir(s, path, e), e);
}

int store_space(struct store *s, const char *path, uint64_t *bytes, uint64_t *files, struct err *e)
{
	s = HANDLER(s, space);
	return of_path(s->ops->space(s, path, bytes, files, e), e);
}

int store_descriptor(struct blob *b)
{
	b = BLOB_HANDLER(b, descriptor);
	return b->store->ops->descriptor(b);
}

int store_drop(struct blob *b, uint64_t offset, uint64_t bytes, struct err *e)
{
	while (!b->store->ops->drop && b->store->lower)
		b = store_blob_below(b);
	return b->store->ops->drop ? b->store->ops->drop(b, offset, bytes, e) : 0;
}
