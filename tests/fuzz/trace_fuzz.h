#pragma once
/* Logs of jobs: any bytes give a job whose parts agree, and a profile of it, or one sentence. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trace/profile/job_servers.h"
#include "trace/profile/profile.h"
#include "trace/trace_reader.h"

static inline void trace_fuzz_check(const struct job *job)
{
	struct job_servers servers;
	struct profile profile, pieces;
	struct buf text = {0};

	for (size_t i = 0; i < job->events; i++) {
		const struct job_event *v = &job->event[i];

		if (v->thread >= job->threads || v->kind >= JOB_KINDS ||
		    (v->file != JOB_NONE && v->file >= job->files))
			abort();
		if (i && v->begin_ns < job->event[i - 1].begin_ns)
			abort();
	}
	for (size_t i = 0; i < job->threads; i++)
		if (job->thread[i].process >= job->processes)
			abort();
	for (size_t i = 0; i < job->processes; i++)
		if (job->process[i].parent != JOB_NONE && job->process[i].parent >= job->processes)
			abort();
	for (size_t i = 0; i < job->exchanges; i++) {
		const struct job_exchange *x = &job->exchange[i];

		if (x->connection >= job->connections || x->thread >= job->threads ||
		    (x->file != JOB_NONE && x->file >= job->files) || x->got < 0 || x->sent < 0)
			abort();
	}
	job_servers_find(job, &servers);
	job_servers_answer(&servers, &text);
	job_servers_print(&servers, &text);
	job_servers_release(&servers);
	buf_release(&text);
	profile_make(&profile, job);
	if (profile_make_pieces(&pieces, &profile))
		profile_release_pieces(&pieces);
	profile_release(&profile);
}

/* Reads the bytes with one reader, whatever they look like. */
static inline int trace_fuzz(const struct trace_reader *reader, const uint8_t *data, size_t size)
{
	int fd = memfd_create("log", MFD_CLOEXEC);
	char name[64];
	const char *path = name;
	struct err e = {0};
	struct job job;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	(void)reader->recognize(path, false, data, size < TRACE_HEAD ? size : TRACE_HEAD);
	job_init(&job);
	if (reader->read(&job, &path, 1, &e) < 0) {
		if (!e.text[0])
			abort();
	} else if (job_finish(&job, &e) < 0) {
		abort();
	} else {
		trace_fuzz_check(&job);
	}
	job_release(&job);
	close(fd);
	return 0;
}
