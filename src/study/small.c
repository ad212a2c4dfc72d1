/* Shrinking a design. */
#include "study/small.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/say.h"
#include "base/str.h"
#include "conf/override.h"
#include "dataset/dataset.h"
#include "dataset/manifest.h"
#include "study/scaling.h"
#include "workload/key.h"

/* Rounds of making the files more until every row has its steps. */
#define ROUNDS_MAX 8
/* Files with which a row is loaded that has too few for a single step. */
#define MANY_FILES "++workload.dataset.num_files_train=100000"

/* A row is named that makes the samples of all others so much smaller. */
#define DICTATES 2

/* By what a model is shrunk. */
struct shrink {
	double files, eval_files; /* factors of the samples in all files */
	double size;              /* of a sample, and of every time */
	double time;              /* of times beyond that, where samples cannot be smaller */
	double model;             /* of the bytes of a checkpoint */
	double files_least;       /* with many samples in a file: readers that take one each */
	bool given, few;          /* the number of files is the caller's; too few for some row */
	double files_most;        /* factor with which the largest row has SMALL_SAMPLES_MAX */
	size_t dictates;          /* line in the design of the row that sets `size`; 0: none */
	double without;           /* the smallest `size` that other rows ask for */
	/* what the rows of the model come to, for the text */
	double files_from[2], files_to[2], per_file_from[2], per_file_to[2]; /* least, most */
	double bytes[2], compute[2];
	double epochs[2];
};

/* What cannot be loaded is left as it is, and what runs it tells why. Without memory that would be
 * a run in full size, or one that is shrunk by other factors. */
static int loaded_or_not(int rc)
{
	if (rc == -ENOMEM)
		out_of_memory();
	return rc;
}

/* One row in full size. */
struct full {
	struct workload w;
	struct dataset d;
	struct run_foresight f;
	bool loaded, enough; /* `enough`: there were files for a step */
};

static void full_release(struct full *a)
{
	dataset_release(&a->d);
	workload_release(&a->w);
	*a = (struct full){0};
}

static bool full_try(const struct study_plan *p, const struct experiment *x,
		     const struct str_list *overrides, struct full *a)
{
	struct err ignored = {0};
	int rc;

	*a = (struct full){0};
	rc = study_load(p, x, overrides, false, &a->w, &ignored);
	if (rc == 0 && workload_reads(&a->w))
		rc = dataset_init(&a->d, &a->w, &ignored);
	if (rc == 0)
		rc = run_foresee(&a->w, a->d.format ? &a->d : NULL, (uint32_t)x->processes, false,
				 &a->f, &ignored);
	if (loaded_or_not(rc) < 0)
		full_release(a);
	a->loaded = rc == 0;
	return a->loaded;
}

/* A row that has too few files is what shrinking mends. */
static void full_load(const struct study_plan *p, const struct experiment *x, struct full *a)
{
	struct str_list more = {0};

	if (full_try(p, x, &x->overrides, a)) {
		a->enough = true;
		return;
	}
	str_list_copy(&more, &x->overrides);
	str_list_add(&more, xstrdup(MANY_FILES));
	full_try(p, x, &more, a);
	str_list_release(&more);
}

/* Its files as the design says, where it was loaded with more. */
static double files_of(const struct study_plan *p, const struct experiment *x, const struct full *a)
{
	struct workload w = {0};
	struct err ignored = {0};
	double files = (double)a->w.dataset.num_files_train;

	if (a->enough)
		return files;
	if (loaded_or_not(study_load_values(p, x, &w, &ignored)) == 0)
		files = (double)w.dataset.num_files_train;
	workload_release(&w);
	return files >= 1 ? files : 1;
}

/* ---- factors ---- */

static double with_spare(uint64_t needed)
{
	return (double)needed + ceil(0.1 * (double)needed);
}

static double small_epochs(const struct workload *w)
{
	return fmin((double)w->train.epochs, SMALL_EPOCHS);
}

/* Also where full size has too few files for a step of it. */
static bool wants_evaluation(const struct workload *w)
{
	const struct node *n = node_path(w->tree, "workload.workflow.evaluation");

	return w->workflow.evaluation || (n && n->kind == NODE_BOOL && n->b);
}

