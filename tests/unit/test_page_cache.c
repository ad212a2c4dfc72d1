/* Looks into the page cache and evictions, against mincore asked by the test itself; stores that
 * drop what they read; mmap of files that change. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "../skip.h"
#include "disk_folder.h"
#include "store/page_cache.h"
#include "store/store.h"

#define BYTES (20u * 1024 * 1024 + 100)

static struct {
	char root[64], path[80];
	bool there;
} t;

static int set_up(void **state)
{
	(void)state;
	t.there = disk_folder(t.root, sizeof(t.root), "cache");
	snprintf(t.path, sizeof(t.path), "%s/f", t.root);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(t.path);
	rmdir(t.root);
	return 0;
}

/* Leaves dirty pages. */
static void write_file(size_t n)
{
	AUTO_FREE char *p = xcalloc(1, n);
	int fd = open(t.path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	memset(p, 'x', n);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, p, n), n);
	close(fd);
}

static uint64_t resident_pages(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), n = (BYTES + page - 1) / page;
	AUTO_FREE unsigned char *in = xcalloc(1, n);
	int fd = open(t.path, O_RDONLY | O_CLOEXEC);
	void *p = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
	uint64_t sum = 0;

	assert_true(p != MAP_FAILED);
	assert_int_equal(mincore(p, BYTES, in), 0);
	munmap(p, BYTES);
	close(fd);
	for (size_t i = 0; i < n; i++)
		sum += in[i] & 1;
	return sum;
}

static struct page_cached look(void)
{
	struct page_cached c;
	struct err e;

	if (page_cache_look(t.path, &c, &e) < 0)
		fail_msg("%s", e.text);
	return c;
}

/* Evicts the file. A page that the kernel has in hand (it takes idle ones back, or compacts memory)
 * stays for a moment. */
static void evict_all(struct page_cached *c)
{
	struct err e;

	for (int i = 0; i < 40; i++) {
		if (page_cache_evict(t.path, c, &e) != 0)
			fail_msg("%s", e.text);
		if (c->cached_bytes == 0)
			return;
		usleep(25000);
	}
	fail_msg("%llu bytes stay", (unsigned long long)c->cached_bytes);
}

/* Pages that the kernel takes back are told apart from those that were never there, and from
 * evicted ones. */
static void reclaimed(void **state)
{
	size_t half = BYTES / 2 / 65536 * 65536;
	struct page_cached before, after;
	volatile char sum = 0;
	char *p;
	int fd;

	(void)state;
	if (!t.there)
		skip_because("no folder here lies on a disk");
	write_file(BYTES);
	fd = open(t.path, O_RDONLY | O_CLOEXEC);
	fsync(fd);
	p = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(p != MAP_FAILED);
	for (size_t i = 0; i < BYTES; i += 4096)
		sum = (char)(sum + p[i]);
	before = look();
	if (before.mincore || madvise(p, half, MADV_PAGEOUT) != 0) {
		munmap(p, BYTES);
		close(fd);
		skip_because("cachestat(2) and MADV_PAGEOUT are not both to be had");
	}
	after = look();
	munmap(p, BYTES);
	close(fd);
	assert_true(after.reclaimed_bytes > half / 2);
	assert_int_equal(after.cached_bytes + after.reclaimed_bytes,
			 before.cached_bytes + before.reclaimed_bytes);
	evict_all(&after);
	assert_int_equal(after.reclaimed_bytes, 0);
	assert_int_equal(look().reclaimed_bytes, 0);
}

