/* What would change the result. */
#include "predict/outlook.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "predict/basis_of.h"
#include "predict/cadence.h"
#include "predict/costs.h"
#include "predict/criticism.h"
#include "format/format.h"
#include "predict/own_work.h"
#include "predict/packing.h"

#define WORKERS_MAX 256
static const double AGREED = 6;    /* points between explanations: wider, there is no figure */
static const double PROMISED = 20; /* points between what else a change may come to: the same */
static const double MISFIT = 5;    /* points: a model of the run that is further off is none */
/* The median of reads that vary much is less than their mean. */
static const double SCALED_MIN = 0.4, SCALED_MAX = 2.5;
static const double SERVICE_OFF = 0.1;  /* of a batch's time */
static const double BURST_OFF = 0.3;    /* the same where requests are let through many at once */
static const double PLATEAU_OFF = 1.05; /* times the AU that a plateau allows: beyond doubt */
static const double HELPS = 0.5;        /* points: workers that bring less are not worth a try */
static const double LITTLE = 0.05;      /* of the wall time: checkpoints that take no more */
static const double FAR_APART = 64;     /* times as far apart as they are */
static const double MISPLACED = 0.12; /* of the reads' time: what goes with requests is not known */
static const double SMALL_PART = 0.1; /* of a batch's time: reads that do not matter */
static const double SMALL = 0.02;     /* of a batch's time: taking away less is no change */
static const double REPEATS = 2;      /* points that a second run may differ by anyway */

/* A change, made to one explanation of the run. */
struct change {
	const struct variants *all;
	const struct variant *v; /* as it was */
	double by;
	int end;         /* what else it may come to, whatever the explanations: 1, 2; 0: neither */
	struct model *m; /* a copy of v->m: becomes the model of what is changed */
};

enum {
	OF_SETTING = 1u << 0,
	OF_STORAGE = 1u << 1,
	OF_CHECKPOINTS = 1u << 2,
	SPLITS = 1u << 3, /* it matters what goes with requests and what goes with their bytes */
	SAME_STORE = 1u << 4, /* the store and what is asked of it for a sample stay as they are */
	HAS_ENDS = 1u << 5,
};

struct kind {
	bool (*make)(const struct change *c); /* false: it does not apply */
	unsigned is;
};

/* The same in bytes. */
static double rate_of(const struct model *m, double au)
{
	return model_batches(m, au) * m->bytes;
}

/* Readers of equal batches get into step with each other or do not, by chance: at the worst each
 * has its part of the shared bandwidth and no more, whoever else reads. */
static bool always_meets(struct model *m)
{
	double part = m->shared / ((double)m->ranks * (m->workers ? m->workers : 1));

	if (!(m->shared > 0) || (m->stream > 0 && m->stream <= part))
		return false;
	for (uint32_t i = 0; i < m->sizes; i++)
		if (fabs(m->size[i] - 1) > SMALL)
			return false;
	m->stream = part;
	return true;
}

/* ---- the changes ---- */

static bool change_workers(const struct change *c)
{
	rule_workers(c->all, (uint32_t)c->by, c->m);
	return true;
}

/* The same with preprocessing as a real job does it on these hosts: not a wait, but work of their
 * processors. */
static bool change_workers_here(const struct change *c)
{
	change_workers(c);
	c->m->hosts = c->all->costs.hosts;
	c->m->delay_s -= c->v->preprocess;
	c->m->cpu_s += c->v->preprocess;
	return true;
}

static bool change_window(const struct change *c)
{
	rule_window(c->all, c->by, c->m);
	return c->v->m.workers > 0;
}

static bool change_order(const struct change *c)
{
	c->m->in_order = false;
	return c->all->costs.rule == RULE_PYTORCH && c->v->m.workers > 1 && c->v->m.in_order;
}

static bool change_batch(const struct change *c)
{
	struct model *m = c->m;

	m->delay_s *= c->by;
	m->bytes *= c->by;
	m->cpu_s *= c->by;
	model_queue_scale(&m->open, c->by, c->by);
	model_queue_scale(&m->read, c->by, c->by);
	m->steps = (uint64_t)((double)m->steps / c->by);
	/* its samples differ each by itself, or as one */
	m->spread_by /= c->end == 1 ? 1 : c->end == 2 ? c->by : sqrt(c->by);
	m->samples *= c->by;
	m->parts = (uint32_t)fmax(1, c->v->m.parts * c->by);
	if (c->all->costs.rule == RULE_EXTERNAL)
		m->runs = (uint32_t)fmax(1, fmin(m->workers, m->samples));
	return m->steps >= 4;
}

