/* Darshan logs: the job that they give, and what is said of logs that are cut or damaged anywhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "../fuzz/darshan_pack.h"
#include "base/file.h"
#include "trace/darshan/darshan_log.h"
#include "trace/trace_reader.h"

#define FOLDER TEST_DATA "/darshan/"
#define W2 FOLDER "torch/torch-npz-w2/0_python3_id24808-"

static const char *const npz_w2[] = {
	/* not in order */
	W2 "24831_11-22-25038-3756059401881276880_1.darshan",
	W2 "24824_11-22-25038-13985922241905445806_1.darshan",
	W2 "24808_11-22-25037-1171595665353835296_1.darshan",
	W2 "24823_11-22-25038-6682663289585005971_1.darshan",
	W2 "24832_11-22-25038-4551706078379258787_1.darshan",
};
#define W2_LOGS (sizeof(npz_w2) / sizeof(npz_w2[0]))

static void read_job(struct job *job, const char *const *paths, size_t n)
{
	struct err e = {0};

	job_init(job);
	if (job_read(job, paths, n, &e) != 0)
		fail_msg("%s", e.text);
}

static struct job_file *file_named(struct job *job, const char *end)
{
	for (size_t i = 0; i < job->files; i++) {
		size_t n = strlen(job->file[i].name), m = strlen(end);

		if (n >= m && strcmp(job->file[i].name + n - m, end) == 0)
			return &job->file[i];
	}
	return NULL;
}

static bool noted(const struct job *job, const char *part)
{
	for (size_t i = 0; i < job->notes.n; i++)
		if (strstr(job->notes.v[i], part))
			return true;
	return false;
}

/* A job of a process and four workers, as five logs. */
static void test_group(void **state)
{
	struct job job;
	size_t reads = 0;
	int64_t bytes = 0;

	(void)state;
	read_job(&job, npz_w2, W2_LOGS);
	assert_string_equal(job.source, "Darshan 3.41 with DXT");
	assert_int_equal(job.sees,
			 JOB_SEES_COUNTS | JOB_SEES_REQUESTS | JOB_SEES_TIMES | JOB_SEES_OFFSETS);
	assert_int_equal(job.start_s, 1795330637);
	assert_int_equal(job.wall_ns / 100000, 24778);
	assert_int_equal(job.processes, 5);
	assert_int_equal(job.process[0].pid, 24808);
	assert_int_equal(job.process[0].begin_ns, 0);
	assert_int_equal(job.process[0].parent, JOB_NONE);
	for (size_t i = 1; i < job.processes; i++) {
		assert_int_equal(job.process[i].parent, 0);
		assert_true(job.process[i].pid > job.process[i - 1].pid);
		assert_true(job.process[i].begin_ns > 1000000000);
		assert_true(job.process[i].complete);
		assert_string_equal(job.process[i].host, "vm");
		assert_non_null(strstr(job.process[i].command, "--workers 2 "));
	}
	/* two epochs of 64 files, of 11 reads each */
	for (size_t i = 0; i < job.files; i++) {
		const struct job_file *f = &job.file[i];

		if (!strstr(f->name, ".npz"))
			continue;
		assert_int_equal(f->counts.opens, 2);
		assert_int_equal(f->counts.reads, 22);
		assert_int_equal(f->size, f->counts.read_end);
		bytes += f->counts.bytes_read;
		for (size_t k = 0; k < job.events; k++)
			reads += job.event[k].file == i;
	}
	assert_int_equal(reads, 64 * 22);
	assert_int_equal(job.events, 1463);
	for (size_t k = 1; k < job.events; k++)
		assert_true(job.event[k].begin_ns >= job.event[k - 1].begin_ns);
	assert_int_equal(bytes, 12263082);
	job_release(&job);
}

