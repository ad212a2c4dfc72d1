/* Batches of new files: written, synced together, named. */
#include "store/batch.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "os/file_system.h"
#include "base/transfer.h"

#define AGE_MAX_NS NS_PER_S
/* Fewer files are synced one by one: the file system as a whole costs more. */
#define WHOLE_MIN 8u
/* Longer than this, somebody else's data may be what takes the time. */
#define WHOLE_SLOW_NS NS_PER_S
/* Then so many files are synced one by one, to see what that would take ... */
#define EACH_TRIAL 16u
/* ... and if it is the faster way, so many batches are. */
#define EACH_BATCHES 16u
/* Descriptors that are left to all else. */
#define OTHER_DESCRIPTORS 128u
/* Of a path, and of the temporary one. */
#define PATH_MAX_BYTES 2048u
#define NO_NAME UINT32_MAX

struct entry {
	int fd; /* -1: synced when it was closed */
	uint32_t path;
	uint32_t part; /* its temporary name, or NO_NAME */
	_Atomic uint64_t *named;
	bool whole; /* on the batch's file system: syncfs covers it */
};

struct store_batch {
	struct store *store;
	struct entry *entry;
	char *paths; /* each ended by a NUL */
	uint32_t n, room, paths_used;
	uint64_t bytes;
	int64_t begun_ns;
	bool files;   /* the store has descriptors to be kept */
	bool objects; /* of the store appear whole, under their own names */
	bool unnamed; /* files without a name are tried */
	dev_t device; /* of the first file */
	bool whole;   /* syncfs does for that one */
	bool no_whole;
	int64_t whole_ns;            /* of the last syncfs; 0: none yet */
	unsigned each_for;           /* batches for which files are synced one by one */
	struct entry open;           /* the file being written */
	bool by_proc;                /* how a file without a name gets one here */
	char folder[PATH_MAX_BYTES]; /* in which the last file without a name was made */
};

_Static_assert(sizeof(struct entry) <= 40 && sizeof(struct store_batch) <= 2560,
	       "STORE_BATCH_MEMORY is stated");
_Static_assert(STORE_BATCH_PATHS > 2 * PATH_MAX_BYTES, "room for one file");

/* ---- a batch ---- */

static bool keeps_descriptors(const struct store *s)
{
	bool descriptor = false;

	for (const struct store *at = s; at; at = at->lower) {
		if (at->ops->is.flags & STORE_EACH_CALL)
			return false;
		descriptor = descriptor || at->ops->descriptor;
	}
	return descriptor;
}

/* How many files each of `batches` may have open. */
static uint32_t files_open(unsigned batches)
{
	rlim_t want = (rlim_t)batches * STORE_BATCH_FILES + OTHER_DESCRIPTORS, each;
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) != 0)
		return 1;
	if (l.rlim_cur < want && l.rlim_cur < l.rlim_max) {
		struct rlimit more = {.rlim_cur = want < l.rlim_max ? want : l.rlim_max,
				      .rlim_max = l.rlim_max};

		if (setrlimit(RLIMIT_NOFILE, &more) == 0)
			l = more;
	}
	each = l.rlim_cur > OTHER_DESCRIPTORS ? (l.rlim_cur - OTHER_DESCRIPTORS) / batches : 1;
	return each < 1 ? 1 : each > STORE_BATCH_FILES ? STORE_BATCH_FILES : (uint32_t)each;
}

int store_batch_new(struct store_batch **out, struct store *s, unsigned batches, struct err *e)
{
	struct store_batch *b = try_calloc(1, sizeof(*b), "a batch of files", e);

	if (!b)
		return -ENOMEM;
	b->store = s;
	b->files = keeps_descriptors(s);
	b->objects = store_base_flags(s) & STORE_HAS_OBJECTS;
	/* a file without a name may get one only by way of this folder */
	b->unnamed = b->files && access("/proc/self/fd", X_OK) == 0;
	b->room = b->files ? files_open(batches ? batches : 1) : 1;
	b->entry = try_calloc(b->room, sizeof(*b->entry), "a batch of files", e);
	b->paths = b->entry ? try_calloc(1, STORE_BATCH_PATHS, "names of files", e) : NULL;
	if (!b->paths) {
		free(b->entry);
		free(b);
		return -ENOMEM;
	}
	*out = b;
	return 0;
}

