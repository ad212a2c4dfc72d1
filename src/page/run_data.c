#include "page/run_data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/str.h"
#include "readback/effects.h"
#include "readback/record.h"
#include "readback/record_measures.h"
#include "result/json_limit.h"
#include "result/json_out.h"
#include "workload/need.h"

/* ---- curves over time ---- */

/* How busy a run's accelerators were over time, from its steps: `bins` shares from 0 to 1, mean
 * over the ranks, and samples a second. The time between the blocks of epochs counts as idle. false
 * when the files of no rank are there. The time of barriers is not in the files: within a block it
 * is spread evenly over the steps. */
struct timeline {
	double dt_s;
	size_t bins;
	double *busy, *rate;
};
#define TIMELINE_BINS 240

static double last_end(const struct run_record *r)
{
	double end = 0;

	for (uint32_t k = 0; k < r->ranks; k++)
		for (size_t i = 0; i < r->rank[k].epochs; i++) {
			const struct record_epoch *ep = &r->rank[k].epoch[i];

			for (size_t b = 0; b < ep->blocks; b++)
				RAISE(end, ep->block[b].begin_s + ep->block[b].wall_s);
			RAISE(end, ep->end_s);
		}
	return end;
}

/* Adds `amount` over [from, to), spread evenly. */
static void spread_amount(double *v, const struct timeline *t, double from, double to,
			  double amount)
{
	double width = to - from;
	size_t first, last;

	if (!(width > 0) || from < 0 || !isfinite(from) || !isfinite(to))
		return;
	/* times of a file may be any number */
	first = (size_t)fmin(from / t->dt_s, (double)t->bins);
	last = (size_t)fmin(to / t->dt_s, (double)t->bins);
	for (size_t b = first; b <= last && b < t->bins; b++) {
		double low = fmax(from, (double)b * t->dt_s);
		double high = fmin(to, (double)(b + 1) * t->dt_s);

		if (high > low)
			v[b] += amount * (high - low) / width;
	}
}

static void add_block(struct timeline *t, const struct record_phase *p, double batch)
{
	double sum = 0, gap, at = p->begin_s;
	size_t n = p->computes < p->loads ? p->computes : p->loads;

	for (size_t i = 0; i < n; i++)
		sum += p->load[i] + p->compute[i];
	if (n == 0 || !isfinite(at) || !isfinite(p->wall_s))
		return;
	gap = p->wall_s > sum ? (p->wall_s - sum) / (double)n : 0;
	for (size_t i = 0; i < n; i++) {
		double got = at + p->load[i], done = got + p->compute[i];

		spread_amount(t->busy, t, got, done, p->compute[i]);
		spread_amount(t->rate, t, at, done + gap, batch);
		at = done + gap;
	}
}

static bool timeline_build(struct timeline *t, const struct run_record *r)
{
	double end = last_end(r), batch = 1;

	*t = (struct timeline){0};
	if (!(end > 0) || r->ranks_found == 0)
		return false;
	t->bins = TIMELINE_BINS;
	t->dt_s = end / TIMELINE_BINS;
	t->busy = xcalloc(t->bins, sizeof(*t->busy));
	t->rate = xcalloc(t->bins, sizeof(*t->rate));
	if (r->has_workload)
		batch = (double)r->workload.reader.batch_size;
	for (uint32_t k = 0; k < r->ranks; k++)
		for (size_t i = 0; i < r->rank[k].epochs; i++)
			for (size_t b = 0; b < r->rank[k].epoch[i].blocks; b++)
				add_block(t, &r->rank[k].epoch[i].block[b], batch);
	for (size_t b = 0; b < t->bins; b++) {
		t->busy[b] /= t->dt_s * r->ranks_found;
		t->rate[b] /= t->dt_s;
	}
	return true;
}

static void timeline_release(struct timeline *t)
{
	free(t->busy);
	free(t->rate);
	*t = (struct timeline){0};
}

/* ---- */

#define CHANGES_MAX 28
#define EPOCHS_MAX 500

