/* Are all files of a folder those of one run? Dates, hosts, configuration. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "base/transfer.h"
#include "conf/override.h"
#include "readback/derivation.h"
#include "result/json_out.h"
#include "result/seal.h"
#include "workload/backend.h"
#include "workload/foreign.h"
#include "workload/key.h"

#define WORKLOAD "workload."
#define STORAGE "storage."
/* Clocks of several hosts; ours are brought together, but for the delay of messages. */
static const double CLOCKS_S = 1;
static const double CLOCKS_DLIO_S = 300;
static const double HOUR = 3600; /* stamps are local times */

/* ---- dates ---- */

static void check_dates(struct derive *d, const struct run_record *r)
{
	double slack = r->ours || r->hosts == 1 ? CLOCKS_S : CLOCKS_DLIO_S;
	double length = r->end_s - r->begin_s;

	if (!isfinite(r->begin_s))
		return;
	derive_holds(d, !(length < -slack) || length < -HOUR / 2,
		     "summary.json ends %.6g s before it starts.", -length);
	for (uint32_t k = 0; k < r->ranks; k++)
		for (size_t e = 0; e < r->rank[k].epochs; e++) {
			const struct record_epoch *ep = &r->rank[k].epoch[e];

			if (isnan(ep->begin_s))
				continue;
			derive_holds(d, ep->begin_s >= -slack,
				     "Epoch %zu of %u_per_epoch_stats.json began %.6g s before the "
				     "start of the run in summary.json.",
				     e + 1, k, -ep->begin_s);
			/* an hour less: summer time */
			if (length > -HOUR / 2)
				derive_at_most(d, ep->end_s, length, slack,
					       "the end of the run in summary.json",
					       "the end of epoch %zu in %u_per_epoch_stats.json "
					       "(s of the run)",
					       e + 1, k);
		}
}

/* All ranks begin an epoch together. */
static void check_together(struct derive *d, const struct run_record *r)
{
	double slack = r->ours || r->hosts == 1 ? CLOCKS_S : CLOCKS_DLIO_S;
	size_t epochs = derive_epochs(r);
	uint32_t first = UINT32_MAX;

	for (uint32_t k = 0; k < r->ranks; k++) {
		if (!r->rank[k].found)
			continue;
		if (first == UINT32_MAX) {
			first = k;
			continue;
		}
		/* DLIO's ranks meet only at the end of an epoch, and not in every version */
		for (size_t e = 0; r->ours && e < epochs; e++)
			derive_near(d, r->rank[k].epoch[e].begin_s, r->rank[first].epoch[e].begin_s,
				    slack, "the first rank",
				    "the begin of epoch %zu in %u_per_epoch_stats.json (s of the "
				    "run)",
				    e + 1, k);
		derive_holds(d,
			     r->rank[k].epochs == r->rank[first].epochs ||
				     (r->ours && r->rank[k].epochs >= epochs &&
				      r->rank[first].epochs >= epochs),
			     "%u_per_epoch_stats.json has %zu epochs, %u_per_epoch_stats.json %zu.",
			     k, r->rank[k].epochs, first, r->rank[first].epochs);
	}
	for (uint32_t k = 0; k < r->ranks; k++)
		if (r->rank[k].found)
			derive_holds(
				d,
				r->rank[k].epochs_listed == r->rank[k].epochs ||
					(r->ours && r->rank[k].epochs >= epochs &&
					 r->rank[k].epochs_listed >= epochs),
				"%u_output.json lists %zu epochs, %u_per_epoch_stats.json %zu.", k,
				r->rank[k].epochs_listed, k, r->rank[k].epochs);
}

static void check_epochs(struct derive *d, const struct run_record *r)
{
	double stated = derive_number(r->summary, "epochs");

	for (uint32_t k = 0; k < r->ranks && r->trained; k++)
		if (r->rank[k].found)
			derive_holds(
				d,
				!((double)r->rank[k].epochs < stated) &&
					(r->ours || !((double)r->rank[k].epochs > stated)),
				"summary.json states %.10g epochs, but %u_per_epoch_stats.json "
				"has %zu.",
				stated, k, r->rank[k].epochs);
}

