/* What is in the page cache of single files, emptying it, and where a file lies on its device. */
#include "store/page_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/abi.h"
#include "os/file_system.h"
#include "store/posix.h"

/* Pages that one mincore call tells of. */
#define MINCORE_PAGES 16384
#define EVICT_TRIES 3

/* As in linux/mman.h since 6.5. */
struct range {
	uint64_t off, len;
};
struct counts {
	uint64_t cached, dirty, writeback, evicted, recently_evicted;
};

static uint64_t page_bytes(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* mincore takes every page for present where it will not tell (mm/mincore.c, since 5.2). */
static bool may_ask_mincore(int fd, const struct stat *st)
{
	uid_t user = geteuid();

	return user == 0 || st->st_uid == user ||
	       faccessat(fd, "", W_OK, AT_EMPTY_PATH | AT_EACCESS) == 0;
}

/* Whether the file's pages may be those of another file below it, of which cachestat(2) on this one
 * says nothing: a mapping has them. */
static bool is_stacked(int fd)
{
	struct file_system fs;

	return file_system_of_fd(fd, &fs) && fs.stacked;
}

static int query_mincore(int fd, const struct stat *st, struct page_cached *out)
{
	uint64_t page = page_bytes(), window = MINCORE_PAGES * page;
	unsigned char in[MINCORE_PAGES];
	uint64_t pages = 0;

	out->mincore = true;
	if (!may_ask_mincore(fd, st))
		return EPERM;
	for (uint64_t at = 0; at < out->file_bytes; at += window) {
		uint64_t n = out->file_bytes - at < window ? out->file_bytes - at : window;
		void *p = mmap(NULL, (size_t)n, PROT_READ, MAP_SHARED, fd, (off_t)at);
		int code = 0;

		if (p == MAP_FAILED)
			return errno;
		if (mincore(p, (size_t)n, in) != 0)
			code = errno;
		munmap(p, (size_t)n);
		if (code)
			return code;
		for (uint64_t i = 0; i < (n + page - 1) / page; i++)
			pages += in[i] & 1;
	}
	out->cached_bytes = pages * page;
	return 0;
}

/* The same of an open file; 0, or an errno. */
static int page_cache_look_fd(int fd, struct page_cached *out)
{
	struct range all = {0, 0};
	struct counts c;
	struct stat st;
	int code = 0;

	*out = (struct page_cached){0};
	if (fstat(fd, &st) != 0)
		return errno;
	out->file_bytes = (uint64_t)st.st_size;
	if (syscall(SYS_cachestat, fd, &all, &c, 0) == 0) {
		out->cached_bytes = c.cached * page_bytes();
		out->dirty_bytes = (c.dirty + c.writeback) * page_bytes();
		out->reclaimed_bytes = c.evicted * page_bytes();
		if (c.cached == 0 && st.st_size > 0 && is_stacked(fd)) {
			code = query_mincore(fd, &st, out);
			/* what cannot be mapped (FUSE with direct_io) is not cached elsewhere */
			if (code == ENODEV || code == EACCES)
				code = 0;
		}
	} else {
		code = query_mincore(fd, &st, out);
	}
	/* the last page is rarely full */
	if (out->cached_bytes > out->file_bytes)
		out->cached_bytes = out->file_bytes;
	if (out->reclaimed_bytes > out->file_bytes - out->cached_bytes)
		out->reclaimed_bytes = out->file_bytes - out->cached_bytes;
	return code;
}

static int open_to_query(const char *path, struct err *e)
{
	int fd = posix_open_fd(path, O_RDONLY | O_CLOEXEC), rc;
	struct stat st;

	if (fd < 0)
		return err_sys(e, errno, "cannot open '%s' to query its page cache", path);
	if (fstat(fd, &st) != 0)
		rc = err_sys(e, errno, "cannot query '%s'", path);
	else
		rc = posix_settle(fd, O_RDONLY, st.st_mode, path, e);
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

int page_cache_look(const char *path, struct page_cached *out, struct err *e)
{
	int fd = open_to_query(path, e), code;

	*out = (struct page_cached){0};
	if (fd < 0)
		return fd;
	code = page_cache_look_fd(fd, out);
	close(fd);
	if (code == EPERM)
		return err_set(e, -EPERM,
			       "the kernel reports what the page cache holds of '%s' only to the "
			       "owner of the file and to users who can write it",
			       path);
	return code ? err_sys(e, code, "cannot query what the page cache holds of '%s'", path) : 0;
}

static int write_out(int fd, const char *path, struct err *e)
{
	int rc;

	do {
		rc = fdatasync(fd);
	} while (rc != 0 && errno == EINTR);
	/* read-only file systems and special files have nothing to write */
	if (rc != 0 && errno != EROFS && errno != EINVAL)
		return err_sys(e, errno, "cannot write back '%s' before evicting it", path);
	return 0;
}

int page_cache_evict(const char *path, struct page_cached *out, struct err *e)
{
	struct page_cached now = {0};
	int fd = open_to_query(path, e), rc = 0;

	if (fd < 0)
		return fd;
	for (int i = 0; i < EVICT_TRIES && rc == 0; i++) {
		bool blind = page_cache_look_fd(fd, &now) != 0 || now.mincore;

		if (now.cached_bytes == 0 && !blind)
			break;
		/* dirty pages stay where they are; who cannot see them writes them all */
		if (blind || now.dirty_bytes || i > 0)
			rc = write_out(fd, path, e);
		if (rc == 0 && (rc = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED)) != 0)
			rc = err_sys(e, rc, "cannot evict '%s' from the page cache", path);
		if (rc < 0 || page_cache_look_fd(fd, &now) != 0 || now.cached_bytes == 0)
			break;
	}
	close(fd);
	if (out)
		*out = now;
	return rc;
}

/* FIEMAP, in pieces, until the last extent. */

#define ASKED 64 /* extents of one request */
#define REQUESTS_MAX 4096

/* A request and the room for its extents, which end struct fiemap. */
union asked {
	struct fiemap map;
	unsigned char room[sizeof(struct fiemap) + ASKED * sizeof(struct fiemap_extent)];
};

static void keep_place(struct file_extents *out, uint64_t device, const struct fiemap_extent *x)
{
	/* how long a compressed extent is on the device is not said */
	uint64_t bytes = x->fe_flags & FIEMAP_EXTENT_ENCODED ? 1 : x->fe_length;

	/* what has no place yet, or none of its own */
	if (x->fe_flags & (FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DELALLOC |
			   FIEMAP_EXTENT_DATA_INLINE | FIEMAP_EXTENT_DATA_TAIL) ||
	    out->places == EXTENTS_KEPT)
		return;
	out->place[out->places++] =
		(struct extent_place){.device = device, .at = x->fe_physical, .bytes = bytes};
}

/* `from`: the end of what was accounted for; grows. */
static void add_extent(struct file_extents *out, uint64_t device, const struct fiemap_extent *x,
		       uint64_t *from)
{
	uint64_t begin = x->fe_logical < *from ? *from : x->fe_logical;
	uint64_t end = x->fe_logical + x->fe_length;

	/* blocks are whole, and may have been allocated beyond the end */
	end = end < out->file_bytes ? end : out->file_bytes;
	if (begin >= end)
		return;
	out->hole_bytes += begin - *from;
	*from = end;
	out->shared = out->shared || x->fe_flags & FIEMAP_EXTENT_SHARED;
	if (x->fe_flags & FIEMAP_EXTENT_UNWRITTEN)
		out->hole_bytes += end - begin;
	else if (x->fe_flags & FIEMAP_EXTENT_DATA_INLINE)
		out->inline_bytes += end - begin;
	else if (x->fe_flags & FIEMAP_EXTENT_ENCODED)
		out->compressed_bytes += end - begin;
	if (!(x->fe_flags & FIEMAP_EXTENT_UNWRITTEN))
		keep_place(out, device, x);
}

static int read_extents(int fd, const struct stat *st, bool sync, struct file_extents *out)
{
	uint64_t from = 0, next = 0;
	bool last = false;

	*out = (struct file_extents){.file_bytes = (uint64_t)st->st_size};
	for (int i = 0; !last && next < out->file_bytes && i < REQUESTS_MAX; i++) {
		union asked q;

		memset(&q, 0, sizeof(q));
		q.map.fm_start = next;
		q.map.fm_length = out->file_bytes - next;
		q.map.fm_flags = sync ? FIEMAP_FLAG_SYNC : 0;
		q.map.fm_extent_count = ASKED;
		if (ioctl(fd, FS_IOC_FIEMAP, &q) != 0)
			return errno;
		last = q.map.fm_mapped_extents == 0;
		for (uint32_t k = 0; k < q.map.fm_mapped_extents && k < ASKED; k++) {
			const struct fiemap_extent *x = &q.map.fm_extents[k];

			add_extent(out, st->st_dev, x, &from);
			next = x->fe_logical + x->fe_length;
			last = last || x->fe_flags & FIEMAP_EXTENT_LAST;
		}
	}
	out->hole_bytes += out->file_bytes - from;
	return 0;
}

int extents_look(const char *path, struct file_extents *out, struct err *e)
{
	struct stat st;
	int fd, code = 0;

	*out = (struct file_extents){0};
	fd = posix_open_fd(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, errno, "cannot open '%s' to query its extents", path);
	if (fstat(fd, &st) != 0) {
		code = errno;
	} else if ((code = posix_settle(fd, O_RDONLY, st.st_mode, path, e)) < 0) {
		close(fd);
		return code;
	} else {
		code = read_extents(fd, &st, false, out);
	}
	/* data in memory may have its blocks later, and may be what makes them written */
	if (code == 0 && out->hole_bytes)
		code = read_extents(fd, &st, true, out);
	close(fd);
	if (code == ENOTTY || code == EINVAL || code == ENOSYS || code == EBADR)
		code = EOPNOTSUPP;
	return code ? err_sys(e, code, "cannot query the extents of '%s'", path) : 0;
}

/* Of offset, length and memory; no file system asks for more. */
#define BLOCK 4096u
/* More than this is read in pieces, so that the copy stays small. */
#define PIECE (1u << 20)

struct aside_blob {
	struct blob base;
	int fd;
	bool direct;
	uint64_t bytes;
	uint64_t cached; /* of the file, before; all of it where that is not told */
};

static uint64_t cached_bytes(int fd, uint64_t unknown)
{
	struct page_cached now;

	return page_cache_look_fd(fd, &now) == 0 ? now.cached_bytes : unknown;
}

static int aside_open(struct store *s, const char *path, unsigned how, struct blob *b,
		      struct err *e)
{
	struct aside_blob *ab = (struct aside_blob *)b;
	struct stat st;

	(void)s;
	if (how & STORE_WRITE)
		return err_set(e, ERR_USAGE, "'%s' can only be read", path);
	ab->fd = posix_open_fd(path, O_RDONLY | O_CLOEXEC | O_DIRECT);
	ab->direct = ab->fd >= 0;
	if (ab->fd < 0 && errno == EINVAL)
		ab->fd = posix_open_fd(path, O_RDONLY | O_CLOEXEC);
	if (ab->fd < 0 || fstat(ab->fd, &st) != 0) {
		int code = errno;

		if (ab->fd >= 0)
			close(ab->fd);
		return err_sys(e, code, "cannot open '%s'", path);
	}
	ab->bytes = (uint64_t)st.st_size;
	ab->cached = cached_bytes(ab->fd, ab->bytes);
	/* without read-ahead, what is read is all that comes in */
	posix_fadvise(ab->fd, 0, 0, POSIX_FADV_RANDOM);
	return 0;
}

static int aside_close(struct blob *b, struct err *e)
{
	struct aside_blob *ab = (struct aside_blob *)b;

	(void)e;
	/* of a file that was there in part, each read has restored its own pages */
	if (ab->cached == 0 && cached_bytes(ab->fd, 0) > 0)
		posix_fadvise(ab->fd, 0, 0, POSIX_FADV_DONTNEED);
	close(ab->fd);
	return 0;
}

/* Which pages of a range are in memory: a byte each, `n` of them. NULL when that is not told. */
static unsigned char *pages_of(int fd, uint64_t from, uint64_t bytes, size_t page)
{
	size_t n = (size_t)((bytes + page - 1) / page);
	unsigned char *in = malloc(n ? n : 1);
	void *p =
		in ? mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, fd, (off_t)from) : MAP_FAILED;

	if (p == MAP_FAILED || mincore(p, (size_t)bytes, in) != 0) {
		free(in);
		in = NULL;
	}
	if (p != MAP_FAILED)
		munmap(p, (size_t)bytes);
	return in;
}

