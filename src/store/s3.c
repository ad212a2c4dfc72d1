/* Objects of a bucket of an S3 server, over HTTP/1.1 of our own: whole objects are written, ranges
 * of them are read. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "store/s3_answer.h"
#include "store/s3_store.h"
#include "store/servers.h"

#define BLOCK_BYTES (1u << 20) /* what libraries size their reads by */
#define RETRIES 5
#define PUT_BYTES (16 << 20)
#define PARTS_IN_FLIGHT 4

static const char *const balances[] = {"rank", "thread", "round_robin", "least_busy", NULL};
static const char *const addressings[] = {"auto", "path", "host", NULL};

#define OPTION(k, field, t, ctype, d, ...)                                                         \
	STORE_OPTION(k, struct s3_options, field, t, ctype, d, __VA_ARGS__)

static const struct opt s3_rows[] = {
	OPTION("bucket", bucket, OPT_STR, char *, NULL,
	       "The bucket. With storage.storage_type s3 it is storage.storage_root."),
	OPTION("endpoints", endpoints, OPT_STR_LIST, struct str_list, "[]",
	       "Addresses of the servers, such as http://host:9000. Empty: S3_ENDPOINT_URIS (a "
	       "list), "
	       "S3_ENDPOINT_TEMPLATE (http://h{1...8}:9000), S3_ENDPOINT_FILE (one a line), "
	       "AWS_ENDPOINT_URL, or Amazon's of the region."),
	OPTION("balance", balance, OPT_ENUM, int, "rank",
	       "Which of n endpoints a request goes to: rank r has number r modulo n; thread gives "
	       "each thread one of them in turn, round_robin each request, least_busy takes the "
	       "one "
	       "with the fewest requests under way. Left at rank, S3_LOAD_BALANCE_STRATEGY "
	       "(round_robin, least_connections) decides where it is set.",
	       .choices = balances),
	OPTION("region", region, OPT_STR, char *, NULL,
	       "The region that requests are signed for. Absent: AWS_REGION, else us-east-1."),
	OPTION("addressing", addressing, OPT_ENUM, int, "auto",
	       "Whether the bucket is the first part of the path or of the host's name; auto: of "
	       "the "
	       "path where an endpoint is given.",
	       .choices = addressings),
	OPTION("profile", profile, OPT_STR, char *, NULL,
	       "The profile of ~/.aws/credentials (or AWS_SHARED_CREDENTIALS_FILE) that the keys "
	       "are "
	       "taken from. Absent: the environment, then AWS_PROFILE, then default."),
	OPTION("sign", sign, OPT_BOOL, bool, "true",
	       "Whether requests are signed. Unsigned ones need no credentials."),
	OPTION("client", client, OPT_ENUM, int, "native",
	       "Whose requests are made: whether a HEAD comes first, how whole objects are asked "
	       "for "
	       "(reader.access object), retries, and the parts of uploads, where the keys for "
	       "these "
	       "have their defaults. native: as those keys say. The default follows "
	       "storage.storage_options.storage_library and DLIO_STORAGE_LIBRARY; with "
	       "storage_options that name no library it is s3torchconnector's, the only one that "
	       "DLIO had.",
	       .choices = s3_profile_names),
	OPTION("head_on_open", head_on_open, OPT_BOOL, bool, "true",
	       "Whether opening an object asks for its size (HEAD). Without it, an object that is "
	       "absent is found by the first read."),
	OPTION("put_bytes", put_bytes, OPT_I64, int64_t, "16777216",
	       "Objects up to this size are written by one request, larger ones in parts; 0: all "
	       "in "
	       "parts.",
	       .min = 0, .max = 5368709120.0, .unit = "bytes"),
	OPTION("part_bytes", part_bytes, OPT_I64, int64_t, "16777216",
	       "Size of the parts of larger objects. It doubles every 1,000 parts, as S3 allows "
	       "10,000.",
	       .min = 5242880, .max = 1073741824, .unit = "bytes"),
	OPTION("parts_in_flight", parts_in_flight, OPT_I64, int64_t, "4",
	       "Parts of one object that are sent at the same time; each is held in memory.",
	       .min = 1, .max = 64, .unit = "parts"),
	OPTION("prefetch_window", prefetch_window, OPT_I64, int64_t, "0",
	       "With reader.access object: objects that a worker asks for ahead of its batches, "
	       "as DLIO's storage_options.prefetch_window. 0: as many as DLIO has with the client.",
	       .min = 0, .max = STORE_DEPTH_MAX, .unit = "objects"),
	OPTION("stagger_workers", stagger_workers, OPT_BOOL, bool, "true",
	       "With reader.access object and the clients minio and s3torchconnector: whether "
	       "worker "
	       "k begins each epoch k times train.computation_time later, as DLIO's do."),
	OPTION("list_page", list_page, OPT_I64, int64_t, "1000",
	       "Keys that one request for a list asks for.", .min = 1, .max = 1000, .unit = "keys"),
	OPTION("retries", retries, OPT_I64, int64_t, "5",
	       "How often a request is sent again after an answer 500, 502, 503, 504 or 429, or "
	       "after its connection was lost.",
	       .min = 0, .max = 100, .unit = "requests"),
	OPTION("retry_first", retry_first, OPT_F64, double, "0.1",
	       "The longest pause before the first repetition; each further one doubles it. The "
	       "pause is drawn from zero to that.",
	       .min = 0, .max = 3600, .unit = "s"),
	OPTION("retry_most", retry_most, OPT_F64, double, "20",
	       "The longest pause there is, also where the server asks for one (Retry-After).",
	       .min = 0, .max = 3600, .unit = "s"),
	OPTION("connect_time", connect_time, OPT_F64, double, "20",
	       "Time limit of opening a connection; 0: none.", .min = 0, .max = 86400, .unit = "s"),
	OPTION("answer_time", answer_time, OPT_F64, double, "60",
	       "Time limit from a request to the first byte of its answer; 0: none.", .min = 0,
	       .max = 86400, .unit = "s"),
	OPTION("idle_time", idle_time, OPT_F64, double, "30",
	       "Time limit without a byte in the middle of a transfer; 0: none.", .min = 0,
	       .max = 86400, .unit = "s"),
};

