/* Mapped blobs: what is touched and copied, what cannot be mapped, and pages that are not there. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "store/mapped.h"
#include "store/page_cache.h"

#define PAGES 300u

static struct {
	struct io io;
	struct io_stat stat;
	struct blob *blob;
	size_t page;
	char path[64];
	struct store_map map;
	struct err e;
} t;

static int set_up(void **state)
{
	int fd;

	(void)state;
	memset(&t, 0, sizeof(t));
	strcpy(t.path, "/tmp/stoker-map-XXXXXX");
	fd = mkstemp(t.path);
	assert_true(fd >= 0);
	close(fd);
	t.page = (size_t)sysconf(_SC_PAGESIZE);
	assert_int_equal(store_create(&t.io.store, "posix", NULL, &t.e), 0);
	t.io.stat = &t.stat;
	t.blob = store_blob_new(t.io.store, &t.e);
	assert_int_equal(truncate(t.path, (off_t)(PAGES * t.page)), 0);
	assert_int_equal(io_open(&t.io, t.path, STORE_READ | STORE_WRITE, t.blob, &t.e), 0);
	for (uint64_t i = 0; i < PAGES; i++)
		assert_int_equal(io_pwrite(&t.io, t.blob, &i, sizeof(i), i * t.page, &t.e),
				 sizeof(i));
	assert_int_equal(io_map(&t.io, t.blob, PAGES * t.page, &t.map, &t.e), 0);
	/* it outlives the blob */
	assert_int_equal(io_close(&t.io, t.blob, &t.e), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	store_unmap(&t.map);
	store_unmap(&t.map);
	unlink(t.path);
	free(t.blob);
	store_destroy(t.io.store);
	return 0;
}

/* Which pages of the mapping are in this process's page table, from the kernel. */
static unsigned mapped_pages(void)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	char line[512], range[40];
	unsigned long kb = 0;
	bool here = false;

	snprintf(range, sizeof(range), "%lx-", (unsigned long)(uintptr_t)t.map.at);
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, range, strlen(range)) == 0)
			here = true;
		else if (here && sscanf(line, "Rss: %lu kB", &kb) == 1)
			break;
	}
	fclose(f);
	assert_true(here);
	return (unsigned)(kb * 1024 / t.page);
}

static void copies(void **state)
{
	uint64_t v = 0;
	char *all = malloc(PAGES * t.page);

	(void)state;
	for (uint64_t i = 0; i < PAGES; i += 37) {
		assert_int_equal(store_map_copy(&t.map, i * t.page, &v, sizeof(v), &t.e), 0);
		assert_int_equal(v, i);
	}
	assert_int_equal(io_map_copy(&t.io, IO_META, &t.map, 0, all, PAGES * t.page, &t.e), 0);
	assert_int_equal(t.stat.kind[IO_META].returned_bytes, PAGES * t.page);
	memcpy(&v, all + (PAGES - 1) * t.page, sizeof(v));
	assert_int_equal(v, PAGES - 1);
	free(all);
	assert_int_equal(store_map_copy(&t.map, 0, &v, 0, &t.e), 0);
}

static void touches_every_page(void **state)
{
	(void)state;
	assert_int_equal(mapped_pages(), 0);
	assert_int_equal(io_map_touch(&t.io, IO_DATA, &t.map, 1, PAGES * t.page - 1, &t.e), 0);
	assert_int_equal(mapped_pages(), PAGES);
	assert_int_equal(t.stat.kind[IO_DATA].requests, 1);
	assert_int_equal(t.stat.kind[IO_DATA].asked_bytes, PAGES * t.page - 1);
	assert_int_equal(t.stat.kind[IO_DATA].returned_bytes, PAGES * t.page - 1);
	/* a fresh mapping has touched nothing and holds the same */
	store_map_renew(&t.map);
	assert_int_equal(mapped_pages(), 0);
	copies(state);
	assert_int_equal(store_map_touch(&t.map, PAGES * t.page, 0, &t.e), 0);
}

static void pages_of_a_range(void **state)
{
	uint64_t p = t.page;

	(void)state;
	assert_int_equal(store_map_pages(0, 0), 0);
	assert_int_equal(store_map_pages(0, 1), 1);
	assert_int_equal(store_map_pages(0, p), 1);
	assert_int_equal(store_map_pages(1, p), 2);
	assert_int_equal(store_map_pages(p - 1, 2), 2);
	assert_int_equal(store_map_pages(p - 1, 1), 1);
	assert_int_equal(store_map_pages(p, 2 * p + 1), 3);
}