/* ---- hosts ---- */

/* What of the host a rank's file repeats is the same in all files of that host. */
static void check_hosts(struct derive *d, const struct run_record *r)
{
	const json_t *memory = json_object_get(r->summary, "host_memory_GB");
	size_t epochs = derive_epochs(r);

	for (uint32_t k = 0; k < r->ranks; k++) {
		const struct record_rank *rank = &r->rank[k], *other = NULL;

		if (!rank->found)
			continue;
		for (uint32_t j = 0; j < k && !other; j++)
			if (r->rank[j].found && strcmp(r->rank[j].hostname, rank->hostname) == 0)
				other = &r->rank[j];
		if (other && r->ours) {
			uint32_t j = (uint32_t)(other - r->rank);

			derive_holds(d, strcmp(rank->host_digest, other->host_digest) == 0,
				     "%u_output.json and %u_output.json differ in the processors "
				     "and memory of their host '%.60s' (host_cpuinfo, "
				     "host_meminfo).",
				     j, k, rank->hostname);
			for (size_t e = 0; e < epochs; e++)
				derive_holds(d,
					     strcmp(rank->epoch[e].memory_digest,
						    other->epoch[e].memory_digest) == 0,
					     "%u_output.json and %u_output.json differ in the "
					     "memory of their host '%.60s' at the start of epoch "
					     "%zu (host_meminfo).",
					     j, k, rank->hostname, e + 1);
			derive_equal(d, rank->memory_gib, other->memory_gib, "another of its host",
				     "host_memory_GB of %u_output.json", k);
		}
		if (r->hosts == 1 && rank->hostname[0] && r->hostname[0])
			derive_text(d, rank->hostname, r->hostname, "summary.json",
				    "the hostname in %u_output.json", k);
		if (r->hosts == 1 && json_array_size(memory) == 1)
			derive_near(d, rank->memory_gib,
				    json_number_value(json_array_get(memory, 0)),
				    1e-6 * fabs(rank->memory_gib), "summary.json",
				    "host_memory_GB of %u_output.json", k);
	}
}

/* Where ranks were many, comparing each with each would take too long: digests are sorted. */
struct times_of {
	const char *digest;
	uint32_t rank;
};

static int by_digest(const void *a, const void *b)
{
	const struct times_of *x = a, *y = b;
	int order = strcmp(x->digest, y->digest);

	return order ? order : x->rank < y->rank ? -1 : 1;
}

static void check_copies(struct derive *d, const struct run_record *r)
{
	size_t epochs = derive_epochs(r);
	AUTO_FREE struct times_of *v = xcalloc(r->ranks_found + 1, sizeof(*v));

	for (size_t e = 0; e < epochs; e++) {
		size_t n = 0;

		for (uint32_t k = 0; k < r->ranks; k++)
			if (r->rank[k].found && r->rank[k].epoch[e].times_digest[0])
				v[n++] = (struct times_of){r->rank[k].epoch[e].times_digest, k};
		qsort(v, n, sizeof(*v), by_digest);
		for (size_t i = 1; i < n; i++)
			derive_holds(d, strcmp(v[i].digest, v[i - 1].digest) != 0,
				     "%u_output.json and %u_output.json have the same times of "
				     "every step of epoch %zu, to the last digit: one is a copy of "
				     "the other.",
				     v[i - 1].rank, v[i].rank, e + 1);
	}
}