/* Enough digits to draw, few enough to load. */
static double rounded(double v, double steps)
{
	return isfinite(v) ? floor(v * steps + 0.5) / steps : v;
}

/* A list or an object that may have nothing in it. */
static void put_filled(json_t *o, const char *key, json_t *v, size_t n)
{
	if (n)
		json_object_set(o, key, v);
	json_decref(v);
}

/* ---- over time ---- */

static json_t *curve(const double *v, size_t n, double steps)
{
	json_t *out = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(out, json_real(rounded(v[i], steps)));
	return out;
}

static void put_mark(json_t *marks, const char *kind, double from, double to, const char *label)
{
	json_t *o;

	if (!isfinite(from) || !isfinite(to))
		return;
	o = json_object();
	json_put_text(o, "kind", kind);
	json_put_real(o, "from", rounded(from, 1000));
	json_put_real(o, "to", rounded(to, 1000));
	json_put_text(o, "label", label);
	json_array_append_new(marks, o);
}

/* Epochs, evaluations and checkpoints of rank 0. */
static json_t *marks_of(const struct run_record *r)
{
	json_t *marks = json_array();
	const struct record_rank *k = r->ranks ? &r->rank[0] : NULL;
	char label[64];

	for (size_t i = 0; k && i < k->epochs && i < 500; i++) {
		const struct record_epoch *ep = &k->epoch[i];

		snprintf(label, sizeof(label), "epoch %u", ep->number);
		put_mark(marks, "epoch", ep->begin_s, ep->end_s, label);
		if (ep->has_eval)
			put_mark(marks, "evaluation", ep->eval_begin_s,
				 ep->eval_begin_s + ep->eval.wall_s, "evaluation");
		for (size_t c = 0; c < ep->checkpoints && c < 100; c++)
			put_mark(marks, "checkpoint", ep->checkpoint[c].begin_s,
				 ep->checkpoint[c].begin_s + ep->checkpoint[c].seconds,
				 ep->checkpoint[c].name);
	}
	return marks;
}

static json_t *timeline_of(const struct run_record *r, bool brief)
{
	const json_t *series = figure_json(part_whole(r->result), F_RUN_SERIES);
	struct timeline t;
	json_t *o;

	if (!timeline_build(&t, r))
		return json_null();
	o = json_object();
	json_put_real(o, "dt", t.dt_s);
	json_put(o, "busy", curve(t.busy, t.bins, 1000));
	json_put(o, "rate", curve(t.rate, t.bins, 10));
	json_put(o, "marks", marks_of(r));
	if (json_is_object(series) && !brief)
		json_put(o, "series", json_deep_copy(series));
	timeline_release(&t);
	return o;
}

static json_t *rank_aus(const struct run_record *r)
{
	json_t *out = json_array();

	for (uint32_t k = 0; k < r->ranks && k < 1024; k++) {
		double stated = figure(part_at(record_part(r, F_RUN_RANKS), k), F_RANK_WHOLE_AU);
		double compute = 0, wall = 0;

		if (isfinite(stated)) {
			json_array_append_new(out, json_number(rounded(stated, 100)));
			continue;
		}

		for (size_t i = 0; i < r->rank[k].epochs; i++) {
			const struct record_epoch *ep = &r->rank[k].epoch[i];

			for (size_t b = 0; b < ep->blocks; b++)
				for (size_t s = 0; s < ep->block[b].computes; s++)
					compute += ep->block[b].compute[s];
			wall += ep->train_wall_s;
		}
		json_array_append_new(
			out, json_number(wall > 0 ? rounded(100 * compute / wall, 100) : NAN));
	}
	return out;
}

json_t *run_findings(const struct audit *a, size_t i)
{
	json_t *out = json_array();
	size_t n;
	const struct finding *f = audit_of(a, i, &n);

	for (size_t k = 0; k < n; k++)
		json_array_append_new(out, finding_json(&f[k]));
	return out;
}

/* ---- what limits it, and what would change it ---- */

