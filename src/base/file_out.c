#include "base/file_out.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file_in.h"
#include "base/named_output.h"
#include "base/path.h"
#include "base/place.h"
#include "base/str.h"
#include "base/transfer.h"

#define NAMES_TRIED 16
#define BASE_MAX 200 /* of a temporary name, which may have 255 */
#define TMP_SUFFIX ".tmp"
#define TMP_DIGITS 16u

/* Whether everyone may make files beside this one, and so may have made it. */
static bool among_others(const char *path, const struct stat *st)
{
	AUTO_FREE char *dir = path_dirname(path);
	struct stat d;

	return !place_trusted(st->st_uid) && stat(dir, &d) == 0 && d.st_mode & S_IWOTH &&
	       st->st_uid != d.st_uid;
}

/* Of what exists and was named by somebody. */
static int check_place(const struct place *p, const char *path, struct err *e)
{
	mode_t mode = p->st.st_mode;

	if (S_ISDIR(mode))
		return err_set(e, -EISDIR, "cannot write '%s': it is a folder; name a file", path);
	if (p->magic)
		return 0;
	if (S_ISSOCK(mode) || S_ISBLK(mode))
		return err_set(e, ERR_KIND, "cannot write '%s': it is %s; name a file", path,
			       file_kind(mode));
	if ((S_ISREG(mode) || S_ISFIFO(mode)) && among_others(p->path, &p->st))
		return place_foreign(path, S_ISREG(mode) ? "the file" : "the FIFO (named pipe)",
				     p->st.st_uid,
				     "everyone may write to its folder, so choose another name", e);
	/* a file that may not be written is not to be replaced, either */
	if (S_ISREG(mode) && faccessat(AT_FDCWD, p->path, W_OK, AT_EACCESS) != 0)
		return err_sys(e, errno, "cannot write '%s'", path);
	return 0;
}

/* ---- opening ---- */

/* What cannot be replaced is written to as it is. A descriptor of this process is not opened again:
 * a socket could not be, and a file would be written from its beginning. */
static int open_through(const struct place *p, int flags)
{
	int fd = place_descriptor(p);
	struct stat st;

	if (fd >= 0 && fcntl(fd, F_GETFL) < 0)
		return -EBADF;
	if (fd == STDOUT_FILENO)
		fflush(stdout); /* what was said before comes before */
	if (fd >= 0) {
		fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		return fd >= 0 ? fd : -errno;
	}
	fd = open(p->path,
		  O_WRONLY | O_CLOEXEC | O_NOCTTY | flags | (p->magic ? O_TRUNC : O_NOFOLLOW));
	if (fd < 0)
		return -errno;
	if (p->magic ||
	    (fstat(fd, &st) == 0 && st.st_dev == p->st.st_dev && st.st_ino == p->st.st_ino))
		return fd;
	close(fd);
	return -ESTALE; /* replaced meanwhile, by whatever it may be */
}

/* The new file gets what the old one had. An owner that may not be given away is this process's;
 * then the rights of a group are not handed to another one. */
static int keep_attributes(int fd, const struct stat *old)
{
	mode_t mode = old->st_mode & 07777;
	struct stat new;

	if (fstat(fd, &new) != 0)
		return -errno;
	if ((new.st_uid != old->st_uid || new.st_gid != old->st_gid) &&
	    fchown(fd, old->st_uid, old->st_gid) != 0) {
		mode &= ~(mode_t)(S_ISUID | S_ISGID);
		if (new.st_gid != old->st_gid && fchown(fd, (uid_t)-1, old->st_gid) != 0)
			mode &= ~(mode_t)S_IRWXG;
	}
	return fchmod(fd, mode) == 0 ? 0 : -errno;
}

static uint64_t unforeseen(void)
{
	static _Atomic uint64_t serial;
	uint64_t v = 0;
	struct timespec t;

	if (getrandom(&v, sizeof(v), GRND_NONBLOCK) == (ssize_t)sizeof(v))
		return v;
	/* early in the boot of a machine; O_EXCL still keeps it from being another's */
	clock_gettime(CLOCK_MONOTONIC, &t);
	v = (uint64_t)t.tv_nsec * 0x9e3779b97f4a7c15u ^ (uint64_t)getpid() << 40;
	return v + atomic_fetch_add_explicit(&serial, 0xbf58476d1ce4e5b9u, memory_order_relaxed);
}

