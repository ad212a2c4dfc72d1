/* Darshan logs: any bytes give records or a sentence, and the same records however the regions are
 * packed. The corpus is not compressed, so that what changes is what the records say. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "darshan_pack.h"
#include "trace/darshan/darshan_log.h"
#include "trace/trace_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max) __attribute__((weak));
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

extern const struct trace_reader trace_reader_darshan;

static void need(bool ok)
{
	if (!ok)
		abort();
}

/* Records alone: the method and the notes depend on the packing. Names of 4 KiB in each line make
 * much text of a small log: the beginning of it is compared. */
static void put_lines(void *context, const char *text, size_t n)
{
	while (n > 0) {
		const char *end = memchr(text, '\n', n);
		size_t line = end ? (size_t)(end - text) + 1 : n;

		need(end != NULL);
		if (text[0] != '#' && ((struct buf *)context)->len < 1u << 22)
			buf_append(context, text, line);
		text += line;
		n -= line;
	}
}

static void check_job(const struct job *job)
{
	for (size_t i = 0; i < job->events; i++) {
		const struct job_event *v = &job->event[i];

		need(v->thread < job->threads && v->file < job->files);
		need(v->begin_ns >= 0 && v->end_ns >= v->begin_ns && v->result >= 0);
		need(v->offset == JOB_UNKNOWN || v->offset >= 0);
	}
	for (size_t i = 0; i < job->processes; i++)
		need(job->process[i].parent == JOB_NONE || job->process[i].parent < i);
	for (size_t i = 0; i < job->files; i++) {
		const struct job_counts *c = &job->file[i].counts;

		need(c->opens >= -1 && c->reads >= -1 && c->bytes_read >= -1 && c->read_s >= 0);
		need(c->write_s >= 0 && c->metadata_s >= 0);
	}
}

/* The records of a log as text; false where it is none. */
static bool read_log(const void *data, size_t size, struct buf *out)
{
	int fd = memfd_create("log", MFD_CLOEXEC);
	char name[64];
	const char *names[2] = {name, name};
	struct err e = {0}, again = {0};
	struct job job;
	int rc;

	need(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	rc = darshan_print(name, put_lines, out, &e);
	need(rc == 0 || (e.code == rc && e.text[0] && !strchr(e.text, '\n')));
	job_init(&job);
	rc = trace_reader_darshan.read(&job, names, 1 + (size & 1), &again);
	need(rc == 0 || (again.code == rc && again.text[0]));
	need((rc == 0) == (e.code == 0) || rc == -EFBIG || rc == -ENOMEM);
	if (rc == 0)
		rc = job_finish(&job, &again);
	if (rc == 0)
		check_job(&job);
	job_release(&job);
	close(fd);
	return e.code == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf plain = {0}, packed = {0}, log = {0};

	/* packing takes longer than reading: of every fourth log */
	if (read_log(data, size, &plain) && data[16] == 2 && size < 1u << 18 &&
	    (data[size / 2] ^ data[size - 1]) % 4 == 0 &&
	    pack_again(data, size, size & 1, size & 1 ? 16000 : 1000, &log)) {
		need(read_log(log.data, log.len, &packed));
		need(plain.len == packed.len);
		need(plain.len == 0 || memcmp(plain.data, packed.data, plain.len) == 0);
	}
	buf_release(&plain);
	buf_release(&packed);
	buf_release(&log);
	return 0;
}

/* Half of the time changes one number of a region, which are 8 bytes each: to a small number, one
 * at an edge, or that of a neighbour. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	static const uint64_t edge[] = {0,
					1,
					2,
					4,
					UINT64_MAX,
					INT64_MAX,
					1u << 31,
					65536,
					UINT32_MAX,
					1328,
					104,
					UINT64_C(1) << 63,
					UINT64_C(0x7ff8000000000000),
					UINT64_C(0x7ff0000000000000),
					UINT64_C(0x3ff0000000000000)};
	struct pack_log l;
	uint64_t v, at, n;
	size_t i;

	srand(seed);
	if (rand() % 2 || !pack_open(&l, data, size))
		return LLVMFuzzerMutate ? LLVMFuzzerMutate(data, size, max) : size;
	i = (size_t)rand() % (l.modules + 1);
	for (size_t k = 0; k <= l.modules; k++, i = (i + 1) % (l.modules + 1)) {
		at = pack_get(&l, data + pack_entry(&l, i));
		n = pack_get(&l, data + pack_entry(&l, i) + 8);
		if (n >= 16 && at <= size && n <= size - at)
			break;
		n = 0;
	}
	if (n < 16 || rand() % 16 == 0) {
		at = 16;
		n = l.header - 16;
	}
	at += 8 * ((uint64_t)rand() % (n / 8));
	if (at + 8 > size)
		return size;
	v = rand() % 4
		    ? edge[(size_t)rand() % (sizeof(edge) / sizeof(edge[0]))]
		    : pack_get(&l, data + (size_t)rand() % (size - 8)) + (uint64_t)(rand() % 3) - 1;
	pack_put(&l, (char *)data + at, v);
	return size;
}
