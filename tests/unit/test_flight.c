/* Requests of one worker in flight: every sample once, whatever the depth and the store; failures,
 * ends, files, and nothing allocated while it runs. */
#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "dataset_fixture.h"
#include "loader/flight.h"
#include "loader/sample_reader.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

static _Atomic uint64_t allocations;

#ifndef SANITIZED
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
#define VISIBLE __attribute__((visibility("default")))

VISIBLE void *malloc(size_t n)
{
	allocations++;
	return __libc_malloc(n);
}

VISIBLE void *calloc(size_t n, size_t size)
{
	allocations++;
	return __libc_calloc(n, size);
}
#endif

#define FILES 6u
#define PER_FILE 7u
#define SAMPLES (FILES * PER_FILE)
#define SAMPLE_BYTES 4096u

static struct {
	struct workload workload;
	struct dataset dataset;
	struct store *store;
	struct loader_config config;
	struct reader_config settings;
	struct io io;
	struct io_stat stat;
	struct stop_flag stop;
	struct flight *flight;
	struct reader *reader;
	void *memory;
	size_t memory_bytes;
	char root[64];
} t;

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st, (void)flag, (void)ftw;
	return remove(path);
}

static void write_files(uint64_t files)
{
	struct blob *b = store_blob_new(t.store, NULL);
	unsigned char *scratch = xmalloc(FORMAT_WRITE_SCRATCH);
	struct io io = {.store = t.store};
	struct file_spec f;
	char path[DATASET_PATH_MAX];
	struct err e;

	dataset_folder(&t.dataset, DATASET_TRAIN, 0, path, sizeof(path), NULL);
	assert_int_equal(store_mkdirs(t.store, path, NULL), 0);
	for (uint64_t i = 0; i < files; i++) {
		dataset_file_spec(&t.dataset, DATASET_TRAIN, i, &f);
		dataset_path(&t.dataset, DATASET_TRAIN, i, path, sizeof(path), NULL);
		if (io_open(&io, path, STORE_WRITE | STORE_CREATE, b, &e) < 0 ||
		    format_write(t.dataset.format, &io, b, path, &f, &t.dataset.content, scratch,
				 FORMAT_WRITE_SCRATCH, &e) < 0 ||
		    io_close(&io, b, &e) < 0)
			fail_msg("%s", e.text);
	}
	free(scratch);
	free(b);
}

/* A store, the files of a dataset on it, and nothing read yet. */
static void begin(const char *format, const char *store, const char *options, uint64_t files)
{
	memset(&t, 0, sizeof(t));
	t.store = fixture_store(store, options);
	strcpy(t.root, "/tmp/stoker-flight-XXXXXX");
	if (store_base_flags(t.store) & STORE_HAS_FILES)
		assert_non_null(mkdtemp(t.root));
	t.workload = fixture_workload(format, t.root, (int64_t)files, 0);
	t.workload.dataset.num_samples_per_file = PER_FILE;
	t.workload.reader.access = ACCESS_NATIVE;
	t.workload.reader.decode = DECODE_NONE;
	t.workload.reader.batch_size = 1;
	fixture_dataset(&t.dataset, &t.workload);
	write_files(files);
	t.config = (struct loader_config){.workload = &t.workload,
					  .dataset = &t.dataset,
					  .kind = DATASET_TRAIN,
					  .store = t.store,
					  .batch_size = 1,
					  .stop = &t.stop};
	io_stat_init(&t.stat);
	t.io = (struct io){.store = t.store, .stat = &t.stat, .stop = &t.stop};
}

static void make(int64_t depth, int decode, int read_type)
{
	struct err e;

	t.workload.reader.queue_depth = depth;
	t.workload.reader.decode = decode;
	t.workload.reader.read_type = read_type;
	sample_reader_settings(&t.settings, &t.config);
	if (flight_create(&t.flight, &t.config, &t.settings, &t.io, &e) < 0)
		fail_msg("%s", e.text);
	t.memory_bytes = t.dataset.format->reader_bytes(&t.settings, t.store);
	t.memory = buffer_alloc(t.memory_bytes, "test", NULL);
	if (t.dataset.format->reader_init(t.memory, &t.settings, flight_io(t.flight), &t.reader,
					  &e) < 0)
		fail_msg("%s", e.text);
	io_stat_init(&t.stat);
}

