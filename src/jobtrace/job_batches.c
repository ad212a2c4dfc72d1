/* Batches, and what follows from them: steps, read-ahead, computation. */
#include "jobtrace/batches.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* Threads that read for one trainer and purpose share its batches: their visits are one sequence,
 * which is that of the first of them. */
static uint32_t *find_sequences(const struct account *a)
{
	uint32_t *of = xcalloc(a->readers + 1, sizeof(*of)), *first;
	size_t *begin = xcalloc(a->trainers + 1, sizeof(*begin)), rounds = 0;

	for (size_t t = 0; t < a->trainers; t++) {
		begin[t] = rounds;
		rounds += a->trainer[t].rounds;
	}
	first = xcalloc(rounds + 1, sizeof(*first));
	for (size_t i = 0; i < rounds; i++)
		first[i] = JOB_NONE;
	for (size_t i = 0; i < a->readers; i++) {
		const struct job_reader *r = &a->reader[i];

		of[i] = (uint32_t)i;
		if (!r->worker || r->thread == JOB_NONE || r->left_out)
			continue;
		if (first[begin[r->rank] + r->round] == JOB_NONE)
			first[begin[r->rank] + r->round] = (uint32_t)i;
		of[i] = first[begin[r->rank] + r->round];
	}
	free(begin);
	free(first);
	return of;
}

static void sort_by_reader(struct batches *b)
{
	const struct account *a = b->a;
	uint32_t *of = find_sequences(a);
	size_t *at = xcalloc(a->readers + 1, sizeof(*at));

	b->begin = xcalloc(a->readers + 2, sizeof(*b->begin));
	b->visit = xcalloc(a->visits + 1, sizeof(*b->visit));
	for (size_t i = 0; i < a->visits; i++)
		b->begin[of[a->visit[i].reader] + 1]++;
	for (size_t i = 0; i < a->readers; i++)
		b->begin[i + 1] += b->begin[i];
	memcpy(at, b->begin, a->readers * sizeof(*at));
	for (size_t i = 0; i < a->visits; i++)
		b->visit[at[of[a->visit[i].reader]]++] = (uint32_t)i;
	for (size_t i = 0; i < a->readers; i++)
		b->threads |= of[i] != i;
	free(at);
	free(of);
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

/* Whether the reader of a stream stops between its reads, for half of the time or more. */
static bool pauses(const struct account *a)
{
	double read = 0, all = 0;

	for (size_t i = 0; i < a->visits; i++) {
		read += (double)a->visit[i].read_ns;
		all += (double)(a->visit[i].end_ns - a->visit[i].begin_ns);
	}
	return all > 0 && read < 0.5 * all;
}

/* Several passes over the same files may be anything, too: two programs that read them, or one that
 * checks what it read. Those of a training are made by workers, in another order each time, or
 * with pauses. */
static bool passes_of_training(const struct account *a)
{
	const struct fact *order = &a->fact[ACCOUNT_ORDER];

	if (!account_has(a, ACCOUNT_EPOCHS) || a->fact[ACCOUNT_EPOCHS].number < 2)
		return false;
	if (has_workers(a) || (a->stream && pauses(a)))
		return true;
	return account_has(a, ACCOUNT_ORDER) && order->text && !strstr(order->text, "in order") &&
	       !strstr(order->text, "the same in each");
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
	if (b.index_pipe)
		batches_starts(&b);
	say_persistent(a);
	a->trains = a->steps > 0 || account_has(a, ACCOUNT_BATCH) || passes_of_training(a);
	messages_release(&b.messages);
	free(b.index_pipe);
	free(b.visit);
	free(b.begin);
}