static void put_limit(json_t *o, const struct run_record *r)
{
	const struct part *limit = record_part(r, F_RUN_LIMIT);
	AUTO_FREE char *text =
		limit_told(figure_json(part_whole(r->result), F_RUN_LIMIT), WORDS_LONG);
	double wait = r->facts.wait_share;
	char why[400];

	if (text) {
		json_t *l = json_object();

		json_put_text(l, "cause", figure_text(limit, F_LIMIT_CAUSE));
		json_put_real(l, "lost", figure(limit, F_LIMIT_LOST));
		json_put(o, "limit", l);
		json_put_text(o, "limit_text", text);
		return;
	}
	snprintf(why, sizeof(why), "%s",
		 r->broken     ? "Not judged: the result cannot be read in full."
		 : !r->trained ? r->checkpointed ? "Not judged: DLIO's files of checkpoints do "
						   "not say what limited them."
						 : "Not judged: this result has no training."
		 : r->ours     ? "Not known: the result does not say what limited this run."
			       : "Not known: DLIO's files do not say what limited the run.");
	if (r->trained && isfinite(wait)) {
		size_t n = strlen(why);

		snprintf(why + n, sizeof(why) - n,
			 " Waiting for data took %.1f %% of the training time, waiting for other "
			 "accelerators and the rest %.1f %%.",
			 wait, r->facts.other_share);
	}
	json_put_text(o, "limit_text", why);
}

static void put_remedy(json_t *o, const struct run_record *r)
{
	const struct part *whole = part_whole(r->result);
	const json_t *changes = figure_json(part(whole, F_RUN_WHAT_IF), F_WHAT_IF_CHANGES);
	AUTO_FREE char *remedy = remedy_told(figure_json(whole, F_RUN_LIMIT), WORDS_LONG);
	json_t *list = json_array();

	for (size_t i = 0; i < json_array_size(changes) && i < CHANGES_MAX; i++)
		json_array_append_new(list, what_if_told(json_array_get(changes, i)));
	put_filled(o, "what_if", list, json_array_size(list));
	if (remedy)
		json_put_text(o, "remedy", remedy);
}

/* ---- where the time went ---- */

/* Shares of the wall time of training in percent. Of DLIO's files only three are known. */
static void put_time(json_t *o, const struct run_record *r)
{
	const struct part *d = part(record_part(r, F_RUN_TRAINING), F_TRAINING_DECOMPOSITION);
	const json_t *mean = figure_json(d, F_DECOMPOSITION_MEAN_PERCENT);
	double wait = r->facts.wait_share, other = r->facts.other_share;
	json_t *time, *v;
	const char *key;

	if (json_is_object(mean)) {
		time = json_object();
		json_object_foreach((json_t *)(uintptr_t)mean, key, v)
		{
			if (json_is_number(v) && json_number_value(v) > 0)
				json_put_real(time, key, rounded(json_number_value(v), 1000));
		}
		json_put(o, "time", time);
		json_put_real(o, "train_wall", figure(d, F_DECOMPOSITION_WALL));
	} else if (isfinite(wait) && isfinite(other)) {
		time = json_object();
		json_put_real(time, "compute", rounded(fmax(0, 100 - wait - other), 1000));
		json_put_real(time, "wait", rounded(wait, 1000));
		json_put_real(time, "other", rounded(other, 1000));
		json_put(o, "time", time);
	}
}

static void put_epochs(json_t *o, const struct run_record *r)
{
	const struct part *epochs = part(record_part(r, F_RUN_TRAINING), F_TRAINING_EPOCHS);
	json_t *list = json_array();
	size_t n = r->ranks ? r->rank[0].epochs : 0;

	for (size_t i = 0; i < n && i < EPOCHS_MAX; i++) {
		const struct part *e = part_at(epochs, i);
		json_t *one = json_object();

		json_put_int(one, "epoch", r->rank[0].epoch[i].number);
		json_put_real(one, "whole_au", rounded(record_whole_au(r, i), 100));
		json_put_real(one, "au", rounded(record_au(r, i), 100));
		json_put_real(one, "wall", rounded(r->rank[0].epoch[i].train_wall_s, 1000));
		json_put_real(one, "steps", figure(e, F_EPOCH_STEPS));
		json_put_real(one, "rate", rounded(figure(e, F_EPOCH_WHOLE_RATE), 100));
		json_put_real(one, "payload",
			      rounded(figure(e, F_EPOCH_PAYLOAD_RATE) / 0x1p20, 100));
		json_put_real(one, "wait", rounded(figure(e, F_EPOCH_EXPOSED_WAIT), 1000));
		json_put_real(one, "barrier", rounded(figure(e, F_EPOCH_BARRIER_WAIT), 1000));
		json_array_append_new(list, one);
	}
	json_put(o, "epochs", list);
}

