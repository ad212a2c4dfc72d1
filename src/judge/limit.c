/* What held the run back most: those that can name a cause are asked one after another. */
#include "judge/limit.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "judge/limit_cpu.h"
#include "judge/limit_io.h"
#include "judge/limit_memory.h"
#include "judge/limit_unsteady.h"
#include "judge/limit_view.h"
#include "judge/say_change.h"
#include "predict/costs.h"
#include "predict/outlook.h"
#include "workload/framework_key.h"

static const double SMALL_LOSS = 0.05; /* of the wall time: nothing to find */

void limit_say(struct limit_view *v, const char *cause, const char *fmt, ...)
{
	struct limit *l = v->limit;
	va_list ap;

	snprintf(l->cause, sizeof(l->cause), "%s", cause);
	snprintf(l->text, sizeof(l->text), "Whole-run AU %.1f %%: ", v->m->whole.au);
	va_start(ap, fmt);
	str_append_args(l->text, sizeof(l->text), fmt, ap);
	va_end(ap);
}

void limit_add(struct limit_view *v, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	str_append_args(v->limit->text, sizeof(v->limit->text), fmt, ap);
	va_end(ap);
}

void limit_add_workers(struct limit_view *v)
{
	v->limit->effects = (uint16_t)strlen(v->limit->text);
	outlook_say_workers(v->outlook, result_workers(v->r), v->limit->text,
			    sizeof(v->limit->text));
	limit_add(v, ".");
}

/* ---- those that need little evidence ---- */

static bool at_computation(struct limit_view *v)
{
	const struct measured *of = &v->r->judged.measured;
	char figures[96];

	if (v->loss >= SMALL_LOSS * v->d->wall_s)
		return false;
	snprintf(figures, sizeof(figures), "(workers %.0f %% busy, %.3g batches ready on average)",
		 100 * v->busy, v->d->ready_mean);
	if (limit_cached(v->r))
		limit_say(v, "page_cache",
			  "limited by computation, but the dataset was in %s: this says nothing "
			  "about the storage.",
			  of->instead[0] ? of->instead : "the page cache");
	else if (of->taken || of->storage == MEASURED_NOT || of->storage == MEASURED_UNKNOWN)
		limit_say(v, "compute",
			  "limited by computation %s. Whether the storage keeps up is not known. "
			  "Measured: %s",
			  figures, of->text);
	else
		limit_say(v, "compute", "limited by computation; the %s keeps up %s.",
			  of->storage == MEASURED_EMULATED ? "emulated store" : "storage", figures);
	return true;
}

/* What is said of training alone may sound as if evaluations had been as good. */
static void add_evaluation(struct limit_view *v)
{
	const struct steadiness *c = &v->r->judged.eval_steady;

	if (!v->limit->text[0] || !stalls_matter(v->r, true))
		return;
	limit_add(v, " In the evaluation of epoch %u, reading stood still for %.3g s.",
		  c->stall[0].epoch, c->stall[0].length_s);
}

static bool at_changes(struct limit_view *v)
{
	char text[sizeof(v->limit->text)], cause[sizeof(v->limit->cause)];

	if (!limit_unsteady(v->r, v->loss, cause, sizeof(cause), text, sizeof(text)))
		return false;
	limit_say(v, cause, "%s", text);
	return true;
}

/* All of it is the wait for the first batches: a longer epoch would not lose it. */
static bool at_beginnings(struct limit_view *v)
{
	double rest = v->loss - v->first, code = v->d->framework_start_s;
	char of_code[96] = "";
	double step = v->compute * v->r->ranks / (double)v->d->steps;

	/* what was read ahead would not last: the workers are slower than computation */
	if (v->d->batches == 0 || v->work / (double)v->d->batches / v->workers > step)
		return false;
	if (v->first < 0.5 * v->loss || rest >= SMALL_LOSS * (v->d->wall_s - v->first))
		return false;
	if (code >= 0.1 * v->first)
		snprintf(of_code, sizeof(of_code),
			 ", of which the framework's own code takes %.3g s to start workers", code);
	limit_say(v, "start_up",
		  "limited by the beginning of the epochs: %.0f %% of the time is the wait for "
		  "their first batches, %.3g s in all%s. After that, computation limits; longer "
		  "epochs would lose less.",
		  100 * v->first / v->d->wall_s, v->first, of_code);
	return true;
}

static bool at_checkpoints(struct limit_view *v)
{
	if (v->d->mean_s[TIME_CHECKPOINT] <= 0.5 * v->loss)
		return false;
	limit_say(v, "checkpoint",
		  "limited by checkpoints, which stop training for %.0f %% of the time.",
		  100 * v->d->mean_s[TIME_CHECKPOINT] / v->d->wall_s);
	return true;
}

static bool at_io_limit(struct limit_view *v)
{
	char text[sizeof(v->limit->text)];

	if (v->lost_to_data <= 0.3 * v->loss || !limit_io_group(v->r, text, sizeof(text)))
		return false;
	limit_say(v, "io_limit", "%s", text);
	return true;
}

static bool at_memory(struct limit_view *v)
{
	char text[sizeof(v->limit->text)];

	if (v->wait <= 0.3 * v->loss || !limit_memory(v->r, text, sizeof(text)))
		return false;
	limit_say(v, "memory", "%s", text);
	return true;
}

static bool at_the_rest(struct limit_view *v)
{
	limit_say(v, "other",
		  "limited by the time between steps and at the barrier: %.0f %% of all.",
		  100 * (v->loss - v->wait) / v->d->wall_s);
	return true;
}

/* The first that names a cause decides: what was measured as such before what is concluded. */
static bool (*const asked[])(struct limit_view *v) = {
	at_computation, at_changes,         at_checkpoints, at_memory,        at_io_limit,
	at_beginnings,  limit_at_framework, limit_at_ranks, limit_at_workers, at_the_rest,
};

