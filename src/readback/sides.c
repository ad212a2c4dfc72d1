/* Facts of the runs of two sides, one after another: what served the bytes, which steps count, what
 * was read, by whom, and whether it went well. */
#include "readback/sides.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/vector.h"
#include "readback/step_marks.h"

/* ---- runs and their copies ---- */

#define KEYS (3 + RUN_PARTS)

struct run_key {
	char *text; /* heap */
	const char *why;
};

/* The keys of a result among those of the same `group`; how many. */
static size_t keys_of(const struct run_record *r, size_t group, struct run_key key[KEYS])
{
	static const char *const parts[PART_KINDS] = {
		[PART_STEPS] = "the times of the steps of an epoch are the same, to the last digit",
		[PART_STAMPS] =
			"stamps of an epoch or a checkpoint are the same to the microsecond",
		[PART_FIGURES] = "figures of summary.json are the same, to the last digit",
	};
	const struct record_facts *f = &r->facts;
	size_t n = 0;

	if (f->run_id && f->run_id[0])
		key[n++] = (struct run_key){xasprintf("%zu id %s", group, f->run_id),
					    "both have the same number (run_id)"};
	if (isfinite(r->begin_s) && isfinite(r->end_s) && r->end_s > r->begin_s)
		key[n++] = (struct run_key){xasprintf("%zu times %a %a %u %s", group, r->begin_s,
						      r->end_s, r->ranks, r->hostname),
					    "both began and ended at the same moments on the same "
					    "host"};
	if (f->waits[0])
		key[n++] = (struct run_key){xasprintf("%zu waits %u %s", group, r->ranks, f->waits),
					    "all times of their steps are the same, to the last "
					    "digit"};
	for (size_t i = 0; i < f->parts; i++)
		key[n++] = (struct run_key){
			xasprintf("%zu part %llx", group, (unsigned long long)f->part[i]),
			parts[f->part[i] & 3]};
	return n;
}

const struct run_record *runs_have(const struct runs_seen *seen, const struct run_record *r,
				   size_t group, const char **why)
{
	const struct run_record *has = NULL;
	const char *said = "the times of their steps are in the same order";
	struct run_key key[KEYS];
	size_t n = keys_of(r, group, key);

	for (size_t i = 0; i < n; i++) {
		size_t at = texts_find(&seen->key, key[i].text);

		if (!has && at != TEXT_NONE) {
			has = seen->run[seen->of_key[at]];
			said = key[i].why;
		}
		free(key[i].text);
	}
	for (size_t i = 0; r->facts.marks && !has && i < seen->n; i++)
		if (seen->group[i] == group &&
		    step_marks_same(seen->run[i]->facts.marks, r->facts.marks))
			has = seen->run[i];
	if (why)
		*why = said;
	return has;
}

void runs_add(struct runs_seen *seen, const struct run_record *r, size_t group)
{
	struct run_key key[KEYS];
	size_t n = keys_of(r, group, key);

	VECTOR_PUSH(seen->run, seen->n, seen->room, r);
	seen->group = xrealloc(seen->group, seen->room * sizeof(*seen->group));
	seen->group[seen->n - 1] = group;
	for (size_t i = 0; i < n; i++) {
		size_t before = seen->key.n;

		if (texts_add(&seen->key, key[i].text) == before)
			VECTOR_PUSH(seen->of_key, seen->keys, seen->key_room, seen->n - 1);
		free(key[i].text);
	}
}

void runs_release(struct runs_seen *seen)
{
	texts_release(&seen->key);
	free(seen->run);
	free(seen->group);
	free(seen->of_key);
	*seen = (struct runs_seen){0};
}

size_t *records_distinct(const struct run_record *r, size_t n, size_t *count)
{
	size_t *index = xcalloc(n + 1, sizeof(*index));
	struct runs_seen seen = {0};

	*count = 0;
	for (size_t i = 0; i < n; i++) {
		if (runs_have(&seen, &r[i], 0, NULL))
			continue;
		runs_add(&seen, &r[i], 0);
		index[(*count)++] = i;
	}
	runs_release(&seen);
	return index;
}

/* ---- what a run says that its numbers are of ---- */

