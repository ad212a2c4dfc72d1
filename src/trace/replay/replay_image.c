/* The files of a job below a folder. */
#include "trace/replay/replay.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/beneath.h"
#include "base/buf.h"
#include "base/compare.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/map.h"
#include "base/str.h"
#include "base/transfer.h"
#include "os/file_system.h"

#define MARKER_NAME "stoker-image"
#define MARKER "." MARKER_NAME
#define LOCK_NAME "stoker_replay.lock"
#define PART_MAX 200u   /* of a name; file systems take 255 */
#define NAME_MAX_ 3000u /* below the folder */
#define PIECE (1u << 20)

/* ---- which files have one name ---- */

static void number(struct replay_names *n, const struct job *job)
{
	for (size_t i = 0; i < job->files; i++) {
		size_t known = n->texts.n, k;

		n->of[i] = (uint32_t)i;
		if (!job_is_stored(&job->file[i]))
			continue;
		k = texts_add(&n->texts, job->file[i].name);
		if (k == known)
			n->first[k] = (uint32_t)i;
		n->of[i] = n->first[k];
	}
}

/* Whether the job makes, removes or renames each: it may be a folder. */
static size_t find_changed(const struct replay_names *n, const struct job *job, bool *changed)
{
	size_t found = 0;

	for (size_t i = 0; i < job->events; i++) {
		const struct job_event *v = &job->event[i];
		bool moves = v->kind == JOB_RENAME || v->kind == JOB_LINK;

		if (v->file == JOB_NONE || job_failed(v) ||
		    (v->kind != JOB_MAKE_DIR && v->kind != JOB_UNLINK && !moves))
			continue;
		changed[n->of[v->file]] = true;
		if (moves && v->other != JOB_NONE && v->other < job->files)
			changed[n->of[v->other]] = true;
		found++;
	}
	return found;
}

static uint32_t replay_names_find(const struct replay_names *n, const char *name)
{
	size_t k = texts_find(&n->texts, name);

	return k == TEXT_NONE ? JOB_NONE : n->first[k];
}

static uint32_t find_above(const struct replay_names *n, const char *name, const bool *changed)
{
	AUTO_FREE char *above = xstrdup(name);
	uint32_t found = JOB_NONE;
	char *slash;

	while (found == JOB_NONE && (slash = strrchr(above, '/')) && slash != above) {
		uint32_t k;

		*slash = '\0';
		k = replay_names_find(n, above);
		if (k != JOB_NONE && changed[k])
			found = k;
	}
	return found;
}

int replay_names_make(struct replay_names *n, const struct job *job, struct err *e)
{
	static const char what[] = "the names of the files";
	AUTO_FREE bool *changed = try_calloc(job->files + 1, sizeof(*changed), what, e);

	*n = (struct replay_names){
		.of = try_calloc(job->files + 1, sizeof(*n->of), what, e),
		.above = try_calloc(job->files + 1, sizeof(*n->above), what, e),
		.first = try_calloc(job->files + 1, sizeof(*n->first), what, e),
	};
	if (!changed || !n->of || !n->above || !n->first)
		return -ENOMEM;
	number(n, job);
	for (size_t i = 0; i < job->files; i++)
		n->above[i] = JOB_NONE;
	if (find_changed(n, job, changed) > 0)
		for (size_t i = 0; i < job->files; i++)
			if (n->of[i] == i && job_is_stored(&job->file[i]))
				n->above[i] = find_above(n, job->file[i].name, changed);
	for (size_t i = 0; i < job->files; i++)
		n->above[i] = n->above[n->of[i]];
	return 0;
}

void replay_names_release(struct replay_names *n)
{
	free(n->of);
	free(n->above);
	free(n->first);
	texts_release(&n->texts);
	*n = (struct replay_names){0};
}

/* ---- paths ---- */