/* ---- what was measured, with what ---- */

static const char *configured(const struct run_record *r, const char *key)
{
	return json_string_value(record_configured(r, key, F_CONFIGURED_VALUE));
}

/* "ext4 on vda (posix)", "throttle+memory, a store inside Stoker" */
static void put_storage(json_t *o, const struct run_record *r)
{
	const struct part *path = record_part(r, F_RUN_STORAGE_PATH);
	const char *measured = figure_text(record_part(r, F_RUN_MEASURED), F_MEASURED_STORAGE);
	const char *fs = figure_text(path, F_STORAGE_PATH_FILE_SYSTEM),
		   *store = configured(r, "storage.store");
	const char *mounted = json_string_value(json_object_get(
		figure_json(part_whole(r->result), F_RUN_SYSTEM), "data file system"));
	const json_t *devices = figure_json(path, F_STORAGE_PATH_DEVICES);
	const struct part *servers =
		part(record_part(r, F_RUN_OBJECT_STORE), F_OBJECT_STORE_SERVERS);
	struct buf text = {0};

	if (part_count(servers)) {
		buf_printf(&text, "objects of %s",
			   figure_text(part_at(servers, 0), F_SERVER_ADDRESS) ?: "a server");
		if (part_count(servers) > 1)
			buf_printf(&text, " and %zu more", part_count(servers) - 1);
		if (store)
			buf_printf(&text, " (%s)", store);
	} else if (measured && strcmp(measured, "emulated") == 0 && store)
		buf_printf(&text, "%s, a store inside Stoker", store);
	else if (fs || store)
		buf_printf(&text, "%s", fs ? fs : mounted ? mounted : "unknown file system");
	else if (r->has_workload && r->workload.dataset.data_folder)
		buf_printf(&text, "%s", r->workload.dataset.data_folder);
	if (fs && !(measured && strcmp(measured, "emulated") == 0)) {
		for (size_t i = 0; i < json_array_size(devices) && i < 3; i++)
			buf_printf(&text, "%s%s", i ? ", " : " on ",
				   json_string_value(json_array_get(devices, i)));
		if (store)
			buf_printf(&text, " (%s)", store);
	}
	if (text.len)
		json_put_text(o, "storage", text.data);
	buf_release(&text);
}

static void put_dataset(json_t *o, const struct run_record *r)
{
	const struct part *d = record_part(r, F_RUN_DATASET);
	double files = figure(d, F_DATASET_TRAIN_FILES), bytes = figure(d, F_DATASET_TOTAL);
	double eval = figure(d, F_DATASET_EVAL_FILES);
	const char *format = figure_text(d, F_DATASET_FORMAT);
	char text[200], size[32] = "";

	if (isfinite(files)) {
		files += eval > 0 ? eval : 0;
		if (isfinite(bytes))
			str_bytes(bytes, size, sizeof(size));
		snprintf(text, sizeof(text), "%.0f %s file%s%s%s%s", files, format ? format : "",
			 files == 1 ? "" : "s", eval > 0 ? " with those for evaluation" : "",
			 size[0] ? ", " : "", size);
	} else if (r->has_workload && r->workload.dataset.num_files_train > 0) {
		snprintf(text, sizeof(text), "%lld %s files",
			 (long long)r->workload.dataset.num_files_train,
			 r->workload.dataset.format ? r->workload.dataset.format : "");
	} else {
		return;
	}
	json_put_text(o, "dataset", text);
}

