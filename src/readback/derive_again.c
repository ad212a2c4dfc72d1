/* result.json made again: the measures of the run are loaded, judged by the rules of this program
 * and written as a tree, which is compared with the file. What follows from measures and was
 * changed differs. What another build of the program judged is not compared: its rules may have
 * been other ones, and what is said of the run is what today's rules say. */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/program.h"
#include "base/file.h"
#include "base/str.h"
#include "conf/node.h"
#include "judge/gate.h"
#include "judge/judge.h"
#include "readback/audit.h"
#include "readback/derivation.h"
#include "readback/result_folder.h"
#include "result/json_basis.h"
#include "result/measures.h"
#include "result/sink.h"
#include "workload/recorded_file.h"

#define MEASURES "the measures of the run"
#define MEASURES_MOST ((size_t)4 << 30)
/* Results before this schema have no measures. */
#define SCHEMA_OF_MEASURES 2

/* Not from measures: who wrote it, with what, and the configuration, which is a measure of nothing
 * and compared with .hydra elsewhere. */
static const char *const not_measured[] = {
	"schema", "program",       "version",     "workload",  "overrides",
	"trace",  "configuration", "environment", "integrity",
};
/* What the rules of judging make of measures. */
static const char *const judged[] = {
	"verdicts", "measured", "limit", "what_if", "fleet", "need", "ledger",
};
/* The same within other sections. */
static const char *const judged_parts[] = {"steadiness", "stragglers", "reading"};
/* What takes a hundred times as long as all else. */
static const char *const predicted[] = {"limit", "what_if", "fleet"};

static bool is_listed(const char *key, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(key, list[i]) == 0)
			return true;
	return false;
}
#define IS_LISTED(key, list) is_listed(key, list, sizeof(list) / sizeof((list)[0]))

static void compare_below(struct derive_trees *at, const json_t *stated, const json_t *made,
			  const char *fmt, ...) __attribute__((format(printf, 4, 5)));

static void compare_below(struct derive_trees *at, const json_t *stated, const json_t *made,
			  const char *fmt, ...)
{
	size_t length = strlen(at->path);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(at->path + length, sizeof(at->path) - length, fmt, ap);
	va_end(ap);
	derive_trees(at, stated, made);
	at->path[length] = '\0';
}

static void compare_members(struct derive_trees *at, const json_t *stated, const json_t *made)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)made, key,
			    value) if (at->same || !IS_LISTED(key, judged_parts))
		compare_below(at, json_object_get(stated, key), value, ".%s", key);
	/* a figure that was not known, and so is nobody's */
	json_object_foreach((json_t *)(uintptr_t)stated, key,
			    value) if (at->whole && !json_object_get(made, key) &&
				       !json_is_null(value))
		derive_holds(at->d, false, "%s.%.60s is there, but %s do not give it.", at->path,
			     key, at->source);
}

static void compare_elements(struct derive_trees *at, const json_t *stated, const json_t *made)
{
	size_t n = json_array_size(made);

	derive_holds(at->d, json_array_size(stated) == n,
		     "%s has %zu entries, but %zu follow from %s.", at->path,
		     json_array_size(stated), n, at->source);
	for (size_t i = 0; i < n && i < json_array_size(stated); i++)
		compare_below(at, json_array_get(stated, i), json_array_get(made, i), "[%zu]", i);
}

static bool same_kind(const json_t *a, const json_t *b)
{
	return json_typeof(a) == json_typeof(b) || (json_is_number(a) && json_is_number(b)) ||
	       (json_is_boolean(a) && json_is_boolean(b));
}