static void count_files(const struct study_plan *p, const struct experiment *x,
			const struct full *a, struct shrink *s)
{
	const struct workload *w = &a->w;
	double ranks = (double)x->processes, per_file = (double)w->dataset.num_samples_per_file;
	double samples = files_of(p, x, a) * per_file;
	double step = ranks * (double)w->reader.batch_size;
	double eval_step = ranks * (double)w->reader.batch_size_eval;
	double evals = (double)w->dataset.num_files_eval * per_file;

	if (w->workflow.train) {
		double most = SMALL_SAMPLES_MAX / samples;

		s->files = fmax(s->files, with_spare(a->f.needed) * step / samples);
		s->files_most = s->files_most > 0 ? fmin(s->files_most, most) : most;
		s->files_least =
			fmax(s->files_least, ranks * fmax(1, (double)w->reader.read_threads));
	}
	/* as many batches are read ahead as in training */
	if (evals > 0 && wants_evaluation(w))
		s->eval_files =
			fmax(s->eval_files,
			     with_spare(w->workflow.train ? a->f.needed : a->f.eval_needed) *
				     eval_step / evals);
}

/* The numbers of a shrunk row. */
struct counts {
	double files, eval_files, per_file;
};

static struct counts shrunk_counts(const struct workload *w, double files, const struct shrink *s)
{
	double per_file = (double)w->dataset.num_samples_per_file;
	double samples = ceil(files * per_file * s->files);
	struct counts c = {.per_file = per_file};

	if (!w->workflow.train)
		samples = files * per_file;
	c.files = ceil(samples / per_file);
	/* a file with many samples: a reader each still finds one */
	if (per_file > 1 && c.files < s->files_least)
		c.files = fmax(c.files, fmin(files, s->files_least));
	c.per_file = fmin(per_file, ceil(samples / c.files));
	if (w->dataset.num_files_eval > 0)
		c.eval_files = fmax(1, ceil((double)w->dataset.num_files_eval * per_file *
					    s->eval_files / c.per_file));
	return c;
}

static double sample_bytes(const struct dataset *d)
{
	double samples = (double)dataset_samples(d, DATASET_TRAIN) +
			 (double)dataset_samples(d, DATASET_EVAL);

	return samples > 0 ? (double)d->likely_bytes / samples : 0;
}

static double least(double a, double b)
{
	return a > 0 && a < b ? a : b;
}

/* How small the samples of a row must be for the budgets. */
static void limit_size(const struct study_plan *p, const struct experiment *x, const struct full *a,
		       struct shrink *s, double *floor_size)
{
	const struct workload *w = &a->w;
	struct counts c = shrunk_counts(w, files_of(p, x, a), s);
	double bytes = sample_bytes(&a->d), total = (c.files + c.eval_files) * c.per_file * bytes;
	double step = (double)x->processes * (double)w->reader.batch_size;
	double eval_step = (double)x->processes * (double)w->reader.batch_size_eval;
	double compute = 0;

	if (w->workflow.train)
		compute = c.files * c.per_file / step * time_dist_mean(&w->train.computation_time);
	if (wants_evaluation(w))
		compute += c.eval_files * c.per_file / eval_step *
			   time_dist_mean(&w->evaluation.eval_time);
	compute *= small_epochs(w);
	double size = total > 0 ? SMALL_DATASET_BYTES / total : 1;
	double time = compute > 0 ? SMALL_COMPUTE_S / compute : 1;
	double own = fmin(size, time);

	if (own < fmin(s->size, s->time)) {
		s->without = fmin(s->size, s->time);
		s->dictates = p->design.row ? p->design.row[x->row].line : 0;
	} else {
		s->without = fmin(s->without, own);
	}
	s->size = fmin(s->size, size);
	s->time = fmin(s->time, time);
	if (bytes > 0)
		*floor_size = fmax(*floor_size, fmin(1, SMALL_SAMPLE_BYTES / bytes));
}

static void limit_model(const struct full *a, struct shrink *s)
{
	double writes = (double)a->f.checkpoints_kept;

	if (!a->w.workflow.train && a->f.checkpoints)
		writes = (double)a->f.checkpoints;
	if (a->f.checkpoint_bytes && writes > 0)
		s->model = fmin(s->model,
				SMALL_CHECKPOINT_BYTES / ((double)a->f.checkpoint_bytes * writes));
}

/* ---- overrides ---- */

static void put_number(struct str_list *out, const char *key, double value)
{
	override_put(out, key, "%.0f", value);
}

