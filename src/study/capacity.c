/* The search: which point is next, how long it is, and what is known at its end. */
#include "study/capacity.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/compare.h"
#include "base/file.h"
#include "base/str.h"
#include "base/transfer.h"
#include "base/vector.h"
#include "conf/override.h"
#include "judge/verdict.h"
#include "readback/figures.h"
#include "readback/record.h"
#include "readback/result_folder.h"
#include "result/json_out.h"
#include "result/seal.h"
#include "workload/need.h"

#define OWN_FOLDER "stoker_capacity"

const char search_mark[] = "capacity_run.json", search_log[] = "capacity_run.log";

static const uint64_t STEPS_LEAST = 16; /* measured, of a point's first run */
static const uint64_t TURNS_LEAST = 4;
static const double SECONDS_LEAST = 1;  /* of computation */
static const uint64_t LONGER = 4;       /* times as many steps near the knee */
static const double CONFIRM_S = 12;     /* of steps, of the number that is the answer */
static const double PERIODS = 2.2;      /* of what varies, in a point */
static const double NOTICED = 2;        /* times the points lost for want of a processor */
static const double BEYOND = 1.5;       /* times what was read before the storage became slower */
static const double LONG_ENOUGH = 0.9;  /* of that: the last points are as long as could be told */
static const double HALF_ENOUGH = 0.5;  /* of that: planned for it, and cut to periods */
static const double UNREAD = 1.3;       /* times the samples that were read before, to be cold */
static const double WARMS = 2;          /* times faster reading of the same number, later */
static const double WARMS_STEP = 0.1;   /* of a step, that this is at least */
static const double STALL_UNSURE = 0.1; /* of one checkpoint that was seen alone */
static const double ROOM = 0.5;         /* of the free space, for a checkpoint */
static const double CHANGED_POINTS = 4;
static const double CHANGED_ERRORS = 5;
static const double LIMIT_TIMES = 20; /* of the expected time, before a run is ended */
static const double LIMIT_S = 600;

/* ---- the folder ---- */

static void settings_key(const struct capacity_options *o, const char *of, char key[SHA256_HEX])
{
	const char *texts[] = {of, o->base.workload, o->base.config_dir};
	struct sha256 h;

	sha256_begin(&h);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		sha256_add(&h, texts[i] ? texts[i] : "", strlen(texts[i] ? texts[i] : "") + 1);
	for (size_t i = 0; i < o->hosts; i++) {
		sha256_add(&h, o->host[i].name, strlen(o->host[i].name) + 1);
		sha256_add(&h, &o->host[i].processes, sizeof(o->host[i].processes));
	}
	for (size_t i = 0; i < o->base.override_count; i++)
		sha256_add(&h, o->base.overrides[i], strlen(o->base.overrides[i]) + 1);
	sha256_end(&h, key);
}

/* A folder of results, or a run of some number of accelerators or repetition that would be taken
 * for one of the search. */
static bool is_of_others(const char *name)
{
	static const char *const files[] = {"result.json", "summary.json", "repeat.json",
					    "dlio.log",    RUN_LOCK_NAME,  "study.json"};
	uint32_t rank;
	int64_t number;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (strcmp(name, files[i]) == 0)
			return true;
	return seal_rank_file(name, &rank) || str_to_i64(name, &number);
}

/* What is there of others; NULL: nothing. Heap. */
static char *find_others(const char *folder)
{
	DIR *d = WITH_MEMORY(folder_open(folder));
	struct dirent *entry;
	char *found = NULL;

	while (d && !found && folder_next(d, &entry) > 0)
		if (is_of_others(entry->d_name))
			found = xstrdup(entry->d_name);
	if (d)
		closedir(d);
	return found;
}