void derive_trees(struct derive_trees *at, const json_t *stated, const json_t *made)
{
	/* what is not known may be left out; another build may have known fewer figures */
	if (!stated && (json_is_null(made) || !at->same))
		return;
	if (!stated || !same_kind(stated, made)) {
		derive_holds(at->d, !at->same && (json_is_null(made) || json_is_null(stated)),
			     "%s is %s, but follows from %s.", at->path,
			     stated ? "of another kind" : "missing", at->source);
		return;
	}
	if (json_is_object(made))
		compare_members(at, stated, made);
	else if (json_is_array(made))
		compare_elements(at, stated, made);
	else if (json_is_number(made))
		derive_equal(at->d, json_number_value(stated), json_number_value(made), at->source,
			     "%s", at->path);
	else if (json_is_string(made) && at->words)
		derive_text(at->d, json_string_value(stated), json_string_value(made), at->source,
			    "%s", at->path);
	else if (!json_is_string(made))
		derive_holds(at->d, json_typeof(stated) == json_typeof(made),
			     "%s is not what follows from %s.", at->path, at->source);
}

bool derive_is_this_build(const struct run_record *r)
{
	const char *build = figure_text(
		part(record_part(r, F_RUN_ENVIRONMENT), F_ENVIRONMENT_VERSIONS), F_VERSIONS_BUILD);

	return build && strcmp(build, build_id) == 0;
}

/* The machine, but for versions of what this program was built with. */
static void compare_environment(struct derive_trees *at, const json_t *stated, const json_t *made)
{
	const char *versions = field_key(F_ENVIRONMENT_VERSIONS);
	json_t *of = json_copy((json_t *)(uintptr_t)stated);
	json_t *again = json_copy((json_t *)(uintptr_t)made);

	json_object_del(of, versions);
	json_object_del(again, versions);
	compare_below(at, of, again, "result.json %s", field_key(F_RUN_ENVIRONMENT));
	json_decref(of);
	json_decref(again);
}

/* A key of the workload in .hydra/config.yaml; NULL. */
static const struct node *written(const struct run_record *r, const char *key)
{
	const struct node *at = node_get(r->config, "workload");
	char part_of[128];

	while (at && at->kind == NODE_MAP && key) {
		const char *dot = strchr(key, '.');

		snprintf(part_of, sizeof(part_of), "%.*s",
			 (int)(dot ? (size_t)(dot - key) : strlen(key)), key);
		at = node_get(at, part_of);
		key = dot ? dot + 1 : NULL;
	}
	return key ? NULL : at;
}

/* What nobody set is a default; the others are compared with .hydra/config.yaml elsewhere. */
static void compare_configuration(struct derive_trees *at, const struct run_record *r,
				  const json_t *stated, json_t *made)
{
	const char *value = field_key(F_CONFIGURED_VALUE), *key;
	json_t *entry;

	json_object_foreach(made, key, entry)
	{
		const json_t *its = json_object_get(stated, key);

		derive_text(at->d, derive_string(its, "unit"), derive_string(entry, "unit"),
			    "this program", "the unit of result.json configuration, %.60s,", key);
		if (!written(r, key))
			compare_below(at, json_object_get(its, value),
				      json_object_get(entry, value),
				      "result.json configuration, %.60s", key);
	}
	json_object_foreach((json_t *)(uintptr_t)stated, key,
			    entry) if (!json_object_get(made, key))
		derive_holds(at->d, false,
			     "result.json configuration has %.60s, which is no key of "
			     "this program.",
			     key);
}

static void compare_statements(struct derive_trees *at, const struct run_record *r,
			       const struct result *of, json_t *made)
{
	static const char *const same[] = {"schema", "program", "version"};
	const struct part *versions =
		part(record_part(r, F_RUN_ENVIRONMENT), F_ENVIRONMENT_VERSIONS);
	const char *environment = field_key(F_RUN_ENVIRONMENT);
	const char *configuration = field_key(F_RUN_CONFIGURATION);
	const char *build = figure_text(versions, F_VERSIONS_BUILD);
	const char *version = figure_text(part_whole(r->result), F_RUN_VERSION);

	/* a build is named by its version and a digest */
	if (build && version)
		derive_holds(at->d, str_starts(build, version) && build[strlen(version)] == '-',
			     "result.json version is '%.40s', but its build is '%.80s'.", version,
			     build);
	derive_text(at->d, build, of->build[0] ? of->build : NULL, at->source,
		    "result.json environment.versions.build");
	for (size_t i = 0; at->same && i < sizeof(same) / sizeof(same[0]); i++)
		compare_below(at, json_object_get(r->result, same[i]),
			      json_object_get(made, same[i]), "result.json %s", same[i]);
	at->words = at->whole = true;
	compare_environment(at, json_object_get(r->result, environment),
			    json_object_get(made, environment));
	if (at->same)
		compare_configuration(at, r, json_object_get(r->result, configuration),
				      json_object_get(made, configuration));
	derive_by_digest(at->d, "workload, trace, versions other than the build, and where keys of "
				"the configuration were set");
}