static char *temporary_name(const char *name)
{
	return xasprintf(".%s.%016llx" TMP_SUFFIX, strlen(name) > BASE_MAX ? "stoker" : name,
			 (unsigned long long)unforeseen());
}

size_t file_temporary_of(const char *name)
{
	size_t n = strlen(name), tail = 1 + TMP_DIGITS + sizeof(TMP_SUFFIX) - 1;

	if (name[0] != '.' || n < tail + 2 || !str_ends(name, TMP_SUFFIX) ||
	    name[n - tail] != '.' || strspn(name + n - tail + 1, "0123456789abcdef") != TMP_DIGITS)
		return 0;
	return n - tail - 1;
}

/* A temporary file is locked while it is written, which tells it from one that a dead process left.
 * False when somebody who takes it for such a one was faster. */
static bool hold(int fd)
{
	struct stat st;
	int rc;

	do
		rc = flock(fd, LOCK_EX | LOCK_NB);
	while (rc != 0 && errno == EINTR);
	/* where there are no locks, nobody removes it either */
	if (rc != 0)
		return errno != EWOULDBLOCK;
	return fstat(fd, &st) != 0 || st.st_nlink > 0;
}

static void remove_if_left(int folder, const char *tmp)
{
	int fd = open_fully(folder, tmp, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
			    0);
	struct stat st;

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && place_trusted(st.st_uid) &&
	    flock(fd, LOCK_EX | LOCK_NB) == 0)
		unlinkat(folder, tmp, 0);
	close(fd);
}

