/* The format of recordings: rings written here by hand, byte for byte as recorder/ring.h has them.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "trace/recording/recording.h"

#define RING_BYTES (RING_PAGE + 3 * 4096)

struct ring {
	uint8_t bytes[RING_BYTES];
};

static char folder[64];
static bool checked; /* rings with checksums; else of version 1 */

static void put_file(const char *name, const void *bytes, size_t n)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	/* file_write syncs, and thousands are written */
	f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static void head(struct ring *r, uint64_t id, int64_t start)
{
	struct ring_head h = {.head_bytes = RING_PAGE, .id = id, .host = 5, .pid = (int64_t)id};

	memset(r, 0, sizeof(*r));
	memcpy(h.magic, checked ? RING_MAGIC : RING_MAGIC_UNCHECKED, sizeof(h.magic));
	h.start_ns = start;
	h.start_real_ns = 1700000000000000000 + start;
	h.first_serial = 1;
	h.begin_sum = checked ? ring_begin_sum(&h) : 0;
	memcpy(r->bytes, &h, sizeof(h));
}

static void check(struct ring_chunk *c, const void *events)
{
	if (!checked)
		return;
	c->magic = ring_chunk_magic(c);
	c->sum = ring_sum(RING_SUM, events, c->used);
	c->counts.rchar = ring_guarded(c->counts.rchar);
}

static void chunk(struct ring *r, int place, int64_t tid, int64_t base, const void *events,
		  size_t n)
{
	struct ring_chunk c = {.magic = RING_CHUNK_MAGIC,
			       .bytes = 4096,
			       .tid = tid,
			       .base_ns = base,
			       .used = (uint32_t)n,
			       .counts.rchar = 7};

	check(&c, events);
	memcpy(r->bytes + RING_PAGE + 4096 * place, &c, sizeof(c));
	memcpy(r->bytes + RING_PAGE + 4096 * place + sizeof(c), events, n);
}

static int setup(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/ring-XXXXXX");
	assert_non_null(mkdtemp(folder));
	put_file(RING_JOB_NAME, RING_JOB_MAGIC, strlen(RING_JOB_MAGIC));
	return 0;
}

static int teardown(void **state)
{
	static const char *const names[] = {RING_JOB_NAME, "a.ring", "b.ring", "b.end",
					    "control-1"};
	char path[128];

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
	return rmdir(folder);
}

/* 2^6 zigzag is 2 bytes: 0x80 0x01. Times: zigzag of the gap, then the duration. */
static const uint8_t first_thread[] = {
	/* open at base + 10 for 5: base 0, "/data/one", flags 0, fd 3, serial 1, regular, size 1000
	 */
	RING_OPEN,
	20,
	5,
	0,
	0,
	9,
	'/',
	'd',
	'a',
	't',
	'a',
	'/',
	'o',
	'n',
	'e',
	0,
	6,
	1,
	1,
	0xd0,
	0x0f,
	/* pread 10 after it, of 100 at 64: all */
	RING_PREAD | RING_FULL,
	20,
	1,
	1,
	100,
	0x80,
	0x01,
	/* pread of the same serial, 100 at 164, the end of the one before; -5 */
	RING_PREAD | RING_SAME,
	0,
	1,
	100,
	0,
	9,
	/* open "/data/two": 6 shared characters */
	RING_OPEN,
	0,
	0,
	0,
	6,
	3,
	't',
	'w',
	'o',
	0,
	8,
	2,
	1,
	0,
};
static const uint8_t second_thread[] = {
	/* read of 300 with 200, at base + 1 */
	RING_READ,
	2,
	1,
	9,
	0xac,
	0x02,
	0x90,
	0x03,
	/* another thread goes on, at time 1000900 */
	RING_THREAD,
	0,
	0,
	0x9a,
	0x01,
	0x88,
	0x97,
	0x7a,
	RING_CLOSE,
	0,
	0,
	9,
	0,
};

