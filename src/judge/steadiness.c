/* Steps are gathered into cells, a few hundred for the whole run, without those that the begin of
 * an epoch, a checkpoint or a stall makes different. Changes are looked for in equal numbers of
 * steps, where what was fast for a short time has its share, and in equal times, where what was
 * slow for a few steps has. */
#include "judge/steadiness.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/change.h"
#include "base/clock.h"
#include "judge/stalls.h"

#define CELLS 512u
#define GROUPS 64u
static const double RATE_RATIO = 1.25;     /* of times of a step: a change */
static const double TARGET_RATIO = 1.05;   /* the same, if the last part misses the target */
static const double TARGET_POINTS = 1;     /* by so much */
static const double PHASE_RATIO = 1.5;     /* the same, of phases that alternate */
static const double READ_RATIO = 1.5;      /* of times to read a batch that computation hides */
static const double READ_TREND = 1.2;      /* the same, of a trend that goes on */
static const double READ_GOES_ON = 0.03;   /* from one quarter to the next, at least */
static const double TREND_LEAST_S = 0.005; /* to read a batch, of such a trend */
static const double NEAR_SIGHT = 3;        /* times the length of the run, for such a trend */
static const double PERIOD_INTERVALS = 3;  /* of equal time, in a period that is known */
static const double PHASE_LEAST_S = 0.02;  /* shorter ones are the scheduler's */
static const double READ_BUSY = 0.4;       /* of the workers' time: less is far from a limit */
static const double READ_LEAST_S = 0.0005; /* to read a batch; less is the program's own time */
static const double COVERED_RATIO = 1.1;   /* of times of a step: more is not hidden */
static const double ONE_RANK_RATIO = 1.25; /* beyond what reading changed by on other ranks */
static const double TREND_PART = 0.75;     /* of the time; what follows is the last part */
static const double IN_SIGHT = 4;          /* times the length of the run */

struct cell {
	double steps, wall_s, samples, payload;
	double part_s[TIME_PARTS]; /* mean over ranks */
	double late_s;             /* of TIME_COMPUTE: what whole-run AU does not count */
	double read_s;             /* sum of the times of a batch, mean over ranks */
	int64_t at_ns;
	uint64_t step; /* of the epoch, from 1 */
	uint32_t epoch;
};

struct timeline {
	struct cell *cell; /* CELLS of them */
	struct cell *cut;  /* as many: of steps after a cell's begin, in stalls that come again */
	size_t n;
	uint64_t stride, in_last; /* steps of a cell; in the last one so far */
	bool whole_epochs;        /* too short for anything finer */
	bool eval;                /* of evaluations, not of training */
	uint32_t ranks, workers;
	uint64_t window;         /* batches ahead, of a rank */
	struct stall_span *save; /* checkpoints of the epoch that is looked at */
	uint32_t saves;
};

uint64_t steadiness_bytes(void)
{
	return 2 * CELLS * sizeof(struct cell);
}

/* ---- cells ---- */

static void add_cell(struct cell *a, const struct cell *b)
{
	a->steps += b->steps;
	a->wall_s += b->wall_s;
	a->samples += b->samples;
	a->payload += b->payload;
	a->read_s += b->read_s;
	a->late_s += b->late_s;
	for (int p = 0; p < TIME_PARTS; p++)
		a->part_s[p] += b->part_s[p];
}

static struct cell sum_of(const struct timeline *t, size_t from, size_t to)
{
	struct cell s = t->cell[from];

	for (size_t i = from + 1; i < to; i++)
		add_cell(&s, &t->cell[i]);
	return s;
}

/* With what was cut: a run goes on with stalls that come again. */
static struct cell whole_of(const struct timeline *t, size_t from, size_t to)
{
	struct cell s = sum_of(t, from, to);

	for (size_t i = from; i < to; i++)
		add_cell(&s, &t->cut[i]);
	return s;
}

static double au_of(const struct cell *c)
{
	return 100 * (c->part_s[TIME_COMPUTE] - c->late_s) / c->wall_s;
}