static void put_part(struct buf *out, const char *s, size_t n)
{
	buf_putc(out, '/');
	if (n == 2 && memcmp(s, "..", 2) == 0) {
		buf_puts(out, "%2e%2e");
	} else if (n == strlen(MARKER) && memcmp(s, MARKER, n) == 0) {
		/* ours, which says whose the folder is */
		buf_puts(out, "%2e" MARKER_NAME);
	} else if (n == strlen("." LOCK_NAME) && memcmp(s, "." LOCK_NAME, n) == 0) {
		buf_puts(out, "%2e" LOCK_NAME);
	} else if (n > PART_MAX) {
		buf_append(out, s, PART_MAX / 2);
		buf_printf(out, "%%%016" PRIx64, fnv1a(FNV_START, s, n));
	} else {
		buf_append(out, s, n);
	}
}

static char *path_of(const char *folder, const char *name)
{
	struct buf out = {0};
	size_t begin;

	buf_puts(&out, folder);
	begin = out.len;
	if (name[0] != '/')
		buf_puts(&out, "/%relative");
	for (const char *s = name; *s;) {
		size_t n = strcspn(s, "/");

		if (n > 0 && !(n == 1 && s[0] == '.'))
			put_part(&out, s, n);
		s += n + (s[n] == '/');
	}
	if (out.len - begin > NAME_MAX_) {
		uint64_t h = fnv1a_text(FNV_START, name);

		buf_release(&out);
		buf_printf(&out, "%s/%%long/%016" PRIx64, folder, h);
	}
	return buf_take(&out);
}

/* ---- what is there before the job ---- */

struct seen {
	bool any, created; /* an event that succeeded; the first one made the file */
	bool surely;       /* and cannot have opened an older one */
	bool tried;        /* one that did not */
	bool moved;        /* bytes were read or written */
	bool folder;       /* it was used as one */
	bool unnamed;  /* a file without a name was made in it, whose bytes the log books here */
	bool changed;  /* written, cut or replaced: sizes are later ones from here on */
	int64_t size;  /* before that; JOB_UNKNOWN */
	int64_t least; /* read so far before that */
	int64_t most;  /* in the log at all */
};

static bool is_change(const struct job_event *v)
{
	return v->kind == JOB_WRITE || v->kind == JOB_TRUNCATE || v->kind == JOB_RENAME ||
	       v->kind == JOB_UNLINK || (v->kind == JOB_OPEN && v->flags & O_TRUNC);
}

/* What the log tells of the size that the file had before the job changed it. `sizes`: the log has
 * them, so that 0 is one. */
static void see_size(struct seen *s, const struct job_event *v, bool sizes)
{
	int64_t end = v->offset >= 0 && v->result > 0 ? v->offset + v->result : 0;

	if (s->changed)
		return;
	if (is_change(v)) {
		s->changed = true;
		return;
	}
	if (v->kind == JOB_READ)
		RAISE(s->least, end);
	/* by another name it may have changed since */
	if (s->size != JOB_UNKNOWN)
		return;
	if (v->kind == JOB_STAT && v->result >= 0 && (v->result > 0 || sizes))
		s->size = v->result;
	else if (v->kind == JOB_OPEN && v->asked >= 0)
		s->size = v->asked;
	/* there it ended */
	else if (v->kind == JOB_READ && end > 0 && v->asked > v->result)
		s->size = end;
}

static void see(struct seen *s, const struct job_event *v, enum job_file_kind kind, bool sizes)
{
	if (job_failed(v) && v->kind != JOB_EXIT) {
		s->tried = true;
		/* it is in the way */
		if (v->kind != JOB_RENAME && (v->result == -EEXIST || v->result == -EISDIR)) {
			s->folder = s->folder || v->result == -EISDIR || v->kind == JOB_MAKE_DIR;
			s->any = true;
		}
		return;
	}
	/* it is noted before the call, which tries the folders of PATH one after another */
	if (v->kind == JOB_EXEC)
		return;
	s->folder = s->folder || v->kind == JOB_MAKE_DIR || v->kind == JOB_LIST ||
		    kind == JOB_FILE_FOLDER;
	s->unnamed = s->unnamed || (v->kind == JOB_OPEN && (v->flags & O_TMPFILE) == O_TMPFILE);
	if (!s->any) {
		s->any = true;
		s->created = (v->kind == JOB_OPEN && v->flags & O_CREAT) || v->kind == JOB_WRITE ||
			     v->kind == JOB_MAKE_DIR;
		/* it was there, with these bytes */
		if (v->kind == JOB_OPEN && v->asked > 0 && !(v->flags & O_TRUNC))
			s->created = false;
		s->surely = s->created &&
			    (v->kind != JOB_OPEN || v->asked == 0 || v->flags & (O_EXCL | O_TRUNC));
	}
	see_size(s, v, sizes);
	/* what is opened to be made if need be was there if it is read first */
	if (!s->moved && (v->kind == JOB_READ || v->kind == JOB_WRITE) && v->result > 0) {
		s->moved = true;
		s->created = s->created && (s->surely || v->kind == JOB_WRITE);
	}
}

