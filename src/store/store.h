#pragma once
/* Where bytes live. A store is one row of a table of function pointers; formats read and write
 * through it and know nothing else. Shims (throttle, fault) are stores that hold a lower store, so
 * that "throttle+posix" is a store like any other.
 *
 * A blob is one open file or object. Its memory is lent by the caller (store_blob_bytes bytes,
 * aligned to 16) so that opening in the timed path allocates nothing; one block can be used for any
 * number of opens one after another. A blob belongs to one thread at a time, but for pread and
 * pwrite: any number of them may be under way on one blob. A store may be used by all. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/err.h"
#include "base/thread.h"
#include "conf/opt.h"
#include "metric/io_stat.h"
#include "metric/io_waits.h"
#include "metric/span.h"
#include "workload/backend.h"

struct store;
struct store_queue_ops;
struct store_server;

enum {
	STORE_READ = 1u << 0,
	STORE_WRITE = 1u << 1,
	STORE_CREATE = 1u << 2, /* with WRITE: a new one, also in the place of an existing one */
	/* With CREATE, on stores with files: fails with -EEXIST where something has the name, be it
	 * a link. */
	STORE_NEW = 1u << 3,
	/* With CREATE, on stores with files: `path` is a folder, and the blob has no name in it. */
	STORE_UNNAMED = 1u << 4,
	/* With READ, on stores with `objects`: for a queue of whole objects alone (store/async.h).
	 */
	STORE_WHOLE = 1u << 5,
	/* With READ: from its beginning on, each read where the one before has ended. Where blobs
	 * are objects, one request brings all of it, as through a pipe; their size is unknown
	 * (UINT64_MAX) to store_stat_blob. */
	STORE_STREAM = 1u << 6,
};

/* How the client that a store emulates has whole objects under way for each worker that reads. */
struct store_objects {
	const char *client;
	unsigned in_flight; /* objects at once */
	/* Objects that it asks for together, and hands out in their order once all have come; it
	 * asks for those after them then. 0: each is handed out when it has come, and as many as
	 * are under way may lie there. */
	unsigned chunk;
	bool staggers;          /* worker k begins k computation times later */
	double process_bytes_s; /* what one process of it is known to reach; 0: not known */
};

struct store_stat {
	uint64_t bytes;
	bool is_dir;
	uint32_t block_bytes; /* preferred request size (st_blksize); never 0 */
	int64_t mtime_ns;
	uint64_t device; /* identity of the file system, 0 when unknown */
	uint64_t inode;  /* of the file in it: names with the same one are one file; 0: unknown */
};

/* First member of every store's blob struct. */
struct blob {
	struct store *store;
	uint64_t file;          /* what io_open's trace was at, for the spans of later requests */
	_Atomic uint32_t reads; /* counted ones since it was opened, up to READ_PLACE_UNKNOWN - 1 */
	uint32_t name;          /* read_name of its path, where requests are counted */
};

/* The place of a read that is counted now. Of threads that share a blob, two may have one place. */
static inline uint32_t read_place(struct blob *b)
{
	uint32_t n = atomic_load_explicit(&b->reads, memory_order_relaxed);

	if (n < READ_PLACE_UNKNOWN - 1)
		atomic_store_explicit(&b->reads, n + 1, memory_order_relaxed);
	return n;
}

/* Called for each entry of a folder; not "." and "..". A negative return ends the listing. */
typedef int (*store_list_fn)(void *arg, const char *name, bool is_dir);

/* The same, with the size of a blob. */
typedef int (*store_sizes_fn)(void *arg, const char *name, bool is_dir, uint64_t bytes);

/* A row of is.options: `field`, of type `ctype`, of the struct that the options are read into. */
#define STORE_OPTION(k, strct, field, t, ctype, d, text, ...)                                      \
	{                                                                                          \
		.key = k, .type = t, .offset = OPT_FIELD(strct, field, ctype), .def = d,           \
		.help = text, .flags = OPT_STOKER, ##__VA_ARGS__                                   \
	}

struct store_ops {
	struct store_facts is;
	size_t blob_bytes; /* own part; a shim adds its lower store's */

	/* `config` was filled from the rows; `lower` is NULL unless a shim, and then owned by the
	 * new store. */
	int (*create)(struct store **out, const void *config, struct store *lower, struct err *e);
	void (*destroy)(struct store *s);

	/* A shim leaves NULL what it passes on to the store below it; call these functions through
	 * store_open, store_close, ... only. */

