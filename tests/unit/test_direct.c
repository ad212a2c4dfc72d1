/* O_DIRECT at any offset, length and place in memory, and where it must be refused. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "../skip.h"
#include "disk_folder.h"
#include "store/page_cache.h"
#include "store/store.h"

#define BYTES (3u * 1024 * 1024 + 717)

static struct {
	struct io io;
	struct blob *blob;
	char root[64], path[80];
	unsigned char *want;
} t;

static unsigned char byte_at(uint64_t i)
{
	return (unsigned char)(i * 2654435761u >> 11);
}

static int set_up(void **state)
{
	struct err e;

	(void)state;
	memset(&t, 0, sizeof(t));
	if (!disk_folder(t.root, sizeof(t.root), "direct"))
		return 0;
	snprintf(t.path, sizeof(t.path), "%s/f", t.root);
	if (store_create(&t.io.store, "direct", NULL, &e) < 0)
		fail_msg("%s", e.text);
	t.blob = store_blob_new(t.io.store, &e);
	t.want = xmalloc(BYTES);
	for (uint64_t i = 0; i < BYTES; i++)
		t.want[i] = byte_at(i);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(t.path);
	rmdir(t.root);
	free(t.want);
	free(t.blob);
	store_destroy(t.io.store);
	return 0;
}

static void open_ok(unsigned how)
{
	struct err e;

	if (io_open(&t.io, t.path, how, t.blob, &e) < 0)
		fail_msg("%s", e.text);
}

static void close_ok(void)
{
	struct err e;

	if (io_close(&t.io, t.blob, &e) < 0)
		fail_msg("%s", e.text);
}

static void put_all(const void *from)
{
	struct err e;

	open_ok(STORE_WRITE | STORE_CREATE);
	if (io_pwrite(&t.io, t.blob, from, BYTES, 0, &e) != BYTES)
		fail_msg("%s", e.text);
	close_ok();
}

/* By another way than the store's. */
static void expect_file(const unsigned char *want, size_t n)
{
	AUTO_FREE unsigned char *got = xmalloc(n + 1);
	int fd = open(t.path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, got, n + 1, 0), n);
	close(fd);
	assert_memory_equal(got, want, n);
}

static uint64_t cached(void)
{
	struct page_cached c;
	struct err e;

	if (page_cache_look(t.path, &c, &e) < 0)
		fail_msg("%s", e.text);
	return c.cached_bytes;
}

/* Nothing outside [p, p + n) may be written. */
static void read_one(unsigned char *p, uint64_t from, size_t n)
{
	size_t expect = from >= BYTES ? 0 : n < BYTES - from ? n : (size_t)(BYTES - from);
	struct err e;
	ssize_t r;

	memset(p - 16, 0xA5, n + 32);
	r = io_pread(&t.io, IO_DATA, t.blob, p, n, from, &e);
	if (r != (ssize_t)expect)
		fail_msg("%zu at %llu into %p: %zd", n, (unsigned long long)from, (void *)p, r);
	if (expect && memcmp(p, t.want + from, expect) != 0)
		fail_msg("%zu at %llu into %p: other bytes", n, (unsigned long long)from,
			 (void *)p);
	for (size_t i = 0; i < 16; i++)
		assert_true(p[-1 - (ssize_t)i] == 0xA5 && p[n + i] == 0xA5);
}

static void reads(void **state)
{
	static const uint64_t from[] = {0, 1, 511, 512, 4095, 4096, 4097, 70000, 1u << 20};
	static const size_t length[] = {1,      42,          511,      512,
					513,    4096,        65536,    65537,
					131072, 200001,      1u << 20, (1u << 20) + 1,
					BYTES,  BYTES - 4096};
	static const size_t place[] = {0, 1, 8, 16, 100, 512, 4095};
	unsigned char *block = buffer_alloc(BYTES + 16384, "test", NULL);

	(void)state;
	if (!t.want)
		skip_because("no folder here lies on a disk");
	put_all(t.want);
	open_ok(STORE_READ);
	for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++)
		for (size_t k = 0; k < sizeof(length) / sizeof(length[0]); k++)
			read_one(block + 4096 + place[(i + k) % 7], from[i], length[k]);
	/* around the end */
	for (size_t i = 0; i < 7; i++) {
		read_one(block + 4096 + place[i], BYTES - 717, 717);
		read_one(block + 4096 + place[i], BYTES - 717, 4096);
		read_one(block + 4096 + place[i], BYTES - 1, 100000);
		read_one(block + 4096 + place[i], BYTES, 512);
		read_one(block + 4096 + place[i], BYTES - 200000, 300000);
	}
	for (uint64_t i = 0; i < 200; i++)
		read_one(block + 4096 + rng_word(1, i) % 600, rng_word(2, i) % BYTES,
			 1 + rng_word(3, i) % (i % 2 ? 3000 : 300000));
	close_ok();
	buffer_free(block, BYTES + 16384);
}