static int check_folder(const struct search_folder *f, const char *folder, bool *begun,
			struct err *e)
{
	json_t *before = result_folder_json(folder, CAPACITY_NAME, NULL);
	const char *key = json_string_value(json_object_get(before, "key"));
	bool other = before && (!key || strcmp(key, f->key) != 0);
	AUTO_FREE char *others = before ? NULL : find_others(folder);

	*begun = before != NULL;
	json_decref(before);
	if (others)
		return err_set(e, ERR_USAGE,
			       "'%s' has results of something else ('%s'), which a search would "
			       "mix with its own: choose another folder with -o",
			       folder, others);
	return other ? err_set(e, ERR_USAGE,
			       "'%s' has a search with another workload or other keys: choose "
			       "another folder with -o, or repeat its command to continue it",
			       folder)
		     : 0;
}

int search_folder_save(const struct search_folder *f, const struct capacity_options *o,
		       json_t *answer, struct err *e)
{
	json_put_text(answer, "key", f->key);
	return seal_write(answer, o->folder, CAPACITY_NAME, e);
}

int search_folder_open(struct search_folder *f, const struct capacity_options *o, const char *of,
		       struct err *e)
{
	bool begun = false;
	json_t *nothing;
	int rc;

	f->lock.fd = -1;
	settings_key(o, of, f->key);
	rc = check_folder(f, o->folder, &begun, e);
	if (rc == 0)
		rc = runner_lock(&f->lock, o->folder, ".stoker_capacity.lock", "search", "-o", e);
	if (rc < 0 || begun)
		return rc;
	/* so that a search that is killed in its first run is known as one */
	nothing = json_object();
	json_put_mark(nothing);
	json_put_bool(nothing, "complete", false);
	return search_folder_save(f, o, nothing, e);
}

/* ---- rows ---- */

void search_row(const struct capacity_options *o, uint32_t accelerators, unsigned repeat,
		uint64_t steps, const struct str_list *keys, struct runner_row *row)
{
	struct str_list places = {0};

	if (o->hosts) {
		spread_put(o->host, o->hosts, accelerators, &places);
		str_list_copy(&places, o->ssh);
	} else {
		str_list_add(&places, xstrdup("-n"));
		str_list_add(&places, xasprintf("%u", accelerators));
	}
	runner_command(&o->base, "run", &places, keys, &row->command);
	runner_key(&row->command, row->key);
	row->folder = xasprintf("%s/%u/%u", o->folder, accelerators, repeat);
	row->about = json_object();
	json_put_int(row->about, "accelerators", accelerators);
	json_put_int(row->about, "steps", steps);
	/* what sets its runs apart from those of other searches: not what the search varies */
	if (o->typed)
		json_put(row->about, "overrides", json_texts(o->typed));
	str_list_release(&places);
}

bool search_lacks_resources(const struct err *why)
{
	return why->code == -ENOMEM || why->code == -EAGAIN || why->code == -EMFILE;
}

struct searching {
	struct capacity *c;
	struct samples samples;
	double compute_s; /* of a step */
	uint32_t most;    /* accelerators; falls where files or memory are too few */
	struct search_folder folder;
	struct capacity_run now; /* the row that is made: its number, repetition and length */
	const struct workload *w;
	char *saves;      /* folder of the checkpoints of its runs; NULL */
	bool looked_back; /* the first number was measured again, to see a cache */
};

/* ---- how long a point is ---- */

/* Of the run with the most accelerators so far, which says most of what the storage can do. */
static const struct capacity_run *highest(const struct capacity *c)
{
	const struct capacity_run *best = NULL;

	for (size_t i = 0; i < c->runs; i++)
		if (!c->run[i].outdated && isfinite(c->run[i].step_s) &&
		    (!best || c->run[i].accelerators > best->accelerators))
			best = &c->run[i];
	return best;
}

