/* Reading result folders back: files, the tree of a result, what belongs together. */
#include "readback/record.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "readback/record_config.h"
#include "readback/result_folder.h"
#include "result/json_out.h"
#include "result/seal.h"

#define RANKS_MAX 1000000
#define EPOCHS_MAX 1000000
#define PARTS_MAX 100000 /* blocks or checkpoints of an epoch */

static double number_of(const json_t *object, const char *key)
{
	const json_t *v = json_object_get(object, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

static void text_of(const json_t *object, const char *key, char *out, size_t out_size)
{
	const char *s = json_string_value(json_object_get(object, key));

	snprintf(out, out_size, "%s", s ? s : "");
}

static double unix_time(const char *text)
{
	static pthread_mutex_t zone = PTHREAD_MUTEX_INITIALIZER;
	struct tm tm = {.tm_isdst = -1};
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	double fraction = 0;
	time_t t;

	if (!rest)
		return NAN;
	if (*rest == '.')
		fraction = strtod(rest, NULL);
	/* the C library's own lock for time zones is not seen by the thread sanitizer */
	pthread_mutex_lock(&zone);
	t = mktime(&tm);
	pthread_mutex_unlock(&zone);
	return t == (time_t)-1 ? NAN : (double)t + fraction;
}

static double time_of(const json_t *object, const char *key)
{
	char text[64];

	text_of(object, key, text, sizeof(text));
	return text[0] ? unix_time(text) : NAN;
}

static void read_series(const json_t *metric, const char *prefix, const char *list,
			const char *unit, struct record_series *out)
{
	char key[96];
	const json_t *v;

	snprintf(key, sizeof(key), "%s%s", prefix, list);
	v = json_object_get(metric, key);
	out->n = 0;
	out->v = json_array_size(v) ? xcalloc(json_array_size(v), sizeof(double)) : NULL;
	for (size_t i = 0; i < json_array_size(v); i++) {
		const json_t *one = json_array_get(v, i);

		if (json_is_number(one))
			out->v[out->n++] = json_number_value(one);
	}
	snprintf(key, sizeof(key), "%s_mean_%s", prefix, unit);
	out->mean = number_of(metric, key);
	snprintf(key, sizeof(key), "%s_stdev_%s", prefix, unit);
	out->stdev = number_of(metric, key);
}

/* A list of summary.json as one value an epoch, NaN where it has none: it leaves out the epochs
 * without `key` in result.json, and those of earlier versions only the epochs without a step. A
 * list that fits neither stays as it is. */
static void place_epochs(struct record_series *s, const json_t *list, const struct part *epochs,
			 enum field id)
{
	bool has_null = s->n != json_array_size(list);
	double *v = xcalloc(part_count(epochs) + 1, sizeof(*v));
	size_t at = 0, n = 0;

	for (size_t i = 0; i < part_count(epochs); i++) {
		const struct part *epoch = part_at(epochs, i);
		const json_t *one = NULL;
		bool has_step = figure(epoch, F_EPOCH_STEPS) > 0;

		if (has_null ? has_step : isfinite(figure(epoch, id)))
			one = json_array_get(list, at++);
		v[i] = json_is_number(one) ? json_number_value(one) : NAN;
		if (has_step)
			n = i + 1;
	}
	if (at != json_array_size(list)) {
		free(v);
		return;
	}
	free(s->v);
	s->v = v;
	s->n = n;
}

/* DLIO adds up hosts in the wrong slots of its list, and leaves others 0: only the sum is right. */
static void read_memory(struct run_record *r)
{
	const json_t *list = json_object_get(r->summary, "host_memory_GB");
	double sum = 0;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *one = json_array_get(list, i);

		if (!json_is_number(one))
			continue;
		sum += json_number_value(one) * 0x1p30;
		r->memory_slots++;
		r->memory_empty += !(json_number_value(one) > 0);
	}
	if (r->memory_slots == 0)
		return;
	r->memory_bytes = sum;
	r->host_memory_bytes =
		r->ours ? json_number_value(json_array_get(list, 0)) * 0x1p30 : sum / r->hosts;
}

/* MB/s is samples/s times the size of a record, so that the configuration is not needed for it. */
static void read_dataset(struct run_record *r)
{
	if (r->ours)
		return;
	r->files = number_of(r->summary, "num_files_train");
	r->samples_per_file = number_of(r->summary, "num_samples_per_file");
	if (r->throughput.mean > 0)
		r->data_bytes =
			r->files * r->samples_per_file * r->io.mean * 0x1p20 / r->throughput.mean;
}

static int read_summary(struct run_record *r, struct err *e)
{
	const json_t *s = r->summary, *metric = json_object_get(s, "metric");
	double ranks = number_of(s, "num_accelerators"), hosts = number_of(s, "num_hosts");
	const struct part *epochs = part(record_part(r, F_RUN_TRAINING), F_TRAINING_EPOCHS);
	char text[64];

	if (!(ranks >= 1 && ranks <= RANKS_MAX))
		return err_set(e, ERR_DATA,
			       "'%s/summary.json': num_accelerators must be a number from 1 to %d",
			       r->folder, RANKS_MAX);
	r->ranks = (uint32_t)ranks;
	r->hosts = hosts >= 1 && hosts <= ranks ? (uint32_t)hosts : 1;
	text_of(s, "hostname", r->hostname, sizeof(r->hostname));
	text_of(s, "start", text, sizeof(text));
	r->begin_s = unix_time(text);
	text_of(s, "end", text, sizeof(text));
	r->end_s = unix_time(text);
	read_memory(r);
	read_series(metric, "train_au", "_percentage", "percentage", &r->au);
	read_series(metric, "train_throughput", "_samples_per_second", "samples_per_second",
		    &r->throughput);
	if (r->ours) {
		place_epochs(&r->au, json_object_get(metric, "train_au_percentage"), epochs,
			     F_EPOCH_AU);
		place_epochs(&r->throughput,
			     json_object_get(metric, "train_throughput_samples_per_second"), epochs,
			     F_EPOCH_THROUGHPUT);
	}
	read_series(metric, "train_io", "_MB_per_second", "MB_per_second", &r->io);
	read_series(metric, "eval_au", "_percentage", "percentage", &r->eval_au);
	read_series(metric, "eval_throughput", "_samples_per_second", "samples_per_second",
		    &r->eval_throughput);
	r->checkpoint_gib = number_of(metric, "checkpoint_size_GB");
	r->save_gib_per_s = number_of(metric, "save_checkpoint_io_mean_GB_per_second");
	r->load_gib_per_s = number_of(metric, "load_checkpoint_io_mean_GB_per_second");
	r->checkpointed = isfinite(r->save_gib_per_s) || isfinite(r->load_gib_per_s);
	read_dataset(r);
	r->trained = r->au.n > 0 || number_of(s, "epochs") > 0;
	return 0;
}

/* ".../ORGANISATION/results/SYSTEM/training/unet3d/run/TIME": where the harness of MLPerf Storage
 * since v2.0 puts results, also those that are published without their configuration. Those of v1.0
 * have any folders below that of the system. */
static void look_at_tree(struct run_record *r)
{
	static const char results[] = "/results/";
	static const char *const kinds[] = {"/training/", "/checkpointing/"};
	AUTO_FREE char *absolute = path_absolute(r->folder);
	const char *below = NULL, *from;

	for (from = absolute; (from = strstr(from, results)); from++)
		below = from;
	for (size_t i = 0; below && !r->ours && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const char *at = strstr(below, kinds[i]);

		if (!at)
			continue;
		at += strlen(kinds[i]);
		r->mlperf = true;
		if (r->dlio == DLIO_UNKNOWN)
			r->dlio = DLIO_NEWER;
		if (!r->config)
			snprintf(r->model, sizeof(r->model), "%.*s", (int)strcspn(at, "/"), at);
	}
	if (!below || r->ours || !r->mlperf)
		return;
	for (from = below; from > absolute && from[-1] != '/';)
		from--;
	/* runs on different systems are no repetitions */
	below += strlen(results);
	snprintf(r->system, sizeof(r->system), "%.*s/%.*s", (int)strcspn(from, "/"), from,
		 (int)strcspn(below, "/"), below);
	str_list_add(&r->factors, xasprintf("system=%s", r->system));
}

/* "unet3d, 4_batch_size_14": the workload and the folder that people named. */
static void set_name(struct run_record *r)
{
	AUTO_FREE char *absolute = path_absolute(r->folder);
	AUTO_FREE char *parent = path_dirname(absolute);
	AUTO_FREE char *above = NULL;
	const char *base = path_basename(absolute);
	const char *model = NULL;
	const struct node *name = node_path(r->config, "workload.model.name");

	if (strspn(base, "0123456789-_:T.") == strlen(base) || str_starts(base, "run-"))
		base = path_basename(parent);
	if (strlen(base) >= 3 && str_starts("runs", base)) { /* "run", "runs" */
		above = path_dirname(parent);
		base = path_basename(above);
	}
	if (name && name->kind == NODE_STR)
		model = name->s;
	snprintf(r->name, sizeof(r->name), "%s%s%s", model ? model : "", model ? ", " : "", base);
}

/* Keys that say where files lie, or which part of a run is done, and not what is measured. */
static bool is_factor(const char *key)
{
	static const char *const not [] = {"workload",
					   "workflow.generate_data",
					   "workflow.train",
					   "workflow.evaluation",
					   "dataset.data_folder",
					   "checkpoint.checkpoint_folder",
					   "output.folder",
					   "storage.storage_root",
					   "dataset.keep_files",
					   "dataset.verify_samples",
					   "run.trace",
					   "run.sample_interval",
					   "run.watchdog",
					   "run.probe",
					   "run.probe_time",
					   NULL};

	for (size_t i = 0; not [i]; i++)
		if (strcmp(key, not [i]) == 0)
			return false;
	return !str_starts(key, "hydra.");
}

static void add_factor(struct run_record *r, const char *text)
{
	AUTO_FREE char *key = NULL;

	text += strspn(text, "+");
	if (str_starts(text, "workload."))
		text += 9;
	key = xstrndup(text, strcspn(text, "="));
	if (!is_factor(key))
		return;
	str_list_add(&r->factors, xstrdup(text));
}

/* A workload without model.name goes by what was asked for: "default", "jobs/my.yaml". */
static void model_of_choice(struct run_record *r)
{
	const char *choice = figure_text(part_whole(r->result), F_RUN_WORKLOAD);
	size_t n;

	for (size_t i = 0; !choice && i < r->overrides.n; i++) {
		const char *text = r->overrides.v[i];

		if (str_starts(text, "workload="))
			choice = text + 9;
	}
	choice = choice && choice[0] ? path_basename(choice) : "workload";
	n = strlen(choice);
	if (n > 5 && strcmp(choice + n - 5, ".yaml") == 0)
		n -= 5;
	snprintf(r->model, sizeof(r->model), "%.*s", (int)n, choice);
}

/* A study, or a search, says which overrides are its factors; without one, all of them may be. */
static void read_factors(struct run_record *r)
{
	struct err why = {0};
	json_t *mark = result_folder_json(r->folder, "study_run.json", &why);
	json_t *searched = mark ? NULL : result_folder_json(r->folder, "capacity_run.json", NULL);
	const json_t *list = json_object_get(mark ? mark : searched, "overrides");
	const struct node *name = node_path(r->config, "workload.model.name");

	if (!mark)
		record_note_fault(r, &why);
	for (size_t i = 0; i < json_array_size(list); i++)
		if (json_is_string(json_array_get(list, i)))
			add_factor(r, json_string_value(json_array_get(list, i)));
	for (size_t i = 0; !list && i < r->overrides.n; i++)
		add_factor(r, r->overrides.v[i]);
	if (mark)
		text_of(mark, "model", r->model, sizeof(r->model));
	else if (name && name->kind == NODE_STR)
		snprintf(r->model, sizeof(r->model), "%s", name->s);
	if (!r->model[0])
		model_of_choice(r);
	json_decref(mark);
	json_decref(searched);
}

/* ---- the two files that each rank leaves: times of steps, and spans of epochs ---- */

static double *read_list(const json_t *v, size_t *n)
{
	size_t count = json_array_size(v);
	double *out = count ? xcalloc(count, sizeof(*out)) : NULL;

	for (size_t i = 0; i < count; i++) {
		const json_t *one = json_array_get(v, i);

		out[i] = json_is_number(one) ? json_number_value(one) : 0;
	}
	*n = count;
	return out;
}

/* "0.48": DLIO writes it as text. */
static double duration_of(const json_t *span)
{
	const json_t *v = json_object_get(span, "duration");
	const char *s = json_string_value(v);
	char *end = NULL;
	double seconds = s ? strtod(s, &end) : number_of(span, "duration");

	return s && (end == s || *end) ? NAN : seconds;
}

static void read_phase(struct record_phase *p, const json_t *epoch, const json_t *spans,
		       const char *name, double origin_s)
{
	const json_t *span = json_object_get(spans, name);

	p->load = read_list(json_object_get(json_object_get(epoch, "load"), name), &p->loads);
	p->compute =
		read_list(json_object_get(json_object_get(epoch, "compute"), name), &p->computes);
	p->proc = read_list(json_object_get(json_object_get(epoch, "proc"), name), &p->procs);
	p->au = number_of(json_object_get(epoch, "au"), name);
	p->throughput = number_of(json_object_get(epoch, "throughput"), name);
	p->begin_s = time_of(span, "start") - origin_s;
	p->wall_s = time_of(span, "end") - time_of(span, "start");
	p->duration_s = duration_of(span);
}

static void read_checkpoint(struct record_epoch *ep, const char *name, const json_t *span,
			    double origin_s)
{
	struct record_checkpoint *c;

	if (ep->checkpoints == PARTS_MAX)
		return;
	ep->checkpoint = xrealloc(ep->checkpoint, (ep->checkpoints + 1) * sizeof(*ep->checkpoint));
	c = &ep->checkpoint[ep->checkpoints++];
	*c = (struct record_checkpoint){
		.load = strncmp(name, "load", 4) == 0,
		.begin_s = time_of(span, "start") - origin_s,
		.seconds = duration_of(span),
		.gib_per_s = number_of(span, "throughput"),
	};
	snprintf(c->name, sizeof(c->name), "%s", name);
}

static double cached_bytes(const json_t *epoch)
{
	const char *s = json_string_value(
		json_object_get(json_object_get(epoch, "host_meminfo"), "Cached"));

	return s ? strtod(s, NULL) * 1024 : NAN;
}

/* Of a part of the file, in an order that does not depend on the writer. */
static void digest_tree(const json_t *tree, char hex[SHA256_HEX])
{
	AUTO_FREE char *text = tree ? json_dump_text(tree, JSON_SORT_KEYS | JSON_COMPACT) : NULL;
	struct sha256 h;

	hex[0] = '\0';
	if (!text)
		return;
	sha256_begin(&h);
	sha256_add(&h, text, strlen(text));
	sha256_end(&h, hex);
}

/* Clocks count in ns or finer: two ranks never wait for all their batches equally long. */
static void digest_times(struct record_epoch *ep)
{
	struct sha256 h;
	size_t different = 0;

	sha256_begin(&h);
	for (size_t b = 0; b < ep->blocks; b++) {
		const struct record_phase *p = &ep->block[b];

		for (size_t s = 0; s < p->loads; s++)
			different += p->load[s] > 0 && (s == 0 || p->load[s] != p->load[s - 1]);
		if (p->loads)
			sha256_add(&h, p->load, p->loads * sizeof(*p->load));
	}
	if (different >= 4)
		sha256_end(&h, ep->times_digest);
}

static void read_epoch(struct record_epoch *ep, uint32_t number, const json_t *epoch, json_t *spans,
		       double origin_s)
{
	json_t *span;
	const char *name;
	double first = NAN, last = NAN, saved = NAN;

	*ep = (struct record_epoch){.number = number, .cached_bytes = cached_bytes(epoch)};
	ep->eval.au = ep->eval.throughput = ep->eval.wall_s = ep->eval_begin_s = NAN;
	ep->eval.duration_s = NAN;
	ep->duration_s = duration_of(spans);
	digest_tree(json_object_get(epoch, "host_meminfo"), ep->memory_digest);
	ep->begin_s = time_of(spans, "start") - origin_s;
	ep->end_s = time_of(spans, "end") - origin_s;
	json_object_foreach(spans, name, span)
	{
		if (!json_is_object(span))
			continue;
		if (strcmp(name, "eval") == 0) {
			ep->has_eval = true;
			ep->eval_begin_s = time_of(span, "start") - origin_s;
			read_phase(&ep->eval, epoch, spans, name, origin_s);
		} else if (strncmp(name, "block", 5) == 0 && ep->blocks < PARTS_MAX) {
			ep->block = xrealloc(ep->block, (ep->blocks + 1) * sizeof(*ep->block));
			read_phase(&ep->block[ep->blocks++], epoch, spans, name, origin_s);
			if (!(first <= time_of(span, "start")))
				first = time_of(span, "start");
			if (!(last >= time_of(span, "end")))
				last = time_of(span, "end");
		} else if (strstr(name, "ckpt")) {
			read_checkpoint(ep, name, span, origin_s);
			if (strncmp(name, "load", 4) != 0 && !(saved >= time_of(span, "end")))
				saved = time_of(span, "end");
		}
	}
	/* one that goes on in the background ends where it likes */
	if (isfinite(saved) && ep->has_eval)
		saved = fmin(saved, ep->eval_begin_s + origin_s);
	if (isfinite(saved) && saved > last && saved <= ep->end_s + origin_s)
		last = saved;
	ep->train_wall_s = last - first;
	digest_times(ep);
}

/* Keys that are numbers of epochs. */
static size_t epochs_listed(json_t *output)
{
	const char *key;
	json_t *one;
	size_t n = 0;

	json_object_foreach(output, key, one) n += key[0] && key[strspn(key, "0123456789")] == '\0';
	return n;
}

static void digest_host(struct record_rank *rank, const json_t *output)
{
	json_t *facts = json_object();

	json_object_set(facts, "cpu", json_object_get(output, "host_cpuinfo"));
	json_object_set(facts, "memory", json_object_get(output, "host_meminfo"));
	digest_tree(json_object_size(facts) ? facts : NULL, rank->host_digest);
	json_decref(facts);
}

static void read_rank(struct run_record *r, uint32_t k, json_t *output, json_t *stats)
{
	struct record_rank *rank = &r->rank[k];
	char name[32];

	rank->found = output != NULL;
	rank->memory_gib = number_of(output, "host_memory_GB");
	rank->epochs_listed = epochs_listed(output);
	digest_host(rank, output);
	text_of(output, "hostname", rank->hostname, sizeof(rank->hostname));
	for (uint32_t number = 1; number <= EPOCHS_MAX; number++) {
		json_t *spans;

		snprintf(name, sizeof(name), "%u", number);
		spans = json_object_get(stats, name);
		if (!json_is_object(spans))
			break;
		rank->epoch = xrealloc(rank->epoch, (rank->epochs + 1) * sizeof(*rank->epoch));
		read_epoch(&rank->epoch[rank->epochs++], number, json_object_get(output, name),
			   spans, r->begin_s);
	}
}

/* A file of a rank that this program wrote and that is gone. */
static bool was_written(const struct run_record *r, uint32_t rank, const char *name)
{
	const json_t *files = figure_json(record_part(r, F_RUN_INTEGRITY), F_INTEGRITY_FILES);
	const struct part *one = part_at(record_part(r, F_RUN_RANKS), rank);

	if (!r->ours)
		return false;
	return files ? json_object_get(files, name) != NULL : !figure_flag(one, F_RANK_LOST);
}

/* What keeps the files of ranks from being read: the first of each kind is told. */
struct rank_faults {
	struct err absent, damaged;
	uint32_t more; /* damaged ones, beside the first */
};

static json_t *rank_file(const struct run_record *r, uint32_t k, const char *what,
			 struct rank_faults *f)
{
	char name[64];
	struct err why = {0};
	json_t *root;

	snprintf(name, sizeof(name), "%u_%s.json", k, what);
	root = result_folder_json(r->folder, name, &why);
	if (root)
		return root;
	if (why.code == -ENOENT && was_written(r, k, name))
		err_set(&why, ERR_DATA, "'%s/%s' is missing: it was deleted or renamed", r->folder,
			name);
	if (why.code == -ENOENT && !f->absent.code)
		f->absent = why;
	else if (why.code != -ENOENT && !f->damaged.code)
		f->damaged = why;
	else if (why.code != -ENOENT)
		f->more++;
	return NULL;
}

/* Without files of times of steps: what the stamps of rank 0 say. Of DLIO 2.0, whose ranks' own
 * output.json go with stamps of rank 0 alone, they are all that is read. */
static void read_stamps(struct run_record *r)
{
	static const char *const names[] = {"per_epoch_stats.json", "0_per_epoch_stats.json"};

	for (size_t i = 0; !r->ours && i < sizeof(names) / sizeof(names[0]); i++) {
		struct err why = {0};
		json_t *stats = result_folder_json(r->folder, names[i], &why);

		record_note_fault(r, &why);
		if (!stats)
			continue;
		r->stamps_alone = true;
		read_rank(r, 0, NULL, stats);
		json_decref(stats);
		break;
	}
	/* ranks wait for each other after their last step, and make loaders before their first */
	for (size_t e = 0; r->stamps_alone && e < r->rank[0].epochs; e++) {
		struct record_epoch *ep = &r->rank[0].epoch[e];
		double eval = ep->eval_begin_s < ep->end_s ? ep->eval.wall_s : 0;

		ep->train_wall_s = ep->end_s - ep->begin_s - eval;
	}
}

/* Files that are kept as they were read are those of a few ranks with a few thousand steps. */
#define RANKS_KEPT 8
#define STEPS_KEPT 4096

static bool is_kept(const struct run_record *r, uint32_t k)
{
	size_t steps = 0;

	for (size_t i = 0; i < r->rank[k].epochs; i++) {
		const struct record_epoch *ep = &r->rank[k].epoch[i];

		steps += ep->eval.procs + 1;
		for (size_t b = 0; b < ep->blocks; b++)
			steps += ep->block[b].procs + 1;
	}
	return k < RANKS_KEPT && steps <= STEPS_KEPT;
}

json_t *record_file(const struct run_record *r, const char *name, struct err *e)
{
	uint32_t k;

	if (r->summary && strcmp(name, "summary.json") == 0)
		return json_incref(r->summary);
	if (r->rank && seal_rank_file(name, &k) && k < r->ranks && r->rank[k].output)
		return json_incref(str_ends(name, "_output.json") ? r->rank[k].output
								  : r->rank[k].stats);
	return result_folder_json(r->folder, name, e);
}

static int read_ranks(struct run_record *r, struct err *e)
{
	struct rank_faults faults = {0};

	r->rank = try_calloc(r->ranks, sizeof(*r->rank), "ranks of a result", e);
	if (!r->rank)
		return -ENOMEM;
	for (uint32_t k = 0; k < r->ranks; k++) {
		json_t *output = rank_file(r, k, "output", &faults);
		json_t *stats = rank_file(r, k, "per_epoch_stats", &faults);

		if (output && stats) {
			read_rank(r, k, output, stats);
			r->ranks_found++;
		}
		if (output && stats && is_kept(r, k)) {
			r->rank[k].output = json_incref(output);
			r->rank[k].stats = json_incref(stats);
		}
		json_decref(output);
		json_decref(stats);
	}
	if (r->ranks_found == 0 && !faults.damaged.code)
		read_stamps(r);
	/* only rank 0 of DLIO 2.0 has stamps: nothing is missing */
	if (r->stamps_alone && r->dlio == DLIO_2_0)
		return 0;
	if (faults.more)
		str_list_add(&r->damage, xasprintf("%s (and %u more files of ranks)",
						   faults.damaged.text, faults.more));
	else
		record_note_fault(r, &faults.damaged);
	if (r->ranks_found < r->ranks)
		str_list_add(
			&r->notes,
			xasprintf("the files of %u of %u ranks are missing or unreadable (%s)",
				  r->ranks - r->ranks_found, r->ranks,
				  faults.absent.code ? faults.absent.text : faults.damaged.text));
	return 0;
}

/* ---- is it a result, whose, and whole? ---- */

static void set_broken(struct run_record *r, const char *why)
{
	char who[FILE_LOCK_WHO_MAX];

	r->broken = result_folder_is_used(r->folder, who) ? result_folder_used_text(r->folder, who)
							  : xstrdup(why);
	r->ranks = r->ranks_found = 0;
	r->trained = false;
	json_decref(r->summary);
	json_decref(r->result);
	r->summary = r->result = NULL;
}

/* result.json, and whose folder it is. Without it nothing of ours is judged: the other files are
 * those of DLIO, by whose rules its figures would get other verdicts. */
static int read_result(struct run_record *r, struct err *e)
{
	r->result = result_folder_json(r->folder, "result.json", e);
	if (r->result && !author_of_result(r->result) && !author_is_us(r->folder)) {
		json_decref(r->result);
		r->result = NULL;
		return 0;
	}
	r->ours = r->result || e->code != -ENOENT || author_is_us(r->folder);
	if (r->result)
		return result_check_keys(r->folder, r->result, e);
	if (!r->ours)
		return 0;
	return e->code != -ENOENT
		       ? e->code
		       : err_set(e, ERR_DATA,
				 "'%s' was written by this program, but has no result.json: the "
				 "run did not end, or the file was deleted",
				 r->folder);
}

/* A row of a study has a log of its command from the beginning, and its mark at the end. */
static void check_row(struct run_record *r)
{
	AUTO_FREE char *log = path_join(r->folder, "run.log");
	AUTO_FREE char *mark = path_join(r->folder, "study_run.json");

	if (r->ours && !str_ends(r->folder, ".partial") && !str_ends(r->folder, ".failed") &&
	    file_there(log, NULL) == 1 && file_there(mark, NULL) == 0)
		str_list_add(&r->damage, xasprintf("'%s' is missing, although this is a row of a "
						   "study: it was deleted or renamed",
						   mark));
}

void record_load(struct run_record *r, const char *folder)
{
	struct err e = {0};
	int rc;

	memset(r, 0, sizeof(*r));
	r->begin_s = r->end_s = r->host_memory_bytes = r->memory_bytes = r->checkpoint_gib = NAN;
	r->files = r->samples_per_file = r->data_bytes = r->save_gib_per_s = r->load_gib_per_s =
		NAN;
	r->au.mean = r->au.stdev = r->throughput.mean = r->throughput.stdev = NAN;
	r->io = r->eval_au = r->eval_throughput = r->au;
	r->folder = xstrdup(folder);
	rc = read_result(r, &e);
	if (rc == 0) {
		r->summary = result_folder_json(folder, "summary.json", &e);
		rc = r->summary ? read_summary(r, &e) : e.code;
	}
	if (rc == -ENOENT)
		err_set(&e, ERR_DATA, "'%s/summary.json' is missing: it was deleted or renamed",
			folder);
	if (rc == 0) {
		record_read_config(r);
		look_at_tree(r);
		read_factors(r);
		rc = read_ranks(r, &e);
	}
	if (rc < 0)
		set_broken(r, e.text);
	else
		check_row(r);
	set_name(r);
	facts_find(&r->facts, r);
}

static void release_phase(struct record_phase *p)
{
	free(p->load);
	free(p->compute);
	free(p->proc);
}

static void release_rank(struct record_rank *k)
{
	for (size_t i = 0; i < k->epochs; i++) {
		struct record_epoch *ep = &k->epoch[i];

		for (size_t b = 0; b < ep->blocks; b++)
			release_phase(&ep->block[b]);
		release_phase(&ep->eval);
		free(ep->block);
		free(ep->checkpoint);
	}
	free(k->epoch);
	json_decref(k->output);
	json_decref(k->stats);
}

void record_settle(struct run_record *r)
{
	for (uint32_t k = 0; r->rank && k < r->ranks; k++)
		release_rank(&r->rank[k]);
	free(r->rank);
	r->rank = NULL;
	json_decref(r->summary);
	json_decref(r->result);
	r->summary = r->result = NULL;
	node_free(r->config);
	r->config = NULL;
	if (r->has_workload)
		workload_release(&r->workload);
	r->has_workload = false;
	str_list_release(&r->overrides);
}

void record_release(struct run_record *r)
{
	record_settle(r);
	free(r->au.v);
	free(r->throughput.v);
	free(r->io.v);
	free(r->eval_au.v);
	free(r->eval_throughput.v);
	facts_release(&r->facts);
	configuration_release(r->configuration);
	str_list_release(&r->factors);
	str_list_release(&r->notes);
	str_list_release(&r->damage);
	str_list_release(&r->alone.damage);
	str_list_release(&r->alone.changed);
	str_list_release(&r->alone.failed);
	free(r->broken);
	free(r->folder);
	memset(r, 0, sizeof(*r));
}

int record_check(const char *folder, struct err *e)
{
	struct err why = {0};
	json_t *result = result_folder_json(folder, "result.json", &why);
	bool generated = result && author_of_result(result) && !result_has_summary(result);
	struct run_record r;
	int rc = 0;

	json_decref(result);
	/* there are no other files of figures */
	if (generated)
		return 0;
	record_load(&r, folder);
	if (r.broken || r.damage.n)
		rc = err_set(e, ERR_DATA, "%s", r.broken ? r.broken : r.damage.v[0]);
	else if (!r.ours)
		rc = err_set(e, ERR_DATA, "'%s' has no result.json: it was deleted or renamed",
			     folder);
	record_release(&r);
	return rc;
}