static void compare_result(struct audit *a, size_t i, const struct result *of, json_t *made)
{
	const struct run_record *r = &a->record[i];
	struct derive figures = derive_begin(a, i, "figures", "measures",
					     "figures of result.json made again from the measures "
					     "of the run (measures.bin)");
	struct derive verdicts = derive_begin(a, i, "verdict", "judgement",
					      "verdicts, headline, limit and predictions of "
					      "result.json made again from the measures of the "
					      "run");
	struct derive_trees at = {.same = derive_is_this_build(r), .source = MEASURES};
	const char *key;
	json_t *value;

	json_object_foreach(made, key, value)
	{
		bool of_rules = IS_LISTED(key, judged);

		if (IS_LISTED(key, not_measured) || (of_rules && !at.same) ||
		    (a->quick && IS_LISTED(key, predicted)))
			continue;
		at.d = of_rules ? &verdicts : &figures;
		/* what gave the bytes is told from the limit */
		at.words = at.same && !(a->quick && strcmp(key, "need") == 0);
		at.whole = at.words;
		compare_below(&at, json_object_get(r->result, key), value, "result.json %s", key);
	}
	at.d = &figures;
	compare_statements(&at, r, of, made);
	json_object_foreach(r->result, key, value) if (at.same && !json_object_get(made, key) &&
						       !IS_LISTED(key, not_measured) &&
						       !(a->quick && IS_LISTED(key, predicted)) &&
						       !json_is_null(value))
		derive_holds(&figures, false,
			     "result.json %.60s is there, but the measures of the run do "
			     "not give it.",
			     key);
	if (!at.same)
		derive_unchecked(&verdicts,
				 "another build of this program wrote them: it is judged by "
				 "today's rules");
	else if (a->quick)
		derive_unchecked(&verdicts,
				 "limit and predictions are made again by 'audit' without --quick, "
				 "of at most %d results",
				 AUDIT_PREDICTED_MOST);
}

/* The other files of figures. */
struct files {
	const struct run_record *r;
	struct derive d;
};

static void compare_file(void *arg, const char *name, const json_t *made)
{
	struct files *f = arg;
	bool same = derive_is_this_build(f->r);
	struct derive_trees at = {
		.d = &f->d, .same = same, .whole = same, .words = same, .source = MEASURES};
	struct err e = {0};
	json_t *stated = record_file(f->r, name, &e);

	snprintf(at.path, sizeof(at.path), "%s ", name);
	if (stated)
		derive_trees(&at, stated, made);
	else
		derive_unchecked(&f->d, "'%.60s' cannot be compared", name);
	json_decref(stated);
}

/* One result again, as far as it is known. */
struct again {
	struct dataset dataset;
	bool has_dataset;
	struct result result;
	struct run_metrics m;
};

static int judge_again(struct again *g, bool quick, struct run_record *r, const char *path,
		       struct err *e)
{
	struct buf file = {0};
	int rc = file_read(path, MEASURES_MOST, &file, e);

	if (rc < 0)
		return rc;
	g->has_dataset = dataset_init(&g->dataset, &r->workload, e) == 0;
	if (!g->has_dataset && e->code == -ENOMEM)
		rc = -ENOMEM;
	if (rc == 0)
		rc = measures_read(&g->result, &r->workload, g->has_dataset ? &g->dataset : NULL,
				   file.data, file.len, path, e);
	if (rc == 0)
		rc = metrics_compute(&g->m, &g->result, e);
	if (rc == 0)
		rc = quick ? judge_trust(&g->result, &g->m, e) : judge_result(&g->result, &g->m, e);
	buf_release(&file);
	return rc;
}