/* Time of a step, at most: as if all had been limited by a rate that stays the same. */
static double expected_step(const struct searching *s, uint32_t accelerators)
{
	const struct capacity_run *h = highest(s->c);
	double limited;

	for (size_t i = s->c->runs; i > 0; i--)
		if (s->c->run[i - 1].accelerators == accelerators)
			return s->c->run[i - 1].step_s;
	if (!h)
		return s->compute_s;
	limited = h->step_s * accelerators / h->accelerators;
	return h->au < 95 ? fmax(s->compute_s, limited) : s->compute_s;
}

/* Of the measured steps of a point, so that they show what varies. */
static double least_seconds(const struct capacity *c, uint32_t accelerators)
{
	return fmin(c->o->time_s, fmax(c->least_s, c->least_use / accelerators));
}

/* With which a point says something. */
static double least_steps(const struct searching *s)
{
	uint64_t turn = s->samples.workers ? s->samples.workers : 1;

	return fmax((double)STEPS_LEAST, (double)(TURNS_LEAST * turn));
}

/* Of a point's first run. */
static double first_steps(const struct searching *s)
{
	return fmax(least_steps(s), ceil(SECONDS_LEAST / s->compute_s));
}

static uint64_t steps_wanted(const struct searching *s, const struct search_step *next, bool *full)
{
	uint64_t turn = s->samples.workers ? s->samples.workers : 1;
	double first = first_steps(s), step_s = expected_step(s, next->accelerators);
	double most = floor(s->c->o->time_s / step_s) - (double)s->samples.ahead;
	double want =
		next->longer ? fmax((double)LONGER * first, 10 * (double)s->samples.ahead) : first;

	/* a step is at least as long as its computation */
	if (next->confirms)
		want = fmax(want, ceil(CONFIRM_S / step_s));
	want = fmax(want, ceil(least_seconds(s->c, next->accelerators) / step_s));
	most = fmax(most, 2 * (double)turn);
	*full = want >= most;
	return (uint64_t)fmin(want, most);
}

/* ---- what is known ---- */

/* Long enough to be the answer. */
static bool lasts(const struct capacity_run *r)
{
	return r->full || r->confirms || r->measured_s + r->slowed_s >= LONG_ENOUGH * CONFIRM_S;
}

static size_t knee_runs(const struct capacity *c, struct knee_run *out)
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

static void know(struct capacity *c)
{
	AUTO_FREE struct knee_run *run = xcalloc(c->runs + 1, sizeof(*run));
	size_t n = knee_runs(c, run);

	knee_release(&c->knee);
	knee_find(run, n, c->o->target, &c->knee);
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
	return !r->full &&
	       r->measured_s + r->slowed_s < LONG_ENOUGH * least_seconds(c, r->accelerators);
}

/* A short one that misses the target misses it with what varies, too: it counts until a longer one
 * of the same number tells by how much. */