static bool change_ranks(const struct change *c)
{
	c->m->ranks = (uint32_t)(c->v->m.ranks * c->by);
	return c->m->ranks <= 64;
}

static bool change_latency_alone(const struct change *c)
{
	c->m->delay_s -= c->v->latency * (1 - c->by);
	return true;
}

/* A server that serves one request at a time is busy for its latency; a ceiling of requests stays
 * what it is. */
static bool change_latency(const struct change *c)
{
	c->m->read.serve_s *= c->by;
	return change_latency_alone(c);
}

static bool change_bandwidth(const struct change *c)
{
	c->m->stream *= c->by;
	c->m->shared *= c->by;
	c->m->read.serve_sized_s /= c->by;
	return true;
}

static bool change_requests(const struct change *c)
{
	c->m->read.pace_s /= c->by;
	return c->v->m.read.burst > 0;
}

/* Whatever a store takes time for, opens too. */
static bool change_storage(const struct change *c)
{
	c->m->delay_s -=
		(c->v->latency + c->v->open_latency + c->v->close + c->v->later) * (1 - 1 / c->by);
	c->m->open.serve_s /= c->by;
	c->m->open.pace_s /= c->by;
	c->m->read.serve_s /= c->by;
	c->m->read.pace_s /= c->by;
	return change_bandwidth(c);
}

/* One open for each sample and `asked` requests for a batch, where there were more of them and
 * stats by name; `bytes`: of those that were read. */
static void ask_once(const struct change *c, double asked, double bytes)
{
	const struct costs *all = &c->all->costs;
	double opens = all->opens > all->samples ? all->samples / all->opens : 1;
	double closes = all->files > all->samples ? all->samples / all->files : 1;
	double requests = fmin(1, asked / all->requests);

	/* an open may take another time than a stat */
	if (all->law.open_ns > 0 && all->open > 0)
		opens = fmin(1, all->samples * all->law.open_ns / 1e9 / all->open);
	c->m->delay_s -= c->v->open_latency * (1 - opens) + c->v->close * (1 - closes);
	/* of a file's bytes, or of its requests */
	c->m->delay_s -= c->v->later * (c->end == 1 ? 1 - fmin(1, bytes) : 1);
	model_queue_scale(&c->m->open, opens, opens);
	c->m->delay_s -= c->v->latency * (1 - requests);
	model_queue_scale(&c->m->read, requests, bytes);
	c->m->bytes *= bytes;
}

static bool change_access(const struct change *c)
{
	const struct costs *all = &c->all->costs;

	ask_once(c, all->native, all->payload / all->bytes);
	return all->requests > all->native || all->later > 0;
}

/* Arrays as they are, each in one request: the least that a format can be. */
static bool change_format(const struct change *c)
{
	const struct costs *all = &c->all->costs;

	double pieces = fmax(1, ceil(all->plain / all->samples / NATIVE_PIECE_MAX));

	ask_once(c, all->samples * pieces, all->plain / all->bytes);
	c->m->delay_s -= c->v->decode;
	c->m->cpu_s = fmin(c->m->cpu_s, all->framework);
	return all->requests >= all->samples || all->later > 0;
}

static bool change_decode(const struct change *c)
{
	c->m->delay_s -= c->v->decode;
	c->m->cpu_s = 0;
	return true;
}

/* Many samples in few files. */
static bool change_packing(const struct change *c)
{
	packing_apply(&c->all->packing, c->v, (enum packing_opens)c->end, c->m);
	return true;
}

/* The framework's own code. */
static bool change_framework(const struct change *c)
{
	own_work_add(&c->all->framework, c->by, c->m);
	return true;
}

static bool change_no_framework(const struct change *c)
{
	own_work_remove(&c->all->costs, c->v, c->m);
	return true;
}

/* Checkpoints further apart. */
static bool change_cadence(const struct change *c)
{
	return cadence_apart(&c->all->cadence, c->all->w, c->by, (enum cadence_end)c->end, c->m);
}

static bool change_async(const struct change *c)
{
	return cadence_async(&c->all->cadence, c->all->w, (enum cadence_end)c->end, c->m);
}