static void add_step(struct timeline *t, const struct cell *step, bool closes)
{
	if (t->in_last == 0) {
		if (t->n == CELLS) {
			for (size_t i = 0; i < CELLS / 2; i++) {
				t->cell[i] = sum_of(t, 2 * i, 2 * i + 2);
				add_cell(&t->cut[2 * i], &t->cut[2 * i + 1]);
				t->cut[i] = t->cut[2 * i];
			}
			memset(t->cut + CELLS / 2, 0, CELLS / 2 * sizeof(*t->cut));
			t->n = CELLS / 2;
			t->stride *= 2;
		}
		t->cell[t->n++] = *step;
	} else {
		add_cell(&t->cell[t->n - 1], step);
	}
	t->in_last++;
	if (t->whole_epochs ? closes : t->in_last >= t->stride)
		t->in_last = 0;
}

static bool in_stall(const struct stall_spans *spans, int64_t begin_ns, int64_t end_ns)
{
	for (uint32_t i = 0; i < spans->n; i++)
		if (begin_ns < spans->span[i].end_ns && end_ns > spans->span[i].begin_ns)
			return true;
	return false;
}

/* One step, mean over ranks. False when a rank did not make it, or something else was under way. */
static bool look_at_step(const struct timeline *tl, const struct result *r, uint32_t epoch,
			 uint32_t block, uint64_t i, struct cell *out)
{
	uint32_t phases;
	const struct phase *of =
		phases_of(&r->rank[result_present_rank(r)].epoch[epoch], tl->eval, &phases);
	const struct step_times *at = &of[block].step[i];
	int64_t begun = at->got_ns - 1000 * ((int64_t)at->ready_us + at->service_us);
	double present = 0;

	*out = (struct cell){.steps = 1, .at_ns = at->ask_ns, .epoch = epoch + 1};
	out->step = of[block].first_step + i + 1;
	begun = begun < at->ask_ns ? begun : at->ask_ns;
	for (uint32_t k = 0; k < tl->saves; k++)
		if (begun < tl->save[k].end_ns && at->barrier_out_ns > tl->save[k].begin_ns)
			return false;
	for (uint32_t k = 0; k < r->ranks; k++) {
		const struct phase *p = phases_of(&r->rank[k].epoch[epoch], tl->eval, &phases);
		const struct step_times *t;
		int64_t wait[WAIT_PARTS];

		if (r->rank[k].lost)
			continue;
		if (block >= phases || i >= p[block].steps)
			return false;
		t = &p[block].step[i];
		present++;
		wait_split_again(wait, t);
		for (int w = 0; w < WAIT_PARTS; w++)
			out->part_s[TIME_WAIT + w] += clock_seconds(wait[w]);
		out->part_s[TIME_COMPUTE] += clock_seconds(t->compute_end_ns - t->compute_begin_ns);
		out->late_s += clock_seconds(step_late_ns(t));
		out->part_s[TIME_SKEW] += clock_seconds(t->barrier_out_ns - t->barrier_in_ns);
		out->wall_s += clock_seconds(t->barrier_out_ns - t->ask_ns);
		out->read_s += t->service_us * 1e-6;
		out->samples += (double)p[block].samples / (double)p[block].steps;
	}
	for (int p = 0; p < TIME_PARTS; p++)
		out->part_s[p] /= present;
	out->wall_s /= present;
	out->late_s /= present;
	out->read_s /= present;
	return present > 0;
}

/* Steps at the begin of a block that the queue filled before it, or that fill it, make different.
 */
static uint64_t skipped(const struct timeline *t, uint64_t steps)
{
	uint64_t all = t->window + t->workers;

	return t->whole_epochs ? 0 : steps >= 3 * all ? all : steps / 3 > 1 ? steps / 3 : 1;
}

