/* The search: which point is next, how long it is, and what is known at its end. */
#include "study/capacity.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

const char search_mark[] = "capacity_run.json", search_log[] = "capacity_run.log";

static const uint64_t STEPS_LEAST = 16; /* measured, of a point's first run */
static const uint64_t TURNS_LEAST = 4;
static const double SECONDS_LEAST = 1; /* of computation */
static const uint64_t LONGER = 4;      /* times as many steps near the knee */
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

	if (!h)
		return s->compute_s;
	limited = h->step_s * accelerators / h->accelerators;
	return h->au < 95 ? fmax(s->compute_s, limited) : s->compute_s;
}

static uint64_t steps_wanted(const struct searching *s, const struct search_step *next, bool *full)
{
	uint64_t turn = s->samples.workers ? s->samples.workers : 1;
	double first = fmax(fmax((double)STEPS_LEAST, (double)(TURNS_LEAST * turn)),
			    ceil(SECONDS_LEAST / s->compute_s));
	double most = floor(s->c->o->time_s / expected_step(s, next->accelerators)) -
		      (double)s->samples.ahead;
	double want =
		next->longer ? fmax((double)LONGER * first, 10 * (double)s->samples.ahead) : first;

	most = fmax(most, 2 * (double)turn);
	*full = want >= most;
	return (uint64_t)fmin(want, most);
}

/* ---- what is known ---- */

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

static void look_for_change(struct capacity *c)
{
	struct capacity_event event = {.kind = CAPACITY_CHANGED};
	struct capacity_run *last = &c->run[c->runs - 1];
	double before;

	if (c->changed || !has_changed(c, &before))
		return;
	c->changed = true;
	c->changed_at = last->accelerators;
	c->changed_from = before;
	c->changed_to = last->au;
	for (size_t i = 0; i + 1 < c->runs; i++)
		c->run[i].outdated = true;
	if (c->tell)
		c->tell(c->arg, &event);
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

static void take_record(const struct capacity *c, const struct run_record *r,
			struct capacity_run *out)
{
	const struct steady_au *s = &r->facts.steady;
	struct run_figures f;

	figures_find(&f, r);
	run_name_of(&out->name, r);
	out->au = s->au;
	out->blocks = s->blocks;
	out->step_s = s->step_s;
	out->whole_au = f.whole_au;
	out->samples_per_s = delivered(r, &f);
	out->bytes_per_s = out->samples_per_s * f.returned_bytes / f.samples;
	out->client_busy = f.client_busy;
	out->run_busy = f.run_busy;
	out->cached_share = r->facts.cached_share;
	/* points of AU that a client without other work might have had more */
	out->disturbed = isfinite(f.no_processor) ? f.no_processor : 0;
	out->error = hypot(s->error, out->disturbed / 2);
	out->client = out->au < c->o->target &&
		      (cause_is_of(f.cause) & CAUSE_OF_CLIENT || f.machine_failed ||
		       out->au + out->disturbed >= c->o->target);
	out->cause = f.cause;
	snprintf(out->text, sizeof(out->text), "%s", f.limit);
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

static int plan_row(struct searching *s, const struct search_step *next, struct runner_row *row,
		    uint32_t *most, struct err *e)
{
	struct capacity *c = s->c;
	struct str_list keys = {0};
	struct samples_plan plan;
	bool full;
	uint64_t want = steps_wanted(s, next, &full);
	int rc = samples_plan(&s->samples, c, next->accelerators, want, &plan, &keys, most, e);

	if (rc == 0) {
		override_put(&keys, "train.epochs", "%llu", (unsigned long long)plan.epochs);
		override_put(&keys, "train.total_training_steps", "%llu",
			     (unsigned long long)plan.steps);
		s->now = (struct capacity_run){.accelerators = next->accelerators,
					       .repeat = repeats(c, next->accelerators),
					       .steps = plan.steps,
					       .full = full || plan.all || next->longer};
		search_row(c->o, next->accelerators, s->now.repeat, plan.steps, &keys, row);
		row->expected_s = expected_step(s, next->accelerators) * (double)plan.steps;
		row->limit_s = LIMIT_S + LIMIT_TIMES * row->expected_s;
	}
	str_list_release(&keys);
	return rc;
}

static int next_row(void *arg, struct runner_row *row, struct err *e)
{
	struct searching *s = arg;
	struct capacity *c = s->c;

	for (;;) {
		AUTO_FREE struct knee_run *run = xcalloc(c->runs + 1, sizeof(*run));
		size_t n = knee_runs(c, run);
		struct search_bounds bounds = {c->o->target, s->most,
					       spread_processes(c->o->host, c->o->hosts)};
		struct search_step next = search_next(run, n, &bounds);
		struct err why = {0};
		uint32_t most = 0;

		if (next.done)
			return 0;
		if (plan_row(s, &next, row, &most, &why) == 0)
			return 1;
		if (give_up(s, next.accelerators, most, &why, e) < 0)
			return e->code;
	}
}

static int prepare_row(void *arg, struct runner_row *row, struct err *e)
{
	struct searching *s = arg;

	(void)row;
	return samples_make(&s->samples, s->c, e);
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

	if (row->end == ROW_FAILED)
		return give_up(s, run.accelerators, largest(c), &row->why, e);
	if (read_point(c, row->folder, &run, e) < 0)
		return err_wrap(e, "%u accelerator%s", run.accelerators,
				run.accelerators == 1 ? "" : "s");
	run.seconds = row->seconds;
	VECTOR_PUSH(c->run, c->runs, c->room, run);
	c->seconds += isfinite(run.seconds) ? run.seconds : 0;
	look_for_change(c);
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
	struct searching s = {.c = c, .most = o->max, .folder.lock.fd = -1};
	struct err unclean = {0};
	int rc, clean;

	*c = (struct capacity){.o = o, .tell = tell, .arg = arg};
	s.compute_s = time_dist_mean(&w->train.computation_time);
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
	if (rc == 0)
		rc = search(&s, e);
	know(c);
	if (c->complete) { /* an interrupted search goes on with its data */
		clean = samples_clean(&s.samples, c, &unclean);
		rc = search_folder_save(&s.folder, o, capacity_json(c), e);
		if (rc == 0 && clean < 0) {
			*e = unclean;
			rc = clean;
		}
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
	struct again *a = xcalloc(1, sizeof(*a));

	a->o = (struct capacity_options){.name = derive_string(stated, "workload"),
					 .folder = folder,
					 .target = derive_number(stated, "target_percent")};
	a->c = (struct capacity){.o = &a->o,
				 .complete = json_is_true(json_object_get(stated, "complete")),
				 .need_samples = derive_number(stated, "need_samples_per_s"),
				 .need_bytes = derive_number(stated, "need_bytes_per_s")};
	snprintf(a->c.stopped_by, sizeof(a->c.stopped_by), "%s", ended ? ended : "");
	return a;
}

static double marked_seconds(const char *folder)
{
	json_t *mark = result_folder_json(folder, search_mark, NULL);
	double s = derive_number(mark, "seconds");

	json_decref(mark);
	return s;
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
	take_record(c, r, &run);
	run_name_stated(&run.name, row);
	run.seconds = marked_seconds(r->folder);
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
	look_for_change(c);
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
	.told = "whether the search came to its end, and what ended it",
	.begin = begin_again,
	.take = take_again,
	.made = made_again,
	.release = release_again,
};
