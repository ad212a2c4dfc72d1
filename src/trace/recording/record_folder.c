/* The folder of a recording. Its name in the launcher's words makes ranks join one folder; a file
 * that is linked into place is whole for all of them. */
#include "trace/recording/record_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/map.h"
#include "base/str.h"
#include "base/transfer.h"
#include "os/file_system.h"
#include "os/sysinfo.h"

#define NAMES_MAX 1000
#define JOB_FILE_MAX 4096
#define KEY_NAME ".key"
#define ROOM_LEAST 65536 /* bytes that must be free: those of a few processes */

static uint64_t digest(const char *s)
{
	return fnv1a_text(FNV_START, s ? s : "");
}

static int random_bytes(void *to, size_t n, struct err *e)
{
	return getrandom(to, n, 0) == (ssize_t)n ? 0 : err_sys(e, errno, "no random numbers");
}

/* Whether there is nothing in it but files that are being made; negative: it cannot be read. */
static int is_empty(const char *path, struct err *e)
{
	DIR *d = folder_open(path);
	struct dirent *entry;
	bool empty = true;
	int rc = d ? 0 : -errno;

	while (d && (rc = folder_next(d, &entry)) > 0)
		empty = empty && entry->d_name[0] == '.';
	if (d)
		closedir(d);
	return rc < 0 ? err_sys(e, -rc, "%s: cannot be read", path) : empty;
}

/* What the folder says of its job. ERR_DATA when it holds no recording. */
static int read_job(const char *path, char job[32], bool *anonymous, struct err *e)
{
	char *name = path_join(path, RING_JOB_NAME);
	struct buf text = {0};
	int rc = file_read(name, JOB_FILE_MAX, &text, e), hashed;

	if (rc == 0 && (strncmp(text.data, RING_JOB_MAGIC, strlen(RING_JOB_MAGIC)) != 0 ||
			sscanf(text.data + strlen(RING_JOB_MAGIC), "job %31s\nanonymous %d", job,
			       &hashed) != 2))
		rc = err_set(e, ERR_DATA, "%s: not of a recording", name);
	else if (rc == 0)
		*anonymous = hashed != 0;
	buf_release(&text);
	free(name);
	return rc;
}

static int has_room(const char *path, struct err *e)
{
	uint64_t room, files;
	char bytes[32];

	if (!file_system_room(path, &room, &files) || room >= ROOM_LEAST)
		return 0;
	return err_set(e, -ENOSPC,
		       "%s: no room for a recording: %s are free. Name a folder on another file "
		       "system",
		       path, str_bytes((double)room, bytes, sizeof(bytes)));
}

/* Makes the file that marks the folder. 1: another process did. */
static int make_job(const char *path, const char *text, struct err *e)
{
	char temporary[64];
	char *from, *to = path_join(path, RING_JOB_NAME);
	int rc;

	snprintf(temporary, sizeof(temporary), ".job-%ld-%llx", (long)getpid(),
		 (unsigned long long)digest(path));
	from = path_join(path, temporary);
	rc = file_write(from, text, strlen(text), e);
	if (rc == 0 && link(from, to) < 0)
		rc = errno == EEXIST ? 1 : err_sys(e, errno, "%s: cannot be made", to);
	unlink(from);
	free(from);
	free(to);
	return rc;
}

/* Ranks of one job have one key: the first makes it, in a file that the last of them removes. With
 * it is how many have still to end; where their number is not known, how many have begun. */
static int share_key(struct record_folder *f, struct err *e)
{
	char *path = path_join(f->path, KEY_NAME);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600), users = 0, rc = 0;
	char text[64] = {0}, key[33];

	if (fd < 0 || flock(fd, LOCK_EX) < 0) {
		rc = err_sys(e, errno, "%s: cannot be made", path);
	} else {
		if (pread_fully(fd, text, sizeof(text) - 1, 0) > 0 &&
		    sscanf(text, "%d %32s", &users, key) == 2 && strlen(key) == 32)
			memcpy(f->key, key, sizeof(key));
		if (f->ranks <= 0 || users == 0)
			users = f->ranks > 0 ? (int)f->ranks : users + 1;
		snprintf(text, sizeof(text), "%d %s\n", users, f->key);
		rc = pwrite_fully(fd, text, strlen(text), 0);
		if (rc < 0)
			rc = err_sys(e, -rc, "%s: cannot be written", path);
	}
	if (fd >= 0)
		close(fd);
	free(path);
	return rc;
}