static int add_epoch(struct timeline *t, const struct result *r, const struct run_metrics *m,
		     uint32_t epoch, const struct stall_spans *spans, double *cut_s, struct err *e)
{
	const struct epoch_metrics *of = &m->epoch[epoch];
	const struct rank_epoch *ep = &r->rank[result_present_rank(r)].epoch[epoch];
	double samples = (double)(t->eval ? of->eval_samples : of->samples);
	double bytes = (double)(t->eval ? of->eval_payload_bytes : of->payload_bytes);
	uint32_t phases;
	const struct phase *p = phases_of(ep, t->eval, &phases);

	t->saves = t->eval ? 0 : ep->saves;
	t->save = try_calloc(t->saves + 1, sizeof(*t->save), "checkpoints", e);
	if (!t->save)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->saves; i++)
		t->save[i] = checkpoint_span(r, epoch, i);
	for (uint32_t b = 0; b < phases; b++)
		for (uint64_t i = skipped(t, p[b].steps); i < p[b].steps; i++) {
			struct cell one;

			if (!look_at_step(t, r, epoch, b, i, &one))
				continue;
			one.payload = samples > 0 ? one.samples * bytes / samples : 0;
			if (in_stall(spans, p[b].step[i].ask_ns, p[b].step[i].barrier_out_ns)) {
				*cut_s += one.wall_s;
				if (spans->again)
					add_cell(&t->cut[t->n ? t->n - 1 : 0], &one);
				continue;
			}
			add_step(t, &one, b + 1 == phases && i + 1 == p[b].steps);
		}
	if (t->whole_epochs)
		t->in_last = 0;
	free(t->save);
	return 0;
}

/* Steps of the first rank there in an epoch; and of its longest phase. */
static uint64_t steps_of(const struct timeline *t, const struct result *r, uint32_t epoch,
			 uint64_t *longest)
{
	uint64_t sum = 0;
	uint32_t phases;
	const struct phase *p =
		phases_of(&r->rank[result_present_rank(r)].epoch[epoch], t->eval, &phases);

	for (uint32_t b = 0; b < phases; b++) {
		sum += p[b].steps;
		*longest = p[b].steps > *longest ? p[b].steps : *longest;
	}
	return sum;
}

static int timeline_fill(struct timeline *t, const struct result *r, const struct run_metrics *m,
			 bool eval, const struct stall_spans *spans, double *cut_s, struct err *e)
{
	const struct rank_result *first = &r->rank[result_present_rank(r)];
	uint64_t longest = 0, most = 0;
	int rc = 0;

	*t = (struct timeline){.stride = 1,
			       .eval = eval,
			       .workers = first->workers ? first->workers : 1,
			       .window = first->prefetch_batches};
	for (uint32_t i = 0; i < r->epochs_done; i++) {
		uint64_t steps = steps_of(t, r, i, &longest);

		most = steps > most ? steps : most;
	}
	t->whole_epochs = longest < 2 * (t->window + t->workers) || longest < 8;
	t->cell = try_calloc(2 * CELLS, sizeof(*t->cell), "the course of a run", e);
	if (!t->cell)
		return -ENOMEM;
	t->cut = t->cell + CELLS;
	for (uint32_t k = 0; k < r->ranks; k++)
		t->ranks += !r->rank[k].lost;
	for (uint32_t i = 0; rc == 0 && i < r->epochs_done; i++)
		/* a last epoch that a cap cut is unlike the others where these are the cells */
		if (!t->whole_epochs || 10 * steps_of(t, r, i, &longest) >= 9 * most)
			rc = add_epoch(t, r, m, i, spans, cut_s, e);
	if (rc < 0)
		free(t->cell);
	return rc;
}

/* ---- series ---- */

struct series_of {
	double v[GROUPS];
	size_t from[GROUPS + 1]; /* the cell with which a value begins */
	size_t n;
};

static double per_step(const struct cell *c)
{
	return c->wall_s / c->steps;
}

static double per_read(const struct cell *c)
{
	return c->read_s / c->steps;
}

/* Equal numbers of steps: at least one batch of each worker, because these come in waves. */
static void by_steps(const struct timeline *t, double (*value)(const struct cell *),
		     struct series_of *s)
{
	size_t wave = t->whole_epochs ? 1 : (size_t)((t->workers + t->stride - 1) / t->stride);
	size_t each = (t->n + GROUPS - 1) / GROUPS;

	each = each > wave ? each : wave;
	s->n = 0;
	for (size_t from = 0; from + each <= t->n; from += each) {
		struct cell sum = sum_of(t, from, from + each);

		s->from[s->n] = from;
		s->v[s->n++] = value(&sum);
	}
	s->from[s->n] = t->n;
}