static void check_extra(struct derive *d, const struct run_record *r)
{
	DIR *dir = WITH_MEMORY(folder_open(r->folder));
	int more = dir ? 1 : -errno;
	struct dirent *entry;
	uint32_t rank;

	if (more == -ENOMEM)
		out_of_memory(); /* not a folder without files */
	while (more > 0 && (more = folder_next(dir, &entry)) > 0)
		if (seal_rank_file(entry->d_name, &rank))
			derive_holds(d, rank < r->ranks,
				     "'%.60s' is of rank %u, but summary.json states %u "
				     "accelerators.",
				     entry->d_name, rank, r->ranks);
	if (dir)
		closedir(dir);
	if (more < 0)
		derive_unchecked(d, "the folder cannot be listed: %s", strerror(-more));
}

/* ---- configuration ---- */

static bool same_number(const char *a, const char *b)
{
	char *end_a, *end_b;
	double x = strtod(a, &end_a), y = strtod(b, &end_b);

	return end_a != a && end_b != b && !*end_a && !*end_b &&
	       fabs(x - y) <= 1e-9 * fmax(fabs(x), fabs(y));
}

/* Of an option of a store, "storage.throttle.latency". NULL: it is none. */
static char *store_text(const struct run_record *r, const char *key)
{
	const char *name = key + strlen(STORAGE), *option = strchr(name, '.');
	AUTO_FREE char *store = option ? xstrndup(name, (size_t)(option - name)) : NULL;
	const struct store_facts *f = store ? store_facts_find(store) : NULL;
	const struct opt *row = f ? opt_find(f->options, f->option_count, option + 1) : NULL;
	struct err ignored = {0};
	void *config = row ? workload_store_config(&r->workload, f, &ignored) : NULL;
	char *text = config ? opt_get_text(row, config) : NULL;

	if (config)
		opt_release(f->options, f->option_count, config);
	free(config);
	return text;
}

/* What the program makes of the configuration: rules across keys change some. NULL: the key is none
 * of its own. */
static char *own_text(const struct run_record *r, const char *key)
{
	const struct opt *row = opt_find(workload_rows, workload_row_count, key);

	if (!r->has_workload)
		return NULL;
	if (row && strcmp(row->key, key) == 0)
		return opt_get_text(row, &r->workload);
	return str_starts(key, STORAGE) ? store_text(r, key) : NULL;
}

static bool derives_to(const char *text, const json_t *stated)
{
	const char *s = json_string_value(stated);

	if (json_is_boolean(stated))
		return strcasecmp(text, json_is_true(stated) ? "true" : "false") == 0;
	return s && (strcmp(s, text) == 0 || same_number(s, text));
}

/* One key of .hydra/config.yaml against result.json. */
static void check_key(struct derive *d, const struct run_record *r, const char *key,
		      const struct node *v)
{
	const json_t *stated = record_configured(r, key, F_CONFIGURED_VALUE);
	AUTO_FREE char *text = stated ? own_text(r, key) : NULL;
	char ours[64], theirs[64];

	if (!stated || (text && derives_to(text, stated)))
		return;
	if (json_is_boolean(stated) && v->kind == NODE_BOOL) {
		/* with too few files for a step of evaluation, a run turns it off and warns */
		if (strcmp(key, "workflow.evaluation") == 0 && v->b &&
		    part_count(record_part(r, F_RUN_WARNINGS)))
			return;
		derive_text(d, json_is_true(stated) ? "true" : "false", v->b ? "true" : "false",
			    ".hydra/config.yaml", "result.json configuration, %.60s,", key);
	} else if (json_is_number(stated) && (v->kind == NODE_INT || v->kind == NODE_FLOAT)) {
		double have = json_number_value(stated),
		       want = v->kind == NODE_INT ? (double)v->i : v->f;

		derive_near(d, have, want, 1e-9 * fmax(fabs(have), fabs(want)),
			    ".hydra/config.yaml", "result.json configuration, %.60s,", key);
	} else if (json_is_string(stated) && v->kind == NODE_STR && !strstr(v->s, "${")) {
		snprintf(ours, sizeof(ours), "%s", json_string_value(stated));
		snprintf(theirs, sizeof(theirs), "%s", v->s);
		if (strcasecmp(ours, theirs) != 0 && !same_number(ours, theirs))
			derive_text(d, ours, theirs, ".hydra/config.yaml",
				    "result.json configuration, %.60s,", key);
	} else if (text && json_is_string(stated) && v->kind != NODE_STR) {
		derive_text(d, json_string_value(stated), text, ".hydra/config.yaml",
			    "result.json configuration, %.60s,", key);
	}
}

