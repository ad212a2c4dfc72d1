/* Threads of one process that read samples for different purposes.
 *
 * Programs name their threads: those that load samples alike but for a number, those that check
 * files or evaluate otherwise. Each kind by name is a crew of its own. A crew that comes to the
 * samples of one that reads more looks at the dataset beside it; one with samples of its own reads
 * for evaluation. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/texts.h"
#include "jobtrace/account_parts.h"

#define NAME_MAX_BYTES 32
#define OWN_SAMPLES 0.5 /* of those that a crew reads */

struct kind {
	uint32_t stem; /* text of the names of threads without digits */
	size_t visits, samples, own;
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

/* Of the crews of a rank, the one that reads most first: which read samples of their own. */
static void choose(struct account *a, uint32_t rank, struct kind *kind, size_t n,
		   const uint32_t *stem)
{
	size_t *seen = xcalloc(a->samples + 1, sizeof(*seen));
	bool *taken = xcalloc(a->samples + 1, sizeof(*taken));
	uint32_t rounds = 0;

	qsort(kind, n, sizeof(*kind), by_visits);
	for (size_t k = 0; k < n; k++) {
		for (size_t i = 0; i < a->visits; i++) {
			const struct visit *v = &a->visit[i];

			if (a->reader[v->reader].rank != rank || stem[v->reader] != kind[k].stem ||
			    seen[v->sample] == k + 1)
				continue;
			seen[v->sample] = k + 1;
			kind[k].samples++;
			kind[k].own += !taken[v->sample];
		}
		kind[k].round = (double)kind[k].own > OWN_SAMPLES * (double)kind[k].samples
					? rounds++
					: JOB_NONE;
		for (size_t i = 0; i < a->samples && kind[k].round != JOB_NONE; i++)
			taken[i] |= seen[i] == k + 1;
	}
	free(taken);
	free(seen);
}

static void tell(struct account *a, uint32_t rank, const uint32_t *stem)
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
			return;
		kind[k].stem = stem[i];
		kind[k].visits += a->reader[i].visits;
		n += k == n;
	}
	if (n < 2)
		return;
	choose(a, rank, kind, n, stem);
	for (size_t i = 0; i < a->readers; i++) {
		struct job_reader *r = &a->reader[i];

		for (size_t k = 0; k < n && r->rank == rank; k++)
			if (kind[k].stem == stem[i]) {
				r->left_out = kind[k].round == JOB_NONE;
				r->round = r->left_out ? 0 : kind[k].round;
			}
	}
}

void account_thread_kinds(struct account *a)
{
	uint32_t *stem = xcalloc(a->readers + 1, sizeof(*stem));
	bool *apart = xcalloc(a->trainers + 1, sizeof(*apart)), any = false;
	struct texts stems = {0};

	for (size_t i = 0; i < a->readers; i++) {
		const struct job_reader *r = &a->reader[i];
		const char *name = r->thread == JOB_NONE ? NULL : a->job->thread[r->thread].name;

		stem[i] = stem_of(&stems, name);
		apart[r->rank] |= r->worker;
		any |= name != NULL;
	}
	for (uint32_t t = 0; any && t < a->trainers; t++)
		if (!apart[t])
			tell(a, t, stem);
	texts_release(&stems);
	free(apart);
	free(stem);
}