static const struct kind by_workers = {change_workers, OF_SETTING | SAME_STORE};
static const struct kind by_workers_here = {change_workers_here, 0};
static const struct kind by_window = {change_window, OF_SETTING | SAME_STORE};
static const struct kind by_order = {change_order, OF_SETTING | SAME_STORE};
static const struct kind by_batch = {change_batch, SAME_STORE | HAS_ENDS};
static const struct kind by_ranks = {change_ranks, SAME_STORE};
static const struct kind by_latency_alone = {change_latency_alone, 0};
static const struct kind by_latency = {change_latency, OF_STORAGE | SPLITS};
static const struct kind by_bandwidth = {change_bandwidth, OF_STORAGE | SPLITS};
static const struct kind by_requests = {change_requests, OF_STORAGE};
static const struct kind by_storage = {change_storage, OF_STORAGE};
static const struct kind by_access = {change_access, OF_SETTING | SPLITS | HAS_ENDS};
static const struct kind by_format = {change_format, SPLITS | HAS_ENDS};
static const struct kind by_decode = {change_decode, 0};
static const struct kind by_packing = {change_packing, OF_SETTING | SPLITS | HAS_ENDS};
static const struct kind by_framework = {change_framework, 0};
static const struct kind by_no_framework = {change_no_framework, 0};
static const struct kind by_cadence = {change_cadence,
				       OF_SETTING | OF_CHECKPOINTS | SAME_STORE | HAS_ENDS};
static const struct kind by_async = {change_async,
				     OF_SETTING | OF_CHECKPOINTS | SAME_STORE | HAS_ENDS};

/* ---- what a change comes to ---- */

/* The AU at which a loader asks for all that a probe's readers got, however many; but the run
 * itself got what it got. */
static double most_au(const struct outlook *out, const struct variants *v, const struct model *m)
{
	const struct model *now = &v->one[0].m;
	double had = model_batches(now, out->measured_au) * now->samples;
	double whole = model_batches(m, 100) * m->samples;

	return whole > 0 ? 100 * fmax(v->costs.law.plateau, had) / whole : INFINITY;
}

/* What a model of the same store and the same requests says. */
static double within_plateau(const struct outlook *out, const struct variants *v,
			     const struct model *m, double au)
{
	double most = v->costs.law.plateau > 0 ? most_au(out, v, m) : INFINITY;

	return au > most * PLATEAU_OFF ? most : au;
}

/* What one variant says of a change, or of an end of it; NAN: nothing. *off grows to what it is off
 * by where it can be told: points. */
static double say_one(const struct outlook *out, const struct variants *v, uint32_t i,
		      const struct kind *how, double by, int end, struct model *m, double *off)
{
	const struct variant *one = &v->one[i];
	struct modeled made;
	double au, missed = 0;

	*m = one->m;
	if (!how->make(&(struct change){v, one, by, end, m}))
		return NAN;
	/* parts of a delay that a change takes away are known each by itself */
	m->delay_s = fmax(0, m->delay_s);
	made = model_run(m);
	au = variant_corrected(out, one, made.au);
	if (!(how->is & SAME_STORE) || end != 0 || how->is & OF_CHECKPOINTS)
		return au;
	au = criticism_put_right(out, v, one, m, au, &made, &missed);
	*off = fmax(*off, missed);
	return within_plateau(out, v, m, au);
}

/* The part of a run that one burst is: where slices begin in it is chance. */
static double granularity(const struct model *m)
{
	double steps = (double)m->steps * m->ranks;
	double reads = m->read.requests * steps, opens = m->open.requests * steps;

	return fmax(m->read.burst && reads > 0 ? m->read.burst / reads : 0,
		    m->open.burst && opens > 0 ? m->open.burst / opens : 0);
}

static void widen(struct what_if *w, double au)
{
	if (isnan(au))
		return;
	w->low = fmin(w->low, au);
	w->high = fmax(w->high, au);
}

/* Whether it matters what `one` is told apart from others by. */
static bool counts(const struct variant *one, const struct kind *how)
{
	return !one->split_only || how->is & SPLITS;
}

/* Takes in what else a change may come to, whichever explanation is right. */
static void widen_by_ends(const struct outlook *out, const struct variants *v,
			  const struct kind *how, double by, struct what_if *w)
{
	for (int end = 1; end <= 2; end++)
		for (uint32_t i = 0; i < v->count; i++) {
			struct model m;
			double off = 0;

			if (counts(&v->one[i], how))
				widen(w, say_one(out, v, i, how, by, end, &m, &off));
		}
}

/* Why nothing is promised of a change, whatever the explanations agree on. */
static enum reason doubt_of(const struct outlook *out, const struct variants *v,
			    const struct kind *how, double off)
{
	const struct costs *c = &v->costs;

	/* whether another one would be slow as well is not known */
	if (how == &by_workers && v->slow_worker)
		return REASON_NO_FIGURE_WORKER;
	if (out->refuted || off > PROMISED / 2)
		return REASON_NO_FIGURE_LAW;
	if (how->is & SPLITS && v->one[0].rates.misplaced > MISPLACED &&
	    c->reads > SMALL_PART * c->service)
		return REASON_NO_FIGURE_PLACES;
	return REASON_NONE;
}