static void leave_key(const struct record_folder *f)
{
	char *path = path_join(f->path, KEY_NAME), text[64] = {0}, key[33];
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW), users = 1;

	if (fd >= 0 && flock(fd, LOCK_EX) == 0) {
		if (pread_fully(fd, text, sizeof(text) - 1, 0) > 0 &&
		    sscanf(text, "%d %32s", &users, key) == 2 && users > 1) {
			snprintf(text, sizeof(text), "%d %s\n", users - 1, key);
			(void)pwrite_fully(fd, text, strlen(text), 0);
		} else {
			unlink(path);
		}
	}
	if (fd >= 0)
		close(fd);
	free(path);
}

/* 0: begun; 1: the name is taken by something else, and `e` says by what. */
static int begin_at(struct record_folder *f, const char *path, const char *job, bool anonymous,
		    struct err *e)
{
	char text[256], mine[32] = "none", theirs[32];
	bool hashed, made;
	int rc, empty = 0;

	if (job)
		snprintf(mine, sizeof(mine), "%016llx", (unsigned long long)digest(job));
	if (strlen(path) >= sizeof(f->path))
		return err_set(e, ERR_USAGE, "-o: the name of the folder is too long");
	snprintf(f->path, sizeof(f->path), "%s", path);
	made = mkdir(path, 0700) == 0;
	if (!made && errno != EEXIST)
		return err_sys(e, errno, "%s: cannot be made", path);
	rc = read_job(path, theirs, &hashed, e);
	if (rc == -ENOENT && (empty = is_empty(path, e)) > 0) {
		snprintf(text, sizeof(text), "%sjob %s\nanonymous %d\nprocessors %.6g\n",
			 RING_JOB_MAGIC, mine, anonymous, host_usable_cpus());
		rc = has_room(path, e);
		if (rc == 0)
			rc = make_job(path, text, e);
		if (rc < 0 && made)
			rmdir(path); /* unless another rank is at work in it */
		if (rc <= 0)
			return rc;
		rc = read_job(path, theirs, &hashed, e);
	} else if (empty < 0) {
		return empty;
	} else if (rc == -ENOENT) {
		err_set(e, ERR_USAGE,
			"%s: holds something that is no recording: name a folder that does not "
			"exist yet, or an empty one",
			path);
		return 1;
	}
	if (rc == ERR_DATA || rc == -ENOTDIR || rc == ERR_KIND || rc == -EISDIR)
		return 1;
	if (rc < 0)
		return rc;
	if (!job || strcmp(theirs, mine) != 0) {
		err_set(e, ERR_USAGE,
			"%s: holds the recording of another job: name another folder, or remove "
			"this one",
			path);
		return 1;
	}
	if (hashed != anonymous)
		return err_set(e, ERR_USAGE,
			       "%s: another process of this job records %s --anonymize: give all "
			       "of them the same options",
			       path, hashed ? "with" : "without");
	f->joined = true;
	return 0;
}

int64_t record_folder_done(const struct record_folder *f)
{
	DIR *d = opendir(f->path);
	struct dirent *entry;
	int64_t n = 0;

	while (d && (entry = readdir(d)))
		n += str_ends(entry->d_name, ".end");
	if (d)
		closedir(d);
	return n;
}

int record_folder_begin(struct record_folder *f, const char *path, const char *job, int64_t ranks,
			bool anonymous, struct err *e)
{
	uint64_t key[2];
	int rc = 1;

	*f = (struct record_folder){.ranks = job && ranks < INT32_MAX ? ranks : 0};
	if (anonymous) {
		rc = random_bytes(key, sizeof(key), e);
		if (rc < 0)
			return rc;
		snprintf(f->key, sizeof(f->key), "%016llx%016llx", (unsigned long long)key[0],
			 (unsigned long long)key[1]);
	}
	if (path) {
		AUTO_FREE char *whole = path_absolute(path), *above = path_dirname(whole);

		rc = file_mkdirs(above, e);
		if (rc == 0)
			rc = begin_at(f, whole, job, anonymous, e);
	} else {
		rc = 1;
	}
	for (int i = 1; !path && rc == 1 && i < NAMES_MAX; i++) {
		char name[32] = "recording";
		AUTO_FREE char *whole = NULL;

		if (i > 1)
			snprintf(name, sizeof(name), "recording-%d", i);
		whole = path_absolute(name);
		rc = begin_at(f, whole, job, anonymous, e);
	}
	if (rc == 1)
		rc = e->code;
	if (rc == 0 && anonymous && job)
		rc = share_key(f, e);
	return rc;
}

/* The only host of the folder; with several, pids mean nothing here. */
static bool one_host(const char *folder, uint64_t *host)
{
	DIR *d = opendir(folder);
	struct dirent *entry;
	unsigned long long id;
	int n = 0;

	while (d && (entry = readdir(d)))
		if (sscanf(entry->d_name, RING_CONTROL_NAME "%16llx", &id) == 1) {
			*host = id;
			n++;
		}
	if (d)
		closedir(d);
	return n == 1;
}

