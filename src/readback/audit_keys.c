/* Configuration: keys without effect. */
#include "readback/audit_checks.h"

#include <stdio.h>
#include <string.h>

#include "workload/key.h"

struct walk_keys {
	struct audit *a;
	size_t record;
	const struct run_record *r;
};

/* DLIO reads a key only under its own spelling: our aliases, which are those of DLIO 2.0, and our
 * additions are unknown to the newer one. */
static bool known_to_dlio(const struct run_record *r, const char *key)
{
	const struct opt *row = opt_find(workload_rows, workload_row_count, key);

	if (r->dlio != DLIO_NEWER && workload_alias_of(key))
		return true;
	return row && strcmp(row->key, key) == 0 && !(row->flags & OPT_STOKER);
}

/* A map that is a row's value, such as train.computation_time. */
static bool value_below(const char *key)
{
	const struct opt *row = opt_find(workload_rows, workload_row_count, key);

	return row && (row->type == OPT_MAP || row->type == OPT_NODES || row->type == OPT_TIME);
}

static void report_ignored_key(struct walk_keys *w, const char *key, const struct node *v)
{
	const struct opt *row = opt_find(workload_rows, workload_row_count, key);
	const char *near = row && strcmp(row->key, key) != 0
				   ? row->key
				   : opt_nearest_key(workload_rows, workload_row_count, key);
	char value[NODE_QUOTE_MAX];
	struct finding *f = audit_add(w->a, w->record, "config", AUDIT_WARN);

	finding_say(f, "The key %s (%s) had no effect: DLIO has no such key", key,
		    node_quote(v, value, sizeof(value)));
	if (near)
		finding_say(f, "; the closest match is %s", near);
	finding_say(f, ".");
	if (near)
		finding_advise(f, "Use %s.", near);
}

static void walk_keys(struct walk_keys *w, const struct node *map, const char *prefix)
{
	for (size_t i = 0; map->kind == NODE_MAP && i < map->n; i++) {
		char key[256];
		const struct node *v = map->child[i];

		snprintf(key, sizeof(key), "%s%s%s", prefix, prefix[0] ? "." : "", map->key[i]);
		if (strcmp(key, "hydra") == 0)
			continue;
		if (v->kind == NODE_MAP && !value_below(key))
			walk_keys(w, v, key);
		else if (!known_to_dlio(w->r, key))
			report_ignored_key(w, key, v);
	}
}

void audit_keys(struct audit *a, size_t i)
{
	struct walk_keys w = {a, i, &a->record[i]};
	const struct node *sections = node_get(w.r->config, "workload");

	if (!w.r->ours && sections && w.r->trained)
		walk_keys(&w, sections, "");
}

void audit_profiler(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	const struct node *p = node_path(r->config, "workload.profiling.profiler");
	bool none = p && p->kind == NODE_STR && strcmp(p->s, "none") == 0;
	struct finding *f;

	if (r->ours || !p || none || !r->has_workload || r->workload.workflow.profiling ||
	    !r->trained)
		return;
	f = audit_add(a, i, "config", AUDIT_NOTE);
	finding_say(f,
		    "profiling.profiler is set but workflow.profiling is off: the device was not "
		    "monitored.");
	finding_advise(f, "Set workflow.profiling=True.");
}

/* DLIO's index loader of PyTorch asks for the samples in ascending order whatever is shuffled; that
 * of DLIO 2.0 shuffles them. */
void audit_shuffle(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	struct finding *f;

	if (r->ours || r->dlio != DLIO_NEWER || !r->trained || !r->has_workload ||
	    !(workload_loader(&r->workload)->default_of & 1u << FRAMEWORK_PYTORCH) ||
	    (r->workload.reader.sample_shuffle == SHUFFLE_OFF &&
	     r->workload.reader.file_shuffle == SHUFFLE_OFF))
		return;
	f = audit_add(a, i, "order", AUDIT_NOTE);
	finding_say(f, "Shuffling is on but does not change the read order: DLIO's PyTorch loader "
		       "reads each rank's files in sorted order, the same in every epoch.");
	finding_advise(f, "Do not use this result to compare shuffle settings.");
}