static void put_origin(json_t *o, const struct run_record *r)
{
	const struct part *whole = part_whole(r->result);
	const char *version = figure_text(whole, F_RUN_VERSION);
	const char *workload = figure_text(whole, F_RUN_WORKLOAD);
	const char *status = figure_text(whole, F_RUN_STATUS);
	const char *reason = figure_text(whole, F_RUN_REASON);
	const json_t *measured = figure_json(whole, F_RUN_MEASURED);

	json_put_text(o, "workload", workload ? workload : r->model);
	if (r->ours && version) {
		AUTO_FREE char *text = xasprintf("Stoker %s", version);

		json_put_text(o, "version", text);
	} else {
		json_put_text(o, "version", r->ours ? "Stoker" : "DLIO");
	}
	if (json_is_object(measured))
		json_put(o, "measured", json_deep_copy(measured));
	if (status)
		json_put_text(o, "status", status);
	if (reason)
		json_put_text(o, "reason", reason);
	if (r->has_workload && r->workload.run.note)
		json_put_text(o, "note", r->workload.run.note);
	put_storage(o, r);
	put_dataset(o, r);
	if (isfinite(r->begin_s)) {
		time_t begin = (time_t)r->begin_s;
		struct tm tm;
		char when[32];

		if (localtime_r(&begin, &tm) &&
		    strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm))
			json_put_text(o, "start", when);
	}
}

static void put_passed(json_t *o, const struct run_record *r)
{
	const struct part *verdicts = record_part(r, F_RUN_VERDICTS);
	json_t *list = json_array();

	for (size_t i = 0; i < part_count(verdicts); i++) {
		const struct part *v = part_at(verdicts, i);
		const char *level = figure_text(v, F_VERDICT_LEVEL);
		json_t *one;

		if (!level || strcmp(level, "pass") != 0)
			continue;
		one = json_object();
		json_put_text(one, "check", figure_text(v, F_VERDICT_CHECK));
		json_put_text(one, "text", figure_text(v, F_VERDICT_SAID));
		json_array_append_new(list, one);
	}
	json_put(o, "passed", list);
}

/* ---- need beside supply ---- */

/* Of a result that does not say, by its workload: of DLIO's files the bytes are not known. */
static double fed_by_workload(const struct run_record *r, struct need *need)
{
	need_find(&r->workload, NEED_TRAINING, NAN, need);
	return fmin(need_fed(need, record_whole_throughput(r)), r->ranks);
}

static json_t *need_by_workload(const struct run_record *r)
{
	json_t *one = json_object();
	char text[200], line[300];
	struct need need;
	double fed = fed_by_workload(r, &need);

	json_put_bool(one, "known", need.known);
	if (!need.known)
		json_put_text(one, "why", need.why);
	need_text(&need, text, sizeof(text));
	if (isfinite(fed))
		snprintf(line, sizeof(line),
			 fed < 0.095 ? "%s: this run fed %.2f of %u"
				     : "%s: this run fed %.1f of %u",
			 text, fed, r->ranks);
	json_put_text(one, "text", isfinite(fed) ? line : text);
	json_put_real(one, "fed", fed);
	return one;
}

static void put_need(json_t *o, const struct run_record *r)
{
	const struct part *n = record_part(r, F_RUN_NEED), *supply = part(n, F_NEED_SUPPLY);
	json_t *one;

	if (!n) {
		if (r->has_workload && r->trained)
			json_put(o, "need", need_by_workload(r));
		return;
	}
	one = json_object();
	json_put_bool(one, "known", isfinite(figure(n, F_NEED_SAMPLES)));
	json_put_text(one, "why", figure_text(n, F_NEED_MISSING));
	json_put_text(one, "text", figure_text(n, F_NEED_SAID));
	json_put_real(one, "fed", figure(supply, F_SUPPLY_FED));
	json_put_text(one, "of", figure_text(supply, F_SUPPLY_OF));
	json_put(o, "need", one);
}

/* ---- other phases than training ---- */

