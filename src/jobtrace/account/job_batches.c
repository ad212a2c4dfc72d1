/* Batches, and what follows from them: steps, read-ahead, computation. */
#include "jobtrace/account/batches.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "workload/backend.h"

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

/* Two passes over the same files may be anything, too: one that copies them and one that checks
 * them. Those of a training are more, or are made by workers, in another order each time, or with
 * pauses. */
static bool passes_of_training(const struct account *a)
{
	const struct fact *order = &a->fact[ACCOUNT_ORDER];

	if (!account_has(a, ACCOUNT_EPOCHS) || a->fact[ACCOUNT_EPOCHS].number < 2)
		return false;
	if (has_workers(a) || (a->stream && pauses(a)) || a->fact[ACCOUNT_EPOCHS].number > 2)
		return true;
	return account_has(a, ACCOUNT_ORDER) && order->text && !strstr(order->text, "in order") &&
	       !strstr(order->text, "the same in each");
}

/* A file that is read as a whole is a sample where a batch reads several, or where its format holds
 * one image. Else it may hold many, too. */
static void admit_whole_files(struct account *a)
{
	const struct format_facts *f = a->fact[ACCOUNT_FORMAT].text
					       ? account_format_of(a->fact[ACCOUNT_FORMAT].text)
					       : NULL;

	if (a->container || a->stream || a->companions > 0 || (f && f->flags & FORMAT_IMAGE) ||
	    (account_has(a, ACCOUNT_BATCH) && a->fact[ACCOUNT_BATCH].number > 1) ||
	    (a->fact[ACCOUNT_BATCH].how == FACT_UNKNOWN && a->steps > 0))
		return;
	for (size_t i = 0; i < 3; i++) {
		static const enum account_fact of_files[] = {
			ACCOUNT_SAMPLES, ACCOUNT_SAMPLES_PER_FILE, ACCOUNT_BATCH};
		struct fact *v = &a->fact[of_files[i]];

		if (v->how == FACT_INFERRED) {
			v->how = FACT_ASSUMED;
			v->rule = "a file is taken for a sample: it is read as a whole each time, "
				  "and nothing shows how many it holds";
			v->of = 0;
		}
	}
}

#define KEPT_LEAST 8 /* visits that are missing */

/* Readers that live through several epochs and draw from all samples come to the same one again.
 * Where none does, they keep what they read. */
static void doubt_kept(struct account *a)
{
	uint32_t *last = xcalloc(a->samples + 1, sizeof(*last));
	uint32_t readers = 0, epochs = 0;
	size_t again = 0, visits = 0;
	double expected;

	for (size_t i = 0; i < a->readers; i++)
		readers += a->reader[i].worker && a->reader[i].visits > 0;
	for (size_t i = 0; i < a->samples; i++)
		last[i] = JOB_NONE;
	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[i];

		if (a->sample[v->sample].evaluation)
			continue;
		visits++;
		again += last[v->sample] == v->reader;
		last[v->sample] = v->reader;
		if (v->epoch + 1 > epochs)
			epochs = v->epoch + 1;
	}
	free(last);
	if (a->trainers != 1 || a->trainer[0].rounds != 1 || readers < 2 || epochs < 2 || again > 0)
		return;
	expected = (double)visits * (epochs - 1) / epochs / readers;
	if (expected >= KEPT_LEAST && account_has(a, ACCOUNT_EPOCHS) &&
	    a->fact[ACCOUNT_ORDER].text && strstr(a->fact[ACCOUNT_ORDER].text, "random"))
		account_unknown(a, ACCOUNT_EPOCHS,
				"no reader comes to a sample twice: they keep samples in memory");
}

void account_batches(struct account *a)
{
	struct batches b = {.a = a};
	bool passes;

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
	passes = passes_of_training(a);
	if (!b.unread)
		doubt_kept(a);
	admit_whole_files(a);
	say_persistent(a);
	a->trains = passes || a->steps > 0 || account_has(a, ACCOUNT_BATCH);
	messages_release(&b.messages);
	free(b.index_pipe);
	free(b.visit);
	free(b.begin);
}
