/* job_events LOG...: every event of a job as the reader gives it, one a line:
 * pid, kind, offset, asked, result, name. Then the processes: pid, parent's pid, rank, exit,
 * bytes read of the kernel and of the log, the same of bytes written, command. */
#include <stdio.h>
#include <stdlib.h>

#include "base/say.h"
#include "trace/trace_reader.h"

static void number(int64_t v)
{
	if (v == JOB_UNKNOWN)
		printf("? ");
	else
		printf("%lld ", (long long)v);
}

int main(int argc, char **argv)
{
	static const char *const kinds[JOB_KINDS] = {
		"open",  "close",  "read", "write",  "seek",    "stat",  "list",     "map",
		"unmap", "advise", "sync", "rename", "unlink",  "mkdir", "truncate", "access",
		"fork",  "exec",   "exit", "wait",   "compute", "mark",  "link",
	};
	struct job job;
	struct err e = {0};

	job_init(&job);
	if (job_read(&job, (const char *const *)argv + 1, (size_t)argc - 1, &e) < 0) {
		say(stderr, "%s\n", e.text);
		job_release(&job);
		return 1;
	}
	for (size_t i = 0; i < job.events; i++) {
		const struct job_event *v = &job.event[i];

		printf("event %lld %s ", (long long)job.process[job.thread[v->thread].process].pid,
		       kinds[v->kind]);
		number(v->offset);
		number(v->asked);
		number(v->result);
		say(stdout, "%s\n", v->file == JOB_NONE ? "-" : job.file[v->file].name);
	}
	for (size_t i = 0; i < job.processes; i++) {
		const struct job_process *p = &job.process[i];

		printf("process %lld ", (long long)p->pid);
		number(p->parent == JOB_NONE ? -1 : job.process[p->parent].pid);
		number(p->rank);
		number(p->exit);
		number(p->kernel_read_bytes);
		number(p->logged_read_bytes);
		number(p->kernel_write_bytes);
		number(p->logged_write_bytes);
		say(stdout, "%s\n", p->command);
	}
	for (size_t i = 0; i < job.files; i++)
		if (job.file[i].deleted)
			say(stdout, "deleted %s\n", job.file[i].name);
	for (size_t i = 0; i < job.notes.n; i++)
		say(stdout, "note %s\n", job.notes.v[i]);
	job_release(&job);
	return 0;
}