static void discard(struct store_batch *b, const struct entry *f)
{
	if (f->fd >= 0)
		close(f->fd);
	if (f->part != NO_NAME)
		store_remove(b->store, b->paths + f->part, NULL);
}

/* Forgets all files; those from number `from` on have no name yet. */
static void clear(struct store_batch *b, uint32_t from)
{
	for (uint32_t i = 0; i < b->n; i++) {
		if (i >= from)
			discard(b, &b->entry[i]);
		else if (b->entry[i].fd >= 0)
			close(b->entry[i].fd);
	}
	b->n = b->paths_used = 0;
	b->bytes = 0;
	b->whole = false;
}

void store_batch_free(struct store_batch *b)
{
	if (!b)
		return;
	clear(b, 0);
	free(b->entry);
	free(b->paths);
	free(b);
}

static bool is_full(const struct store_batch *b)
{
	return b->n > 0 && (b->n == b->room || b->bytes >= STORE_BATCH_BYTES ||
			    STORE_BATCH_PATHS - b->paths_used < 2 * PATH_MAX_BYTES ||
			    clock_now_ns() - b->begun_ns > AGE_MAX_NS);
}

/* ---- writing ---- */

/* The offset of a copy in b->paths. */
static uint32_t put_path(struct store_batch *b, const char *dot, const char *path, int folder,
			 const char *end)
{
	uint32_t at = b->paths_used;
	int n = snprintf(b->paths + at, STORE_BATCH_PATHS - at, "%.*s%s%s%s", folder, path, dot,
			 path + folder, end);

	assert(n >= 0 && (uint32_t)n < STORE_BATCH_PATHS - at);
	b->paths_used += (uint32_t)n + 1;
	return at;
}

static int folder_length(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (int)(slash - path) + 1 : 0;
}

static uint32_t part_of(struct store_batch *b, const char *path)
{
	return put_path(b, ".", path, folder_length(path), ".part");
}

/* A file without a name, in the folder of `path`. */
static int open_unnamed(struct store_batch *b, const struct io *io, const char *path,
			struct blob *blob)
{
	size_t n = (size_t)folder_length(path);
	bool known = n && strlen(b->folder) == n && memcmp(b->folder, path, n) == 0;
	struct file_system fs;

	if (!known)
		snprintf(b->folder, sizeof(b->folder), "%.*s", n ? (int)n : 1, n ? path : ".");
	b->unnamed = false;
	if (io_open(io, b->folder, STORE_WRITE | STORE_CREATE | STORE_UNNAMED, blob, NULL) < 0)
		return -1;
	b->unnamed = known || (file_system_of_fd(store_descriptor(blob), &fs) && fs.batches);
	if (!b->unnamed)
		io_close(io, blob, NULL);
	return b->unnamed ? 0 : -1;
}

/* A file with a temporary name, which a killed process may have left. */
static int open_part(struct store_batch *b, const struct io *io, const char *part,
		     struct blob *blob, struct err *e)
{
	unsigned how = STORE_WRITE | STORE_CREATE | STORE_NEW;
	int rc = io_open(io, part, how, blob, e);

	if (rc != -EEXIST)
		return rc;
	rc = store_remove(b->store, part, e);
	return rc < 0 && rc != -ENOENT ? rc : io_open(io, part, how, blob, e);
}

/* The sentence begins with the file that could not be written, whatever the layer below says. */
static int not_written(int rc, const char *path, struct err *e)
{
	if (rc < 0 && rc != ERR_CANCELED && e)
		err_wrap(e, "cannot write '%s'", path);
	return rc;
}

