/* What the runs of a search say: the point of each, which of them count, and the knee. */
#include "study/capacity_known.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/file.h"
#include "base/str.h"
#include "base/transfer.h"
#include "base/vector.h"
#include "judge/verdict.h"
#include "readback/figures.h"
#include "readback/record.h"
#include "readback/result_folder.h"
#include "result/json_out.h"
#include "study/beside.h"
#include "workload/need.h"

static const double PERIODS = 2.2;      /* of what varies, in a point */
static const double NOTICED = 2;        /* times the points lost for want of a processor */
static const double BEYOND = 1.5;       /* times what was read before the storage became slower */
static const double LONG_ENOUGH = 0.9;  /* of that: the last points are as long as could be told */
static const double UNREAD = 10;        /* times the samples that all before it read, to be cold */
static const double WARMS = 2;          /* times faster reading of the same number, later */
static const double WARMS_STEP = 0.1;   /* of a step, that this is at least */
static const double FAST_SHARE = 0.125; /* of reads, that are the fast ones of a run */
static const double FAST = 8; /* times faster than a read that nothing disturbs: a cache */
static const double STALL_UNSURE = 0.1; /* of one checkpoint that was seen alone */
static const double CHANGED_POINTS = 4;
static const double CHANGED_ERRORS = 5;

/* Of the measured steps of a point, so that they show what varies. */
double capacity_least_seconds(const struct capacity *c, uint32_t accelerators)
{
	return fmin(c->o->time_s, fmax(c->least_s, c->least_use / accelerators));
}

/* ---- what is known ---- */

/* Long enough to be the answer. */
static bool lasts(const struct capacity_run *r)
{
	return r->full || r->confirms ||
	       r->measured_s + r->slowed_s >= LONG_ENOUGH * CAPACITY_CONFIRM_S;
}

size_t capacity_knee_runs(const struct capacity *c, struct knee_run *out)
{
	size_t n = 0;

	for (size_t i = 0; i < c->runs; i++) {
		const struct capacity_run *r = &c->run[i];

		if (!r->outdated)
			out[n++] = (struct knee_run){.accelerators = r->accelerators,
						     .au = r->au,
						     .error = r->error,
						     .blocks = r->blocks,
						     .client = r->client,
						     .lasting = lasts(r),
						     .index = i};
	}
	return n;
}

/* Of a run that read again: an eighth of its reads were far faster than those of the first run,
 * which one accelerator made alone and which met the target, so that none of them waited for
 * others. */
static bool is_helped(const struct capacity *c, const struct capacity_run *r)
{
	const struct capacity_run *first = &c->run[0];

	return r != first && !r->fresh && first->accelerators == 1 && first->au >= c->o->target &&
	       first->request_s > FAST * r->fast_s && first->read_s > WARMS_STEP * first->step_s;
}

static bool met_without_help(const struct capacity *c, uint32_t accelerators)
{
	for (size_t i = 0; i < c->runs; i++)
		if (c->run[i].accelerators == accelerators && !c->run[i].outdated &&
		    c->run[i].au >= c->o->target && !is_helped(c, &c->run[i]))
			return true;
	return false;
}

/* Numbers that miss the target with the help of a cache miss it by more without: what lies between
 * them and the largest that met it without is not known, and no curve leads there. */
static void widen(struct capacity *c)
{
	struct knee *k = &c->knee;
	uint32_t met = 0, missed = UINT32_MAX;

	c->helped = false;
	for (size_t i = 0; i < k->points; i++) {
		uint32_t n = k->point[i].accelerators;

		if (k->point[i].fit < k->target)
			LOWER(missed, n);
		else if (met_without_help(c, n))
			RAISE(met, n);
		else
			c->helped = true;
	}
	if (k->points == 0 || missed == UINT32_MAX || missed - met <= 1 ||
	    !(c->warms || (c->helped && met < k->accelerators)))
		return;
	LOWER(k->low, met);
	RAISE(k->high, missed - 1);
}

void capacity_know(struct capacity *c)
{
	AUTO_FREE struct knee_run *run = xcalloc(c->runs + 1, sizeof(*run));
	size_t n = capacity_knee_runs(c, run);

	knee_release(&c->knee);
	knee_find(run, n, c->o->target, &c->knee);
	widen(c);
}