/* The reads of a pipe that Darshan booked to the checkpoint. */
static void test_stale_descriptor(void **state)
{
	const char *const main_alone[] = {npz_w2[2]};
	const struct job_file *ckpt, *pipe = NULL;
	struct job job;
	size_t messages = 0, unknown = 0;

	(void)state;
	read_job(&job, main_alone, 1);
	ckpt = file_named(&job, "/ckpt.pt");
	assert_non_null(ckpt);
	assert_int_equal(ckpt->kind, JOB_FILE_REGULAR);
	assert_int_equal(ckpt->counts.opens, 2);
	assert_int_equal(ckpt->counts.reads, 0);
	assert_int_equal(ckpt->counts.bytes_read, 0);
	assert_int_equal(ckpt->counts.writes, 6);
	assert_int_equal(ckpt->counts.bytes_written, 67510);
	assert_int_equal(ckpt->counts.write_end, 33755);
	assert_int_equal(ckpt->size, 33755);
	assert_int_equal(ckpt->counts.read_begin_ns, JOB_UNKNOWN);
	assert_int_equal(ckpt->counts.access[0], 16896);
	assert_int_equal(ckpt->counts.access_count[0], 2);
	for (size_t i = 0; i < JOB_SIZES; i++)
		assert_int_equal(ckpt->counts.read_size[i], 0);
	for (size_t i = 0; i < job.files; i++)
		if (job.file[i].kind == JOB_FILE_PIPE)
			pipe = &job.file[i];
	if (!pipe) {
		fail();
		return;
	}
	assert_non_null(strstr(pipe->name, "pipe booked to /data/demo/ckpt.pt"));
	assert_int_equal(pipe->counts.reads, 32);
	assert_int_equal(pipe->counts.bytes_read, 5504);
	for (size_t k = 0; k < job.events; k++) {
		const struct job_event *v = &job.event[k];

		if (&job.file[v->file] == pipe)
			messages += v->kind == JOB_READ && v->offset == JOB_UNKNOWN;
		if (&job.file[v->file] == ckpt)
			unknown += v->kind == JOB_WRITE && v->offset == JOB_UNKNOWN;
	}
	assert_int_equal(messages, 32);
	assert_int_equal(unknown, 3);
	assert_true(noted(&job, "booked 16 messages of a pipe to the file /data/demo/ckpt.pt"));
	job_release(&job);
}

/* Ranks of MPI in one log; without requests, with bytes over time. */
static void test_ranks(void **state)
{
	const char *const path[] = {FOLDER "public/mpi-io-test-x86_64-3.4.0.darshan"};
	const char *const dxt[] = {FOLDER "public/mpi-io-test-ppc64-3.1.3.darshan"};
	struct job job;
	int64_t heat = 0;

	(void)state;
	read_job(&job, path, 1);
	assert_int_equal(job.processes, 4);
	assert_int_equal(job.sees, JOB_SEES_COUNTS);
	assert_int_equal(job.events, 0);
	assert_string_equal(job.source, "Darshan 3.21 without DXT");
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(job.process[i].rank, i);
	for (size_t i = 0; i < job.heats; i++)
		for (size_t k = 0; k < job.heat[i].bins; k++)
			heat += job.heat[i].read[k];
	assert_int_equal(heat, 64 << 20);
	assert_int_equal(file_named(&job, "test.tmp.dat")->counts.bytes_read, 64 << 20);
	job_release(&job);
	read_job(&job, dxt, 1);
	assert_int_equal(job.processes, 4);
	assert_int_equal(job.events, 8);
	assert_int_equal(job.event[7].result, 16 << 20);
	assert_int_equal(file_named(&job, "test.tmp.dat")->counts.stats, 16);
	job_release(&job);
}

static void test_partial(void **state)
{
	const char *const path[] = {
		FOLDER "torch/"
		       "0_python3_id25232-25232_11-22-25049-11577427997975505747_1.darshan"};
	struct job job;

	(void)state;
	read_job(&job, path, 1);
	assert_false(job.process[0].complete);
	assert_true(noted(&job, "POSIX is incomplete"));
	job_release(&job);
}

/* The same log twice, and one that cannot be read. */
static void test_strange_groups(void **state)
{
	const char *const twice[] = {npz_w2[0], npz_w2[0], npz_w2[1]};
	const char *const mixed[] = {npz_w2[0], FOLDER "public/mpi-io-test-x86_64-3.1.6.darshan"};
	struct job job;

	(void)state;
	read_job(&job, twice, 3);
	/* and the parent, whose log is not among them */
	assert_int_equal(job.processes, 3);
	assert_true(noted(&job, "is the log of the same process"));
	assert_true(noted(&job, "has no log"));
	job_release(&job);
	read_job(&job, mixed, 2);
	assert_true(noted(&job, "the logs have different job numbers"));
	job_release(&job);
}

/* ---- cut and damaged ---- */

static void put_some(void *context, const char *text, size_t n)
{
	size_t *bytes = context;

	assert_true(n > 0 && text[n - 1] == '\n');
	*bytes += n;
}

