#include "study/capacity.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/file.h"
#include "base/str.h"
#include "os/sysinfo.h"
#include "conf/override.h"
#include "dataset/dataset.h"
#include "dataset/listing.h"
#include "dataset/manifest.h"
#include "loader/loader.h"
#include "readback/result_folder.h"
#include "result/json_out.h"
#include "run/foresee.h"
#include "study/study.h"

#define MARK_NAME "stoker_capacity.json"
#define MANIFEST_MOST (1u << 20)
#define PROGRESS_MOST (16u << 20)
#define EPOCHS_MOST 16
#define SAVES_MOST 3             /* checkpoints of a point, about */
static const double GROWS = 1.2; /* files, beyond those that a point needs: the next one's */
static const double ROOM = 0.8;  /* of the free space, or memory, that a dataset may take */
static const double GENERATE_S = 24 * 3600;

static bool has_files(const struct workload *w)
{
	return workload_base_store(w)->flags & STORE_HAS_FILES &&
	       !(workload_format(w)->flags & FORMAT_NO_IO);
}

/* Somebody has generated another dataset where a search had left its mark. */
static bool is_replaced(const struct samples *s, uint64_t files)
{
	AUTO_FREE char *path = path_join(s->folder, MANIFEST_NAME);
	struct manifest m = {.found = false};
	struct buf text = {0};
	struct err e;
	bool other = file_read(path, MANIFEST_MOST, &text, &e) >= 0 &&
		     manifest_parse(text.data, text.len, path, &m, &e) == 0 &&
		     m.files[DATASET_TRAIN] != files;

	buf_release(&text);
	return other;
}

/* Files that an earlier search left there. */
static bool find_own(struct samples *s)
{
	json_t *mark = result_folder_json(s->folder, MARK_NAME, NULL);
	const json_t *files = json_object_get(mark, "files");
	bool own = json_is_integer(files) && json_integer_value(files) > 0 &&
		   !is_replaced(s, (uint64_t)json_integer_value(files));

	if (own) {
		const char *above = json_string_value(json_object_get(mark, "folder_before"));

		s->made = (uint64_t)json_integer_value(files);
		free(s->above);
		s->above = above ? xstrdup(above) : NULL;
	}
	json_decref(mark);
	return own;
}

/* Nothing of somebody else's is ever mixed with generated files, or removed with them. */
static int find_kind(struct samples *s, const struct workload *w, struct err *e)
{
	AUTO_FREE char *train = path_join(s->folder, dataset_kind_folder[DATASET_TRAIN]);
	bool any;
	int rc;

	s->kind = has_files(w) ? SAMPLES_OWN : SAMPLES_RUN;
	if (s->kind == SAMPLES_RUN || find_own(s))
		return 0;
	if (file_is_dir(train)) {
		s->kind = SAMPLES_GIVEN;
		return 0;
	}
	rc = found_any(s->folder, &any, e);
	if (rc == 0 && !any)
		rc = found_loose(s->folder, &any, e);
	if (rc < 0 || !any)
		return rc;
	return err_set(e, ERR_USAGE,
		       "capacity: '%s' has files, but no training data ('%s'): name the folder of "
		       "a dataset (--data), or a new or empty one (dataset.data_folder), where "
		       "data is then generated",
		       s->folder, train);
}

int samples_init(struct samples *s, const struct workload *w, struct err *e)
{
	const struct loader_ops *loader = loader_find(w->reader.data_loader);
	struct dataset d = {0};
	int rc;

	*s = (struct samples){0};
	if (!w->workflow.train)
		return err_set(e, ERR_USAGE,
			       "capacity: this workload does not train (workflow.train is off), "
			       "so there is no AU to search by");
	if (!(time_dist_mean(&w->train.computation_time) > 0))
		return err_set(
			e, ERR_USAGE,
			"capacity: train.computation_time is 0, and an accelerator that "
			"computes in no time takes whatever it gets: set the time of a step");
	if (!loader)
		return err_set(e, ERR_ABSENT, "reader.data_loader: '%s' is not supported",
			       w->reader.data_loader);
	rc = dataset_init_typical(&d, w, e);
	if (rc < 0)
		return rc;
	loader->window(w, &s->workers, &s->ahead);
	s->folder = xstrdup(d.folder);
	s->above = path_nearest(s->folder, &(struct stat){0});
	s->per_file = d.samples_per_file;
	s->batch = (uint64_t)w->reader.batch_size;
	s->file_bytes = dataset_mean_file_bytes(&d, DATASET_TRAIN, NULL);
	s->evicts = study_begins_cold(w);
	s->cold = s->evicts || w->storage.page_cache == PAGE_CACHE_COLD_EPOCHS;
	s->within = w->checkpoint.steps_between_checkpoints > 0 ||
		    w->checkpoint.seconds_between_checkpoints > 0 || w->checkpoint.async;
	s->given = (double)dataset_samples(&d, DATASET_TRAIN);
	dataset_release(&d);
	return find_kind(s, w, e);
}

