/* The files of a job below a folder. */
#include "jobtrace/replay_image.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/texts.h"

#define MARKER_NAME "stoker-image"
#define MARKER "." MARKER_NAME
#define PART_MAX 200u   /* of a name; file systems take 255 */
#define NAME_MAX_ 3000u /* below the folder */
#define PIECE (1u << 20)

/* ---- names ---- */

static uint64_t hash_of(const char *s, size_t n)
{
	uint64_t h = n;

	for (size_t i = 0; i < n; i++)
		h = rng_mix64(h ^ (unsigned char)s[i]) + i;
	return h;
}

static void put_part(struct buf *out, const char *s, size_t n)
{
	buf_putc(out, '/');
	if (n == 2 && memcmp(s, "..", 2) == 0) {
		buf_puts(out, "%2e%2e");
	} else if (n == strlen(MARKER) && memcmp(s, MARKER, n) == 0) {
		/* ours, which says whose the folder is */
		buf_puts(out, "%2e" MARKER_NAME);
	} else if (n > PART_MAX) {
		buf_append(out, s, PART_MAX / 2);
		buf_printf(out, "%%%016" PRIx64, hash_of(s, n));
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
		uint64_t h = hash_of(name, strlen(name));

		buf_release(&out);
		buf_printf(&out, "%s/%%long/%016" PRIx64, folder, h);
	}
	return buf_take(&out);
}

/* ---- what is there before the job ---- */

struct seen {
	bool any, created; /* an event that succeeded; the first one made the file */
	bool tried;        /* one that did not */
	bool moved;        /* bytes were read or written */
	bool folder;
};

static void see(struct seen *s, const struct job_event *v)
{
	if (v->result < 0 && v->result != JOB_UNKNOWN && v->kind != JOB_EXIT) {
		s->tried = true;
		return;
	}
	/* it is noted before the call, which tries the folders of PATH one after another */
	if (v->kind == JOB_EXEC)
		return;
	s->folder = s->folder || v->kind == JOB_MAKE_DIR || v->kind == JOB_LIST;
	if (!s->any) {
		s->any = true;
		s->created = (v->kind == JOB_OPEN && v->flags & O_CREAT) || v->kind == JOB_WRITE ||
			     v->kind == JOB_MAKE_DIR;
	}
	/* what is opened to be made if need be was there if it is read first */
	if (!s->moved && (v->kind == JOB_READ || v->kind == JOB_WRITE) && v->result > 0) {
		s->moved = true;
		s->created = s->created && v->kind == JOB_WRITE;
	}
}

static bool is_kept(const struct job_file *f)
{
	return f->kind == JOB_FILE_REGULAR || f->kind == JOB_FILE_FOLDER;
}

/* A name may be in the log both as a file and as a folder: each gets the number of the first. */
static uint32_t *number_names(const struct job *job)
{
	uint32_t *of = xcalloc(job->files + 1, sizeof(*of));
	struct texts names = {0};
	uint32_t *first = xcalloc(job->files + 1, sizeof(*first));

	for (size_t i = 0; i < job->files; i++) {
		size_t known = names.n, k;

		of[i] = (uint32_t)i;
		if (!is_kept(&job->file[i]))
			continue;
		k = texts_add(&names, job->file[i].name);
		if (k == known)
			first[k] = (uint32_t)i;
		of[i] = first[k];
	}
	texts_release(&names);
	free(first);
	return of;
}