static void unmake(void)
{
	assert_int_equal(t.dataset.format->reader_close(t.reader, NULL), 0);
	assert_int_equal(flight_close(t.flight, NULL), 0);
	flight_destroy(t.flight);
	buffer_free(t.memory, t.memory_bytes);
	/* everything opened was closed */
	assert_int_equal(t.stat.kind[IO_OPEN].requests % 2, 0);
	t.flight = NULL;
}

static void end(void)
{
	if (store_base_flags(t.store) & STORE_HAS_FILES)
		nftw(t.root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	dataset_release(&t.dataset);
	store_destroy(t.store);
}

struct reading {
	struct flight_run run;
	uint64_t given, end, stop_at;
	uint64_t stride; /* coprime to the number of samples */
	uint64_t payload;
	unsigned char seen[64 * PER_FILE];
};

static bool next(struct flight_run *run, uint64_t *sample)
{
	struct reading *r = (struct reading *)run;

	if (r->given == r->end || r->given == r->stop_at)
		return false;
	*sample = r->given++ * r->stride % r->end;
	return true;
}

static void doing(struct flight_run *run, uint64_t sample, int64_t since_ns)
{
	assert_true(sample < ((struct reading *)run)->end);
	assert_true(since_ns > 0);
}

static void done(struct flight_run *run, uint64_t sample, uint64_t payload, int64_t *now)
{
	struct reading *r = (struct reading *)run;

	assert_true(*now > 0);
	r->seen[sample]++;
	r->payload += payload;
}

static int read_all(struct reading *r, uint64_t samples, uint64_t stride, struct err *e)
{
	*r = (struct reading){.run = {.next = next, .doing = doing, .done = done},
			      .end = samples,
			      .stop_at = UINT64_MAX,
			      .stride = stride};
	return flight_read(t.flight, t.reader, &r->run, e);
}

static void expect_all(const struct reading *r)
{
	for (uint64_t i = 0; i < r->end; i++)
		assert_int_equal(r->seen[i], 1);
}

static bool have(const char *store)
{
	struct store *s;
	bool ok = store_find(store) && store_create(&s, store, NULL, NULL) == 0;

	if (ok)
		store_destroy(s);
	return ok;
}

static void each_sample_once(void **state)
{
	static const char *const formats[] = {"indexed_binary", "tfrecord", "npy", "hdf5"};
	static const char *const stores[] = {"memory", "posix", "io_uring", "throttle+memory"};
	static const int64_t depths[] = {2, 3, 32};
	static const int decodes[] = {DECODE_NONE, DECODE_FULL, DECODE_VERIFY};

	(void)state;
	for (size_t i = 0; i < 16; i++) {
		const char *store = stores[i % 4];

		if (strcmp(store, "io_uring") == 0 && !have(store))
			continue;
		begin(formats[i / 4], store, NULL, FILES);
		for (size_t k = 0; k < 9; k++) {
			struct reading r;
			struct err e;

			make(depths[k % 3], decodes[k / 3], READ_ON_DEMAND);
			for (int round = 0; round < 3; round++) {
				if (read_all(&r, SAMPLES, 11, &e) < 0)
					fail_msg("%s on %s: %s", formats[i / 4], store, e.text);
				expect_all(&r);
				assert_int_equal(r.payload, SAMPLES * SAMPLE_BYTES);
			}
			assert_true(t.stat.kind[IO_DATA].requests >= 3ull * SAMPLES);
			unmake();
		}
		end();
	}
}

/* read_type memory: files stay open, but no more than there is room for. */
static void kept_files(void **state)
{
	struct reading r;

	(void)state;
	begin("indexed_binary", "memory", NULL, FILES);
	make(4, DECODE_NONE, READ_MEMORY);
	for (int round = 0; round < 3; round++) {
		assert_int_equal(read_all(&r, SAMPLES, 11, NULL), 0);
		expect_all(&r);
	}
	assert_int_equal(t.stat.kind[IO_OPEN].requests, FILES);
	assert_int_equal(t.stat.kind[IO_DATA].requests, 3 * SAMPLES);
	unmake();
	assert_int_equal(t.stat.kind[IO_OPEN].requests, 2 * FILES);
	/* on_demand: each is closed after its sample, unless the next one is of it, too */
	make(2, DECODE_NONE, READ_ON_DEMAND);
	assert_int_equal(read_all(&r, SAMPLES, 11, NULL), 0);
	assert_true(t.stat.kind[IO_OPEN].requests > SAMPLES);
	unmake();
	end();
	begin("indexed_binary", "memory", NULL, 60);
	make(2, DECODE_VERIFY, READ_MEMORY);
	for (int round = 0; round < 3; round++) {
		assert_int_equal(read_all(&r, 60 * PER_FILE, 61, NULL), 0);
		expect_all(&r);
	}
	assert_true(t.stat.kind[IO_OPEN].requests > 120);
	unmake();
	end();
}

/* What is read whole is read once, and its bytes count once. */
static void loaded_files(void **state)
{
	static const char *const formats[] = {"npy", "tfrecord"};

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct reading r;

		begin(formats[i % 2], "memory", NULL, FILES);
		make(8, i / 2 ? DECODE_VERIFY : DECODE_NONE, READ_MEMORY);
		assert_int_equal(read_all(&r, SAMPLES, 11, NULL), 0);
		expect_all(&r);
		assert_int_equal(t.stat.kind[IO_DATA].requests, FILES);
		assert_int_equal(r.payload, FILES * SAMPLE_BYTES);
		assert_int_equal(read_all(&r, SAMPLES, 11, NULL), 0);
		expect_all(&r);
		assert_int_equal(r.payload, 0);
		assert_int_equal(t.stat.kind[IO_DATA].requests, FILES);
		unmake();
		end();
	}
}