void samples_release(struct samples *s)
{
	free(s->folder);
	free(s->above);
	*s = (struct samples){0};
}

static void put_workflow(struct str_list *keys, bool saves)
{
	override_put(keys, "workflow.evaluation", "false");
	override_put(keys, "workflow.checkpoint", saves ? "true" : "false");
}

static uint64_t turn_of(const struct samples *s)
{
	return s->workers ? s->workers : 1;
}

uint64_t samples_left_out(const struct samples *s)
{
	return 1 + s->ahead + turn_of(s) - 1;
}

/* ---- how many files ---- */

/* A reader of files with many samples needs one for itself. */
static uint64_t files_for(const struct samples *s, uint32_t accelerators, uint64_t steps)
{
	double samples = (double)accelerators * (double)s->batch * (double)steps;
	double files = ceil(samples / (double)s->per_file);
	double least = s->per_file > 1 ? (double)accelerators * (double)turn_of(s) : 1;

	return (uint64_t)fmin(1e15, fmax(files, least));
}

/* Bytes that the files may take; INFINITY: not known. */
static double room_for(const struct samples *s)
{
	AUTO_FREE char *near = NULL;
	struct statvfs v;

	if (s->kind == SAMPLES_RUN)
		return ROOM * (double)host_available_bytes();
	near = path_nearest(s->folder, &(struct stat){0});
	if (!near || statvfs(near, &v) < 0)
		return INFINITY;
	return ROOM * ((double)v.f_bavail * (double)v.f_frsize + (double)s->made * s->file_bytes);
}

static uint64_t most_files(const struct samples *s)
{
	return s->file_bytes > 0 ? (uint64_t)fmin(room_for(s) / s->file_bytes, 1e18)
				 : UINT64_MAX / 4;
}

/* ---- steps that files are enough for ---- */

static int load(const struct capacity *c, uint32_t accelerators, const struct str_list *keys,
		struct workload *w, struct err *e)
{
	struct str_list all = {0};
	struct workload_request req = {.workload = c->o->base.workload,
				       .config_dir = c->o->base.config_dir,
				       .ranks = accelerators};
	int rc;

	for (size_t i = 0; i < c->o->base.override_count; i++)
		str_list_add(&all, xstrdup(c->o->base.overrides[i]));
	str_list_copy(&all, keys);
	req.overrides = (const char *const *)all.v;
	req.override_count = all.n;
	rc = workload_load(w, &req, e);
	str_list_release(&all);
	return rc;
}

static int foresee(const struct capacity *c, uint32_t accelerators, const struct str_list *keys,
		   bool memory, struct run_foresight *f, struct err *e)
{
	struct workload w = {0};
	struct dataset d = {0};
	int rc = load(c, accelerators, keys, &w, e);

	*f = (struct run_foresight){0};
	if (rc == 0)
		rc = dataset_init_typical(&d, &w, e);
	if (rc == 0)
		rc = run_foresee(&w, &d, accelerators, memory, f, e);
	dataset_release(&d);
	workload_release(&w);
	return rc;
}

int samples_whole_run(const struct capacity *c, uint32_t accelerators, struct run_foresight *f,
		      struct err *e)
{
	const struct str_list none = {0};

	return foresee(c, accelerators, &none, false, f, e);
}

/* Of an epoch of a rank; 0: not one. */
static uint64_t steps_of_epoch(const struct capacity *c, uint32_t accelerators,
			       const struct str_list *keys, struct err *e)
{
	struct str_list more = {0};
	struct run_foresight f;
	int rc;

	str_list_copy(&more, keys);
	override_put(&more, "train.total_training_steps", "-1");
	rc = foresee(c, accelerators, &more, false, &f, e);
	str_list_release(&more);
	return rc == 0 ? f.steps : 0;
}

