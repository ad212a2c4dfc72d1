/* The order in which samples are read: by name, shuffled, within a window, the same each epoch.
 *
 * Each reader takes its samples in the order in which the job drew them, so what ascends is looked
 * at reader by reader; how far a sample is from its place by name, over a rank. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "jobtrace/account/account_parts.h"

#define ASCENDING 0.97 /* of the neighbours: by name */
#define WINDOWED 0.5   /* rank correlation with the names: shuffled in a window */

struct order {
	uint64_t pairs, ascending;
	uint64_t counting;  /* of the pairs: ascending where numbers in names count as numbers */
	double correlation; /* summed over passes, weighted by samples */
	double weight;
	uint64_t displacement;         /* the most that a sample came early */
	uint64_t repeated, repeatable; /* same place and reader as in the epoch before */
};

static int by_number(const void *x, const void *y)
{
	uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

	return (a > b) - (a < b);
}

/* One pass of one rank: its samples in the order of their visits. */
static void look_at_pass(const uint32_t *sample, size_t n, uint32_t *sorted, uint32_t *rank_of,
			 struct order *o)
{
	double sum = 0;

	if (n < 4)
		return;
	for (size_t i = 0; i < n; i++)
		sorted[i] = sample[i];
	qsort(sorted, n, sizeof(*sorted), by_number);
	for (size_t i = 0; i < n; i++)
		rank_of[sorted[i]] = (uint32_t)i;
	for (size_t i = 0; i < n; i++) {
		double d = (double)rank_of[sample[i]] - (double)i;

		sum += d * d;
		if (rank_of[sample[i]] > i && rank_of[sample[i]] - i > o->displacement)
			o->displacement = rank_of[sample[i]] - i;
	}
	/* Spearman */
	o->correlation += (double)n * (1 - 6 * sum / ((double)n * ((double)n * (double)n - 1)));
	o->weight += (double)n;
}

/* Readers of two epochs are compared by their number in their generation. */
struct drawn {
	uint32_t rank, epoch, number, at, sample;
};

static int by_draw(const void *x, const void *y)
{
	const struct drawn *a = x, *b = y;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->epoch != b->epoch)
		return a->epoch < b->epoch ? -1 : 1;
	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return (a->at > b->at) - (a->at < b->at);
}

static void look_at_readers(struct order *o, const struct drawn *d, size_t n)
{
	size_t before = 0; /* where the same rank's previous epoch begins */

	for (size_t i = 1; i < n; i++)
		if (d[i].rank == d[i - 1].rank && d[i].epoch == d[i - 1].epoch &&
		    d[i].number == d[i - 1].number) {
			o->pairs++;
			o->ascending += d[i].sample > d[i - 1].sample;
		}
	for (size_t i = 0, begin = 0; i < n; i++) {
		if (i > 0 && (d[i].rank != d[i - 1].rank || d[i].epoch != d[i - 1].epoch)) {
			before = d[i].rank == d[i - 1].rank ? begin : i;
			begin = i;
		}
		if (begin == before || d[i].rank != d[before].rank || d[i].epoch == 0)
			continue;
		o->repeatable++;
		if (before + (i - begin) < begin)
			o->repeated += d[before + (i - begin)].sample == d[i].sample &&
				       d[before + (i - begin)].number == d[i].number;
	}
}

static int by_counting(const void *x, const void *y, void *of)
{
	const struct account *a = of;
	uint32_t i = *(const uint32_t *)x, j = *(const uint32_t *)y;
	int c = 0;

	if (a->sample[i].file != a->sample[j].file)
		c = strverscmp(a->job->file[a->sample[i].file].name,
			       a->job->file[a->sample[j].file].name);
	return c ? c : (i > j) - (i < j);
}

/* f2 before f10, which is not the order of the bytes of names. */
static void look_at_numbers(struct account *a, const struct drawn *d, size_t n, struct order *o)
{
	uint32_t *sorted = xcalloc(a->samples + 1, sizeof(*sorted)),
		 *rank_of = xcalloc(a->samples + 1, sizeof(*rank_of));

	for (size_t i = 0; i < a->samples; i++)
		sorted[i] = (uint32_t)i;
	qsort_r(sorted, a->samples, sizeof(*sorted), by_counting, a);
	for (size_t i = 0; i < a->samples; i++)
		rank_of[sorted[i]] = (uint32_t)i;
	for (size_t i = 1; i < n; i++)
		if (d[i].rank == d[i - 1].rank && d[i].epoch == d[i - 1].epoch &&
		    d[i].number == d[i - 1].number)
			o->counting += rank_of[d[i].sample] > rank_of[d[i - 1].sample];
	free(rank_of);
	free(sorted);
}