static void find_places(struct replay_image *m, const struct job *job)
{
	struct seen *seen = xcalloc(job->files + 1, sizeof(*seen));
	uint32_t *of = number_names(job);

	for (size_t i = 0; i < job->events; i++) {
		const struct job_event *v = &job->event[i];

		if (v->file != JOB_NONE)
			see(&seen[of[v->file]], v);
		if (v->kind == JOB_RENAME && (v->result >= 0 || v->result == JOB_UNKNOWN) &&
		    v->other != JOB_NONE && v->other < job->files && !seen[of[v->other]].any)
			seen[of[v->other]] =
				(struct seen){.any = true, .created = true, .moved = true};
	}
	for (size_t i = 0; i < job->files; i++) {
		const struct seen *s = &seen[of[i]];

		if (job->file[i].kind == JOB_FILE_FOLDER)
			seen[of[i]].folder = true;
		if (!is_kept(&job->file[i]))
			m->place[i] = IMAGE_NONE;
		else if (s->any)
			m->place[i] = s->created ? IMAGE_MADE : IMAGE_PRESENT;
		else
			m->place[i] = s->tried ? IMAGE_ABSENT : IMAGE_NONE;
	}
	for (size_t i = 0; i < job->files; i++)
		m->is_folder[i] = seen[of[i]].folder;
	free(of);
	free(seen);
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
	uint32_t *list = xcalloc(m->files + 1, sizeof(*list));
	size_t n = 0, length;

	for (size_t i = 0; i < m->files; i++)
		if (m->path[i])
			list[n++] = (uint32_t)i;
	qsort_r(list, n, sizeof(*list), compare_paths, m);
	for (size_t i = n; i-- > 1;) {
		const char *path = m->path[list[i - 1]], *next = m->path[list[i]];

		length = strlen(path);
		if (strcmp(path, next) == 0)
			m->is_folder[list[i - 1]] =
				m->is_folder[list[i - 1]] || m->is_folder[list[i]];
		else if (strncmp(path, next, length) == 0 && next[length] == '/' &&
			 m->place[list[i]] != IMAGE_ABSENT)
			m->is_folder[list[i - 1]] = true;
	}
	free(list);
}

static int64_t size_of(const struct job_file *f)
{
	return f->size > 0 ? f->size : 0;
}

int replay_image_init(struct replay_image *m, const struct job *job, const char *folder,
		      struct err *e)
{
	*m = (struct replay_image){.folder = xstrdup(folder), .files = job->files};
	for (size_t n = strlen(m->folder); n > 1 && m->folder[n - 1] == '/'; n--)
		m->folder[n - 1] = '\0';
	if (strlen(m->folder) > PATH_MAX - NAME_MAX_ - 64)
		return err_set(e, ERR_USAGE, "the path of the folder '%.100s...' is too long",
			       folder);
	m->path = try_calloc(job->files + 1, sizeof(*m->path), "the names of the files", e);
	m->place = try_calloc(job->files + 1, 1, "the names of the files", e);
	m->is_folder =
		try_calloc(job->files + 1, sizeof(*m->is_folder), "the names of the files", e);
	if (!m->path || !m->place || !m->is_folder)
		return -ENOMEM;
	find_places(m, job);
	for (size_t i = 0; i < job->files; i++) {
		const struct job_file *f = &job->file[i];

		if (m->place[i] == IMAGE_NONE)
			continue;
		m->path[i] = path_of(m->folder, f->name);
	}
	find_folders(m);
	for (size_t i = 0; i < job->files; i++) {
		const struct job_file *f = &job->file[i];

		if (m->place[i] != IMAGE_PRESENT || m->is_folder[i])
			continue;
		m->present++;
		if (__builtin_add_overflow(m->bytes, (uint64_t)size_of(f), &m->bytes) ||
		    m->bytes > INT64_MAX)
			return err_set(e, ERR_DATA,
				       "the files of the log have more than 2^63 bytes together");
	}
	return 0;
}

