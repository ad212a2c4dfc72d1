/* Batches whose reading took far longer than others', gathered to moments. */
#include "judge/stalls.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/stats.h"

static const double STALL_LEAST_S = 0.4;     /* beyond the usual time */
static const double BRIEF_LEAST_S = 0.03;    /* the same, of brief ones */
static const double BRIEF_SHARE = 0.02;      /* of the time, by brief ones */
static const double BRIEF_OF_LOST = 0.3;     /* and of the time that was lost */
static const double BEGINNING = 0.25;        /* of the time */
static const double STALL_TIMES_MEDIAN = 3;  /* the whole read */
static const double STALL_TIMES_SPREAD = 20; /* beyond the median, of median to upper quartile */
static const double COMPUTED_LONGER = 0.6;   /* of the stall, in an emulated computation */
#define LOOKED_AT 2048                       /* reads by which the usual time is judged */
#define FEWEST 20                            /* reads; of fewer nothing is usual */
#define CANDIDATES 512
#define LACKED_CPU 64 /* of 255 of a wait: it was no matter of the storage */

struct usual {
	double read_s, limit_s, compute_s;
	bool brief;
};

struct candidate {
	int64_t begin_ns, end_ns;
	uint32_t rank, epoch;
	uint64_t step;
};

const struct phase *phases_of(const struct rank_epoch *ep, bool eval, uint32_t *n)
{
	*n = eval ? ep->has_eval : ep->blocks;
	return eval ? &ep->eval : ep->block;
}

struct stall_span checkpoint_span(const struct result *r, uint32_t epoch, uint32_t index)
{
	struct stall_span s = {.begin_ns = INT64_MAX, .end_ns = INT64_MIN};

	for (uint32_t k = 0; k < r->ranks; k++) {
		const struct rank_epoch *ep = &r->rank[k].epoch[epoch];
		int64_t end;

		if (r->rank[k].lost || index >= ep->saves)
			continue;
		end = ep->save[index].done ? ep->save[index].end_ns : INT64_MAX;
		s.begin_ns = ep->save[index].begin_ns < s.begin_ns ? ep->save[index].begin_ns
								   : s.begin_ns;
		s.end_ns = end > s.end_ns ? end : s.end_ns;
	}
	return s;
}

/* For few moments: of each, all ranks and checkpoints are looked at. */
static bool checkpoint_under_way(const struct result *r, uint32_t epoch, int64_t begin_ns,
				 int64_t end_ns)
{
	uint32_t saves = r->rank[result_present_rank(r)].epoch[epoch].saves;

	for (uint32_t i = 0; i < saves; i++) {
		struct stall_span s = checkpoint_span(r, epoch, i);

		if (begin_ns < s.end_ns && end_ns > s.begin_ns)
			return true;
	}
	return false;
}

static int64_t done_ns(const struct step_times *t)
{
	return t->got_ns - (int64_t)t->ready_us * 1000;
}

static uint64_t count_steps(const struct result *r, bool eval)
{
	uint64_t sum = 0;

	for (uint32_t k = 0; k < r->ranks; k++)
		for (uint32_t e = 0; !r->rank[k].lost && e < r->epochs_done; e++) {
			uint32_t n;
			const struct phase *p = phases_of(&r->rank[k].epoch[e], eval, &n);

			for (uint32_t b = 0; b < n; b++)
				sum += p[b].steps;
		}
	return sum;
}

/* By evenly chosen reads of all ranks. */
static bool find_usual(const struct result *r, bool eval, double least_s, struct usual *u)
{
	uint64_t all = count_steps(r, eval), stride = all / LOOKED_AT + 1, at = 0;
	double read[LOOKED_AT + 1], compute[LOOKED_AT + 1], upper;
	size_t n = 0;

	for (uint32_t k = 0; k < r->ranks; k++)
		for (uint32_t e = 0; !r->rank[k].lost && e < r->epochs_done; e++) {
			uint32_t phases;
			const struct phase *p = phases_of(&r->rank[k].epoch[e], eval, &phases);

			for (uint32_t b = 0; b < phases; b++)
				for (uint64_t i = 0; i < p[b].steps; i++) {
					const struct step_times *t = &p[b].step[i];

					if (at++ % stride || n > LOOKED_AT)
						continue;
					read[n] = t->service_us * 1e-6;
					compute[n++] = clock_seconds(t->compute_end_ns -
								     t->compute_begin_ns);
				}
		}
	if (n < FEWEST)
		return false;
	sort_numbers(read, n);
	sort_numbers(compute, n);
	u->read_s = read[n / 2];
	upper = read[n - 1 - n / 4];
	u->compute_s = compute[n / 2];
	u->brief = least_s < STALL_LEAST_S;
	u->limit_s = fmax(u->read_s + least_s,
			  fmax(STALL_TIMES_MEDIAN * u->read_s,
			       u->read_s + STALL_TIMES_SPREAD * (upper - u->read_s)));
	return true;
}