static struct s3_blob *blob_of(struct blob *b)
{
	return (struct s3_blob *)b;
}

static void keep_options(struct s3_options *to, const struct s3_options *from)
{
	*to = *from;
	to->bucket = from->bucket ? xstrdup(from->bucket) : NULL;
	to->region = from->region ? xstrdup(from->region) : NULL;
	to->profile = from->profile && *from->profile ? xstrdup(from->profile) : NULL;
	memset(&to->endpoints, 0, sizeof(to->endpoints));
	str_list_copy(&to->endpoints, &from->endpoints);
}

/* What the client does, where the key that says so has its default. */
static void take_profile(struct s3_store *s)
{
	struct s3_options *o = &s->options;
	const struct s3_profile *p = &s3_profiles[o->client];

	s->profile = p;
	if (o->client == S3_NATIVE)
		return;
	o->head_on_open = o->head_on_open && p->head == S3_HEAD_ALWAYS;
	if (o->retries == RETRIES)
		o->retries = p->retries;
	if (o->put_bytes == PUT_BYTES)
		o->put_bytes = (int64_t)p->put_bytes;
	if (o->part_bytes == PUT_BYTES)
		o->part_bytes = (int64_t)p->put_part;
	if (o->parts_in_flight == PARTS_IN_FLIGHT)
		o->parts_in_flight = p->put_parts;
}

static void release(struct s3_store *s)
{
	for (unsigned i = 0; i < s->buffers; i++)
		free(s->buffer[i]);
	pthread_mutex_destroy(&s->lock);
	str_list_release(&s->looked);
	free(s->options.bucket);
	free(s->options.region);
	free(s->options.profile);
	str_list_release(&s->options.endpoints);
	free(s);
}

static int s3_create(struct store **out, const void *config, struct store *lower, struct err *e)
{
	struct s3_store *s = xcalloc(1, sizeof(*s));
	int rc;

	(void)lower;
	keep_options(&s->options, config);
	take_profile(s);
	pthread_mutex_init(&s->lock, NULL);
	rc = s3_client_create(&s->client, &s->options, e);
	if (rc < 0)
		release(s);
	else
		*out = &s->base;
	return rc;
}