/* -ENOMEM when this machine has too little memory for the point; *most: the accelerators that it
 * has enough for. Of several hosts each states it for itself. */
static int check_memory(const struct capacity *c, uint32_t accelerators,
			const struct samples_plan *plan, const struct str_list *keys,
			uint32_t *most, struct err *e)
{
	struct str_list all = {0};
	struct run_foresight f;
	struct err same;
	uint32_t low = 0, high = accelerators;
	int rc = 0;

	str_list_copy(&all, keys);
	override_put(&all, "train.epochs", "%llu", (unsigned long long)plan->epochs);
	override_put(&all, "train.total_training_steps", "%llu", (unsigned long long)plan->steps);
	if (c->o->hosts == 0 && foresee(c, high, &all, true, &f, e) == -ENOMEM) {
		while (high - low > 1) {
			uint32_t half = low + (high - low) / 2;

			if (foresee(c, half, &all, true, &f, &same) == -ENOMEM)
				high = half;
			else
				low = half;
		}
		*most = low;
		rc = -ENOMEM;
	}
	str_list_release(&all);
	return rc;
}

/* The files of a point with the fewest steps do not fit: what is missing is room. */
static int no_room(const struct samples *s, const struct capacity *c, uint64_t files, struct err *e)
{
	bool memory = s->kind == SAMPLES_RUN;
	char need[32], have[32];

	return err_set(e, -ENODATA,
		       "the files that a point reads need %s at least, and %s are free in %s, of "
		       "which %.0f %% may be used: try %s%s",
		       str_bytes((double)files * s->file_bytes, need, sizeof(need)),
		       str_bytes(room_for(s) / ROOM, have, sizeof(have)),
		       memory ? "this machine's memory" : s->folder, 100 * ROOM,
		       c->o->small ? "" : "--small, or ",
		       memory ? "smaller samples" : "dataset.data_folder on another file system");
}

static int too_few(const struct samples *s, const struct capacity *c, uint64_t of_epoch,
		   uint32_t accelerators, uint32_t *most, const struct err *why, struct err *e)
{
	uint64_t least = samples_left_out(s) + turn_of(s),
		 files = files_for(s, accelerators, least);
	double samples =
		s->kind == SAMPLES_GIVEN ? s->given : (double)s->files * (double)s->per_file;

	*most = (uint32_t)fmin(accelerators - 1, samples / ((double)s->batch * (double)least));
	if (s->kind != SAMPLES_GIVEN && files > most_files(s))
		return no_room(s, c, files, e);
	if (of_epoch == 0 && why->text[0] && *most == 0)
		return err_set(e, -ENODATA, "%.900s", why->text);
	return err_set(e, -ENODATA,
		       "%.0f sample%s %s %llu step%s of %u accelerator%s, and a point needs at "
		       "least %llu, as %llu batches are read ahead: more files are needed",
		       samples, samples == 1 ? "" : "s", samples == 1 ? "is" : "are",
		       (unsigned long long)of_epoch, of_epoch == 1 ? "" : "s", accelerators,
		       accelerators == 1 ? "" : "s", (unsigned long long)least,
		       (unsigned long long)s->ahead);
}

/* Steps after a checkpoint that stands between them. */
static uint64_t after_save(const struct samples *s, const struct samples_want *want)
{
	return want->saves && s->within ? samples_left_out(s) + turn_of(s) : 0;
}

static void plan_epochs(const struct samples *s, uint64_t of_epoch, const struct samples_want *want,
			uint64_t after, uint32_t accelerators, struct samples_plan *plan)
{
	uint64_t out = samples_left_out(s), of_one, epochs;
	double samples =
		s->kind == SAMPLES_GIVEN ? s->given : (double)s->files * (double)s->per_file;

	of_one = (of_epoch - out - after) / turn_of(s) * turn_of(s);
	epochs = (want->measured + of_one - 1) / of_one;
	*plan = (struct samples_plan){.epochs = epochs, .all = epochs > EPOCHS_MOST};
	if (plan->all && !want->beside)
		plan->epochs = EPOCHS_MOST;
	plan->steps = plan->epochs > 1 ? plan->epochs * of_epoch : out + want->measured + after;
	plan->samples_read =
		fmin(samples, (double)accelerators * (double)s->batch * (double)plan->steps);
}