static void remove_left(int folder, const char *name)
{
	int fd = open_fully(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	DIR *d = fd >= 0 ? WITH_MEMORY(fdopendir(fd)) : NULL;
	struct dirent *entry;
	size_t n = strlen(name);

	if (!d && fd >= 0)
		close(fd);
	if (!d)
		return;
	assert(n > 0); /* 0 is what file_temporary_of says of all other files */
	while (folder_next(d, &entry) > 0)
		if (file_temporary_of(entry->d_name) == n &&
		    strncmp(entry->d_name + 1, name, n) == 0)
			remove_if_left(folder, entry->d_name);
	closedir(d);
}

void file_remove_left(const char *path)
{
	AUTO_FREE char *dir = path_dirname(path);
	int folder = open_fully(AT_FDCWD, dir, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);

	if (folder < 0)
		return;
	if (path_basename(path)[0])
		remove_left(folder, path_basename(path));
	close(folder);
}

/* `kept`: the file whose mode and owner the new one gets, or NULL. */
static int open_beside(struct file_out *f, const char *path, const struct stat *kept,
		       enum file_whose whose)
{
	AUTO_FREE char *dir = path_dirname(path);
	int fd = -1, rc;

	f->folder = open_fully(AT_FDCWD, dir, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	if (f->folder < 0)
		return -errno;
	f->name = xstrdup(path_basename(path));
	/* before there is a new one, which a refusal of memory would leave as well */
	if (whose == FILE_NAMED && f->name[0])
		remove_left(f->folder, f->name);
	for (int i = 0; fd < 0 && i < NAMES_TRIED; i++) {
		free(f->tmp);
		f->tmp = temporary_name(f->name);
		/* nobody sees content that they could not read before */
		fd = open_fully(f->folder, f->tmp,
				O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
				kept ? 0600 : 0644);
		if (fd < 0 && errno != EEXIST)
			return -errno;
		if (fd >= 0 && !hold(fd)) {
			close(fd);
			unlinkat(f->folder, f->tmp, 0);
			fd = -1;
		}
	}
	if (fd < 0)
		return -EEXIST;
	f->held = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	rc = f->held < 0 ? -errno : 0;
	if (rc == 0 && kept)
		rc = keep_attributes(fd, kept);
	if (rc == 0)
		return fd;
	close(fd);
	unlinkat(f->folder, f->tmp, 0);
	return rc;
}

static void file_out_release(struct file_out *f)
{
	if (f->held >= 0)
		close(f->held);
	if (f->folder >= 0)
		close(f->folder);
	free(f->path);
	free(f->name);
	free(f->tmp);
	*f = (struct file_out){.fd = -1, .held = -1, .folder = -1};
}

static int open_named(struct file_out *f, const char *path, struct err *e)
{
	struct place p;
	int rc = place_find(path, &p, e);

	if (rc == 0 && p.exists)
		rc = check_place(&p, path, e);
	if (rc == 0 && p.exists)
		rc = named_output_check(path, &p.st, e);
	if (rc == 0) {
		if (p.exists && (p.magic || !S_ISREG(p.st.st_mode)))
			f->fd = open_through(&p, 0);
		else
			f->fd = open_beside(f, p.path, p.exists ? &p.st : NULL, FILE_NAMED);
		if (f->fd < 0)
			rc = err_sys(e, -f->fd, "cannot write '%s'", path);
	}
	free(p.path);
	return rc;
}

/* Links, FIFOs and sockets have no content of their own to lose. Folders do, and a device may be
 * the one that all programs of this machine use. */
static int check_replaceable(mode_t mode, const char *path, struct err *e)
{
	if (!S_ISDIR(mode) && !S_ISCHR(mode) && !S_ISBLK(mode))
		return 0;
	return err_set(e, S_ISDIR(mode) ? -EISDIR : ERR_KIND,
		       "cannot write '%s': %s has that name; remove it", path, file_kind(mode));
}

static int open_ours(struct file_out *f, const char *path, struct err *e)
{
	struct stat st;
	bool there = lstat(path, &st) == 0;

	int rc = there ? check_replaceable(st.st_mode, path, e) : 0;

	if (rc < 0)
		return rc;
	f->fd = open_beside(f, path,
			    there && S_ISREG(st.st_mode) && st.st_uid == geteuid() ? &st : NULL,
			    FILE_OURS);
	return f->fd >= 0 ? 0 : err_sys(e, -f->fd, "cannot write '%s'", path);
}

int file_out_open(struct file_out *f, const char *path, enum file_whose whose, struct err *e)
{
	int rc;

	*f = (struct file_out){.fd = -1, .held = -1, .folder = -1};
	if (!path[0])
		return err_set(e, ERR_USAGE,
			       "the name of a file to write is needed, but it is empty");
	f->path = xstrdup(path);
	rc = whose == FILE_OURS ? open_ours(f, path, e) : open_named(f, path, e);
	if (rc < 0)
		file_out_release(f);
	return rc;
}

int file_out_write(const struct file_out *f, const void *bytes, size_t n)
{
	return write_fully(f->fd, bytes, n);
}

int file_out_close(struct file_out *f, int failed, struct err *e)
{
	int rc = failed;

	assert(f->fd >= 0 && failed <= 0 && !f->tmp == !f->name);
	/* pipes and devices have nothing to sync, and say so */
	if (rc == 0) {
		rc = sync_fully(f->fd);
		if (!f->tmp && (rc == -EINVAL || rc == -EROFS))
			rc = 0;
	}
	/* after EINTR Linux has closed the descriptor all the same */
	if (close(f->fd) != 0 && rc == 0 && errno != EINTR)
		rc = -errno;
	if (rc == 0 && f->tmp && renameat(f->folder, f->tmp, f->folder, f->name) != 0)
		rc = -errno;
	if (rc != 0) {
		if (f->tmp)
			unlinkat(f->folder, f->tmp, 0);
		rc = err_sys(e, -rc, "cannot write '%s'", f->path);
	}
	file_out_release(f);
	return rc;
}

static int write_as(const char *path, enum file_whose whose, const void *bytes, size_t n,
		    struct err *e)
{
	struct file_out f;
	int rc = file_out_open(&f, path, whose, e);

	return rc < 0 ? rc : file_out_close(&f, file_out_write(&f, bytes, n), e);
}

int file_write(const char *path, const void *bytes, size_t n, struct err *e)
{
	return write_as(path, FILE_NAMED, bytes, n, e);
}

int file_write_ours(const char *path, const void *bytes, size_t n, struct err *e)
{
	return write_as(path, FILE_OURS, bytes, n, e);
}

/* ---- a file that stays ---- */

/* What differs is written over, so that a reader, or a loss of power, finds the old bytes or the
 * new ones; of a table whose cells change that is a few bytes. */
static int write_over(int fd, const struct buf *old, const char *bytes, size_t n)
{
	size_t common = old->len < n ? old->len : n, from = 0, to = n;
	int rc;

	while (from < common && old->data[from] == bytes[from])
		from++;
	if (old->len == n)
		while (to > from && old->data[to - 1] == bytes[to - 1])
			to--;
	rc = pwrite_fully(fd, bytes + from, to - from, (off_t)from);
	if (rc == 0 && n < old->len && ftruncate(fd, (off_t)n) != 0)
		rc = -errno;
	if (rc == 0)
		return sync_fully(fd);
	/* as it was: its blocks are there */
	(void)pwrite_fully(fd, old->data + from, old->len - from, (off_t)from);
	(void)!ftruncate(fd, (off_t)old->len);
	return rc;
}

static int rewrite_in_place(const struct place *p, const char *path, const void *bytes, size_t n,
			    struct err *e)
{
	int fd = open_fully(AT_FDCWD, p->path,
			    O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0),
	    rc;
	struct buf old = {0};
	struct stat st;

	if (fd < 0)
		return err_sys(e, errno, "cannot write '%s'", path);
	if (fstat(fd, &st) != 0 || st.st_ino != p->st.st_ino || st.st_dev != p->st.st_dev)
		rc = err_sys(e, ESTALE, "cannot write '%s'", path);
	else
		rc = file_read_open(fd, path, SIZE_MAX / 4, &old, e);
	if (rc == 0) {
		rc = write_over(fd, &old, bytes, n);
		if (rc < 0)
			err_sys(e, -rc, "cannot write '%s'", path);
	}
	buf_release(&old);
	close(fd);
	return rc;
}

int file_rewrite(const char *path, const void *bytes, size_t n, struct err *e)
{
	struct place p;
	int rc = place_find(path, &p, e);
	bool regular = rc == 0 && p.exists && S_ISREG(p.st.st_mode) && !p.magic;

	if (regular && geteuid() != 0 && p.st.st_uid != geteuid())
		rc = rewrite_in_place(&p, path, bytes, n, e);
	else if (rc == 0)
		rc = file_write(path, bytes, n, e);
	/* a folder that takes no temporary file */
	if (regular && (rc == -EACCES || rc == -EPERM) &&
	    faccessat(AT_FDCWD, p.path, W_OK, AT_EACCESS) == 0)
		rc = rewrite_in_place(&p, path, bytes, n, e);
	free(p.path);
	return rc;
}

/* ---- files written bit by bit ---- */

int file_make_ours(const char *path, int flags, mode_t mode, struct err *e)
{
	struct stat st;
	int fd = -1, rc;

	for (int i = 0; i < NAMES_TRIED; i++) {
		fd = open_fully(AT_FDCWD, path,
				O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY |
					flags,
				mode);
		if (fd >= 0 || errno != EEXIST)
			break;
		rc = lstat(path, &st) == 0 ? check_replaceable(st.st_mode, path, e) : 0;
		if (rc < 0)
			return rc;
		if (unlink(path) != 0 && errno != ENOENT)
			break;
	}
	return fd >= 0 ? fd : err_sys(e, errno, "cannot write '%s'", path);
}

int file_append_ours(const char *path, mode_t mode, struct err *e)
{
	struct stat st;
	int fd = open_fully(AT_FDCWD, path,
			    O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY |
				    O_CLOEXEC,
			    mode);

	/* what says nothing of the file is no reason to replace it */
	if (fd < 0 && (errno == EIO || errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
		       errno == ENOSPC || errno == EDQUOT || errno == EROFS))
		return err_sys(e, errno, "cannot write '%s'", path);

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
	    place_trusted(st.st_uid)) {
		fcntl(fd, F_SETFL, O_APPEND);
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return file_make_ours(path, O_APPEND, mode, e);
}

int file_open_out(const char *path, int flags, struct err *e)
{
	struct place p;
	int rc = place_find(path, &p, e);

	if (rc == 0 && p.exists)
		rc = check_place(&p, path, e);
	if (rc == 0) {
		rc = p.exists ? open_through(&p, flags | O_NONBLOCK)
			      : open_fully(AT_FDCWD, p.path,
					   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC |
						   O_NOCTTY | flags,
					   0644);
		if (rc == -1 && !p.exists)
			rc = -errno;
		if (rc >= 0 && p.exists && S_ISREG(p.st.st_mode) && !p.magic &&
		    ftruncate(rc, 0) != 0) {
			int code = errno;

			close(rc);
			rc = -code;
		}
		if (rc < 0)
			err_sys(e, -rc, "cannot write '%s'", path);
	}
	free(p.path);
	return rc;
}