	/* The caller has set b->store = s; a shim that has its own opens the blob below with
	 * store_open. A folder cannot be opened. After a failure there is nothing to close. */
	int (*open)(struct store *s, const char *path, unsigned how, struct blob *b, struct err *e);
	/* Ends the blob in any case; reports an error of the last writes. */
	int (*close)(struct blob *b, struct err *e);
	/* Bytes read (fewer than n only at the end of the blob), or negative. One request of the
	 * lower system wherever it allows it; short returns and EINTR are resumed inside. */
	ssize_t (*pread)(struct blob *b, void *p, size_t n, uint64_t offset, struct err *e);
	/* All n bytes or an error. */
	ssize_t (*pwrite)(struct blob *b, const void *p, size_t n, uint64_t offset, struct err *e);
	int (*sync)(struct blob *b, struct err *e);
	int (*stat_blob)(struct blob *b, struct store_stat *out, struct err *e);
	int (*stat)(struct store *s, const char *path, struct store_stat *out, struct err *e);
	int (*mkdirs)(struct store *s, const char *path, struct err *e);
	int (*list)(struct store *s, const char *path, store_list_fn fn, void *arg, struct err *e);
	/* NULL where a list does not say sizes. */
	int (*list_sizes)(struct store *s, const char *path, store_sizes_fn fn, void *arg,
			  struct err *e);
	/* A blob or an empty folder. A blob that is open stays usable until it is closed. */
	int (*remove)(struct store *s, const char *path, struct err *e);
	/* An existing blob at `to` is replaced at one moment: others see the old one or the new
	 * one. */
	int (*rename)(struct store *s, const char *from, const char *to, struct err *e);
	/* Makes the names in a folder durable. */
	int (*sync_dir)(struct store *s, const char *path, struct err *e);
	/* Bytes and files that can still be written under `path`, which need not exist yet;
	 * UINT64_MAX when unlimited. */
	int (*space)(struct store *s, const char *path, uint64_t *bytes, uint64_t *files,
		     struct err *e);
	/* Maps the first `bytes` (at least 1) of a blob open for reading, as mmap with PROT_READ
	 * and MAP_SHARED does; the mapping outlives the blob. NULL: there is nothing to map, or the
	 * shim would not see the page faults (store/mapped.h). */
	int (*map)(struct blob *b, uint64_t bytes, const void **at, struct err *e);
	/* Its own way to keep several requests in flight (store/async.h). NULL: helper threads over
	 * pread and pwrite. */
	const struct store_queue_ops *queue;
	/* The descriptor of an open blob, which remains the blob's. Without it files are synced one
	 * by one (store/batch.h). */
	int (*descriptor)(struct blob *b);
	/* What offset, length and memory of requests in flight are to be multiples of, so that they
	 * need no copies and do not wait for each other; 0: of nothing. */
	uint32_t align;
	/* Lets the page cache forget a range (bytes 0: up to the end) as far as it is clean and not
	 * in use. NULL: a shim that passes it on, or no page cache lies below. */
	int (*drop)(struct blob *b, uint64_t offset, uint64_t bytes, struct err *e);
	/* As pread and pwrite with memory in `count` pieces, which are used in turn and may be the
	 * same more than once: one request of the lower system, or as few as it allows. NULL: piece
	 * by piece, also in a shim. */
	ssize_t (*preadv)(struct blob *b, const struct iovec *v, int count, uint64_t offset,
			  struct err *e);
	ssize_t (*pwritev)(struct blob *b, const struct iovec *v, int count, uint64_t offset,
			   struct err *e);
	/* Up to n bytes from `offset` on to the descriptor `to`, within the system, as CPython's
	 * copies of files move them: what was moved, 0 at the end. NULL: by pread and a write, also
	 * in a shim, which would not see it. */
	ssize_t (*send)(struct blob *b, int to, size_t n, uint64_t offset, struct err *e);
	/* What was done with server number i (store/servers.h), into a zeroed struct; false: there
	 * is no such one. NULL: no servers. */
	bool (*server)(const struct store *s, unsigned i, struct store_server *out);
	/* NULL: whole objects are not asked for, or a shim would not see it. */
	void (*objects)(const struct store *s, struct store_objects *out);
};

/* First member of every store's struct. */
struct store {
	const struct store_ops *ops;
	struct store *lower;
};

/* The rank that the calling thread works for, which stores with several servers divide ranks over;
 * negative: none, as every thread begins. */
void store_serve_rank(uint32_t rank);
int64_t store_served_rank(void);

extern const struct store_ops *const store_table[]; /* NULL-terminated, written by the build */
const struct store_ops *store_find(const char *name);

/* Builds a store from an expression "shim+...+base" ("throttle+fault+posix"). Each part's options
 * are read from the map at "storage.<name>" of `storage` (a NODE_MAP or NULL). Unknown names list
 * the known ones. */
int store_create(struct store **out, const char *expression, const struct node *storage,
		 struct err *e);
void store_destroy(struct store *s);
/* Bytes a blob of this store (with all its lower ones) needs. */
size_t store_blob_bytes(const struct store *s);
/* The union of the flags of the base store (not the shims). */
unsigned store_base_flags(const struct store *s);
/* A blob block for `s`, released with free(). */
struct blob *store_blob_new(const struct store *s, struct err *e);

/* In a shim's blob block the blob of the store below follows the shim's own part. */
static inline size_t store_blob_align(size_t n)
{
	return (n + 15) & ~(size_t)15;
}