static bool predict_change(const struct outlook *out, const struct variants *v,
			   const struct kind *how, double by, struct what_if *w)
{
	enum reason doubt;
	bool agreed;
	double error, off = 0;

	*w = (struct what_if){.low = 100, .high = 0, .why = REASON_NO_FIGURE_MODELS};
	for (uint32_t i = 0; i < v->count; i++) {
		struct model m, other;
		double au;

		if (!counts(&v->one[i], how))
			continue;
		au = say_one(out, v, i, how, by, 0, &m, &off);
		if (isnan(au))
			return false;
		widen(w, au);
		/* what keeps a server busy may be a latency, or a limit that has none */
		if (how == &by_latency && m.read.servers)
			widen(w, say_one(out, v, i, &by_latency_alone, by, 0, &other, &off));
		if (i > 0)
			continue;
		w->au = au;
		w->error = au * granularity(&m);
		if (how->is & SAME_STORE)
			w->error += criticism_varies(out, v, &v->one[i], &m, au);
		w->rate = rate_of(&m, au);
		w->rate_now = rate_of(&v->one[i].m, out->measured_au);
		if (how == &by_ranks && always_meets(&m)) {
			au = model_run(&m).au;
			w->low = isnan(au) ? w->low
					   : fmin(w->low, variant_corrected(out, &v->one[i], au));
		}
	}
	doubt = doubt_of(out, v, how, off);
	agreed = w->high - w->low <= AGREED && doubt == REASON_NONE;
	w->error += fmin(off, PROMISED) + REPEATS +
		    fabs(out->measured_au - v->one[0].reproduced.au) + v->costs.taken +
		    0.03 * fabs(w->au - out->measured_au);
	error = w->error + fmax(w->high - w->au, w->au - w->low);
	if (how->is & HAS_ENDS)
		widen_by_ends(out, v, how, by, w);
	w->known = agreed && w->high - w->low <= PROMISED;
	if (doubt != REASON_NONE)
		w->why = doubt;
	if (how->is & HAS_ENDS) {
		w->low -= w->error;
		w->high += w->error;
	}
	w->error = error;
	w->low = fmax(0, fmin(w->low, w->au - w->error));
	w->high = fmin(100, fmax(w->high, w->au + w->error));
	return true;
}

/* What so many workers give a job that preprocesses on the hosts of the run, where their processors
 * are too few for all of them at once; NAN: they are not. */
static double bounded_here(const struct outlook *out, const struct variants *v, uint32_t workers,
			   double au)
{
	const struct variant *one = &v->one[0];
	double at_once = (double)workers * one->m.ranks / v->costs.hosts, here, off = 0;
	struct model m;

	if (!(one->m.cpus > 0) || at_once <= one->m.cpus ||
	    v->costs.preprocess < SMALL_PART * v->costs.service)
		return NAN;
	here = say_one(out, v, 0, &by_workers_here, workers, 0, &m, &off);
	return here < au - HELPS ? here : NAN;
}

/* NULL where it does not apply; its keys or what it is are the caller's. */
static struct what_if *add_change(struct outlook *out, const struct variants *v,
				  const struct kind *how, double by)
{
	struct what_if w;

	if (out->changes == WHAT_IF_MAX || !predict_change(out, v, how, by, &w))
		return NULL;
	/* explanations that do not agree may all be wrong */
	if (!w.known)
		w.low = w.high = NAN;
	w.sure = w.low;
	w.here = NAN;
	w.of_checkpoints = how->is & OF_CHECKPOINTS;
	w.of_setting = how->is & OF_SETTING;
	w.of_storage = how->is & OF_STORAGE;
	out->change[out->changes] = w;
	return &out->change[out->changes++];
}

__attribute__((format(printf, 5, 6))) static struct what_if *add_keys(struct outlook *out,
								      const struct variants *v,
								      const struct kind *how,
								      double by, const char *fmt,
								      ...)
{
	struct what_if *w = add_change(out, v, how, by);
	va_list ap;

	if (!w)
		return NULL;
	va_start(ap, fmt);
	vsnprintf(w->keys, sizeof(w->keys), fmt, ap);
	va_end(ap);
	return w;
}

static void add_what(struct outlook *out, const struct variants *v, const struct kind *how,
		     double by, struct fact what)
{
	struct what_if *w = add_change(out, v, how, by);

	if (w)
		w->what = what;
}

/* ---- which are tried ---- */