const char *claim_storage(const struct run_record *r)
{
	return r->facts.claim_storage;
}

const char *claim_text(const struct run_record *r)
{
	return r->facts.claim_text;
}

/* Whether a verdict took this kind away from the numbers: "content", "client", ... */
static bool claim_taken(const struct run_record *r, const char *kind)
{
	const struct str_list *list = &r->facts.taken;

	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->v[i], kind) == 0)
			return true;
	return false;
}

bool claim_from_memory(const struct run_record *r)
{
	return claim_taken(r, "storage") || claim_taken(r, "part");
}

/* Whether both say the same served their reads: of two runs from memory, the same memory. True
 * where one of them does not say; results of schema 1 say so only in prose. */
static bool claim_same_source(const struct run_record *a, const struct run_record *b)
{
	const char *x = claim_storage(a), *y = claim_storage(b);
	const char *s = a->facts.claim_instead, *t = b->facts.claim_instead;

	if (!x || !y)
		return true;
	/* of two emulated stores, the name is one of the keys */
	return strcmp(x, y) == 0 && (!s || !t || strcmp(x, "no") != 0 || strcmp(s, t) == 0);
}

static const double SIZE_OTHER = 0.01; /* of a checkpoint */
static const double SHARE_OTHER = 0.2; /* of the bytes, by which two sources differ */

static const struct run_record *run_of(const struct side *s, size_t i)
{
	return &s->r[s->index[i]];
}

/* ---- where the bytes came from ---- */

static double sides_cached_share(const struct run_record *r)
{
	return r->facts.cached_share;
}

struct source {
	size_t known, memory;
	double least, most, sum;
};

static struct source source_of(const struct side *s)
{
	struct source x = {.least = INFINITY, .most = -INFINITY};

	for (size_t i = 0; i < s->n; i++) {
		double share;

		if (run_of(s, i)->facts.in_memory) {
			x.memory++;
			continue;
		}
		share = sides_cached_share(run_of(s, i));
		if (!isfinite(share))
			continue;
		x.known++;
		x.sum += share;
		x.least = fmin(x.least, share);
		x.most = fmax(x.most, share);
	}
	return x;
}

static char *source_text(const struct source *x, const struct side *s)
{
	double mean = x->known ? 100 * x->sum / (double)x->known : NAN;

	if (x->memory == s->n)
		return xstrdup("from a dataset in memory");
	if (x->memory)
		return xasprintf("from a dataset in memory in %zu of %zu runs", x->memory, s->n);
	if (!x->known)
		return xstrdup("from the storage or the page cache, which is not known");
	if (x->most - x->least > SHARE_OTHER)
		return xasprintf("%.0f %% to %.0f %% of its bytes, from run to run, from the page "
				 "cache",
				 100 * x->least, 100 * x->most);
	if (mean >= 50)
		return xasprintf("from the page cache (%.0f %% of the bytes)", mean);
	return xasprintf("from the storage (%.0f %% of the bytes came from the page cache)", mean);
}

static void compare_sources(const struct side *a, const struct side *b, struct str_list *unlike)
{
	struct source x = source_of(a), y = source_of(b);
	AUTO_FREE char *first = source_text(&x, a);
	AUTO_FREE char *second = source_text(&y, b);
	bool memory = x.memory * b->n != y.memory * a->n || (x.memory && x.memory < a->n);
	bool mixed = x.most - x.least > SHARE_OTHER || y.most - y.least > SHARE_OTHER;
	bool apart = x.known && y.known &&
		     fabs(x.sum / (double)x.known - y.sum / (double)y.known) > SHARE_OTHER;

	if (memory || mixed || apart)
		str_list_add(unlike, xasprintf("The bytes came from different places: the first "
					       "side read %s, the second %s.",
					       first, second));
}

/* What each run says of itself (docs/metrics.md, "What was measured"): where the bytes are not
 * counted, as with FUSE or a device whose bytes lie in memory, it is all there is. */
static const struct run_record *other_claim(const struct side *s, const struct run_record *than)
{
	for (size_t i = 0; i < s->n; i++)
		if (!claim_same_source(than, run_of(s, i)))
			return run_of(s, i);
	return NULL;
}