/* Equal times: seconds for a step. Steps go on evenly within a cell. */
static void by_time(const struct timeline *t, struct series_of *s)
{
	struct cell all = sum_of(t, 0, t->n);
	double waves = all.steps / (2.0 * t->workers), bin, left, done = 0;
	size_t n = waves < GROUPS ? (size_t)waves : GROUPS, cell = 0;

	s->n = 0;
	if (n > t->n)
		n = t->n;
	if (n < CHANGE_LEAST || t->whole_epochs)
		return;
	bin = all.wall_s / (double)n;
	for (left = bin; cell < t->n; cell++) {
		double wall = t->cell[cell].wall_s, steps = t->cell[cell].steps, rest = wall;

		while (rest >= left && s->n < n) {
			done += steps * left / wall;
			rest -= left;
			s->v[s->n] = bin / done;
			s->from[++s->n] = cell + (rest < 0.5 * wall);
			done = 0;
			left = bin;
		}
		done += steps * rest / wall;
		left -= rest;
	}
	s->from[0] = 0;
	for (size_t i = 0; i <= s->n; i++)
		s->from[i] = s->from[i] < t->n ? s->from[i] : t->n - 1;
}

/* ---- what changed ---- */

/* Sums before and after cell `at`. */
static void describe(const struct timeline *t, const struct result *r, size_t at,
		     struct steadiness *out)
{
	struct cell a = whole_of(t, 0, at), b = whole_of(t, at, t->n);
	struct cell all = whole_of(t, 0, t->n);
	double most = 0, sign;

	assert(at > 0 && at < t->n);
	out->epoch = t->cell[at].epoch;
	out->step = t->cell[at].step;
	out->at_s = clock_seconds(t->cell[at].at_ns - r->begin_ns);
	out->last_share = b.wall_s / all.wall_s;
	out->before_rate = a.samples / a.wall_s;
	out->last_rate = b.samples / b.wall_s;
	out->before_payload = a.payload / a.wall_s;
	out->last_payload = b.payload / b.wall_s;
	out->before_au = au_of(&a);
	out->last_au = au_of(&b);
	out->before_read_s = per_read(&a);
	out->last_read_s = per_read(&b);
	out->read_busy = b.read_s / (b.wall_s * t->workers);
	sign = per_step(&b) > per_step(&a) ? 1 : -1;
	for (int p = 0; p < TIME_PARTS; p++) {
		double more = sign * (b.part_s[p] / b.steps - a.part_s[p] / a.steps);

		if (more > most) {
			most = more;
			out->part = (enum time_part)p;
		}
	}
}

static void describe_phases(const struct timeline *t, const struct result *r,
			    const struct series_of *s, const struct change_phases *f,
			    struct steadiness *out)
{
	struct cell all = sum_of(t, 0, t->n);
	double bin = all.wall_s / (double)s->n, begin[CHANGE_MOST];

	/* by the clock: steps that were left out take their time, too, and may hide a phase */
	for (size_t i = 0; i < f->begins; i++)
		begin[i] = clock_seconds(t->cell[s->from[f->begin[i]]].at_ns - r->begin_ns);
	out->slow_phases = (uint32_t)f->phases;
	out->slow_s = f->length * bin;
	out->period_s = change_period(begin, f->begins);
	/* of shorter ones it is not known whether each interval has one or several */
	if (out->period_s < PERIOD_INTERVALS * bin)
		out->period_s = 0;
	/* the fast and the slow rate; no last part is different */
	out->before_rate = all.samples / all.steps / f->low;
	out->last_rate = all.samples / all.steps / f->high;
	out->last_au = out->before_au = au_of(&all);
	out->last_share = 1;
}

/* Where the last quarter of the time begins. */
static size_t last_quarter(const struct timeline *t)
{
	double all = 0, sum = 0;

	for (size_t i = 0; i < t->n; i++)
		all += t->cell[i].wall_s;
	for (size_t i = 0; i < t->n; i++) {
		sum += t->cell[i].wall_s;
		if (sum >= TREND_PART * all && i > 0)
			return i;
	}
	return t->n - 1;
}

/* Whether the rates differ by `ratio`, in the same direction, with what was cut, too. */
static bool still_changed(const struct timeline *t, size_t at, double ratio)
{
	struct cell a = sum_of(t, 0, at), b = sum_of(t, at, t->n);
	struct cell c = whole_of(t, 0, at), d = whole_of(t, at, t->n);
	bool slower = per_step(&b) > per_step(&a);

	if (c.steps == a.steps && d.steps == b.steps)
		return true;
	return (slower ? per_step(&d) / per_step(&c) : per_step(&c) / per_step(&d)) >= ratio;
}