static void looks_and_evicts(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct page_cached c;
	struct err e;
	char byte;
	int fd;

	(void)state;
	if (!t.there)
		skip_because("no folder here lies on a disk");
	write_file(BYTES);
	c = look();
	assert_int_equal(c.file_bytes, BYTES);
	/* some kernels give idle pages up on their own */
	assert_true(c.cached_bytes > BYTES / 2 && c.cached_bytes <= BYTES);
	evict_all(&c);
	assert_int_equal(resident_pages(), 0);
	assert_int_equal(look().cached_bytes, 0);
	/* single pages are told apart */
	fd = open(t.path, O_RDONLY | O_CLOEXEC);
	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	for (int i = 0; i < 100; i++)
		assert_int_equal(pread(fd, &byte, 1, (off_t)(page * 7) * i), 1);
	close(fd);
	/* unless the kernel takes one back between the two looks */
	for (int i = 0; i < 10; i++) {
		c = look();
		if (c.cached_bytes == resident_pages() * page)
			break;
	}
	assert_int_equal(c.cached_bytes, resident_pages() * page);
	assert_in_range(c.cached_bytes, 90 * page, 200 * page);
	assert_int_equal(page_cache_look("/absent/file", &c, &e), -ENOENT);
	assert_non_null(strstr(e.text, "/absent/file"));
	assert_int_equal(page_cache_evict("/absent/file", &c, &e), -ENOENT);
}