static void tell_event(const struct capacity *c, enum capacity_event_kind kind, double seconds)
{
	const struct capacity_event event = {.kind = kind, .seconds = seconds};

	if (c->tell)
		c->tell(c->arg, &event);
}

/* Too short to have seen what varies. */
static bool too_short(const struct capacity *c, const struct capacity_run *r)
{
	return !r->full && r->measured_s + r->slowed_s <
				   LONG_ENOUGH * capacity_least_seconds(c, r->accelerators);
}

/* A short one that misses the target misses it with what varies, too: it counts until a longer one
 * of the same number tells by how much. */
static void leave_short_out(struct capacity *c)
{
	const struct capacity_run *last = &c->run[c->runs - 1];
	double lasted = last->measured_s + last->slowed_s;

	if (!last->full &&
	    lasted < CAPACITY_HALF_ENOUGH * capacity_least_seconds(c, last->accelerators))
		return;
	for (size_t i = 0; i + 1 < c->runs; i++)
		if (c->run[i].accelerators == last->accelerators && too_short(c, &c->run[i]) &&
		    c->run[i].measured_s + c->run[i].slowed_s < lasted)
			c->run[i].outdated = true;
}

/* Stalls that come again, slow phases, a rate that falls: a point must last for two periods of
 * them, so that each has its share, and beyond what uses up a credit. */
static void look_for_variation(struct capacity *c)
{
	const struct capacity_run *last = &c->run[c->runs - 1];
	double lasts = last->measured_s + last->slowed_s;
	double need = fmax(PERIODS * last->varies_s, BEYOND * last->slowed_s);
	double use = BEYOND * last->slowed_s * last->accelerators;

	if (!(need > fmax(lasts, c->least_s)) && !(use > c->least_use) &&
	    !(last->slowed_s > 0 && need > c->least_s))
		return;
	c->least_s = fmax(c->least_s, fmin(need, c->o->time_s));
	c->least_use = fmax(c->least_use, use);
	for (size_t i = 0; i + 1 < c->runs; i++)
		if (c->run[i].au >= c->o->target && too_short(c, &c->run[i]))
			c->run[i].outdated = true;
	tell_event(c, CAPACITY_LONGER, capacity_least_seconds(c, last->accelerators));
}

/* The same number gave another AU before, beyond chance: credit of a burst is used up, another
 * program reads, a cache of the storage has filled. What was measured before says nothing of the
 * storage as it is now. */
static bool has_changed(const struct capacity *c, double *before)
{
	const struct capacity_run *last = &c->run[c->runs - 1];
	double sum = 0, error = last->error * last->error, disturbed = last->disturbed;
	size_t n = 0;

	for (size_t i = 0; i + 1 < c->runs; i++) {
		const struct capacity_run *r = &c->run[i];

		if (r->outdated || r->accelerators != last->accelerators)
			continue;
		sum += r->au;
		error += r->error * r->error;
		disturbed = fmax(disturbed, r->disturbed);
		n++;
	}
	*before = sum / (double)n;
	return n && fabs(*before - last->au) >
			    disturbed + fmax(CHANGED_POINTS, CHANGED_ERRORS * sqrt(error));
}

/* What a cache may have served says nothing of the storage where the target was met. A run is cold
 * that read new data, or much more than all before it together, of which it may have read each
 * sample. */
static void keep_cold(struct capacity *c)
{
	double read = 0;

	/* what varied was the cache, and no run was too short for that */
	if (!c->warms && !c->changed) {
		c->least_s = c->least_use = 0;
		for (size_t i = 0; i < c->runs; i++)
			c->run[i].outdated = false;
	}
	c->warms = true;
	for (size_t i = 0; i < c->runs; i++) {
		struct capacity_run *r = &c->run[i];
		bool cold = r->fresh || r->samples_read >= UNREAD * read;

		read = r->samples_read + (r->fresh ? 0 : read);
		r->outdated = r->outdated || (!cold && r->au >= c->o->target);
	}
}

/* The first run of the same number, which found its data as nobody had read it. */
static const struct capacity_run *first_of(const struct capacity *c, uint32_t accelerators)
{
	for (size_t i = 0; i + 1 < c->runs; i++)
		if (c->run[i].accelerators == accelerators)
			return &c->run[i];
	return NULL;
}