/* Drops the pages of a range that are there and were not before. */
static void restore_pages(int fd, uint64_t from, uint64_t bytes, size_t page,
			  const unsigned char *before)
{
	size_t n = (size_t)((bytes + page - 1) / page);
	unsigned char *now = pages_of(fd, from, bytes, page);

	for (size_t i = 0; now && i < n; i++) {
		size_t first = i;

		while (i < n && now[i] & 1 && !(before[i] & 1))
			i++;
		if (i > first)
			posix_fadvise(fd, (off_t)(from + first * page), (off_t)((i - first) * page),
				      POSIX_FADV_DONTNEED);
	}
	free(now);
}

static ssize_t read_range(const struct aside_blob *ab, void *p, size_t n, uint64_t at)
{
	size_t done = 0;

	while (done < n) {
		ssize_t r = pread(ab->fd, (char *)p + done, n - done, (off_t)(at + done));

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		done += (size_t)r;
		if (r == 0 || at + done >= ab->bytes)
			break;
	}
	return (ssize_t)done;
}

/* One piece, of whole blocks, into `copy`; then what was asked for out of it. */
static ssize_t read_piece(struct aside_blob *ab, void *copy, void *p, size_t n, uint64_t offset)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint64_t from = offset / page * page, end = offset + n;
	size_t bytes = (size_t)((end - from + page - 1) / page * page);
	bool part = ab->cached > 0 && ab->cached < ab->bytes;
	unsigned char *before = part ? pages_of(ab->fd, from, bytes, page) : NULL;
	ssize_t r = read_range(ab, copy, bytes, from);

	if (r == -EINVAL && ab->direct) {
		/* some file systems say so only when they are read */
		int flags = fcntl(ab->fd, F_GETFL);

		if (flags >= 0 && fcntl(ab->fd, F_SETFL, flags & ~O_DIRECT) == 0) {
			ab->direct = false;
			r = read_range(ab, copy, bytes, from);
		}
	}
	if (before)
		restore_pages(ab->fd, from, bytes, page, before);
	free(before);
	if (r < 0)
		return r;
	if ((uint64_t)r <= offset - from)
		return 0;
	r -= (ssize_t)(offset - from);
	r = (size_t)r < n ? r : (ssize_t)n;
	memcpy(p, (char *)copy + (offset - from), (size_t)r);
	return r;
}