static struct seen made_now(void)
{
	return (struct seen){.any = true,
			     .created = true,
			     .surely = true,
			     .moved = true,
			     .changed = true,
			     .size = JOB_UNKNOWN};
}

/* All files by name, those below a folder next to each other. */
struct sorted {
	const struct job *job;
	uint32_t *v;
	size_t n;
};

static void sort_names(struct sorted *s, const struct job *job, const struct replay_names *names)
{
	*s = (struct sorted){.job = job, .v = xcalloc(job->files + 1, sizeof(*s->v))};
	for (size_t i = 0; i < job->files; i++)
		if (job_is_stored(&job->file[i]) && names->of[i] == i)
			s->v[s->n++] = (uint32_t)i;
	job_sort_by_name(job, s->v, s->n);
}

/* What lies below a folder that is renamed comes with it, where the job knew it below the old name.
 */
static void rename_below(const struct sorted *s, const struct replay_names *names,
			 struct seen *seen, const char *from, const char *to)
{
	AUTO_FREE char *below = xasprintf("%s/", to);
	size_t low = 0, high = s->n, n = strlen(below);

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(s->job->file[s->v[middle]].name, below) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < s->n && strncmp(s->job->file[s->v[low]].name, below, n) == 0; low++) {
		AUTO_FREE char *before = xasprintf("%s/%s", from, s->job->file[s->v[low]].name + n);
		uint32_t k = replay_names_find(names, before);

		if (!seen[s->v[low]].any && k != JOB_NONE && seen[k].any)
			seen[s->v[low]] = made_now();
	}
}

static void gather(const struct job *job, const struct replay_names *names, struct seen *seen)
{
	struct sorted sorted = {0};

	for (size_t i = 0; i < job->files; i++)
		seen[i].size = JOB_UNKNOWN;
	for (size_t i = 0; i < job->files; i++)
		RAISE(seen[names->of[i]].most, job->file[i].size);
	for (size_t i = 0; i < job->events; i++) {
		const struct job_event *v = &job->event[i];
		struct seen *other;

		if (v->file == JOB_NONE)
			continue;
		see(&seen[names->of[v->file]], v, job->file[v->file].kind,
		    job->sees & JOB_SEES_SIZES);
		if ((v->kind != JOB_RENAME && v->kind != JOB_LINK) || job_failed(v) ||
		    v->other == JOB_NONE || v->other >= job->files)
			continue;
		other = &seen[names->of[v->other]];
		other->changed = true;
		if (!other->any) {
			int64_t most = other->most;

			*other = made_now();
			other->most = most;
		}
		other->folder = other->folder || seen[names->of[v->file]].folder;
		if (v->kind == JOB_LINK)
			continue;
		if (!sorted.v)
			sort_names(&sorted, job, names);
		rename_below(&sorted, names, seen, job->file[v->file].name,
			     job->file[v->other].name);
	}
	free(sorted.v);
}

