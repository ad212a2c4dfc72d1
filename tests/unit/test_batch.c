/* Batches of files: synced together before they are named, or not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../skip.h"
#include "os/file_system.h"
#include "store/batch.h"

/* What the program asked the system for, and what that says. */
static int syncfs_calls, fsync_calls, syncfs_fails, fsync_fails_at, link_fails_at, links;
static int64_t syncfs_takes_ns;

int __real_syncfs(int fd);
int __wrap_syncfs(int fd);
int __wrap_syncfs(int fd)
{
	syncfs_calls++;
	if (syncfs_takes_ns) {
		struct timespec t = {.tv_sec = syncfs_takes_ns / 1000000000,
				     .tv_nsec = syncfs_takes_ns % 1000000000};

		nanosleep(&t, NULL);
	}
	if (syncfs_fails) {
		errno = syncfs_fails;
		return -1;
	}
	return __real_syncfs(fd);
}

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
	if (++fsync_calls == fsync_fails_at) {
		errno = EIO;
		return -1;
	}
	return __real_fsync(fd);
}

int __real_linkat(int from, const char *path, int to, const char *name, int flags);
int __wrap_linkat(int from, const char *path, int to, const char *name, int flags);
int __wrap_linkat(int from, const char *path, int to, const char *name, int flags)
{
	/* as without privileges, before Linux 6.10 */
	if (flags & AT_EMPTY_PATH) {
		errno = ENOENT;
		return -1;
	}
	if (++links == link_fails_at) {
		errno = ENOSPC;
		return -1;
	}
	return __real_linkat(from, path, to, name, flags);
}

static struct {
	struct store *store;
	struct io io;
	struct blob *blob;
	struct store_batch *batch;
	_Atomic uint64_t named;
	char root[300];
	bool whole; /* syncfs and files without a name are used here */
} t;