/* Reads beyond the limit, but for each worker's first ones of an epoch; more than there is room
 * for: CANDIDATES + 1. */
static size_t find_candidates(const struct result *r, bool eval, const struct usual *u,
			      struct candidate *out)
{
	size_t n = 0;

	for (uint32_t k = 0; k < r->ranks; k++)
		for (uint32_t e = 0; !r->rank[k].lost && e < r->epochs_done; e++) {
			uint32_t first = r->rank[k].workers ? r->rank[k].workers : 1, phases;
			const struct phase *p = phases_of(&r->rank[k].epoch[e], eval, &phases);

			for (uint32_t b = 0; b < phases; b++)
				for (uint64_t i = 0; i < p[b].steps; i++) {
					const struct step_times *t = &p[b].step[i];
					int64_t end = done_ns(t);
					double took = t->service_us * 1e-6;

					if (took < u->limit_s || p[b].first_step + i < first ||
					    (u->brief && t->share[WAIT_NO_CPU] > LACKED_CPU) ||
					    (!eval &&
					     checkpoint_under_way(r, e, end - (int64_t)(took * 1e9),
								  end)))
						continue;
					if (n == CANDIDATES)
						return n + 1;
					out[n++] = (struct candidate){
						.begin_ns =
							end - (int64_t)((took - u->read_s) * 1e9),
						.end_ns = end,
						.rank = k,
						.epoch = e,
						.step = p[b].first_step + i};
				}
		}
	return n;
}

static int by_begin(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return x->begin_ns < y->begin_ns ? -1 : x->begin_ns > y->begin_ns;
}

static int64_t overlap(int64_t a, int64_t b, int64_t c, int64_t d)
{
	int64_t from = a > c ? a : c, to = b < d ? b : d;

	return to > from ? to - from : 0;
}

/* Who waited in it, and whether computations stood still, too. */
static void look_at_ranks(const struct result *r, bool eval, const struct usual *u, struct stall *s,
			  int64_t begin_ns, int64_t end_ns)
{
	for (uint32_t k = 0; k < r->ranks; k++) {
		uint32_t phases;
		const struct phase *p = phases_of(&r->rank[k].epoch[s->epoch - 1], eval, &phases);
		int64_t waited = 0;

		for (uint32_t b = 0; !r->rank[k].lost && b < phases; b++)
			for (uint64_t i = 0; i < p[b].steps; i++) {
				const struct step_times *t = &p[b].step[i];
				double computed =
					clock_seconds(t->compute_end_ns - t->compute_begin_ns);

				if (t->ask_ns > end_ns)
					break;
				waited += overlap(t->ask_ns, t->got_ns, begin_ns, end_ns);
				s->process =
					s->process ||
					(t->compute_end_ns > begin_ns &&
					 computed > u->compute_s + COMPUTED_LONGER * s->length_s);
			}
		if (clock_seconds(waited) > s->waited_s) {
			s->waited_s = clock_seconds(waited);
			s->rank = k;
		}
	}
}

static void keep(struct steadiness *out, const struct stall *s)
{
	uint32_t at = out->stalls < STALLS_KEPT ? out->stalls : STALLS_KEPT;

	out->stalls++;
	out->stalled_s += s->waited_s;
	while (at > 0 && out->stall[at - 1].length_s < s->length_s) {
		if (at < STALLS_KEPT)
			out->stall[at] = out->stall[at - 1];
		at--;
	}
	if (at < STALLS_KEPT)
		out->stall[at] = *s;
}

/* One moment: candidates that overlap. A worker has one read in it; with more of them reading is
 * slow for a while, which is no stall. */
static void add_moment(const struct result *r, bool eval, const struct usual *u,
		       const struct candidate *c, size_t n, struct steadiness *out,
		       struct stall_spans *spans)
{
	struct stall s = {.epoch = c->epoch + 1, .rank = c->rank, .step = c->step + 1};
	int64_t end = c->end_ns, longest = 0, begin = c->begin_ns;

