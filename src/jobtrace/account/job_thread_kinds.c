/* Threads of one process that read samples for different purposes.
 *
 * Programs name their threads: those that load samples alike but for a number, those that check
 * files or evaluate otherwise. Each kind by name is a crew of its own. A crew that comes to the
 * files of one that reads more looks at the dataset beside it; one with files of its own reads for
 * evaluation. Where names do not tell, a thread that reads little before the others begin, or after
 * they end, looks at the dataset. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/texts.h"
#include "jobtrace/account/account_parts.h"

#define NAME_MAX_BYTES 32
#define OWN_FILES 0.5 /* of those that a crew reads */
#define LITTLE 0.25   /* of what the thread reads that reads most */

struct kind {
	uint32_t stem; /* text of the names of threads without digits */
	size_t visits, files, own;
	uint32_t round; /* JOB_NONE: left out */
};

/* "reader-#" of "reader-12". */
static uint32_t stem_of(struct texts *stems, const char *name)
{
	char stem[NAME_MAX_BYTES];
	size_t n = 0;

	for (; name && *name && n + 1 < sizeof(stem); name++) {
		bool digit = *name >= '0' && *name <= '9';

		if (!digit)
			stem[n++] = *name;
		else if (n == 0 || stem[n - 1] != '#')
			stem[n++] = '#';
	}
	stem[n] = '\0';
	return (uint32_t)texts_add(stems, stem);
}

static int by_visits(const void *x, const void *y)
{
	const struct kind *a = x, *b = y;

	if (a->visits != b->visits)
		return a->visits > b->visits ? -1 : 1;
	return (a->stem > b->stem) - (a->stem < b->stem);
}

/* Of the crews of a rank, the one that reads most first: which read files of their own. Not
 * samples: those that check a file may read it by other requests than those that train. */
static void choose(struct account *a, uint32_t rank, struct kind *kind, size_t n,
		   const uint32_t *stem)
{
	size_t *seen = xcalloc(a->job->files + 1, sizeof(*seen));
	bool *taken = xcalloc(a->job->files + 1, sizeof(*taken));
	uint32_t rounds = 0;

	qsort(kind, n, sizeof(*kind), by_visits);
	for (size_t k = 0; k < n; k++) {
		for (size_t i = 0; i < a->visits; i++) {
			const struct visit *v = &a->visit[i];
			uint32_t file = a->sample[v->sample].file;

			if (a->reader[v->reader].rank != rank || stem[v->reader] != kind[k].stem ||
			    seen[file] == k + 1)
				continue;
			seen[file] = k + 1;
			kind[k].files++;
			kind[k].own += !taken[file];
		}
		kind[k].round = (double)kind[k].own > OWN_FILES * (double)kind[k].files ? rounds++
											: JOB_NONE;
		for (size_t i = 0; i < a->job->files && kind[k].round != JOB_NONE; i++)
			taken[i] |= seen[i] == k + 1;
	}
	free(taken);
	free(seen);
}

/* What it reads before that time. */
static void leave_out(struct account *a, struct job_reader *r, int64_t until_ns)
{
	if (!a->apart_until_ns) {
		a->apart_until_ns = xcalloc(a->job->threads, sizeof(*a->apart_until_ns));
		for (size_t i = 0; i < a->job->threads; i++)
			a->apart_until_ns[i] = INT64_MIN;
	}
	a->apart_until_ns[r->thread] = until_ns;
	r->left_out = until_ns == INT64_MAX;
}