static void s3_destroy(struct store *s)
{
	s3_client_destroy(s3_of(s)->client);
	release(s3_of(s));
}

/* ---- looking ---- */

static int head(struct s3_client *c, const char *path, struct store_stat *out, char *etag,
		struct err *e)
{
	struct s3_call *call = s3_call_take(c);
	int rc;

	call->kind = SERVER_HEAD;
	call->path = path;
	rc = s3_call_run(call, e);
	if (rc == 0) {
		*out = (struct store_stat){.bytes = call->length,
					   .block_bytes = BLOCK_BYTES,
					   .mtime_ns = call->modified_s * NS_PER_S};
		if (etag)
			memcpy(etag, call->etag, S3_ETAG_MAX);
	}
	s3_call_give(call);
	return rc;
}

static int look(struct s3_blob *b, struct err *e)
{
	struct store_stat st = {0};
	int rc;

	if (atomic_load_explicit(&b->size, memory_order_acquire) != UINT64_MAX)
		return 0;
	rc = head(s3_of(b->base.store)->client, b->path, &st, NULL, e);
	if (rc < 0)
		return rc;
	b->modified_s = st.mtime_ns / NS_PER_S;
	atomic_store_explicit(&b->size, st.bytes, memory_order_release);
	return 0;
}

/* The path of a name in memory of S3_PATH_MAX bytes. */
static int put_path(const struct s3_store *s, const char *name, char *out, struct err *e)
{
	struct buf b = {.data = out, .cap = S3_PATH_MAX};
	int rc = s3_path(s->client, name, &b, e);

	return rc;
}

static int s3_open(struct store *s, const char *path, unsigned how, struct blob *base,
		   struct err *e)
{
	struct s3_blob *b = blob_of(base);
	struct store_stat st;
	int rc = put_path(s3_of(s), path, b->path, e);

	b->how = how;
	b->writer = NULL;
	b->stream = NULL;
	b->block = NULL;
	b->block_cap = b->block_n = 0;
	atomic_init(&b->block_used, false);
	b->at = 0;
	b->over = false;
	b->etag[0] = '\0';
	b->modified_s = 0;
	atomic_init(&b->size, UINT64_MAX);
	if (rc < 0)
		return rc;
	if (!*s3_key(s3_of(s)->client, path))
		return err_sys(e, EISDIR, "cannot open '%s'", path);
	if (how & STORE_UNNAMED)
		return err_set(e, ERR_ABSENT, "an object without a name");
	if (how & STORE_NEW && head(s3_of(s)->client, b->path, &st, NULL, e) == 0)
		return err_sys(e, EEXIST, "cannot create '%s'", path);
	if (how & STORE_CREATE) {
		b->writer = s3_writer_begin(s3_of(s), b->path);
		return 0;
	}
	if (how & STORE_WRITE)
		return err_set(e, ERR_ABSENT,
			       "cannot open '%s' for changing it: objects of S3 are written whole",
			       path);
	if (!s3_of(s)->options.head_on_open || how & (STORE_WHOLE | STORE_STREAM))
		return 0;
	rc = head(s3_of(s)->client, b->path, &st, b->etag, e);
	if (rc == 0) {
		b->modified_s = st.mtime_ns / NS_PER_S;
		atomic_store_explicit(&b->size, st.bytes, memory_order_release);
	}
	return rc;
}

static int s3_close(struct blob *base, struct err *e)
{
	struct s3_writer *w = blob_of(base)->writer;

	blob_of(base)->writer = NULL;
	s3_stream_end(blob_of(base));
	free(blob_of(base)->block);
	blob_of(base)->block = NULL;
	return w ? s3_writer_end(w, e) : 0;
}

/* ---- reading ---- */

