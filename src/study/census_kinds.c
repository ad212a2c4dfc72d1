/* Which workloads are surveyed, and which of them are alike. */
#include "study/census.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "base/vector.h"
#include "conf/override.h"
#include "dataset/dataset.h"
#include "loader/loader.h"
#include "workload/workload.h"

#define MIB (1u << 20)
/* A sample in a file of its own, and a file that is read as a stream, are made no larger than that:
 * beyond it only their number of bytes matters. Smaller ones have too few requests between their
 * beginning and their end. */
#define FILE_LEAST (3.0 * MIB)
#define FILE_MOST (4.0 * MIB)
#define STREAM_MOST (8.0 * MIB)
#define REQUEST_LEAST (1.0 * MIB) /* a sample inside a file, which may be one request */
#define REQUEST_MOST (8.0 * MIB)
#define UNITS_LEAST 24
#define FILES_MOST 2000
/* Readers of a pattern's runs, about: the probe goes to four times as many. */
#define READERS_WANTED 16
/* Of a rank, in one run. */
#define STEPS_WANTED 48

/* In the order of the answer; other workloads follow. */
static const struct {
	const char *prefix, *model;
} models[] = {
	{"unet3d", "3D-UNet"},      {"resnet50", "ResNet-50"}, {"cosmoflow", "CosmoFlow"},
	{"retinanet", "RetinaNet"}, {"bert", "BERT"},          {"dlrm", "DLRM"},
	{"flux", "FLUX.1"},         {"megatron", "Megatron"},
};
#define MODELS (sizeof(models) / sizeof(models[0]))

static size_t model_of(const char *name)
{
	size_t i = 0;

	while (i < MODELS && !str_starts(name, models[i].prefix))
		i++;
	return i;
}

/* The accelerator that a name ends in: letters and then digits after the last "_". */
static const char *kind_in(const char *name)
{
	const char *last = strrchr(name, '_'), *p = last ? last + 1 : "";
	size_t letters = 0, digits = 0;

	while (isalpha((unsigned char)p[letters]))
		letters++;
	while (isdigit((unsigned char)p[letters + digits]))
		digits++;
	return letters && letters < 4 && digits > 1 && !p[letters + digits] ? p : "";
}

static void name_row(const char *name, struct census_row *r)
{
	size_t model = model_of(name), n = strlen(kind_in(name));

	r->name = name;
	snprintf(r->kind, sizeof(r->kind), "%s", kind_in(name));
	for (char *c = r->kind; *c; c++)
		*c = (char)toupper((unsigned char)*c);
	if (model < MODELS)
		snprintf(r->model, sizeof(r->model), "%s", models[model].model);
	else
		snprintf(r->model, sizeof(r->model), "%.*s", (int)(strlen(name) - n - (n > 0)),
			 name);
}

static size_t pattern_of(struct census *s, const struct workload *w, const char *name)
{
	struct census_pattern p = {.workload = name,
				   .spread = NAN,
				   .agrees = NAN,
				   .cached = NAN,
				   .below = NAN,
				   .busy = 1,
				   .streams = workload_format(w)->flags & FORMAT_STREAM,
				   .per_file = (uint64_t)w->dataset.num_samples_per_file};

	enum dataset_sizes how;

	p.sample_bytes = dataset_bytes_of_sample(w, DATASET_TRAIN, &how);
	snprintf(p.key, sizeof(p.key), "%.24s %.24s %llu %.0f %lld", w->reader.data_loader,
		 w->dataset.format, (unsigned long long)p.per_file, p.sample_bytes,
		 (long long)w->reader.transfer_size);
	for (size_t i = 0; i < s->patterns; i++)
		if (strcmp(s->pattern[i].key, p.key) == 0)
			return i;
	p.batch = (uint64_t)w->reader.batch_size;
	VECTOR_PUSH(s->pattern, s->patterns, s->pattern_room, p);
	return s->patterns - 1;
}

/* The same accelerator and files under another name. */
static bool is_known(const struct census *s, const struct census_row *r)
{
	for (size_t i = 0; i < s->rows; i++) {
		const struct census_row *k = &s->row[i];

		if (strcmp(k->model, r->model) == 0 &&
		    (!r->kind[0] || strcmp(k->kind, r->kind) == 0))
			return true;
		if (k->pattern == r->pattern && strcmp(k->kind, r->kind) == 0 &&
		    fabs(k->need.samples - r->need.samples) < 1e-6 * r->need.samples)
			return true;
	}
	return false;
}

