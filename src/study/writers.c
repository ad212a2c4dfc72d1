/* Checkpoints over numbers of writers. */
#include "study/capacity.h"

#include <math.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/say.h"
#include "base/str.h"
#include "conf/override.h"
#include "readback/figures.h"
#include "readback/record.h"
#include "result/json_out.h"
#include "workload/need.h"

#define OWN_FOLDER "stoker_capacity"
#define POINTS_MOST (sizeof(((struct writers *)0)->point) / sizeof(struct writers_point))
static const double GROWS = 1.05;    /* a rate, with twice the writers */
static const unsigned FLAT_MOST = 2; /* doublings without that */
static const double LIMIT_S = 24 * 3600;

/* The point with the highest rate of writing, or of reading; NULL. */
static const struct writers_point *writers_best(const struct writers *x, bool reading)
{
	const struct writers_point *best = NULL;
	double most = 0;

	for (size_t i = 0; i < x->points; i++) {
		double rate = reading ? x->point[i].read_rate : x->point[i].write_rate;

		if (rate > most) {
			most = rate;
			best = &x->point[i];
		}
	}
	return best;
}

static double best_rate(const struct writers *x, bool reading)
{
	const struct writers_point *p = writers_best(x, reading);

	return !p ? 0 : reading ? p->read_rate : p->write_rate;
}

struct searching {
	struct writers *x;
	const struct capacity_options *o;
	capacity_event_fn tell;
	void *tell_arg;
	struct search_folder folder;
	struct str_list keys;
	const char *own; /* folder of the checkpoints */
	uint32_t writers, next;
	unsigned flat; /* doublings that brought nothing */
};

static int next_row(void *arg, struct runner_row *row, struct err *e)
{
	struct searching *s = arg;

	(void)e;
	if (s->next > s->o->max || s->flat >= FLAT_MOST || s->x->points >= POINTS_MOST)
		return 0;
	s->writers = s->next;
	s->next *= 2;
	search_row(s->o, s->writers, 1, 0, &s->keys, row);
	row->limit_s = LIMIT_S;
	return 1;
}

static void tell_row(void *arg, enum runner_event event, const struct runner_row *row)
{
	const struct searching *s = arg;
	const struct capacity_event told = {.kind = event == RUNNER_RUN ? CAPACITY_RUN
									: CAPACITY_TICK,
					    .accelerators = s->writers,
					    .repeat = 1,
					    .expected_s = NAN,
					    .seconds = row->seconds};

	if (s->tell)
		s->tell(s->tell_arg, &told);
}

static void take_record(struct writers_point *out, const struct run_record *r)
{
	struct run_figures f;

	figures_find(&f, r);
	run_name_of(&out->name, r);
	out->bytes = f.checkpoint_bytes;
	out->write_s = f.write_s;
	out->write_rate = f.write_rate;
	out->read_s = f.read_s;
	out->read_rate = f.read_rate;
	out->read_cached = f.read_cached;
	out->seconds = f.wall_s;
}

static int read_writers(const char *folder, struct writers_point *out, struct err *e)
{
	struct run_record r = {0};
	int rc = 0;

	record_load(&r, folder);
	if (r.broken)
		rc = err_set(e, ERR_DATA, "%.900s", r.broken);
	else
		take_record(out, &r);
	record_release(&r);
	if (rc < 0)
		return rc;
	return isfinite(out->write_rate)
		       ? 0
		       : err_set(e, ERR_DATA, "the run in '%s' wrote no checkpoint", folder);
}

/* Too little memory for so many leaves what is known. */
static int end_below(struct searching *s, const struct runner_row *row, struct err *e)
{
	*e = row->why;
	err_wrap(e, "%u writer%s", s->writers, s->writers == 1 ? "" : "s");
	if (!search_lacks_resources(&row->why) || s->x->points == 0)
		return e->code;
	snprintf(s->x->stopped_by, sizeof(s->x->stopped_by), "%s", e->text);
	s->next = UINT32_MAX;
	return 0;
}