static void check_keys(struct derive *d, const struct run_record *r, const struct node *map,
		       const char *prefix)
{
	for (size_t i = 0; map && map->kind == NODE_MAP && i < map->n; i++) {
		char key[256];

		snprintf(key, sizeof(key), "%s%s%s", prefix, prefix[0] ? "." : "", map->key[i]);
		if (map->child[i]->kind == NODE_MAP)
			check_keys(d, r, map->child[i], key);
		else
			check_key(d, r, key, map->child[i]);
	}
}

static void check_counts(struct derive *d, const struct run_record *r)
{
	const struct workload *w = &r->workload;
	const struct {
		const char *key;
		double want;
	} same[] = {
		{"num_files_train", (double)w->dataset.num_files_train},
		{"num_files_eval", (double)w->dataset.num_files_eval},
		{"num_samples_per_file", workload_file_samples(w, false)},
	};
	double epochs = derive_number(r->summary, "epochs");

	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		derive_equal(d, derive_number(r->summary, same[i].key), same[i].want,
			     ".hydra/config.yaml", "summary.json %s", same[i].key);
	if (r->trained)
		derive_at_most(d, epochs, (double)w->train.epochs, 0, "train.epochs",
			       "summary.json epochs");
	/* DLIO writes its summary only at the end */
	if (r->trained && !r->ours && w->train.total_training_steps <= 0)
		derive_equal(d, epochs, (double)w->train.epochs, "train.epochs",
			     "summary.json epochs");
}

/* 1: yes, 0: no, as YAML and people spell it; -1: neither. */
static int truth_of(const char *s)
{
	static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcasecmp(s, words[i]) == 0)
			return (int)(i % 2);
	return -1;
}

static bool same_setting(const struct node *a, const struct node *b, const char *x, const char *y)
{
	if (!a || !b)
		return !a && !b;
	return node_equal(a, b) || strcasecmp(x, y) == 0 || same_number(x, y) ||
	       (truth_of(x) >= 0 && truth_of(x) == truth_of(y));
}

static char *setting_text(const struct node *v)
{
	struct buf text = {0};

	if (v && v->kind == NODE_STR)
		return xstrdup(v->s);
	if (v)
		node_emit_flow(v, &text);
	return v ? buf_take(&text) : xstrdup("(nothing)");
}

/* The key that another name of it stands for; NULL. */
static const char *stands_for(const char *bare)
{
	const struct foreign_name *f = foreign_find(bare);
	const char *dot = strrchr(bare, '.'), *alias = workload_alias_of(bare);
	char several[512];

	if (alias || f)
		return alias ?: f->key;
	return workload_key_known(bare)
		       ? NULL
		       : foreign_bare_key(dot ? dot + 1 : bare, several, sizeof(several));
}

/* One of the program, or one that Hydra adds to what it has. */
static bool is_in_section(const char *bare)
{
	AUTO_FREE char *section = xstrndup(bare, strcspn(bare, "."));

	return workload_key_known(section);
}

/* The key or section that is what the loader makes of another form of it (mend_model,
 * framework_mend); NULL. */
static const char *mended(const struct run_record *r, const struct override *o, const char *bare)
{
	enum node_kind kind = o->value ? o->value->kind : NODE_NULL;

	if (strcmp(bare, "framework.name") == 0 ||
	    (kind == NODE_MAP && strcmp(bare, "framework") == 0))
		return "framework";
	return r->ours && kind == NODE_STR && strcmp(bare, "model") == 0 ? "model" : NULL;
}