/* prefetch_size is of all workers in DLIO: PyTorch's share of each stays. */
static void add_workers(struct outlook *out, const struct variants *v, uint32_t n)
{
	uint64_t each = v->prefetch ? v->prefetch : 2;
	struct what_if *w;

	if (v->costs.rule == RULE_PYTORCH)
		w = add_keys(out, v, &by_workers, n,
			     "reader.read_threads=%u reader.prefetch_size=%llu", n,
			     (unsigned long long)(each * n));
	else
		w = add_keys(out, v, &by_workers, n, "reader.read_threads=%u", n);
	if (!w)
		return;
	w->workers = n;
	w->here = bounded_here(out, v, n, w->au);
	if (w->known)
		w->low = fmin(w->low, w->here);
}

/* By one variant, corrected. */
static double workers_give(const struct outlook *out, const struct variants *v, uint32_t i,
			   uint32_t workers, double *off)
{
	struct model m;

	return say_one(out, v, i, &by_workers, workers, 0, &m, off);
}

/* How many reach the goal by one variant; 0: none do, by what is off by *off. Then *most is the
 * first of those beyond which there is little to gain. */
static uint32_t workers_for_goal(const struct outlook *out, const struct variants *v, uint32_t i,
				 uint32_t *most, double *off)
{
	uint32_t now = v->one[i].m.workers, useless = 0;
	double best = 0;

	*most = now;
	*off = 0;
	for (uint32_t n = now ? now : 1; n <= WORKERS_MAX && useless < 4; n += n < 8 ? 1 : n / 4) {
		double au = workers_give(out, v, i, n, off);

		if (isnan(au))
			return 0;
		if (au >= OUTLOOK_GOAL)
			return n;
		useless = au > best + HELPS ? 0 : useless + 1;
		if (useless == 0) {
			best = au;
			*most = n;
		}
	}
	return 0;
}

/* What *w promises of so many workers. */
static void set_needed(struct outlook *out, const struct variants *v, uint32_t workers,
		       const struct what_if *w)
{
	out->needed_au = w->au;
	out->needed_sure = w->low;
	out->needed_high = w->high;
	out->needed_here = bounded_here(out, v, workers, w->au);
	out->needed_low = fmin(w->low, out->needed_here);
}

/* The number is promised if all explanations agree on what it gives, and that there is none only if
 * none of them knows one. */
static void find_workers(struct outlook *out, const struct variants *v)
{
	uint32_t most, other;
	struct what_if w;
	double off, other_off;

	out->workers_needed = workers_for_goal(out, v, 0, &most, &off);
	out->needed_known =
		!out->refuted && !v->slow_worker && (out->workers_needed || off <= PROMISED / 2);
	if (out->workers_needed && out->needed_known) {
		out->needed_known =
			predict_change(out, v, &by_workers, out->workers_needed, &w) && w.known;
		set_needed(out, v, out->workers_needed, &w);
	}
	for (uint32_t i = 1; i < v->count && out->workers_needed == 0 && out->needed_known; i++)
		if (!v->one[i].split_only)
			out->needed_known = workers_for_goal(out, v, i, &other, &other_off) == 0 &&
					    other_off <= PROMISED / 2;
	if (out->workers_needed == 0 && out->needed_known && most > v->one[0].m.workers &&
	    predict_change(out, v, &by_workers, most, &w) && w.known &&
	    w.au > out->measured_au + OUTLOOK_WORTH) {
		out->workers_best = most;
		set_needed(out, v, most, &w);
	}
	if (!out->needed_known) {
		out->workers_needed = 0;
		out->needed_au = out->needed_low = out->needed_sure = out->needed_high = NAN;
		out->needed_here = NAN;
	}
}

static void try_workers(struct outlook *out, const struct variants *v)
{
	uint32_t now = v->one[0].m.workers;

	find_workers(out, v);
	for (uint32_t n = now ? now * 2 : 1; n <= (now ? now * 4 : 4) && n <= 65536; n *= 2)
		add_workers(out, v, n);
	out->sharing_known = true;
	for (uint32_t i = 0; i < out->changes; i++)
		out->sharing_known = out->sharing_known && out->change[i].known;
	if (now >= 2)
		add_workers(out, v, now / 2);
}

