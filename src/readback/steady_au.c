/* What the steps of a run say of one that goes on. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/change.h"
#include "base/rng.h"
#include "base/stats.h"
#include "loader/loader.h"
#include "readback/record.h"

#define REPLICATES 400u
#define BLOCKS_AIM 8u
static const double BARRIER_MOST = 1.25; /* of the time of steps; more is a damaged file */

static const double SLOWER = 1.1;       /* times the time of a step: the storage changed */
static const double LAST_LEAST = 0.2;   /* of the time, that is left then */
static const double HEAVY = 1.5;        /* times the usual time of a turn: a heavy wait */
static const double HEAVY_LEAST = 0.01; /* of the time, that one costs */
static const double ALONE_LEAST_S = 3;  /* of measured steps: less does not tell of one alone */
#define HEAVY_FEW 12                    /* more of them are resampled as steps are */
static const double PERIOD_LEAST_S = 1;
static const double FASTER_POINTS = 4; /* of AU, after the first epoch */

struct series {
	double *compute, *wall; /* of each measured step; compute: mean over ranks */
	size_t n, capacity;
	size_t first;          /* measured steps of the first epoch */
	double gain_s, saves;  /* sum of what followed a checkpoint in its epoch; how many */
	double gain_steps;     /* steps that this is of */
	double begin_s, end_s; /* only steps within are measured; Unix time */
};

/* Steps that every rank made of a phase. */
static size_t common_steps(const struct run_record *r, size_t epoch, size_t block)
{
	size_t least = SIZE_MAX;

	for (uint32_t k = 0; k < r->ranks; k++) {
		const struct record_phase *p;
		size_t n;

		if (r->rank[k].epochs <= epoch || r->rank[k].epoch[epoch].blocks <= block)
			return 0;
		p = &r->rank[k].epoch[epoch].block[block];
		n = p->computes < p->procs ? p->computes : p->procs;
		least = n < least ? n : least;
	}
	return least == SIZE_MAX ? 0 : least;
}

/* Mean compute over the ranks; the time of the slowest. */
static void step_of(const struct run_record *r, size_t epoch, size_t block, size_t i,
		    double *compute, double *wall)
{
	double sum = 0, most = 0;

	for (uint32_t k = 0; k < r->ranks; k++) {
		const struct record_phase *p = &r->rank[k].epoch[epoch].block[block];

		sum += p->compute[i];
		most = fmax(most, p->proc[i]);
	}
	*compute = sum / r->ranks;
	*wall = most;
}

/* What of a second of computation was not late for want of a processor. */
static double in_time(const struct run_record *r, size_t epoch)
{
	const struct part *of =
		part_at(part(record_part(r, F_RUN_TRAINING), F_TRAINING_EPOCHS), epoch);
	double late = figure(of, F_EPOCH_LATE), compute = figure(of, F_EPOCH_COMPUTE);

	return compute > 0 && late > 0 && late < compute ? 1 - late / compute : 1;
}

/* Of the steps from `first` on, which follow one another from `at` on, those within the window. */
static void keep_within(struct series *s, size_t first, double at, struct steady_au *out)
{
	size_t n = first;

	for (size_t i = first; i < s->n; i++) {
		double end = at + s->wall[i];

		if (!(at < s->begin_s) && !(end > s->end_s)) {
			out->begin_s = fmin(out->begin_s, at);
			out->end_s = fmax(out->end_s, end);
			s->compute[n] = s->compute[i];
			s->wall[n++] = s->wall[i];
		}
		at = end;
	}
	s->n = n;
}

static void add_phase(struct series *s, const struct run_record *r, size_t epoch, size_t block,
		      uint64_t turn, struct steady_au *out)
{
	size_t n = common_steps(r, epoch, block), from = out->ahead + 1, followed = 0;
	double all = 0, scale = 1, share = in_time(r, epoch), after = 0, before = 0;
	double whole = n ? r->rank[0].epoch[epoch].block[block].wall_s : NAN;

	if (block > 0 && r->workload.workflow.checkpoint && n)
		followed = r->workload.checkpoint.async ? n : from < n ? from : n;
	if (block > 0 && r->workload.checkpoint.async)
		from = n;
	if (n > from && (n - from) / turn >= 2)
		from += (n - from) % turn;
	if (n <= from && !followed) {
		out->left_out += n;
		return;
	}
	if (s->n + n > s->capacity) {
		s->capacity = 2 * (s->n + n);
		s->compute = xrealloc(s->compute, s->capacity * sizeof(*s->compute));
		s->wall = xrealloc(s->wall, s->capacity * sizeof(*s->wall));
	}
	for (size_t i = 0; i < n; i++) {
		double compute, wall;

		step_of(r, epoch, block, i, &compute, &wall);
		all += wall;
		after += i < followed ? wall : 0;
		before += i < from ? wall : 0;
		if (i < from)
			continue;
		s->compute[s->n] = compute * share;
		s->wall[s->n++] = wall;
	}
	if (isfinite(whole) && whole > all && all > 0)
		scale = fmin(whole / all, BARRIER_MOST);
	from = from < n ? from : n;
	for (size_t i = s->n - (n - from); i < s->n; i++)
		s->wall[i] *= scale;
	if (n > from)
		keep_within(s, s->n - (n - from),
			    r->begin_s + r->rank[0].epoch[epoch].block[block].begin_s +
				    before * scale,
			    out);
	out->left_out += from;
	s->gain_s += after * scale;
	s->gain_steps += (double)followed;
	s->saves += followed > 0;
}