/* Read as a run reads it, where its key is one of the workload; others are Hydra's (of DLIO all
 * that do not say workload), or names of frameworks. *other (NULL: none): the key that such a name
 * sets. */
static bool read_override(const struct run_record *r, const char *text, struct override *o,
			  const char **other)
{
	struct err ignored = {0};
	const char *bare;

	*other = NULL;
	if (override_parse(text, o, &ignored) < 0)
		return false;
	bare = str_starts(o->key, WORKLOAD) ? o->key + strlen(WORKLOAD) : o->key;
	if (bare != o->key || r->ours)
		*other = mended(r, o, bare) ?: stands_for(bare);
	if ((bare == o->key && !r->ours) || !is_in_section(bare) || *other ||
	    str_starts(bare, "framework.")) {
		override_release(o);
		return false;
	}
	if (bare == o->key) {
		char *whole = xasprintf(WORKLOAD "%s", o->key);

		free(o->key);
		o->key = whole;
	}
	o->op = o->op == OVERRIDE_DELETE ? OVERRIDE_DELETE : OVERRIDE_FORCE;
	return true;
}

/* The same, or one is in the other. */
static bool overlap(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b), least = n < m ? n : m;

	return strncmp(a, b, least) == 0 && (n == m || (n < m ? b : a)[least] == '.');
}

/* What a later one under another name has replaced. How many are left. */
static size_t drop_settings(struct override *given, size_t n, const char *key)
{
	size_t left = 0;

	for (size_t i = 0; i < n; i++)
		if (overlap(given[i].key + strlen(WORKLOAD), key))
			override_release(&given[i]);
		else
			given[left++] = given[i];
	return left;
}

/* Overrides, applied to the configuration in their order, change nothing: they are in it. */
static void check_settings(struct derive *d, const struct run_record *r)
{
	struct override *given = xcalloc(r->overrides.n + 1, sizeof(*given));
	struct node *again = node_clone(r->config);
	struct err ignored = {0};
	size_t n = 0;

	for (size_t i = 0; i < r->overrides.n; i++) {
		const char *other;

		if (!read_override(r, r->overrides.v[i], &given[n], &other)) {
			n = other ? drop_settings(given, n, other) : n;
			if (other || strstr(r->overrides.v[i], "framework."))
				derive_unchecked(d, "the override '%.60s', by another name",
						 r->overrides.v[i]);
			continue;
		}
		/* what was deleted is not there to be deleted, which is no matter */
		override_apply(again, &given[n++], &ignored);
	}
	for (size_t i = 0; i < n; i++) {
		const struct node *have = node_path(r->config, given[i].key),
				  *want = node_path(again, given[i].key);
		AUTO_FREE char *x = setting_text(have);
		AUTO_FREE char *y = setting_text(want);

		derive_text(d, y, same_setting(have, want, x, y) ? y : x, ".hydra/config.yaml",
			    "the value of the override '%.60s'", given[i].text);
		override_release(&given[i]);
	}
	node_free(again);
	free(given);
}

static void check_overrides(struct derive *d, const struct run_record *r)
{
	const json_t *list = figure_json(part_whole(r->result), F_RUN_OVERRIDES);

	if (r->config)
		check_settings(d, r);
	if (!list || !r->config)
		return;
	derive_holds(d, json_array_size(list) == r->overrides.n,
		     "result.json lists %zu overrides, .hydra/overrides.yaml %zu.",
		     json_array_size(list), r->overrides.n);
	for (size_t i = 0; i < json_array_size(list) && i < r->overrides.n; i++)
		derive_text(d, json_string_value(json_array_get(list, i)), r->overrides.v[i],
			    ".hydra/overrides.yaml", "override %zu of result.json", i + 1);
}