static void find_places(struct replay_image *m, const struct job *job,
			const struct replay_names *names)
{
	AUTO_FREE struct seen *seen = xcalloc(job->files + 1, sizeof(*seen));

	gather(job, names, seen);
	for (size_t i = 0; i < job->events && !m->links; i++)
		m->links = job->event[i].kind == JOB_LINK && !job_failed(&job->event[i]);
	for (size_t i = 0; i < job->files; i++) {
		const struct seen *s = &seen[names->of[i]];
		int64_t most = s->most;

		if (!job_is_stored(&job->file[i]))
			m->place[i] = IMAGE_NONE;
		else if (s->any)
			m->place[i] = s->created ? IMAGE_MADE : IMAGE_PRESENT;
		else
			m->place[i] = s->tried ? IMAGE_ABSENT : IMAGE_NONE;
		/* bytes are of files, whatever else was tried */
		m->is_folder[i] = s->unnamed || (s->folder && !s->moved);
		if (s->size != JOB_UNKNOWN)
			most = s->size;
		else if (s->changed && s->least > 0)
			most = s->least;
		m->size[i] = most < s->least && s->size == JOB_UNKNOWN ? s->least : most;
	}
	for (size_t i = 0; i < job->files; i++)
		for (uint32_t k = names->above[i]; m->place[i] == IMAGE_PRESENT && k != JOB_NONE;
		     k = names->above[k])
			if (m->place[k] == IMAGE_MADE)
				m->place[i] = IMAGE_UNSEEN;
}

/* As strcmp, but what is below a folder comes right behind it. */
static int compare_paths(const void *a, const void *b, void *arg)
{
	const struct replay_image *m = arg;
	const unsigned char *x = (const unsigned char *)m->path[*(const uint32_t *)a];
	const unsigned char *y = (const unsigned char *)m->path[*(const uint32_t *)b];
	int c, d;

	for (; *x && *x == *y; x++, y++)
		;
	c = *x == '/' ? 1 : *x ? *x + 1 : 0;
	d = *y == '/' ? 1 : *y ? *y + 1 : 0;
	return c - d;
}

/* Names below which there are others are folders. */
static void find_folders(struct replay_image *m)
{
	AUTO_FREE uint32_t *list = xcalloc(m->files + 1, sizeof(*list));
	size_t n = 0, length;

	for (size_t i = 0; i < m->files; i++)
		if (m->path[i] && m->place[i] != IMAGE_ABSENT)
			list[n++] = (uint32_t)i;
	qsort_r(list, n, sizeof(*list), compare_paths, m);
	for (size_t i = n; i-- > 1;) {
		const char *path = m->path[list[i - 1]], *next = m->path[list[i]];

		length = strlen(path);
		if (strcmp(path, next) == 0)
			m->is_folder[list[i - 1]] =
				m->is_folder[list[i - 1]] || m->is_folder[list[i]];
		else if (strncmp(path, next, length) == 0 && next[length] == '/')
			m->is_folder[list[i - 1]] = true;
	}
}

int replay_image_init(struct replay_image *m, const struct job *job,
		      const struct replay_names *names, const char *folder, struct err *e)
{
	*m = (struct replay_image){.names = names,
				   .folder = xstrdup(folder),
				   .fd = -1,
				   .lock.fd = -1,
				   .files = job->files};
	for (size_t n = strlen(m->folder); n > 1 && m->folder[n - 1] == '/'; n--)
		m->folder[n - 1] = '\0';
	if (strlen(m->folder) > PATH_MAX - NAME_MAX_ - 64)
		return err_set(e, ERR_USAGE, "the path of the folder '%.100s...' is too long",
			       folder);
	m->path = try_calloc(job->files + 1, sizeof(*m->path), "the names of the files", e);
	m->place = try_calloc(job->files + 1, 1, "the names of the files", e);
	m->is_folder =
		try_calloc(job->files + 1, sizeof(*m->is_folder), "the names of the files", e);
	m->size = try_calloc(job->files + 1, sizeof(*m->size), "the names of the files", e);
	if (!m->path || !m->place || !m->is_folder || !m->size)
		return -ENOMEM;
	find_places(m, job, names);
	for (size_t i = 0; i < job->files; i++)
		if (m->place[i] != IMAGE_NONE)
			m->path[i] = path_of(m->folder, job->file[i].name);
	find_folders(m);
	for (size_t i = 0; i < job->files; i++) {
		/* a name that is in the log in two kinds is one file */
		if (m->place[i] != IMAGE_PRESENT || m->is_folder[i] || names->of[i] != i)
			continue;
		m->present++;
		if (__builtin_add_overflow(m->bytes, (uint64_t)m->size[i], &m->bytes) ||
		    m->bytes > INT64_MAX)
			return err_set(e, ERR_DATA,
				       "the files of the log have more than 2^63 bytes together");
	}
	return 0;
}