static void compare_claims(const struct side *a, const struct side *b, struct str_list *unlike)
{
	static const char *const names[] = {"first", "second"};
	const struct side *side[] = {a, b};
	const struct run_record *x = run_of(a, 0), *y = other_claim(b, x);
	bool content[2];

	for (int s = 0; s < 2; s++) {
		const struct run_record *first = run_of(side[s], 0);
		const struct run_record *other = other_claim(side[s], first);

		if (other)
			str_list_add(unlike,
				     xasprintf("The runs of the %s side did not measure the same: "
					       "%.300s | %.300s",
					       names[s], claim_text(first), claim_text(other)));
		content[s] = claim_taken(first, "content");
		for (size_t i = 1; i < side[s]->n; i++)
			content[s] = content[s] || claim_taken(run_of(side[s], i), "content");
	}
	if (y)
		str_list_add(unlike,
			     xasprintf("The sides did not measure the same: %.300s | %.300s",
				       claim_text(x), claim_text(y)));
	if (content[0] != content[1])
		str_list_add(unlike,
			     xasprintf("The %s side did not read the samples that its workload "
				       "describes (measured.taken of its result.json: content).",
				       names[content[1]]));
}

/* ---- keys of the configuration ---- */

/* What follows from keys that differ; a key that ends with a dot stands for all below it. */
struct key_group {
	const char *sentence;
	enum { KEYS_DOUBT, KEYS_OTHER_WORK, KEYS_UNLIKE } means;
	const char *key[12];
};

static const struct key_group key_groups[] = {
	{"AU and the throughput of the measured steps cover different steps",
	 KEYS_UNLIKE,
	 {"output.metric.exclude_start_steps", "output.metric.exclude_end_steps", "compat.dlio"}},
	{"The accelerator is another one: AU is not comparable as a measure of storage",
	 KEYS_OTHER_WORK,
	 {"train.computation_time", "train.computation_time_stdev", "evaluation.eval_time",
	  "evaluation.eval_time_stdev"}},
	{"The work of a step is another one: a step reads or computes something else",
	 KEYS_OTHER_WORK,
	 {"reader.batch_size", "reader.batch_size_eval", "reader.preprocess_time",
	  "reader.preprocess_time_stdev", "reader.transformed_record_dims",
	  "reader.transformed_record_element_type"}},
	{"The work of a run is another one",
	 KEYS_OTHER_WORK,
	 {"train.total_training_steps", "workflow.checkpoint", "workflow.evaluation",
	  "evaluation.eval_after_epoch", "evaluation.epochs_between_evals", "checkpoint.",
	  "model."}},
	{"The sides were measured in different ways", KEYS_DOUBT, {"run.measure", "run.trace"}},
	{"The sides read different data", KEYS_OTHER_WORK, {"dataset."}},
	{"The order of samples differs", KEYS_DOUBT, {"train.seed", "reader.seed"}},
};