/* What result.json and summary.json both say of the run and its host. */
static void check_result(struct derive *d, const struct run_record *r)
{
	const struct part *whole = part_whole(r->result);
	const struct part *environment = part(whole, F_RUN_ENVIRONMENT);
	const struct part *versions = part(environment, F_ENVIRONMENT_VERSIONS);
	const json_t *memory = json_object_get(r->summary, "host_memory_GB");
	const json_t *host = json_object_get(r->summary, "host_meminfo");
	const json_t *meminfo = figure_json(environment, F_ENVIRONMENT_MEMINFO);
	double wall = figure(whole, F_RUN_WALL);

	derive_equal(d, figure(whole, F_RUN_ACCELERATORS), r->ranks, "summary.json",
		     "result.json accelerators");
	derive_text(d, figure_text(environment, F_ENVIRONMENT_HOSTNAME), r->hostname,
		    "summary.json", "result.json environment.hostname");
	derive_text(d, figure_text(versions, F_VERSIONS_STOKER), figure_text(whole, F_RUN_VERSION),
		    "result.json version", "result.json environment.versions.stoker");
	derive_text(d, figure_text(whole, F_RUN_START), derive_string(r->summary, "start"),
		    "summary.json", "result.json start");
	derive_text(d, figure_text(whole, F_RUN_END), derive_string(r->summary, "end"),
		    "summary.json", "result.json end");
	if (fabs(fabs(wall - (r->end_s - r->begin_s)) - HOUR) > 60)
		derive_near(d, wall, r->end_s - r->begin_s, 1e-5, "start and end of summary.json",
			    "result.json wall_s");
	if (json_array_size(memory))
		derive_near(d, figure(environment, F_ENVIRONMENT_MEMORY),
			    json_number_value(json_array_get(memory, 0)) * 0x1p30, 65536,
			    "summary.json", "result.json environment.memory_bytes");
	derive_holds(d, !meminfo || !host || json_equal(meminfo, host),
		     "result.json environment.meminfo and summary.json host_meminfo differ: they "
		     "are not of one run.");
}

/* Rank files of the host of process 0 repeat its memory as summary.json has it. */
static void check_memory(struct derive *d, const struct run_record *r)
{
	json_t *facts = json_object();
	AUTO_FREE char *text = NULL;
	char hex[SHA256_HEX];
	struct sha256 h;

	json_object_set(facts, "cpu", json_object_get(r->summary, "host_cpuinfo"));
	json_object_set(facts, "memory", json_object_get(r->summary, "host_meminfo"));
	text = json_dump_text(facts, JSON_SORT_KEYS | JSON_COMPACT);
	json_decref(facts);
	if (!text)
		return;
	sha256_begin(&h);
	sha256_add(&h, text, strlen(text));
	sha256_end(&h, hex);
	for (uint32_t k = 0; k < r->ranks; k++)
		if (r->rank[k].found && r->rank[k].host_digest[0] &&
		    strcmp(r->rank[k].hostname, r->hostname) == 0)
			derive_holds(d, strcmp(r->rank[k].host_digest, hex) == 0,
				     "%u_output.json and summary.json differ in the processors and "
				     "memory of their host (host_cpuinfo, host_meminfo): they are "
				     "not of one run.",
				     k);
}

void derive_origin(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	struct derive d = derive_begin(a, i, "identity", "identity",
				       "that all files are of one run: dates, hosts, ranks, "
				       "epochs, configuration");

	check_dates(&d, r);
	check_together(&d, r);
	check_epochs(&d, r);
	check_hosts(&d, r);
	check_copies(&d, r);
	check_extra(&d, r);
	if (r->has_workload)
		check_counts(&d, r);
	else
		derive_unchecked(&d, "there is no configuration to compare with");
	check_overrides(&d, r);
	if (!r->ours)
		return;
	check_result(&d, r);
	check_memory(&d, r);
	check_keys(&d, r, node_get(r->config, "workload"), "");
}
