/* Files of a mounted file system through the page cache: open, pread, pwrite. */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/transfer.h"
#include "os/file_system.h"
#include "store/posix.h"

/* Linux moves at most this much in one call (read(2)). */
#define CALL_MAX 0x7ffff000u
#define REPLACED_MAX 16 /* others may make the same name again and again */

static int posix_create(struct store **out, const void *config, struct store *lower, struct err *e)
{
	struct store *s = xcalloc(1, sizeof(*s));

	(void)config;
	(void)lower;
	(void)e;
	*out = s;
	return 0;
}

void posix_destroy(struct store *s)
{
	free(s);
}

/* The type of an open descriptor, and the size of a regular file, without asking a server again. */
static mode_t type_of(struct posix_blob *pb)
{
	struct statx sx;
	struct stat st;

	pb->bytes = UINT64_MAX;
	if (statx(pb->fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_SIZE, &sx) !=
	    0)
		return fstat(pb->fd, &st) == 0 ? st.st_mode : S_IFREG;
	if (S_ISREG(sx.stx_mode) && (sx.stx_mask & STATX_SIZE))
		pb->bytes = sx.stx_size;
	return sx.stx_mode;
}

int posix_open_flags(unsigned how)
{
	int flags = O_CLOEXEC;

	if (how & STORE_WRITE)
		flags |= how & STORE_READ ? O_RDWR : O_WRONLY;
	else
		flags |= O_RDONLY;
	if (how & STORE_UNNAMED)
		flags |= O_TMPFILE;
	else if (how & STORE_CREATE)
		flags |= O_CREAT | (how & STORE_NEW ? O_EXCL : 0);
	return flags;
}

static int open_patiently(const char *path, int flags)
{
	int fd;

	do {
		fd = open(path, flags, 0644);
	} while (fd < 0 && errno == EINTR);
	return fd;
}

/* A file that another program has a lease on is waited for, but nothing else is. */
static int open_leased(const char *path, int flags)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return -1;
	if (S_ISREG(st.st_mode))
		return open_patiently(path, flags);
	errno = EWOULDBLOCK;
	return -1;
}

/* Makes room for a new file. Folders and devices stay. 0, or -1 with errno. */
static int remove_old(const char *path)
{
	struct stat st;

	if (lstat(path, &st) != 0)
		return errno == ENOENT ? 0 : -1;
	if (S_ISDIR(st.st_mode) || S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)) {
		errno = S_ISDIR(st.st_mode) ? EISDIR : EEXIST;
		return -1;
	}
	return unlink(path) == 0 || errno == ENOENT ? 0 : -1;
}

int posix_open_fd(const char *path, int flags)
{
	int fd = -1;

	if ((flags & O_TMPFILE) == O_TMPFILE)
		return open_patiently(path, flags);
	if (!(flags & O_CREAT)) {
		fd = open_patiently(path, flags | O_NONBLOCK | O_NOCTTY);
		return fd < 0 && errno == EWOULDBLOCK ? open_leased(path, flags) : fd;
	}
	for (int i = 0; i < REPLACED_MAX; i++) {
		fd = open_patiently(path, flags | O_EXCL | O_NOFOLLOW);
		if (fd >= 0 || errno != EEXIST || flags & O_EXCL)
			break;
		if (remove_old(path) != 0)
			break;
	}
	return fd;
}

int posix_settle(int fd, int flags, mode_t mode, const char *path, struct err *e)
{
	if (S_ISDIR(mode))
		return err_sys(e, EISDIR, "cannot open '%s'", path);
	if (!S_ISREG(mode))
		return err_set(e, ERR_KIND,
			       "cannot open '%s': it is %s; a store holds regular files", path,
			       file_kind(mode));
	/* some file systems, and io_uring, take it for more than a matter of opening */
	fcntl(fd, F_SETFL, flags);
	return 0;
}