/* Rings are stores to memory: their bytes reach the storage when the kernel writes them. All are on
 * their way before the first is waited for. */
static int sync_rings(const char *folder, struct err *e)
{
	int rc = 0;

	for (int wait = 0; wait < 2 && rc == 0; wait++) {
		DIR *d = folder_open(folder);
		struct dirent *entry;
		int more = d ? 0 : -errno;

		while (d && rc == 0 && (more = folder_next(d, &entry)) > 0) {
			bool ring = str_ends(entry->d_name, ".ring");
			int fd;

			if (!ring && !str_starts(entry->d_name, RING_CONTROL_NAME))
				continue;
			fd = openat(dirfd(d), entry->d_name,
				    O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
			/* of another user, or removed */
			if (fd < 0)
				continue;
			if (!wait)
				(void)sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
			else if ((rc = sync_fully(fd)) < 0 && (rc == -EINVAL || rc == -EROFS))
				rc = 0;
			else if (rc < 0)
				err_sys(e, -rc, "%s/%s: cannot be synced", folder, entry->d_name);
			close(fd);
		}
		if (d)
			closedir(d);
		if (more < 0)
			rc = err_sys(e, -more, "%s: cannot be read", folder);
	}
	return rc;
}

int record_folder_ends(const struct record_folder *f, const struct ring_end *end, size_t n,
		       struct err *e)
{
	char name[32];
	uint64_t id;
	char *path;
	AUTO_FREE char *above = path_dirname(f->path);
	uint64_t host;
	int rc = random_bytes(&id, sizeof(id), e);

	/* of several hosts, each would wait for the rings of all */
	if (rc == 0 && one_host(f->path, &host))
		rc = sync_rings(f->path, e);
	if (rc < 0)
		return rc;
	snprintf(name, sizeof(name), "%016llx.end", (unsigned long long)id);
	path = path_join(f->path, name);
	rc = file_write(path, (const char *)end, n * sizeof(*end), e);
	if (rc == 0)
		rc = file_sync_folder(above, e);
	free(path);
	return rc;
}

/* ---- what rings do not use ---- */

static void trim(int fd, uint64_t size)
{
	uint64_t at = RING_PAGE;

	while (at + sizeof(struct ring_chunk) <= size) {
		struct ring_chunk c;
		uint64_t end, used;

		if (pread_fully(fd, &c, sizeof(c), (off_t)at) != (ssize_t)sizeof(c) ||
		    c.magic != ring_chunk_magic(&c) || c.bytes < RING_PAGE || c.bytes % RING_PAGE)
			return;
		end = at + c.bytes;
		used = at + sizeof(c) + c.used;
		if (end >= size) {
			(void)!ftruncate(fd, (off_t)(used < size ? used : size));
			return;
		}
		used = (used + RING_PAGE - 1) / RING_PAGE * RING_PAGE;
		if (used < end)
			(void)!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					 (off_t)used, (off_t)(end - used));
		at = end;
	}
}

/* Of this host, which the control file has in its name, and of processes that have ended. */
static void trim_ring(const char *folder, const char *name, uint64_t host)
{
	char *path = path_join(folder, name);
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct ring_head h;
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    pread_fully(fd, &h, sizeof(h), 0) == (ssize_t)sizeof(h) &&
	    memcmp(h.magic, RING_MAGIC, sizeof(h.magic)) == 0 && h.host == host && h.pid > 0 &&
	    (h.pid == getpid() || (kill((pid_t)h.pid, 0) < 0 && errno == ESRCH)))
		trim(fd, (uint64_t)st.st_size);
	if (fd >= 0)
		close(fd);
	free(path);
}

void record_folder_end(const struct record_folder *f)
{
	struct dirent *entry;
	uint64_t host = 0;
	DIR *d;

	if (f->key[0])
		leave_key(f);
	d = one_host(f->path, &host) ? opendir(f->path) : NULL;
	while (d && (entry = readdir(d)))
		if (str_ends(entry->d_name, ".ring"))
			trim_ring(f->path, entry->d_name, host);
	if (d)
		closedir(d);
}

void record_folder_undo(const struct record_folder *f)
{
	static const char *const names[] = {RING_JOB_NAME, KEY_NAME};

	for (size_t i = 0; !f->joined && i < sizeof(names) / sizeof(names[0]); i++) {
		char *path = path_join(f->path, names[i]);

		unlink(path);
		free(path);
	}
	if (!f->joined)
		rmdir(f->path);
}
