/* The contract of store/store.h, the same for every base store and every shim over two of them. */
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../skip.h"
#include "base/alloc.h"
#include "base/rng.h"
#include "base/thread.h"
#include "store/store.h"

static const char *expression;      /* of the group that runs */
static const char *folder = "/tmp"; /* where its files lie */

static struct {
	struct store *store;
	struct io io;
	struct blob *blob;
	char root[64];
	int fds;
} t;

/* ---- fixture ---- */

static int open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static struct store *make(const char *expr, const char *yaml)
{
	struct node *n = yaml ? yaml_parse(yaml, strlen(yaml), "test", NULL) : NULL;
	struct store *s = NULL;
	struct err e;

	if (store_create(&s, expr, n, &e) != 0)
		fail_msg("%s: %s", expr, e.text);
	node_free(n);
	return s;
}

static int set_up(void **state)
{
	(void)state;
	t.fds = open_fds();
	t.store = make(expression, NULL);
	t.io = (struct io){.store = t.store};
	t.blob = store_blob_new(t.store, NULL);
	assert_non_null(t.blob);
	snprintf(t.root, sizeof(t.root), "%s/stoker-store-XXXXXX", folder);
	if (store_base_flags(t.store) & STORE_HAS_FILES)
		assert_non_null(mkdtemp(t.root));
	else
		assert_int_equal(store_mkdirs(t.store, t.root, NULL), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	if (store_base_flags(t.store) & STORE_HAS_FILES)
		nftw(t.root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(t.blob);
	store_destroy(t.store);
	if (open_fds() != t.fds) {
		print_error("%s: %d file descriptors before, %d after\n", expression, t.fds,
			    open_fds());
		return -1;
	}
	return 0;
}

/* A path below the test's folder; four may be in use at once. */
static const char *at(const char *name)
{
	static char path[4][512];
	static unsigned next;
	char *p = path[next++ % 4];

	snprintf(p, sizeof(path[0]), "%s/%s", t.root, name);
	return p;
}

static void ok(int rc, const struct err *e)
{
	if (rc < 0)
		fail_msg("%s: %s", expression, e->text);
}

static void open_blob(const char *path, unsigned how)
{
	struct err e;

	ok(io_open(&t.io, path, how, t.blob, &e), &e);
}

static void close_blob(void)
{
	struct err e;

	ok(io_close(&t.io, t.blob, &e), &e);
}

static void put(const char *path, const void *p, size_t n)
{
	struct err e;

	open_blob(path, STORE_WRITE | STORE_CREATE);
	if (io_pwrite(&t.io, t.blob, p, n, 0, &e) != (ssize_t)n)
		fail_msg("%s: %s", expression, e.text);
	close_blob();
}

static void expect_content(const char *path, const void *p, size_t n)
{
	char *got = xmalloc(n + 1);
	struct store_stat st;
	struct err e;

	open_blob(path, STORE_READ);
	ok(io_stat_blob(&t.io, t.blob, &st, &e), &e);
	assert_int_equal(st.bytes, n);
	assert_int_equal(io_pread(&t.io, IO_DATA, t.blob, got, n + 1, 0, &e), n);
	assert_memory_equal(got, p, n);
	close_blob();
	free(got);
}

static void expect_error(int rc, int code, const struct err *e, const char *part)
{
	if (rc != code)
		fail_msg("%s: code %d, %d wanted (%s)", expression, rc, code,
			 rc < 0 ? e->text : "");
	assert_int_equal(e->code, code);
	if (part && !strstr(e->text, part))
		fail_msg("%s: '%s' does not mention '%s'", expression, e->text, part);
}

static char pattern(uint64_t i)
{
	return (char)(i * 2654435761u >> 13);
}

static char *pattern_new(size_t n)
{
	char *p = xmalloc(n);

	for (size_t i = 0; i < n; i++)
		p[i] = pattern(i);
	return p;
}

/* ---- bytes ---- */

static void write_and_read(void **state)
{
	(void)state;
	put(at("a"), "hello", 5);
	expect_content(at("a"), "hello", 5);
}

static void read_ranges(void **state)
{
	size_t n = 3 * 1024 * 1024 + 17;
	AUTO_FREE char *want = pattern_new(n);
	AUTO_FREE char *got = xmalloc(n);
	struct err e;

	(void)state;
	put(at("a"), want, n);
	open_blob(at("a"), STORE_READ);
	assert_int_equal(io_pread(&t.io, IO_DATA, t.blob, got, n, 0, &e), n);
	assert_memory_equal(got, want, n);
	for (uint64_t i = 0; i < 300; i++) {
		uint64_t from = rng_word(1, i) % n, len = rng_word(2, i) % (n - from + 1);

		if (i % 3 == 0)
			len %= 5000;
		assert_int_equal(io_pread(&t.io, IO_DATA, t.blob, got, len, from, &e), len);
		assert_memory_equal(got, want + from, len);
	}
	close_blob();
}

/* Pieces in any order, each at the powers of two where chunks and blocks meet. */
static void write_ranges(void **state)
{
	size_t n = 2 * 1024 * 1024 + 100;
	AUTO_FREE char *want = pattern_new(n);
	static const size_t cut[] = {0,    1,     511,    512,     4095,    4096,    4097,
				     8192, 65535, 524288, 1048575, 1048576, 1048577, 2097152};
	const size_t cuts = sizeof(cut) / sizeof(cut[0]);
	struct err e;

	(void)state;
	open_blob(at("a"), STORE_WRITE | STORE_CREATE);
	for (size_t k = 0; k < cuts; k++) {
		size_t i = k * 5 % cuts, end = i + 1 < cuts ? cut[i + 1] : n;

		assert_int_equal(io_pwrite(&t.io, t.blob, want + cut[i], end - cut[i], cut[i], &e),
				 end - cut[i]);
	}
	close_blob();
	expect_content(at("a"), want, n);
}

static void read_past_the_end(void **state)
{
	char p[16];
	struct err e;

	(void)state;
	put(at("a"), "0123456789", 10);
	open_blob(at("a"), STORE_READ);
	assert_int_equal(io_pread(&t.io, IO_DATA, t.blob, p, 16, 4, &e), 6);
	assert_memory_equal(p, "456789", 6);
	assert_int_equal(io_pread(&t.io, IO_DATA, t.blob, p, 16, 10, &e), 0);
	assert_int_equal(io_pread(&t.io, IO_DATA, t.blob, p, 16, 1ull << 40, &e), 0);
	assert_int_equal(io_pread(&t.io, IO_DATA, t.blob, p, 0, 4, &e), 0);
	close_blob();
}

static void full_reads(void **state)
{
	char p[16];
	struct err e;

	(void)state;
	put(at("abc"), "0123456789", 10);
	open_blob(at("abc"), STORE_READ);
	ok(io_pread_full(&t.io, IO_META, t.blob, "abc", p, 6, 4, &e), &e);
	assert_memory_equal(p, "456789", 6);
	ok(io_pread_full(&t.io, IO_META, t.blob, "abc", p, 0, 10, &e), &e);
	expect_error(io_pread_full(&t.io, IO_META, t.blob, "abc", p, 7, 4, &e), ERR_DATA, &e,
		     "'abc' ends at 10, 7 bytes requested at 4");
	expect_error(io_pread_full(&t.io, IO_META, t.blob, "abc", p, 7, 400, &e), ERR_DATA, &e,
		     "'abc' ends at 10, 7 bytes requested at 400");
	close_blob();
}

static void overwrite(void **state)
{
	struct err e;

	(void)state;
	put(at("a"), "0123456789", 10);
	open_blob(at("a"), STORE_WRITE);
	assert_int_equal(io_pwrite(&t.io, t.blob, "abc", 3, 4, &e), 3);
	close_blob();
	expect_content(at("a"), "0123abc789", 10);
}

static void create_truncates(void **state)
{
	(void)state;
	put(at("a"), "0123456789", 10);
	put(at("a"), "xy", 2);
	expect_content(at("a"), "xy", 2);
	put(at("a"), "", 0);
	expect_content(at("a"), "", 0);
}

static void grows_beyond_the_end(void **state)
{
	char want[20] = "abc";
	struct err e;

	(void)state;
	put(at("a"), "abc", 3);
	open_blob(at("a"), STORE_WRITE);
	assert_int_equal(io_pwrite(&t.io, t.blob, "z", 1, 19, &e), 1);
	/* writing nothing beyond the end changes nothing */
	assert_int_equal(io_pwrite(&t.io, t.blob, "z", 0, 100, &e), 0);
	close_blob();
	want[19] = 'z';
	expect_content(at("a"), want, 20);
}

static void beyond_4_gib(void **state)
{
	const uint64_t far = (1ull << 32) + 123;
	struct store_stat st;
	char p[200];
	struct err e;

	(void)state;
	open_blob(at("a"), STORE_READ | STORE_WRITE | STORE_CREATE);
	assert_int_equal(io_pwrite(&t.io, t.blob, "far away", 8, far, &e), 8);
	ok(io_stat_blob(&t.io, t.blob, &st, &e), &e);
	assert_int_equal(st.bytes, far + 8);
	assert_int_equal(io_pread(&t.io, IO_DATA, t.blob, p, 100, far, &e), 8);
	assert_memory_equal(p, "far away", 8);
	assert_int_equal(io_pread(&t.io, IO_DATA, t.blob, p, 10, far - 5, &e), 10);
	assert_memory_equal(p, "\0\0\0\0\0far a", 10);
	/* the hole: zeros, also where nothing was ever near */
	assert_int_equal(io_pread(&t.io, IO_DATA, t.blob, p, 100, 1u << 30, &e), 100);
	for (int i = 0; i < 100; i++)
		assert_int_equal(p[i], 0);
	close_blob();
}

static void impossible_offsets(void **state)
{
	char p[16];
	struct err e;

	(void)state;
	open_blob(at("a"), STORE_READ | STORE_WRITE | STORE_CREATE);
	expect_error((int)io_pread(&t.io, IO_DATA, t.blob, p, 16, UINT64_MAX - 7, &e), -EINVAL, &e,
		     "beyond the largest");
	expect_error((int)io_pread(&t.io, IO_DATA, t.blob, p, 16, INT64_MAX - 7, &e), -EINVAL, &e,
		     NULL);
	expect_error((int)io_pwrite(&t.io, t.blob, p, 16, 1ull << 63, &e), -EINVAL, &e, NULL);
	assert_true(io_pwrite(&t.io, t.blob, p, 1, INT64_MAX - 1, &e) < 0);
	assert_int_equal(e.code, -EFBIG);
	close_blob();
	expect_content(at("a"), "", 0);
}

static void wrong_direction(void **state)
{
	char p[4];
	struct err e;

	(void)state;
	open_blob(at("a"), STORE_WRITE | STORE_CREATE);
	assert_true(io_pread(&t.io, IO_DATA, t.blob, p, 4, 0, &e) < 0);
	close_blob();
	open_blob(at("a"), STORE_READ);
	assert_true(io_pwrite(&t.io, t.blob, p, 4, 0, &e) < 0);
	close_blob();
	expect_error(io_open(&t.io, at("a"), 0, t.blob, &e), -EINVAL, &e, "/a'");
	expect_error(io_open(&t.io, at("b"), STORE_READ | STORE_CREATE, t.blob, &e), -EINVAL, &e,
		     "/b'");
}

static void syncs(void **state)
{
	struct err e;

	(void)state;
	open_blob(at("a"), STORE_WRITE | STORE_CREATE);
	assert_int_equal(io_pwrite(&t.io, t.blob, "x", 1, 0, &e), 1);
	ok(io_sync(&t.io, t.blob, &e), &e);
	close_blob();
	ok(store_sync_dir(t.store, t.root, &e), &e);
	assert_true(store_sync_dir(t.store, at("absent"), &e) < 0);
	assert_true(store_sync_dir(t.store, at("a"), &e) < 0);
}

static void block_is_used_again(void **state)
{
	AUTO_FREE char *big = pattern_new(100000);

	(void)state;
	for (int i = 0; i < 200; i++) {
		char name[16];
		size_t n = (size_t)i * 499;

		snprintf(name, sizeof(name), "f%d", i % 7);
		put(at(name), big, n);
		expect_content(at(name), big, n);
	}
}

/* ---- names ---- */

static void missing(void **state)
{
	struct store_stat st;
	struct err e;

	(void)state;
	expect_error(io_open(&t.io, at("absent"), STORE_READ, t.blob, &e), -ENOENT, &e,
		     at("absent"));
	expect_error(io_open(&t.io, at("absent"), STORE_WRITE, t.blob, &e), -ENOENT, &e,
		     at("absent"));
	expect_error(io_open(&t.io, at("no/folder"), STORE_WRITE | STORE_CREATE, t.blob, &e),
		     -ENOENT, &e, at("no/folder"));
	expect_error(io_stat_path(&t.io, at("absent"), &st, &e), -ENOENT, &e, at("absent"));
	expect_error(io_open(&t.io, "", STORE_READ, t.blob, &e), -ENOENT, &e, "''");
	/* the sentence is optional */
	assert_int_equal(io_open(&t.io, at("absent"), STORE_READ, t.blob, NULL), -ENOENT);
}

static void folders_do_not_open(void **state)
{
	struct err e;

	(void)state;
	expect_error(io_open(&t.io, t.root, STORE_READ, t.blob, &e), -EISDIR, &e, t.root);
	expect_error(io_open(&t.io, t.root, STORE_WRITE, t.blob, &e), -EISDIR, &e, t.root);
	expect_error(io_open(&t.io, t.root, STORE_WRITE | STORE_CREATE, t.blob, &e), -EISDIR, &e,
		     t.root);
}

static void stats(void **state)
{
	struct store_stat st, by_path;
	struct err e;

	(void)state;
	put(at("a"), "0123456789", 10);
	ok(io_stat_path(&t.io, at("a"), &by_path, &e), &e);
	assert_int_equal(by_path.bytes, 10);
	assert_false(by_path.is_dir);
	assert_true(by_path.block_bytes > 0);
	assert_true(by_path.mtime_ns > 1500000000000000000LL);
	open_blob(at("a"), STORE_READ);
	ok(io_stat_blob(&t.io, t.blob, &st, &e), &e);
	close_blob();
	assert_int_equal(st.bytes, by_path.bytes);
	assert_int_equal(st.is_dir, by_path.is_dir);
	assert_int_equal(st.block_bytes, by_path.block_bytes);
	assert_int_equal(st.mtime_ns, by_path.mtime_ns);
	assert_int_equal(st.device, by_path.device);
	ok(io_stat_path(&t.io, t.root, &st, &e), &e);
	assert_true(st.is_dir);
}

static void make_folders(void **state)
{
	struct store_stat st;
	struct err e;

	(void)state;
	ok(store_mkdirs(t.store, at("x/y//z/"), &e), &e);
	ok(store_mkdirs(t.store, at("x/y/z"), &e), &e);
	ok(store_mkdirs(t.store, at("x/./y/../w"), &e), &e);
	ok(io_stat_path(&t.io, at("x/y/z"), &st, &e), &e);
	assert_true(st.is_dir);
	ok(io_stat_path(&t.io, at("x/w"), &st, &e), &e);
	put(at("x/y/z/file"), "1", 1);
	expect_content(at("x/y/../y/z/./file"), "1", 1);
}

static void folders_over_files(void **state)
{
	struct store_stat st;
	struct err e;

	(void)state;
	put(at("file"), "1", 1);
	assert_true(store_mkdirs(t.store, at("file"), &e) < 0);
	assert_non_null(strstr(e.text, "/file'"));
	assert_true(store_mkdirs(t.store, at("file/below"), &e) < 0);
	assert_non_null(strstr(e.text, "/file"));
	expect_error(io_stat_path(&t.io, at("file/below"), &st, &e), -ENOTDIR, &e, "/file/below'");
	expect_content(at("file"), "1", 1);
}

struct seen {
	int files, dirs, calls, stop_after;
	uint64_t sum;
};

static int see(void *arg, const char *name, bool is_dir)
{
	struct seen *s = arg;
	uint64_t h = 7;

	assert_string_not_equal(name, ".");
	assert_string_not_equal(name, "..");
	for (const char *c = name; *c; c++)
		h = h * 31 + (unsigned char)*c;
	s->sum += rng_mix64(h);
	s->files += !is_dir;
	s->dirs += is_dir;
	return ++s->calls == s->stop_after ? ERR_CANCELED : 0;
}

static void lists(void **state)
{
	struct seen s = {0}, want = {0}, some = {.stop_after = 5};
	struct err e;

	(void)state;
	ok(store_list(t.store, t.root, see, &s, &e), &e);
	assert_int_equal(s.calls, 0);
	for (int i = 0; i < 300; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%d", i);
		see(&want, name, i % 50 == 0);
		if (i % 50 == 0)
			ok(store_mkdirs(t.store, at(name), &e), &e);
		else
			put(at(name), "", 0);
	}
	put(at("0/below"), "", 0);
	ok(store_list(t.store, t.root, see, &s, &e), &e);
	assert_memory_equal(&s, &want, sizeof(s));
	assert_int_equal(store_list(t.store, t.root, see, &some, &e), ERR_CANCELED);
	assert_int_equal(some.calls, 5);
	expect_error(store_list(t.store, at("absent"), see, &s, &e), -ENOENT, &e, "/absent'");
	expect_error(store_list(t.store, at("1"), see, &s, &e), -ENOTDIR, &e, "/1'");
}

static int remove_listed(void *arg, const char *name, bool is_dir)
{
	(void)is_dir;
	*(int *)arg += 1;
	return store_remove(t.store, at(name), NULL);
}

/* What a clean-up does: the callback uses the store. */
static void list_and_remove(void **state)
{
	struct seen s = {0}, rest = {0};
	int removed = 0;
	struct err e;

	(void)state;
	put(at("first"), "", 0);
	put(at("a"), "", 0);
	put(at("b"), "", 0);
	ok(store_mkdirs(t.store, at("c"), &e), &e);
	ok(store_remove(t.store, at("first"), &e), &e);
	ok(store_list(t.store, t.root, see, &rest, &e), &e);
	assert_int_equal(rest.calls, 3);
	ok(store_list(t.store, t.root, remove_listed, &removed, &e), &e);
	assert_int_equal(removed, 3);
	ok(store_list(t.store, t.root, see, &s, &e), &e);
	assert_int_equal(s.calls, 0);
}

static void removes(void **state)
{
	struct err e;

	(void)state;
	put(at("a"), "1", 1);
	ok(store_remove(t.store, at("a"), &e), &e);
	expect_error(store_remove(t.store, at("a"), &e), -ENOENT, &e, "/a'");
	expect_error(io_open(&t.io, at("a"), STORE_READ, t.blob, &e), -ENOENT, &e, "/a'");
	ok(store_mkdirs(t.store, at("d"), &e), &e);
	put(at("d/f"), "1", 1);
	expect_error(store_remove(t.store, at("d"), &e), -ENOTEMPTY, &e, "/d'");
	ok(store_remove(t.store, at("d/f"), &e), &e);
	ok(store_remove(t.store, at("d"), &e), &e);
	put(at("d"), "now a file", 10);
	expect_content(at("d"), "now a file", 10);
}

static void open_blobs_outlive_their_names(void **state)
{
	char p[8];
	struct err e;

	(void)state;
	put(at("a"), "first", 5);
	put(at("b"), "second", 6);
	open_blob(at("a"), STORE_READ);
	ok(store_rename(t.store, at("b"), at("a"), &e), &e);
	assert_int_equal(io_pread(&t.io, IO_DATA, t.blob, p, 8, 0, &e), 5);
	assert_memory_equal(p, "first", 5);
	close_blob();
	open_blob(at("a"), STORE_READ);
	ok(store_remove(t.store, at("a"), &e), &e);
	assert_int_equal(io_pread(&t.io, IO_DATA, t.blob, p, 8, 0, &e), 6);
	assert_memory_equal(p, "second", 6);
	close_blob();
}

static void renames(void **state)
{
	struct err e;

	(void)state;
	put(at("a"), "1", 1);
	put(at("b"), "22", 2);
	ok(store_rename(t.store, at("a"), at("c"), &e), &e);
	expect_content(at("c"), "1", 1);
	ok(store_rename(t.store, at("c"), at("b"), &e), &e);
	expect_content(at("b"), "1", 1);
	ok(store_rename(t.store, at("b"), at("b"), &e), &e);
	expect_content(at("b"), "1", 1);
	expect_error(store_rename(t.store, at("c"), at("d"), &e), -ENOENT, &e, "/c'");
	expect_error(store_rename(t.store, at("b"), at("no/d"), &e), -ENOENT, &e, "/no/d'");
	expect_content(at("b"), "1", 1);
}

static void renames_folders(void **state)
{
	struct err e;

	(void)state;
	ok(store_mkdirs(t.store, at("d/in"), &e), &e);
	ok(store_mkdirs(t.store, at("empty"), &e), &e);
	put(at("d/in/f"), "1", 1);
	put(at("file"), "2", 1);
	expect_error(store_rename(t.store, at("d"), at("d/in/d"), &e), -EINVAL, &e, NULL);
	expect_error(store_rename(t.store, at("d"), at("file"), &e), -ENOTDIR, &e, NULL);
	expect_error(store_rename(t.store, at("file"), at("d"), &e), -EISDIR, &e, NULL);
	expect_error(store_rename(t.store, at("empty"), at("d"), &e), -ENOTEMPTY, &e, NULL);
	ok(store_rename(t.store, at("d"), at("empty"), &e), &e);
	expect_content(at("empty/in/f"), "1", 1);
	expect_error(io_open(&t.io, at("d/in/f"), STORE_READ, t.blob, &e), -ENOENT, &e, NULL);
}

static void long_names(void **state)
{
	char name[300];
	struct err e;

	(void)state;
	memset(name, 'n', sizeof(name));
	name[255] = '\0';
	put(at(name), "1", 1);
	expect_content(at(name), "1", 1);
	memset(name, 'n', 256);
	name[256] = '\0';
	expect_error(io_open(&t.io, at(name), STORE_WRITE | STORE_CREATE, t.blob, &e),
		     -ENAMETOOLONG, &e, NULL);
	put(at("a b\n\xff'%s"), "1", 1);
	expect_content(at("a b\n\xff'%s"), "1", 1);
}

static void many_files(void **state)
{
	/* shims add nothing to names, and some stores wait for the disk at each close */
	int n = strcmp(expression, "posix") == 0 || strcmp(expression, "memory") == 0 ? 1000 : 100;
	struct store_stat st;
	struct err e;

	(void)state;
	for (int i = 0; i < n; i++) {
		char name[32];

		snprintf(name, sizeof(name), "img_%04d_of_1000.npz", i);
		put(at(name), name, (size_t)(i % 30));
	}
	for (int i = 0; i < n; i += 7) {
		char name[32];

		snprintf(name, sizeof(name), "img_%04d_of_1000.npz", i);
		ok(io_stat_path(&t.io, at(name), &st, &e), &e);
		assert_int_equal(st.bytes, i % 30);
	}
}

static void spaces(void **state)
{
	uint64_t bytes = 0, files = 0;
	struct err e;

	(void)state;
	ok(store_space(t.store, t.root, &bytes, &files, &e), &e);
	assert_true(bytes > 0);
	assert_true(files > 0);
	bytes = 0;
	ok(store_space(t.store, at("not/made/yet"), &bytes, &files, &e), &e);
	assert_true(bytes > 0);
}

/* ---- threads ---- */

#define SHARED_BYTES (2 * 1024 * 1024 + 333)

struct worker {
	uint64_t key;
	int failures;
};

static void *read_shared(void *arg)
{
	struct worker *w = arg;
	struct blob *b = store_blob_new(t.store, NULL);
	AUTO_FREE char *p = xmalloc(100000);
	char path[128];

	snprintf(path, sizeof(path), "%s/shared", t.root);
	for (uint64_t i = 0; i < 60; i++) {
		uint64_t from = rng_word(w->key, i) % (SHARED_BYTES - 100000);

		if (io_open(&t.io, path, STORE_READ, b, NULL) < 0 ||
		    io_pread_full(&t.io, IO_DATA, b, path, p, 100000, from, NULL) < 0)
			w->failures++;
		for (uint64_t k = 0; k < 100000; k += 97)
			w->failures += p[k] != pattern(from + k);
		w->failures += io_close(&t.io, b, NULL) < 0;
	}
	free(b);
	return NULL;
}

/* Each thread makes, grows, renames, lists and removes blobs of its own beside the readers. */
static void *write_own(void *arg)
{
	struct worker *w = arg;
	struct blob *b = store_blob_new(t.store, NULL);
	char path[128], other[128], p[5000];
	struct store_stat st;

	memset(p, (int)w->key, sizeof(p));
	snprintf(path, sizeof(path), "%s/w%d", t.root, (int)w->key);
	snprintf(other, sizeof(other), "%s/x%d", t.root, (int)w->key);
	for (int i = 0; i < 30; i++) {
		w->failures += io_open(&t.io, path, STORE_WRITE | STORE_CREATE, b, NULL) < 0;
		for (uint64_t k = 0; k < 20; k++)
			w->failures += io_pwrite(&t.io, b, p, sizeof(p), k * sizeof(p), NULL) < 0;
		w->failures += io_close(&t.io, b, NULL) < 0;
		w->failures += store_rename(t.store, path, other, NULL) < 0;
		w->failures +=
			io_stat_path(&t.io, other, &st, NULL) < 0 || st.bytes != 20 * sizeof(p);
		w->failures += store_remove(t.store, other, NULL) < 0;
	}
	free(b);
	return NULL;
}

static void concurrent_threads(void **state)
{
	AUTO_FREE char *content = pattern_new(SHARED_BYTES);
	struct worker w[8];
	pthread_t thread[8];

	(void)state;
	put(at("shared"), content, SHARED_BYTES);
	for (uint64_t i = 0; i < 8; i++) {
		w[i] = (struct worker){i, 0};
		assert_int_equal(thread_start(&thread[i], i % 2 ? read_shared : write_own, &w[i], 0,
					      "worker", NULL),
				 0);
	}
	for (int i = 0; i < 8; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(w[i].failures, 0);
	}
}

static void *write_part(void *arg)
{
	struct worker *w = arg;
	struct blob *b = store_blob_new(t.store, NULL);
	AUTO_FREE char *p = xmalloc(70000);
	uint64_t from = w->key * 70000;
	char path[128];

	for (uint64_t i = 0; i < 70000; i++)
		p[i] = pattern(from + i);
	snprintf(path, sizeof(path), "%s/parts", t.root);
	w->failures += io_open(&t.io, path, STORE_WRITE, b, NULL) < 0;
	for (uint64_t i = 0; i < 70000; i += 1000)
		w->failures += io_pwrite(&t.io, b, p + i, 1000, from + i, NULL) != 1000;
	w->failures += io_close(&t.io, b, NULL) < 0;
	free(b);
	return NULL;
}

/* One blob written by many threads, each its own part, as a shared checkpoint is. */
static void parts_of_one_blob(void **state)
{
	AUTO_FREE char *want = pattern_new(8 * 70000);
	struct worker w[8];
	pthread_t thread[8];

	(void)state;
	put(at("parts"), "", 0);
	for (uint64_t i = 0; i < 8; i++) {
		w[i] = (struct worker){7 - i, 0};
		assert_int_equal(thread_start(&thread[i], write_part, &w[i], 0, "part", NULL), 0);
	}
	for (int i = 0; i < 8; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(w[i].failures, 0);
	}
	expect_content(at("parts"), want, 8 * 70000);
}

/* ---- full stores ---- */

static void memory_fills_up(void **state)
{
	struct store *s = make("memory", "memory: {size: 10000, block_bytes: 65536}");
	struct io io = {.store = s};
	struct blob *a = store_blob_new(s, NULL), *b = store_blob_new(s, NULL);
	static char p[20000];
	uint64_t bytes, files;
	struct store_stat st;
	struct err e;

	(void)state;
	assert_int_equal(io_open(&io, "a", STORE_READ | STORE_WRITE | STORE_CREATE, a, NULL), 0);
	assert_int_equal(io_open(&io, "b", STORE_READ | STORE_WRITE | STORE_CREATE, b, NULL), 0);
	assert_int_equal(io_pwrite(&io, a, p, 6000, 0, &e), 6000);
	expect_error((int)io_pwrite(&io, b, p, 4001, 0, &e), -ENOSPC, &e,
		     "storage.memory.size = 10000");
	ok(io_stat_blob(&io, b, &st, &e), &e);
	assert_int_equal(st.bytes, 0);
	assert_int_equal(st.block_bytes, 65536);
	assert_int_equal(io_pwrite(&io, b, p, 4000, 0, &e), 4000);
	assert_int_equal(io_pwrite(&io, b, p, 4000, 0, &e), 4000);
	ok(store_space(s, "/", &bytes, &files, &e), &e);
	assert_int_equal(bytes, 0);
	expect_error((int)io_pwrite(&io, a, p, 1, 6000, &e), -ENOSPC, &e, "full");
	/* a removed blob holds its space until it is closed */
	ok(store_remove(s, "a", &e), &e);
	assert_true(io_pwrite(&io, b, p, 1, 4000, &e) < 0);
	ok(io_close(&io, a, &e), &e);
	assert_int_equal(io_pwrite(&io, b, p, 6000, 4000, &e), 6000);
	ok(io_close(&io, b, &e), &e);
	/* truncating gives space back */
	assert_int_equal(io_open(&io, "b", STORE_WRITE | STORE_CREATE, b, NULL), 0);
	ok(store_space(s, "/", &bytes, &files, &e), &e);
	assert_int_equal(bytes, 10000);
	ok(io_close(&io, b, &e), &e);
	free(a);
	free(b);
	store_destroy(s);
}

static void disk_fills_up(void **state)
{
	char dir[] = "/tmp/stoker-full-XXXXXX", path[64];
	struct store *s = make("posix", NULL);
	struct io io = {.store = s};
	struct blob *b = store_blob_new(s, NULL);
	AUTO_FREE char *p = pattern_new(2u << 20);
	uint64_t bytes = 0, files = 0;
	struct err e;
	bool mounted;
	int rc = 0, space = 0;

	(void)state;
	assert_non_null(mkdtemp(dir));
	mounted = mount("none", dir, "tmpfs", 0, "size=1m") == 0;
	if (mounted) {
		snprintf(path, sizeof(path), "%s/f", dir);
		space = store_space(s, dir, &bytes, &files, &e);
		rc = io_open(&io, path, STORE_WRITE | STORE_CREATE, b, &e);
		if (rc == 0) {
			rc = (int)io_pwrite(&io, b, p, 2u << 20, 0, &e);
			io_close(&io, b, NULL);
		}
		umount(dir);
	}
	rmdir(dir);
	free(b);
	store_destroy(s);
	if (!mounted)
		skip_because("a file system cannot be mounted here");

	expect_error(rc, -ENOSPC, &e, "No space left");
	assert_int_equal(space, 0);
	assert_int_equal(bytes, 1 << 20);
}

/* ---- the table and expressions ---- */

static void table_is_sane(void **state)
{
	(void)state;
	for (size_t i = 0; store_table[i]; i++) {
		const struct store_ops *o = store_table[i];

		assert_non_null(o->is.name);
		assert_true(o->is.name[0] && !strpbrk(o->is.name, "+. \t"));
		assert_true(o->is.help && strlen(o->is.help) > 20);
		assert_ptr_equal(store_find(o->is.name), o);
		assert_true(o->blob_bytes >= sizeof(struct blob));
		assert_true(o->create && o->destroy);
		/* a shim leaves out what it passes on */
		assert_true(o->is.flags & STORE_IS_SHIM ||
			    (o->open && o->close && o->pread && o->pwrite && o->sync &&
			     o->stat_blob && o->stat && o->mkdirs && o->list && o->remove &&
			     o->rename && o->sync_dir && o->space));
		for (size_t k = 0; k < o->is.option_count; k++) {
			const struct opt *row = &o->is.options[k];
			void *config = xcalloc(1, o->is.config_bytes);
			struct err e;

			assert_true(row->key && *row->key && !strchr(row->key, '.'));
			assert_true(row->help && strlen(row->help) > 10);
			assert_true(row->offset < o->is.config_bytes);
			assert_ptr_equal(opt_find(o->is.options, o->is.option_count, row->key),
					 row);
			if (row->type == OPT_ENUM)
				assert_non_null(row->choices);
			if (opt_set_defaults(row, 1, config, &e) != 0)
				fail_msg("%s.%s: %s", o->is.name, row->key, e.text);
			opt_release(row, 1, config);
			free(config);
		}
	}
	assert_null(store_find("absent"));
	assert_null(store_find(""));
}

static void bad_expression(const char *expr, const char *part)
{
	struct store *s = NULL;
	struct err e = {0};

	assert_int_equal(store_create(&s, expr, NULL, &e), ERR_USAGE);
	assert_null(s);
	if (!strstr(e.text, part))
		fail_msg("'%s': '%s' does not mention '%s'", expr, e.text, part);
	assert_int_equal(store_create(&s, expr, NULL, NULL), ERR_USAGE);
}

static void expressions(void **state)
{
	struct store *s = make(" throttle + fault+posix", NULL);

	(void)state;
	assert_string_equal(s->ops->is.name, "throttle");
	assert_string_equal(s->lower->ops->is.name, "fault");
	assert_string_equal(s->lower->lower->ops->is.name, "posix");
	assert_null(s->lower->lower->lower);
	assert_int_equal(store_base_flags(s), store_find("posix")->is.flags);
	assert_true(store_base_flags(s) & STORE_HAS_FILES);
	assert_true(store_blob_bytes(s) >= s->ops->blob_bytes + s->lower->ops->blob_bytes +
						   s->lower->lower->ops->blob_bytes);
	store_destroy(s);
	store_destroy(NULL);
	bad_expression("", "empty");
	bad_expression("posix+", "empty");
	bad_expression("throttle++posix", "empty");
	bad_expression("throttle", "throttle+posix");
	bad_expression("posix+memory", "last");
	bad_expression("posx", "did you mean 'posix'");
	bad_expression("zzzzzzzzz", "the stores are: posix, ");
	bad_expression("throttle+zzzzzzzzz", "throttle+zzzzzzzzz");
	bad_expression("fault+fault+fault+fault+fault+fault+fault+fault+posix", "more than 8");
}

static void bad_options(void **state)
{
	static const struct {
		const char *expr, *yaml, *part;
	} bad[] = {
		{"memory", "memory: {siz: 5}", "did you mean 'storage.memory.size'"},
		{"memory", "\n\nmemory: {zzzzzzzz: 5}", "test: line 3"},
		{"memory", "memory: {size: -5}", "storage.memory"},
		{"memory", "memory: {block_bytes: 0}", "storage.memory"},
		{"memory", "memory: [1]", "storage.memory"},
		{"posix", "posix: {a: 1}", "has no options"},
		{"fault+memory", "memory: {siz: 5}", "storage.memory.size"},
		{"fault+memory", "fault: {op: raed}", "read"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct node *n = yaml_parse(bad[i].yaml, strlen(bad[i].yaml), "test", NULL);
		struct store *s = NULL;
		struct err e = {0};

		assert_int_equal(store_create(&s, bad[i].expr, n, &e), ERR_USAGE);
		if (!strstr(e.text, bad[i].part))
			fail_msg("'%s': '%s' does not mention '%s'", bad[i].yaml, e.text,
				 bad[i].part);
		node_free(n);
	}
	/* options of stores that do not take part are somebody else's matter; null is no options */
	store_destroy(make("memory", "{memory: null, posix: {a: 1}, other: 3}"));
}

/* ---- all of them ---- */

#define CHECK(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

static const struct CMUnitTest contract[] = {
	CHECK(write_and_read),
	CHECK(read_ranges),
	CHECK(write_ranges),
	CHECK(read_past_the_end),
	CHECK(full_reads),
	CHECK(overwrite),
	CHECK(create_truncates),
	CHECK(grows_beyond_the_end),
	CHECK(beyond_4_gib),
	CHECK(impossible_offsets),
	CHECK(wrong_direction),
	CHECK(syncs),
	CHECK(block_is_used_again),
	CHECK(missing),
	CHECK(folders_do_not_open),
	CHECK(stats),
	CHECK(make_folders),
	CHECK(folders_over_files),
	CHECK(lists),
	CHECK(list_and_remove),
	CHECK(removes),
	CHECK(open_blobs_outlive_their_names),
	CHECK(renames),
	CHECK(renames_folders),
	CHECK(long_names),
	CHECK(many_files),
	CHECK(spaces),
	CHECK(concurrent_threads),
	CHECK(parts_of_one_blob),
};

static const struct CMUnitTest once[] = {
	cmocka_unit_test(memory_fills_up), cmocka_unit_test(disk_fills_up),
	cmocka_unit_test(table_is_sane),   cmocka_unit_test(expressions),
	cmocka_unit_test(bad_options),
};

/* A store past the page cache needs a disk below its folder. */
static bool find_folder(const char *expr)
{
	static const char *const folders[] = {"/tmp", "/var/tmp", "."};
	struct store *s = make(expr, NULL);
	struct io io = {.store = s};
	struct blob *b = store_blob_new(s, NULL);
	bool found = false;

	for (size_t i = 0; i < 3 && !found; i++) {
		char path[64];

		folder = folders[i];
		snprintf(path, sizeof(path), "%s/stoker-store-probe.%d", folder, (int)getpid());
		found = io_open(&io, path, STORE_WRITE | STORE_CREATE, b, NULL) == 0;
		if (found)
			io_close(&io, b, NULL);
		unlink(path);
	}
	free(b);
	store_destroy(s);
	return found;
}

static int run(const char *expr)
{
	expression = expr;
	folder = "/tmp";
	if (strcmp(expr, "direct") == 0 && !find_folder(expr)) {
		left_out("the store direct: no folder here takes O_DIRECT");
		return 0;
	}
	return _cmocka_run_group_tests(expr, contract, sizeof(contract) / sizeof(contract[0]), NULL,
				       NULL);
}

int main(void)
{
	static const char *const under[] = {"memory", "posix"};
	int failed = cmocka_run_group_tests(once, NULL, NULL);

	for (size_t i = 0; store_table[i]; i++) {
		/* objects need a server: tests/cli/test_s3*.py */
		if (store_table[i]->is.flags & (STORE_KEEPS_NOTHING | STORE_HAS_OBJECTS))
			continue;
		if (!(store_table[i]->is.flags & STORE_IS_SHIM)) {
			failed += run(store_table[i]->is.name);
			continue;
		}
		for (size_t k = 0; k < 2; k++) {
			char expr[128];

			snprintf(expr, sizeof(expr), "%s+%s", store_table[i]->is.name, under[k]);
			failed += run(expr);
		}
	}
	failed += run("throttle+fault+memory");
	return failed ? 1 : 0;
}