/* Pages that a mapping uses stay, and the result says so. */
static void says_what_stays(void **state)
{
	struct page_cached c;
	struct err e;
	void *p;
	int fd;

	(void)state;
	if (!t.there)
		skip_because("no folder here lies on a disk");
	write_file(BYTES);
	fd = open(t.path, O_RDONLY | O_CLOEXEC);
	p = mmap(NULL, BYTES, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	close(fd);
	assert_true(p != MAP_FAILED);
	assert_int_equal(page_cache_evict(t.path, &c, &e), 0);
	munmap(p, BYTES);
	assert_true(c.cached_bytes > BYTES / 2);
	evict_all(&c);
}

static void empty_files(void **state)
{
	struct page_cached c;
	struct err e;

	(void)state;
	if (!t.there)
		skip_because("no folder here lies on a disk");
	write_file(0);
	assert_int_equal(look().file_bytes, 0);
	assert_int_equal(page_cache_evict(t.path, &c, &e), 0);
	assert_int_equal(c.cached_bytes, 0);
}

/* As on a kernel before 6.5. */
static bool forbid_cachestat(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 451, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* 0: as it should be; 77: it cannot be tried here. */
static int try_old_kernel(void)
{
	struct page_cached c;
	char page[4096];
	int fd;

	if (!forbid_cachestat())
		return 77;
	if (page_cache_look(t.path, &c, NULL) != 0 || !c.mincore || c.cached_bytes < BYTES / 2)
		return 1;
	for (int i = 0; i < 40 && c.cached_bytes != 0; i++) {
		if (page_cache_evict(t.path, &c, NULL) != 0 || !c.mincore)
			return 2;
		if (c.cached_bytes != 0)
			usleep(25000);
	}
	if (c.cached_bytes != 0)
		return 8;
	fd = open(t.path, O_RDONLY | O_CLOEXEC);
	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	if (pread(fd, page, 4096, BYTES - 4096) != 4096 || pread(fd, page, 1, 0) != 1)
		return 3;
	close(fd);
	if (page_cache_look(t.path, &c, NULL) != 0 || c.cached_bytes < 4096 ||
	    c.cached_bytes > 100000)
		return 4;
	/* who may not write a file is not told what is cached of it */
	if (geteuid() == 0) {
		if (chown(t.path, 0, 0) != 0 || chmod(t.path, 0644) != 0 ||
		    chmod(t.root, 0755) != 0)
			return 5;
		if (seteuid(65534) != 0)
			return 6;
		if (page_cache_look(t.path, &c, NULL) != -EPERM)
			return 7;
	}
	return 0;
}

static void old_kernel(void **state)
{
	int status = -1;
	pid_t child;

	(void)state;
	if (!t.there)
		skip_because("no folder here lies on a disk");
	write_file(BYTES);
	child = fork();
	if (child == 0)
		_exit(try_old_kernel());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip_because("system calls cannot be filtered here");
	assert_int_equal(WEXITSTATUS(status), 0);
}

static struct store *make(const char *expression, const char *yaml)
{
	struct node *n = yaml ? yaml_parse(yaml, strlen(yaml), "test", NULL) : NULL;
	struct store *s = NULL;
	struct err e;

	if (store_create(&s, expression, n, &e) < 0)
		fail_msg("%s", e.text);
	node_free(n);
	return s;
}

/* The bytes that stay when all was read and dropped. */
static uint64_t read_and_drop(const char *expression)
{
	struct store *s = make(expression, "drop_behind: {window: 4194304}");
	struct io io = {.store = s};
	struct blob *b = store_blob_new(s, NULL);
	AUTO_FREE char *p = xmalloc(1u << 20);
	uint64_t most = 0, left;
	struct page_cached c;
	struct err e;

	write_file(BYTES);
	evict_all(&c);
	if (io_open(&io, t.path, STORE_READ, b, &e) < 0)
		fail_msg("%s", e.text);
	for (uint64_t at = 0; at < BYTES; at += 1u << 20) {
		ssize_t r = io_pread(&io, IO_DATA, b, p, 1u << 20, at, &e);

		if (r != (ssize_t)(BYTES - at < 1u << 20 ? BYTES - at : 1u << 20))
			fail_msg("%s: %zd at %llu", expression, r, (unsigned long long)at);
		assert_int_equal(p[0], 'x');
		/* between windows only what was not yet dropped, and what was read ahead */
		if (at % (4u << 20) == 3u << 20) {
			c = look();
			if (c.cached_bytes > most)
				most = c.cached_bytes;
		}
	}
	if (io_close(&io, b, &e) < 0)
		fail_msg("%s", e.text);
	left = look().cached_bytes;
	assert_true(left || resident_pages() == 0);
	/* what was read is gone while the file is still open: at the latest window all but the
	 * last piece */
	assert_true(most < BYTES - (4u << 20));
	free(b);
	store_destroy(s);
	return left;
}

/* Nothing stays; a page that the kernel has in hand when it is to be dropped does, so it is 3 times
 * of 4. */
static void drops(const char *expression)
{
	uint64_t left = read_and_drop(expression);

	for (int i = 0; left && i < 3; i++)
		assert_int_equal(read_and_drop(expression), 0);
}

static void drop_behind(void **state)
{
	(void)state;
	if (!t.there)
		skip_because("no folder here lies on a disk");
	drops("drop_behind+posix");
	drops("drop_behind+mmap");
	drops("drop_behind+throttle+fault+posix");
}

/* No signal ends the process when a mapped file is cut short, and one that grows is seen. */
static void mapped_files_change(void **state)
{
	static const char *const advice[] = {"normal", "sequential", "random"};
	struct err e;
	char p[32];

	(void)state;
	if (!t.there)
		skip_because("no folder here lies on a disk");
	for (int i = 0; i < 3; i++) {
		char yaml[64];
		struct store *s;
		struct blob *b;

		snprintf(yaml, sizeof(yaml), "mmap: {advice: %s}", advice[i]);
		s = make("mmap", yaml);
		struct io io = {.store = s};

		b = store_blob_new(s, NULL);
		write_file(BYTES);
		assert_int_equal(io_open(&io, t.path, STORE_READ, b, &e), 0);
		assert_int_equal(io_pread(&io, IO_DATA, b, p, 32, 5, &e), 32);
		assert_int_equal(truncate(t.path, BYTES + 8), 0);
		assert_int_equal(io_pread(&io, IO_DATA, b, p, 32, BYTES - 8, &e), 16);
		assert_memory_equal(p, "xxxxxxxx\0\0\0\0\0\0\0\0", 16);
		assert_int_equal(truncate(t.path, 4096), 0);
		assert_int_equal(io_pread(&io, IO_DATA, b, p, 32, 1u << 20, &e), -EIO);
		assert_non_null(strstr(e.text, "truncated"));
		assert_int_equal(io_pread(&io, IO_DATA, b, p, 32, 0, &e), 32);
		assert_int_equal(io_close(&io, b, &e), 0);
		free(b);
		store_destroy(s);
	}
}

int main(void)
{
#define CHECK(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CHECK(looks_and_evicts),    CHECK(reclaimed),  CHECK(says_what_stays),
		CHECK(empty_files),         CHECK(old_kernel), CHECK(drop_behind),
		CHECK(mapped_files_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