/* ---- changes ---- */

#define GROUPS 64u

/* Of the steps, in turns of the workers: time of a step. *each: steps of a value. */
static size_t in_groups(const struct series *s, size_t turn, double *v, size_t *each)
{
	size_t n = 0;

	if (s->n == 0)
		return 0;
	*each = (s->n + GROUPS - 1) / GROUPS;
	*each = (*each + turn - 1) / turn * turn;
	for (size_t from = 0; from + *each <= s->n; from += *each) {
		v[n] = 0;
		for (size_t i = from; i < from + *each; i++)
			v[n] += s->wall[i] / (double)*each;
		n++;
	}
	return n;
}

static double sum_of(const double *v, size_t from, size_t to)
{
	double sum = 0;

	for (size_t i = from; i < to; i++)
		sum += v[i];
	return sum;
}

static void keep(struct series *s, size_t from, size_t to)
{
	s->n = to - from;
	memmove(s->compute, s->compute + from, s->n * sizeof(*s->compute));
	memmove(s->wall, s->wall + from, s->n * sizeof(*s->wall));
}

/* A cache on the way to the storage has what was read in the first epoch. */
static void look_for_warm(struct series *s, struct steady_au *out)
{
	double first, later;

	if (s->first == 0 || s->first == s->n)
		return;
	first = 100 * sum_of(s->compute, 0, s->first) / sum_of(s->wall, 0, s->first);
	later = 100 * sum_of(s->compute, s->first, s->n) / sum_of(s->wall, s->first, s->n);
	if (later - first < FASTER_POINTS)
		return;
	out->later_au = later;
	keep(s, 0, s->first);
}

/* A run goes on as the last part does: credit of a burst is used up. */
static void look_for_slower(struct series *s, size_t turn, struct steady_au *out)
{
	double v[GROUPS], all = sum_of(s->wall, 0, s->n);
	struct change_phases phases;
	struct change_point p;
	size_t each, n = in_groups(s, turn, v, &each), at;

	if (n < CHANGE_LEAST || change_alternates(v, n, SLOWER, &phases) ||
	    !change_level(v, n, SLOWER, &p) || p.after < p.before)
		return;
	at = p.at * each;
	if (sum_of(s->wall, at, s->n) < LAST_LEAST * all)
		return;
	out->slowed_s = sum_of(s->wall, 0, at);
	keep(s, at, s->n);
}

/* A run of heavy turns: a stall, a slow phase. */
struct heavy {
	size_t from, to; /* turns */
	double cost;     /* beyond what is usual */
};

static size_t find_heavy(const double *v, size_t n, double usual, double all, struct heavy *out)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++) {
		struct heavy one = {.from = i};

		for (; i < n && v[i] > HEAVY * usual; i++)
			one.cost += v[i] - usual;
		one.to = i;
		if (one.cost >= HEAVY_LEAST * all)
			out[found++] = one;
	}
	return found;
}

/* Of few that come again, whole periods are measured, and their number is no chance: what is left
 * of the error is that of the other steps, in which they are made usual, and of their length. */
static void cut_periods(struct series *s, size_t turn, const struct heavy *h, size_t n,
			double usual, struct series *even, double *error_s)
{
	size_t from = h[0].from * turn, to = h[n - 1].from * turn;
	double mean = 0, squares = 0;

	for (size_t k = 0; k < n; k++)
		mean += h[k].cost / (double)n;
	for (size_t k = 0; k < n; k++)
		squares += (h[k].cost - mean) * (h[k].cost - mean) / (double)(n - 1);
	*error_s = sqrt(squares * (double)(n - 1));
	keep(s, from, to);
	even->n = s->n;
	even->compute = s->compute;
	even->wall = xcalloc(s->n + 1, sizeof(*even->wall));
	memcpy(even->wall, s->wall, s->n * sizeof(*s->wall));
	for (size_t k = 0; k + 1 < n; k++)
		for (size_t i = h[k].from * turn; i < h[k].to * turn && i < to; i++)
			even->wall[i - from] = usual / (double)turn;
}