	for (size_t i = 0; i < n; i++) {
		uint32_t workers = r->rank[c[i].rank].workers, same = 0;

		for (size_t j = 0; j < n; j++)
			same += c[j].rank == c[i].rank;
		if (same > (workers ? workers : 1) + 1)
			return;
		end = c[i].end_ns > end ? c[i].end_ns : end;
		if (c[i].end_ns - c[i].begin_ns <= longest)
			continue;
		longest = c[i].end_ns - c[i].begin_ns;
		begin = c[i].begin_ns;
		s.rank = c[i].rank;
		s.step = c[i].step + 1;
	}
	s.at_s = clock_seconds(begin - r->begin_ns);
	s.length_s = clock_seconds(longest);
	/* single requests took so long, and nothing stood still */
	if (!eval && s.length_s <= r->judged.slow.longest_s)
		return;
	look_at_ranks(r, eval, u, &s, begin, begin + longest);
	keep(out, &s);
	if (spans->n < STALLS_MOST)
		spans->span[spans->n++] = (struct stall_span){c->begin_ns, end};
}

/* Whether some come after the beginning, of several. */
static bool come_again(const struct result *r, const struct stall_spans *spans)
{
	int64_t last = r->begin_ns, end = r->begin_ns;
	const struct rank_result *k = &r->rank[result_present_rank(r)];

	for (uint32_t i = 0; i < spans->n; i++)
		last = spans->span[i].begin_ns > last ? spans->span[i].begin_ns : last;
	if (r->epochs_done)
		end = k->epoch[r->epochs_done - 1].train_end_ns;
	return spans->n > 1 &&
	       (double)(last - r->begin_ns) > BEGINNING * (double)(end - r->begin_ns);
}

static void find(const struct result *r, bool eval, double least_s, struct steadiness *out,
		 struct stall_spans *spans)
{
	struct candidate c[CANDIDATES];
	struct usual u;
	size_t n;

	*spans = (struct stall_spans){0};
	if (!find_usual(r, eval, least_s, &u))
		return;
	n = find_candidates(r, eval, &u, c);
	if (n > CANDIDATES)
		return;
	qsort(c, n, sizeof(*c), by_begin);
	for (size_t i = 0, to; i < n; i = to) {
		int64_t end = c[i].end_ns;

		for (to = i + 1; to < n && c[to].begin_ns < end; to++)
			end = c[to].end_ns > end ? c[to].end_ns : end;
		add_moment(r, eval, &u, c + i, to - i, out, spans);
	}
	if (out->stalls >= STALLS_MOST)
		spans->n = 0;
	spans->again = come_again(r, spans);
	out->stalls_again = out->stalls >= STALLS_MOST || spans->again;
}

double phase_wall_s(const struct result *r, bool eval)
{
	double wall = 0, ranks = 0;

	if (!eval)
		return r->judged.time.wall_s;
	for (uint32_t k = 0; r->rank && k < r->ranks; k++) {
		ranks += !r->rank[k].lost;
		for (uint32_t e = 0; !r->rank[k].lost && e < r->epochs_done; e++)
			wall += clock_seconds(r->rank[k].epoch[e].eval.end_ns -
					      r->rank[k].epoch[e].eval.begin_ns);
	}
	return ranks > 0 ? wall / ranks : 0;
}

void stalls_find(const struct result *r, bool eval, struct steadiness *out,
		 struct stall_spans *spans)
{
	find(r, eval, STALL_LEAST_S, out, spans);
}

/* Whether those that are kept are batches of one worker: it is slow, and nothing stands still. In
 * a crew of fewer they would be too many to be unusual. */
static bool of_one_worker(const struct result *r, const struct steadiness *c)
{
	for (uint32_t i = 0; i < STALLS_KEPT; i++) {
		uint32_t workers = r->rank[c->stall[i].rank].workers;

		if (c->stalls <= i || workers < STALLS_KEPT ||
		    c->stall[i].rank != c->stall[0].rank ||
		    c->stall[i].step % workers != c->stall[0].step % workers)
			return false;
	}
	return true;
}

void stalls_find_brief(const struct result *r, bool eval, struct steadiness *out)
{
	struct steadiness brief = *out;
	struct stall_spans spans;
	const struct decomposition *d = &r->judged.time;
	double least_s = BRIEF_SHARE * phase_wall_s(r, eval);

	if (!eval)
		least_s = fmax(least_s, BRIEF_OF_LOST * (d->wall_s - d->mean_s[TIME_COMPUTE]));
	brief.stalls = 0;
	brief.stalled_s = 0;
	memset(brief.stall, 0, sizeof(brief.stall));
	find(r, eval, BRIEF_LEAST_S, &brief, &spans);
	if (brief.stalled_s - out->stalled_s >= least_s && !of_one_worker(r, &brief))
		*out = brief;
}
