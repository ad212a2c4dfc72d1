/* The contract of format/format.h when calls fail, memory is short or configurations are
 * impossible. */
#include "format_fixture.h"

/* ---- allocations, counted by the linker's --wrap ---- */

static _Atomic long allocations;

void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t m);
void *__wrap_realloc(void *p, size_t n);
void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t m);
void *__real_realloc(void *p, size_t n);

void *__wrap_malloc(size_t n)
{
	allocations++;
	return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t m)
{
	allocations++;
	return __real_calloc(n, m);
}

void *__wrap_realloc(void *p, size_t n)
{
	allocations++;
	return __real_realloc(p, n);
}

static void impossible_readers(void **state)
{
	struct file_spec f = SMALL;
	struct reader_config c = config(&f, ACCESS_FRAMEWORK, DECODE_VERIFY);
	struct reader *r;
	char memory[65536] __attribute__((aligned(4096)));

	(void)state;
	if (no_io())
		return;
	c.content = NULL;
	assert_int_equal(format->reader_init(memory, &c, &t.io, &r, &t.e), ERR_USAGE);
	c.decode = DECODE_FULL;
	c.python = 27;
	assert_int_equal(format->reader_init(memory, &c, &t.io, &r, &t.e), ERR_USAGE);
	if (by_sample())
		return;
	c.python = 311;
	c.files = UINT64_MAX;
	c.max_file_bytes = UINT64_MAX;
	c.keep_open = true;
	assert_int_equal(format->reader_bytes(&c, t.store), 0);
	if (!is_array() && !image())
		return;
	/* memory grows with a larger buffer only by that buffer */
	c = config(&f, ACCESS_FRAMEWORK, DECODE_FULL);
	c.block_bytes = 4096;
	size_t small = format->reader_bytes(&c, t.store);
	c.block_bytes = 0;
	assert_int_equal(format->reader_bytes(&c, t.store), small + FORMAT_BLOCK_MAX - 4096);
}

/* A file system that prefers larger requests than the reader has room for. */
static void too_large_blocks(void **state)
{
	struct file_spec f = SMALL;
	struct reader_config c = config(&f, ACCESS_FRAMEWORK, DECODE_FULL);

	(void)state;
	if (by_sample() || (!is_array() && !image()) || strcmp(base, "memory") != 0)
		return;
	use_store("memory", "memory: {block_bytes: 131072}");
	write_file(&f);
	assert_int_equal(read_once(&f, &c, 0), ERR_USAGE);
	assert_non_null(strstr(t.e.text, "131072"));
	c.block_bytes = 131072;
	assert_int_equal(read_once(&f, &c, 0), 0);
}

/* Tells the run to stop while the first piece of a sample is looked at. */
static struct stop_flag stop;

static void stopping_fill(const struct content_source *src, uint64_t file_index, uint64_t offset,
			  void *out, size_t n)
{
	atomic_store(&stop.set, 1);
	test_fill(src, file_index, offset, out, n);
}

static void a_stop_ends_a_read_of_many_requests(void **state)
{
	struct file_spec f = spec("uint8", 1, 2, 3100, 3100, 0);
	struct reader_config c = config(&f, ACCESS_NATIVE, DECODE_VERIFY);
	struct open_reader o;
	struct sample s;

	(void)state;
	/* the others compare only after their last request */
	if (no_io() || !is_array() || by_sample())
		return;
	write_file(&f);
	reader_open(&o, &f, &c);
	o.content.fill = stopping_fill;
	t.io.stop = &stop;
	memset(&t.stat, 0, sizeof(t.stat));
	assert_int_equal(format->read(o.r, t.path, &f, 0, &s, &t.e), ERR_CANCELED);
	assert_non_null(strstr(t.e.text, "was stopped"));
	assert_int_equal(s.payload_bytes, 0);
	assert_int_equal(t.stat.kind[IO_DATA].requests, 1);
	/* closed all the same */
	assert_int_equal(t.stat.kind[IO_OPEN].requests, 2);
	reader_end(&o);
	t.io.stop = NULL;
	atomic_store(&stop.set, 0);
}

