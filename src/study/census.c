/* The measurement: what is made, read and removed again. */
#include "study/census.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/folder_lock.h"
#include "base/say.h"
#include "base/str.h"
#include "checkpoint/checkpoint_plan.h"
#include "conf/override.h"
#include "os/file_system.h"
#include "os/sysinfo.h"
#include "readback/figures.h"
#include "readback/record.h"
#include "result/json_out.h"
#include "study/study.h"

#define MIB (1u << 20)
#define MARK_NAME "stoker_survey.json"
#define LOCK_NAME ".stoker_survey.lock"
#define LOG_NAME "survey.log"
/* Of one pattern. All of them are there at the same time, so that their runs take turns. */
#define BYTES_LEAST (24.0 * MIB)
#define BYTES_NEEDED (72.0 * MIB) /* where samples are large */
#define BYTES_MOST (200.0 * MIB)
#define BYTES_FIRST (48.0 * MIB) /* of the first look at the storage */
#define BYTES_ALL (1100.0 * MIB)
static const double FREE_SHARE = 0.8; /* of the free space */
static const double WRITE_S = 2.5;    /* in which a pattern is written, and read once */
static const double PATTERN_S = 17;   /* that each has of the whole time, when it has two minutes */
static const double PROBE_LEAST_S = 0.4, PROBE_MOST_S = 6;
static const double TOLD_APART = 0.1; /* of the highest rates: bandwidth and requests/s */
static const double LIMIT_TIMES = 3;  /* of the whole time, before a run is ended */
static const double UNITS_WHOLE = 20; /* samples for each reader, to tell a sample's bytes by */
static const double BUSY_LEAST = 0.2;
#define SAVE_BYTES_MOST (128.0 * MIB)

struct surveying {
	struct census *s;
	struct file_lock lock;
	bool has_files, evicts;
	int64_t begin;
	double room;  /* bytes that may be there at a time */
	double there; /* that are there */
	double runs_left, probe_s;
	struct census_watch *watch; /* NULL: the storage is emulated */
};

static double passed(const struct surveying *x)
{
	return clock_seconds(clock_now_ns() - x->begin);
}