static void put_dims(const struct workload *w, double factor, struct str_list *out)
{
	struct buf text = {0};

	for (size_t i = 0; i < w->dataset.record_dims.n; i++) {
		double v = (double)w->dataset.record_dims.v[i];

		buf_printf(&text, "%s%.0f", i ? "," : "", i ? v : fmax(1, floor(v * factor)));
	}
	override_put(out, "dataset.record_dims", "[%s]", text.data);
	buf_release(&text);
}

static void put_sizes(const struct workload *w, const struct shrink *s, struct str_list *out)
{
	static const char *const times[] = {"train.computation_time", "reader.preprocess_time",
					    "checkpoint.seconds_between_checkpoints"};

	if (s->size < 1 && w->dataset.file_bytes > 0)
		scaling_key(w, "dataset.file_bytes", s->size, out);
	else if (s->size < 1 && w->dataset.record_dims.n)
		put_dims(w, s->size, out);
	else if (s->size < 1)
		scaling_key(w, "dataset.record_length_bytes", s->size, out);
	if (s->size < 1)
		scaling_key(w, "dataset.record_length_bytes_resize", s->size, out);
	for (size_t i = 0; s->time < 1 && i < sizeof(times) / sizeof(times[0]); i++)
		scaling_key(w, times[i], s->time, out);
	if (s->time < 1 && wants_evaluation(w))
		scaling_key(w, "evaluation.eval_time", s->time, out);
}

/* As many checkpoints and evaluations as in full size, in fewer epochs and other steps. */
static void put_schedule(const struct full *a, double steps, struct str_list *out)
{
	const struct workload *w = &a->w;
	double epochs = small_epochs(w), saves = (double)a->f.checkpoints / a->f.epochs;

	put_number(out, "train.epochs", epochs);
	if (w->train.total_training_steps > 0)
		put_number(out, "train.total_training_steps", -1);
	if ((double)w->evaluation.eval_after_epoch > epochs && wants_evaluation(w))
		put_number(out, "evaluation.eval_after_epoch", epochs);
	if (!w->workflow.checkpoint || a->f.checkpoints_by_time || a->f.checkpoints == 0)
		return;
	if (w->checkpoint.steps_between_checkpoints > 0)
		put_number(out, "checkpoint.steps_between_checkpoints",
			   fmax(1, floor(steps / fmax(1, saves))));
	else if ((double)w->checkpoint.checkpoint_after_epoch > epochs)
		put_number(out, "checkpoint.checkpoint_after_epoch", epochs);
}

static void put_model(const struct workload *w, double factor, struct str_list *out)
{
	static const char *const sizes[] = {"model.model_size_bytes", "model.layer_parameters",
					    "model.optimization_groups"};
	static const char *const widths[] = {"model.transformer.vocab_size",
					     "model.transformer.ffn_hidden_size"};
	double heads = (double)w->model.transformer.num_attention_heads, hidden;

	if (!(factor < 1))
		return;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		scaling_key(w, sizes[i], factor, out);
	if (!w->model.type || strcmp(w->model.type, "transformer") != 0)
		return;
	/* matrices: each side by the root, the width a multiple of the heads */
	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
		scaling_key(w, widths[i], sqrt(factor), out);
	hidden = floor((double)w->model.transformer.hidden_size * sqrt(factor) / heads) * heads;
	put_number(out, "model.transformer.hidden_size", fmax(heads, hidden));
}

static void put_row(const struct study_plan *p, const struct experiment *x, const struct full *a,
		    const struct shrink *s, struct str_list *out)
{
	const struct workload *w = &a->w;

	if (workload_reads(w)) {
		struct counts c = shrunk_counts(w, files_of(p, x, a), s);

		put_number(out, "dataset.num_files_train", c.files);
		put_number(out, "dataset.num_samples_per_file", c.per_file);
		if (w->dataset.num_files_eval > 0)
			put_number(out, "dataset.num_files_eval", c.eval_files);
		put_sizes(w, s, out);
		put_schedule(a,
			     c.files * c.per_file /
				     ((double)x->processes * (double)w->reader.batch_size),
			     out);
	}
	if (w->workflow.checkpoint)
		put_model(w, s->model, out);
	if (!w->workflow.train && w->checkpoint.time_between_checkpoints > 1)
		put_number(out, "checkpoint.time_between_checkpoints", 1);
	str_list_add(out, xstrdup("++workload.run.note=\"" SMALL_NOTE "\""));
}