static inline struct blob *store_blob_below(struct blob *b)
{
	return (struct blob *)((char *)b + store_blob_align(b->store->ops->blob_bytes));
}

/* The functions of store_ops, by the nearest store at or below this one that does not leave them to
 * the one below. Uncounted. */
int store_open(struct store *s, const char *path, unsigned how, struct blob *b, struct err *e);
int store_close(struct blob *b, struct err *e);
int store_sync(struct blob *b, struct err *e);
int store_stat_blob(struct blob *b, struct store_stat *out, struct err *e);
int store_stat_path(struct store *s, const char *path, struct store_stat *out, struct err *e);
int store_mkdirs(struct store *s, const char *path, struct err *e);
int store_list(struct store *s, const char *path, store_list_fn fn, void *arg, struct err *e);
/* -ENOTSUP, and nothing in `e`, where no store's list says sizes. */
int store_list_sizes(struct store *s, const char *path, store_sizes_fn fn, void *arg,
		     struct err *e);
int store_remove(struct store *s, const char *path, struct err *e);
int store_rename(struct store *s, const char *from, const char *to, struct err *e);
int store_sync_dir(struct store *s, const char *path, struct err *e);
int store_space(struct store *s, const char *path, uint64_t *bytes, uint64_t *files, struct err *e);
/* Only where the store or one below it has the function. */
int store_descriptor(struct blob *b);
/* 0 where no store has a `drop`. */
int store_drop(struct blob *b, uint64_t offset, uint64_t bytes, struct err *e);

static inline ssize_t store_pread(struct blob *b, void *p, size_t n, uint64_t offset, struct err *e)
{
	while (!b->store->ops->pread)
		b = store_blob_below(b);
	return b->store->ops->pread(b, p, n, offset, e);
}

static inline ssize_t store_pwrite(struct blob *b, const void *p, size_t n, uint64_t offset,
				   struct err *e)
{
	while (!b->store->ops->pwrite)
		b = store_blob_below(b);
	return b->store->ops->pwrite(b, p, n, offset, e);
}

/* Whoever wants to know of each read before it is issued; `asked` bytes. */
struct io_before {
	void (*read)(struct io_before *self, uint64_t asked);
};

/* Counted and timed access: what formats, datasets and checkpoints call. `io` may be NULL where a
 * blob is given that is open, and `stat` may be NULL (nothing is counted then). Failed requests
 * count too. These carry no state, so a blob opened by one thread can be closed by another after
 * hand-over. */
struct io {
	struct store *store;
	struct io_stat *stat;
	struct span_ring *trace;  /* NULL: no spans are kept */
	struct io_waits *waits;   /* NULL: nobody asks; with `stat` only */
	struct io_before *before; /* may be NULL; its time is no part of the request's */
	/* May be NULL. Once it is set, io_pread returns ERR_CANCELED and asks nothing: a read of
	 * many requests ends after the present one. */
	const struct stop_flag *stop;
	/* May be NULL. Gets the time (monotonic) of every request that is counted. */
	_Atomic int64_t *progress_ns;
};

int io_open(const struct io *io, const char *path, unsigned how, struct blob *b, struct err *e);
int io_close(const struct io *io, struct blob *b, struct err *e);
ssize_t io_pread(const struct io *io, enum io_kind kind, struct blob *b, void *p, size_t n,
		 uint64_t offset, struct err *e);
/* As io_pread, but fewer than n bytes is ERR_DATA ("'path' ends at N, K bytes wanted at M"). */
int io_pread_full(const struct io *io, enum io_kind kind, struct blob *b, const char *path, void *p,
		  size_t n, uint64_t offset, struct err *e);
/* ERR_DATA: why `got` bytes came and not the n that were asked for at `offset`. Asks the store for
 * the size, so that a file that is too short and a store that gave too little are told apart.
 * `path` may be NULL. */
int io_report_short(struct blob *b, const char *path, size_t got, size_t n, uint64_t offset,
		    struct err *e);
ssize_t io_pwrite(const struct io *io, struct blob *b, const void *p, size_t n, uint64_t offset,
		  struct err *e);
/* One request into or from several pieces of memory; where the store cannot, one a piece, each
 * counted. */
ssize_t io_preadv(const struct io *io, enum io_kind kind, struct blob *b, const struct iovec *v,
		  int count, uint64_t offset, struct err *e);
ssize_t io_pwritev(const struct io *io, struct blob *b, const struct iovec *v, int count,
		   uint64_t offset, struct err *e);
/* Of all pieces; SIZE_MAX when that is more. */
size_t io_pieces_bytes(const struct iovec *v, int count);
int io_sync(const struct io *io, struct blob *b, struct err *e);
int io_stat_blob(const struct io *io, struct blob *b, struct store_stat *out, struct err *e);
int io_stat_path(const struct io *io, const char *path, struct store_stat *out, struct err *e);
/* Counted as writing and as syncing. */
int io_rename(const struct io *io, const char *from, const char *to, struct err *e);
int io_sync_dir(const struct io *io, const char *path, struct err *e);