static void tell(const struct census *s, bool ends, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void tell(const struct census *s, bool ends, const char *fmt, ...)
{
	struct buf b = {0};
	va_list ap;

	va_start(ap, fmt);
	buf_vsay(&b, fmt, ap);
	va_end(ap);
	if (s->tell)
		s->tell(s->arg, b.data, ends);
	buf_release(&b);
}

/* ---- the folder ---- */

/* What an earlier survey left there is removed; what is somebody else's is not touched. */
static int clear_own(const struct census *s, struct err *e)
{
	AUTO_FREE char *mark = path_join(s->own, MARK_NAME);
	bool any = false;
	int rc = study_folder_holds(s->own, &any);

	if (rc < 0)
		return err_sys(e, -rc, "cannot read '%s'", s->own);
	if (any && !file_exists(mark))
		return err_set(
			e, ERR_USAGE,
			"survey: '%s' has files that no survey made: remove or rename it, or "
			"survey another folder of this storage",
			s->own);
	return remove_tree(s->own, e);
}

static int make_own(const struct census *s, struct err *e)
{
	json_t *mark = json_object();
	int rc = file_mkdirs(s->own, e);

	if (rc < 0) {
		json_decref(mark);
		return err_wrap(e, "survey: nothing can be written there");
	}
	json_put_mark(mark);
	json_put_text(mark, "note",
		      "files of a running 'stoker survey'; the next one removes what is left");
	return json_write(mark, s->own, MARK_NAME, e);
}

static int check_folder(struct surveying *x, struct err *e)
{
	struct census *s = x->s;
	const char *folder = s->o->folder;
	struct file_system fs;
	int kind = path_look(folder, e);

	if (kind < 0)
		return kind;
	if (kind != PATH_FOLDER)
		return err_set(e, ERR_USAGE,
			       "survey: '%s' is %s: name a folder on the storage to be surveyed",
			       folder, kind == PATH_ABSENT ? "not there" : "no folder");
	if (!x->has_files || !file_system_of_path(folder, &fs))
		return 0;
	snprintf(s->file_system, sizeof(s->file_system), "%s", fs.name);
	if (fs.memory)
		return err_set(e, ERR_USAGE,
			       "survey: '%s' is on %s, which is memory: nothing there can be read "
			       "cold, and no storage would be measured; name a folder on a storage",
			       folder, fs.name);
	return 0;
}

/* Bytes that may lie there. */
static int find_room(struct surveying *x, struct err *e)
{
	const char *folder = x->s->o->folder;
	double least = BYTES_NEEDED * (double)(x->s->patterns + 1);
	char have[32], want[32];
	struct statvfs v;

	x->room = BYTES_ALL;
	if (!x->has_files)
		x->room = fmin(x->room, FREE_SHARE / 4 * (double)host_available_bytes());
	else if (statvfs(folder, &v) == 0 && v.f_blocks > 0)
		x->room = fmin(x->room, FREE_SHARE * (double)v.f_bavail * (double)v.f_frsize);
	if (x->room >= least)
		return 0;
	return err_set(e, ERR_USAGE,
		       "survey: '%s' has room for %s, and a survey needs %s: free some, or survey "
		       "fewer workloads with --only",
		       folder, str_bytes(x->room, have, sizeof(have)),
		       str_bytes(least, want, sizeof(want)));
}

/* What the user's keys mean for all workloads. */
static int look_at_keys(struct surveying *x, struct err *e)
{
	struct census *s = x->s;
	struct workload_request req = {.workload = s->row[0].name,
				       .overrides = s->o->base.overrides,
				       .override_count = s->o->base.override_count,
				       .ranks = 1};
	struct workload w = {0};
	struct str_list all = {0};
	int rc;

	for (size_t i = 0; i < req.override_count; i++)
		str_list_add(&all, xstrdup(req.overrides[i]));
	override_put_text(&all, "dataset.data_folder", s->own);
	req.overrides = (const char *const *)all.v;
	req.override_count = all.n;
	rc = workload_load(&w, &req, e);
	if (rc == 0) {
		x->has_files = workload_base_store(&w)->flags & STORE_HAS_FILES;
		x->evicts = x->has_files && study_begins_cold(&w);
		s->emulated = !x->has_files || strchr(w.storage.store, '+');
	}
	workload_release(&w);
	str_list_release(&all);
	return rc;
}

/* ---- one run ---- */

static char *pattern_folder(const struct census *s, const struct census_pattern *p)
{
	return xasprintf("%s/%zu", s->own, (size_t)(p - s->pattern));
}

static void put_run_keys(const struct surveying *x, const struct census_pattern *p, double probe_s,
			 bool generate, struct str_list *keys)
{
	AUTO_FREE char *data = pattern_folder(x->s, p);

	census_put_shape(p, keys);
	override_put(keys, "workflow.generate_data", generate ? "true" : "false");
	override_put(keys, "workflow.train", "true");
	override_put(keys, "workflow.evaluation", "false");
	override_put(keys, "workflow.checkpoint", "false");
	override_put(keys, "train.epochs", "1");
	override_put(keys, "train.computation_time", "0");
	override_put(keys, "train.total_training_steps", "-1");
	override_put(keys, "run.probe", "true");
	override_put(keys, "run.probe_time", "%.3f", probe_s);
	override_put_text(keys, "dataset.data_folder", data);
	override_put(keys, "dataset.keep_files", "true");
	if (x->evicts)
		override_put(keys, "storage.page_cache", "cold_epochs");
}

/* Runs `command` into the folder "run", and reads its result, which it removes. */
static int run_child(const struct surveying *x, struct str_list *command, struct run_record *r,
		     struct err *e)
{
	const struct census *s = x->s;
	AUTO_FREE char *folder = path_join(s->own, "run");
	AUTO_FREE char *log = path_join(s->own, LOG_NAME);
	struct runner_child child = {
		.log = log, .limit_s = 60 + LIMIT_TIMES * s->o->time_s, .stop = s->o->stop};
	int rc;

	str_list_add(command, xstrdup("-o"));
	str_list_add(command, xstrdup(folder));
	rc = runner_help(command, &child, e);
	if (rc < 0)
		return rc;
	record_load(r, folder);
	if (r->broken)
		rc = err_set(e, ERR_DATA, "%.900s", r->broken);
	remove_tree(folder, NULL);
	return rc;
}

static int run_pattern(const struct surveying *x, const struct census_pattern *p, double probe_s,
		       bool generate, struct run_record *r, struct err *e)
{
	struct runner_base base = x->s->o->base;
	struct str_list keys = {0}, places = {0}, command = {0};
	int rc;

	base.workload = p->workload;
	put_run_keys(x, p, probe_s, generate || !x->has_files, &keys);
	str_list_add(&places, xstrdup("-n"));
	str_list_add(&places, xasprintf("%u", p->ranks));
	runner_command(&base, "run", &places, &keys, &command);
	str_list_release(&keys);
	str_list_release(&places);
	rc = run_child(x, &command, r, e);
	return rc;
}

/* ---- its curve ---- */

/* Bytes of the requests for one sample of the made size. Those of a stream are not cut where a
 * sample ends, and what a reader had of the next one is in the bytes. */
static double bytes_of_sample(const struct census_pattern *p, const struct part *points)
{
	double bytes = p->made_bytes, most = 0;

	for (size_t i = 0; !p->streams && i < part_count(points); i++) {
		const struct part *at = part_at(points, i);
		double samples = figure(at, F_PROBE_POINT_SAMPLES);

		if (samples > most && samples >= UNITS_WHOLE * figure(at, F_PROBE_POINT_READERS)) {
			most = samples;
			bytes = figure(at, F_PROBE_POINT_BYTES) / samples;
		}
	}
	return bytes;
}

/* A sample of the workload's own size takes as many opens and headers as a made one, or its part of
 * those of a longer file, and more of the time that bytes take. Samples are counted by their bytes:
 * the end of a point cuts some. */
static void take_point(const struct census *s, const struct census_pattern *p,
		       const struct part *at, double sample, struct census_point *out)
{
	double time = figure(at, F_PROBE_POINT_SECONDS),
	       all = figure(at, F_PROBE_POINT_READERS_TIME);
	double bytes = figure(at, F_PROBE_POINT_BYTES), samples = bytes / sample;
	double open = figure(at, F_PROBE_POINT_OPEN), meta = figure(at, F_PROBE_POINT_META);
	double file = p->streams ? (double)p->made_per_file / (double)p->per_file : 1;
	double larger = p->sample_bytes / p->made_bytes;
	double full = (file * (open + meta) + larger * (all - open - meta)) / samples;

	*out = (struct census_point){
		.readers = all / time,
		.rate = all / time / full,
		.made_rate = samples / time,
		.bytes = bytes / time,
		.requests = figure(at, F_PROBE_POINT_REQUEST_RATE),
		.opens = figure(at, F_PROBE_POINT_OPEN_RATE),
		.open_share = file * open / samples / full,
		.cpu = figure(at, F_PROBE_POINT_CPU) / time / s->host_cpus,
	};
}

/* Samples/s that the loaders of a run got while they were busy. */
static double loaders_got(const struct run_record *r, bool *client)
{
	double batch = (double)r->workload.reader.batch_size;
	struct run_figures f;

	figures_find(&f, r);
	*client = cause_is_of(f.cause) & CAUSE_OF_CLIENT;
	if (f.later_busy_s >= BUSY_LEAST * f.epochs_s)
		return batch * f.later_batches / f.later_busy_s;
	return f.busy_s > 0 ? batch * f.batches / f.busy_s : NAN;
}

static int take_curve(const struct census *s, struct census_pattern *p, const struct run_record *r,
		      struct err *e)
{
	const struct part *probe = record_part(r, F_RUN_PROBE);
	const struct part *points = part(probe, F_PROBE_POINTS);
	const struct part *sized = part(probe, F_PROBE_SIZED);
	struct census_curve *c = &p->run[p->runs];
	const char *why = figure_text(probe, F_PROBE_WHY);
	double sample, got;
	bool client;

	c->n = 0;
	if (!figure_flag(probe, F_PROBE_DONE))
		return err_set(e, ERR_DATA, "readers alone could not be measured: %.400s",
			       why ? why : "there is no probe");
	sample = bytes_of_sample(p, points);
	for (size_t i = 0; i < part_count(points) && c->n < CENSUS_POINTS; i++) {
		take_point(s, p, part_at(points, i), sample, &c->point[c->n]);
		if (c->point[c->n].made_rate > 0)
			c->n++;
	}
	if (c->n < 2)
		return err_set(e, ERR_DATA,
			       "a sample takes longer than there is time for: give "
			       "more with --time");
	for (size_t i = 0; i < part_count(sized); i++) {
		p->other_bytes =
			fmax(p->other_bytes, figure(part_at(sized, i), F_PROBE_POINT_BYTE_RATE));
		p->other_requests = fmax(p->other_requests,
					 figure(part_at(sized, i), F_PROBE_POINT_REQUEST_RATE));
	}
	p->readers = figure(probe, F_PROBE_RUN_READERS);
	p->cold = (p->runs == 0 || p->cold) && figure_flag(probe, F_PROBE_COLD);
	p->cached = fmax(p->cached, r->facts.cached_share);
	got = loaders_got(r, &client);
	/* what this machine's processors limit says nothing of the storage */
	p->client_rate = client ? fmax(p->client_rate, got) : p->client_rate;
	p->checked[p->runs++] = client ? NAN : got;
	return 0;
}

static const char *model_of(const struct census *s, const struct census_pattern *p)
{
	for (size_t i = 0; i < s->rows; i++)
		if (s->row[i].pattern == (size_t)(p - s->pattern))
			return s->row[i].model;
	return p->workload;
}

/* Bytes that a run's requests got, with those of its probe. */
static double bytes_returned(const struct run_record *r)
{
	const struct part *points = part(record_part(r, F_RUN_PROBE), F_PROBE_POINTS);
	double sum = figure(record_part(r, F_RUN_TRAINING), F_TRAINING_RETURNED);

	for (size_t i = 0; i < part_count(points); i++)
		sum += figure(part_at(points, i), F_PROBE_POINT_BYTES);
	return sum;
}

/* Its files are removed, so that others have their room; where it was room that failed, the bytes
 * are told. */
static void give_up(struct surveying *x, struct census_pattern *p, const struct err *why)
{
	AUTO_FREE char *data = pattern_folder(x->s, p);
	char need[32], have[32];
	struct statvfs v;

	snprintf(p->why, sizeof(p->why), "%.*s", (int)sizeof(p->why) - 1, why->text);
	remove_tree(data, NULL);
	x->there -= (double)p->bytes;
	if (!x->has_files || statvfs(x->s->o->folder, &v) != 0 ||
	    (double)v.f_bavail * (double)v.f_frsize >= (double)p->bytes)
		return;
	snprintf(p->why, sizeof(p->why), "its files need %s, and %s are free: %.300s",
		 str_bytes((double)p->bytes, need, sizeof(need)),
		 str_bytes((double)v.f_bavail * (double)v.f_frsize, have, sizeof(have)), why->text);
}

/* A pattern that cannot be measured leaves the others. */
static int measure(struct surveying *x, struct census_pattern *p, struct err *e)
{
	struct census *s = x->s;
	struct run_record r = {0};
	bool first = p->runs == 0;
	char rate[32];
	int rc;

	if (p->why[0])
		return 0;
	tell(s, false, "%s: 1, 2, 4, ... readers, cold", model_of(s, p));
	if (x->watch)
		census_watch_begin(x->watch);
	rc = run_pattern(x, p, x->probe_s, first, &r, e);
	if (x->watch && rc == 0)
		census_watch_end(x->watch, bytes_returned(&r), &p->origin);
	if (first) {
		s->written += (double)p->bytes;
		x->there += (double)p->bytes;
		s->most = fmax(s->most, x->there);
	}
	if (rc == 0)
		rc = take_curve(s, p, &r, e);
	record_release(&r);
	if (rc == 0 && first) {
		const struct census_curve *c = &p->run[0];

		tell(s, true, "%s: %s/s with %.0f readers", model_of(s, p),
		     str_bytes(c->point[c->n - 1].bytes, rate, sizeof(rate)),
		     c->point[c->n - 1].readers);
	}
	if (rc == 0 || rc == ERR_CANCELED)
		return rc;
	if (first)
		give_up(x, p, e);
	return 0;
}

/* ---- all of them ---- */

static double bounded(double v, double least, double most)
{
	return fmax(least, fmin(v, most));
}

/* A first look tells how much can be written and read in the time there is. */
static int look_first(struct surveying *x, struct err *e)
{
	struct census *s = x->s;
	struct census_pattern p = s->pattern[0];
	AUTO_FREE char *data = pattern_folder(s, &s->pattern[0]);
	struct run_record r = {0};
	const struct part *generated, *points;
	int rc;

	census_shape(&p, (uint64_t)fmin(BYTES_FIRST, x->room / (double)(s->patterns + 1)));
	tell(s, false, "a first look: writing and reading %u MiB", (unsigned)(p.bytes / MIB));
	/* the folder goes by the place in the list */
	{
		struct census_pattern kept = s->pattern[0];

		s->pattern[0] = p;
		rc = run_pattern(x, &s->pattern[0], 4 * PROBE_LEAST_S, true, &r, e);
		s->pattern[0] = kept;
	}
	if (rc == 0) {
		generated = record_part(&r, F_RUN_GENERATION);
		points = part(record_part(&r, F_RUN_PROBE), F_PROBE_POINTS);
		s->write_rate = figure(generated, F_GENERATION_RATE);
		for (size_t i = 0; i < part_count(points); i++)
			s->read_rate = fmax(s->read_rate,
					    figure(part_at(points, i), F_PROBE_POINT_BYTE_RATE));
		s->written += (double)p.bytes;
		s->most = fmax(s->most, (double)p.bytes);
	}
	record_release(&r);
	return rc == 0 ? remove_tree(data, e) : rc;
}

static void shape_patterns(const struct surveying *x)
{
	struct census *s = x->s;
	double slower = isfinite(s->write_rate) ? fmin(s->write_rate, s->read_rate) : s->read_rate;
	double share = x->room / (double)s->patterns;
	double scale = s->o->time_s / (double)s->patterns / PATTERN_S;

	for (size_t i = 0; i < s->patterns; i++)
		census_shape(&s->pattern[i],
			     (uint64_t)fmin(share, bounded(WRITE_S * scale * slower, BYTES_LEAST,
							   BYTES_MOST)));
}

/* Of what is left, each run gets its part: half of it for the readers, as the rest of a run takes
 * about as long. */
static void share_time(struct surveying *x)
{
	double left = x->s->o->time_s - passed(x);

	x->probe_s =
		bounded(0.5 * left / fmax(1, x->runs_left), 9 * PROBE_LEAST_S / 4, PROBE_MOST_S);
	x->runs_left--;
}

static int measure_all(struct surveying *x, struct err *e)
{
	struct census *s = x->s;
	double last = 0;
	int rc = 0;

	x->runs_left = (double)s->patterns * 2;
	for (size_t k = 0; rc == 0 && k < CENSUS_RUNS; k++)
		for (size_t i = 0; rc == 0 && i < s->patterns; i++) {
			double begin = passed(x);

			/* each has one run, however long it takes, and one more to doubt the first
			 */
			if (k > 0 && begin + last > s->o->time_s &&
			    (k > 1 || !census_doubtful(&s->pattern[i].run[0])))
				continue;
			share_time(x);
			rc = measure(x, &s->pattern[i], e);
			last = passed(x) - begin;
		}
	return rc;
}

/* ---- checkpoints ---- */

static int save_once(struct surveying *x, uint32_t writers, double bytes, struct err *e)
{
	struct census *s = x->s;
	AUTO_FREE char *folder = path_join(s->own, "checkpoint");
	struct str_list keys = {0}, places = {0}, command = {0};
	struct runner_base base = s->o->base;
	struct run_record r = {0};
	struct run_figures f;
	int rc;

	base.workload = "default";
	override_put(&keys, "workflow.train", "false");
	override_put(&keys, "workflow.generate_data", "false");
	override_put(&keys, "workflow.evaluation", "false");
	override_put(&keys, "workflow.checkpoint", "true");
	override_put(&keys, "checkpoint.fsync", "true");
	override_put(&keys, "checkpoint.type", "all_ranks");
	override_put(&keys, "checkpoint.num_checkpoints_write", "1");
	override_put(&keys, "checkpoint.num_checkpoints_read", "0");
	override_put(&keys, "model.model_size_bytes", "%.0f", bytes / writers);
	override_put_text(&keys, "checkpoint.checkpoint_folder", folder);
	str_list_add(&places, xstrdup("-n"));
	str_list_add(&places, xasprintf("%u", writers));
	runner_command(&base, "run", &places, &keys, &command);
	str_list_release(&keys);
	str_list_release(&places);
	tell(s, false, "a checkpoint with %u writer%s", writers, writers == 1 ? "" : "s");
	rc = run_child(x, &command, &r, e);
	if (rc == 0) {
		figures_find(&f, &r);
		s->written += f.checkpoint_bytes;
		s->most = fmax(s->most, x->there + f.checkpoint_bytes);
		if (f.write_rate > s->save_rate) {
			s->save_rate = f.write_rate;
			s->writers = writers;
		}
		s->save_each[s->saves_made++] = f.write_rate;
	}
	record_release(&r);
	return remove_tree(folder, rc == 0 ? e : NULL) < 0 && rc == 0 ? e->code : rc;
}

/* The sizes of MLPerf Storage's checkpoints, from its own workloads. */
static void size_saves(struct census *s)
{
	static const struct {
		const char *name, *workload;
		int64_t ranks;
	} known[CENSUS_SAVES] = {{"8B", "llama3_8b", 8},
				 {"70B", "llama3_70b", 64},
				 {"405B", "llama3_405b", 512},
				 {"1T", "llama3_1t", 1024}};

	for (size_t i = 0; i < CENSUS_SAVES; i++) {
		struct workload_request req = {.workload = known[i].workload,
					       .ranks = known[i].ranks};
		struct checkpoint_totals t;
		struct checkpoint_plan p;
		struct workload w = {0};
		struct err e;

		if (workload_load(&w, &req, &e) == 0 &&
		    checkpoint_plan_init(&p, &w, known[i].ranks, &e) == 0) {
			checkpoint_plan_totals(&p, &t);
			checkpoint_plan_release(&p);
			s->save[s->saves++] = (struct census_save){
				.name = known[i].name,
				.bytes = (double)t.total_bytes,
				.seconds = (double)t.total_bytes / s->save_rate};
		}
		workload_release(&w);
	}
}

/* After the patterns, whose files are gone by then: 1, 2, 4, 8 writers, and the best again. */
static int measure_saves(struct surveying *x, struct err *e)
{
	struct census *s = x->s;
	double rate = isfinite(s->write_rate) && s->write_rate > 0 ? s->write_rate : BYTES_MOST;
	double bytes = fmin(bounded(2 * rate, BYTES_LEAST, SAVE_BYTES_MOST), x->room);
	int rc = 0;

	for (uint32_t n = 1; rc == 0 && n <= 8; n *= 2)
		rc = save_once(x, n, bytes, e);
	if (rc == 0)
		rc = save_once(x, s->writers, bytes, e);
	if (rc == 0)
		size_saves(s);
	return rc == 0 || rc == ERR_CANCELED ? rc : err_wrap(e, "checkpoints");
}

/* ---- the answer ---- */

static const double LEAST_HALF = 0.03; /* of an interval, relative */
static const double ALONE_HALF = 0.1;  /* where a pattern has one run */
static const double SCALES = 0.6;      /* slope from which on requests wait for nothing but
					* themselves */
static const double FLAT = 0.25;
static const double IDLE = 0.85; /* of what readers alone get: below it the loader's are not all
				  * busy */
static const double HOST_BUSY = 0.8;

/* How the loaders' own rate compares with the curve: where more readers get more, it tells how many
 * of theirs read at a time; elsewhere the two must agree. */
static void compare_runs(struct census_pattern *p)
{
	double sum = 0, said;
	size_t n = 0;

	for (size_t i = 0; i < p->runs; i++)
		if (isfinite(p->checked[i]) && p->checked[i] > 0) {
			sum += log(p->checked[i]);
			n++;
		}
	said = census_supply(&p->curve, p->readers, true);
	if (n == 0 || !(said > 0))
		return;
	p->agrees = exp(sum / (double)n) / said;
	if (p->agrees < IDLE && census_slope(&p->curve, p->readers) > SCALES)
		p->busy = fmax(1 / p->readers,
			       pow(p->agrees, 1 / census_slope(&p->curve, p->readers)));
}

struct highest {
	double bytes, requests, opens;
};

static void raise_to(struct highest *h, double bytes, double requests, double opens)
{
	h->bytes = fmax(h->bytes, bytes);
	h->requests = fmax(h->requests, requests);
	h->opens = fmax(h->opens, opens);
}

static struct highest highest_of(const struct census *s)
{
	struct highest h = {0};

	for (size_t i = 0; i < s->patterns; i++) {
		const struct census_pattern *p = &s->pattern[i];

		raise_to(&h, p->other_bytes, p->other_requests, 0);
		for (size_t k = 0; k < p->curve.n; k++)
			raise_to(&h, p->curve.point[k].bytes, p->curve.point[k].requests,
				 p->curve.point[k].opens);
	}
	return h;
}

/* The point nearest below. */
static const struct census_point *point_at(const struct census_curve *c, double readers)
{
	size_t i = 0;

	while (i + 1 < c->n && c->point[i + 1].readers <= 1.01 * readers)
		i++;
	return &c->point[i];
}

/* What all patterns share tells what a flat curve has come up against. */
static enum census_limit find_limit(const struct census_curve *c, double readers,
				    const struct highest *h)
{
	const struct census_point *p = point_at(c, readers);
	double bytes = p->bytes / h->bytes, requests = p->requests / h->requests;
	double opens = p->opens / h->opens;

	if (p->cpu > HOST_BUSY)
		return CENSUS_HOST;
	if (census_slope(c, readers) > SCALES)
		return CENSUS_LATENCY;
	if (p->open_share > 0.5 || (opens > bytes && opens > requests && p->open_share > 0.2))
		return CENSUS_OPENS;
	if (fabs(requests - bytes) < TOLD_APART)
		return CENSUS_EITHER;
	return requests > bytes ? CENSUS_REQUESTS : CENSUS_BANDWIDTH;
}

static double half_of(const struct census_pattern *p)
{
	return fmax(LEAST_HALF, isfinite(p->spread) ? p->spread : ALONE_HALF);
}

static void answer_row(const struct census *s, struct census_row *r, const struct highest *h)
{
	const struct census_pattern *p = &s->pattern[r->pattern];
	const struct census_curve *c = &p->curve;
	double need = r->need.samples * r->target, readers = r->readers * p->busy, most, half;
	bool beyond;

	if (c->n == 0)
		return;
	most = c->point[c->n - 1].readers;
	half = half_of(p);
	r->fed = census_feeds(c, readers, need, &beyond);
	r->at_readers = fmin(most, fmax(1, r->fed) * readers);
	r->limit = find_limit(c, r->at_readers, h);
	r->supply_bytes = census_supply(c, r->at_readers, false) * p->sample_bytes;
	r->at_least = r->limit == CENSUS_HOST || (beyond && census_slope(c, most) > FLAT);
	r->low = r->fed * exp(-half);
	r->high = r->at_least ? NAN : r->fed * exp(half);
	/* what the loaders got where no more readers would help */
	if (isfinite(p->agrees) && p->busy >= 1 && fabs(log(p->agrees)) > half) {
		r->low = fmin(r->low, r->fed * p->agrees);
		r->high = fmax(r->high, r->fed * p->agrees);
	}
}

static void answer(struct census *s)
{
	struct highest h;

	for (size_t i = 0; i < s->patterns; i++) {
		struct census_pattern *p = &s->pattern[i];

		census_mean(p->run, p->runs, &p->curve, &p->spread);
		if (p->runs)
			compare_runs(p);
	}
	h = highest_of(s);
	for (size_t i = 0; i < s->rows; i++)
		answer_row(s, &s->row[i], &h);
}

/* ---- the whole ---- */

int census_check(const struct census *s, struct err *e)
{
	const struct census_row *missing = NULL;
	size_t n = 0;

	for (size_t i = s->rows; i-- > 0;)
		if (!isfinite(s->row[i].fed)) {
			missing = &s->row[i];
			n++;
		}
	if (!missing)
		return 0;
	return err_set(e, ERR_DATA, "survey: %s of %zu workload%s measured; %s: %.700s",
		       n == s->rows ? "none" : "only a part", s->rows,
		       s->rows == 1 ? " was" : "s was", missing->name,
		       s->pattern[missing->pattern].why);
}

static int remove_patterns(struct surveying *x, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < x->s->patterns; i++) {
		AUTO_FREE char *data = pattern_folder(x->s, &x->s->pattern[i]);

		rc = remove_tree(data, e);
	}
	x->there = 0;
	return rc;
}