void replay_image_release(struct replay_image *m)
{
	if (m->folder) {
		file_unlock(&m->lock);
		if (m->fd >= 0)
			close(m->fd);
	}
	for (size_t i = 0; m->path && i < m->files; i++)
		free(m->path[i]);
	free(m->path);
	free(m->place);
	free(m->is_folder);
	free(m->size);
	free(m->folder);
	*m = (struct replay_image){0};
}

/* ---- making it ---- */

void replay_image_fill(uint64_t key, uint64_t offset, void *out, size_t n)
{
	unsigned char *to = out;

	while (n > 0) {
		uint64_t word = rng_word(key, offset / 8);
		size_t in = offset % 8, part = 8 - in < n ? 8 - in : n;

		memcpy(to, (unsigned char *)&word + in, part);
		to += part;
		offset += part;
		n -= part;
	}
}

static int is_link(const char *path, struct err *e)
{
	return err_set(e, ERR_USAGE,
		       "'%s' is a symbolic link, but the files of a replay are made only below its "
		       "own folder: remove the link",
		       path);
}

/* What has the name of a `wanted` ("file", "folder") of the job, and is none that can be used
 * without changing something elsewhere or waiting for somebody. */
static int is_strange(const char *path, const struct stat *st, const char *wanted, struct err *e)
{
	if (S_ISLNK(st->st_mode))
		return is_link(path, e);
	if (S_ISREG(st->st_mode) && st->st_nlink > 1)
		return err_set(e, ERR_USAGE,
			       "'%s' has other names (hard links), and what a replay writes to it "
			       "would change them: remove it, or name another folder with --data",
			       path);
	return err_set(e, ERR_USAGE,
		       "'%s' is %s, but the job has a %s of that name: remove it, or name another "
		       "folder with --data",
		       path, S_ISREG(st->st_mode) ? "a file" : file_kind(st->st_mode), wanted);
}

/* Below the image's folder. */
static const char *below(const struct replay_image *m, const char *path)
{
	size_t n = strlen(m->folder);

	return path[n] ? path + n + 1 : "";
}

int replay_image_at(const struct replay_image *m, uint32_t file, const char **name)
{
	return beneath_parent(m->fd, below(m, m->path[file]), false, name);
}

int replay_image_open(const struct replay_image *m, uint32_t file, int flags)
{
	int fd = beneath_open(m->fd, below(m, m->path[file]), flags, 0666);
	struct stat st;

	if (fd < 0 || flags & O_DIRECTORY || fstat(fd, &st) != 0 || S_ISDIR(st.st_mode) ||
	    beneath_is_plain(&st) || (S_ISREG(st.st_mode) && m->links))
		return fd;
	close(fd);
	errno = S_ISREG(st.st_mode) ? EMLINK : ENODEV;
	return -1;
}

/* The folder that a file of the image is in, which is made; -1 with a sentence. */
static int make_parents(const struct replay_image *m, const char *path, const char **name,
			struct err *e)
{
	int at = beneath_parent(m->fd, below(m, path), true, name);

	if (at < 0 && (errno == ENOTDIR || errno == ELOOP))
		err_set(e, ERR_USAGE,
			"'%s' cannot be made: a part of its path is no folder: remove that, or "
			"name "
			"another folder with --data",
			path);
	else if (at < 0)
		err_sys(e, errno, "the folder of '%s' cannot be made", path);
	return at;
}