static ssize_t s3_pread(struct blob *base, void *p, size_t n, uint64_t offset, struct err *e)
{
	struct s3_store *s = s3_of(base->store);
	struct s3_blob *b = blob_of(base);
	int rc;

	if (!(b->how & STORE_READ))
		return err_set(e, -EBADF, "reading from a blob that was opened for writing only");
	if (b->writer)
		return s3_writer_get(b->writer, p, n, offset, e);
	if (b->how & STORE_STREAM && offset == b->at)
		return s3_stream_read(b, p, n, e);
	n = (size_t)s3_clip(b, n, offset);
	if (n == 0)
		return 0;
	if (s->profile->head == S3_HEAD_LARGE && n >= s->profile->head_from &&
	    (rc = look(b, e)) < 0)
		return rc;
	if (s->profile->read_ahead &&
	    !atomic_exchange_explicit(&b->block_used, true, memory_order_acquire)) {
		ssize_t got = s3_block_read(b, p, n, offset, e);

		atomic_store_explicit(&b->block_used, false, memory_order_release);
		return got;
	}
	return s3_range_read(b, p, n, offset, e);
}

static ssize_t s3_pwrite(struct blob *base, const void *p, size_t n, uint64_t offset, struct err *e)
{
	struct s3_blob *b = blob_of(base);

	if (!b->writer)
		return err_set(e, -EBADF, "writing to a blob that was opened for reading only");
	return s3_writer_put(b->writer, p, n, offset, e);
}

/* There is nothing to sync before the object is there, and nothing afterwards. */
static int s3_sync(struct blob *b, struct err *e)
{
	(void)b;
	(void)e;
	return 0;
}

static int s3_stat_blob(struct blob *base, struct store_stat *out, struct err *e)
{
	struct s3_blob *b = blob_of(base);
	bool unknown = b->how & STORE_STREAM;
	int rc = b->writer || unknown ? 0 : look(b, e);

	if (rc == 0)
		*out = (struct store_stat){
			.bytes = b->writer ? s3_writer_bytes(b->writer)
					   : atomic_load_explicit(&b->size, memory_order_acquire),
			.block_bytes = BLOCK_BYTES,
			.mtime_ns = b->modified_s * NS_PER_S};
	return rc;
}

/* ---- folders, which are beginnings of keys ---- */

struct listing {
	store_sizes_fn fn;
	void *arg;
	size_t prefix_n;
	uint64_t entries;
	struct buf *names; /* one byte 'd' or 'f', 8 bytes of its size, the name, a NUL */
};

static int one_key(void *arg, const char *key, bool is_prefix, uint64_t bytes)
{
	struct listing *l = arg;
	size_t n = strlen(key);

	l->entries++;
	if (n <= l->prefix_n || !l->names)
		return 0; /* the folder itself, as some programs make one */
	buf_putc(l->names, is_prefix ? 'd' : 'f');
	buf_append(l->names, &bytes, sizeof(bytes));
	buf_append(l->names, key + l->prefix_n, n - l->prefix_n - (is_prefix ? 1 : 0));
	buf_putc(l->names, '\0');
	return 0;
}

/* The prefix of a folder's keys, and what a query needs of it. */
static char *prefix_of(const struct s3_store *s, const char *path)
{
	const char *key = s3_key(s->client, path);
	size_t n = strlen(key);
	struct buf b = {0};

	while (n && key[n - 1] == '/')
		n--;
	for (size_t i = 0; i < n; i++)
		if (key[i] != '/' || i == 0 || key[i - 1] != '/')
			buf_putc(&b, key[i]);
	if (n)
		buf_putc(&b, '/');
	return buf_take(&b);
}

/* A page of the names below a prefix; `token` says where it begins and, afterwards, the next one.
 */
static int list_page(struct s3_store *s, struct listing *l, const char *prefix, int64_t keys,
		     struct buf *token, bool *more, struct err *e)
{
	struct s3_call *call = s3_call_take(s->client);
	AUTO_FREE char *bucket = xasprintf("%s/", s->client->bucket_path);
	struct buf query = {0};
	int rc;