static void try_window(struct outlook *out, const struct variants *v)
{
	uint64_t now = v->prefetch;
	struct what_if w;

	if (v->costs.rule == RULE_PYTORCH)
		now *= v->one[0].m.workers;
	for (uint32_t by = 2; by <= 4; by *= 2)
		add_keys(out, v, &by_window, by, "reader.prefetch_size=%llu",
			 (unsigned long long)(now * by));
	if (predict_change(out, v, &by_window, 4, &w) && w.known) {
		out->window_au = w.au;
		out->window_low = w.low;
		out->window_high = w.high;
	}
	add_keys(out, v, &by_order, 1, "reader.in_order=false");
	if (predict_change(out, v, &by_order, 1, &w) && w.known) {
		out->unordered_au = w.au;
		out->unordered_low = w.low;
		out->unordered_high = w.high;
	}
}

/* The first format whose files are little more than their samples. */
static const struct format_facts *raw_array(void)
{
	const struct format_facts *const *f = format_facts_table;

	while (!((*f)->flags & FORMAT_RAW_ARRAY)) {
		f++;
		assert(*f);
	}
	return *f;
}

static void try_reading(struct outlook *out, const struct variants *v, const struct result *r)
{
	const struct workload *w = r->workload;
	const struct costs *c = &v->costs;

	add_keys(out, v, &by_batch, 2, "reader.batch_size=%.0f", 2 * c->samples);
	if (fmod(c->samples, 2) == 0)
		add_keys(out, v, &by_batch, 0.5, "reader.batch_size=%.0f", c->samples / 2);
	if (w->reader.access == 0 && c->bytes > 0)
		add_keys(out, v, &by_access, 1, "reader.access=native");
	if (r->dataset && !(r->dataset->format->is.flags & FORMAT_RAW_ARRAY) && c->bytes > 0 &&
	    r->dataset->samples_per_file == 1 && c->plain > 0)
		add_keys(out, v, &by_format, 1, "dataset.format=%s%s reader.access=native",
			 raw_array()->name,
			 w->dataset.compression ? " dataset.compression=none" : "");
	/* with the framework's own code, the sum of both is the framework's */
	if (w->reader.decode != 2 && c->decode > SMALL * c->service && !(c->framework > 0))
		add_keys(out, v, &by_decode, 1, "reader.decode=none");
}

static void try_packing(struct outlook *out, struct variants *v, const struct result *r)
{
	struct what_if *w;

	if (!packing_of(v, r, &v->packing))
		return;
	w = add_change(out, v, &by_packing, 1);
	if (!w)
		return;
	packing_keys(&v->packing, w->keys, sizeof(w->keys));
	w->what = packing_fact(&v->packing);
	/* an array in place of an image is another workload */
	w->of_setting = !v->packing.format || !(r->dataset->format->is.flags & FORMAT_IMAGE);
}

/* No promise without an interval, and why there is none. */
static void doubt(struct what_if *w, const struct cadence *c, bool async)
{
	if (!w)
		return;
	if (c->count > 1) {
		w->why = async ? REASON_NO_FIGURE_BACKGROUND : REASON_NO_FIGURE_VARY;
		return;
	}
	w->known = false;
	w->au = w->low = w->high = w->rate = NAN;
	w->why = REASON_NO_FIGURE_ONE;
}

static void try_checkpoints(struct outlook *out, const struct variants *v)
{
	const struct cadence *c = &v->cadence;
	struct what_if *w;
	char key[sizeof(out->change[0].keys)];
	double by = 2;

	if (c->count == 0 || c->share < SMALL)
		return;
	cadence_key(v->w, by, key, sizeof(key));
	doubt(add_keys(out, v, &by_cadence, by, "%s", key), c, false);
	/* so far apart that they take little */
	while (c->share / by > LITTLE && by < FAR_APART)
		by *= 2;
	cadence_key(v->w, by, key, sizeof(key));
	if (by > 2)
		doubt(add_keys(out, v, &by_cadence, by, "%s", key), c, false);
	w = add_keys(out, v, &by_async, 1, "checkpoint.async=true");
	doubt(w, c, true);
	if (w && !(v->w->checkpoint.stage_rate > 0))
		w->what = FACT(CHANGE_ASYNC_COPY);
}

static void try_others(struct outlook *out, const struct variants *v)
{
	uint32_t before;

	add_what(out, v, &by_ranks, 2, FACT(CHANGE_RANKS));
	/* explanations may differ in what is a latency at all: then it is no change that can be
	 * made */
	before = out->changes;
	add_what(out, v, &by_latency, 0.5, FACT(CHANGE_LATENCY));
	if (out->changes > before && !out->change[before].known)
		out->changes = before;
	add_what(out, v, &by_bandwidth, 2, FACT(CHANGE_BANDWIDTH));
	add_what(out, v, &by_requests, 2, FACT(CHANGE_REQUESTS));
	add_what(out, v, &by_storage, 2, FACT(CHANGE_STORAGE));
}