/* Where a point writes its checkpoints: after the measured steps of an epoch, where the workload
 * writes them between steps, with enough steps after it to see what they bring; else after epochs.
 */
static void put_saves(uint64_t of_epoch, uint64_t after, const struct samples_plan *plan,
		      struct str_list *keys)
{
	uint64_t every = (plan->epochs + SAVES_MOST - 1) / SAVES_MOST;
	uint64_t steps = (plan->epochs > 1 ? of_epoch : plan->steps) - after, saves = 1;
	bool within = after && plan->epochs <= SAVES_MOST;

	/* several in a long point, with as many steps to measure between two as are left out */
	while (within && plan->epochs == 1 && saves < SAVES_MOST &&
	       steps / (saves + 1) >= 3 * after)
		saves++;
	override_put(keys, "checkpoint.seconds_between_checkpoints", "0");
	override_put(keys, "checkpoint.steps_between_checkpoints", "%lld",
		     within ? (long long)(steps / saves) : -1LL);
	override_put(keys, "checkpoint.checkpoint_after_epoch", "%llu", (unsigned long long)every);
	override_put(keys, "checkpoint.epochs_between_checkpoints", "%llu",
		     (unsigned long long)every);
	override_put(keys, "checkpoint.keep_last", "1");
}

/* ---- generation ---- */

static int write_mark(const struct samples *s, struct err *e)
{
	json_t *mark = json_object();

	json_put_mark(mark);
	json_put_text(mark, "note", "this dataset was generated by 'stoker capacity'");
	json_put_int(mark, "files", s->files);
	json_put_text(mark, "folder_before", s->above);
	return json_write(mark, s->folder, MARK_NAME, e);
}

/* The folder was empty before, so that all of it is this. */
static int remove_made(const struct samples *s, struct err *e)
{
	AUTO_FREE char *manifest = path_join(s->folder, MANIFEST_NAME);
	int rc = remove_tree(manifest, e);

	for (int k = 0; rc == 0 && k < DATASET_KINDS; k++) {
		AUTO_FREE char *folder = path_join(s->folder, dataset_kind_folder[k]);

		rc = remove_tree(folder, e);
	}
	return rc;
}

struct generating {
	const struct capacity *c;
	struct capacity_event event;
	const char *progress; /* file */
};

/* By the last whole line of the child's progress; NaN. */
static double share_done(const char *path)
{
	struct buf text = {0};
	const char *key = "\"done_percent\":", *at = NULL;
	double share = NAN;

	if (file_read(path, PROGRESS_MOST, &text, NULL) >= 0 && text.data)
		for (const char *p = strstr(text.data, key); p; p = strstr(p + 1, key))
			at = p;
	if (at && strchr(at, '\n'))
		share = strtod(at + strlen(key), NULL) / 100;
	buf_release(&text);
	return share;
}

static void tick(void *arg, double seconds)
{
	struct generating *g = arg;

	g->event.kind = CAPACITY_TICK;
	g->event.seconds = seconds;
	g->event.done = share_done(g->progress);
	if (g->c->tell)
		g->c->tell(g->c->arg, &g->event);
}

static int generate(const struct samples *s, const struct capacity *c, struct err *e)
{
	AUTO_FREE char *log = path_join(c->o->folder, "generate.log");
	AUTO_FREE char *progress = path_join(c->o->folder, "generate.progress");
	struct generating g = {.c = c,
			       .progress = progress,
			       .event = {.kind = CAPACITY_GENERATE,
					 .bytes = (double)s->files * s->file_bytes,
					 .data = s->folder,
					 .done = NAN,
					 .expected_s = NAN}};
	struct runner_child child = {
		.log = log, .limit_s = GENERATE_S, .stop = c->o->stop, .tick = tick, .arg = &g};
	const char *const one[] = {"-n", "1", "--progress-file", progress, "--progress-interval",
				   "1"};
	struct str_list places = {0}, keys = {0}, command = {0};
	int rc;

	if (c->tell)
		c->tell(c->arg, &g.event);
	for (size_t i = 0; i < sizeof(one) / sizeof(one[0]); i++)
		str_list_add(&places, xstrdup(one[i]));
	put_workflow(&keys, false);
	override_put(&keys, "dataset.num_files_train", "%llu", (unsigned long long)s->files);
	override_put(&keys, "dataset.num_files_eval", "0");
	runner_command(&c->o->base, "generate", &places, &keys, &command);
	unlink(progress);
	rc = runner_help(&command, &child, e);
	unlink(progress);
	str_list_release(&keys);
	str_list_release(&places);
	if (rc < 0 && rc != ERR_CANCELED)
		err_wrap(e, "generating %llu files", (unsigned long long)s->files);
	return rc;
}