static void test_order_and_fields(void **state)
{
	static const struct {
		int kind;
		int64_t tid, begin, duration;
	} want[] = {
		{RING_READ, 12, 1, 1},    {RING_THREAD, 12, 2, 0}, {RING_OPEN, 11, 10, 5},
		{RING_PREAD, 11, 25, 1},  {RING_PREAD, 11, 26, 1}, {RING_OPEN, 11, 27, 0},
		{RING_CLOSE, 77, 900, 0},
	};
	struct ring_event v[8];
	char name[8][32];
	struct ring_files f;
	struct ring r;
	size_t n = 0;

	(void)state;
	head(&r, 1, 1000000);
	chunk(&r, 0, 11, 1000000, first_thread, sizeof(first_thread));
	chunk(&r, 1, 12, 1000000, second_thread, sizeof(second_thread));
	put_file("a.ring", &r, sizeof(r));
	assert_true(ring_folder(folder));
	assert_int_equal(ring_files_open(&f, folder, NULL), 0);
	assert_int_equal(f.rings, 1);
	assert_int_equal(f.ring[0].counts.rchar, 14);
	while (n < 8 && ring_files_next(&f, &v[n])) {
		snprintf(name[n], sizeof(name[n]), "%s", v[n].name[0]);
		n++;
	}
	assert_int_equal(n, sizeof(want) / sizeof(want[0]));
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(v[i].kind, want[i].kind);
		assert_int_equal(v[i].tid, want[i].tid);
		assert_int_equal(v[i].begin_ns, want[i].begin);
		assert_int_equal(v[i].end_ns, want[i].begin + want[i].duration);
	}
	assert_int_equal(v[0].serial, 9);
	assert_int_equal(v[0].asked, 300);
	assert_int_equal(v[0].result, 200);
	assert_string_equal(name[2], "/data/one");
	assert_int_equal(v[2].v[2], 3);
	assert_int_equal(v[2].v[5], 1000);
	assert_int_equal(v[3].offset, 64);
	assert_int_equal(v[3].result, 100);
	assert_int_equal(v[4].serial, 1);
	assert_int_equal(v[4].offset, 164);
	assert_int_equal(v[4].result, -5);
	assert_string_equal(name[5], "/data/two");
	assert_int_equal(f.damaged, 0);
	ring_files_close(&f);
}

static size_t events_of(const struct ring *r, size_t bytes, uint64_t *damaged)
{
	struct ring_files f;
	struct ring_event v;
	size_t n = 0;

	put_file("a.ring", r, bytes);
	assert_int_equal(ring_files_open(&f, folder, NULL), 0);
	while (ring_files_next(&f, &v))
		n++;
	*damaged = f.damaged + f.unread;
	ring_files_close(&f);
	return n;
}

/* A file that ends anywhere gives the events before, never one that was not written. */
static void test_cut(void **state)
{
	uint64_t damaged;
	struct ring r;
	size_t last = 0;

	(void)state;
	head(&r, 1, 1000000);
	chunk(&r, 0, 11, 1000000, first_thread, sizeof(first_thread));
	for (size_t n = RING_PAGE + sizeof(struct ring_chunk);
	     n <= RING_PAGE + sizeof(struct ring_chunk) + sizeof(first_thread); n++) {
		size_t got = events_of(&r, n, &damaged);

		assert_true(got >= last && got <= 4);
		last = got;
	}
	assert_int_equal(last, 4);
	assert_int_equal(damaged, 0);
	assert_int_equal(events_of(&r, RING_PAGE, &damaged), 0);
	assert_int_equal(events_of(&r, 100, &damaged), 0);
	assert_int_equal(damaged, 1);
}

