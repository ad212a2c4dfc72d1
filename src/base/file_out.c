#include "base/file_out.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/left.h"
#include "base/str.h"
#include "base/transfer.h"

/* ---- where a path leads that is to be written ---- */

/* What follows the links of a path's last component, and so does not stop at one that leads
 * nowhere, which open(2) with O_CREAT would, nor at an open file behind /proc. */
struct out_place {
	char *path;
	struct stat st;
	bool exists;
	bool magic; /* a link of /proc to an open file: its text is no path to go by */
};

#define LINKS_MAX 40 /* as the kernel */

static bool in_proc(const char *path)
{
	AUTO_FREE char *dir = path_dirname(path);
	struct statfs fs;

	return statfs(dir, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* -EACCES: "cannot write 'path': WHAT belongs to another user (uid N); TODO". */
static int place_foreign(const char *path, const char *what, uid_t owner, const char *todo,
			 struct err *e)
{
	return err_set(e, -EACCES, "cannot write '%s': %s belongs to another user (uid %ld); %s",
		       path, what, (long)owner, todo);
}

/* Whether an owner is this user or root: what others put somewhere is not theirs to choose for us.
 */
static bool place_trusted(uid_t owner)
{
	return owner == geteuid() || owner == 0;
}

/* *next: the path behind the link at `path`, whose owner and text are those of one inode. */
static int follow(const char *path, const char *named, char **next, struct err *e)
{
	AUTO_FREE char *dir = path_dirname(path);
	int fd = open_fully(AT_FDCWD, path, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
	char text[PATH_MAX];
	struct stat st;
	ssize_t n = -1;
	int code;

	if (fd >= 0 && fstat(fd, &st) == 0)
		n = readlinkat(fd, "", text, sizeof(text) - 1);
	code = errno;
	if (fd >= 0)
		close(fd);
	if (n < 0)
		return err_sys(e, code, "cannot write '%s'", named);
	text[n] = '\0';
	if (!place_trusted(st.st_uid)) {
		AUTO_FREE char *what = xasprintf("the symbolic link '%s' to '%s'", path, text);

		return place_foreign(named, what, st.st_uid, "links of others are not followed", e);
	}
	*next = path_join(dir, text);
	return 0;
}

/* Links of this user and of root are followed; others are -EACCES. 0, or negative with a sentence.
 * p->path is to be freed in any case. */
static int place_find(const char *path, struct out_place *p, struct err *e)
{
	*p = (struct out_place){.path = xstrdup(path)};
	for (int links = 0; links < LINKS_MAX; links++) {
		char *next = NULL;
		int rc;

		if (lstat(p->path, &p->st) != 0)
			return errno == ENOENT ? 0 : err_sys(e, errno, "cannot write '%s'", path);
		p->exists = true;
		if (!S_ISLNK(p->st.st_mode))
			return 0;
		if (in_proc(p->path)) {
			p->magic = true;
			return stat(p->path, &p->st) == 0
				       ? 0
				       : err_sys(e, errno, "cannot write '%s'", path);
		}
		rc = follow(p->path, path, &next, e);
		if (rc < 0)
			return rc;
		free(p->path);
		p->path = next;
		p->exists = false;
	}
	return err_sys(e, ELOOP, "cannot write '%s'", path);
}

/* The descriptor of this process that a magic link stands for, or -1. */
static int place_descriptor(const struct out_place *p)
{
	AUTO_FREE char *dir = path_dirname(p->path);
	char real[PATH_MAX], own[64];
	int64_t fd;

	snprintf(own, sizeof(own), "/proc/%ld/fd", (long)getpid());
	if (!p->magic || !realpath(dir, real) || strcmp(real, own) != 0 ||
	    !str_to_i64(path_basename(p->path), &fd) || fd < 0 || fd > INT_MAX)
		return -1;
	return (int)fd;
}

int place_named_descriptor(const char *path)
{
	struct out_place p;
	int fd = place_find(path, &p, NULL) == 0 ? place_descriptor(&p) : -1;

	free(p.path);
	return fd;
}

#define NAMES_TRIED 16
#define BASE_MAX 200 /* of a temporary name, which may have 255 */
#define TMP_SUFFIX ".tmp"
#define TMP_DIGITS 16u

/* ---- files that are named to be written ---- */

struct output {
	dev_t dev;
	ino_t ino;  /* of the file; of one that is not there, of its folder */
	char *name; /* in that folder; NULL: it is there */
	char *said; /* as named */
	_Atomic bool read;
};
static struct output output[NAMED_OUTPUTS_MAX];
static unsigned outputs;

/* 1, or 0 of what is no file that could be lost: a pipe, a device, what cannot be looked at. */
static int identify(const char *path, struct output *o)
{
	struct out_place p;
	struct err e;
	struct stat st;
	int rc = place_find(path, &p, &e);

	if (rc == 0 && p.exists) {
		rc = S_ISREG(p.st.st_mode) && !p.magic;
		o->dev = p.st.st_dev;
		o->ino = p.st.st_ino;
	} else if (rc == 0) {
		AUTO_FREE char *folder = path_dirname(p.path);

		rc = stat(folder, &st) == 0;
		if (rc) {
			const char *slash = strrchr(p.path, '/');

			o->dev = st.st_dev;
			o->ino = st.st_ino;
			o->name = xstrdup(slash ? slash + 1 : p.path);
		}
	}
	free(p.path);
	return rc == 1;
}

static bool same(const struct output *a, const struct output *b)
{
	return a->dev == b->dev && a->ino == b->ino && !a->name == !b->name &&
	       (!a->name || strcmp(a->name, b->name) == 0);
}

int named_output_add(const char *path, struct err *e)
{
	struct output o = {0};

	if (outputs == NAMED_OUTPUTS_MAX || !identify(path, &o))
		return 0;
	for (unsigned i = 0; i < outputs; i++)
		if (same(&output[i], &o)) {
			free(o.name);
			return err_set(e, ERR_USAGE,
				       "two outputs would be written to the same file ('%s' and "
				       "'%s'): name a file for each",
				       output[i].said, path);
		}
	o.said = xstrdup(path);
	output[outputs++] = o;
	return 0;
}

void named_output_read(const struct stat *st)
{
	for (unsigned i = 0; i < outputs; i++)
		if (!output[i].name && output[i].dev == st->st_dev && output[i].ino == st->st_ino)
			atomic_store_explicit(&output[i].read, true, memory_order_relaxed);
}

/* ERR_USAGE when `st`, which is to be replaced, was added and then read. `path` is for the
 * sentence. Any thread. */
static int named_output_check(const char *path, const struct stat *st, struct err *e)
{
	for (unsigned i = 0; i < outputs; i++)
		if (atomic_load_explicit(&output[i].read, memory_order_relaxed) &&
		    output[i].dev == st->st_dev && output[i].ino == st->st_ino)
			return err_set(e, ERR_USAGE,
				       "cannot write '%s': this command reads it, and its content "
				       "would be lost; name another file",
				       path);
	return 0;
}

/* ---- files written whole ---- */

/* Whether everyone may make files beside this one, and so may have made it. */
static bool among_others(const char *path, const struct stat *st)
{
	AUTO_FREE char *dir = path_dirname(path);
	struct stat d;

	return !place_trusted(st->st_uid) && stat(dir, &d) == 0 && d.st_mode & S_IWOTH &&
	       st->st_uid != d.st_uid;
}

/* Of what exists and was named by somebody. */
static int check_place(const struct out_place *p, const char *path, struct err *e)
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
static int open_through(const struct out_place *p, int flags)
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
		left_forget(f->left);
		f->left = left_note(f->folder, f->tmp);
		/* nobody sees content that they could not read before */
		fd = open_fully(f->folder, f->tmp,
				O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
				kept ? 0600 : 0644);
		if (fd < 0 && errno != EEXIST)
			return -errno;
		if (fd >= 0 && (left_removes() || !hold(fd))) {
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
	left_forget(f->left);
	if (f->held >= 0)
		close(f->held);
	if (f->folder >= 0)
		close(f->folder);
	free(f->path);
	free(f->name);
	free(f->tmp);
	*f = (struct file_out){.fd = -1, .held = -1, .folder = -1, .left = LEFT_NONE};
}

static int open_named(struct file_out *f, const char *path, struct err *e)
{
	struct out_place p;
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

	*f = (struct file_out){.fd = -1, .held = -1, .folder = -1, .left = LEFT_NONE};
	if (!path[0])
		return err_set(e, ERR_USAGE,
			       "the name of a file to write is needed, but it is empty");
	f->path = xstrdup(path);
	f->whose = whose;
	rc = whose == FILE_OURS ? open_ours(f, path, e) : open_named(f, path, e);
	if (rc < 0)
		file_out_release(f);
	return rc;
}

int file_out_write(const struct file_out *f, const void *bytes, size_t n)
{
	return write_fully(f->fd, bytes, n);
}

/* Names outlast a loss of power; not on a file system that has no such thing. */
static int sync_names(int at, const char *folder)
{
	int fd = open_fully(at, folder, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC, 0);
	int rc = fd < 0 ? -errno : sync_fully(fd);

	if (fd >= 0)
		close(fd);
	return rc == -EINVAL || rc == -EROFS || rc == -EACCES ? 0 : rc;
}

int file_sync_folder(const char *path, struct err *e)
{
	int rc = sync_names(AT_FDCWD, path);

	return rc < 0 ? err_sys(e, -rc, "cannot sync the folder '%s'", path) : 0;
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
	if (rc == 0 && f->tmp && f->whose == FILE_NAMED)
		rc = sync_names(f->folder, ".");
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

static int rewrite_in_place(const struct out_place *p, const char *path, const void *bytes,
			    size_t n, struct err *e)
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
	struct out_place p;
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
	struct out_place p;
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

/* ---- files written piece by piece ---- */

int out_file_open(struct out_file *f, const char *path, enum file_whose whose, struct err *e)
{
	int rc;

	*f = (struct out_file){0};
	rc = file_out_open(&f->file, path, whose, e);
	if (rc == 0)
		f->buffer = xmalloc(OUT_FILE_BUFFER);
	return rc;
}

static void flush_buffer(struct out_file *f)
{
	assert(f->used <= OUT_FILE_BUFFER);
	if (f->failed == 0)
		f->failed = file_out_write(&f->file, f->buffer, f->used);
	f->used = 0;
}

void out_file_put(struct out_file *f, const char *bytes, size_t n)
{
	while (n > 0) {
		size_t room = OUT_FILE_BUFFER - f->used, part = n < room ? n : room;

		memcpy(f->buffer + f->used, bytes, part);
		f->used += part;
		bytes += part;
		n -= part;
		if (f->used == OUT_FILE_BUFFER)
			flush_buffer(f);
	}
}

void out_file_number(struct out_file *f, uint64_t v)
{
	char digits[20], *at = digits + sizeof(digits);

	do {
		*--at = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	out_file_put(f, at, (size_t)(digits + sizeof(digits) - at));
}

void out_file_print(struct out_file *f, const char *format, ...)
{
	va_list args;
	int n;

	if (OUT_FILE_BUFFER - f->used < OUT_FILE_LINE)
		flush_buffer(f);
	va_start(args, format);
	n = vsnprintf(f->buffer + f->used, OUT_FILE_LINE, format, args);
	va_end(args);
	if (n > 0)
		f->used += (size_t)n < OUT_FILE_LINE ? (size_t)n : OUT_FILE_LINE - 1;
}

int out_file_close(struct out_file *f, struct err *e)
{
	flush_buffer(f);
	free(f->buffer);
	return file_out_close(&f->file, f->failed, e);
}
