/* Recordings: the bytes are two rings of one folder, parted where the last two bytes say, its file
 * of ends, and what its processes share. If the last byte but two is odd, the checksums are made
 * right, so that what is behind them is reached. */
#include <stddef.h>
#include <sys/stat.h>

#include "trace_fuzz.h"

#include "base/file_out.h"
#include "trace/recording/recording.h"
#include "recorder/ring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put(const char *folder, const char *name, const uint8_t *data, size_t size)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (file_write(path, (const char *)data, size, NULL) < 0)
		abort();
}

static void guard(void *words, size_t bytes)
{
	for (size_t at = 0; at + sizeof(uint64_t) <= bytes; at += sizeof(uint64_t)) {
		uint64_t w;

		memcpy(&w, (char *)words + at, sizeof(w));
		w = ring_guarded(w);
		memcpy((char *)words + at, &w, sizeof(w));
	}
}

/* As the recorder would have it. */
static void check_ring(uint8_t *ring, size_t size)
{
	struct ring_head h;
	size_t at = RING_PAGE;

	if (size < sizeof(h))
		return;
	memcpy(&h, ring, sizeof(h));
	memcpy(h.magic, RING_MAGIC, sizeof(h.magic));
	guard(&h.own_rchar, 2 * sizeof(uint64_t));
	guard(&h.allocated,
	      offsetof(struct ring_head, begin_sum) - offsetof(struct ring_head, allocated));
	h.begin_sum = ring_begin_sum(&h);
	h.end_sum = ring_end_sum(&h);
	memcpy(ring, &h, sizeof(h));
	while (at + sizeof(struct ring_chunk) <= size) {
		struct ring_chunk c;
		size_t there = size - at - sizeof(c);

		memcpy(&c, ring + at, sizeof(c));
		guard(&c.counts, sizeof(c.counts));
		c.magic = ring_chunk_magic(&c);
		c.sum = ring_sum(RING_SUM, ring + at + sizeof(c), c.used < there ? c.used : there);
		memcpy(ring + at, &c, sizeof(c));
		at += c.bytes >= RING_PAGE && c.bytes <= RING_CHUNK_MOST
			      ? c.bytes / RING_PAGE * RING_PAGE
			      : RING_PAGE;
	}
}

static void check_ends(uint8_t *ends, size_t size)
{
	struct ring_end e;

	for (size_t at = 0; at + sizeof(e) <= size; at += sizeof(e)) {
		memcpy(&e, ends + at, sizeof(e));
		memcpy(e.magic, RING_END_MAGIC, sizeof(e.magic));
		e.sum = ring_sum(RING_SUM, &e, offsetof(struct ring_end, sum));
		memcpy(ends + at, &e, sizeof(e));
	}
}

#define ENDS (4 * sizeof(struct ring_end))

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	uint8_t *data = malloc(size + 1), ends[ENDS];
	size_t tail = size < ENDS ? size : ENDS;
	static const char *const names[] = {RING_JOB_NAME, "a.ring", "b.ring", "c.end",
					    RING_CONTROL_NAME "1"};
	struct recording_facts facts;
	struct err e = {0};
	char folder[64];
	struct job job;
	size_t part = size;

	if (!data)
		return 0;
	memcpy(data, input, size);
	memcpy(ends, input + size - tail, tail);
	snprintf(folder, sizeof(folder), "/dev/shm/fuzz-recording-%ld", (long)getpid());
	if (mkdir(folder, 0700) < 0)
		abort();
	if (size > 2)
		part = (size_t)(data[size - 1] << 8 | data[size - 2]) * 16;
	if (part > size)
		part = size;
	if (size > 3 && data[size - 3] & 1) {
		check_ring(data, part);
		check_ring(data + part, size - part);
		check_ends(ends, tail);
	}
	put(folder, names[0], (const uint8_t *)RING_JOB_MAGIC, strlen(RING_JOB_MAGIC));
	put(folder, names[1], data, part);
	put(folder, names[2], data + part, size - part);
	put(folder, names[3], ends, tail);
	put(folder, names[4], ends,
	    tail < sizeof(struct ring_control) ? tail : sizeof(struct ring_control));
	job_init(&job);
	if (recording_read(&job, folder, true, &facts, &e) < 0) {
		if (!e.text[0])
			abort();
	} else {
		recording_facts_release(&facts);
		if (job_finish(&job, &e) < 0)
			abort();
		trace_fuzz_check(&job);
	}
	job_release(&job);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[128];

		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
	rmdir(folder);
	free(data);
	return 0;
}