/* A request that fails ends the reading once all others are back; then it can go on. */
static void failures(void **state)
{
	static const char *const options[] = {
		"fault: {op: read, nth: 5, errno: EIO}",
		"fault: {op: read, nth: 42, errno: EIO}",
		"fault: {op: open, nth: 10, errno: EIO}", /* the first ones wrote the files */
		"fault: {op: close, nth: 12, errno: EIO}",
	};

	(void)state;
	for (size_t i = 0; i < 12; i++) {
		struct reading r;
		struct err e;

		begin("indexed_binary", "fault+memory", options[i % 4], FILES);
		make(8, (int[]){DECODE_NONE, DECODE_FULL, DECODE_VERIFY}[i / 4], READ_ON_DEMAND);
		assert_int_equal(read_all(&r, SAMPLES, 11, &e), -EIO);
		assert_non_null(strstr(e.text, "the fault store fails call"));
		if (i % 4 < 2)
			assert_non_null(strstr(e.text, "/train/img_"));
		assert_true(r.run.failed < SAMPLES);
		assert_int_equal(r.seen[r.run.failed], 0);
		assert_int_equal(read_all(&r, SAMPLES, 11, &e), 0);
		expect_all(&r);
		if (i % 4 < 2)
			unmake();
		else
			flight_destroy(t.flight), buffer_free(t.memory, t.memory_bytes);
		end();
	}
}

static void short_files(void **state)
{
	char path[DATASET_PATH_MAX];
	unsigned char bytes[100] = {0};

	(void)state;
	for (int decode = DECODE_FULL; decode <= DECODE_NONE; decode++) {
		struct reading r;
		struct err e;

		begin("indexed_binary", "memory", NULL, FILES);
		dataset_path(&t.dataset, DATASET_TRAIN, 3, path, sizeof(path), NULL);
		fixture_put(t.store, path, bytes, sizeof(bytes));
		make(8, decode, READ_ON_DEMAND);
		assert_int_equal(read_all(&r, SAMPLES, 11, &e), ERR_DATA);
		assert_int_equal(r.run.failed / PER_FILE, 3);
		assert_non_null(strstr(e.text, "img_3_of_6.indexed_binary"));
		unmake();
		end();
	}
}