static void look_for_heavy(struct series *s, size_t turn, struct steady_au *out,
			   struct series *even, double *error_s)
{
	size_t n = s->n / turn, found;
	double *v = xcalloc(2 * n + 1, sizeof(*v)), *sorted = v + n, usual, all = 0, apart = 0;
	struct heavy *h = xcalloc(n + 1, sizeof(*h));

	for (size_t i = 0; i < n; i++) {
		v[i] = sum_of(s->wall, i * turn, (i + 1) * turn);
		sorted[i] = v[i];
		all += v[i];
	}
	usual = n ? nth_number(sorted, n, n / 4) : 0;
	found = find_heavy(v, n, usual, all, h);
	if (found > 1)
		apart = sum_of(v, h[0].from, h[found - 1].from) / (double)(found - 1);
	if (found == 1 && all >= ALONE_LEAST_S) {
		out->varies_s = all;
		out->alone = 100 * h[0].cost / all;
	} else if (found > 1) {
		out->varies_s = apart;
	}
	if (found > 1 && found <= HEAVY_FEW && apart >= PERIOD_LEAST_S)
		cut_periods(s, turn, h, found, usual, even, error_s);
	free(v);
	free(h);
}

/* Resamples blocks that follow one another, with the end joined to the begin (Politis and Romano
 * 1992), as steps that share a turn of the workers are not independent. */
static double bootstrap_error(const struct series *s, size_t length)
{
	size_t blocks = (s->n + length - 1) / length;
	double *compute = xcalloc(s->n, sizeof(*compute)), *wall = xcalloc(s->n, sizeof(*wall));
	double sum = 0, squares = 0;
	uint64_t word = 0;

	for (size_t k = 0; k < length; k++) {
		compute[0] += s->compute[k % s->n];
		wall[0] += s->wall[k % s->n];
	}
	for (size_t i = 1; i < s->n; i++) {
		size_t in = (i + length - 1) % s->n;

		compute[i] = compute[i - 1] + s->compute[in] - s->compute[i - 1];
		wall[i] = wall[i - 1] + s->wall[in] - s->wall[i - 1];
	}
	for (unsigned b = 0; b < REPLICATES; b++) {
		double c = 0, w = 0, au;

		for (size_t k = 0; k < blocks; k++) {
			size_t at = philox_at(0x6b6e6565, s->n, word++) % s->n;

			c += compute[at];
			w += wall[at];
		}
		au = 100 * c / w;
		sum += au;
		squares += au * au;
	}
	free(compute);
	free(wall);
	sum /= REPLICATES;
	return sqrt(fmax(0, squares / REPLICATES - sum * sum));
}

void steady_au_find(const struct run_record *r, struct steady_au *out)
{
	steady_au_between(r, -INFINITY, INFINITY, out);
}

void steady_au_between(const struct run_record *r, double begin_s, double end_s,
		       struct steady_au *out)
{
	const struct loader_ops *loader =
		r->has_workload ? loader_find(r->workload.reader.data_loader) : NULL;
	double compute = 0, wall = 0;
	struct series s = {.begin_s = begin_s, .end_s = end_s}, even = {0};
	double error_s = 0;
	uint32_t workers = 0;
	uint64_t turn;

	*out = (struct steady_au){.au = NAN,
				  .error = NAN,
				  .step_s = NAN,
				  .later_au = NAN,
				  .gain_s = NAN,
				  .begin_s = INFINITY,
				  .end_s = -INFINITY};
	if (!loader || r->ranks == 0)
		return;
	loader->window(&r->workload, &workers, &out->ahead);
	turn = out->turn = workers ? workers : 1;
	for (size_t e = 0; e < r->rank[0].epochs; e++) {
		for (size_t b = 0; b < r->rank[0].epoch[e].blocks; b++)
			add_phase(&s, r, e, b, turn, out);
		if (e == 0)
			s.first = s.n;
	}
	look_for_warm(&s, out);
	look_for_slower(&s, turn, out);
	look_for_heavy(&s, turn, out, &even, &error_s);
	for (size_t i = 0; i < s.n; i++) {
		compute += s.compute[i];
		wall += s.wall[i];
	}
	out->known = wall > 0;
	if (out->known) {
		size_t length = (size_t)fmax((double)turn, cbrt((double)s.n));

		if (length * BLOCKS_AIM > s.n && length > turn)
			length = turn;
		if (length * 2 > s.n)
			length = s.n / 2 ? s.n / 2 : 1;
		out->steps = s.n;
		out->per_block = length;
		out->blocks = (double)s.n / (double)length;
		out->au = 100 * compute / wall;
		out->step_s = wall / (double)s.n;
		out->measured_s = wall;
		if (s.saves > 0)
			out->gain_s = (s.gain_steps * out->step_s - s.gain_s) / s.saves;
		out->error = s.n > 1 ? bootstrap_error(even.n ? &even : &s, length) : INFINITY;
		out->error = hypot(out->error, out->au * error_s / wall);
	}
	free(even.wall);
	free(s.compute);
	free(s.wall);
}