/* Fails the n-th call of each kind, for all n. */
static void every_failure_ends_in_a_sentence(void **state)
{
	static const char *const ops[] = {"open", "read", "stat", "close"};
	struct file_spec f = spec(image() ? "uint8" : "int16", 2, 2, 300, 400, 0);
	char expression[32];

	(void)state;
	snprintf(expression, sizeof(expression), "fault+%s", base);
	use_store(expression, NULL);
	for (int op = 0; op < 4; op++) {
		FOR_MODES(access, decode)
		{
			for (int n = 1;; n++) {
				struct reader_config c = config(&f, access, decode);
				struct open_reader o;
				struct sample s;
				char yaml[96];
				int rc;

				/* writing opens and closes once */
				snprintf(yaml, sizeof(yaml), "fault: {op: %s, nth: %d}", ops[op],
					 n + (op == 0 || op == 3));
				use_store(expression, yaml);
				write_file(&f);
				c.buffer_bytes = 4096;
				/* a file kept open is closed by reader_close */
				c.keep_open = !(by_sample() && op == 3);
				reader_open(&o, &f, &c);
				memset(&t.e, 0, sizeof(t.e));
				rc = format->read(o.r, t.path, &f, 0, &s, &t.e);
				if (rc < 0) {
					assert_int_equal(rc, -EIO);
					assert_non_null(strstr(t.e.text, "fault"));
					assert_non_null(strstr(t.e.text, t.path));
					assert_int_equal(s.payload_bytes, 0);
					/* not marked as loaded, and the reader works on */
					memset(&t.stat, 0, sizeof(t.stat));
					if (format->read(o.r, t.path, &f, 1, &s, &t.e) < 0)
						fail_msg("%s", t.e.text);
					/* an index is read, too, unless it has been; a footer,
					 * unless the first call of a kind failed */
					if (is_table() && c.access == ACCESS_FRAMEWORK)
						assert_int_equal(t.stat.kind[IO_OPEN].requests,
								 n == 1 ? 4 : 2);
					else if (!by_sample() || is_array())
						assert_int_equal(t.stat.kind[IO_OPEN].requests,
								 c.keep_open && by_sample() ? 1
											    : 2);
				}
				reader_end(&o);
				if (rc == 0)
					break;
				assert_true(n < 100);
			}
		}
	}
}

static void every_failed_write_ends_in_a_sentence(void **state)
{
	struct file_spec f = spec("uint8", 1, 2, 3000, 1500, 0);
	struct content_source content = test_content(f.elem);
	char expression[32], yaml[64];
	int n, rc = -1;

	(void)state;
	snprintf(expression, sizeof(expression), "fault+%s", base);
	for (n = 1; rc < 0; n++) {
		snprintf(yaml, sizeof(yaml), "fault: {op: write, errno: ENOSPC, nth: %d}", n);
		use_store(expression, yaml);
		assert_int_equal(io_open(&t.io, t.path, STORE_WRITE | STORE_CREATE, t.blob, &t.e),
				 0);
		rc = format_write(format, &t.io, t.blob, t.path, &f, &content, t.scratch,
				  FORMAT_WRITE_SCRATCH, &t.e);
		io_close(&t.io, t.blob, NULL);
		if (rc < 0) {
			assert_int_equal(rc, -ENOSPC);
			assert_non_null(strstr(t.e.text, t.path));
		}
		/* the same, for verifying */
		snprintf(yaml, sizeof(yaml), "fault: {op: read, nth: %d}", n);
		use_store(expression, yaml);
		write_file(&f);
		if (verify(&f) < 0)
			assert_non_null(strstr(t.e.text, "fault"));
	}
	assert_true(n > 2);
}

/* A read that gives less than asked is not the end of the file for Python either. */
static void short_reads(void **state)
{
	struct file_spec f = spec(image() ? "uint8" : "int16", 2, 2, 300, 400, 0);
	char expression[32], yaml[96];

	(void)state;
	snprintf(expression, sizeof(expression), "fault+%s", base);
	use_store(expression, NULL);
	for (int n = 1; n < 20; n++) {
		FOR_MODES(access, decode)
		{
			struct reader_config c = config(&f, access, decode);
			int rc;

			snprintf(yaml, sizeof(yaml), "fault: {op: read, action: short, nth: %d}",
				 n);
			use_store(expression, yaml);
			write_file(&f);
			rc = read_once(&f, &c, 0);
			if (rc != 0 && rc != ERR_DATA)
				fail_msg("%s", t.e.text);
		}
	}
}

static void reading_allocates_nothing(void **state)
{
	struct file_spec f = spec("uint8", 2, 2, 600, 700, 0);

	(void)state;
	write_file(&f);
	FOR_MODES(access, decode)
	{
		struct reader_config c = config(&f, access, decode);
		struct open_reader o;
		struct sample s;
		long before;

		reader_open(&o, &f, &c);
		before = allocations;
		assert_true(before > 0);
		assert_int_equal(format->read(o.r, t.path, &f, 0, &s, &t.e), 0);
		assert_int_equal(format->read(o.r, t.path, &f, 1, &s, &t.e), 0);
		assert_int_equal(allocations, before);
		reader_end(&o);
	}
}

static void missing_file(void **state)
{
	struct file_spec f = SMALL;

	(void)state;
	if (no_io())
		return;
	FOR_MODES(access, decode)
	{
		struct reader_config c = config(&f, access, decode);

		assert_int_equal(read_once(&f, &c, 0), -ENOENT);
		assert_non_null(strstr(t.e.text, t.path));
	}
	assert_int_equal(verify(&f), -ENOENT);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(impossible_readers),
		T(too_large_blocks),
		T(a_stop_ends_a_read_of_many_requests),
		T(every_failure_ends_in_a_sentence),
		T(every_failed_write_ends_in_a_sentence),
		T(short_reads),
		T(reading_allocates_nothing),
		T(missing_file),
	};
	char group[64];
	size_t i = 0;
	int failed = 0;

	while (next_backend(&i, group, sizeof(group)))
		failed += _cmocka_run_group_tests(group, tests, sizeof(tests) / sizeof(tests[0]),
						  NULL, NULL);
	return failed ? 1 : 0;
}