static bool find_rate_change(const struct timeline *t, const struct result *r, double ratio,
			     struct steadiness *out)
{
	struct series_of steps, times;
	struct change_point by_step, by_clock = {0};
	struct change_line line, slope;
	struct change_phases phases;
	bool step, clock, trend, alternate, straight;
	struct steadiness found = *out;
	size_t at;

	by_steps(t, per_step, &steps);
	by_time(t, &times);
	step = change_level(steps.v, steps.n, ratio, &by_step);
	clock = change_level(times.v, times.n, ratio, &by_clock);
	trend = change_trend(times.v, times.n, ratio, &line);
	alternate = change_alternates(times.v, times.n, PHASE_RATIO, &phases) &&
		    phases.length * sum_of(t, 0, t->n).wall_s / (double)times.n >= PHASE_LEAST_S;
	if (alternate && (phases.phases > 2 || !(step || clock))) {
		out->change = CHANGE_ALTERNATE;
		describe_phases(t, r, &times, &phases, out);
		return true;
	}
	straight = change_trend(steps.v, steps.n, ratio, &slope);
	if (!step && !clock && !trend && !straight)
		return false;
	/* where both are found, by the same values */
	straight = (trend && (!clock || line.rest < by_clock.rest)) ||
		   (straight && !clock && (!step || slope.rest < by_step.rest));
	out->change = straight ? CHANGE_TREND : CHANGE_LEVEL;
	/* the one that stands out more tells the moment */
	if (out->change == CHANGE_TREND)
		at = last_quarter(t);
	else if (step && (!clock || by_step.score >= by_clock.score))
		at = steps.from[by_step.at];
	else
		at = times.from[by_clock.at];
	describe(t, r, at > 0 ? at : 1, out);
	/* emulated computation that took longer or shorter is no matter of the storage; and what
	 * stalls that come again level out is no change */
	if (out->part == TIME_COMPUTE || !still_changed(t, at > 0 ? at : 1, ratio)) {
		*out = found;
		return false;
	}
	return true;
}

/* A smaller change counts where it is what the target is missed by in the end. */
static bool find_missed_target(const struct timeline *t, const struct result *r,
			       const struct run_metrics *m, struct steadiness *out)
{
	const struct series_stat *au = t->eval ? &m->eval_au : &m->train_au;
	double target = 100 * r->workload->metric.au;
	struct steadiness found = *out;

	/* evaluations beside training have no target */
	if ((t->eval && !r->only_evaluated) || au->count == 0 || au->mean < target ||
	    !find_rate_change(t, r, TARGET_RATIO, &found) || found.change == CHANGE_ALTERNATE ||
	    found.last_au >= target - TARGET_POINTS || found.before_au < target)
		return false;
	*out = found;
	return true;
}

/* ---- reading that computation hides ---- */

/* The mean time to read a batch of one rank, for the same groups of steps as those of all. */
static void reads_of_rank(const struct timeline *t, const struct result *r, uint32_t rank,
			  const struct series_of *groups, struct series_of *out)
{
	double sum[GROUPS] = {0}, count[GROUPS] = {0};

	for (uint32_t e = 0; e < r->epochs_done; e++) {
		uint32_t phases, others;
		const struct phase *p = phases_of(&r->rank[rank].epoch[e], t->eval, &phases);
		const struct phase *first =
			phases_of(&r->rank[result_present_rank(r)].epoch[e], t->eval, &others);

		for (uint32_t b = 0; b < phases; b++)
			for (uint64_t i = skipped(t, p[b].steps); i < p[b].steps; i++) {
				int64_t at = b < others && i < first[b].steps
						     ? first[b].step[i].ask_ns
						     : p[b].step[i].ask_ns;
				size_t low = 0, high = groups->n;

				while (high - low > 1) {
					size_t mid = (low + high) / 2;

					if (t->cell[groups->from[mid]].at_ns <= at)
						low = mid;
					else
						high = mid;
				}
				sum[low] += p[b].step[i].service_us * 1e-6;
				count[low]++;
			}
	}
	*out = *groups;
	for (size_t i = 0; i < groups->n; i++)
		out->v[i] = count[i] > 0 ? sum[i] / count[i] : groups->v[i];
}

