#include "study/capacity.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/compare.h"

static const double WORSE_OFF = 0.9; /* times the AU of one: several share what it had */
static const double NEAR_LIMIT = 97; /* AU below which the rate is one that the storage limits */
#define GUESSES_MOST 4 /* numbers measured in the upper half of a bracket before it is halved */

struct tried {
	uint32_t accelerators;
	size_t runs;
	bool lasting; /* one of them was */
	double au;    /* mean */
	int sign;     /* of knee_decides */
};

struct tries {
	struct tried *v;
	size_t n;
};

static struct tried *of_number(struct tries *t, uint32_t accelerators)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->v[i].accelerators == accelerators)
			return &t->v[i];
	t->v[t->n] = (struct tried){.accelerators = accelerators};
	return &t->v[t->n++];
}

static void gather(struct tries *t, const struct knee_run *run, size_t runs, double target)
{
	struct knee_run *same = xcalloc(runs + 1, sizeof(*same));

	*t = (struct tries){.v = xcalloc(runs + 1, sizeof(*t->v))};
	for (size_t i = 0; i < runs; i++) {
		struct tried *x = of_number(t, run[i].accelerators);

		x->runs++;
		x->lasting = x->lasting || run[i].lasting;
	}
	for (size_t i = 0; i < t->n; i++) {
		size_t n = 0;

		for (size_t k = 0; k < runs; k++)
			if (run[k].accelerators == t->v[i].accelerators)
				same[n++] = run[k];
		t->v[i].au = knee_mean(same, n);
		t->v[i].sign = knee_decides(same, n, target);
	}
	free(same);
}

static bool meets(const struct tried *x, double target)
{
	return x->sign > 0 || (x->sign == 0 && x->au >= target);
}

/* The smallest that misses the target, the largest below it that does not. */
static void bracket(const struct tries *t, double target, const struct tried **low,
		    const struct tried **high)
{
	*low = *high = NULL;
	for (size_t i = 0; i < t->n; i++)
		if (!meets(&t->v[i], target) &&
		    (!*high || t->v[i].accelerators < (*high)->accelerators))
			*high = &t->v[i];
	for (size_t i = 0; i < t->n; i++)
		if (meets(&t->v[i], target) &&
		    (!*high || t->v[i].accelerators < (*high)->accelerators) &&
		    (!*low || t->v[i].accelerators > (*low)->accelerators))
			*low = &t->v[i];
}

static struct search_step measure(uint32_t accelerators, bool longer)
{
	return (struct search_step){.accelerators = accelerators, .longer = longer};
}

/* Whether a number was tried. */
static bool was_tried(const struct tries *t, uint32_t accelerators)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->v[i].accelerators == accelerators)
			return true;
	return false;
}

/* A store that gathers requests may feed a few where it does not feed one: the next of them to try;
 * 0: none, also where two were already worse off. */
static uint32_t gathered(const struct tries *t, uint32_t most)
{
	double alone = NAN, least = INFINITY;

	for (size_t i = 0; i < t->n; i++) {
		alone = t->v[i].accelerators == 1 ? t->v[i].au : alone;
		least = fmin(least, t->v[i].au);
	}
	if (least < WORSE_OFF * alone)
		return 0;
	for (uint32_t n = 2; n <= KNEE_GATHERED_MOST && n <= most; n *= 2)
		if (!was_tried(t, n))
			return n;
	return 0;
}

/* Numbers that surely miss the target below one that surely meets it are left out. */
static void drop_gathered(struct tries *t)
{
	uint32_t meets_from = UINT32_MAX;
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		if (t->v[i].sign > 0)
			LOWER(meets_from, t->v[i].accelerators);
	for (size_t i = 0; i < t->n; i++)
		if (t->v[i].accelerators < meets_from && t->v[i].sign >= 0)
			return;
	for (size_t i = 0; i < t->n && meets_from <= KNEE_GATHERED_MOST; i++)
		if (t->v[i].accelerators >= meets_from)
			t->v[n++] = t->v[i];
	t->n = n ? n : t->n;
}

/* The distance of the two numbers at the knee at which a search ends: 1, or 2 %. */
static uint32_t search_resolution(uint32_t accelerators)
{
	return accelerators < 100 ? 1 : accelerators / 50;
}

/* The largest number below `low` that was tried; NULL. */
static const struct tried *before(const struct tries *t, const struct tried *low)
{
	const struct tried *found = NULL;

	for (size_t i = 0; i < t->n; i++)
		if (t->v[i].accelerators < low->accelerators &&
		    (!found || t->v[i].accelerators > found->accelerators))
			found = &t->v[i];
	return found;
}

/* Where the time of a step that grows as between the last two numbers misses the target, which is
 * far where more accelerators share no rate but meet more of something else. */
static double by_slope(const struct tries *t, const struct tried *low, double target)
{
	const struct tried *less = before(t, low);
	double slope = less ? (1 / low->au - 1 / less->au) /
				       (double)(low->accelerators - less->accelerators)
			    : 0;

	return slope > 0 ? low->accelerators + (1 / target - 1 / low->au) / slope : 0;
}