void replay_image_release(struct replay_image *m)
{
	for (size_t i = 0; m->path && i < m->files; i++)
		free(m->path[i]);
	free(m->path);
	free(m->place);
	free(m->is_folder);
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

/* Makes the folders above `path` that are below the image's own. */
static int make_parents(const struct replay_image *m, const char *path, struct err *e)
{
	AUTO_FREE char *copy = xstrdup(path);

	/* from the slash after the image's folder; the job's "/" is that folder itself */
	for (char *s = copy + strlen(m->folder); *s && (s = strchr(s + 1, '/'));) {
		*s = '\0';
		if (mkdir(copy, 0777) < 0 && errno != EEXIST)
			return err_sys(e, errno, "%s: this folder cannot be made", copy);
		*s = '/';
	}
	return 0;
}

static int make_folder(const char *path, struct err *e)
{
	struct stat st;

	if (mkdir(path, 0777) == 0 ||
	    (errno == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode)))
		return 0;
	return err_sys(e, errno, "%s: this folder cannot be made", path);
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

static int make_file(struct replay_image *m, size_t i, uint64_t bytes, bool sparse, void *piece,
		     const struct stop_flag *stop, struct err *e)
{
	const char *path = m->path[i];
	int rc = make_parents(m, path, e), fd;

	if (rc < 0)
		return rc;
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0)
		return err_sys(e, errno, "%s: cannot be made", path);
	rc = sparse ? (ftruncate(fd, (off_t)bytes) < 0
			       ? err_sys(e, errno, "%s: cannot be made", path)
			       : 0)
		    : write_bytes(
			      fd, path,
			      hash_of(path + strlen(m->folder), strlen(path + strlen(m->folder))),
			      bytes, piece, stop, e);
	if (close(fd) < 0 && rc == 0)
		rc = err_sys(e, errno, "%s: cannot be written", path);
	if (rc == 0) {
		m->written++;
		m->written_bytes += bytes;
	}
	return rc;
}

static bool is_there(const char *path, uint64_t bytes)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == bytes;
}

/* A file that was made whole in another image's way is made again. */
static bool same_way(const struct replay_image *m, bool sparse)
{
	AUTO_FREE char *path = xasprintf("%s/" MARKER, m->folder);
	char text[16] = "";
	FILE *f = fopen(path, "re");

	if (!f)
		return false;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	return str_starts(text, sparse ? "sparse" : "filled");
}

/* The folder is ours, or empty. */
static int take_folder(const struct replay_image *m, struct err *e)
{
	AUTO_FREE char *marker = xasprintf("%s/" MARKER, m->folder);
	struct dirent *entry;
	bool empty = true;
	DIR *d;

	if (mkdir(m->folder, 0777) < 0 && errno != EEXIST)
		return err_sys(e, errno, "%s: this folder cannot be made", m->folder);
	d = opendir(m->folder);
	if (!d)
		return err_sys(e, errno, "%s: cannot be read", m->folder);
	while ((entry = readdir(d)))
		empty = empty &&
			(strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
			 strcmp(entry->d_name, "lost+found") == 0);
	closedir(d);
	if (empty || access(marker, F_OK) == 0)
		return 0;
	return err_set(e, ERR_USAGE,
		       "the folder '%s' holds other things than the files of a replay: name an "
		       "empty or a new one",
		       m->folder);
}

/* No folder of the image is a link: what is below it would lie elsewhere. */
static int check_links(const struct replay_image *m, struct err *e)
{
	size_t below = strlen(m->folder);
	AUTO_FREE char *last = xstrdup("");

	for (size_t i = 0; i < m->files; i++) {
		const char *end = m->path[i] ? strrchr(m->path[i], '/') : NULL;
		char *folder;

		if (!end || (size_t)(end - m->path[i]) <= below)
			continue;
		folder = xstrndup(m->path[i], (size_t)(end - m->path[i]));
		if (strcmp(folder, last) == 0) {
			free(folder);
			continue;
		}
		free(last);
		last = xstrdup(folder);
		for (char *s = folder + below; s;) {
			struct stat st;
			bool link;

			s = strchr(s + 1, '/');
			if (s)
				*s = '\0';
			link = lstat(folder, &st) == 0 && S_ISLNK(st.st_mode);
			if (link)
				err_set(e, ERR_USAGE,
					"'%s' is a symbolic link, but the files of a replay are "
					"made only below its own folder: remove the link",
					folder);
			if (s)
				*s = '/';
			if (link) {
				free(folder);
				return ERR_USAGE;
			}
		}
		free(folder);
	}
	return 0;
}

static int mark(const struct replay_image *m, const char *way, struct err *e)
{
	AUTO_FREE char *path = xasprintf("%s/" MARKER, m->folder);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
	int rc = 0;

	if (fd < 0)
		return err_sys(e, errno, "%s: cannot be made", path);
	if (write(fd, way, strlen(way)) != (ssize_t)strlen(way))
		rc = err_sys(e, errno, "%s: cannot be written", path);
	close(fd);
	return rc;
}