/* Reading the same became faster, although waits may not tell of it. */
static bool reads_faster(const struct capacity *c)
{
	const struct capacity_run *last = &c->run[c->runs - 1];
	const struct capacity_run *first = first_of(c, last->accelerators);

	return first && !last->fresh && first->read_s > WARMS * last->read_s &&
	       first->read_s - last->read_s > (WARMS_STEP + first->disturbed / 100) * last->step_s;
}

static void look_for_change(struct capacity *c)
{
	struct capacity_run *last = &c->run[c->runs - 1];
	double before;
	bool changed = has_changed(c, &before);

	if (c->warms) {
		keep_cold(c);
		return;
	}
	if (!last->fresh && ((changed && last->au > before) || reads_faster(c))) {
		keep_cold(c);
		tell_event(c, CAPACITY_CHANGED, 0);
		return;
	}
	if (c->changed || !changed)
		return;
	c->changed = true;
	c->changed_at = last->accelerators;
	c->changed_from = before;
	c->changed_to = last->au;
	for (size_t i = 0; i + 1 < c->runs; i++)
		c->run[i].outdated = true;
	tell_event(c, CAPACITY_CHANGED, 0);
}

static void look_back(struct capacity *c)
{
	look_for_variation(c);
	leave_short_out(c);
	look_for_change(c);
}

/* ---- beside its result ---- */

unsigned capacity_repeats(const struct capacity *c, uint32_t accelerators)
{
	unsigned n = 1;

	for (size_t i = 0; i < c->runs; i++)
		n += c->run[i].accelerators == accelerators;
	return n;
}

bool capacity_saves(const struct capacity_run *r)
{
	return r->saves > 0 || r->save_every_s > 0;
}

/* What the design knew of a run, and its result does not say: beside its result. */
void capacity_put_mark(const struct capacity_run *r, json_t *about)
{
	json_put_real(about, "samples_read", r->samples_read);
	json_put_bool(about, "full", r->full);
	json_put_bool(about, "confirms", r->confirms);
	json_put_bool(about, "probes", r->probes);
	if (!capacity_saves(r))
		return;
	json_put_real(about, "whole_steps", r->whole_steps);
	json_put_real(about, "checkpoints", r->saves);
	json_put_real(about, "checkpoint_every_s", r->save_every_s);
}