/* DLIO states means alone. */
static void put_checkpoint_of_dlio(json_t *list, double gib_per_s, double gib, bool load)
{
	json_t *one;

	if (!(gib_per_s > 0))
		return;
	one = json_object();
	json_put_bool(one, "load", load);
	json_put_real(one, "seconds", gib / gib_per_s);
	json_put_real(one, "rate", gib_per_s * 0x1p30);
	json_array_append_new(list, one);
}

static void put_checkpoints(json_t *o, const struct run_record *r)
{
	const struct part *c = record_part(r, F_RUN_CHECKPOINT);
	json_t *list = json_array();

	put_checkpoint_of_dlio(list, r->save_gib_per_s, r->checkpoint_gib, false);
	put_checkpoint_of_dlio(list, r->load_gib_per_s, r->checkpoint_gib, true);

	for (int load = 0; load < 2; load++) {
		const struct part *s = part(c, load ? F_CHECKPOINT_LOAD : F_CHECKPOINT_SAVE);
		json_t *one;

		if (!(figure(s, F_SAVES_COUNT) > 0))
			continue;
		one = json_object();
		json_put_bool(one, "load", load);
		json_put_real(one, "count", figure(s, F_SAVES_COUNT));
		json_put_real(one, "seconds", figure(s, F_SAVES_MEAN));
		json_put_real(one, "rate", figure(s, F_SAVES_RATE));
		json_array_append_new(list, one);
	}
	json_put(o, "checkpoints", list);
}

static void put_generation(json_t *o, const struct run_record *r)
{
	const struct part *g = record_part(r, F_RUN_GENERATION);
	json_t *one;

	if (!g)
		return;
	one = json_object();
	json_put_real(one, "files", figure(g, F_GENERATION_FILES));
	json_put_real(one, "bytes", figure(g, F_GENERATION_BYTES));
	json_put_real(one, "seconds", figure(g, F_GENERATION_WALL));
	json_put(o, "generation", one);
}

/* Figures that their rows put into tables of runs, by their names. */
static void put_shown(json_t *o, const struct run_record *r)
{
	json_t *shown = json_object();

	for (size_t i = 0; i < shown_count(); i++) {
		char name[SHOWN_NAME_MAX];

		shown_name(i, name);
		json_put_real(shown, name, record_shown(r, i));
	}
	put_filled(o, "shown", shown, json_object_size(shown));
}

static void put_phases(json_t *o, const struct run_record *r)
{
	const struct part *training = record_part(r, F_RUN_TRAINING);
	const struct part *evaluation = record_part(r, F_RUN_EVALUATION);

	json_put_real(o, "epochs_done", figure(training, F_TRAINING_EPOCHS_DONE));
	json_put_real(o, "epochs_planned", figure(training, F_TRAINING_EPOCHS_PLANNED));
	json_put_real(o, "payload_rate", figure(training, F_TRAINING_PAYLOAD_RATE_MEAN));
	json_put_real(o, "files_rate", r->facts.returned_rate);
	json_put_real(o, "eval_au", r->eval_au.mean);
	json_put_real(o, "eval_whole_au", figure(evaluation, F_EVALUATION_WHOLE_AU));
	json_put_real(o, "eval_throughput", r->eval_throughput.mean);
	put_checkpoints(o, r);
	put_generation(o, r);
}