static void writes(void **state)
{
	AUTO_FREE unsigned char *image = xcalloc(1, BYTES);
	struct err e;

	(void)state;
	if (!t.want)
		skip_because("no folder here lies on a disk");
	put_all(image);
	/* misaligned memory, ranges of every kind over what is there, also by a second writer */
	open_ok(STORE_READ | STORE_WRITE);
	for (uint64_t i = 0; i < 60; i++) {
		uint64_t at = rng_word(4, i) % BYTES;
		size_t n = (size_t)(1 + rng_word(5, i) % (i % 3 ? 2000 : 200000));
		unsigned char *from = t.want + rng_word(6, i) % 1000;

		n = n < BYTES - at ? n : (size_t)(BYTES - at);
		memcpy(image + at, from, n);
		if (io_pwrite(&t.io, t.blob, from, n, at, &e) != (ssize_t)n)
			fail_msg("%s", e.text);
	}
	close_ok();
	expect_file(image, BYTES);
	/* the size is exact while the file is open, too */
	open_ok(STORE_WRITE | STORE_CREATE);
	assert_int_equal(io_pwrite(&t.io, t.blob, t.want, 10001, 0, &e), 10001);
	expect_file(t.want, 10001);
	assert_int_equal(io_pwrite(&t.io, t.blob, t.want + 10001, 90000, 10001, &e), 90000);
	close_ok();
	expect_file(t.want, 100001);
}

/* Neither writing nor reading leaves pages behind. */
static void leaves_no_pages(void **state)
{
	AUTO_FREE unsigned char *got = xmalloc(BYTES);
	struct err e;

	(void)state;
	if (!t.want)
		skip_because("no folder here lies on a disk");
	put_all(t.want);
	assert_int_equal(cached(), 0);
	open_ok(STORE_READ);
	assert_int_equal(io_pread(&t.io, IO_DATA, t.blob, got, BYTES, 0, &e), BYTES);
	assert_int_equal(io_pread(&t.io, IO_DATA, t.blob, got, 4096, 100, &e), 4096);
	close_ok();
	assert_int_equal(cached(), 0);
}

/* A file system that is mounted here and refuses, or is memory. */
static void refused(const char *type, const char *words)
{
	char dir[] = "/tmp/stoker-refuse-XXXXXX", old[64], fresh[64];
	struct err e = {0}, over = {0}, stats = {0};
	int made, kept, read, fd;
	struct stat st;
	off_t size = -1;
	bool left;

	assert_non_null(mkdtemp(dir));
	if (mount("none", dir, type, 0, NULL) != 0) {
		rmdir(dir);
		skip_because("a file system cannot be mounted here");
	}
	snprintf(old, sizeof(old), "%s/old", dir);
	snprintf(fresh, sizeof(fresh), "%s/fresh", dir);
	fd = open(old, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, "12345", 5) != 5)
		made = 0;
	close(fd);
	made = io_open(&t.io, fresh, STORE_WRITE | STORE_CREATE, t.blob, &e);
	left = stat(fresh, &st) == 0;
	kept = io_open(&t.io, old, STORE_WRITE | STORE_CREATE, t.blob, &over);
	if (stat(old, &st) == 0)
		size = st.st_size;
	read = io_open(&t.io, old, STORE_READ, t.blob, &stats);
	umount2(dir, MNT_DETACH);
	rmdir(dir);
	assert_int_equal(made, -EINVAL);
	assert_int_equal(kept, -EINVAL);
	assert_int_equal(read, -EINVAL);
	assert_false(left);
	assert_int_equal(size, 5);
	for (int i = 0; i < 3; i++) {
		const char *text = i == 0 ? e.text : i == 1 ? over.text : stats.text;

		if (!strstr(text, type) || !strstr(text, words) || !strstr(text, dir))
			fail_msg("%s: %s", type, text);
	}
}

static void tmpfs_is_refused(void **state)
{
	(void)state;
	if (!t.want)
		skip_because("no folder here lies on a disk");
	refused("tmpfs", "which is memory");
}

static void ramfs_is_refused(void **state)
{
	(void)state;
	if (!t.want)
		skip_because("no folder here lies on a disk");
	refused("ramfs", "memory");
}

int main(void)
{
#define CHECK(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CHECK(reads),
		CHECK(writes),
		CHECK(leaves_no_pages),
		CHECK(tmpfs_is_refused),
		CHECK(ramfs_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