static double number_or_0(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

static void read_mark(const char *folder, struct capacity_run *r)
{
	json_t *mark = result_folder_json(folder, search_mark, NULL);

	r->seconds = derive_number(mark, "seconds");
	r->fresh = json_is_true(json_object_get(mark, "fresh"));
	r->full = json_is_true(json_object_get(mark, "full"));
	r->confirms = json_is_true(json_object_get(mark, "confirms"));
	r->probes = json_is_true(json_object_get(mark, "probes"));
	r->samples_read = number_or_0(mark, "samples_read");
	r->whole_steps = number_or_0(mark, "whole_steps");
	r->saves = number_or_0(mark, "checkpoints");
	r->save_every_s = number_or_0(mark, "checkpoint_every_s");
	json_decref(mark);
}

/* ---- a point ---- */

/* Of what was read by busy readers, to be a rate: turns of all of them, and a share of the time. */
static const double TURNS_BUSY = 2, BUSY_LEAST = 0.2;

/* Samples/s that the storage gave the readers while they were busy: without those that the start
 * of an epoch reads ahead where enough was read later. A point that hardly kept them busy says no
 * more than what it used. */
static double delivered(const struct run_record *r, const struct run_figures *f)
{
	const struct steady_au *s = &r->facts.steady;
	double batch = (double)r->workload.reader.batch_size, turn = (double)s->turn * r->ranks;

	if (f->later_batches >= TURNS_BUSY * turn && f->later_busy_s >= BUSY_LEAST * f->epochs_s)
		return batch * f->later_batches / f->later_busy_s;
	if (f->batches >= TURNS_BUSY * turn && f->busy_s >= BUSY_LEAST * f->epochs_s)
		return batch * f->batches / f->busy_s;
	return batch * r->ranks / s->step_s;
}

/* AU of the whole workload from that between its checkpoints. Steps after one that workers have
 * read for meanwhile are faster, and that is of the checkpoint. */
static void add_saves(const struct steady_au *s, const struct run_figures *f,
		      struct capacity_run *out)
{
	double gain = isfinite(s->gain_s) ? s->gain_s : 0, share = 1, unsure = STALL_UNSURE;

	out->stall_s = 0;
	if (!(f->saves > 0) || !isfinite(f->stall_s))
		return;
	out->stall_s = fmax(0, f->stall_s - gain);
	if (out->save_every_s > 0)
		share = 1 - fmin(0.99, out->stall_s / out->save_every_s);
	else if (out->whole_steps > 0)
		share = out->whole_steps * out->step_s /
			(out->whole_steps * out->step_s + out->saves * out->stall_s);
	if (f->saves > 1 && f->stall_s > 0)
		unsure = fmin(1, f->stall_dev_s / f->stall_s / sqrt(f->saves));
	out->au = out->between_au * share;
	out->error = hypot(out->error * share, out->au * (1 - share) * unsure);
}

static void blame_saves(struct capacity_run *out)
{
	char stall[32], every[32];

	out->cause = CAUSE_CHECKPOINT;
	if (out->save_every_s > 0)
		snprintf(every, sizeof(every), "every %.3g s", out->save_every_s);
	else
		snprintf(every, sizeof(every), "%.0f in %.0f steps", out->saves, out->whole_steps);
	snprintf(
		out->text, sizeof(out->text),
		"Checkpoints: each stops training for %s, %s. AU between them is %.1f %%, and with "
		"them %.1f %%",
		str_seconds(out->stall_s, stall, sizeof(stall)), every, out->between_au, out->au);
}

/* What the other workloads had while it was measured: `au` gets that of the one which is nearest to
 * its target, or most below it. */
static int take_other(const struct capacity *c, const struct run_record *r, size_t i,
		      struct capacity_run *out, struct err *e)
{
	const struct capacity_other *x = &c->o->other[i];
	AUTO_FREE char *below = path_join(r->folder, BESIDE_FOLDER);
	AUTO_FREE char *folder = path_join(below, x->name);
	struct run_record other = {0};
	struct run_figures f;
	struct steady_au s;
	double scale = c->o->target / x->target, lost;
	int rc = 0;

	record_load(&other, folder);
	if (other.broken)
		rc = err_set(e, ERR_DATA, "%.900s", other.broken);
	else
		steady_au_between(&other, r->facts.steady.begin_s, r->facts.steady.end_s, &s);
	if (rc == 0 && !s.known)
		rc = err_set(e, ERR_DATA, "'%s' made no step beside the run in '%s'", x->name,
			     r->folder);
	if (rc == 0) {
		figures_find(&f, &other);
		lost = isfinite(f.no_processor) ? f.no_processor : 0;
		out->other[i].au = s.au;
		out->other[i].error = hypot(s.error, lost / 2);
		if (scale * s.au < out->au) {
			out->first = (int)i;
			out->au = scale * s.au;
			out->error = scale * out->other[i].error;
			out->blocks = s.blocks;
			out->cause = f.cause;
			out->client = out->au < c->o->target &&
				      (cause_is_of(f.cause) & CAUSE_OF_CLIENT || f.machine_failed ||
				       out->au + lost >= c->o->target);
			snprintf(out->text, sizeof(out->text), "%s: %.900s", x->name, f.limit);
		}
	}
	record_release(&other);
	return rc;
}

static int take_others(const struct capacity *c, const struct run_record *r,
		       struct capacity_run *out, struct err *e)
{
	int rc = 0;

	out->own_au = out->au;
	out->first = -1;
	out->others = (int)c->o->others;
	for (size_t i = 0; rc == 0 && i < c->o->others; i++)
		rc = take_other(c, r, i, out, e);
	return rc;
}

/* ---- the probe after a run ---- */

static const double FLAT = 0.1;       /* of rates of few and many readers that are the same */
static const double SIZES_LEAST = 2;  /* times the bytes of a request, to tell them from requests */
static const double SAME_RATE = 0.15; /* of what limits, with both sizes */
static const double ANOTHER_RATE = 1.5;
static const double OPENS_MOST = 0.3; /* of the time of reads: opens would hide them */
static const double ALONE = 0.8;      /* of the rate, that one reader has where no queue limits */

/* The fastest, where twice the readers got no more; NULL: more readers get more. */
static const struct part *ceiling_of(const struct part *points)
{
	const struct part *top = NULL, *last = NULL, *at;

	for (size_t i = 0; (at = part_at(points, i)); i++) {
		double rate = figure(at, F_PROBE_POINT_REQUEST_RATE);

		top = !top || rate > figure(top, F_PROBE_POINT_REQUEST_RATE) ? at : top;
		last = at;
	}
	if (!last || part_at(points, 1) == NULL)
		return NULL;
	for (size_t i = 0; (at = part_at(points, i)) && at != last; i++)
		if (2 * figure(at, F_PROBE_POINT_READERS) <= figure(last, F_PROBE_POINT_READERS) &&
		    figure(at, F_PROBE_POINT_REQUEST_RATE) >=
			    (1 - FLAT) * figure(last, F_PROBE_POINT_REQUEST_RATE))
			return top;
	return NULL;
}

static double request_size(const struct part *p)
{
	return figure(p, F_PROBE_POINT_BYTES) / figure(p, F_PROBE_POINT_REQUESTS);
}

/* Reads of another size have the same bytes/s, or the same requests/s. */
static void take_probe(const struct run_record *r, struct capacity_run *out)
{
	const struct part *probe = record_part(r, F_RUN_PROBE), *sized = NULL, *at;
	const struct part *points = part(probe, F_PROBE_POINTS), *top = ceiling_of(points);
	double bytes, requests;
	char one[32], other[32], rate[48], rate_other[48];

	for (size_t i = 0; (at = part_at(part(probe, F_PROBE_SIZED), i)); i++)
		sized = at;
	if (!top || !sized || !(request_size(top) >= SIZES_LEAST * request_size(sized)) ||
	    !(figure(sized, F_PROBE_POINT_OPEN) < OPENS_MOST * figure(sized, F_PROBE_POINT_READ)))
		return;
	bytes = figure(sized, F_PROBE_POINT_BYTE_RATE) / figure(top, F_PROBE_POINT_BYTE_RATE);
	requests =
		figure(sized, F_PROBE_POINT_REQUEST_RATE) / figure(top, F_PROBE_POINT_REQUEST_RATE);
	str_bytes(request_size(top), one, sizeof(one));
	str_bytes(request_size(sized), other, sizeof(other));
	if (fabs(bytes - 1) < SAME_RATE && requests > ANOTHER_RATE) {
		out->probed = CAUSE_BANDWIDTH;
		snprintf(out->probed_text, sizeof(out->probed_text),
			 "Probed after a run: %s by requests of %s and %s by requests of %s. The "
			 "bytes limit, not the number of requests.",
			 need_rate_text(figure(top, F_PROBE_POINT_BYTE_RATE), rate, sizeof(rate)),
			 one,
			 need_rate_text(figure(sized, F_PROBE_POINT_BYTE_RATE), rate_other,
					sizeof(rate_other)),
			 other);
	} else if (fabs(requests - 1) < SAME_RATE && bytes * ANOTHER_RATE < 1) {
		out->probed = figure(part_at(points, 0), F_PROBE_POINT_REQUEST_RATE) <
					      ALONE * figure(top, F_PROBE_POINT_REQUEST_RATE)
				      ? CAUSE_QUEUE
				      : CAUSE_REQUESTS;
		snprintf(out->probed_text, sizeof(out->probed_text),
			 "Probed after a run: %.4g requests/s of %s and %.4g of %s; one reader "
			 "alone has %.4g. The number of requests limits, not their bytes.",
			 figure(top, F_PROBE_POINT_REQUEST_RATE), one,
			 figure(sized, F_PROBE_POINT_REQUEST_RATE), other,
			 figure(part_at(points, 0), F_PROBE_POINT_REQUEST_RATE));
	}
}

/* Upper bounds of buckets are as good as times here. */
static void take_latency(const struct run_record *r, struct capacity_run *out)
{
	const struct part *data =
		part_named(record_part(r, F_RUN_TRAINING), F_TRAINING_IO, IO_DATA);
	const struct part *latency = part(data, F_IO_KIND_LATENCY);
	const json_t *buckets = figure_json(latency, F_LATENCY_BUCKETS), *one;
	double all = figure(latency, F_LATENCY_COUNT), below = 0;
	size_t i;

	out->request_s = figure(latency, F_LATENCY_P50) * 1e-9;
	json_array_foreach(buckets, i, one)
	{
		below += json_number_value(json_array_get(one, 1));
		if (below >= FAST_SHARE * all) {
			out->fast_s = json_number_value(json_array_get(one, 0)) * 1e-9;
			break;
		}
	}
}

static void take_record(const struct capacity *c, const struct run_record *r,
			struct capacity_run *out)
{
	const struct steady_au *s = &r->facts.steady;
	struct run_figures f;

	figures_find(&f, r);
	run_name_of(&out->name, r);
	out->between_au = s->au;
	out->blocks = s->blocks;
	out->step_s = s->step_s;
	out->measured_s = s->measured_s;
	/* a wait for a processor is none for the storage */
	out->varies_s = s->alone > 0 && s->alone < NOTICED * f.no_processor ? 0 : s->varies_s;
	out->slowed_s = s->slowed_s;
	out->warm = isfinite(s->later_au);
	out->read_s = figure(part(record_part(r, F_RUN_TRAINING), F_TRAINING_DECOMPOSITION),
			     F_DECOMPOSITION_SERVICE_MEAN);
	out->request_bytes = f.returned_bytes / f.requests;
	take_latency(r, out);
	out->whole_au = f.whole_au;
	out->samples_per_s = delivered(r, &f);
	out->bytes_per_s = out->samples_per_s * f.returned_bytes / f.samples;
	out->client_busy = f.client_busy;
	out->run_busy = f.run_busy;
	out->cached_share = r->facts.cached_share;
	/* points of AU that a client without other work might have had more */
	out->disturbed = isfinite(f.no_processor) ? f.no_processor : 0;
	out->error = hypot(s->error, out->disturbed / 2);
	out->au = out->between_au;
	add_saves(s, &f, out);
	out->client = out->au < c->o->target &&
		      (cause_is_of(f.cause) & CAUSE_OF_CLIENT || f.machine_failed ||
		       out->au + out->disturbed >= c->o->target);
	out->cause = f.cause;
	snprintf(out->text, sizeof(out->text), "%s", f.limit);
	if (out->au < c->o->target && out->between_au >= c->o->target)
		blame_saves(out);
	take_probe(r, out);
	snprintf(out->failed, sizeof(out->failed), "%s", f.failed ? f.failed->name : "");
}

int capacity_read_point(const struct capacity *c, const char *folder, struct capacity_run *out,
			struct err *e)
{
	AUTO_FREE char *result = path_join(folder, "result.json");
	struct run_record r = {0};
	int rc = 0;

	if (c->o->hosts && !file_exists(result))
		return err_set(e, -ENOENT,
			       "the run left no result in '%s' on this machine: it is written on "
			       "the first host ('%s'), which must have the folder of the search in "
			       "common with this machine",
			       folder, c->o->host[0].name);
	read_mark(folder, out);
	record_load(&r, folder);
	if (r.broken)
		rc = err_set(e, ERR_DATA, "%.900s", r.broken);
	else
		take_record(c, &r, out);
	if (rc == 0)
		rc = take_others(c, &r, out, e);
	if (rc == 0 && !isfinite(out->au))
		rc = err_set(e, ERR_DATA,
			     "the run in '%s' has no step after those that its prefetched "
			     "batches serve",
			     folder);
	record_release(&r);
	return rc;
}

/* ---- all of them ---- */

void capacity_add(struct capacity *c, const struct capacity_run *run)
{
	VECTOR_PUSH(c->run, c->runs, c->room, *run);
	c->seconds += isfinite(run->seconds) ? run->seconds : 0;
	look_back(c);
}

/* ---- made again ---- */

struct again {
	struct capacity_options o;
	struct capacity_other other[CAPACITY_OTHERS_MOST];
	struct capacity c;
	bool gone; /* a run is not there */
};

static void begin_others(struct again *a, const json_t *stated)
{
	const json_t *others = json_object_get(stated, "others"), *one;
	size_t i;

	json_array_foreach(others, i, one)
	{
		const char *name = derive_string(one, "workload");

		if (i == CAPACITY_OTHERS_MOST)
			break;
		/* the name is that of a folder below the run's own */
		a->other[i] = (struct capacity_other){
			.name = name && !strchr(name, '/') && name[0] != '.' ? name : "",
			.accelerators = (uint32_t)number_or_0(one, "accelerators"),
			.target = derive_number(one, "target_percent")};
		a->o.others = i + 1;
	}
	a->o.other = a->other;
}

static void *begin_again(const json_t *stated, const char *folder)
{
	const char *ended = derive_string(stated, "ended_by");
	const char *left_out = derive_string(stated, "left_out");
	struct again *a = xcalloc(1, sizeof(*a));

	a->o = (struct capacity_options){.name = derive_string(stated, "workload"),
					 .folder = folder,
					 .time_s = derive_number(stated, "time_s"),
					 .target = derive_number(stated, "target_percent")};
	begin_others(a, stated);
	a->c = (struct capacity){.o = &a->o,
				 .complete = json_is_true(json_object_get(stated, "complete")),
				 .need_samples = derive_number(stated, "need_samples_per_s"),
				 .need_bytes = derive_number(stated, "need_bytes_per_s")};
	snprintf(a->c.stopped_by, sizeof(a->c.stopped_by), "%s", ended ? ended : "");
	snprintf(a->c.left_out, sizeof(a->c.left_out), "%s", left_out ? left_out : "");
	return a;
}

static const double NEED_SHARE = 0.02; /* sizes of files are drawn */

static void check_need(const struct again *a, const struct run_record *r, struct derive *d)
{
	const struct need *n = &r->facts.need;

	derive_near(d, a->c.need_samples, n->samples, NEED_SHARE * n->samples, "its runs",
		    CAPACITY_NAME " need_samples_per_s");
	derive_near(d, a->c.need_bytes, n->bytes, NEED_SHARE * n->bytes, "its runs",
		    CAPACITY_NAME " need_bytes_per_s");
}

static void take_again(void *of, const json_t *row, struct run_record *r, struct derive *d)
{
	struct again *a = of;
	struct capacity *c = &a->c;
	struct capacity_run run = {
		.accelerators = (uint32_t)json_integer_value(json_object_get(row, "accelerators")),
		.steps = (uint64_t)json_integer_value(json_object_get(row, "steps"))};

	a->gone = a->gone || !r;
	if (!r)
		return;
	run.repeat = capacity_repeats(c, run.accelerators);
	read_mark(r->folder, &run);
	take_record(c, r, &run);
	a->gone = take_others(c, r, &run, NULL) < 0 || a->gone;
	run_name_stated(&run.name, row);
	derive_equal(d, run.accelerators, r->ranks, "its run", CAPACITY_NAME " accelerators");
	derive_text(d, a->o.name, sums_workload(r), "its run", CAPACITY_NAME " workload");
	if (r->has_workload) {
		derive_equal(d, (double)run.steps, (double)r->workload.train.total_training_steps,
			     "its run", CAPACITY_NAME " steps of %u accelerators",
			     run.accelerators);
		check_need(a, r, d);
	}
	capacity_add(c, &run);
}

static json_t *made_again(void *of, struct derive *d)
{
	struct again *a = of;

	/* the answer is one of all runs */
	if (a->gone) {
		derive_unchecked(d, "runs that it counts are not there: nothing was made again");
		return NULL;
	}
	capacity_know(&a->c);
	return capacity_json(&a->c);
}

static void release_again(void *of)
{
	struct again *a = of;

	capacity_release(&a->c);
	free(a);
}

const struct sums_ops sums_capacity = {
	.file = CAPACITY_NAME,
	.list = "runs",
	.numbered = true,
	.told = "whether the search came to its end, what ended it, and what it left out",
	.begin = begin_again,
	.take = take_again,
	.made = made_again,
	.release = release_again,
};

void capacity_release(struct capacity *c)
{
	free(c->run);
	knee_release(&c->knee);
	*c = (struct capacity){0};
}