	if (token->len) {
		buf_puts(&query, "continuation-token=");
		url_encode(&query, token->data, token->len, false);
		buf_putc(&query, '&');
	}
	buf_printf(&query, "delimiter=%%2F&encoding-type=url&list-type=2&max-keys=%lld&prefix=",
		   (long long)keys);
	url_encode(&query, prefix, strlen(prefix), false);
	call->kind = SERVER_LIST;
	call->path = bucket;
	call->query = query.data;
	rc = s3_call_run(call, e) ?: s3_list_page(call, one_key, l, token, more, e);
	if (rc == -ENOENT)
		rc = -ENXIO; /* the bucket, not the folder */
	buf_release(&query);
	s3_call_give(call);
	return rc;
}

static int tell_names(struct listing *l)
{
	const char *name;
	uint64_t bytes;
	int rc = 0;

	for (size_t at = 0; rc >= 0 && at < l->names->len;) {
		bool is_folder = l->names->data[at] == 'd';

		memcpy(&bytes, l->names->data + at + 1, sizeof(bytes));
		name = l->names->data + at + 1 + sizeof(bytes);
		rc = l->fn(l->arg, name, is_folder, bytes);
		at += 1 + sizeof(bytes) + strlen(name) + 1;
	}
	buf_reset(l->names);
	return rc;
}

static int s3_list_sizes(struct store *base, const char *path, store_sizes_fn fn, void *arg,
			 struct err *e)
{
	struct s3_store *s = s3_of(base);
	AUTO_FREE char *prefix = prefix_of(s, path);
	AUTO_FREE char *seen = NULL; /* the token of page number 1, 2, 4, 8, ... */
	uint64_t pages = 0;
	struct buf names = {0}, token = {0};
	struct listing l = {.fn = fn, .arg = arg, .prefix_n = strlen(prefix), .names = &names};
	char at[S3_PATH_MAX];
	bool more = true;
	int rc = put_path(s, path, at, e);

	while (rc >= 0 && more) {
		rc = list_page(s, &l, prefix, s->options.list_page, &token, &more, e);
		if (rc >= 0)
			rc = tell_names(&l);
		if (rc < 0 || !more)
			break;
		if (seen && strcmp(seen, token.data) == 0)
			rc = err_set(e, ERR_DATA,
				     "cannot list '%s': the server sends the same pages without "
				     "end",
				     path);
		pages++;
		if ((pages & (pages - 1)) == 0) {
			free(seen);
			seen = xstrdup(token.data);
		}
	}
	if (rc >= 0 && l.entries == 0 && l.prefix_n)
		rc = err_sys(e, ENOENT, "cannot list the folder '%s'", path);
	buf_release(&names);
	buf_release(&token);
	return rc < 0 ? rc : 0;
}

struct names_only {
	store_list_fn fn;
	void *arg;
};

static int name_only(void *arg, const char *name, bool is_dir, uint64_t bytes)
{
	struct names_only *n = arg;

	(void)bytes;
	return n->fn(n->arg, name, is_dir);
}

static int s3_list(struct store *base, const char *path, store_list_fn fn, void *arg, struct err *e)
{
	struct names_only n = {fn, arg};

	return s3_list_sizes(base, path, name_only, &n, e);
}

/* Whether there are keys below a name: 1, 0 or negative. */
static int is_folder(struct s3_store *s, const char *path, struct err *e)
{
	AUTO_FREE char *prefix = prefix_of(s, path);
	struct listing l = {.prefix_n = strlen(prefix)};
	struct buf token = {0};
	bool more;
	int rc = list_page(s, &l, prefix, 1, &token, &more, e);

	buf_release(&token);
	return rc < 0 ? rc : l.entries > 0 || !l.prefix_n;
}

static int s3_stat(struct store *base, const char *path, struct store_stat *out, struct err *e)
{
	struct s3_store *s = s3_of(base);
	char at[S3_PATH_MAX];
	struct err why = {0};
	int rc = put_path(s, path, at, e), folder;

	if (rc < 0)
		return rc;
	rc = *s3_key(s->client, path) ? head(s->client, at, out, NULL, &why) : -ENOENT;
	if (rc == 0)
		return 0;
	if (rc != -ENOENT) {
		if (e)
			*e = why;
		return rc;
	}
	folder = is_folder(s, path, e);
	if (folder < 0)
		return folder;
	if (!folder)
		return err_sys(e, ENOENT, "cannot find '%s'", path);
	*out = (struct store_stat){.is_dir = true, .block_bytes = BLOCK_BYTES};
	return 0;
}