/* ---- a model ---- */

struct member {
	struct experiment *x;
	struct full full;
};

static void list_of(const struct study_plan *p, const struct member *m, const struct shrink *s,
		    struct str_list *out)
{
	str_list_copy(out, &m->x->overrides);
	put_row(p, m->x, &m->full, s, out);
}

static void limit_sizes(const struct study_plan *p, const struct member *m, size_t n,
			struct shrink *s)
{
	double floor_size = 0;

	s->size = s->time = s->without = 1;
	s->dictates = 0;
	for (size_t i = 0; i < n; i++)
		if (m[i].full.d.format)
			limit_size(p, m[i].x, &m[i].full, s, &floor_size);
	/* one factor for both, so that the bytes/s that are needed stay the same */
	s->size = fmax(fmin(s->size, s->time), floor_size);
	s->time = fmin(s->size, s->time);
}

/* Orders that cut, or that take whole files, give some ranks fewer steps. */
static bool has_steps(const struct study_plan *p, const struct member *m, const struct shrink *s)
{
	struct str_list all = {0};
	struct full a;
	bool enough = true;

	list_of(p, m, s, &all);
	if (m->full.w.workflow.train)
		enough = full_try(p, m->x, &all, &a) && a.f.steps >= a.f.needed;
	else
		full_try(p, m->x, &all, &a);
	full_release(&a);
	str_list_release(&all);
	return enough;
}

static void span(double v, double range[2])
{
	range[0] = least(range[0], v);
	range[1] = fmax(range[1], v);
}

static void put_range(struct buf *out, const double range[2], char *(*text)(double, char *, size_t))
{
	char a[32], b[32];

	if (strcmp(text(range[0], a, sizeof(a)), text(range[1], b, sizeof(b))) == 0)
		buf_puts(out, a);
	else
		buf_printf(out, "%s to %s", a, b);
}

/* "files 3 to 5 (40)": now, and in brackets in full size. */
static void put_change(struct buf *out, const char *what, const double now[2], const double full[2],
		       const char *unit, char *(*text)(double, char *, size_t))
{
	buf_puts(out, what);
	put_range(out, now, text);
	buf_printf(out, "%s (", unit);
	put_range(out, full, text);
	buf_putc(out, ')');
}

static char *as_count(double v, char *out, size_t n)
{
	snprintf(out, n, "%.0f", v);
	return out;
}

static char *as_seconds(double v, char *out, size_t n)
{
	if (v < 0.1)
		snprintf(out, n, "%s ms", NUMBER(1e3 * v, 3));
	else
		snprintf(out, n, "%s s", NUMBER(v, 3));
	return out;
}

static void note_row(const struct study_plan *p, const struct member *m, struct shrink *s)
{
	const struct workload *w = &m->full.w;
	double files = files_of(p, m->x, &m->full);
	struct counts c;

	if (!m->full.d.format)
		return;
	c = shrunk_counts(w, files, s);
	span(files, s->files_from);
	span(c.files, s->files_to);
	span((double)w->dataset.num_samples_per_file, s->per_file_from);
	span(c.per_file, s->per_file_to);
	span(sample_bytes(&m->full.d), s->bytes);
	span(time_dist_mean(&w->train.computation_time), s->compute);
	span((double)w->train.epochs, s->epochs);
}

static void scaled(const double in[2], double factor, double out[2])
{
	out[0] = in[0] * factor;
	out[1] = in[1] * factor;
}