static int take_row(void *arg, const struct runner_row *row, struct err *e)
{
	struct searching *s = arg;
	struct writers *x = s->x;
	struct writers_point *p = &x->point[x->points];
	double write = best_rate(x, false), read = best_rate(x, true);
	struct capacity_run run = {.accelerators = s->writers, .repeat = 1, .au = NAN};
	const struct capacity_event event = {.kind = row->end == ROW_FOUND ? CAPACITY_FOUND
									   : CAPACITY_DONE,
					     .accelerators = s->writers,
					     .repeat = 1,
					     .run = &run};
	int rc;

	if (row->end == ROW_FAILED)
		return end_below(s, row, e);
	*p = (struct writers_point){.writers = s->writers};
	rc = read_writers(row->folder, p, e);
	if (rc < 0)
		return rc;
	x->points++;
	run.bytes_per_s = p->write_rate;
	run.seconds = p->seconds;
	if (s->tell)
		s->tell(s->tell_arg, &event);
	s->flat = best_rate(x, false) < GROWS * write && best_rate(x, true) < GROWS * read
			  ? s->flat + 1
			  : 0;
	return remove_tree(s->own, e);
}

static void put_keys(struct searching *s)
{
	override_put(&s->keys, "workflow.train", "false");
	override_put(&s->keys, "workflow.generate_data", "false");
	override_put(&s->keys, "workflow.evaluation", "false");
	override_put(&s->keys, "workflow.checkpoint", "true");
	override_put(&s->keys, "checkpoint.fsync", "true");
	override_put(&s->keys, "checkpoint.num_checkpoints_write", "2");
	override_put(&s->keys, "checkpoint.num_checkpoints_read", "2");
	override_put_text(&s->keys, "checkpoint.checkpoint_folder", s->own);
}

int writers_find(struct writers *x, const struct workload *w, const struct capacity_options *o,
		 capacity_event_fn tell, void *arg, struct err *e)
{
	AUTO_FREE char *own = path_join(w->checkpoint.checkpoint_folder, OWN_FOLDER);
	AUTO_FREE char *above = path_nearest(w->checkpoint.checkpoint_folder, &(struct stat){0});
	struct searching s = {.x = x, .o = o, .tell = tell, .tell_arg = arg, .own = own, .next = 1};
	const struct runner r = {.stop = o->stop,
				 .mark = search_mark,
				 .log = search_log,
				 .next = next_row,
				 .tell = tell_row,
				 .take = take_row,
				 .arg = &s};
	struct err unwritten = {0};
	int rc;

	*x = (struct writers){0};
	put_keys(&s);
	rc = search_folder_open(&s.folder, o, "checkpoints", e);
	if (rc == 0) {
		rc = runner_run(&r, e);
		/* of a run that failed, too */
		remove_tree(own, NULL);
	}
	x->complete = rc == 0;
	if (x->points && (rc == 0 || rc == ERR_CANCELED) &&
	    search_folder_save(&s.folder, o, writers_json(x, o), &unwritten) < 0 && rc == 0) {
		*e = unwritten;
		rc = unwritten.code;
	}
	remove_empty_folders(w->checkpoint.checkpoint_folder, above);
	str_list_release(&s.keys);
	file_unlock(&s.folder.lock);
	return rc;
}

static void put_best(const struct writers *x, bool reading, struct buf *out)
{
	const struct writers_point *p = writers_best(x, reading);
	char rate[48], took[32];

	if (!p)
		return;
	buf_say(out, "  %-14s%s at most, with %u writer%s: %s a checkpoint",
		reading ? "read" : "write",
		need_rate_text(reading ? p->read_rate : p->write_rate, rate, sizeof(rate)),
		p->writers, p->writers == 1 ? "" : "s",
		str_seconds(reading ? p->read_s : p->write_s, took, sizeof(took)));
	if (reading && p->read_cached > 0.1)
		buf_say(out, "; %.0f %% of it from the page cache, not from the storage",
			100 * p->read_cached);
	buf_putc(out, '\n');
}