int samples_make(struct samples *s, const struct capacity *c, struct err *e)
{
	int rc = 0;

	if (s->kind == SAMPLES_RUN)
		s->unread = true;
	if (s->kind != SAMPLES_OWN || (s->whole && s->made == s->files && (s->unread || !s->anew)))
		return 0;
	/* another number of files are other names */
	if (s->made && (s->made != s->files || s->anew))
		rc = remove_made(s, e);
	if (rc == 0)
		rc = file_mkdirs(s->folder, e);
	s->made = s->files;
	if (rc == 0)
		rc = write_mark(s, e);
	if (rc == 0)
		rc = file_mkdirs(c->o->folder, e);
	if (rc == 0)
		rc = generate(s, c, e);
	s->whole = s->unread = rc == 0;
	return rc;
}

/* No more than a point reads, and a little beyond where they are made again, as the next one needs
 * more. */
static void plan_files(struct samples *s, uint32_t accelerators, uint64_t steps)
{
	uint64_t most = most_files(s), want = files_for(s, accelerators, steps);

	if (s->kind == SAMPLES_RUN) {
		s->files = want < most ? want : most;
		return;
	}
	if (s->files >= want)
		return;
	if (s->files && want < 2 * s->files)
		want = (uint64_t)fmin(2 * (double)s->files, GROWS * (double)want);
	LOWER(want, most);
	RAISE(s->files, want);
}

static void put_keys(const struct samples *s, bool saves, struct str_list *keys)
{
	put_workflow(keys, saves);
	override_put(keys, "workflow.train", "true");
	override_put(keys, "workflow.generate_data", s->kind == SAMPLES_RUN ? "true" : "false");
	override_put(keys, "dataset.keep_files", "true");
	if (s->evicts)
		override_put(keys, "storage.page_cache", "cold_epochs");
	if (s->kind == SAMPLES_GIVEN)
		return;
	override_put(keys, "dataset.num_files_train", "%llu", (unsigned long long)s->files);
	override_put(keys, "dataset.num_files_eval", "0");
}

int samples_plan(struct samples *s, const struct capacity *c, uint32_t accelerators,
		 const struct samples_want *want, struct samples_plan *plan, struct str_list *keys,
		 uint32_t *most, struct err *e)
{
	uint64_t turn = turn_of(s), of_epoch, files_of, after = after_save(s, want);
	struct samples_want whole = *want;
	struct str_list one = {0};
	struct err why = {0};

	whole.measured = (want->measured + turn - 1) / turn * turn;
	/* cold epochs read the same files again */
	files_of =
		s->kind == SAMPLES_OWN && (s->cold || want->beside) && want->first < whole.measured
			? (want->first + turn - 1) / turn * turn
			: whole.measured;
	if (s->kind != SAMPLES_GIVEN)
		plan_files(s, accelerators, samples_left_out(s) + files_of + after);
	put_keys(s, want->saves, keys);
	str_list_copy(&one, keys);
	override_put(&one, "train.epochs", "1");
	of_epoch = steps_of_epoch(c, accelerators, &one, &why);
	str_list_release(&one);
	if (of_epoch < samples_left_out(s) + turn)
		return too_few(s, c, of_epoch, accelerators, most, &why, e);
	if (of_epoch < 2 * samples_left_out(s) + after)
		after = 0;
	plan_epochs(s, of_epoch, &whole, after, accelerators, plan);
	if (want->saves)
		put_saves(of_epoch, after, plan, keys);
	return check_memory(c, accelerators, plan, keys, most, e);
}

int samples_clean(const struct samples *s, const struct capacity *c, struct err *e)
{
	AUTO_FREE char *mark = path_join(s->folder, MARK_NAME);
	int rc = 0;

	if (s->kind != SAMPLES_OWN || c->o->keep_data || !s->made)
		return 0;
	rc = remove_made(s, e);
	if (rc == 0)
		rc = remove_tree(mark, e);
	/* not empty: somebody else's files */
	if (rc == 0)
		remove_empty_folders(s->folder, s->above);
	return rc;
}