static void put_text(const char *model, const struct shrink *s, struct buf *out)
{
	double now[2];

	buf_say(out, "  %s:", model);
	if (s->files_to[1] > 0) {
		put_change(out, " files ", s->files_to, s->files_from, "", as_count);
		if (s->per_file_to[1] < s->per_file_from[1])
			put_change(out, " of ", s->per_file_to, s->per_file_from, " samples",
				   as_count);
		if (s->size < 1) {
			scaled(s->bytes, s->size, now);
			put_change(out, ", samples of ", now, s->bytes, "", str_bytes);
		}
		if (s->time < 1 && s->compute[1] > 0) {
			scaled(s->compute, s->time, now);
			put_change(out, ", computation ", now, s->compute, "", as_seconds);
		}
		if (s->epochs[1] > SMALL_EPOCHS)
			buf_printf(out, ", %d epochs (%.0f)", SMALL_EPOCHS, s->epochs[1]);
		if (s->given ? s->few : s->files >= s->files_most)
			buf_puts(out, "; too few for the steps that steady needs in every row");
		if (s->size > s->time)
			buf_puts(out, "; an accelerator needs more bytes/s than in full size");
		if (s->time < 1 && s->compute[1] > 0 && s->compute[0] * s->time < SMALL_STEP_S)
			buf_puts(out, "; steps this short show the delays of this host, too: take "
				      "fewer accelerators, or full size");
		if (s->dictates && s->without > DICTATES * s->size)
			buf_say(out,
				"; line %zu of the design alone asks for it: without that row "
				"samples "
				"and steps would be %s times as large",
				s->dictates, NUMBER(s->without / s->size, 3));
	}
	if (s->model < 1)
		buf_printf(out, "%s checkpoints 1/%s of the size", s->files_to[1] > 0 ? "," : "",
			   NUMBER(1 / s->model, 3));
	buf_putc(out, '\n');
}

static void shrink_model(struct study_plan *p, const char *model, struct member *m, size_t n,
			 bool given)
{
	struct shrink s = {.size = 1, .time = 1, .model = 1, .given = given};

	for (size_t i = 0; i < n; i++) {
		if (m[i].full.d.format)
			count_files(p, m[i].x, &m[i].full, &s);
		limit_model(&m[i].full, &s);
	}
	if (s.given)
		s.files = s.files_most = 1;
	else if (s.files_most > 0)
		s.files = fmin(s.files, s.files_most);
	limit_sizes(p, m, n, &s);
	for (int round = 0; round < ROUNDS_MAX && s.files < s.files_most; round++) {
		bool enough = true;

		for (size_t i = 0; enough && i < n; i++)
			enough = has_steps(p, &m[i], &s);
		if (enough)
			break;
		s.files = fmin(1.1 * s.files, s.files_most);
		limit_sizes(p, m, n, &s);
	}
	for (size_t i = 0; i < n && given; i++)
		s.few = s.few || !has_steps(p, &m[i], &s);
	for (size_t i = 0; i < n; i++) {
		note_row(p, &m[i], &s);
		put_row(p, m[i].x, &m[i].full, &s, &m[i].x->overrides);
	}
	put_text(model, &s, &p->shrunk);
}

static void shrink(struct study_plan *p, bool given)
{
	AUTO_FREE struct member *m = xcalloc(p->experiments + 1, sizeof(*m));
	AUTO_FREE bool *taken = xcalloc(p->experiments + 1, sizeof(*taken));

	for (size_t i = 0; i < p->experiments; i++) {
		const char *model = p->experiment[i].model;
		size_t n = 0;

		for (size_t k = i; k < p->experiments; k++) {
			struct experiment *x = &p->experiment[k];

			if (taken[k] || strcmp(x->model, model) != 0)
				continue;
			taken[k] = true;
			if (x->repeat > 1 || x->why.code)
				continue;
			m[n] = (struct member){.x = x};
			full_load(p, x, &m[n].full);
			n += m[n].full.loaded;
		}
		if (n)
			shrink_model(p, model, m, n, given);
		for (size_t k = 0; k < n; k++)
			full_release(&m[k].full);
	}
}

void study_shrink(struct study_plan *p)
{
	shrink(p, false);
}

/* ---- one run ---- */

static bool gives_files(const struct str_list *overrides)
{
	static const char key[] = "dataset.num_files_train=";

	for (size_t i = 0; i < overrides->n; i++) {
		const char *at = strstr(overrides->v[i], key);

		if (at && (at == overrides->v[i] || strchr("+.", at[-1])))
			return true;
	}
	return false;
}

static void put_conditions(const struct workload *w, struct str_list *out)
{
	if (!w->workflow.generate_data)
		str_list_add(out, xstrdup("++workload.workflow.generate_data=True"));
	if (study_begins_cold(w))
		str_list_add(out, xstrdup("++workload.storage.page_cache=cold_epochs"));
}