static bool ascends(const struct order *o, uint64_t pairs)
{
	return (double)pairs >= ASCENDING * (double)o->pairs;
}

static void say_order(struct account *a, const struct order *o)
{
	double ascending = (double)o->ascending / (double)o->pairs;
	double correlation = o->weight > 0 ? o->correlation / o->weight : 0;
	bool same = o->repeatable > 0 && (double)o->repeated > 0.95 * (double)o->repeatable;
	struct fact *f;

	if (o->pairs < 8) {
		account_unknown(a, ACCOUNT_ORDER, "too few samples follow each other");
		return;
	}
	if (ascends(o, o->ascending)) {
		account_inferred(a, ACCOUNT_ORDER, 0,
				 "each sample of a reader is behind the one before, by name",
				 o->ascending, o->pairs)
			->text =
			a->stream ? "files in order of their names" : "in order of the names";
		return;
	}
	if (ascends(o, o->counting)) {
		account_inferred(a, ACCOUNT_ORDER, 0,
				 "each sample of a reader is behind the one before, by the numbers "
				 "in the names",
				 o->counting, o->pairs)
			->text = a->stream ? "files in order of the numbers in their names"
					   : "in order of the numbers in the names";
		return;
	}
	if (a->replacement) {
		account_inferred(a, ACCOUNT_ORDER, 0,
				 "how often samples are read varies as a Poisson variable", 0, 0)
			->text = "random with replacement";
		return;
	}
	if (same) {
		account_inferred(a, ACCOUNT_ORDER, 0,
				 "samples at the same place in successive epochs", o->repeated,
				 o->repeatable)
			->text = correlation > WINDOWED
					 ? "nearly in order of the names, the same in each epoch"
					 : "random, the same in each epoch";
		return;
	}
	f = account_inferred(
		a, ACCOUNT_ORDER, 0,
		account_text(a,
			     "%.0f %% of neighbours ascend by name; the rank correlation with the "
			     "names is %.2f%s",
			     100 * ascending, correlation, o->repeatable ? "; epochs differ" : ""),
		0, 0);
	if (correlation < WINDOWED || a->stream) {
		f->text = a->stream       ? "files in random order"
			  : o->repeatable ? "random, anew in each epoch"
					  : "random";
		return;
	}
	f->text = "random within a window";
	account_inferred(a, ACCOUNT_SHUFFLE_WINDOW, (double)o->displacement + 1,
			 "the most that a sample came before its place by name", 0, 0);
}

void account_order(struct account *a)
{
	struct drawn *d = xcalloc(a->visits + 1, sizeof(*d));
	uint32_t *pass = xcalloc(a->visits + 1, sizeof(*pass)),
		 *sorted = xcalloc(a->visits + 1, sizeof(*sorted)),
		 *rank_of = xcalloc(a->samples + 1, sizeof(*rank_of));
	struct order o = {0};
	size_t n = 0;

	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[i];
		const struct job_reader *r = &a->reader[v->reader];

		if (!a->sample[v->sample].evaluation)
			d[n++] = (struct drawn){r->rank, v->epoch, 0, (uint32_t)i, v->sample};
	}
	/* passes of ranks, in the order of visits */
	qsort(d, n, sizeof(*d), by_draw);
	for (size_t i = 0, begin = 0; i <= n; i++) {
		if (i == n || d[i].rank != d[begin].rank || d[i].epoch != d[begin].epoch) {
			look_at_pass(pass, i - begin, sorted, rank_of, &o);
			begin = i;
		}
		if (i < n)
			pass[i - begin] = d[i].sample;
	}
	for (size_t i = 0; i < n; i++)
		d[i].number = a->reader[a->visit[d[i].at].reader].number;
	qsort(d, n, sizeof(*d), by_draw);
	if (n > 0) {
		look_at_readers(&o, d, n);
		if (!ascends(&o, o.ascending))
			look_at_numbers(a, d, n, &o);
		say_order(a, &o);
	}
	free(rank_of);
	free(sorted);
	free(pass);
	free(d);
}