#define LOOKED_MOST 16

/* Whether a folder, or one above it, has not been looked at yet. */
static bool is_new(struct s3_store *s, const char *prefix)
{
	bool fresh;

	pthread_mutex_lock(&s->lock);
	fresh = s->looked.n < LOOKED_MOST;
	for (size_t i = 0; fresh && i < s->looked.n; i++)
		fresh = !str_starts(prefix, s->looked.v[i]);
	if (fresh)
		str_list_add(&s->looked, xstrdup(prefix));
	pthread_mutex_unlock(&s->lock);
	return fresh;
}

/* The folder that `prefix` is in, with its slash, or itself where that is the bucket. Checkpoints
 * have a folder each: they are looked at together, with the first of them. */
static void to_parent(char *prefix)
{
	size_t n = strlen(prefix);

	while (n > 0 && prefix[n - 1] == '/')
		n--;
	while (n > 0 && prefix[n - 1] != '/')
		n--;
	if (n > 0)
		prefix[n] = '\0';
}

/* A folder is there once there is an object in it. Parts of uploads that a killed run has left
 * behind are seen by nobody and paid for: they are told, not removed, since another program may be
 * at it just now. A server that lists no uploads is none the worse. */
static int s3_mkdirs(struct store *base, const char *path, struct err *e)
{
	struct s3_store *s = s3_of(base);
	AUTO_FREE char *prefix = prefix_of(s, path);
	AUTO_FREE char *bucket = xasprintf("%s/", s->client->bucket_path);
	struct buf query = {0}, key = {0};
	struct s3_call *call;
	unsigned n;

	(void)e;
	to_parent(prefix);
	if (!is_new(s, prefix))
		return 0;
	call = s3_call_take(s->client);
	buf_puts(&query, "max-uploads=1000&prefix=");
	url_encode(&query, prefix, strlen(prefix), false);
	buf_puts(&query, "&uploads=");
	call->kind = SERVER_LIST;
	call->path = bucket;
	call->query = query.data;
	call->once = true;
	if (s3_call_run(call, NULL) == 0) {
		n = s3_count_uploads(call, &key);
		if (n > 0)
			log_warning(
				"%u%s unfinished uploads are below 's3://%s/%s', one of '%s': "
				"unless a program is writing them now, earlier runs left them "
				"behind; their parts take space until they are aborted (aws s3api "
				"abort-multipart-upload, or a rule of the bucket that does it)",
				n, n == 1000 ? " or more" : "", s->options.bucket, prefix,
				key.data ? key.data : "");
	}
	s3_call_give(call);
	buf_release(&query);
	buf_release(&key);
	return 0;
}

static int s3_nothing(struct store *s, const char *path, struct err *e)
{
	(void)s;
	(void)path;
	(void)e;
	return 0;
}

static int s3_remove(struct store *base, const char *path, struct err *e)
{
	struct s3_store *s = s3_of(base);
	struct s3_call *call;
	char at[S3_PATH_MAX];
	int rc = put_path(s, path, at, e);

	if (rc < 0 || !*s3_key(s->client, path))
		return rc;
	call = s3_call_take(s->client);
	call->kind = SERVER_DELETE;
	call->path = at;
	rc = s3_call_run(call, e);
	s3_call_give(call);
	return rc;
}

/* Not at one moment: S3 has no other way than a copy and a removal. */
static int s3_rename(struct store *base, const char *from, const char *to, struct err *e)
{
	struct s3_store *s = s3_of(base);
	struct s3_call *call;
	char source[S3_PATH_MAX + 80], target[S3_PATH_MAX];
	size_t n = 0;
	int rc;

	/* the source is named with its bucket in any case */
	if (!s->client->by_path)
		n = (size_t)snprintf(source, sizeof(source), "/%s", s->options.bucket);
	rc = put_path(s, from, source + n, e) ?: put_path(s, to, target, e);
	if (rc < 0)
		return rc;
	call = s3_call_take(s->client);
	call->kind = SERVER_COPY;
	call->path = target;
	call->copy_source = source;
	rc = s3_call_run(call, e);
	s3_call_give(call);
	return rc < 0 ? rc : s3_remove(base, from, e);
}