/* Where the data lies and how it was made, not what it is. */
static bool says_where(const char *key)
{
	static const char *const keys[] = {"dataset.data_folder",          "dataset.keep_files",
					   "dataset.verify_samples",       "dataset.generation_",
					   "checkpoint.checkpoint_folder", "model.name"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (strncmp(key, keys[i], strlen(keys[i])) == 0)
			return true;
	return false;
}

static bool group_has(const struct key_group *g, const char *key)
{
	for (size_t i = 0; i < sizeof(g->key) / sizeof(g->key[0]) && g->key[i]; i++) {
		size_t n = strlen(g->key[i]);

		if (g->key[i][n - 1] == '.' ? strncmp(key, g->key[i], n) == 0
					    : strcmp(key, g->key[i]) == 0)
			return !says_where(key);
	}
	return false;
}

static void compare_keys(const struct key_differences *d, struct sides *out)
{
	for (size_t g = 0; g < sizeof(key_groups) / sizeof(key_groups[0]); g++) {
		const struct key_group *group = &key_groups[g];
		struct buf keys = {0};

		for (size_t i = 0; i < d->n; i++)
			if (group_has(group, d->v[i].key))
				buf_printf(&keys, "%s%s: %s | %s", keys.len ? ", " : "",
					   d->v[i].key, d->v[i].x, d->v[i].y);
		if (keys.len) {
			str_list_add(group->means == KEYS_UNLIKE ? &out->unlike : &out->doubts,
				     xasprintf("%s (%s).", group->sentence, keys.data));
			out->other_work = out->other_work || group->means == KEYS_OTHER_WORK;
		}
		buf_release(&keys);
	}
}

/* Keys that neither say where files lie nor which part of a run was done: what repetitions share.
 */
static bool is_condition(const char *key)
{
	static const char *const prefix[] = {
		"workflow.generate_data", "workflow.profiling", "run.trace",
		"run.sample_interval",    "run.watchdog",       "run.probe"};

	for (size_t i = 0; i < sizeof(prefix) / sizeof(prefix[0]); i++)
		if (strncmp(key, prefix[i], strlen(prefix[i])) == 0)
			return false;
	return !says_where(key) && !strstr(key, "folder") && !strstr(key, "seed");
}

void unlike_keys(const struct run_record *a, const struct run_record *b, struct str_list *out)
{
	const char *x = a->facts.mount, *y = b->facts.mount;
	struct key_differences d;

	key_differences_find(&d, a, b);
	for (size_t i = 0; i < d.n; i++)
		if (is_condition(d.v[i].key))
			str_list_add(out, xasprintf("%s=%s", d.v[i].key, d.v[i].y));
	if (x && y && strcmp(x, y) != 0)
		str_list_add(out, xasprintf("dataset.data_folder=%s", y));
	key_differences_release(&d);
}

/* The first key by which a run is no repetition of the first of its side; NULL: none. */
static char *unlike_repetition(const struct run_record *a, const struct run_record *b)
{
	struct key_differences d;
	char *found = NULL;

	if (a->ranks != b->ranks)
		return xasprintf("ranks: %u | %u", a->ranks, b->ranks);
	key_differences_find(&d, a, b);
	for (size_t i = 0; i < d.n && !found; i++)
		if (is_condition(d.v[i].key))
			found = xasprintf("%s: %s | %s", d.v[i].key, d.v[i].x, d.v[i].y);
	key_differences_release(&d);
	return found;
}

static void check_repetitions(const struct side *s, const char *side, struct str_list *unlike)
{
	/* checkpoints are written by one call and read by another */
	for (size_t i = 1; i < s->n && run_of(s, 0)->trained; i++) {
		AUTO_FREE char *key = unlike_repetition(run_of(s, 0), run_of(s, i));

		if (!key)
			continue;
		str_list_add(unlike, xasprintf("The runs of the %s side are not repetitions of one "
					       "configuration (%s).",
					       side, key));
		return;
	}
}

/* ---- who measured, and what became of it ---- */

static double samples_of(const struct run_record *r)
{
	return r->facts.samples;
}

static double data_bytes(const struct run_record *r)
{
	return r->facts.data_bytes;
}

static void compare_readers(const struct run_record *a, const struct run_record *b,
			    struct sides *out)
{
	struct str_list *doubts = &out->doubts;
	bool samples = samples_of(a) > 0 && samples_of(b) > 0 && samples_of(a) != samples_of(b);
	double size = a->checkpoint_gib / b->checkpoint_gib;
	bool sizes = !a->trained && !b->trained && fabs(size - 1) > SIZE_OTHER;
	bool bytes = data_bytes(a) > 0 && data_bytes(b) > 0 && data_bytes(a) != data_bytes(b);

	out->other_work = out->other_work || a->ranks != b->ranks || samples || bytes || sizes;
	if (sizes)
		str_list_add(doubts, xasprintf("The checkpoints are of other sizes: %.4g GiB | "
					       "%.4g GiB.",
					       a->checkpoint_gib, b->checkpoint_gib));
	if (a->ranks != b->ranks || a->hosts != b->hosts)
		str_list_add(doubts,
			     xasprintf("The number of readers differs: %u rank%s on %u "
				       "host%s | %u rank%s on %u host%s.",
				       a->ranks, a->ranks == 1 ? "" : "s", a->hosts,
				       a->hosts == 1 ? "" : "s", b->ranks, b->ranks == 1 ? "" : "s",
				       b->hosts, b->hosts == 1 ? "" : "s"));
	if (strcmp(a->hostname, b->hostname) != 0)
		str_list_add(doubts, xasprintf("The sides ran on different machines: %s | %s.",
					       a->hostname, b->hostname));
	if (samples)
		str_list_add(doubts,
			     xasprintf("The number of samples in an epoch differs: %.0f | %.0f.",
				       samples_of(a), samples_of(b)));
	if (bytes)
		str_list_add(doubts,
			     xasprintf("The size of the dataset on the storage differs, in bytes: "
				       "%.0f | %.0f.",
				       data_bytes(a), data_bytes(b)));
	if (a->au.n != b->au.n)
		str_list_add(doubts,
			     xasprintf("The number of epochs differs: %zu | %zu. The first "
				       "epoch often starts with fewer files in the page cache.",
				       a->au.n, b->au.n));
}

static const char *build_of(const struct run_record *r)
{
	return r->facts.build ? r->facts.build : "unknown";
}

static void compare_programs(const struct run_record *a, const struct run_record *b,
			     struct str_list *doubts)
{
	if (a->ours != b->ours)
		str_list_add(
			doubts,
			xasprintf("One side was made by DLIO and the other by Stoker, which count "
				  "steps differently in throughput (docs/compatibility.md)."));
	else if (strcmp(build_of(a), build_of(b)) != 0)
		str_list_add(doubts, xasprintf("The sides were measured by different versions of "
					       "the program: %s | %s.",
					       build_of(a), build_of(b)));
}

static bool ended_early(const struct run_record *r)
{
	const char *status = r->facts.status;

	return status && (strcmp(status, "interrupted") == 0 || strcmp(status, "failed") == 0);
}

static void judge_side(const struct side *s, const char *side, struct str_list *unlike,
		       struct str_list *doubts)
{
	size_t early = 0, unsteady = 0;
	const char *why = NULL;

	for (size_t i = 0; i < s->n; i++) {
		const char *text = run_of(s, i)->facts.unsteady;

		early += ended_early(run_of(s, i));
		unsteady += text != NULL;
		why = why ? why : text;
	}
	if (early)
		str_list_add(unlike, xasprintf("%zu of %zu run%s of the %s side ended early.",
					       early, s->n, s->n == 1 ? "" : "s", side));
	if (unsteady)
		str_list_add(doubts, xasprintf("%zu of %zu run%s of the %s side %s not steady: %s",
					       unsteady, s->n, s->n == 1 ? "" : "s", side,
					       unsteady == 1 ? "was" : "were", why ? why : ""));
}

/* Names of the checks that failed, each once, and damaged files. */
static void audit_side(const struct side *s, const char *side, struct sides *out)
{
	struct buf names = {0};

	for (size_t i = 0; i < s->n; i++) {
		const struct record_alone *x = &run_of(s, i)->alone;

		for (size_t k = 0; k < x->damage.n; k++)
			str_list_add(&out->damage, xstrdup(x->damage.v[k]));
		for (size_t k = 0; k < x->changed.n; k++)
			str_list_add(&out->doubts, xstrdup(x->changed.v[k]));
		for (size_t k = 0; k < x->failed.n; k++)
			if (!(names.data && strstr(names.data, x->failed.v[k])))
				buf_printf(&names, "%s%s", names.len ? ", " : "", x->failed.v[k]);
	}
	if (names.len)
		str_list_add(&out->doubts,
			     xasprintf("The audit reports invalid results on the %s side: "
				       "%s (see stoker audit).",
				       side, names.data));
	buf_release(&names);
}

void sides_compare(const struct side *a, const struct side *b, const struct key_differences *d,
		   struct sides *out)
{
	const struct run_record *x = run_of(a, 0), *y = run_of(b, 0);

	out->other_work = false;
	compare_sources(a, b, &out->unlike);
	compare_claims(a, b, &out->unlike);
	check_repetitions(a, "first", &out->unlike);
	check_repetitions(b, "second", &out->unlike);
	judge_side(a, "first", &out->unlike, &out->doubts);
	judge_side(b, "second", &out->unlike, &out->doubts);
	compare_keys(d, out);
	compare_readers(x, y, out);
	compare_programs(x, y, &out->doubts);
	audit_side(a, "first", out);
	audit_side(b, "second", out);
}