static double mean_of(const double *v, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += v[i];
	return n ? sum / (double)n : 0;
}

/* The one rank whose reading became slower far more than that of the others. */
static uint32_t rank_alone(const struct timeline *t, const struct result *r,
			   const struct series_of *groups, size_t at)
{
	uint32_t worst = UINT32_MAX;
	double most = 0, second = 0;

	if (t->ranks < 2 || at == 0 || at >= groups->n)
		return UINT32_MAX;
	for (uint32_t k = 0; k < r->ranks; k++) {
		struct series_of one;
		double ratio;

		if (r->rank[k].lost)
			continue;
		reads_of_rank(t, r, k, groups, &one);
		ratio = mean_of(one.v + at, groups->n - at) / fmax(1e-9, mean_of(one.v, at));
		if (ratio > most) {
			second = most;
			most = ratio;
			worst = k;
		} else if (ratio > second) {
			second = ratio;
		}
	}
	return most >= READ_RATIO && most >= ONE_RANK_RATIO * fmax(1, second) ? worst : UINT32_MAX;
}

/* Judges one series of reads; a slower storage only. */
static bool read_change(const struct timeline *t, const struct result *r, const struct series_of *s,
			struct steadiness *out)
{
	struct change_point p;
	struct change_line line;
	bool level = change_level(s->v, s->n, READ_RATIO, &p) && p.after > p.before;
	bool trend = change_trend(s->v, s->n, READ_TREND, &line) && line.last > line.first;
	bool slight = trend && line.last < READ_RATIO * line.first;
	struct cell all = sum_of(t, 0, t->n);
	struct steadiness found = *out;
	double step_s = per_step(&all), room = t->workers * step_s, more;

	/* a slight one must go on, or nothing can be said of what will come */
	if (slight &&
	    (level || line.last < TREND_LEAST_S || !change_goes_on(s->v, s->n, READ_GOES_ON)))
		trend = slight = false;
	if ((!level && !trend) || (level ? p.after : line.last) < READ_LEAST_S)
		return false;
	found.change = trend && (!level || line.rest < p.rest) ? CHANGE_TREND : CHANGE_LEVEL;
	describe(t, r, found.change == CHANGE_TREND ? last_quarter(t) : s->from[p.at], &found);
	found.before_read_s = found.change == CHANGE_TREND ? line.first : p.before;
	found.last_read_s = found.change == CHANGE_TREND ? line.last : p.after;
	found.read_busy = found.last_read_s / room;
	found.hidden = true;
	if (found.change == CHANGE_TREND) {
		/* growth as up to now, by the same factor in the same time */
		more = log(room / found.last_read_s) / log(line.last / line.first);
		found.kept_up_s = more > 0 && more <= (slight ? NEAR_SIGHT : IN_SIGHT)
					  ? more * all.wall_s
					  : 0;
	}
	if ((found.read_busy < READ_BUSY || slight) && !(found.kept_up_s > 0))
		return false;
	if (found.before_rate >= COVERED_RATIO * found.last_rate) {
		/* not hidden: steps follow, with more noise than reading has */
		found.hidden = false;
		found.changed = true;
		found.kept_up_s = 0;
	}
	*out = found;
	return true;
}

/* The group of the series by steps in which the last part begins. */
static size_t group_at(const struct timeline *t, const struct series_of *s,
		       const struct steadiness *c)
{
	size_t i = 0;

	while (i < s->n &&
	       (t->cell[s->from[i]].epoch < c->epoch ||
		(t->cell[s->from[i]].epoch == c->epoch && t->cell[s->from[i]].step < c->step)))
		i++;
	return i;
}

static void find_read_change(const struct timeline *t, const struct result *r,
			     struct steadiness *out)
{
	struct series_of all;

	by_steps(t, per_read, &all);
	if (read_change(t, r, &all, out)) {
		out->rank = rank_alone(t, r, &all, group_at(t, &all, out));
		return;
	}
	for (uint32_t k = 0; t->ranks > 1 && k < r->ranks; k++) {
		struct series_of one;

		if (r->rank[k].lost)
			continue;
		reads_of_rank(t, r, k, &all, &one);
		if (read_change(t, r, &one, out)) {
			out->rank = k;
			return;
		}
	}
}