/* ---- what they share ---- */

/* s, mean over ranks, that ranks waited at the barrier because computation took others longer. */
static double skew_of_compute(const struct result *r, uint32_t epochs)
{
	double sum = 0;

	for (uint32_t e = 0; e < epochs; e++) {
		const struct rank_epoch *first = &r->rank[result_present_rank(r)].epoch[e];

		for (uint32_t b = 0; b < first->blocks; b++)
			for (uint64_t i = 0; i < first->block[b].steps; i++) {
				double most = 0, all = 0, ranks = 0;

				for (uint32_t k = 0; k < r->ranks; k++) {
					const struct rank_epoch *ep = &r->rank[k].epoch[e];
					const struct step_times *t;
					double took;

					if (b >= ep->blocks || i >= ep->block[b].steps)
						continue;
					t = &ep->block[b].step[i];
					took = (double)(t->compute_end_ns - t->compute_begin_ns);
					most = fmax(most, took);
					all += took;
					ranks++;
				}
				sum += ranks > 0 ? most - all / ranks : 0;
			}
	}
	return sum / 1e9;
}

/* s, mean over ranks, that they waited for the first batch of each epoch. */
static double first_waits(const struct result *r, uint32_t epochs)
{
	double sum = 0, ranks = 0;

	for (uint32_t k = 0; k < r->ranks; k++) {
		ranks += !r->rank[k].lost;
		for (uint32_t e = 0; e < epochs; e++) {
			const struct rank_epoch *ep = &r->rank[k].epoch[e];

			if (ep->blocks && ep->block[0].steps)
				sum += (double)(ep->block[0].step[0].got_ns -
						ep->block[0].step[0].ask_ns);
		}
	}
	return ranks > 0 ? sum / ranks / 1e9 : 0;
}

static void view_fill(struct limit_view *v)
{
	const struct result *r = v->r;
	double room;

	v->law = costs_store_law(r);
	v->stations = stations_of(r, &v->law);
	v->compute = v->d->mean_s[TIME_COMPUTE];
	for (int p = TIME_WAIT; p <= TIME_WAIT_END; p++)
		v->wait += v->d->mean_s[p];
	v->skew = v->d->mean_s[TIME_SKEW];
	v->skew_of_compute = fmin(v->skew, skew_of_compute(r, v->m->epochs));
	v->first = fmin(v->wait, first_waits(r, v->m->epochs));
	v->lost_to_data = v->wait + v->skew - v->skew_of_compute;
	v->loss = v->d->wall_s - v->compute;
	v->workers = fmax(1, r->rank[result_present_rank(r)].workers);
	for (int k = 0; k < WORK_KINDS; k++)
		v->work += v->d->work_s[k];
	v->io = v->d->work_s[WORK_OPEN] + v->d->work_s[WORK_META] + v->d->work_s[WORK_DATA];
	for (uint32_t i = 0; i < r->epochs_done; i++)
		v->cpu += (double)r->usage[i].cpu_ns / 1e9;
	room = v->d->wall_s * v->workers * v->d->ranks;
	v->busy = room > 0 ? fmin(1, v->work / room) : 0;
	v->inside = room > 0 ? fmin(1, v->io / room) : 0;
}

/* The profile built in for the framework that the run's loader is of; NULL: there is none. */
static struct framework_costs *builtin_costs(const struct workload *w)
{
	unsigned loader_of = workload_loader(w)->default_of;
	const char *name = NULL;

	for (int i = 0; workload_framework_names[i] && !name; i++)
		if (loader_of & 1u << i)
			name = framework_profile(i);
	return name ? costs_load(name, NULL) : NULL;
}

/* Where the run has spent no costs, what it would have been with those built in. */
static void look_ahead(struct limit_view *v, struct outlook *out, struct basis **basis)
{
	const struct workload *w = v->r->workload;
	struct framework_costs *builtin = w->costs ? NULL : builtin_costs(w);

	*basis = xcalloc(1, sizeof(**basis));
	outlook_compute(v->r, v->m->epochs, &v->law, w->costs ? w->costs : builtin, out, *basis);
	(*basis)->au = v->m->train_au.mean;
	costs_release(builtin);
}

void limit_find(const struct result *r, const struct run_metrics *m, struct limit *limit,
		struct outlook *outlook, struct basis **basis)
{
	struct limit_view v = {
		.r = r, .m = m, .limit = limit, .outlook = outlook, .d = &r->judged.time};
	char why[sizeof(limit->text)], cause[sizeof(limit->cause)];

	if (m->epochs == 0 || !r->rank || !r->usage)
		return;
	if (!(v.d->wall_s > 0) || v.d->steps == 0)
		return;
	view_fill(&v);
	look_ahead(&v, outlook, basis);
	/* what a run of two halves would predict is true for neither */
	if (limit_no_forecast(r, v.loss, why, sizeof(why))) {
		*outlook = (struct outlook){0};
		snprintf(outlook->why, sizeof(outlook->why), "%.150s", why);
	}
	limit->loss_share = 100 * v.loss / v.d->wall_s;
	/* of a run without processors nothing can be said about the storage, nor predicted */
	if (v.loss >= SMALL_LOSS * v.d->wall_s && limit_cpu(r, cause, outlook, why, sizeof(why))) {
		limit_say(&v, cause, "%s", why);
		return;
	}
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]) && !asked[i](&v); i++)
		continue;
	if (v.loss >= SMALL_LOSS * v.d->wall_s)
		outlook_say_best(outlook, r->rank[result_present_rank(r)].workers,
				 r->judged.measured.taken & TAKES_LASTING, limit->remedy,
				 sizeof(limit->remedy));
	add_evaluation(&v);
}