static void again_release(struct again *g)
{
	metrics_release(&g->m);
	measures_release(&g->result);
	if (g->has_dataset)
		dataset_release(&g->dataset);
}

static json_t *compare_again(struct audit *a, size_t i, const struct again *g)
{
	json_t *made = result_tree(&g->result, &g->m);
	struct files f = {.r = &a->record[i]};
	struct err e = {0};

	derive_measures(a, i, &g->result);
	derive_curves(a, i, &g->result);
	compare_result(a, i, &g->result, made);
	f.d = derive_begin(a, i, "figures", "files",
			   "files of DLIO's names made again from the measures of the run");
	if (sinks_render(&g->result, &g->m, compare_file, &f, &e) < 0)
		derive_unchecked(&f.d, "%.200s", e.text);
	return made;
}

/* Why there is nothing to compare with: of a result that should have measures, it is damage. */
static void say_no_measures(struct audit *a, size_t i, const struct err *e)
{
	const struct run_record *r = &a->record[i];
	struct derive d;

	if (figure(part_whole(r->result), F_RUN_SCHEMA) >= SCHEMA_OF_MEASURES ||
	    derive_is_this_build(r)) {
		struct finding *f = audit_add(a, i, "figures", AUDIT_FAIL);

		f->damage = true;
		finding_say(f, "%s.", e->text);
		finding_advise(f, "Restore the file as the run left it, or repeat the run.");
		return;
	}
	d = derive_begin(a, i, "figures", "measures", "result.json");
	derive_unchecked(&d, "an earlier version wrote it, which kept no measures of the run");
}

/* Judges r again; `again_release` in any case. Ends the process where there is no memory for it:
 * the answer would be another one. */
static int again_begin(struct again *g, bool quick, struct run_record *r, struct err *e)
{
	AUTO_FREE char *path = path_join(r->folder, MEASURES_FILE);
	uint64_t refused = alloc_refusals();
	int rc = 0;

	if (!r->has_workload)
		rc = err_set(e, ERR_DATA,
			     "the configuration of '%s' cannot be read: nothing can be judged",
			     r->folder);
	if (rc == 0)
		rc = judge_again(g, quick, r, path, e);
	if (rc == -ENOMEM || alloc_refusals() != refused)
		out_of_memory_for("%s", path);
	return rc;
}

json_t *derive_again(struct audit *a, size_t i)
{
	struct run_record *r = (struct run_record *)(uintptr_t)&a->record[i];
	struct again g = {0};
	struct err e = {0};
	json_t *made = NULL;

	if (!r->ours)
		return NULL;
	if (r->has_workload && workload_is_recorded(&r->workload) && !r->workload.recorded) {
		struct derive d = derive_begin(a, i, "figures", "measures", "result.json");

		derive_unchecked(&d,
				 "'%s', which says what the recorded job read, is neither in the "
				 "folder nor at '%.200s'",
				 RECORDED_COPY, r->workload.dataset.recorded_file);
		return NULL;
	}
	if (again_begin(&g, a->quick, r, &e) == 0)
		made = compare_again(a, i, &g);
	else
		say_no_measures(a, i, &e);
	again_release(&g);
	return made;
}

void audit_basis(struct run_record *r, struct basis *out)
{
	struct again g = {0};
	struct err e = {0};

	if (!r->ours) {
		*out = (struct basis){.why = "DLIO's files do not tell what its requests took"};
		return;
	}
	if (figure(part_whole(r->result), F_RUN_SCHEMA) < SCHEMA_OF_MEASURES) {
		json_basis_of_schema_1(r->result, out);
		return;
	}
	*out = (struct basis){.why = "it did not train"};
	if (again_begin(&g, false, r, &e) < 0)
		snprintf(out->why, sizeof(out->why), "%.199s", e.text);
	else if (g.result.judged.basis)
		*out = *g.result.judged.basis;
	again_release(&g);
}

int audit_gate(struct run_record *r, struct gate_run *out, struct err *e)
{
	struct again g = {0};
	int rc = again_begin(&g, true, r, e);

	if (rc == 0)
		gate_run_of(&g.result, &g.m, out);
	again_release(&g);
	return rc;
}