/* What `by_framework` comes to by DLIO's definition, which leaves out the first step. */
static double framework_dlio_au(const struct variants *v, double measured)
{
	const struct variant *one = &v->one[0];
	struct model m = one->m;

	if (v->cadence.count > 0 ||
	    !by_framework.make(&(struct change){.all = v, .v = one, .by = 1, .m = &m}))
		return NAN;
	m.delay_s = fmax(0, m.delay_s);
	return au_corrected(measured, one->reproduced.later_au, model_run(&m).later_au);
}

/* With them, of a run without: as DLIO would run it, and as a loop without DLIO's own code. Of a
 * run with them: without. */
static void try_framework(struct outlook *out, struct variants *v, const struct result *r,
			  uint32_t epochs, const struct framework_costs *f, double dlio_au)
{
	struct costs_effect *c = &out->costs;
	struct what_if w, loop;

	if (!f)
		return;
	*c = (struct costs_effect){
		.spent = f == r->workload->costs, .dlio_au = NAN, .loop_au = NAN};
	if (!c->spent && !own_work_of(f, r, epochs, &v->costs, true, &v->framework))
		return;
	if (!predict_change(out, v, c->spent ? &by_no_framework : &by_framework, 1, &w))
		return;
	snprintf(c->profile, sizeof(c->profile), "%s", f->name);
	if (!c->spent)
		c->dlio_au = framework_dlio_au(v, dlio_au);
	if (!c->spent && !r->workload->compat.dlio &&
	    own_work_of(f, r, epochs, &v->costs, false, &v->framework) &&
	    predict_change(out, v, &by_framework, 1, &loop))
		c->loop_au = loop.au;
	own_work_judge(out, &w, REPEATS, dlio_au, c);
}

/* Where no model is good enough for promises, the costs are still known better than not at all: at
 * most the store makes up for all of them, since it is then asked for less at once. */
static void try_framework_plainly(struct outlook *out, struct variants *v, const struct result *r,
				  uint32_t epochs, const struct framework_costs *f, double dlio_au)
{
	if (!f || f == r->workload->costs || !variants_plain(v))
		return;
	try_framework(out, v, r, epochs, f, dlio_au);
	out->costs.high = fmax(out->costs.high, out->measured_au);
}

/* Why the effect of more readers cannot be told. */
static void set_untold(struct outlook *out, const struct variants *v)
{
	const struct costs *c = &v->costs;
	const struct model *m = &v->one[0].m;
	double batches_per_s = m->bytes > 0 ? rate_of(m, out->measured_au) / m->bytes : 0;

	if (out->needed_known && out->sharing_known)
		return;
	if (v->slow_worker) {
		out->untold = FACT(UNTOLD_WORKER);
	} else if (out->refuted) {
		out->untold = FACT(UNTOLD_LAW);
		out->probe_can = !out->probed;
	} else if (c->law.reads.falls < 1 && c->law.reads.count && !out->probed) {
		out->untold = FACT(UNTOLD_CROWD, c->law.reads.most);
		out->probe_can = true;
	} else if (!costs_law_told(&c->law.reads, c->requests * batches_per_s)) {
		out->untold = FACT(UNTOLD_READS, c->law.reads.most);
		out->probe_can = !out->probed;
	} else if (!costs_law_told(&c->law.opens, c->opens * batches_per_s)) {
		out->untold = FACT(UNTOLD_OPENS, c->law.opens.most);
		out->probe_can = !out->probed;
	} else if (v->one[v->count - 1].m.cpus < v->one[0].m.cpus) {
		out->untold = FACT(UNTOLD_OTHERS, c->others);
	} else {
		out->untold = FACT(UNTOLD_DIFFER);
		out->probe_can = !out->probed;
	}
}

static bool reproduces(const struct variants *all, const struct variant *v, double measured_au)
{
	double service = all->costs.service / fmax(1, v->m.runs);
	double off = v->rates.burst || v->opens.burst ? BURST_OFF : SERVICE_OFF;

	return v->scale > SCALED_MIN && v->scale < SCALED_MAX &&
	       fabs(v->reproduced.service_s - service) < off * service &&
	       fabs(v->reproduced.au - measured_au) <= MISFIT;
}

/* Drops those that are refuted, unless it is all of them. */
static void drop_refuted(struct variants *v, struct outlook *out)
{
	bool wrong[VARIANTS_MAX];
	uint32_t kept = 0;

	out->refuted = true;
	for (uint32_t i = 0; i < v->count; i++) {
		wrong[i] = criticism_refutes(out, v, &v->one[i]);
		out->refuted = out->refuted && (v->one[i].split_only || wrong[i]);
	}
	for (uint32_t i = 0; i < v->count && !out->refuted; i++)
		if (!wrong[i])
			v->one[kept++] = v->one[i];
	v->count = out->refuted ? v->count : kept;
}