static uint32_t upwards(const struct tries *t, const struct tried *low, double target,
			uint32_t most)
{
	uint32_t next = low->accelerators > most / 2 ? most : 2 * low->accelerators;
	double guess =
		fmax(knee_guess(low->accelerators, low->au, target), by_slope(t, low, target));

	if (low->au < NEAR_LIMIT && guess + 1 < next)
		next = (uint32_t)guess + 1;
	return next > low->accelerators ? next : low->accelerators + 1;
}

static uint32_t between(const struct tries *t, const struct tried *low, const struct tried *high,
			double target)
{
	uint32_t guess = knee_guess(high->accelerators, high->au, target), near = 0;
	uint32_t half = low->accelerators + (high->accelerators - low->accelerators) / 2;

	for (size_t i = 0; i < t->n; i++)
		near += t->v[i].accelerators >= high->accelerators / 2 &&
			t->v[i].accelerators <= high->accelerators;
	if (near > GUESSES_MOST)
		return half;
	if (guess <= low->accelerators)
		guess = low->accelerators + search_resolution(low->accelerators);
	return guess < high->accelerators ? guess : high->accelerators - 1;
}

static uint32_t below(const struct tried *high, double target)
{
	uint32_t guess = knee_guess(high->accelerators, high->au, target);

	guess = guess < high->accelerators ? guess : high->accelerators - 1;
	return guess ? guess : 1;
}

/* A number above all that were measured; 0: one of them surely misses the target. */
static uint32_t beyond(const struct tries *t, const struct tried *high)
{
	uint32_t top = high->accelerators, next;

	for (size_t i = 0; i < t->n; i++) {
		if (t->v[i].sign < 0)
			return 0;
		top = t->v[i].accelerators > top ? t->v[i].accelerators : top;
	}
	next = high->accelerators + 2 * (top - high->accelerators);
	return next > top + top / 20 ? next : top + (top < 20 ? 1 : top / 20);
}

/* `accelerators`, or the next number below it that may be measured. */
static uint32_t search_number(const struct search_bounds *b, uint32_t accelerators)
{
	return b->whole && accelerators / b->whole >= SEARCH_WHOLE_FROM
		       ? accelerators - accelerators % b->whole
		       : accelerators;
}

/* As near below `n` as may be, but above `low`. */
static uint32_t number_above(const struct search_bounds *b, uint32_t low, uint32_t n)
{
	uint32_t number = search_number(b, n);

	return number > low ? number : search_number(b, n + b->whole);
}

/* A number is measured again; `lasting`: for so long as the answer needs, where it was not yet. */
static struct search_step confirm(const struct tried *end, bool lasting)
{
	struct search_step step = measure(end->accelerators, true);

	step.confirms = lasting && !end->lasting;
	return step;
}

static struct search_step next_of(struct tries *t, const struct search_bounds *b)
{
	const struct tried *low, *high, *ends[2];
	uint32_t most = search_number(b, b->most), next;

	if (t->n == 0)
		return measure(1, false);
	bracket(t, b->target, &low, &high);
	/* what is above the smallest that misses only ends the interval */
	for (size_t i = 0; i < t->n; i++)
		if (t->v[i].sign == 0 && t->v[i].runs < SEARCH_RUNS_MOST &&
		    (!high || t->v[i].accelerators <= high->accelerators))
			return confirm(&t->v[i], t->v[i].runs + 1 == SEARCH_RUNS_MOST);
	drop_gathered(t);
	bracket(t, b->target, &low, &high);
	next = high && high->accelerators == 1 ? gathered(t, most) : 0;
	if (next)
		return measure(next, false);
	if (!high && low && low->accelerators < most) {
		next = upwards(t, low, b->target, most);
		return measure(number_above(b, low->accelerators, next), false);
	}
	if (low && high &&
	    high->accelerators - low->accelerators > search_resolution(low->accelerators)) {
		next = number_above(b, low->accelerators, between(t, low, high, b->target));
		if (next < high->accelerators)
			return measure(next, false);
	}
	if (!low && high && high->accelerators > 1) /* after a change: from below */
		return measure(search_number(b, below(high, b->target)), false);
	ends[0] = high;
	ends[1] = low;
	for (int i = 0; i < 2; i++)
		if (ends[i] && (ends[i]->runs < (b->once ? 1 : SEARCH_RUNS_KNEE) ||
				(i == 1 && !ends[i]->lasting)))
			return confirm(ends[i], i == 1);
	/* the upper end of the interval needs a number that surely misses the target */
	next = high ? beyond(t, high) : 0;
	next = search_number(b, next);
	if (next && next <= most)
		return measure(next, false);
	return (struct search_step){.done = true};
}

struct search_step search_next(const struct knee_run *run, size_t runs,
			       const struct search_bounds *b)
{
	struct search_step step;
	struct tries t;

	gather(&t, run, runs, b->target);
	step = next_of(&t, b);
	free(t.v);
	return step;
}