int store_batch_open(struct store_batch *b, const struct io *io, const char *path,
		     struct blob *blob, struct err *e)
{
	int rc = is_full(b) ? store_batch_commit(b, e) : 0;

	if (rc < 0)
		return rc;
	if (strlen(path) >= PATH_MAX_BYTES - 8)
		return err_sys(e, ENAMETOOLONG, "cannot write '%.200s...'", path);
	if (b->n == 0)
		b->begun_ns = clock_now_ns();
	b->open = (struct entry){.fd = -1, .part = NO_NAME};
	b->open.path = put_path(b, "", path, 0, "");
	if (b->unnamed && open_unnamed(b, io, path, blob) == 0)
		return 0;
	if (b->objects) {
		b->open.part = b->open.path;
		rc = io_open(io, path, STORE_WRITE | STORE_CREATE, blob, e);
	} else {
		b->open.part = part_of(b, path);
		rc = open_part(b, io, b->paths + b->open.part, blob, e);
	}
	if (rc < 0)
		b->paths_used = b->open.path;
	return not_written(rc, path, e);
}

/* Keeps the file open beyond its blob, so that what goes wrong with its bytes until they are
 * durable is reported for it. */
static int keep(struct store_batch *b, struct entry *f, struct blob *blob, struct err *e)
{
	struct file_system fs;
	struct stat st;

	f->fd = fcntl(store_descriptor(blob), F_DUPFD_CLOEXEC, 0);
	if (f->fd < 0 || fstat(f->fd, &st) != 0)
		return err_sys(e, errno, "cannot keep the file open");
	b->bytes += (uint64_t)st.st_size;
	if (b->n == 0) {
		b->whole = file_system_of_fd(f->fd, &fs) && fs.batches;
		b->device = st.st_dev;
	}
	f->whole = b->whole && b->device == st.st_dev;
	return 0;
}

int store_batch_close(struct store_batch *b, const struct io *io, struct blob *blob, int written,
		      _Atomic uint64_t *named, struct err *e)
{
	struct entry *f = &b->open;
	int rc = written, closed;

	assert(b->n < b->room);
	f->named = named;
	if (rc >= 0)
		rc = b->files ? keep(b, f, blob, e) : io_sync(io, blob, e);
	closed = io_close(io, blob, rc < 0 ? NULL : e);
	rc = rc < 0 ? rc : closed;
	if (rc < 0) {
		discard(b, f);
		b->paths_used = f->path;
		return not_written(rc, b->paths + f->path, e);
	}
	b->entry[b->n++] = *f;
	return b->files ? 0 : store_batch_commit(b, e);
}

/* ---- making durable ---- */

static int cannot_write(const struct store_batch *b, const struct entry *f, int code,
			const char *what, struct err *e)
{
	return err_sys(e, code, "cannot write '%s': %s", b->paths + f->path, what);
}

/* Of the files from number `from` to before `to`, those that are not durable, or only those of
 * them that syncfs does not cover. */
static int sync_each(struct store_batch *b, uint32_t from, uint32_t to, bool uncovered,
		     struct err *e)
{
	/* all on their way first: a journal then needs few commits */
	for (uint32_t i = from; i < to && to - from > 1; i++)
		if (b->entry[i].fd >= 0 && !(uncovered && b->entry[i].whole))
			sync_file_range(b->entry[i].fd, 0, 0, SYNC_FILE_RANGE_WRITE);
	for (uint32_t i = from; i < to; i++) {
		const struct entry *f = &b->entry[i];
		int rc = 0;

		if (f->fd >= 0 && !(uncovered && f->whole))
			rc = sync_fully(f->fd);
		if (rc < 0)
			return cannot_write(b, f, -rc, "fsync failed", e);
	}
	return 0;
}

/* Whether syncfs did it. Where it reports an error, that may be of anybody's files: syncing each
 * tells. */