struct eval_times {
	double compute_s, wall_s;  /* of all evaluations, all ranks; without lateness */
	double late;               /* sum of what of wall time that was */
	double share, evaluations; /* sum of compute over wall time, and of how many */
	uint32_t ranks;
};

static struct eval_times times_of_evaluation(const struct result *r)
{
	struct eval_times sum = {0};

	for (uint32_t k = 0; k < r->ranks; k++) {
		sum.ranks += !r->rank[k].lost;
		for (uint32_t e = 0; !r->rank[k].lost && e < r->epochs_done; e++) {
			const struct phase *p = &r->rank[k].epoch[e].eval;
			double wall = clock_seconds(p->end_ns - p->begin_ns), compute = 0, late = 0;

			if (!r->rank[k].epoch[e].has_eval || !(wall > 0))
				continue;
			for (uint64_t i = 0; i < p->steps; i++) {
				late += clock_seconds(step_late_ns(&p->step[i]));
				compute += clock_seconds(p->step[i].compute_end_ns -
							 p->step[i].compute_begin_ns);
			}
			compute -= late;
			sum.late += late / wall;
			sum.wall_s += wall;
			sum.compute_s += compute;
			sum.share += compute / wall;
			sum.evaluations++;
		}
	}
	return sum;
}

/* Epochs have different lengths, so the mean of their AU is no part of this. */
static void find_au_without_stalls(const struct result *r, const struct eval_times *eval,
				   struct steadiness *out)
{
	const struct decomposition *d = &r->judged.time;
	uint32_t ranks = eval ? eval->ranks : d->ranks;
	double compute = eval ? eval->compute_s / ranks : d->mean_s[TIME_COMPUTE];
	double left = (eval ? eval->wall_s / ranks : d->wall_s) - out->stalled_s;

	if (ranks > 0 && out->stalled_s > 0 && left > 0 && compute <= left)
		out->au_without_stalls = 100 * compute / left;
}

int steadiness_find(const struct result *r, const struct run_metrics *m, bool eval,
		    struct steadiness *out, struct err *e)
{
	struct stall_spans spans;
	struct series_of groups;
	struct eval_times times = {0};
	struct timeline t;
	double cut_s = 0, all_s;
	int rc;

	*out = (struct steadiness){.rank = UINT32_MAX};
	if (eval)
		times = times_of_evaluation(r);
	out->whole_au = !eval                   ? (isfinite(m->whole.au) ? m->whole.au : 0)
			: times.evaluations > 0 ? 100 * times.share / times.evaluations
						: 0;
	out->late_percent = !eval                   ? m->late_percent
			    : times.evaluations > 0 ? 100 * times.late / times.evaluations
						    : 0;
	if (r->epochs_done == 0 || m->epochs < r->epochs_done)
		return 0;
	stalls_find(r, eval, out, &spans);
	find_au_without_stalls(r, eval ? &times : NULL, out);
	rc = timeline_fill(&t, r, m, eval, &spans, &cut_s, e);
	if (rc < 0)
		return rc;
	/* reading is rarely measured to a step: a cell without any time tells nothing */
	if (t.n >= CHANGE_LEAST && sum_of(&t, 0, t.n).wall_s > 0) {
		out->known = true;
		out->changed = find_rate_change(&t, r, RATE_RATIO, out) ||
			       find_missed_target(&t, r, m, out);
		if (!out->changed) {
			find_read_change(&t, r, out);
		} else if (out->change != CHANGE_ALTERNATE) {
			by_steps(&t, per_read, &groups);
			out->rank = rank_alone(&t, r, &groups, group_at(&t, &groups, out));
		}
	}
	all_s = t.n ? sum_of(&t, 0, t.n).wall_s + cut_s : 0;
	if (!spans.again && all_s > 0)
		out->cut_share = cut_s / all_s;
	free(t.cell);
	if (!out->changed) {
		stalls_find_brief(r, eval, out);
		find_au_without_stalls(r, eval ? &times : NULL, out);
	}
	return 0;
}