static ssize_t aside_pread(struct blob *b, void *p, size_t n, uint64_t offset, struct err *e)
{
	struct aside_blob *ab = (struct aside_blob *)b;
	void *copy = NULL;
	size_t done = 0;
	ssize_t r = 0;

	if (posix_memalign(&copy, BLOCK, PIECE + 2 * 65536) != 0)
		return err_set(e, -ENOMEM, "out of memory");
	while (done < n) {
		size_t ask = n - done < PIECE ? n - done : PIECE;

		r = read_piece(ab, copy, (char *)p + done, ask, offset + done);
		if (r <= 0)
			break;
		done += (size_t)r;
		if ((size_t)r < ask)
			break;
	}
	free(copy);
	if (r < 0)
		return err_sys(e, (int)-r, "reading %zu bytes at offset %llu failed", n - done,
			       (unsigned long long)(offset + done));
	return (ssize_t)done;
}

static int aside_stat_blob(struct blob *b, struct store_stat *out, struct err *e)
{
	(void)e;
	*out = (struct store_stat){.bytes = ((struct aside_blob *)b)->bytes, .block_bytes = BLOCK};
	return 0;
}

static const struct store_ops aside_ops = {
	.is.name = "aside",
	.is.help = "reads files and leaves the page cache as it was",
	.blob_bytes = sizeof(struct aside_blob),
	.open = aside_open,
	.close = aside_close,
	.pread = aside_pread,
	.stat_blob = aside_stat_blob,
	.stat = posix_stat,
};

void aside_init(struct aside_store *s)
{
	*s = (struct aside_store){.base = {.ops = &aside_ops}};
}
