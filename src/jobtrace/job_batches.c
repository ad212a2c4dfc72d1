/* Batches, and what follows from them: steps, read-ahead, computation. */
#include "jobtrace/batches.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static void sort_by_reader(struct batches *b)
{
	const struct account *a = b->a;
	size_t *at = xcalloc(a->readers + 1, sizeof(*at));

	b->begin = xcalloc(a->readers + 2, sizeof(*b->begin));
	b->visit = xcalloc(a->visits + 1, sizeof(*b->visit));
	for (size_t i = 0; i < a->visits; i++)
		b->begin[a->visit[i].reader + 1]++;
	for (size_t i = 0; i < a->readers; i++)
		b->begin[i + 1] += b->begin[i];
	memcpy(at, b->begin, a->readers * sizeof(*at));
	for (size_t i = 0; i < a->visits; i++)
		b->visit[at[a->visit[i].reader]++] = (uint32_t)i;
	free(at);
}

static void say_persistent(struct account *a)
{
	uint64_t epochs = 0, rounds = 0;

	if (!has_workers(a) || a->trainers == 0)
		return;
	for (size_t i = 0; i < a->trainers; i++) {
		epochs += a->trainer[i].epochs + a->trainer[i].evaluations;
		rounds += a->trainer[i].rounds;
	}
	if (a->trainer[0].epochs > 1)
		account_inferred(a, ACCOUNT_PERSISTENT, rounds < epochs,
				 "generations of workers against passes over the samples", 0, 0);
}

void account_batches(struct account *a)
{
	struct batches b = {.a = a};

	if (a->readers == 0)
		return;
	sort_by_reader(&b);
	messages_find(&b.messages, a->job);
	if (!batches_by_pipes(&b)) {
		if (a->visits > 0 && a->job->sees & JOB_SEES_TIMES && !a->stream)
			batches_by_gaps(&b);
		else
			account_unknown(
				a, ACCOUNT_BATCH,
				a->stream ? "the files are streams of samples, and reads do not "
					    "show where one ends"
					  : "the log has no times");
	}
	say_persistent(a);
	a->trains = a->steps > 0 || account_has(a, ACCOUNT_BATCH) ||
		    (account_has(a, ACCOUNT_EPOCHS) && a->fact[ACCOUNT_EPOCHS].number > 1);
	messages_release(&b.messages);
	free(b.index_pipe);
	free(b.visit);
	free(b.begin);
}
