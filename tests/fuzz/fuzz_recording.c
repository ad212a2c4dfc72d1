/* Recordings: the bytes are two rings of one folder, parted where the last two bytes say, and its
 * file of ends. */
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {RING_JOB_NAME, "a.ring", "b.ring", "c.end"};
	struct recording_facts facts;
	struct err e = {0};
	char folder[64];
	struct job job;
	size_t part = size;

	snprintf(folder, sizeof(folder), "/dev/shm/fuzz-recording-%ld", (long)getpid());
	if (mkdir(folder, 0700) < 0)
		abort();
	if (size > 2)
		part = (size_t)(data[size - 1] << 8 | data[size - 2]) * 16;
	if (part > size)
		part = size;
	put(folder, names[0], (const uint8_t *)RING_JOB_MAGIC, strlen(RING_JOB_MAGIC));
	put(folder, names[1], data, part);
	put(folder, names[2], data + part, size - part);
	put(folder, names[3], data + size - (size < 208 ? size : 208), size < 208 ? size : 208);
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
	return 0;
}