static int check_space(const struct replay_image *m, uint64_t bytes, struct err *e)
{
	char need[32], have[32];
	struct statvfs st;
	double room;

	if (statvfs(m->folder, &st) < 0)
		return 0;
	room = (double)st.f_bavail * (double)st.f_frsize;
	if ((double)bytes <= room)
		return 0;
	return err_set(e, -ENOSPC,
		       "the files of the job take %s below '%s', where %s are free: name another "
		       "folder with --data, or use --sparse",
		       str_bytes((double)bytes, need, sizeof(need)), m->folder,
		       str_bytes(room, have, sizeof(have)));
}

/* What the job makes or misses is not there. */
static void remove_made_files(const struct replay_image *m)
{
	for (size_t i = 0; i < m->files; i++)
		if (m->place[i] == IMAGE_MADE || m->place[i] == IMAGE_ABSENT)
			unlink(m->path[i]);
}

/* Folders that hold other things stay. */
static void remove_made_folders(const struct replay_image *m)
{
	/* names are in the order in which the job came to them: inner folders later */
	for (size_t i = m->files; i-- > 0;)
		if (m->place[i] == IMAGE_MADE || m->place[i] == IMAGE_ABSENT)
			rmdir(m->path[i]);
}

static void make_cold(const struct replay_image *m)
{
	for (size_t i = 0; i < m->files; i++) {
		int fd = -1;

		if (m->place[i] == IMAGE_PRESENT && !m->is_folder[i])
			fd = open(m->path[i], O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			continue;
		fdatasync(fd);
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		close(fd);
	}
}

static int make_all(struct replay_image *m, const struct job *job, bool sparse, bool again,
		    void *piece, const struct stop_flag *stop, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < m->files && rc == 0; i++) {
		const struct job_file *f = &job->file[i];
		uint64_t bytes = (uint64_t)size_of(f);

		if (m->place[i] == IMAGE_NONE)
			continue;
		if (stop_is_set(stop))
			return err_set(e, ERR_CANCELED, "stopped while files were made");
		if (m->place[i] != IMAGE_PRESENT)
			rc = make_parents(m, m->path[i], e);
		else if (m->is_folder[i])
			rc = make_parents(m, m->path[i], e) < 0 ? e->code
								: make_folder(m->path[i], e);
		else if (again || !is_there(m->path[i], bytes))
			rc = make_file(m, i, bytes, sparse, piece, stop, e);
	}
	return rc;
}

int replay_image_make(struct replay_image *m, const struct job *job, bool sparse, bool cold,
		      const struct stop_flag *stop, struct err *e)
{
	const char *way = sparse ? "sparse\n" : "filled\n";
	uint64_t missing = 0;
	struct err ignored;
	bool again;
	void *piece;
	int rc = take_folder(m, e);

	if (rc == 0)
		rc = check_links(m, e);
	if (rc < 0)
		return rc;
	m->written = m->written_bytes = 0;
	again = !same_way(m, sparse);
	for (size_t i = 0; i < m->files && !sparse; i++)
		if (m->place[i] == IMAGE_PRESENT && !m->is_folder[i] &&
		    !is_there(m->path[i], (uint64_t)size_of(&job->file[i])))
			missing += (uint64_t)size_of(&job->file[i]);
	rc = check_space(m, missing, e);
	if (rc < 0)
		return rc;
	piece = try_calloc(1, PIECE, "the bytes of files", e);
	if (!piece)
		return -ENOMEM;
	/* until all is whole, as neither */
	rc = again ? mark(m, "begun\n", e) : 0;
	if (rc == 0) {
		remove_made_files(m);
		rc = make_all(m, job, sparse, again, piece, stop, e);
		remove_made_folders(m);
	}
	free(piece);
	if (rc == 0 && again)
		rc = mark(m, way, e ? e : &ignored);
	if (rc == 0 && cold)
		make_cold(m);
	return rc;
}