static bool sync_whole(struct store_batch *b)
{
	int64_t begin = clock_now_ns();
	int rc;

	/* errors since this descriptor was opened are reported to it, so the first one it is */
	do {
		rc = syncfs(b->entry[0].fd);
	} while (rc != 0 && errno == EINTR);
	b->whole_ns = clock_now_ns() - begin;
	if (rc != 0 && (errno == ENOSYS || errno == EINVAL || errno == EOPNOTSUPP))
		b->no_whole = true;
	return rc == 0;
}

/* Syncs some files to see whether syncing each is faster than the last syncfs was. */
static int try_each(struct store_batch *b, struct err *e)
{
	uint32_t n = b->n < EACH_TRIAL ? b->n : EACH_TRIAL;
	int64_t begin = clock_now_ns();
	int rc = sync_each(b, 0, n, false, e);

	if ((clock_now_ns() - begin) * b->n / n < b->whole_ns)
		b->each_for = EACH_BATCHES;
	b->whole_ns = 0;
	return rc;
}

static int sync_all(struct store_batch *b, struct err *e)
{
	bool whole = b->whole && !b->no_whole && b->n >= WHOLE_MIN;
	int rc = 0;

	if (whole && b->each_for == 0 && b->whole_ns > WHOLE_SLOW_NS)
		rc = try_each(b, e);
	if (rc < 0)
		return rc;
	if (b->each_for > 0) {
		b->each_for--;
		whole = false;
	}
	if (whole && sync_whole(b))
		return sync_each(b, 0, b->n, true, e);
	return sync_each(b, 0, b->n, false, e);
}

/* ---- naming ---- */

/* The direct way needs privileges, or Linux 6.10. */
static int link_to(struct store_batch *b, int fd, const char *path)
{
	char at[32];
	int rc;

	snprintf(at, sizeof(at), "/proc/self/fd/%d", fd);
	do {
		rc = b->by_proc ? linkat(AT_FDCWD, at, AT_FDCWD, path, AT_SYMLINK_FOLLOW)
				: linkat(fd, "", AT_FDCWD, path, AT_EMPTY_PATH);
		if (rc == 0)
			return 0;
		if (errno == ENOENT && !b->by_proc) {
			b->by_proc = true;
			errno = EINTR;
		}
	} while (errno == EINTR);
	return -errno;
}

static int give_name(struct store_batch *b, struct entry *f, struct err *e)
{
	int rc;

	if (f->part == NO_NAME) {
		rc = link_to(b, f->fd, b->paths + f->path);
		if (rc == -EEXIST) {
			char part[PATH_MAX_BYTES];
			int folder = folder_length(b->paths + f->path);

			/* renaming replaces what is there, linking does not */
			snprintf(part, sizeof(part), "%.*s.%s.part", folder, b->paths + f->path,
				 b->paths + f->path + folder);
			if (unlink(part) != 0 && errno != ENOENT)
				return cannot_write(b, f, errno, "cannot remove a leftover", e);
			rc = link_to(b, f->fd, part);
			if (rc == 0 && rename(part, b->paths + f->path) != 0) {
				rc = -errno;
				unlink(part);
			}
		}
		return rc < 0 ? cannot_write(b, f, -rc, "it cannot be named", e) : 0;
	}
	rc = f->part == f->path ? 0
				: store_rename(b->store, b->paths + f->part, b->paths + f->path, e);
	if (rc < 0)
		return not_written(rc, b->paths + f->path, e);
	f->part = NO_NAME;
	return 0;
}

int store_batch_commit(struct store_batch *b, struct err *e)
{
	uint32_t named = 0;
	int rc = b->n ? sync_all(b, e) : 0;

	while (rc == 0 && named < b->n) {
		struct entry *f = &b->entry[named];

		rc = give_name(b, f, e);
		if (rc < 0)
			break;
		/* relaxed: only counted */
		if (f->named)
			atomic_fetch_add_explicit(f->named, 1, memory_order_relaxed);
		named++;
	}
	clear(b, named);
	return rc;
}