int posix_not_opened(const char *path, unsigned how, int code, struct err *e)
{
	struct stat st;

	if (how & STORE_CREATE)
		return err_sys(e, code, "cannot create '%s'", path);
	if (code == ENOENT && lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
		return err_set(e, ERR_KIND,
			       "cannot open '%s': it is a symbolic link that leads to nothing",
			       path);
	return err_sys(e, code, "cannot open '%s'", path);
}

int posix_open(struct store *s, const char *path, unsigned how, struct blob *b, struct err *e)
{
	struct posix_blob *pb = (struct posix_blob *)b;
	int rc;

	(void)s;
	pb->fd = posix_open_fd(path, posix_open_flags(how));
	if (pb->fd < 0)
		return posix_not_opened(path, how, errno, e);
	pb->bytes = UINT64_MAX;
	if (how & STORE_CREATE)
		return 0;
	rc = posix_settle(pb->fd, posix_open_flags(how), type_of(pb), path, e);
	if (how & STORE_WRITE)
		pb->bytes = UINT64_MAX;
	if (rc < 0)
		close(pb->fd);
	return rc;
}

int posix_close(struct blob *b, struct err *e)
{
	struct posix_blob *pb = (struct posix_blob *)b;
	int fd = pb->fd;

	assert(fd >= 0);
	pb->fd = -1;
	/* after EINTR Linux has closed the descriptor all the same */
	if (close(fd) != 0 && errno != EINTR)
		return err_sys(e, errno, "cannot close the file (writes may be lost)");
	return 0;
}

bool posix_at_end(const struct posix_blob *pb, ssize_t r, uint64_t end)
{
	struct stat st;

	if (r == 0 || end == pb->bytes)
		return true;
	/* a file that does not tell its size is asked for more */
	return fstat(pb->fd, &st) == 0 && (!S_ISREG(st.st_mode) || end >= (uint64_t)st.st_size);
}

ssize_t posix_pread(struct blob *b, void *p, size_t n, uint64_t offset, struct err *e)
{
	const struct posix_blob *pb = (const struct posix_blob *)b;
	size_t done = 0;

	while (done < n) {
		size_t ask = n - done < CALL_MAX ? n - done : CALL_MAX;
		ssize_t r = pread(pb->fd, (char *)p + done, ask, (off_t)(offset + done));

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return err_sys(e, errno, "reading %zu bytes at offset %llu failed", ask,
				       (unsigned long long)(offset + done));
		done += (size_t)r;
		if ((size_t)r < ask && posix_at_end(pb, r, offset + done))
			break;
	}
	return (ssize_t)done;
}

ssize_t posix_pwrite(struct blob *b, const void *p, size_t n, uint64_t offset, struct err *e)
{
	const struct posix_blob *pb = (const struct posix_blob *)b;
	size_t done = 0;

	while (done < n) {
		size_t ask = n - done < CALL_MAX ? n - done : CALL_MAX;
		ssize_t w = pwrite(pb->fd, (const char *)p + done, ask, (off_t)(offset + done));

		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return err_sys(e, errno, "writing %zu bytes at offset %llu failed", ask,
				       (unsigned long long)(offset + done));
		if (w == 0)
			return err_set(e, -EIO,
				       "the file system wrote 0 of %zu bytes at offset %llu", ask,
				       (unsigned long long)(offset + done));
		done += (size_t)w;
	}
	return (ssize_t)done;
}

#define PIECES_MAX 1024 /* IOV_MAX of Linux */

int posix_pieces_after(const struct iovec *v, int count, size_t done, struct iovec *out, int max,
		       size_t *n)
{
	int made = 0;

	*n = 0;
	for (int i = 0; i < count && made < max; i++) {
		if (done >= v[i].iov_len) {
			done -= v[i].iov_len;
			continue;
		}
		out[made] = v[i];
		out[made].iov_base = (char *)v[i].iov_base + done;
		out[made].iov_len -= done;
		*n += out[made++].iov_len;
		done = 0;
	}
	return made;
}

static ssize_t posix_preadv(struct blob *b, const struct iovec *v, int count, uint64_t offset,
			    struct err *e)
{
	const struct posix_blob *pb = (const struct posix_blob *)b;
	struct iovec left[PIECES_MAX];
	size_t done = 0, n;

	for (;;) {
		int pieces = posix_pieces_after(v, count, done, left, PIECES_MAX, &n);
		ssize_t r;

		if (pieces == 0)
			return (ssize_t)done;
		r = preadv(pb->fd, left, pieces, (off_t)(offset + done));
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return err_sys(e, errno, "reading %zu bytes at offset %llu failed", n,
				       (unsigned long long)(offset + done));
		done += (size_t)r;
		if ((size_t)r < (n < CALL_MAX ? n : CALL_MAX) && posix_at_end(pb, r, offset + done))
			return (ssize_t)done;
	}
}

static ssize_t posix_pwritev(struct blob *b, const struct iovec *v, int count, uint64_t offset,
			     struct err *e)
{
	const struct posix_blob *pb = (const struct posix_blob *)b;
	struct iovec left[PIECES_MAX];
	size_t done = 0, n;

	for (;;) {
		int pieces = posix_pieces_after(v, count, done, left, PIECES_MAX, &n);
		ssize_t w;

		if (pieces == 0)
			return (ssize_t)done;
		w = pwritev(pb->fd, left, pieces, (off_t)(offset + done));
		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return err_sys(e, errno, "writing %zu bytes at offset %llu failed", n,
				       (unsigned long long)(offset + done));
		if (w == 0)
			return err_set(e, -EIO,
				       "the file system wrote 0 of %zu bytes at offset %llu", n,
				       (unsigned long long)(offset + done));
		done += (size_t)w;
	}
}

static int sync_fd(int fd)
{
	int rc;

	do {
		rc = fsync(fd);
	} while (rc != 0 && errno == EINTR);
	return rc;
}

int posix_sync(struct blob *b, struct err *e)
{
	const struct posix_blob *pb = (const struct posix_blob *)b;

	if (sync_fd(pb->fd) != 0)
		return err_sys(e, errno, "fsync failed");
	return 0;
}

static void fill_stat(const struct stat *st, struct store_stat *out)
{
	out->bytes = (uint64_t)st->st_size;
	out->is_dir = S_ISDIR(st->st_mode);
	out->block_bytes = st->st_blksize > 1 ? (uint32_t)st->st_blksize : 8192;
	out->mtime_ns = st->st_mtim.tv_sec * 1000000000LL + st->st_mtim.tv_nsec;
	out->device = st->st_dev;
	out->inode = st->st_ino;
}

int posix_stat_blob(struct blob *b, struct store_stat *out, struct err *e)
{
	const struct posix_blob *pb = (const struct posix_blob *)b;
	struct stat st;
	int rc;

	do
		rc = fstat(pb->fd, &st);
	while (rc != 0 && errno == EINTR);
	if (rc != 0)
		return err_sys(e, errno, "fstat failed");
	fill_stat(&st, out);
	return 0;
}

int posix_stat(struct store *s, const char *path, struct store_stat *out, struct err *e)
{
	struct stat st;
	int rc;

	(void)s;
	do
		rc = stat(path, &st);
	while (rc != 0 && errno == EINTR);
	if (rc != 0)
		return err_sys(e, errno, "cannot find '%s'", path);
	fill_stat(&st, out);
	return 0;
}

int posix_mkdirs(struct store *s, const char *path, struct err *e)
{
	(void)s;
	return file_mkdirs(path, e);
}

int posix_list(struct store *s, const char *path, store_list_fn fn, void *arg, struct err *e)
{
	DIR *d = folder_open(path);
	struct dirent *entry;
	int rc = 0, more = 0;

	(void)s;
	if (!d)
		return err_sys(e, errno, "cannot list the folder '%s'", path);
	while (rc >= 0 && (more = folder_next(d, &entry)) > 0) {
		bool is_dir;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		is_dir = entry->d_type == DT_DIR;
		if (entry->d_type == DT_UNKNOWN || entry->d_type == DT_LNK) {
			struct stat st;

			is_dir = fstatat(dirfd(d), entry->d_name, &st, 0) == 0 &&
				 S_ISDIR(st.st_mode);
		}
		rc = fn(arg, entry->d_name, is_dir);
	}
	if (rc >= 0 && more < 0)
		rc = err_sys(e, -more, "cannot list the folder '%s'", path);
	closedir(d);
	return rc < 0 ? rc : 0;
}

int posix_remove(struct store *s, const char *path, struct err *e)
{
	(void)s;
	if (unlink(path) == 0)
		return 0;
	if (errno == EISDIR && rmdir(path) == 0)
		return 0;
	return err_sys(e, errno, "cannot remove '%s'", path);
}

int posix_rename(struct store *s, const char *from, const char *to, struct err *e)
{
	(void)s;
	if (rename(from, to) != 0)
		return err_sys(e, errno, "cannot rename '%s' to '%s'", from, to);
	return 0;
}

int posix_sync_dir(struct store *s, const char *path, struct err *e)
{
	int fd = posix_open_fd(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc;

	(void)s;
	if (fd < 0)
		return err_sys(e, errno, "cannot open the folder '%s'", path);
	rc = sync_fd(fd) == 0 ? 0 : errno;
	close(fd);
	/* some file systems cannot sync folders; their renames are as durable as they can be */
	if (rc && rc != EINVAL && rc != ENOTSUP)
		return err_sys(e, rc, "cannot sync the folder '%s'", path);
	return 0;
}

int posix_space(struct store *s, const char *path, uint64_t *bytes, uint64_t *files, struct err *e)
{
	AUTO_FREE char *at = xstrdup(*path ? path : ".");
	bool told;

	(void)s;
	/* a folder that is yet to be made will lie where its nearest parent lies */
	while (!(told = file_system_room(at, bytes, files)) && errno == ENOENT &&
	       strcmp(at, "/") != 0 && strcmp(at, ".") != 0) {
		char *up = path_dirname(at);

		free(at);
		at = up;
	}
	return told ? 0 : err_sys(e, errno, "cannot query the free space of '%s'", path);
}

/* Where the system cannot. */
static ssize_t send_by_hand(int from, int to, uint64_t offset)
{
	char piece[16384];
	ssize_t got = pread(from, piece, sizeof(piece), (off_t)offset), done = 0;

	while (got > 0 && done < got) {
		ssize_t w = write(to, piece + done, (size_t)(got - done));

		if (w < 0 && errno != EINTR)
			return -1;
		done += w > 0 ? w : 0;
	}
	return got;
}

static ssize_t posix_send(struct blob *b, int to, size_t n, uint64_t offset, struct err *e)
{
	const struct posix_blob *pb = (const struct posix_blob *)b;
	off_t at = (off_t)offset;
	ssize_t r;

	do {
		r = sendfile(to, pb->fd, &at, n < CALL_MAX ? n : CALL_MAX);
		if (r < 0 && (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP))
			r = send_by_hand(pb->fd, to, offset);
	} while (r < 0 && errno == EINTR);
	if (r < 0)
		return err_sys(e, errno, "copying from offset %llu failed",
			       (unsigned long long)offset);
	return r;
}

int posix_descriptor(struct blob *b)
{
	return ((const struct posix_blob *)b)->fd;
}

int posix_map(struct blob *b, uint64_t bytes, const void **at, struct err *e)
{
	const struct posix_blob *pb = (const struct posix_blob *)b;
	void *p = mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, pb->fd, 0);

	if (p == MAP_FAILED)
		return err_sys(e, errno,
			       "cannot map %llu bytes into memory (limits are the address space, "
			       "ulimit -v, and vm.max_map_count)",
			       (unsigned long long)bytes);
	*at = p;
	return 0;
}

int posix_drop(struct blob *b, uint64_t offset, uint64_t bytes, struct err *e)
{
	const struct posix_blob *pb = (const struct posix_blob *)b;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), from = offset / page * page;
	/* only whole pages are dropped, so those at the ends are taken whole */
	uint64_t n = bytes ? (offset + bytes + page - 1) / page * page - from : 0;
	int rc = posix_fadvise(pb->fd, (off_t)from, (off_t)n, POSIX_FADV_DONTNEED);

	return rc ? err_sys(e, rc, "cannot drop a part of the page cache") : 0;
}

const struct store_ops store_posix = {
	.is.name = "posix",
	.is.help = "files of a mounted file system through the page cache (open, pread, pwrite)",
	.is.flags = STORE_HAS_FILES | STORE_IS_BUFFERED,
	.blob_bytes = sizeof(struct posix_blob),
	.create = posix_create,
	.destroy = posix_destroy,
	.open = posix_open,
	.close = posix_close,
	.pread = posix_pread,
	.pwrite = posix_pwrite,
	POSIX_NAME_OPS,
	.map = posix_map,
	.drop = posix_drop,
	.preadv = posix_preadv,
	.pwritev = posix_pwritev,
	.send = posix_send,
};