static void leave_short_out(struct capacity *c)
{
	const struct capacity_run *last = &c->run[c->runs - 1];
	double lasted = last->measured_s + last->slowed_s;

	if (!last->full && lasted < HALF_ENOUGH * least_seconds(c, last->accelerators))
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
	tell_event(c, CAPACITY_LONGER, least_seconds(c, last->accelerators));
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
 * that read new data, or much more than all before it. */
static void keep_cold(struct capacity *c)
{
	double read = 0;

	c->warms = true;
	for (size_t i = 0; i < c->runs; i++) {
		struct capacity_run *r = &c->run[i];
		bool cold = r->fresh || r->samples_read >= UNREAD * read;

		read = r->fresh ? r->samples_read : fmax(read, r->samples_read);
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
	snprintf(out->failed, sizeof(out->failed), "%s", f.failed ? f.failed->name : "");
}

static int read_point(const struct capacity *c, const char *folder, struct capacity_run *out,
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
	record_load(&r, folder);
	if (r.broken)
		rc = err_set(e, ERR_DATA, "%.900s", r.broken);
	else
		take_record(c, &r, out);
	if (rc == 0 && !isfinite(out->au))
		rc = err_set(e, ERR_DATA,
			     "the run in '%s' has no step after those that its prefetched "
			     "batches serve",
			     folder);
	record_release(&r);
	return rc;
}

/* ---- rows ---- */

static unsigned repeats(const struct capacity *c, uint32_t accelerators)
{
	unsigned n = 1;

	for (size_t i = 0; i < c->runs; i++)
		n += c->run[i].accelerators == accelerators;
	return n;
}

static bool writes(const struct capacity_run *r)
{
	return r->saves > 0 || r->save_every_s > 0;
}

/* What the design knew of a run, and its result does not say: beside its result. */
static void put_mark(const struct capacity_run *r, json_t *about)
{
	json_put_real(about, "samples_read", r->samples_read);
	json_put_bool(about, "full", r->full);
	json_put_bool(about, "confirms", r->confirms);
	if (!writes(r))
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
	r->samples_read = number_or_0(mark, "samples_read");
	r->whole_steps = number_or_0(mark, "whole_steps");
	r->saves = number_or_0(mark, "checkpoints");
	r->save_every_s = number_or_0(mark, "checkpoint_every_s");
	json_decref(mark);
}

/* Number of accelerators that was measured. */
static uint32_t largest(const struct capacity *c)
{
	uint32_t most = 0;

	for (size_t i = 0; i < c->runs; i++)
		RAISE(most, c->run[i].accelerators);
	return most;
}

/* A number that this machine, or the data, is too small for ends the search below it: what is known
 * stays known. */
static int give_up(struct searching *s, uint32_t accelerators, uint32_t most, const struct err *why,
		   struct err *e)
{
	struct capacity *c = s->c;
	bool lacks = search_lacks_resources(why);

	*e = *why;
	if ((lacks || why->code == -ENODATA) && most >= 1 && c->runs && accelerators > largest(c)) {
		if (lacks)
			err_wrap(e, "%u accelerators", accelerators);
		snprintf(c->stopped_by, sizeof(c->stopped_by), "%s", e->text);
		s->most = most;
		return 0;
	}
	return e->code == ERR_CANCELED || e->code == ERR_USAGE
		       ? e->code
		       : err_wrap(e, "%u accelerator%s", accelerators,
				  accelerators == 1 ? "" : "s");
}

/* It was made as long as it needs to be, and was shorter: another one would be, too. */
static bool came_short(const struct capacity *c, uint32_t accelerators)
{
	for (size_t i = 0; i < c->runs; i++)
		if (c->run[i].accelerators == accelerators &&
		    c->run[i].measured_s >= HALF_ENOUGH * least_seconds(c, accelerators))
			return c->least_s > 0;
	return false;
}

static void leave_out(struct capacity *c, const char *what, const char *why)
{
	if (strstr(c->left_out, what))
		return;
	snprintf(c->left_out + strlen(c->left_out), sizeof(c->left_out) - strlen(c->left_out),
		 "%s%s: %s", c->left_out[0] ? "; " : "", what, why);
}

/* How often the workload itself writes a checkpoint with so many accelerators, which no short run
 * shows. */
static void find_saves(struct searching *s, uint32_t accelerators)
{
	const struct workload *w = s->w;
	AUTO_FREE char *near = NULL;
	struct run_foresight f;
	struct statvfs v;
	struct err why = {0};
	int rc;

	if (!w->workflow.checkpoint)
		return;
	rc = samples_whole_run(s->c, accelerators, &f, &why);
	if (rc < 0 || f.train_steps == 0) {
		leave_out(s->c, "checkpoints", rc < 0 ? why.text : "the workload has no steps");
		return;
	}
	near = path_nearest(w->checkpoint.checkpoint_folder, &(struct stat){0});
	if (near && statvfs(near, &v) == 0 &&
	    (double)f.checkpoint_bytes > ROOM * (double)v.f_bavail * (double)v.f_frsize) {
		leave_out(s->c, "checkpoints", "there is no room for one");
		return;
	}
	s->now.whole_steps = (double)f.train_steps;
	s->now.saves = (double)f.checkpoints;
	s->now.save_every_s = f.checkpoints_by_time ? w->checkpoint.seconds_between_checkpoints : 0;
}

static int plan_row(struct searching *s, const struct search_step *next, struct runner_row *row,
		    uint32_t *most, struct err *e)
{
	struct capacity *c = s->c;
	struct str_list keys = {0};
	struct samples_plan plan;
	struct samples_want want = {.first = (uint64_t)least_steps(s)};
	bool full;
	int rc;

	s->now = (struct capacity_run){.accelerators = next->accelerators,
				       .repeat = repeats(c, next->accelerators)};
	find_saves(s, next->accelerators);
	want.measured = steps_wanted(s, next, &full);
	want.saves = writes(&s->now);
	rc = samples_plan(&s->samples, c, next->accelerators, &want, &plan, &keys, most, e);
	if (rc == 0) {
		override_put(&keys, "train.epochs", "%llu", (unsigned long long)plan.epochs);
		override_put(&keys, "train.total_training_steps", "%llu",
			     (unsigned long long)plan.steps);
		if (want.saves)
			override_put_text(&keys, "checkpoint.checkpoint_folder", s->saves);
		s->now.steps = plan.steps;
		s->now.full = full || plan.all || came_short(c, next->accelerators);
		s->now.confirms = next->confirms;
		s->now.samples_read = plan.samples_read;
		search_row(c->o, next->accelerators, s->now.repeat, plan.steps, &keys, row);
		put_mark(&s->now, row->about);
		row->expected_s = expected_step(s, next->accelerators) * (double)plan.steps;
		row->limit_s = LIMIT_S + LIMIT_TIMES * row->expected_s;
	}
	str_list_release(&keys);
	return rc;
}

/* Before an answer that nothing missed: whether a cache has served it. */
static bool looks_back(struct searching *s, struct search_step *next)
{
	const struct capacity *c = s->c;
	const struct capacity_run *first = c->runs ? &c->run[0] : NULL;

	if (s->looked_back || c->warms || !first || s->samples.kind == SAMPLES_RUN ||
	    !c->knee.at_least || c->run[c->runs - 1].accelerators == first->accelerators)
		return false;
	s->looked_back = true;
	*next = (struct search_step){.accelerators = first->accelerators};
	return true;
}

static int next_row(void *arg, struct runner_row *row, struct err *e)
{
	struct searching *s = arg;
	struct capacity *c = s->c;

	for (;;) {
		AUTO_FREE struct knee_run *run = xcalloc(c->runs + 1, sizeof(*run));
		size_t n = knee_runs(c, run);
		struct search_bounds bounds = {c->o->target, s->most,
					       spread_processes(c->o->host, c->o->hosts),
					       c->least_s > 0};
		struct search_step next = search_next(run, n, &bounds);
		struct err why = {0};
		uint32_t most = 0;

		/* what was given cannot be read for the first time again */
		if (c->warms && s->samples.kind == SAMPLES_GIVEN)
			return 0;
		if (next.done && !looks_back(s, &next))
			return 0;
		s->samples.anew = c->warms;
		if (plan_row(s, &next, row, &most, &why) == 0)
			return 1;
		if (give_up(s, next.accelerators, most, &why, e) < 0)
			return e->code;
	}
}

static int prepare_row(void *arg, struct runner_row *row, struct err *e)
{
	struct searching *s = arg;
	int rc = samples_make(&s->samples, s->c, e);

	json_put_bool(row->about, "fresh", s->samples.unread);
	s->samples.unread = false;
	return rc;
}

static void tell_row(void *arg, enum runner_event event, const struct runner_row *row)
{
	const struct searching *s = arg;
	const struct capacity_event told = {.kind = event == RUNNER_RUN ? CAPACITY_RUN
									: CAPACITY_TICK,
					    .accelerators = s->now.accelerators,
					    .repeat = s->now.repeat,
					    .expected_s = row->expected_s,
					    .seconds = row->seconds};

	if (s->c->tell)
		s->c->tell(s->c->arg, &told);
}

static int take_row(void *arg, const struct runner_row *row, struct err *e)
{
	struct searching *s = arg;
	struct capacity *c = s->c;
	struct capacity_run run = s->now;
	const struct capacity_event event = {.kind = row->end == ROW_FOUND ? CAPACITY_FOUND
									   : CAPACITY_DONE,
					     .accelerators = run.accelerators,
					     .repeat = run.repeat,
					     .seconds = row->seconds,
					     .run = &run};

	if (s->saves)
		remove_tree(s->saves, NULL);
	if (row->end == ROW_FAILED)
		return give_up(s, run.accelerators, largest(c), &row->why, e);
	read_mark(row->folder, &run);
	if (read_point(c, row->folder, &run, e) < 0)
		return err_wrap(e, "%u accelerator%s", run.accelerators,
				run.accelerators == 1 ? "" : "s");
	VECTOR_PUSH(c->run, c->runs, c->room, run);
	c->seconds += isfinite(run.seconds) ? run.seconds : 0;
	look_back(c);
	know(c);
	if (c->tell)
		c->tell(c->arg, &event);
	return search_folder_save(&s->folder, c->o, capacity_json(c), e);
}

static int search(struct searching *s, struct err *e)
{
	const struct runner r = {.stop = s->c->o->stop,
				 .mark = search_mark,
				 .log = search_log,
				 .next = next_row,
				 .prepare = prepare_row,
				 .tell = tell_row,
				 .take = take_row,
				 .arg = s};
	int rc = runner_run(&r, e);

	s->c->complete = rc == 0;
	return rc;
}

/* ---- the whole ---- */

int capacity_find(struct capacity *c, const struct workload *w, const struct capacity_options *o,
		  capacity_event_fn tell, void *arg, struct err *e)
{
	AUTO_FREE char *saves = path_join(w->checkpoint.checkpoint_folder, OWN_FOLDER);
	AUTO_FREE char *above = path_nearest(w->checkpoint.checkpoint_folder, &(struct stat){0});
	struct searching s = {.c = c, .w = w, .most = o->max, .folder.lock.fd = -1, .saves = saves};
	struct err unclean = {0};
	bool began = false;
	int rc, clean = 0;

	*c = (struct capacity){.o = o, .tell = tell, .arg = arg};
	s.compute_s = time_dist_mean(&w->train.computation_time);
	if (w->workflow.evaluation)
		leave_out(c, "evaluations", "AU does not count their time");
	rc = samples_init(&s.samples, w, e);
	if (rc == 0) {
		struct need need;

		need_find(w, NEED_TRAINING, s.samples.file_bytes / (double)s.samples.per_file,
			  &need);
		c->need_samples = need.samples;
		c->need_bytes = need.bytes;
		snprintf(c->data, sizeof(c->data), "%s", s.samples.folder);
		rc = search_folder_open(&s.folder, o, "accelerators", e);
	}
	began = rc == 0;
	if (rc == 0)
		rc = search(&s, e);
	know(c);
	/* a search that goes on later makes its data again */
	if (began)
		clean = samples_clean(&s.samples, c, &unclean);
	if (began && w->workflow.checkpoint) {
		remove_tree(saves, NULL);
		remove_empty_folders(w->checkpoint.checkpoint_folder, above);
	}
	if (c->complete)
		rc = search_folder_save(&s.folder, o, capacity_json(c), e);
	if (rc == 0 && clean < 0) {
		*e = unclean;
		rc = clean;
	}
	samples_release(&s.samples);
	file_unlock(&s.folder.lock);
	return rc;
}

void capacity_release(struct capacity *c)
{
	free(c->run);
	knee_release(&c->knee);
	*c = (struct capacity){0};
}

/* ---- hosts ---- */

uint32_t spread_processes(const struct spread_host *host, size_t hosts)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < hosts; i++)
		sum += host[i].processes;
	return sum;
}