/* How the dataset that is in a folder fits; MANIFEST_SAME where there is none. */
static enum manifest_fit look_into(const struct workload *w, const struct dataset *d,
				   const char *folder, struct manifest *m)
{
	enum manifest_fit fit = MANIFEST_SAME;
	struct err ignored = {0};
	struct io io = {0};

	if (store_create(&io.store, w->storage.store, node_path(w->tree, "workload.storage"),
			 &ignored) == 0 &&
	    manifest_read(&io, folder, m, &ignored) == 0 && m->found)
		fit = manifest_compare(m, d, wants_evaluation(w), NULL);
	store_destroy(io.store);
	return fit;
}

/* A larger dataset of the same samples that is in the folder, as of a run with more workers, stays:
 * two runs that are compared read the same files. Another one stays too, and is not read: a run
 * with another number of accelerators has samples of another size, and a folder in this one for
 * them. */
static void take_what_is_there(const struct workload *w, bool given, struct str_list *out,
			       struct buf *said)
{
	const char *folder = w->dataset.data_folder;
	struct err ignored = {0};
	struct manifest m = {0};
	struct dataset d = {0};
	enum manifest_fit fit;

	if (!folder || !file_exists(folder) || loaded_or_not(dataset_init(&d, w, &ignored)) < 0)
		return;
	fit = look_into(w, &d, folder, &m);
	if (fit == MANIFEST_OTHER) {
		AUTO_FREE char *name = xasprintf("%s/small-%" PRIu64 "x%.0f", folder,
						 d.files[DATASET_TRAIN], sample_bytes(&d));

		override_put_text(out, "dataset.data_folder", name);
		buf_say(said, "  the files are in '%s': another dataset is in '%s'\n", name,
			folder);
		m = (struct manifest){0};
		fit = look_into(w, &d, name, &m);
	}
	if (!given && fit == MANIFEST_LARGER && m.complete && w->workflow.train &&
	    !w->workflow.checkpoint &&
	    (double)m.files[DATASET_TRAIN] <= SMALL_KEPT_MOST * (double)d.files[DATASET_TRAIN]) {
		put_number(out, "dataset.num_files_train", (double)m.files[DATASET_TRAIN]);
		if (m.files[DATASET_EVAL] > 0)
			put_number(out, "dataset.num_files_eval", (double)m.files[DATASET_EVAL]);
		buf_printf(said, "  all %.0f files that are in the folder are read\n",
			   (double)m.files[DATASET_TRAIN]);
	}
	dataset_release(&d);
}

/* Checkpoints go where the data goes: what they cost is then of the storage that is tried. */
static void put_checkpoints(const struct study_plan *p, struct experiment *x, struct buf *said)
{
	AUTO_FREE char *folder = NULL;
	struct workload w = {0};
	struct err ignored = {0};

	/* the folder of the data may have changed */
	if (loaded_or_not(study_load(p, x, &x->overrides, true, &w, &ignored)) == 0 &&
	    w.workflow.checkpoint && w.dataset.data_folder &&
	    !workload_is_chosen(&w, "checkpoint.checkpoint_folder") &&
	    (workload_reads(&w) || workload_is_chosen(&w, "dataset.data_folder"))) {
		folder = path_join(w.dataset.data_folder, SMALL_CHECKPOINTS);
		override_put_text(&x->overrides, "checkpoint.checkpoint_folder", folder);
		buf_say(said, "  checkpoints are written to '%s' and stay there\n", folder);
	}
	workload_release(&w);
}

void small_run(const char *workload, const char *config_dir, const struct str_list *overrides,
	       int64_t ranks, bool keeps_data, struct str_list *out, struct buf *said)
{
	struct study_options o = {.config_dir = config_dir};
	struct experiment x = {.model = workload, .processes = ranks, .repeat = 1};
	struct study_plan p = {.options = &o, .experiment = &x, .experiments = 1};
	struct workload w = {0};
	struct err ignored = {0};
	bool given = gives_files(overrides);

	str_list_copy(&x.overrides, overrides);
	shrink(&p, given);
	if (loaded_or_not(study_load(&p, &x, &x.overrides, true, &w, &ignored)) == 0 &&
	    workload_reads(&w))
		put_conditions(&w, &x.overrides);
	if (p.shrunk.len)
		buf_puts(said, p.shrunk.data);
	if (workload_reads(&w) && keeps_data)
		take_what_is_there(&w, given, &x.overrides, said);
	put_checkpoints(&p, &x, said);
	workload_release(&w);
	str_list_copy(out, &x.overrides);
	buf_release(&p.shrunk);
	str_list_release(&x.overrides);
}