static int s3_space(struct store *s, const char *path, uint64_t *bytes, uint64_t *files,
		    struct err *e)
{
	*bytes = UINT64_MAX;
	*files = UINT64_MAX;
	return s3_nothing(s, path, e);
}

static uint64_t value(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static bool s3_server(const struct store *base, unsigned i, struct store_server *out)
{
	const struct s3_store *s = (const struct s3_store *)base;
	const struct s3_endpoint *p;
	const struct s3_counts *n;

	if (i >= atomic_load_explicit(&s->client->endpoints, memory_order_acquire))
		return false;
	p = s->client->endpoint[i];
	n = &p->counts;
	out->address = p->server.url.authority;
	out->tls = p->server.url.tls;
	out->given = i < s->client->given;
	out->skew_s = atomic_load_explicit(&s->client->skew_s, memory_order_relaxed);
	out->kind_names = s3_kind_names;
	out->again_names = s3_retry_names;
	out->first_max_ns = value(&n->first_max_ns);
	for (unsigned k = 0; k < SERVER_REQUESTS; k++)
		out->n.requests[k] = value(&n->requests[k]);
	for (unsigned k = 0; k < SERVER_AGAINS; k++)
		out->n.again[k] = value(&n->sent_again[k]);
	out->n.failed = value(&n->failed);
	out->n.again_ns = value(&n->again_ns);
	out->n.connections = value(&p->server.opened);
	out->n.reopened = value(&n->reopened);
	out->n.wire_sent = value(&p->server.wire_sent);
	out->n.wire_received = value(&p->server.wire_received);
	out->n.body_sent = value(&n->body_sent);
	out->n.body_received = value(&n->body_received);
	out->n.answers = value(&n->answers);
	out->n.first_ns = value(&n->first_ns);
	out->n.last_ns = value(&n->last_ns);
	out->n.clumped = value(&n->late_ack);
	out->n.beside_clump = value(&n->beside_ack);
	return true;
}

static void s3_objects(const struct store *base, struct store_objects *out)
{
	const struct s3_store *s = (const struct s3_store *)base;
	const struct s3_profile *p = s->profile;
	unsigned window =
		s->options.prefetch_window ? (unsigned)s->options.prefetch_window : p->window;

	*out = (struct store_objects){.client = p->name,
				      .in_flight = p->at_once && p->at_once < window ? p->at_once
										     : window,
				      .chunk = p->chunks ? window : 0,
				      .staggers = p->staggers && s->options.stagger_workers,
				      .process_bytes_s = p->process_bytes_s};
}

const struct store_ops store_s3 = {
	.is.name = "s3",
	.is.help =
		"objects of a bucket of an S3 server, by http or https: ranges are read over "
		"kept connections, reader.queue_depth of them at once for each worker; an object "
		"appears when all of it was sent",
	.is.flags = STORE_HAS_OBJECTS | STORE_IS_UNCACHED,
	.is.options = s3_rows,
	.is.option_count = sizeof(s3_rows) / sizeof(s3_rows[0]),
	.is.config_bytes = sizeof(struct s3_options),
	.blob_bytes = sizeof(struct s3_blob),
	.create = s3_create,
	.destroy = s3_destroy,
	.open = s3_open,
	.close = s3_close,
	.pread = s3_pread,
	.pwrite = s3_pwrite,
	.sync = s3_sync,
	.stat_blob = s3_stat_blob,
	.stat = s3_stat,
	.mkdirs = s3_mkdirs,
	.list = s3_list,
	.list_sizes = s3_list_sizes,
	.remove = s3_remove,
	.rename = s3_rename,
	.sync_dir = s3_nothing,
	.space = s3_space,
	.queue = &s3_queue_ops,
	.server = s3_server,
	.objects = s3_objects,
};