/* A log of these bytes gives a job, or one sentence. True if it is read. */
static bool try_log(int fd, const void *data, size_t size)
{
	char name[64];
	const char *names[] = {name};
	struct err e = {0}, again = {0};
	struct job job;
	size_t bytes = 0;
	int rc;

	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, data, size, 0), size);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	rc = darshan_print(name, put_some, &bytes, &e);
	job_init(&job);
	assert_int_equal(job_read(&job, names, 1, &again) == 0, rc == 0);
	if (rc == 0) {
		assert_true(bytes > 0);
	} else {
		assert_int_equal(rc, ERR_DATA);
		assert_null(strchr(e.text, '\n'));
		assert_non_null(strstr(e.text, name));
	}
	job_release(&job);
	return rc == 0;
}

static const char *const to_damage[] = {
	FOLDER "public/mpi-io-test-ppc64-3.0.0.darshan",
	FOLDER "public/mpi-io-test-ppc64-3.1.3.darshan",
	FOLDER "public/ior_hdf5_example.darshan",
	W2 "24808_11-22-25037-1171595665353835296_1.darshan",
};

static void test_cut(void **state)
{
	int fd = memfd_create("log", MFD_CLOEXEC);

	(void)state;
	for (size_t i = 0; i < sizeof(to_damage) / sizeof(to_damage[0]); i++) {
		struct buf log = {0};
		struct pack_log l;
		size_t cuts = 0;

		assert_int_equal(file_read(to_damage[i], 1 << 20, &log, NULL), 0);
		assert_true(pack_open(&l, (uint8_t *)log.data, log.len));
		for (size_t k = 0; k <= l.modules; k++) {
			uint64_t at = pack_get(&l, l.data + pack_entry(&l, k));
			uint64_t end = at + pack_get(&l, l.data + pack_entry(&l, k) + 8);

			for (uint64_t c = 0; at && c < 3; c++, cuts += 2) {
				try_log(fd, log.data, at + c - 1);
				try_log(fd, log.data,
					end + c - 1 < log.len ? end + c - 1 : log.len);
			}
		}
		assert_true(cuts >= 18);
		/* nothing is left of a log that ends before its first region */
		for (size_t k = 0; k < l.header; k += 29)
			assert_false(try_log(fd, log.data, k));
		for (size_t k = 0; k < 200; k++)
			try_log(fd, log.data, l.header + (log.len - l.header) * k / 200);
		assert_true(try_log(fd, log.data, log.len));
		buf_release(&log);
	}
	close(fd);
}

/* Bytes changed within the regions, as they are and packed again. */
static void test_changed(void **state)
{
	static const uint8_t put[] = {0, 1, 0x7f, 0x80, 0xff};
	int fd = memfd_create("log", MFD_CLOEXEC);

	(void)state;
	for (size_t i = 0; i < sizeof(to_damage) / sizeof(to_damage[0]); i++) {
		struct buf log = {0}, plain = {0}, packed = {0};

		assert_int_equal(file_read(to_damage[i], 1 << 20, &log, NULL), 0);
		for (size_t k = 17; k < log.len; k += 1 + log.len / 150) {
			char was = log.data[k];

			log.data[k] = (char)(was + 1);
			try_log(fd, log.data, log.len);
			log.data[k] = was;
		}
		assert_true(pack_again((uint8_t *)log.data, log.len, 2, SIZE_MAX, &plain));
		assert_true(try_log(fd, plain.data, plain.len));
		for (size_t k = 17; k < plain.len; k += 1 + plain.len / 150) {
			char was = plain.data[k];

			/* whole numbers, at both ends of one */
			for (size_t b = 0; b < 8 && k + b < plain.len; b++)
				plain.data[k + b] = (char)put[k % sizeof(put)];
			if (pack_again((uint8_t *)plain.data, plain.len, k % 2, 1000, &packed))
				try_log(fd, packed.data, packed.len);
			plain.data[k] = was;
		}
		buf_release(&log);
		buf_release(&plain);
		buf_release(&packed);
	}
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_group),          cmocka_unit_test(test_stale_descriptor),
		cmocka_unit_test(test_ranks),          cmocka_unit_test(test_partial),
		cmocka_unit_test(test_strange_groups), cmocka_unit_test(test_cut),
		cmocka_unit_test(test_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