static int make_all(struct surveying *x, struct err *e)
{
	int rc = look_first(x, e);

	if (rc == 0) {
		shape_patterns(x);
		rc = measure_all(x, e);
	}
	if (rc == 0)
		rc = remove_patterns(x, e);
	if (rc == 0 && x->s->o->checkpoint)
		rc = measure_saves(x, e);
	return rc;
}

int census_make(struct census *s, const struct census_options *o, struct err *e)
{
	struct surveying x = {.s = s, .lock.fd = -1, .begin = clock_now_ns()};
	struct err unclean = {0};
	bool ours = false;
	int rc, clean = 0;

	s->o = o;
	s->own = path_join(o->folder, CENSUS_FOLDER);
	s->host_cpus = host_usable_cpus();
	rc = census_list(s, e);
	if (rc == 0)
		rc = look_at_keys(&x, e);
	if (rc == 0)
		rc = check_folder(&x, e);
	if (rc == 0)
		rc = runner_lock(&x.lock, o->folder, LOCK_NAME, "survey", "FOLDER", e);
	if (rc == 0)
		rc = clear_own(s, e);
	if (rc == 0)
		rc = find_room(&x, e);
	if (rc == 0) {
		ours = true;
		rc = make_own(s, e);
	}
	if (rc == 0 && !s->emulated)
		x.watch = census_watch_new(o->folder);
	if (rc == 0)
		rc = make_all(&x, e);
	if (ours)
		clean = remove_tree(s->own, &unclean);
	file_unlock(&x.lock);
	s->seconds = passed(&x);
	if (rc == 0 && clean < 0) {
		*e = unclean;
		rc = clean;
	}
	if (rc == 0)
		answer(s);
	if (rc == 0 && x.watch)
		census_find_source(s, x.watch);
	free(x.watch);
	return rc;
}

void census_release(struct census *s)
{
	free(s->pattern);
	free(s->row);
	free(s->own);
	*s = (struct census){0};
}
