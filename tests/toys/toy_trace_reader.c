/* A reader of logs for a test: "TOYS", then a line a read: begin, end (ns), offset, bytes, path. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "trace/trace_reader.h"

static bool toy_recognize(const char *path, bool folder, const unsigned char *head, size_t n)
{
	(void)path;
	return !folder && n >= 5 && memcmp(head, "TOYS\n", 5) == 0;
}

static int toy_read(struct job *job, const char *const *paths, size_t n, struct err *e)
{
	uint32_t thread = job_add_thread(job, job_process(job, 1, "", JOB_NONE), 1);
	int rc = 0;

	job->sees = JOB_SEES_REQUESTS | JOB_SEES_TIMES | JOB_SEES_OFFSETS;
	job->source = "toys";
	for (size_t i = 0; rc == 0 && i < n; i++) {
		struct trace_lines l;

		trace_lines_open(&l, paths[i], 1 << 16);
		while (rc == 0 && (rc = trace_lines_next(&l, e)) > 0) {
			struct job_event v;
			int64_t begin, end, offset, bytes;
			char name[256];

			rc = 0;
			if (sscanf(l.text.data,
				   "%" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %255s", &begin,
				   &end, &offset, &bytes, name) != 5)
				continue;
			v = job_event_of(JOB_READ, thread, begin, end);
			v.file = job_file(job, name, JOB_FILE_REGULAR);
			v.offset = offset;
			v.result = v.asked = bytes;
			rc = job_add(job, &v, e);
		}
		trace_lines_close(&l);
	}
	return rc;
}

const struct trace_reader trace_reader_toy = {
	.name = "toy",
	.people = "a list of toys",
	.recognize = toy_recognize,
	.read = toy_read,
};