/* What each server was asked in the timed part; where nothing was timed, in all. */
static void put_servers(json_t *o, const struct part *servers)
{
	json_t *list = json_array();
	bool timed = false;

	for (size_t i = 0; i < part_count(servers); i++)
		timed |= figure(part(part_at(servers, i), F_SERVER_TIMED), F_SERVER_COUNTS_ALL) > 0;
	for (size_t i = 0; i < part_count(servers); i++) {
		const struct part *s = part_at(servers, i);
		const struct part *n = part(s, timed ? F_SERVER_TIMED : F_SERVER_WHOLE);
		json_t *one = json_object();

		json_put_text(one, "address", figure_text(s, F_SERVER_ADDRESS));
		json_put_bool(one, "tls", figure_flag(s, F_SERVER_TLS));
		json_put_real(one, "requests", figure(n, F_SERVER_COUNTS_ALL));
		json_put_real(one, "again", figure(n, F_SERVER_COUNTS_AGAIN_ALL));
		json_put_real(one, "failed", figure(n, F_SERVER_COUNTS_FAILED));
		json_put_real(one, "connections", figure(n, F_SERVER_COUNTS_CONNECTIONS));
		json_put_real(one, "received", figure(n, F_SERVER_COUNTS_WIRE_RECEIVED));
		json_put_real(one, "sent", figure(n, F_SERVER_COUNTS_WIRE_SENT));
		json_put_real(one, "first", figure(n, F_SERVER_COUNTS_FIRST));
		json_put_real(one, "last", figure(n, F_SERVER_COUNTS_LAST));
		json_array_append_new(list, one);
	}
	if (json_array_size(list))
		json_put(o, "servers", list);
	else
		json_decref(list);
}

json_t *run_data(const struct run_record *r, bool brief)
{
	const struct part *servers =
		part(record_part(r, F_RUN_OBJECT_STORE), F_OBJECT_STORE_SERVERS);
	const json_t *ledger = figure_json(part_whole(r->result), F_RUN_LEDGER);
	json_t *o = json_object();

	json_put_text(o, "name", r->name);
	json_put_text(o, "folder", r->folder);
	json_put_text(o, "model", r->model);
	json_put(o, "factors", json_texts(&r->factors));
	json_put_int(o, "ranks", r->ranks);
	json_put_int(o, "hosts", r->hosts);
	json_put_text(o, "host", r->hostname);
	json_put_text(o, "tool", r->ours ? "Stoker" : "DLIO");
	json_put_bool(o, "trained", r->trained);
	if (r->broken)
		json_put_bool(o, "broken", true);
	put_origin(o, r);
	json_put_real(o, "wall", r->end_s - r->begin_s);
	if (r->has_workload && r->workload.metric.au > 0)
		json_put_real(o, "target", 100 * r->workload.metric.au);
	json_put_real(o, "au", r->au.mean);
	json_put_real(o, "whole_au", record_whole_run_au(r));
	json_put_real(o, "whole_throughput", record_whole_throughput(r));
	json_put_int(o, "steps", r->facts.steps);
	put_phases(o, r);
	put_shown(o, r);
	put_need(o, r);
	put_limit(o, r);
	put_remedy(o, r);
	/* what the framework's own code would take from AU, or has taken */
	if (r->facts.costs_text[0])
		json_put_text(o, "costs", r->facts.costs_text);
	put_time(o, r);
	put_epochs(o, r);
	put_passed(o, r);
	json_put(o, "rank_au", rank_aus(r));
	json_put(o, "timeline", timeline_of(r, brief));
	if (json_is_array(ledger))
		json_put(o, "ledger", json_deep_copy(ledger));
	put_servers(o, servers);
	return o;
}

json_t *run_details(json_t *run)
{
	static const char *const keys[] = {"epochs", "passed", "ledger",  "measured",
					   "need",   "remedy", "rank_au", "limit_text",
					   "costs",  "servers"};
	json_t *details = json_object();

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		json_t *v = json_object_get(run, keys[i]);

		if (!v)
			continue;
		json_object_set(details, keys[i], v);
		json_object_del(run, keys[i]);
	}
	/* a kilobyte of each, also when it is packed: the page of the result alone has them */
	json_object_del(run, "timeline");
	json_object_del(run, "what_if");
	return details;
}

/* ---- one configuration ---- */

/* The runs of a group that its figures are of: the first ones. */
static size_t measured_runs(const struct run_group *x)
{
	return x->counted ? x->counted : x->records;
}

/* MiB/s of sample data over the whole run, of the runs that say; of one run of its epochs. */
static struct sample_stat payload_of(const struct run_groups *g, const struct run_group *x)
{
	const struct record_facts *one = &g->record[x->record[0]].facts;
	bool by_epoch = measured_runs(x) == 1;
	size_t n = 0, most = by_epoch ? one->epochs : measured_runs(x);
	AUTO_FREE double *v = xcalloc(most + 1, sizeof(*v));
	struct sample_stat s;