static int set_up(void **state)
{
	const char *tmp = getenv("TMPDIR");
	struct file_system fs;

	(void)state;
	memset(&t, 0, sizeof(t));
	syncfs_calls = fsync_calls = syncfs_fails = fsync_fails_at = link_fails_at = links = 0;
	syncfs_takes_ns = 0;
	snprintf(t.root, sizeof(t.root), "%s/stoker-batch-XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(t.root));
	assert_int_equal(store_create(&t.store, "posix", NULL, NULL), 0);
	t.io.store = t.store;
	t.blob = store_blob_new(t.store, NULL);
	assert_int_equal(store_batch_new(&t.batch, t.store, 1, NULL), 0);
	t.whole = file_system_of_path(t.root, &fs) && fs.batches;
	return 0;
}

static const char *at(const char *name)
{
	static char path[4][400];
	static unsigned next;

	snprintf(path[next % 4], sizeof(path[0]), "%s/%s", t.root, name);
	return path[next++ % 4];
}

/* Names in the folder; `hidden`: only those that begin with a dot. */
static int entries(bool hidden)
{
	DIR *d = opendir(t.root);
	struct dirent *entry;
	int n = 0;

	while ((entry = readdir(d)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			n += !hidden || entry->d_name[0] == '.';
	closedir(d);
	return n;
}

static int tear_down(void **state)
{
	char line[400];
	DIR *d = opendir(t.root);
	struct dirent *entry;

	(void)state;
	store_batch_free(t.batch);
	free(t.blob);
	store_destroy(t.store);
	while ((entry = readdir(d))) {
		snprintf(line, sizeof(line), "%s/%.80s", t.root, entry->d_name);
		unlink(line);
	}
	closedir(d);
	return rmdir(t.root);
}

static int put(const char *name, const char *text, struct err *e)
{
	int rc = store_batch_open(t.batch, &t.io, at(name), t.blob, e);

	if (rc < 0)
		return rc;
	rc = io_pwrite(&t.io, t.blob, text, strlen(text), 0, e) < 0 ? -EIO : 0;
	return store_batch_close(t.batch, &t.io, t.blob, rc, &t.named, e);
}

static void must_put(const char *name, const char *text)
{
	struct err e;

	if (put(name, text, &e) < 0)
		fail_msg("%s", e.text);
}

static void put_many(int n)
{
	char name[16];

	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		must_put(name, name);
	}
}

static void must_commit(void)
{
	struct err e;

	if (store_batch_commit(t.batch, &e) < 0)
		fail_msg("%s", e.text);
}

static void holds(const char *name, const char *text)
{
	char got[64] = "";
	FILE *f = fopen(at(name), "r");

	assert_non_null(f);
	assert_int_equal(fread(got, 1, sizeof(got) - 1, f), strlen(text));
	fclose(f);
	assert_string_equal(got, text);
}

static void nothing_has_a_name_before(void **state)
{
	(void)state;
	put_many(20);
	assert_int_equal(entries(false) - entries(true), 0);
	assert_int_equal(fsync_calls + syncfs_calls, 0);
	assert_int_equal(t.named, 0);
	must_commit();
	assert_int_equal(entries(false), 20);
	assert_int_equal(t.named, 20);
	holds("f0", "f0");
	holds("f19", "f19");
	if (t.whole) {
		assert_int_equal(syncfs_calls, 1);
		assert_int_equal(fsync_calls, 0);
	} else {
		assert_int_equal(fsync_calls, 20);
	}
	must_commit();
	assert_int_equal(entries(false), 20);
}

/* More than one batch; what is left is discarded. */
static void full_ones_are_committed(void **state)
{
	(void)state;
	put_many(STORE_BATCH_FILES + 1);
	assert_true(t.named > 0 && t.named <= STORE_BATCH_FILES);
	store_batch_free(t.batch);
	t.batch = NULL;
	assert_int_equal(entries(false), t.named);
}

static void few_are_synced_one_by_one(void **state)
{
	(void)state;
	put_many(3);
	must_commit();
	assert_int_equal(syncfs_calls, 0);
	assert_int_equal(fsync_calls, 3);
	assert_int_equal(entries(false), 3);
}

static void existing_files_are_replaced(void **state)
{
	(void)state;
	must_put("a", "old");
	must_commit();
	/* what a killed one left */
	must_put(".a.part", "x");
	must_commit();
	must_put("a", "new one");
	holds("a", "old");
	must_commit();
	holds("a", "new one");
	assert_int_equal(entries(true), 0);
}

/* A link that somebody prepared leads nowhere. */
static void links_are_not_followed(void **state)
{
	(void)state;
	must_put("target", "theirs");
	must_commit();
	assert_int_equal(symlink(at("target"), at(".b.part")), 0);
	assert_int_equal(symlink(at("target"), at("b")), 0);
	must_put("b", "ours");
	must_commit();
	holds("target", "theirs");
	holds("b", "ours");
	assert_int_equal(entries(true), 0);
}

/* The error may be of anybody's files: the own ones are asked. */
static void an_error_of_the_file_system(void **state)
{
	struct err e;

	(void)state;
	if (!t.whole)
		skip_because("syncfs is not used on this file system");
	syncfs_fails = EIO;
	put_many(20);
	must_commit();
	assert_int_equal(fsync_calls, 20);
	assert_int_equal(entries(false), 20);
	fsync_fails_at = 20 + 7;
	must_put("g", "g");
	put_many(20);
	assert_int_equal(store_batch_commit(t.batch, &e), -EIO);
	assert_non_null(strstr(e.text, "/f5'"));
	assert_non_null(strstr(e.text, "cannot write '"));
	assert_int_equal(entries(false), 20);
	/* where it is not known, it is not asked again */
	syncfs_fails = ENOSYS;
	syncfs_calls = 0;
	for (int i = 0; i < 3; i++) {
		put_many(20);
		must_commit();
	}
	assert_int_equal(syncfs_calls, 1);
}

static void a_failure_to_name(void **state)
{
	struct err e;

	(void)state;
	if (!t.whole)
		skip_because("files without a name are not used on this file system");
	link_fails_at = 4;
	put_many(10);
	assert_int_equal(store_batch_commit(t.batch, &e), -ENOSPC);
	assert_non_null(strstr(e.text, "/f3'"));
	assert_int_equal(entries(false), 3);
	assert_int_equal(t.named, 3);
	put_many(10);
	must_commit();
	assert_int_equal(entries(false), 10);
}

/* Somebody else's data makes syncfs slow. */
static void a_slow_file_system_is_not_synced_whole(void **state)
{
	(void)state;
	if (!t.whole)
		skip_because("syncfs is not used on this file system");
	syncfs_takes_ns = 1200000000;
	for (int i = 0; i < 18; i++) {
		put_many(20);
		must_commit();
	}
	assert_int_equal(syncfs_calls, 2);
	assert_true(fsync_calls >= 16 * 20);
	assert_int_equal(entries(false), 20);
}

static void a_failed_write_is_discarded(void **state)
{
	struct err e = {.text = "why"};
	char said[PATH_MAX + 64];

	(void)state;
	must_put("a", "a");
	assert_int_equal(store_batch_open(t.batch, &t.io, at("b"), t.blob, &e), 0);
	assert_int_equal(store_batch_close(t.batch, &t.io, t.blob, -ENOSPC, NULL, &e), -ENOSPC);
	snprintf(said, sizeof(said), "cannot write '%s': why", at("b"));
	assert_string_equal(e.text, said);
	assert_true(store_batch_open(t.batch, &t.io, at("no/such/folder"), t.blob, &e) < 0);
	must_put("c", "c");
	must_commit();
	assert_int_equal(entries(false), 2);
	holds("c", "c");
}

/* The descriptors that may be open are shared, and the limit is not passed. */
static void few_descriptors(void **state)
{
	struct rlimit old, l = {.rlim_cur = 256, .rlim_max = 256};
	pid_t child = fork();
	int status;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	if (child == 0) {
		struct store_batch *b = NULL;
		struct err e;

		if (setrlimit(RLIMIT_NOFILE, &l) != 0 || store_batch_new(&b, t.store, 2, &e) != 0)
			_exit(2);
		for (int i = 0; i < 500; i++) {
			char name[16];

			snprintf(name, sizeof(name), "d%d", i);
			if (store_batch_open(b, &t.io, at(name), t.blob, &e) != 0 ||
			    store_batch_close(b, &t.io, t.blob, 0, NULL, &e) != 0)
				_exit(3);
		}
		if (store_batch_commit(b, &e) != 0)
			_exit(4);
		store_batch_free(b);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(entries(false), 500);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(nothing_has_a_name_before),   CASE(full_ones_are_committed),
		CASE(few_are_synced_one_by_one),   CASE(existing_files_are_replaced),
		CASE(links_are_not_followed),      CASE(an_error_of_the_file_system),
		CASE(a_failure_to_name),           CASE(a_slow_file_system_is_not_synced_whole),
		CASE(a_failed_write_is_discarded), CASE(few_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