/* A chunk that was made and not begun is passed over, unless its process ended by itself. */
static void test_gap(void **state)
{
	struct ring_head *h;
	uint64_t damaged;
	struct ring r;

	(void)state;
	head(&r, 1, 1000000);
	chunk(&r, 2, 12, 1000000, second_thread, sizeof(second_thread));
	assert_int_equal(events_of(&r, sizeof(r), &damaged), 3);
	assert_int_equal(damaged, 0);
	h = (struct ring_head *)(void *)r.bytes;
	h->end_ns = 2000000;
	h->allocated = checked ? ring_guarded(3 * 4096) : 3 * 4096;
	h->end_sum = ring_end_sum(h);
	assert_int_equal(events_of(&r, sizeof(r), &damaged), 3);
	assert_int_equal(damaged, checked ? 1 : 0);
	head(&r, 1, 1000000);
	chunk(&r, 2, 12, 1000000, second_thread, sizeof(second_thread));
	/* an event of no kind ends the chunk */
	r.bytes[RING_PAGE + 2 * 4096 + sizeof(struct ring_chunk) + 8] = RING_KIND;
	assert_int_equal(events_of(&r, sizeof(r), &damaged), checked ? 0 : 1);
	assert_int_equal(damaged, 1);
}

/* Of a ring with checksums no bit changes unnoticed what is read of it. */
static void test_flipped(void **state)
{
	const size_t parts[][2] = {
		{0, sizeof(struct ring_head)},
		{RING_PAGE, sizeof(struct ring_chunk) + sizeof(first_thread)},
	};
	struct ring_head *h;
	struct ring r;
	size_t unnoticed = 0;

	(void)state;
	if (!checked)
		return;
	head(&r, 1, 1000000);
	h = (struct ring_head *)(void *)r.bytes;
	h->last = (struct ring_io){.known = 1, .rchar = 77};
	h->end_ns = 2000000;
	h->lost = ring_guarded(3);
	h->allocated = ring_guarded(4096);
	h->end_sum = ring_end_sum(h);
	chunk(&r, 0, 11, 1000000, first_thread, sizeof(first_thread));
	for (size_t p = 0; p < 2; p++)
		for (size_t bit = 8 * parts[p][0]; bit < 8 * (parts[p][0] + parts[p][1]); bit++) {
			uint64_t damaged;

			r.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
			(void)events_of(&r, sizeof(r), &damaged);
			if (!damaged)
				fprintf(stderr, "byte %zu, bit %zu\n", bit / 8, bit % 8);
			unnoticed += !damaged;
			r.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
	assert_int_equal(unnoticed, 0);
	assert_int_equal(ring_value(&h->lost), true);
	assert_int_equal(h->lost, 3);
}

/* A file of ends with a flipped bit, and one of what processes share. */
static void test_others_flipped(void **state)
{
	struct ring_end end = {.magic = RING_END_MAGIC, .pid = 1, .status = 7};
	struct ring_control c = {.magic = RING_CONTROL_MAGIC, .rings = ring_guarded(3)};
	struct ring_files f;

	(void)state;
	end.sum = ring_sum(RING_SUM, &end, offsetof(struct ring_end, sum));
	for (int flipped = 0; flipped < 2; flipped++) {
		end.status ^= 4 * flipped;
		c.rings ^= 1u * (unsigned)flipped;
		put_file("b.end", &end, sizeof(end));
		put_file("control-1", &c, sizeof(c));
		assert_int_equal(ring_files_open(&f, folder, NULL), 0);
		assert_int_equal(f.ends, flipped ? 0 : 1);
		assert_int_equal(f.begun, flipped ? 0 : 3);
		assert_int_equal(f.damaged + f.unread, flipped ? 2 : 0);
		assert_int_equal(f.harmed.n, flipped ? 2 : 0);
		ring_files_close(&f);
	}
}

/* Rings of one host have one clock, whatever their time of day says. */
static void test_two_processes(void **state)
{
	struct ring_files f;
	struct ring_event v;
	struct ring_head *h;
	struct ring r;
	int64_t begin[2];

	(void)state;
	head(&r, 1, 1000000);
	chunk(&r, 0, 12, 1000000, second_thread, 8);
	put_file("a.ring", &r, sizeof(r));
	head(&r, 2, 3000000);
	h = (struct ring_head *)(void *)r.bytes;
	h->start_real_ns += 999;
	h->begin_sum = checked ? ring_begin_sum(h) : 0;
	chunk(&r, 0, 12, 3000000, second_thread, 8);
	put_file("b.ring", &r, sizeof(r));
	assert_int_equal(ring_files_open(&f, folder, NULL), 0);
	for (int i = 0; i < 2; i++) {
		assert_true(ring_files_next(&f, &v));
		assert_int_equal(v.ring, i);
		begin[i] = v.begin_ns;
	}
	assert_int_equal(begin[1] - begin[0], 2000000);
	ring_files_close(&f);
}

/* stat(2) of `n` names that share all but the end, of `size` bytes, which begin with `first`; and
 * three ends of the process. */
static int read_names(size_t n, size_t size, char first, struct job *job)
{
	const uint32_t bytes = 512 << 10;
	uint8_t *all = xcalloc(1, RING_PAGE + bytes), *p;
	struct ring_chunk c = {.magic = RING_CHUNK_MAGIC, .bytes = bytes, .tid = 1};
	struct ring_end ends[3] = {{.pid = 1, .status = JOB_UNKNOWN},
				   {.pid = 1, .status = 7},
				   {.pid = 1, .status = 8}};
	struct err e = {0};
	struct ring r;
	int rc;

	head(&r, 1, 0);
	memcpy(all, r.bytes, RING_PAGE);
	p = all + RING_PAGE + sizeof(c);
	for (size_t i = 0; i < n; i++) {
		size_t same = i ? size - 2 : 0, more = i ? 2 : size;
		const size_t numbers[] = {same, more};

		*p++ = RING_STAT;
		for (int zero = 0; zero < 3; zero++)
			*p++ = 0;
		for (int k = 0; k < 2; k++) {
			*p++ = (uint8_t)(numbers[k] | 0x80);
			*p++ = (uint8_t)(numbers[k] >> 7);
		}
		memset(p, 'a', more);
		if (i == 0)
			*p = (uint8_t)first;
		p[more - 2] = (uint8_t)(0x80 | i >> 7);
		p[more - 1] = (uint8_t)(0x80 | (i & 127));
		p += more;
		*p++ = 0;
		*p++ = RING_REGULAR;
	}
	c.used = (uint32_t)(p - (all + RING_PAGE + sizeof(c)));
	check(&c, all + RING_PAGE + sizeof(c));
	memcpy(all + RING_PAGE, &c, sizeof(c));
	put_file("a.ring", all, RING_PAGE + bytes);
	free(all);
	for (size_t i = 0; i < 3; i++) {
		memcpy(ends[i].magic, RING_END_MAGIC, sizeof(ends[i].magic));
		ends[i].sum = ring_sum(RING_SUM, &ends[i], offsetof(struct ring_end, sum));
	}
	put_file("b.end", ends, sizeof(ends));
	job_init(job);
	rc = recording_read(job, folder, true, NULL, &e);
	assert_true(rc == 0 || strstr(e.text, "its names have more than"));
	return rc;
}

static void test_names(void **state)
{
	struct job job;

	(void)state;
	assert_int_equal(read_names(4000, 8000, '/', &job), 0);
	assert_int_equal(job.files, 4000);
	job_release(&job);
	assert_int_equal(read_names(12000, 8000, '/', &job), -EFBIG);
	assert_true(job.files < 10000);
	job_release(&job);
	/* the folder is not known */
	assert_int_equal(read_names(2, 5, 'b', &job), 0);
	assert_string_equal(job.file[0].name, "baa\x80\x80");
	/* of several ends the first that is known */
	assert_int_equal(job.process[0].exit, 7);
	job_release(&job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_order_and_fields, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gap, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_processes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_flipped, setup, teardown),
		cmocka_unit_test_setup_teardown(test_others_flipped, setup, teardown),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	checked = true;
	return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
