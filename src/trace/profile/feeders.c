/* Programs that only feed a process of the job: it reads from a pipe what they read from files, as
 * WebDataset does with "pipe:cat FILE". Their requests to files are taken as its own: who reads
 * samples, when and in which order is told by them.
 *
 * Likewise threads of a library that read what the process's first thread has opened, while it
 * waits for them, as Arrow's do. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/saturate.h"
#include "trace/profile/profile_parts.h"

/* A pipe: who alone writes to it, who alone reads from it. */
struct line {
	uint32_t writer;        /* a process; JOB_NONE, SEVERAL */
	uint32_t reader;        /* a thread; JOB_NONE, SEVERAL */
	int64_t written, taken; /* bytes */
	bool messages; /* with their lengths in front: of a loader's worker, which is no feeder */
};

#define SEVERAL (JOB_NONE - 1)
#define ALL_TAKEN 0.5 /* of what is written; a reader that has enough closes the pipe */

static void take_part(uint32_t *end, uint32_t who)
{
	*end = *end == JOB_NONE || *end == who ? who : SEVERAL;
}

static bool is_ancestor(const struct job *job, uint32_t old, uint32_t young)
{
	/* parents come from a log: they may go round */
	for (size_t n = 0; n < job->processes && job->process[young].parent != JOB_NONE; n++) {
		young = job->process[young].parent;
		if (young == old)
			return true;
	}
	return false;
}

static struct line *find_lines(const struct job *job)
{
	struct line *line = xcalloc(job->files + 1, sizeof(*line));

	for (size_t i = 0; i < job->files; i++)
		line[i] = (struct line){.writer = JOB_NONE, .reader = JOB_NONE};
	for (size_t i = 0; i < job->events; i++) {
		const struct job_event *v = &job->event[i];

		if (!profile_is_pipe(job, v->file) || v->result <= 0)
			continue;
		if (v->kind == JOB_READ) {
			take_part(&line[v->file].reader, v->thread);
			line[v->file].taken = i64_sum(line[v->file].taken, v->result);
			line[v->file].messages |=
				v->result == 4 && (v->asked == 4 || v->asked == JOB_UNKNOWN);
		} else if (v->kind == JOB_WRITE) {
			take_part(&line[v->file].writer, job->thread[v->thread].process);
			line[v->file].written = i64_sum(line[v->file].written, v->result);
		}
	}
	return line;
}

/* Whether it runs another program, where the log has the commands of both. */
static bool runs_other(const struct job_process *p, const struct job_process *reader)
{
	return p->command[0] && reader->command[0] && strcmp(p->command, reader->command) != 0;
}

/* Of each process that ran a program of its own and feeds one of its ancestors: the thread that
 * takes it; JOB_NONE. NULL: there is none. */
static uint32_t *find_fed(const struct job *job)
{
	AUTO_FREE struct line *line = find_lines(job);
	AUTO_FREE bool *executed = xcalloc(job->processes + 1, sizeof(*executed));
	AUTO_FREE uint32_t *fed = job_numbers(job->processes);
	uint32_t *out = NULL;
	bool any = false;

	for (size_t i = 0; i < job->events; i++)
		if (job->event[i].kind == JOB_EXEC && !job_failed(&job->event[i]))
			executed[job->thread[job->event[i].thread].process] = true;
	for (size_t i = 0; i < job->files; i++) {
		const struct line *l = &line[i];
		uint32_t process;

		if (l->writer >= SEVERAL || l->reader >= SEVERAL || l->messages ||
		    (double)l->taken < ALL_TAKEN * (double)l->written)
			continue;
		process = job->thread[l->reader].process;
		if (process == l->writer || !is_ancestor(job, process, l->writer))
			continue;
		if (!executed[l->writer] &&
		    !runs_other(&job->process[l->writer], &job->process[process]))
			continue;
		fed[l->writer] = fed[l->writer] == JOB_NONE ? l->reader : SEVERAL;
		any = true;
	}
	if (any) {
		out = fed;
		fed = NULL;
	}
	return out;
}

static bool is_of_file(const struct job *job, const struct job_event *v)
{
	return v->file != JOB_NONE && job->file[v->file].kind == JOB_FILE_REGULAR &&
	       (v->kind == JOB_OPEN || v->kind == JOB_CLOSE || v->kind == JOB_READ ||
		v->kind == JOB_MAP || v->kind == JOB_SEEK || v->kind == JOB_ADVISE);
}

/* Who opens a file in a process. */
enum { OPENED_BY_FIRST = 1, OPENED_BY_OTHERS = 2 };

static bool is_first(const struct job *job, uint32_t thread)
{
	return job->thread[thread].tid == job->process[job->thread[thread].process].pid;
}

static bool is_fetched(const struct job *job, const struct job_event *v)
{
	return v->kind == JOB_READ && v->file != JOB_NONE &&
	       job->file[v->file].kind == JOB_FILE_REGULAR && !is_first(job, v->thread);
}

/* Of each process: its first thread, where another one reads a file that the first alone has
 * opened; NULL: there is none. `by`: who opens files, by process and file. */
static uint32_t *find_fetched(const struct job *job, struct map *by)
{
	AUTO_FREE uint32_t *first = job_numbers(job->processes);
	uint32_t *out = NULL;
	bool any = false;

	for (size_t i = 0; i < job->threads; i++)
		if (is_first(job, (uint32_t)i))
			first[job->thread[i].process] = (uint32_t)i;
	for (size_t i = 0; i < job->events; i++) {
		const struct job_event *v = &job->event[i];
		uint32_t process = job->thread[v->thread].process, had;

		if (v->kind != JOB_OPEN || v->file == JOB_NONE || job_failed(v))
			continue;
		had = map_get2(by, process, v->file);
		map_put2(by, process, v->file,
			 (had == MAP_NONE ? 0 : had) |
				 (is_first(job, v->thread) ? OPENED_BY_FIRST : OPENED_BY_OTHERS));
	}
	for (size_t i = 0; i < job->events && !any; i++)
		any = is_fetched(job, &job->event[i]) &&
		      map_get2(by, job->thread[job->event[i].thread].process, job->event[i].file) ==
			      OPENED_BY_FIRST;
	if (any) {
		out = first;
		first = NULL;
	}
	return out;
}

struct job *profile_feed(const struct job *job)
{
	AUTO_FREE uint32_t *fed = NULL, *first = NULL;
	struct map by = {0};
	struct job *out;

	if (job->sees & JOB_SEES_PIPES && job->sees & JOB_SEES_PROCESSES)
		fed = find_fed(job);
	if (job->sees & JOB_SEES_OPENS)
		first = find_fetched(job, &by);
	if (!fed && !first) {
		map_release(&by);
		return NULL;
	}
	out = xcalloc(1, sizeof(*out));
	*out = *job;
	out->event = xcalloc(job->events + 1, sizeof(*out->event));
	memcpy(out->event, job->event, job->events * sizeof(*out->event));
	for (size_t i = 0; i < job->events; i++) {
		struct job_event *v = &out->event[i];
		uint32_t process = job->thread[v->thread].process;
		uint32_t to = fed ? fed[process] : JOB_NONE;

		if (first && first[process] != JOB_NONE && is_fetched(job, v) &&
		    map_get2(&by, process, v->file) == OPENED_BY_FIRST)
			v->thread = first[process];
		if (to < SEVERAL && is_of_file(job, v))
			v->thread = to;
	}
	map_release(&by);
	return out;
}

void profile_feed_end(struct job *fed)
{
	if (!fed)
		return;
	free(fed->event);
	free(fed);
}