void writers_text(const struct writers *x, const struct capacity_options *o, struct buf *out)
{
	buf_say(out, "%s: checkpoints%s\n", o->name,
		x->complete ? "" : ", as far as the search got");
	put_best(x, false, out);
	put_best(x, true, out);
	if (x->stopped_by[0])
		buf_say(out, "  %-14s%s\n", "ended by", x->stopped_by);
	buf_say(out, "  %-14s%s\n\n  %7s  %10s  %9s  %12s  %9s  %12s\n", "results", o->folder,
		"writers", "bytes", "write", "", "read", "");
	for (size_t i = 0; i < x->points; i++) {
		const struct writers_point *p = &x->point[i];
		char bytes[32], write_s[32], read_s[32], write[48], read[48];

		buf_say(out, "  %7u  %10s  %9s  %12s  %9s  %12s\n", p->writers,
			str_bytes(p->bytes, bytes, sizeof(bytes)),
			str_seconds(p->write_s, write_s, sizeof(write_s)),
			need_rate_text(p->write_rate, write, sizeof(write)),
			str_seconds(p->read_s, read_s, sizeof(read_s)),
			need_rate_text(p->read_rate, read, sizeof(read)));
	}
}

json_t *writers_json(const struct writers *x, const struct capacity_options *o)
{
	const struct writers_point *write = writers_best(x, false), *read = writers_best(x, true);
	json_t *root = json_object(), *points = json_array();

	json_put_mark(root);
	json_put_text(root, "workload", o->name);
	json_put_text(root, "of", "checkpoints");
	json_put_bool(root, "complete", x->complete);
	json_put_text(root, "ended_by", x->stopped_by[0] ? x->stopped_by : NULL);
	json_put_real(root, "write_bytes_per_s", write ? write->write_rate : NAN);
	json_put_real(root, "write_s", write ? write->write_s : NAN);
	json_put_real(root, "read_bytes_per_s", read ? read->read_rate : NAN);
	json_put_real(root, "read_s", read ? read->read_s : NAN);
	for (size_t i = 0; i < x->points; i++) {
		const struct writers_point *p = &x->point[i];
		json_t *one = json_object();

		AUTO_FREE char *folder = xasprintf("%u/1", p->writers);

		json_put_int(one, "writers", p->writers);
		json_put_text(one, "folder", folder);
		run_name_put(one, &p->name);
		json_put_real(one, "bytes", p->bytes);
		json_put_real(one, "write_s", p->write_s);
		json_put_real(one, "write_bytes_per_s", p->write_rate);
		json_put_real(one, "read_s", p->read_s);
		json_put_real(one, "read_bytes_per_s", p->read_rate);
		json_put_real(one, "read_page_cache_percent", 100 * p->read_cached);
		json_array_append_new(points, one);
	}
	json_put(root, "points", points);
	return root;
}

/* ---- made again ---- */

struct again {
	struct capacity_options o;
	struct writers x;
	bool gone; /* a run is not there */
};

static void *begin_again(const json_t *stated, const char *folder)
{
	const char *ended = derive_string(stated, "ended_by");
	struct again *a = xcalloc(1, sizeof(*a));

	a->o = (struct capacity_options){.name = derive_string(stated, "workload"),
					 .folder = folder};
	a->x.complete = json_is_true(json_object_get(stated, "complete"));
	snprintf(a->x.stopped_by, sizeof(a->x.stopped_by), "%s", ended ? ended : "");
	return a;
}

static void take_again(void *of, const json_t *row, struct run_record *r, struct derive *d)
{
	struct again *a = of;
	struct writers_point *p = &a->x.point[a->x.points];

	if (!r || a->x.points == POINTS_MOST) {
		a->gone = true;
		return;
	}
	*p = (struct writers_point){
		.writers = (uint32_t)json_integer_value(json_object_get(row, "writers"))};
	take_record(p, r);
	run_name_stated(&p->name, row);
	derive_equal(d, p->writers, r->ranks, "its run", CAPACITY_NAME " writers");
	derive_text(d, a->o.name, sums_workload(r), "its run", CAPACITY_NAME " workload");
	a->x.points++;
}

static json_t *made_again(void *of, struct derive *d)
{
	struct again *a = of;

	if (!a->gone)
		return writers_json(&a->x, &a->o);
	derive_unchecked(d, "runs that it counts are not there: nothing was made again");
	return NULL;
}

static void release_again(void *of)
{
	free(of);
}

const struct sums_ops sums_writers = {
	.file = CAPACITY_NAME,
	.of = "checkpoints",
	.list = "points",
	.numbered = true,
	.told = "whether the search came to its end, and what ended it",
	.begin = begin_again,
	.take = take_again,
	.made = made_again,
	.release = release_again,
};
