/* Names of a job's files, and the folders above them. */
#include "jobtrace/replay/replay_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static bool is_kept(const struct job_file *f)
{
	return f->kind == JOB_FILE_REGULAR || f->kind == JOB_FILE_FOLDER;
}

static void number(struct replay_names *n, const struct job *job)
{
	for (size_t i = 0; i < job->files; i++) {
		size_t known = n->texts.n, k;

		n->of[i] = (uint32_t)i;
		if (!is_kept(&job->file[i]))
			continue;
		k = texts_add(&n->texts, job->file[i].name);
		if (k == known)
			n->first[k] = (uint32_t)i;
		n->of[i] = n->first[k];
	}
}

/* Whether the job makes, removes or renames each: it may be a folder. */
static size_t find_changed(const struct replay_names *n, const struct job *job, bool *changed)
{
	size_t found = 0;

	for (size_t i = 0; i < job->events; i++) {
		const struct job_event *v = &job->event[i];
		bool moves = v->kind == JOB_RENAME || v->kind == JOB_LINK;

		if (v->file == JOB_NONE || (v->result < 0 && v->result != JOB_UNKNOWN) ||
		    (v->kind != JOB_MAKE_DIR && v->kind != JOB_UNLINK && !moves))
			continue;
		changed[n->of[v->file]] = true;
		if (moves && v->other != JOB_NONE && v->other < job->files)
			changed[n->of[v->other]] = true;
		found++;
	}
	return found;
}

static uint32_t find_above(const struct replay_names *n, const char *name, const bool *changed)
{
	char *above = xstrdup(name), *slash;
	uint32_t found = JOB_NONE;

	while (found == JOB_NONE && (slash = strrchr(above, '/')) && slash != above) {
		uint32_t k;

		*slash = '\0';
		k = replay_names_find(n, above);
		if (k != JOB_NONE && changed[k])
			found = k;
	}
	free(above);
	return found;
}

uint32_t replay_names_find(const struct replay_names *n, const char *name)
{
	size_t k = texts_find(&n->texts, name);

	return k == TEXT_NONE ? JOB_NONE : n->first[k];
}

int replay_names_make(struct replay_names *n, const struct job *job, struct err *e)
{
	static const char what[] = "the names of the files";
	bool *changed = try_calloc(job->files + 1, sizeof(*changed), what, e);

	*n = (struct replay_names){
		.of = try_calloc(job->files + 1, sizeof(*n->of), what, e),
		.above = try_calloc(job->files + 1, sizeof(*n->above), what, e),
		.first = try_calloc(job->files + 1, sizeof(*n->first), what, e),
	};
	if (!changed || !n->of || !n->above || !n->first) {
		free(changed);
		return -ENOMEM;
	}
	number(n, job);
	for (size_t i = 0; i < job->files; i++)
		n->above[i] = JOB_NONE;
	if (find_changed(n, job, changed) > 0)
		for (size_t i = 0; i < job->files; i++)
			if (n->of[i] == i && is_kept(&job->file[i]))
				n->above[i] = find_above(n, job->file[i].name, changed);
	for (size_t i = 0; i < job->files; i++)
		n->above[i] = n->above[n->of[i]];
	free(changed);
	return 0;
}

void replay_names_release(struct replay_names *n)
{
	free(n->of);
	free(n->above);
	free(n->first);
	texts_release(&n->texts);
	*n = (struct replay_names){0};
}