/* Fewer bytes than the file has are told from a file that ends. */
static void short_reads(void **state)
{
	struct reading r;
	struct err e;

	(void)state;
	begin("indexed_binary", "fault+memory", "fault: {op: read, nth: 9, action: short}", FILES);
	make(4, DECODE_NONE, READ_ON_DEMAND);
	assert_int_equal(read_all(&r, SAMPLES, 11, &e), ERR_DATA);
	assert_non_null(strstr(e.text, "but the store returned only 2048 of the 4096"));
	unmake();
	end();
}

static void ends(void **state)
{
	struct reading r;
	struct err e;

	(void)state;
	begin("npy", "posix", NULL, FILES);
	make(8, DECODE_VERIFY, READ_ON_DEMAND);
	/* no more samples */
	r = (struct reading){.run = {.next = next, .doing = doing, .done = done},
			     .end = SAMPLES,
			     .stop_at = 13,
			     .stride = 11};
	assert_int_equal(flight_read(t.flight, t.reader, &r.run, &e), 0);
	for (uint64_t i = 0; i < SAMPLES; i++)
		assert_int_equal(r.seen[i * 11 % SAMPLES], i < 13);
	/* the run ends */
	atomic_store(&t.stop.set, 1);
	assert_int_equal(read_all(&r, SAMPLES, 11, &e), ERR_CANCELED);
	atomic_store(&t.stop.set, 0);
	assert_int_equal(read_all(&r, SAMPLES, 11, &e), 0);
	expect_all(&r);
	unmake();
	end();
}

static void impossible(void **state)
{
	struct err e;

	(void)state;
	begin("hdf5", "memory", NULL, 1);
	t.workload.reader.queue_depth = 2;
	sample_reader_settings(&t.settings, &t.config);
	assert_true(flight_wanted(&t.config));
	assert_true(flight_bytes(&t.config, &t.settings, &e) > 0);
	t.dataset.form.datasets = 2;
	assert_int_equal(flight_bytes(&t.config, &t.settings, &e), 0);
	assert_int_equal(e.code, ERR_USAGE);
	assert_int_equal(flight_create(&t.flight, &t.config, &t.settings, &t.io, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "2 datasets"));
	t.dataset.form.datasets = 1;
	t.settings.decode = DECODE_FULL;
	t.settings.max_sample_bytes = (uint64_t)1 << 60;
	assert_int_equal(flight_bytes(&t.config, &t.settings, &e), 0);
	assert_int_equal(e.code, -ENOMEM);
	end();
	begin("synthetic", "memory", NULL, 1);
	t.workload.reader.queue_depth = 2;
	assert_false(flight_wanted(&t.config));
	end();
}

static void nothing_is_allocated(void **state)
{
	static const char *const stores[] = {"memory", "posix", "io_uring"};

	(void)state;
	for (size_t i = 0; i < 6; i++) {
		struct reading r;
		uint64_t before;

		if (strcmp(stores[i % 3], "io_uring") == 0 && !have("io_uring"))
			continue;
		begin("indexed_binary", stores[i % 3], NULL, FILES);
		make(8, i / 3 ? DECODE_VERIFY : DECODE_NONE, READ_ON_DEMAND);
		assert_int_equal(read_all(&r, SAMPLES, 11, NULL), 0);
		before = allocations;
		for (int round = 0; round < 5; round++)
			assert_int_equal(read_all(&r, SAMPLES, 11, NULL), 0);
		assert_int_equal(allocations, before);
#ifndef SANITIZED
		assert_true(before > 0);
#endif
		unmake();
		end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_sample_once),
		cmocka_unit_test(kept_files),
		cmocka_unit_test(loaded_files),
		cmocka_unit_test(failures),
		cmocka_unit_test(short_files),
		cmocka_unit_test(short_reads),
		cmocka_unit_test(ends),
		cmocka_unit_test(impossible),
		cmocka_unit_test(nothing_is_allocated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