static void add_row(struct census *s, const struct workload *w, const char *name)
{
	const struct loader_ops *loader = loader_find(w->reader.data_loader);
	uint64_t depth = w->reader.queue_depth > 1 ? (uint64_t)w->reader.queue_depth : 1, ahead;
	size_t before = s->patterns;
	struct census_row r = {.fed = NAN, .low = NAN, .high = NAN};
	uint32_t workers;

	if (!loader || !w->workflow.train || workload_format(w)->flags & FORMAT_NO_IO)
		return;
	name_row(name, &r);
	loader->window(w, &workers, &ahead);
	r.readers = (double)(workers ? workers : 1) * (double)depth;
	r.pattern = pattern_of(s, w, name);
	need_find(w, NEED_TRAINING, s->pattern[r.pattern].sample_bytes, &r.need);
	r.target = r.need.target > 0 ? r.need.target : 0.9;
	if (!r.need.known || is_known(s, &r)) {
		s->patterns = before;
		return;
	}
	if (before < s->patterns)
		s->pattern[r.pattern].ranks = (uint32_t)fmin(16, ceil(READERS_WANTED / r.readers));
	VECTOR_PUSH(s->row, s->rows, s->row_room, r);
}

/* 0; a workload that this version cannot run, or that a key of the user does not fit, is left out,
 * and *e says why. */
static int list_one(struct census *s, const char *name, struct err *e)
{
	struct workload_request req = {.workload = name,
				       .overrides = s->o->base.overrides,
				       .override_count = s->o->base.override_count,
				       .ranks = 1};
	struct workload w = {0};
	int rc = workload_load(&w, &req, e);

	if (rc == 0)
		add_row(s, &w, name);
	workload_release(&w);
	return rc == -ENOMEM ? rc : 0;
}

/* Those of one place in `models`, with or without an accelerator in their names. The default
 * workload stands for nobody's. */
static int list_model(struct census *s, size_t model, bool kind, struct err *e)
{
	int rc = 0;

	for (const char *const *n = workload_builtin_names(); rc == 0 && *n; n++)
		if (model_of(*n) == model && (kind_in(*n)[0] != '\0') == kind &&
		    !str_starts(*n, "default") && (!s->o->only || strstr(*n, s->o->only)))
			rc = list_one(s, *n, e);
	return rc;
}

int census_list(struct census *s, struct err *e)
{
	struct err why = {0};
	int rc = 0;

	for (size_t model = 0; rc == 0 && model <= MODELS; model++) {
		rc = list_model(s, model, true, &why);
		if (rc == 0)
			rc = list_model(s, model, false, &why);
	}
	if (rc < 0)
		*e = why;
	else if (s->rows == 0 && why.text[0])
		rc = err_set(e, ERR_USAGE, "survey: no workload can be run: %.900s", why.text);
	else if (s->rows == 0)
		rc = err_set(e, ERR_USAGE,
			     "survey: no built-in workload that trains has '%s' in its name: "
			     "'stoker show workloads' lists them",
			     s->o->only ? s->o->only : "");
	return rc;
}

/* ---- the shape of the files that are made ---- */

static double within(double v, double least, double most)
{
	return fmax(least, fmin(v, most));
}

void census_shape(struct census_pattern *p, uint64_t bytes)
{
	double part = (double)bytes / UNITS_LEAST, size = p->sample_bytes, file;

	p->made_bytes = size;
	p->made_per_file = 1;
	p->files = 1;
	if (p->per_file > 1 && p->streams) {
		/* whole requests, as far as can be: the last one of a file is hardly shorter */
		file = floor(within(part, FILE_LEAST, STREAM_MOST) / size);
		p->made_per_file = (uint64_t)within(file, 1, (double)p->per_file);
		file = size * (double)p->made_per_file;
		p->files = (uint64_t)within((double)bytes / file, UNITS_LEAST, FILES_MOST);
	} else if (p->per_file > 1) {
		p->made_bytes = fmin(size, within(part, REQUEST_LEAST, REQUEST_MOST));
		p->made_per_file = (uint64_t)within((double)bytes / p->made_bytes, UNITS_LEAST,
						    (double)p->per_file);
	} else {
		p->made_bytes = fmin(size, within(part / 2, FILE_LEAST, FILE_MOST));
		p->files = (uint64_t)within((double)bytes / p->made_bytes, UNITS_LEAST, FILES_MOST);
	}
	p->bytes = (uint64_t)(p->made_bytes * (double)p->files * (double)p->made_per_file);
}

void census_put_shape(const struct census_pattern *p, struct str_list *keys)
{
	double samples = (double)p->files * (double)p->made_per_file;
	double batch = within(floor(samples / p->ranks / STEPS_WANTED), 1, (double)p->batch);

	override_put(keys, "dataset.num_files_train", "%llu", (unsigned long long)p->files);
	override_put(keys, "dataset.num_files_eval", "0");
	override_put(keys, "dataset.num_samples_per_file", "%llu",
		     (unsigned long long)p->made_per_file);
	override_put(keys, "reader.batch_size", "%.0f", batch);
	if (p->made_bytes < p->sample_bytes) {
		override_put(keys, "dataset.record_length_bytes", "%.0f", p->made_bytes);
		override_put(keys, "dataset.record_length_bytes_stdev", "0");
	}
}