	if (by_epoch && !one->lists_epochs) {
		by_epoch = false;
		most = 1;
	}
	for (size_t i = 0; i < most; i++) {
		double rate = by_epoch ? one->epoch[i].payload
				       : g->record[x->record[i]].facts.payload_mean;

		if (isfinite(rate))
			v[n++] = rate / 0x1p20;
	}
	s = sample_stat_of(v, n);
	if (n < SPREAD_VALUES)
		s.stdev = NAN;
	return s;
}

/* Mean of the runs that say how many accelerators they fed; NaN. */
static double group_fed(const struct run_groups *g, const struct run_group *x)
{
	double sum = 0;
	size_t n = 0;

	for (size_t i = 0; i < measured_runs(x); i++) {
		double one = g->record[x->record[i]].facts.fed_stated;

		if (!isfinite(one))
			continue;
		sum += one;
		n++;
	}
	return n ? sum / (double)n : NAN;
}

/* The value of its only factor, where that is a number. */
static double place_of(const struct run_group *x)
{
	size_t n = strcspn(x->factors, "=");
	AUTO_FREE char *key = xstrndup(x->factors, n);
	double v = NAN;

	if (x->factor.n != 1 || x->factors[n] != '=' || !key_number(key, x->factors + n + 1, &v))
		return NAN;
	return v;
}

json_t *group_data(const struct run_groups *g, const struct run_group *x)
{
	struct sample_stat payload = payload_of(g, x);
	json_t *o = json_object(), *runs = json_array();

	json_put_text(o, "model", x->model);
	json_put_text(o, "factors", x->factors);
	json_put_real(o, "at", place_of(x));
	json_put_int(o, "ranks", x->ranks);
	json_put(o, "au", json_stat(&x->au));
	json_put(o, "whole_au", json_stat(&x->whole_au));
	json_put(o, "whole_throughput", json_stat(&x->whole_rate));
	json_put(o, "payload", json_stat(&payload));
	json_put_real(o, "fed", group_fed(g, x));
	json_put_real(o, "wait", x->wait_share);
	json_put_real(o, "other", x->other_share);
	json_put_real(o, "target", x->target);
	json_put_bool(o, "unsound", x->unsound);
	for (size_t i = 0; i < x->records; i++)
		json_array_append_new(runs, json_integer((json_int_t)x->record[i]));
	json_put(o, "runs", runs);
	return o;
}

json_t *curve_data(const struct curve *c)
{
	const struct knee *k = &c->knee;
	json_t *o = json_object(), *points = json_array();

	json_put_text(o, "model", c->model);
	json_put_text(o, "factors", c->factors);
	json_put_text(o, "text", c->text);
	json_put_real(o, "target", k->target);
	json_put_int(o, "knee", k->accelerators);
	json_put_int(o, "low", k->low);
	if (k->high != UINT32_MAX)
		json_put_int(o, "high", k->high);
	json_put_bool(o, "at_least", k->at_least);
	json_put_bool(o, "emulated", c->emulated > 0);
	if (c->search) {
		json_put_text(o, "answer", json_string_value(json_object_get(c->search, "answer")));
		json_put_text(o, "limit", json_string_value(json_object_get(c->search, "limit")));
		json_put_text(o, "cause", json_string_value(json_object_get(c->search, "cause")));
		json_put_text(o, "left_out",
			      json_string_value(json_object_get(c->search, "left_out")));
	}
	for (size_t i = 0; i < k->points; i++) {
		json_t *p = json_object();

		json_put_int(p, "x", k->point[i].accelerators);
		json_put_int(p, "runs", k->point[i].runs);
		json_put_real(p, "au", k->point[i].au);
		json_put_real(p, "low", k->point[i].low);
		json_put_real(p, "high", k->point[i].high);
		json_put_real(p, "fit", k->point[i].fit);
		json_array_append_new(points, p);
	}
	json_put(o, "points", points);
	return o;
}
