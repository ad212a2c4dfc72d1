#include "store/aside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/page_cache.h"
#include "store/posix.h"

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
