/* The keys framework and framework.costs: their spellings, and the profile that they name. */
#include "workload/framework_key.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "workload/framework_costs.h"
#include "workload/key.h"

#define NONE "none"

/* Of DLIO with a framework. */
static const char *const default_profiles[] = {
	[FRAMEWORK_TENSORFLOW] = NULL, [FRAMEWORK_PYTORCH] = "torch-1.13"};

void framework_mend(struct node *sections)
{
	struct node *map, *name = NULL;

	if (!sections || sections->kind != NODE_MAP)
		return;
	map = node_get(sections, "framework");
	if (!map || map->kind != NODE_MAP)
		return;
	for (size_t i = 0; i < map->n; i++) {
		if (strcmp(map->key[i], "name") == 0) {
			name = node_clone(map->child[i]);
			continue;
		}
		AUTO_FREE char *key = xasprintf("framework.%s", map->key[i]);

		node_unset(sections, key);
		node_add(sections, key, map->key_mark[i], node_clone(map->child[i]));
	}
	if (name)
		node_set(sections, "framework", name);
	else
		node_unset(sections, "framework");
}

int framework_said_once(const struct node *sections, struct err *e)
{
	const struct node *map =
		sections && sections->kind == NODE_MAP ? node_get(sections, "framework") : NULL;

	for (size_t i = 0; map && map->kind == NODE_MAP && i < map->n; i++) {
		AUTO_FREE char *key = xasprintf("framework.%s", map->key[i]);
		const struct node *other = node_get(sections, key);

		if (other)
			return node_refuse(other, key, e,
					   "the map 'framework' has this key, too: keep one of "
					   "them");
	}
	return 0;
}

bool framework_overrides_costs(const struct override *o)
{
	return strcmp(o->key, "workload." FRAMEWORK_COSTS) == 0;
}

/* The rules of Hydra in a tree that has the dots where they expect them. */
int framework_override_costs(struct node *root, const struct override *o, struct err *e)
{
	struct node *sections = node_get(root, "workload");
	const struct node_mark none = {0};
	struct node *copy = node_new(NODE_MAP, none), *workload = node_new(NODE_MAP, none),
		    *framework = node_new(NODE_MAP, none);
	const struct node *old = node_get(sections, FRAMEWORK_COSTS), *now;
	int rc;

	node_set(copy, "workload", workload);
	node_set(workload, "framework", framework);
	if (old)
		node_set(framework, "costs", node_clone(old));
	rc = override_apply(copy, o, e);
	now = rc == 0 ? node_path(copy, "workload.framework.costs") : NULL;
	if (now)
		node_set(sections, FRAMEWORK_COSTS, node_clone(now));
	else if (rc == 0)
		node_unset(sections, FRAMEWORK_COSTS);
	node_free(copy);
	return rc;
}

/* ---- the profile ---- */

static struct node *at(struct node *root)
{
	struct node *sections = root ? node_get(root, "workload") : NULL;

	return sections && sections->kind == NODE_MAP ? node_get(sections, FRAMEWORK_COSTS) : NULL;
}

static char *path_of(const struct node *v)
{
	const char *file = v->mark.file;
	AUTO_FREE char *folder = NULL, *near = NULL;

	if (!file || !strchr(file, '/') || strcmp(file, NODE_COMMAND_LINE) == 0 ||
	    costs_builtin_text(v->s) || v->s[0] == '/')
		return xstrdup(v->s);
	folder = path_dirname(file);
	near = path_join(folder, v->s);
	return xstrdup(file_there(near, NULL) > 0 ? near : v->s);
}

static struct framework_costs *find(const struct node *v, bool back, struct err *e)
{
	char where[256];

	if (v->kind == NODE_MAP)
		return costs_from_node(v, back, e);
	if (v->kind == NODE_LIST || v->kind == NODE_BOOL || !v->s || !v->s[0]) {
		node_refuse(v, FRAMEWORK_COSTS, e,
			    "the name of a profile, its path, or none is needed here");
		return NULL;
	}
	AUTO_FREE char *path = path_of(v);
	struct framework_costs *c = costs_load(path, e);

	if (!c && e)
		err_wrap(e, "%s" FRAMEWORK_COSTS, workload_place(&v->mark, where, sizeof(where)));
	return c;
}

static void place(struct workload *w, const struct framework_costs *c, struct node_mark mark)
{
	struct node *doc = costs_node(c);

	doc->mark = mark;
	node_set(node_get(w->tree, "workload"), FRAMEWORK_COSTS, doc);
	node_set(node_get(w->composed, "workload"), FRAMEWORK_COSTS, node_clone(doc));
}

int framework_take_costs(struct workload *w, bool back, struct err *e)
{
	struct node *v = at(w->tree);
	struct framework_costs *c;

	if (!v || v->kind == NODE_NULL || (v->kind == NODE_STR && strcmp(v->s, NONE) == 0))
		return 0;
	/* a label without its laws says no more than that there were costs */
	c = back && v->kind != NODE_MAP ? NULL : find(v, back, e);
	if (c) {
		place(w, c, v->mark);
		w->costs = c;
	} else if (!back) {
		int rc = e ? e->code : ERR_USAGE;

		node_set(node_get(w->tree, "workload"), FRAMEWORK_COSTS,
			 node_new_str(NONE, v->mark));
		return rc;
	}
	return c || v->kind != NODE_MAP ? 0 : ERR_USAGE;
}

const char *framework_profile(int framework)
{
	return default_profiles[framework];
}

int framework_default_costs(struct workload *w, struct err *e)
{
	const char *name = framework_profile(w->framework);
	struct framework_costs *c;

	if (!name)
		return 0;
	c = costs_load(name, e);
	if (!c)
		return e ? e->code : ERR_USAGE;
	place(w, c, (struct node_mark){0});
	w->costs = c;
	free(w->framework_costs);
	w->framework_costs = costs_label(c);
	return 0;
}