/* What reproduces the run is taken; false with out->why when nothing does. */
static bool drop_misfits(struct variants *v, struct outlook *out)
{
	const struct modeled first = v->one[0].reproduced;
	double service = v->costs.service / fmax(1, v->one[0].m.runs);
	uint32_t kept = 0;

	for (uint32_t i = 0; i < v->count; i++)
		if (reproduces(v, &v->one[i], out->measured_au))
			v->one[kept++] = v->one[i];
	v->count = kept;
	if (kept == 0 || v->one[0].split_only) {
		if (fabs(first.au - out->measured_au) > MISFIT)
			out->why = FACT(NO_MODEL_AU, first.au, out->measured_au);
		else if (fabs(first.service_s - service) > SERVICE_OFF * service)
			out->why = FACT(NO_MODEL_BATCH_TIME, first.service_s, service);
		else
			out->why = FACT(NO_MODEL_READS);
		return false;
	}
	drop_refuted(v, out);
	return true;
}

/* What a probe measured is known even where it goes by no explanation. */
static bool explain(struct variants *v, struct outlook *out)
{
	struct fact why;

	if (drop_misfits(v, out) && !(out->refuted && out->probed))
		return true;
	why = out->why;
	if (!out->probed || !variants_table(v) || !drop_misfits(v, out)) {
		out->why = why.reason == REASON_NONE ? FACT(NO_MODEL_READS) : why;
		return false;
	}
	return true;
}

/* Whether training read from the storage what is in the page cache since, and may not be evicted.
 */
static bool keeps_what_was_cold(const struct result *r)
{
	const struct residency *c = r->usage ? &r->usage[0].cache_start : NULL;

	return r->workload->storage.page_cache == PAGE_CACHE_KEEP && c && c->known &&
	       c->bytes > 0 && 2 * c->cached_bytes < c->bytes;
}

void outlook_compute(const struct result *r, uint32_t epochs, const struct store_law *law,
		     const struct framework_costs *f, double dlio_au, struct outlook *out,
		     struct basis *basis)
{
	const struct decomposition *d = &r->judged.time;
	struct variants v;
	const struct variant *best = &v.one[0];

	*out = (struct outlook){.unordered_au = NAN,
				.window_au = NAN,
				.probed = law->probed,
				.probe_evicts = keeps_what_was_cold(r)};
	out->known = variants_make(&v, r, epochs, law, out);
	out->measured_au = d->wall_s > 0 ? 100 * d->mean_s[TIME_COMPUTE] / d->wall_s : 0;
	out->known = out->known && explain(&v, out);
	if (basis) {
		*basis = (struct basis){.known = false};
		words_of(&out->why, WORDS_SHORT, basis->why, sizeof(basis->why));
	}
	if (basis && out->known)
		basis_of(r, epochs, &v, basis);
	if (out->known)
		try_framework(out, &v, r, epochs, f, dlio_au);
	else
		try_framework_plainly(out, &v, r, epochs, f, dlio_au);
	if (out->known && v.few_steps) {
		out->known = false;
		out->why = FACT(NO_MODEL_STEPS);
	}
	if (out->known) {
		const struct model *m = &best->m;

		out->ranks_each = fmax(1, round((double)m->ranks / v.costs.hosts));
		out->processors = m->cpus;

		out->latency_share = law->reads.latency_share;
		out->stream_share = law->reads.stream_share;
		out->shared_share = law->reads.shared_share;
		out->queue_share = law->reads.queue_share;
		out->modeled_au = best->reproduced.au;
		out->stalled_share = v.cadence.share;
		out->shared_s = m->shared > 0 ? m->bytes / m->shared : 0;
		out->fixed_s = m->delay_s + m->cpu_s;
		if (m->stream > 0 && m->stream < m->shared)
			out->shared_s = 0;
		if (m->stream > 0 && !(out->shared_s > 0))
			out->fixed_s += m->bytes / m->stream;
		out->shared_s +=
			m->read.serve_s + m->read.serve_sized_s + m->read.requests * m->read.pace_s;
		try_workers(out, &v);
		try_window(out, &v);
		try_reading(out, &v, r);
		try_packing(out, &v, r);
		try_checkpoints(out, &v);
		try_others(out, &v);
		set_untold(out, &v);
	}
	variants_release(&v);
}