static uint32_t divisor(uint32_t a, uint32_t b)
{
	while (b) {
		uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* What is left when every process has as many: one for each host, then one more for those with two
 * processes, ... */
static void deal(const struct spread_host *host, size_t hosts, uint32_t left, uint32_t *share)
{
	for (uint32_t turn = 1; left; turn++)
		for (size_t i = 0; i < hosts && left; i++)
			if (host[i].processes >= turn) {
				share[i]++;
				left--;
			}
}

/* As hosts_parse (launch/hosts.h) reads it. */
static void put_host(struct buf *list, const char *name, uint32_t processes)
{
	bool bare = processes > 1 && strchr(name, ':') && !strchr(name, ']');

	buf_printf(list, "%s%s%s%s", list->len ? "," : "", bare ? "[" : "", name, bare ? "]" : "");
	if (processes > 1)
		buf_printf(list, ":%u", processes);
}

void spread_put(const struct spread_host *host, size_t hosts, uint32_t accelerators,
		struct str_list *command)
{
	uint32_t all = spread_processes(host, hosts), each = all ? accelerators / all : 0,
		 common = 0;
	AUTO_FREE uint32_t *share = xcalloc(hosts, sizeof(*share));
	struct buf list = {0};

	assert(all > 0 && accelerators > 0);
	for (size_t i = 0; i < hosts; i++)
		share[i] = each * host[i].processes;
	deal(host, hosts, accelerators % all, share);
	if (accelerators % all == 0)
		common = each;
	for (size_t i = 0; accelerators % all && i < hosts; i++)
		common = divisor(common, share[i]);
	for (size_t i = 0; i < hosts; i++)
		if (share[i])
			put_host(&list, host[i].name, share[i] / common);
	str_list_add(command, xstrdup("--hosts"));
	str_list_add(command, buf_take(&list));
	str_list_add(command, xstrdup("-n"));
	str_list_add(command, xasprintf("%u", accelerators));
}

/* ---- made again ---- */

struct again {
	struct capacity_options o;
	struct capacity c;
	bool gone; /* a run is not there */
};

static void *begin_again(const json_t *stated, const char *folder)
{
	const char *ended = derive_string(stated, "ended_by");
	const char *left_out = derive_string(stated, "left_out");
	struct again *a = xcalloc(1, sizeof(*a));

	a->o = (struct capacity_options){.name = derive_string(stated, "workload"),
					 .folder = folder,
					 .time_s = derive_number(stated, "time_s"),
					 .target = derive_number(stated, "target_percent")};
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
	run.repeat = repeats(c, run.accelerators);
	read_mark(r->folder, &run);
	take_record(c, r, &run);
	run_name_stated(&run.name, row);
	derive_equal(d, run.accelerators, r->ranks, "its run", CAPACITY_NAME " accelerators");
	derive_text(d, a->o.name, sums_workload(r), "its run", CAPACITY_NAME " workload");
	if (r->has_workload) {
		derive_equal(d, (double)run.steps, (double)r->workload.train.total_training_steps,
			     "its run", CAPACITY_NAME " steps of %u accelerators",
			     run.accelerators);
		check_need(a, r, d);
	}
	VECTOR_PUSH(c->run, c->runs, c->room, run);
	c->seconds += isfinite(run.seconds) ? run.seconds : 0;
	look_back(c);
}

static json_t *made_again(void *of, struct derive *d)
{
	struct again *a = of;

	/* the answer is one of all runs */
	if (a->gone) {
		derive_unchecked(d, "runs that it counts are not there: nothing was made again");
		return NULL;
	}
	know(&a->c);
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