static int make_folder(const struct replay_image *m, const char *path, struct err *e)
{
	const char *name;
	int at = make_parents(m, path, &name, e), rc = 0;
	struct stat st;

	if (at < 0)
		return e->code;
	if (mkdirat(at, name, 0777) != 0) {
		int code = errno;

		if (code != EEXIST || fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
			rc = err_sys(e, code, "%s: this folder cannot be made", path);
		else if (!S_ISDIR(st.st_mode))
			rc = is_strange(path, &st, "folder", e);
	}
	close(at);
	return rc;
}

static int write_bytes(int fd, const char *path, uint64_t key, uint64_t bytes, void *piece,
		       const struct stop_flag *stop, struct err *e)
{
	for (uint64_t at = 0; at < bytes;) {
		size_t n = bytes - at < PIECE ? (size_t)(bytes - at) : PIECE;
		ssize_t done;

		if (stop_is_set(stop))
			return err_set(e, ERR_CANCELED, "stopped while files were made");
		replay_image_fill(key, at, piece, n);
		done = pwrite(fd, piece, n, (off_t)at);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return err_sys(e, errno, "%s: cannot be written", path);
		at += (uint64_t)done;
	}
	return 0;
}

static int fill_file(const struct replay_image *m, const char *path, int fd, uint64_t bytes,
		     bool sparse, void *piece, const struct stop_flag *stop, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return err_sys(e, errno, "%s: cannot be made", path);
	/* looked at before, but others may be at work in the folder */
	if (!beneath_is_plain(&st))
		return is_strange(path, &st, "file", e);
	if (ftruncate(fd, sparse ? (off_t)bytes : 0) != 0)
		return err_sys(e, errno, "%s: cannot be made", path);
	return sparse ? 0
		      : write_bytes(fd, path, fnv1a_text(FNV_START, path + strlen(m->folder)),
				    bytes, piece, stop, e);
}

static int make_file(struct replay_image *m, size_t i, uint64_t bytes, bool sparse, void *piece,
		     const struct stop_flag *stop, struct err *e)
{
	const char *path = m->path[i], *name;
	int at = make_parents(m, path, &name, e), fd, rc;

	if (at < 0)
		return e->code;
	fd = beneath_open(at, name, O_WRONLY | O_CREAT, 0666);
	rc = fd < 0 ? err_sys(e, errno, "%s: cannot be made", path)
		    : fill_file(m, path, fd, bytes, sparse, piece, stop, e);
	close(at);
	/* after EINTR Linux has closed it all the same */
	if (fd >= 0 && close(fd) < 0 && rc == 0 && errno != EINTR)
		rc = err_sys(e, errno, "%s: cannot be written", path);
	if (rc == 0) {
		m->written++;
		m->written_bytes += bytes;
	}
	return rc;
}

/* 1: a file of the job is there with its size; 0: it is to be made; negative: what has its name is
 * something else. *missing: what it will take on the storage beyond what it takes. `links`: the
 * names that a replay before gave it may still be there. */
static int look_at(const struct replay_image *m, size_t i, bool links, uint64_t *missing,
		   struct err *e)
{
	uint64_t bytes = (uint64_t)m->size[i], taken;
	struct stat st;

	*missing = bytes;
	if (lstat(m->path[i], &st) != 0)
		return 0;
	if (!beneath_is_plain(&st) && !(S_ISREG(st.st_mode) && links))
		return is_strange(m->path[i], &st, "file", e);
	taken = (uint64_t)st.st_blocks * 512;
	*missing = bytes > taken ? bytes - taken : 0;
	return (uint64_t)st.st_size == bytes;
}

/* A file that was made whole in another image's way is made again. */
static bool same_way(const struct replay_image *m, bool sparse)
{
	AUTO_FREE char *path = xasprintf("%s/" MARKER, m->folder);
	/* whatever has the name now */
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	char text[16] = "";

	if (fd < 0)
		return false;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	close(fd);
	return str_starts(text, sparse ? "sparse" : "filled");
}

static bool is_file(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* The folder is ours, or empty. */
static int take_folder(struct replay_image *m, struct err *e)
{
	AUTO_FREE char *marker = xasprintf("%s/" MARKER, m->folder);
	struct dirent *entry;
	bool empty = true;
	int rc = file_mkdirs(m->folder, e);
	DIR *d;

	if (rc < 0)
		return rc;
	m->fd = open_fully(AT_FDCWD, m->folder, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	d = m->fd >= 0 ? folder_open(m->folder) : NULL;
	if (!d)
		return err_sys(e, errno, "the folder '%s' for the files of the job cannot be read",
			       m->folder);
	while ((rc = folder_next(d, &entry)) > 0)
		empty = empty &&
			(strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
			 strcmp(entry->d_name, "." LOCK_NAME) == 0 ||
			 strcmp(entry->d_name, "lost+found") == 0 ||
			 file_temporary_of(entry->d_name) == strlen(MARKER));
	closedir(d);
	if (rc < 0)
		return err_sys(e, -rc, "the folder '%s' for the files of the job cannot be read",
			       m->folder);
	if (empty || is_file(marker))
		return 0;
	return err_set(e, ERR_USAGE,
		       "the folder '%s' holds other things than the files of a replay: name an "
		       "empty or a new one",
		       m->folder);
}

static int lock_folder(struct replay_image *m, struct err *e)
{
	AUTO_FREE char *path = xasprintf("%s/." LOCK_NAME, m->folder);
	char who[FILE_LOCK_WHO_MAX];
	int rc = file_lock(&m->lock, path, who, e);

	if (rc != -EBUSY)
		return rc;
	return err_set(e, -EBUSY,
		       "another replay uses the folder '%s'%s%s: wait for it to end, stop it, or "
		       "name another one with --data (lock file '%s')",
		       m->folder, who[0] ? ": " : "", who, path);
}

/* No folder of the image is a link: what is below it would lie elsewhere. */
static int check_links(const struct replay_image *m, struct err *e)
{
	struct texts seen = {0}; /* folders */
	int rc = 0;

	for (size_t i = 0; i < m->files && rc == 0; i++) {
		AUTO_FREE char *path = xstrdup(m->path[i] ? m->path[i] : "");
		char *s = path + (*path ? strlen(m->folder) : 0);

		while (rc == 0 && *s && (s = strchr(s + 1, '/'))) {
			size_t known = seen.n;
			struct stat st;

			*s = '\0';
			if (texts_add(&seen, path) == known && lstat(path, &st) == 0 &&
			    S_ISLNK(st.st_mode))
				rc = is_link(path, e);
			*s = '/';
		}
	}
	texts_release(&seen);
	return rc;
}

static int mark(const struct replay_image *m, const char *way, struct err *e)
{
	AUTO_FREE char *path = xasprintf("%s/" MARKER, m->folder);

	file_remove_left(path);
	return file_write_ours(path, way, strlen(way), e);
}

static int check_space(const struct replay_image *m, uint64_t bytes, uint64_t files, struct err *e)
{
	char need[32], have[32];
	uint64_t room, names;

	if (!file_system_room(m->folder, &room, &names) || (bytes <= room && files <= names))
		return 0;
	if (bytes <= room)
		return err_set(e, -ENOSPC,
			       "the job has %llu files that are to be made below '%s', where %llu "
			       "more can be made (inodes): name another folder with --data",
			       (unsigned long long)files, m->folder, (unsigned long long)names);
	return err_set(e, -ENOSPC,
		       "the files of the job take %s below '%s', where %s are free: name another "
		       "folder with --data, or use --sparse",
		       str_bytes((double)bytes, need, sizeof(need)), m->folder,
		       str_bytes((double)room, have, sizeof(have)));
}

/* Before anything is written: what is there already is the job's or nothing, and there is room for
 * the rest. */
static int check_files(const struct replay_image *m, bool sparse, bool again, struct err *e)
{
	uint64_t bytes = 0, files = 0, missing;

	for (size_t i = 0; i < m->files; i++) {
		int there;

		if (m->place[i] != IMAGE_PRESENT || m->is_folder[i] || m->names->of[i] != i)
			continue;
		there = look_at(m, i, m->links, &missing, e);
		if (there < 0)
			return there;
		if (!there || again) {
			bytes += missing;
			files += missing == (uint64_t)m->size[i];
		}
	}
	return check_space(m, sparse ? 0 : bytes, files, e);
}

/* What the job makes or misses is not there: inner names first, and of folders only empty ones. */
static void remove_made(const struct replay_image *m)
{
	AUTO_FREE uint32_t *list = xcalloc(m->files + 1, sizeof(*list));
	size_t n = 0;

	for (size_t i = 0; i < m->files; i++)
		if (m->place[i] != IMAGE_NONE && m->place[i] != IMAGE_PRESENT &&
		    m->names->of[i] == i)
			list[n++] = (uint32_t)i;
	qsort_r(list, n, sizeof(*list), compare_paths, (void *)(uintptr_t)m);
	while (n-- > 0) {
		const char *name;
		int at = replay_image_at(m, list[n], &name);

		if (at < 0)
			continue;
		if (unlinkat(at, name, 0) < 0 && errno == EISDIR)
			unlinkat(at, name, AT_REMOVEDIR);
		close(at);
	}
}

static void make_cold(const struct replay_image *m)
{
	for (size_t i = 0; i < m->files; i++) {
		int fd = -1;

		if (m->place[i] == IMAGE_PRESENT && !m->is_folder[i])
			fd = replay_image_open(m, (uint32_t)i, O_RDONLY);
		if (fd < 0)
			continue;
		fdatasync(fd);
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		close(fd);
	}
}

static int make_all(struct replay_image *m, bool sparse, bool again, void *piece,
		    const struct stop_flag *stop, struct err *e)
{
	const char *name;
	int rc = 0;

	for (size_t i = 0; i < m->files && rc == 0; i++) {
		uint64_t missing;
		int at;

		if (m->place[i] == IMAGE_NONE || m->names->of[i] != i)
			continue;
		if (stop_is_set(stop))
			return err_set(e, ERR_CANCELED, "stopped while files were made");
		/* where the job looks in vain no folder is needed either */
		if (m->place[i] == IMAGE_ABSENT)
			continue;
		if (m->place[i] != IMAGE_PRESENT) {
			at = make_parents(m, m->path[i], &name, e);
			rc = at < 0 ? e->code : 0;
			if (at >= 0)
				close(at);
		} else if (m->is_folder[i]) {
			rc = make_folder(m, m->path[i], e);
		} else {
			rc = look_at(m, i, false, &missing, e);
			if (rc == 0 || (rc > 0 && again))
				rc = make_file(m, i, (uint64_t)m->size[i], sparse, piece, stop, e);
			rc = rc < 0 ? rc : 0;
		}
	}
	return rc;
}

int replay_image_make(struct replay_image *m, bool sparse, bool cold, const struct stop_flag *stop,
		      struct err *e)
{
	const char *way = sparse ? "sparse\n" : "filled\n";
	struct err ignored;
	bool again;
	void *piece;
	int rc = take_folder(m, e);

	if (rc == 0)
		rc = lock_folder(m, e);
	if (rc == 0)
		rc = check_links(m, e);
	if (rc < 0)
		return rc;
	m->written = m->written_bytes = 0;
	again = !same_way(m, sparse);
	rc = check_files(m, sparse, again, e);
	if (rc < 0)
		return rc;
	piece = try_calloc(1, PIECE, "the bytes of files", e);
	if (!piece)
		return -ENOMEM;
	/* until all is whole, as neither */
	rc = again ? mark(m, "begun\n", e) : 0;
	if (rc == 0) {
		remove_made(m);
		rc = make_all(m, sparse, again, piece, stop, e);
		remove_made(m);
	}
	free(piece);
	if (rc == 0 && again)
		rc = mark(m, way, e ? e : &ignored);
	if (rc == 0 && cold)
		make_cold(m);
	return rc;
}

int replay_image_restore(const struct replay_image *m, uint32_t file)
{
	const char *name;
	int at = beneath_parent(m->fd, below(m, m->path[file]), true, &name), fd, rc = 0;

	if (at < 0)
		return -1;
	if (m->is_folder[file]) {
		rc = mkdirat(at, name, 0777) < 0 && errno != EEXIST ? -1 : 0;
		fd = -1;
	} else {
		fd = beneath_open(at, name, O_WRONLY | O_CREAT | O_EXCL, 0666);
		rc = fd < 0 && errno != EEXIST ? -1 : 0;
	}
	if (fd >= 0 && m->place[file] != IMAGE_MADE && m->size[file] > 0)
		rc = ftruncate(fd, (off_t)m->size[file]);
	if (fd >= 0)
		close(fd);
	close(at);
	return rc;
}