/* The first page that is not there is named, wherever it is in a batch. */
static void missing_pages(void **state)
{
	char v[8], want[64];

	(void)state;
	for (uint64_t keep = 1; keep < PAGES; keep += keep < 120 ? 40 : 1) {
		assert_int_equal(truncate(t.path, (off_t)(keep * t.page)), 0);
		memset(&t.e, 0, sizeof(t.e));
		memset(&t.stat, 0, sizeof(t.stat));
		assert_int_equal(io_map_touch(&t.io, IO_DATA, &t.map, 5, PAGES * t.page - 5, &t.e),
				 -EIO);
		snprintf(want, sizeof(want),
			 "at offset %llu:", (unsigned long long)(keep * t.page));
		if (!strstr(t.e.text, want))
			fail_msg("%s, wanted %s", t.e.text, want);
		assert_int_equal(t.stat.kind[IO_DATA].requests, 1);
		assert_int_equal(t.stat.kind[IO_DATA].returned_bytes, 0);
		assert_int_equal(store_map_touch(&t.map, 5, keep * t.page - 5, &t.e), 0);
		assert_int_equal(store_map_copy(&t.map, keep * t.page - 4, v, 8, &t.e), -EIO);
		assert_non_null(strstr(t.e.text, want));
		assert_int_equal(truncate(t.path, (off_t)(PAGES * t.page)), 0);
	}
}

static void what_cannot_be_mapped(void **state)
{
	struct store_map m;
	struct store *s;

	(void)state;
	assert_int_equal(store_map_check(t.io.store, &t.e), 0);
	assert_int_equal(io_open(&t.io, t.path, STORE_READ, t.blob, &t.e), 0);
	assert_int_equal(store_map(t.blob, 0, &m, &t.e), 0);
	assert_null(m.at);
	assert_int_equal(store_map(t.blob, UINT64_MAX, &m, &t.e), -EFBIG);
	assert_int_equal(store_map(t.blob, 1ull << 62, &m, &t.e), -ENOMEM);
	assert_null(m.at);
	store_map_renew(&m);
	store_unmap(&m);
	io_close(&t.io, t.blob, NULL);
	assert_int_equal(store_create(&s, "throttle+fault+posix", NULL, &t.e), 0);
	assert_int_equal(store_map_check(s, &t.e), ERR_USAGE);
	assert_non_null(strstr(t.e.text, "'throttle'"));
	store_destroy(s);
	assert_int_equal(store_create(&s, "memory", NULL, &t.e), 0);
	struct io io = {.store = s};
	struct blob *b = store_blob_new(s, &t.e);

	assert_int_equal(io_open(&io, "f", STORE_READ | STORE_WRITE | STORE_CREATE, b, &t.e), 0);
	assert_int_equal(store_map(b, 1, &m, &t.e), ERR_USAGE);
	assert_non_null(strstr(t.e.text, "'memory'"));
	io_close(&io, b, NULL);
	free(b);
	store_destroy(s);
}

/* What is let go can be evicted, and is there again when it is read. */
static void lets_go(void **state)
{
	struct store_map other = {0};
	struct page_cached left;
	uint64_t got = 0;

	(void)state;
	assert_int_equal(io_map_touch(&t.io, IO_DATA, &t.map, 0, t.map.bytes, &t.e), 0);
	assert_int_equal(io_open(&t.io, t.path, STORE_READ, t.blob, &t.e), 0);
	for (int i = 0; i < 3; i++) {
		store_unmap(&other);
		assert_int_equal(io_map(&t.io, t.blob, t.page, &other, &t.e), 0);
	}
	assert_int_equal(io_close(&t.io, t.blob, &t.e), 0);
	store_map_renew(&t.map);
	assert_int_equal(io_map_touch(&t.io, IO_DATA, &t.map, 0, t.map.bytes, &t.e), 0);
	/* locked pages are in the way of eviction; they are let go as well */
	assert_int_equal(mlock(other.at, t.page), 0);
	assert_int_equal(store_maps_let_go(), 0);
	assert_int_equal(page_cache_evict(t.path, &left, &t.e), 0);
	assert_int_equal(left.cached_bytes, 0);
	assert_int_equal(io_map_copy(&t.io, IO_DATA, &t.map, 7 * t.page, &got, sizeof(got), &t.e),
			 0);
	assert_int_equal(got, 7);
	store_unmap(&other);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(copies),        T(touches_every_page),    T(pages_of_a_range),
		T(missing_pages), T(what_cannot_be_mapped), T(lets_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
