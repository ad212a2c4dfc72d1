/* Checkpoints over numbers of writers. */
#include "capacity/writers.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/remove_tree.h"
#include "base/say.h"
#include "base/str.h"
#include "capacity/point_run.h"
#include "capacity/search_folder.h"
#include "readback/result_folder.h"
#include "result/json_out.h"
#include "workload/need.h"

#define OWN_FOLDER "stoker_capacity"
#define POINTS_MOST (sizeof(((struct writers *)0)->point) / sizeof(struct writers_point))
static const double GROWS = 1.05;    /* a rate, with twice the writers */
static const unsigned FLAT_MOST = 2; /* doublings without that */
static const double LIMIT_S = 24 * 3600;

static double number(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

static double read_from_cache(const json_t *load)
{
	const json_t *one;
	double asked = 0, fetched = 0;
	size_t i;

	json_array_foreach(json_object_get(load, "each"), i, one)
	{
		asked += number(one, "tensor_bytes");
		fetched += number(one, "process_read_bytes");
	}
	return asked > 0 && isfinite(fetched) ? fmax(0, 1 - fetched / asked) : NAN;
}

static int read_writers(const char *folder, struct writers_point *out, struct err *e)
{
	json_t *result = result_folder_json(folder, "result.json", e);
	const json_t *of = json_object_get(result, "checkpoint");
	const json_t *save = json_object_get(of, "save"), *load = json_object_get(of, "load");

	if (!result)
		return e->code;
	out->bytes = number(of, "total_bytes");
	out->write_s = number(save, "duration_mean_s");
	out->write_rate = number(save, "throughput_mean_bytes_per_s");
	out->read_s = number(load, "duration_mean_s");
	out->read_rate = number(load, "throughput_mean_bytes_per_s");
	out->read_cached = read_from_cache(load);
	out->seconds = number(result, "wall_s");
	json_decref(result);
	return isfinite(out->write_rate)
		       ? 0
		       : err_set(e, ERR_DATA, "the run in '%s' wrote no checkpoint", folder);
}

const struct writers_point *writers_best(const struct writers *x, bool reading)
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

static int measure(struct writers *x, const struct capacity *c, const char *own, uint32_t writers,
		   const struct str_list *keys, struct err *e)
{
	struct point_order order = {.accelerators = writers,
				    .repeat = 1,
				    .keys = keys,
				    .expected_s = NAN,
				    .limit_s = LIMIT_S};
	struct capacity_run run = {.accelerators = writers, .repeat = 1};
	struct capacity_event event = {
		.kind = CAPACITY_DONE, .accelerators = writers, .repeat = 1, .run = &run};
	struct writers_point *p = &x->point[x->points];
	AUTO_FREE char *folder = NULL;
	struct err unclean = {0};
	bool found;
	int rc = point_make(c, &order, &folder, &found, e), clean;

	clean = remove_tree(own, &unclean);
	if (rc < 0)
		return rc == ERR_CANCELED
			       ? rc
			       : err_wrap(e, "%u writer%s", writers, writers == 1 ? "" : "s");
	*p = (struct writers_point){.writers = writers};
	rc = read_writers(folder, p, e);
	if (rc < 0)
		return rc;
	x->points++;
	run.bytes_per_s = p->write_rate;
	run.seconds = p->seconds;
	run.au = NAN;
	event.seconds = p->seconds;
	if (found)
		event.kind = CAPACITY_FOUND;
	if (c->tell)
		c->tell(c->arg, &event);
	if (clean < 0)
		*e = unclean;
	return clean;
}

static int save(const struct writers *x, const struct capacity_options *o, const char *key,
		struct err *e)
{
	json_t *root = writers_json(x, o);

	json_put_text(root, "key", key);
	return json_write(root, o->folder, CAPACITY_NAME, e);
}

int writers_find(struct writers *x, const struct workload *w, const struct capacity_options *o,
		 capacity_event_fn tell, void *arg, struct err *e)
{
	AUTO_FREE char *own = path_join(w->checkpoint.checkpoint_folder, OWN_FOLDER);
	AUTO_FREE char *above = path_nearest(w->checkpoint.checkpoint_folder, &(struct stat){0});
	const struct capacity c = {.o = o, .tell = tell, .arg = arg};
	struct search_folder folder;
	struct str_list keys = {0};
	unsigned flat = 0;
	int rc;

	*x = (struct writers){0};
	rc = search_folder_open(&folder, o, "checkpoints", e);
	point_key(&keys, "workflow.train", "false");
	point_key(&keys, "workflow.generate_data", "false");
	point_key(&keys, "workflow.evaluation", "false");
	point_key(&keys, "workflow.checkpoint", "true");
	point_key(&keys, "checkpoint.fsync", "true");
	point_key(&keys, "checkpoint.num_checkpoints_write", "2");
	point_key(&keys, "checkpoint.num_checkpoints_read", "2");
	point_key_text(&keys, "checkpoint.checkpoint_folder", own);
	for (uint32_t n = 1; rc == 0 && n <= o->max && flat < FLAT_MOST && x->points < POINTS_MOST;
	     n *= 2) {
		double write = best_rate(x, false), read = best_rate(x, true);

		rc = stop_is_set(o->stop) ? err_set(e, ERR_CANCELED, "interrupted")
					  : measure(x, &c, own, n, &keys, e);
		/* what is known stays known */
		if (rc == -ENOMEM && x->points) {
			snprintf(x->stopped_by, sizeof(x->stopped_by), "%s", e->text);
			rc = 0;
			break;
		}
		flat = best_rate(x, false) < GROWS * write && best_rate(x, true) < GROWS * read
			       ? flat + 1
			       : 0;
	}
	x->complete = rc == 0;
	if (x->points && (rc == 0 || rc == ERR_CANCELED)) {
		struct err unwritten = {0};

		if (save(x, o, folder.key, &unwritten) < 0 && rc == 0) {
			*e = unwritten;
			rc = unwritten.code;
		}
	}
	remove_empty_folders(w->checkpoint.checkpoint_folder, above);
	str_list_release(&keys);
	search_folder_close(&folder);
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

		json_put_int(one, "writers", p->writers);
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