/* False where all threads are of one kind. */
static bool tell(struct account *a, uint32_t rank, const uint32_t *stem)
{
	struct kind kind[THREAD_KINDS_MAX] = {{0}};
	size_t n = 0;

	for (size_t i = 0; i < a->readers; i++) {
		size_t k = 0;

		if (a->reader[i].rank != rank)
			continue;
		while (k < n && kind[k].stem != stem[i])
			k++;
		if (k == THREAD_KINDS_MAX)
			return true;
		kind[k].stem = stem[i];
		kind[k].visits += a->reader[i].visits;
		n += k == n;
	}
	if (n < 2)
		return false;
	choose(a, rank, kind, n, stem);
	for (size_t i = 0; i < a->readers; i++) {
		struct job_reader *r = &a->reader[i];

		for (size_t k = 0; k < n && r->rank == rank; k++)
			if (kind[k].stem == stem[i] && kind[k].round == JOB_NONE)
				leave_out(a, r, INT64_MAX);
			else if (kind[k].stem == stem[i])
				r->round = kind[k].round;
	}
	return true;
}

/* Where the looks at the dataset before the training end: behind the last visit of a thread that
 * reads little, up to which such threads have made most visits. Numbers of threads are used again:
 * some of these visits may be of a thread that trains later. INT64_MIN: there are none. */
static int64_t preface_end(const struct account *a, uint32_t rank, size_t little)
{
	size_t looks = 0, others = 0;
	int64_t end = INT64_MIN;

	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[i];
		const struct job_reader *r = &a->reader[v->reader];

		if (r->rank != rank)
			continue;
		if (r->visits >= little)
			others++;
		else if (++looks > others)
			end = v->begin_ns + 1;
	}
	/* with the ends of those that are under way */
	for (size_t i = 0; end != INT64_MIN && i < a->visits && a->visit[i].begin_ns < end; i++)
		if (a->reader[a->visit[i].reader].rank == rank && a->visit[i].end_ns >= end)
			end = a->visit[i].end_ns + 1;
	return end;
}

/* Threads without names: those that read files of evaluation, and the others. And those that read
 * little, all of it before the others begin or after they end. */
static void tell_by_time(struct account *a, uint32_t rank, uint32_t *stem, struct texts *stems)
{
	size_t *evaluation = xcalloc(a->readers + 1, sizeof(*evaluation)), most = 0, little;
	int64_t begin, last = INT64_MIN;

	for (size_t i = 0; i < a->readers; i++)
		if (a->reader[i].rank == rank && a->reader[i].visits > most)
			most = a->reader[i].visits;
	little = (size_t)(LITTLE * (double)most);
	begin = preface_end(a, rank, little);
	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[i];
		const char *folder = a->group[a->group_of[a->sample[v->sample].file]].folder;
		const char *base = strrchr(folder, '/');

		evaluation[v->reader] += account_is_evaluation_name(base ? base + 1 : folder);
		if (a->reader[v->reader].rank == rank && a->reader[v->reader].visits >= little &&
		    v->begin_ns > last)
			last = v->begin_ns;
	}
	for (size_t i = 0; i < a->readers; i++) {
		struct job_reader *r = &a->reader[i];

		if (r->rank != rank)
			continue;
		if (r->visits < little && (r->begin_ns > last || r->end_ns <= begin))
			leave_out(a, r, INT64_MAX);
		else if (r->begin_ns < begin)
			leave_out(a, r, begin);
		stem[i] = stem_of(stems, 2 * evaluation[i] > r->visits ? "evaluation" : "");
	}
	(void)tell(a, rank, stem);
	free(evaluation);
}

void account_thread_kinds(struct account *a)
{
	uint32_t *stem = xcalloc(a->readers + 1, sizeof(*stem));
	bool *apart = xcalloc(a->trainers + 1, sizeof(*apart));
	struct texts stems = {0};

	for (size_t i = 0; i < a->readers; i++) {
		const struct job_reader *r = &a->reader[i];

		stem[i] = stem_of(&stems,
				  r->thread == JOB_NONE ? NULL : a->job->thread[r->thread].name);
		apart[r->rank] |= r->worker;
	}
	for (uint32_t t = 0; t < a->trainers; t++)
		if (!apart[t] && !tell(a, t, stem))
			tell_by_time(a, t, stem, &stems);
	texts_release(&stems);
	free(apart);
	free(stem);
}
