/* From a name and overrides to a checked workload. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/str.h"
#include "conf/override.h"
#include "workload/compose.h"
#include "workload/foreign.h"
#include "workload/framework_costs.h"
#include "workload/framework_key.h"
#include "workload/key.h"
#include "workload/recorded_file.h"
#include "workload/secret.h"
#include "workload/validate.h"
#include "workload/workload.h"

#define DEFAULT_RUN_DIR "./hydra_log/${workload.model.name}/${now:%Y-%m-%d}-${now:%H-%M-%S}"

/* What is at work while a workload is loaded; released whatever happens. */
struct loading {
	struct workload *w;
	const struct workload_request *req;
	struct override *task, *hydra;
	size_t tasks, hydras;
	struct node *hydra_tree; /* root of {hydra: {run: {dir}, output_subdir}} */
	struct node *choice;     /* a name or a list of names; NULL: the default */
	bool dlio;               /* compat.dlio */
	struct err *e;
};

/* ---- overrides ---- */

static bool is_hydra_key(const char *key)
{
	return str_starts(key, "hydra.") || str_starts(key, "hydra/") || strcmp(key, "hydra") == 0;
}

static int take_choice(struct loading *l, struct override *o)
{
	if (o->op == OVERRIDE_DELETE || !o->value ||
	    (o->value->kind != NODE_STR && o->value->kind != NODE_LIST))
		return err_set(l->e, ERR_USAGE,
			       "override '%.200s': workload= takes the name of a workload",
			       o->text);
	node_free(l->choice);
	l->choice = o->value;
	o->value = NULL;
	override_release(o);
	return 0;
}

static void set_key(struct override *o, char *key)
{
	free(o->key);
	o->key = key;
}

static void note_foreign(struct loading *l, const struct override *o, const char *bare,
			 const char *key, const char *note)
{
	struct buf text = {0};

	node_emit_flow(o->value, &text);
	workload_note(l->w, "command line: %s is read as %s=%s%s%s%s", bare, key, text.data,
		      note ? " (" : "", note ? note : "", note ? ")" : "");
	buf_release(&text);
}

/* A name of a framework becomes the key it stands for. 1: there is nothing to set. */
static int read_foreign(struct loading *l, struct override *o, const char *bare,
			const struct foreign_name *f)
{
	const char *dot = strchr(bare, '.');
	struct node *value;

	if (f->how == FOREIGN_PER_WORKER) { /* the workers are known later */
		set_key(o, xasprintf("workload.reader.%s", dot ? dot + 1 : bare));
		o->op = OVERRIDE_FORCE;
		return 0;
	}
	value = foreign_value(f, o->value, 0, bare, l->e);
	if (!value)
		return l->e->code;
	node_free(o->value);
	o->value = value;
	if (!f->key) {
		workload_note(l->w, "command line: %s is what happens in any case", o->text);
		return 1;
	}
	note_foreign(l, o, bare, f->key, f->note);
	set_key(o, xasprintf("workload.%s", f->key));
	o->op = OVERRIDE_FORCE;
	return 0;
}

static int read_bare(struct loading *l, struct override *o, const char *bare)
{
	const char *dot = strrchr(bare, '.');
	char several[512];
	const char *key = foreign_bare_key(dot ? dot + 1 : bare, several, sizeof(several));

	if (!key && several[0])
		return err_set(l->e, ERR_USAGE,
			       "write %s%s: '%s' alone is not a key (command line: '%.120s')",
			       strchr(several, ',') ? "one of " : "", several, bare, o->text);
	if (!key)
		return 0;
	note_foreign(l, o, bare, key, NULL);
	set_key(o, xasprintf("workload.%s", key));
	o->op = OVERRIDE_FORCE;
	return 0;
}

/* Keys are given with "workload." before them; a key that is known may be set whether or not the
 * file has it, so that "key=value" is enough. 1: there is nothing to set. */
static int normalize(struct loading *l, struct override *o)
{
	const struct foreign_name *foreign;
	bool prefixed = str_starts(o->key, "workload.");

	if (strcmp(prefixed ? o->key + 9 : o->key, "framework.name") == 0) {
		set_key(o, xstrdup("workload.framework"));
		prefixed = true;
	}
	const char *bare = prefixed ? o->key + 9 : o->key;
	AUTO_FREE char *section = xstrndup(bare, strcspn(bare, "."));
	const char *known = str_starts(bare, "data_reader.") ? bare + 5 : bare;

	if (o->op != OVERRIDE_DELETE && o->value && !workload_key_known(known)) {
		AUTO_FREE char *typed = xstrdup(bare);

		foreign = foreign_find(typed);
		if (foreign)
			return read_foreign(l, o, typed, foreign);
		if (!strchr(typed, '.') || foreign_section(section))
			return read_bare(l, o, typed);
	}
	if (o->op == OVERRIDE_SET && workload_key_known(known))
		o->op = OVERRIDE_FORCE;
	if (!prefixed && workload_key_known(section))
		set_key(o, xasprintf("workload.%s", bare));
	return 0;
}

/* Notes an error, so that the others are found too. */
static int keep(struct loading *l, int rc)
{
	if (rc < 0)
		workload_keep_error(l->w, l->e);
	return 0;
}

static int read_overrides(struct loading *l)
{
	const struct workload_request *req = l->req;

	l->task = xcalloc(req->override_count + 1, sizeof(*l->task));
	l->hydra = xcalloc(req->override_count + 1, sizeof(*l->hydra));
	for (size_t i = 0; i < req->override_count; i++) {
		struct override o = {0};
		int rc = override_parse(req->overrides[i], &o, l->e);

		if (rc < 0) {
			keep(l, rc);
			continue;
		}
		if (is_hydra_key(o.key)) {
			str_list_add(&l->w->hydra_overrides, xstrdup(req->overrides[i]));
			l->hydra[l->hydras++] = o;
			continue;
		}
		str_list_add(&l->w->overrides, xstrdup(req->overrides[i]));
		if (strcmp(o.key, "workload") == 0 && (!o.value || o.value->kind != NODE_MAP)) {
			rc = take_choice(l, &o);
			if (rc < 0)
				override_release(&o);
			keep(l, rc);
			continue;
		}
		rc = normalize(l, &o);
		if (rc == 0) {
			l->task[l->tasks++] = o;
		} else {
			override_release(&o);
			keep(l, rc);
		}
	}
	return 0;
}

/* ---- composition ---- */

static int choose(struct loading *l)
{
	const char *asked = l->req->workload;

	if (asked && l->choice && (l->choice->kind != NODE_STR || strcmp(asked, l->choice->s) != 0))
		return err_set(l->e, ERR_USAGE,
			       "two workloads are given, '%s' and that of the override "
			       "workload=: remove one",
			       asked);
	if (!l->choice && !asked && l->req->must_name)
		return err_set(l->e, ERR_USAGE,
			       "name a workload: a built-in one, such as unet3d_h100 ('stoker show "
			       "workloads' lists them), or a YAML file");
	if (!l->choice)
		l->choice = node_new_str(asked ? asked : "default", (struct node_mark){0});
	if (l->choice->kind == NODE_STR) {
		l->w->choice = xstrdup(l->choice->s);
		return 0;
	}
	struct buf names = {0};

	for (size_t i = 0; i < l->choice->n; i++) {
		if (l->choice->child[i]->kind != NODE_STR) {
			buf_release(&names);
			return err_set(
				l->e, ERR_USAGE,
				"workload= takes a name or a list of names, not a list with %s",
				node_kind_name(l->choice->child[i]->kind));
		}
		buf_printf(&names, "%s%s", i ? "," : "", l->choice->child[i]->s);
	}
	l->w->choice = buf_take(&names);
	return 0;
}

static int compose(struct loading *l)
{
	struct workload *w = l->w;
	const struct node *choice = l->choice;
	const struct node *const *names = (const struct node *const *)choice->child;
	size_t n = choice->kind == NODE_LIST ? choice->n : 1;

	w->composed = node_new(NODE_MAP, (struct node_mark){0});
	node_set(w->composed, "workload", node_new(NODE_MAP, (struct node_mark){0}));
	for (size_t i = 0; i < n; i++) {
		const char *name = choice->kind == NODE_LIST ? names[i]->s : choice->s;
		int rc = workload_compose(w->composed, name, w->config_dir, l->e);

		if (rc < 0)
			return rc;
	}
	return 0;
}

/* MLPerf Storage v0.5 and v1.0 wrote "model: unet3d". */
const struct node *workload_mend_model(struct node *sections)
{
	const struct node *model = node_get(sections, "model");
	struct node *map, *name;

	if (!model || model->kind != NODE_STR)
		return NULL;
	map = node_new(NODE_MAP, model->mark);
	name = node_clone(model);
	node_set(map, "name", name);
	node_set(sections, "model", map);
	return name;
}

static void mend_model(struct workload *w)
{
	const struct node *name = workload_mend_model(node_get(w->composed, "workload"));

	if (name)
		workload_warn(w, "%s: line %d: model is a section; '%s' is read as model.name",
			      name->mark.file ? name->mark.file : "", name->mark.line, name->s);
}

static const char *bare_key(const struct override *o)
{
	return str_starts(o->key, "workload.") ? o->key + 9 : o->key;
}

/* Replaced by what it stands for; with compat.dlio it stands for nothing. */
static void read_alias(struct loading *l, struct override *o)
{
	const char *bare = bare_key(o);
	const char *key = o->op == OVERRIDE_DELETE ? NULL : workload_alias_of(bare);

	if (!key || l->dlio)
		return;
	workload_warn(l->w, "override '%s': %s is read as %s", o->text, bare, key);
	set_key(o, xasprintf("workload.%s", key));
}

static int apply_override(struct loading *l, struct override *o)
{
	read_alias(l, o);

	const char *bare = bare_key(o);
	const struct foreign_name *foreign = workload_key_known(bare) ? NULL : foreign_find(bare);

	if (framework_overrides_costs(o))
		return framework_override_costs(l->w->composed, o, l->e);
	if (!workload_key_known(bare))
		o->meant = foreign_nearest_key(bare);
	/* it replaces what the file says of the key that it stands for */
	if (foreign && foreign->key && o->op == OVERRIDE_FORCE) {
		AUTO_FREE char *section =
			xasprintf("workload.%.*s", (int)strcspn(foreign->key, "."), foreign->key);
		struct node *map = node_path(l->w->composed, section);

		if (map && map->kind == NODE_MAP)
			node_unset(map, strchr(foreign->key, '.') + 1);
	}
	int rc = override_apply(l->w->composed, o, l->e);

	framework_mend(node_get(l->w->composed, "workload"));
	return rc;
}

static int apply_overrides(struct loading *l)
{
	const struct node *sections;

	mend_model(l->w);
	framework_mend(node_get(l->w->composed, "workload"));
	l->dlio = workload_wants_dlio(node_path(l->w->composed, "workload.compat.dlio"));
	for (size_t i = 0; i < l->tasks; i++)
		if (strcmp(bare_key(&l->task[i]), "compat.dlio") == 0)
			l->dlio = workload_wants_dlio(l->task[i].value);
	for (size_t i = 0; i < l->tasks; i++)
		keep(l, apply_override(l, &l->task[i]));
	mend_model(l->w);
	sections = node_get(l->w->composed, "workload");
	if (sections && sections->kind == NODE_MAP)
		return 0;
	return err_set(l->e, ERR_USAGE,
		       "the overrides remove the workload: 'workload' is not a "
		       "map");
}

/* ---- hydra.run.dir and interpolation ---- */

/* hydra.run.dir and hydra.output_subdir are the keys of Hydra's own that mean something here. */
static int compose_hydra(struct loading *l)
{
	struct node *tree = node_new(NODE_MAP, (struct node_mark){0});
	struct node *hydra = node_new(NODE_MAP, (struct node_mark){0});
	struct node *run = node_new(NODE_MAP, (struct node_mark){0});
	const struct node *from_file = node_get(l->w->composed, "hydra");

	l->hydra_tree = tree;
	node_set(tree, "hydra", hydra);
	node_set(hydra, "run", run);
	node_set(run, "dir", node_new_str(DEFAULT_RUN_DIR, (struct node_mark){0}));
	node_set(hydra, "output_subdir", node_new_str(".hydra", (struct node_mark){0}));
	if (from_file && from_file->kind == NODE_MAP)
		node_merge(hydra, from_file);
	node_unset(l->w->composed, "hydra");
	for (size_t i = 0; i < l->hydras; i++) {
		const struct override *o = &l->hydra[i];

		if (strcmp(o->key, "hydra.run.dir") != 0 &&
		    strcmp(o->key, "hydra.output_subdir") != 0 &&
		    strcmp(o->key, "hydra.run") != 0) {
			workload_warn(l->w,
				      "override '%s' has no effect: of Hydra's own keys only "
				      "hydra.run.dir and hydra.output_subdir are supported",
				      o->text);
			continue;
		}
		keep(l, override_apply(tree, o, l->e));
	}
	return 0;
}

static int take_hydra(struct loading *l, const struct node *root)
{
	const struct node *dir = node_path(root, "hydra.run.dir");
	const struct node *subdir = node_path(root, "hydra.output_subdir");

	if (!dir || dir->kind != NODE_STR || !dir->s[0])
		return err_set(l->e, ERR_USAGE, "hydra.run.dir must be the path of a folder");
	if (subdir && subdir->kind != NODE_STR && subdir->kind != NODE_NULL)
		return err_set(l->e, ERR_USAGE,
			       "hydra.output_subdir must be the name of a folder or null");
	l->w->run_dir = xstrdup(dir->s);
	if (subdir && subdir->kind == NODE_STR && subdir->s[0])
		l->w->hydra_subdir = xstrdup(subdir->s);
	return 0;
}

/* The choice as a name: "dir/x.yaml" is x. */
static char *choice_name(const struct workload *w)
{
	const char *base = path_basename(w->choice);
	size_t n = strlen(base);

	return xstrndup(base, str_ends(base, ".yaml") && n > 5 ? n - 5 : n);
}

/* Everything is resolved in one document, so that a workload can refer to hydra.run.dir and the
 * folder to model.name. A workload without model.name lends the folder its own name. */
static int interpolate(struct loading *l)
{
	struct node *root = node_clone(l->w->composed);
	struct node *sections = node_get(root, "workload");
	struct node *model = node_get(sections, "model");
	bool no_model = !model || model->kind != NODE_MAP;
	bool no_name = no_model || !node_get(model, "name");

	l->w->tree = root;
	if (no_model) {
		model = node_new(NODE_MAP, (struct node_mark){0});
		node_set(sections, "model", model);
	}
	if (no_name) {
		AUTO_FREE char *name = choice_name(l->w);
		struct node *text = node_new_str(name, (struct node_mark){0});

		text->literal = true;
		node_set(model, "name", text);
	}
	node_merge(root, l->hydra_tree);
	int rc = node_interpolate(root, l->req->start_wall_ns, l->e) ?: take_hydra(l, root);

	node_unset(root, "hydra");
	sections = node_get(root, "workload");
	if (rc == 0 && no_name)
		node_unset(node_get(sections, "model"), "name");
	if (rc == 0 && no_model)
		node_unset(sections, "model");
	return rc;
}

/* ---- the whole ---- */

static int load(struct loading *l)
{
	struct workload *w = l->w;
	int rc = opt_set_defaults(workload_rows, workload_row_count, w, l->e);

	w->origin = xcalloc(workload_row_count, sizeof(*w->origin));
	int kind =
		rc == 0 && l->req->config_dir ? path_look(l->req->config_dir, l->e) : PATH_FOLDER;

	if (kind < 0)
		rc = kind;
	else if (kind != PATH_FOLDER)
		rc = err_set(l->e, ERR_USAGE, "the configuration folder '%s' does not exist",
			     l->req->config_dir);
	if (rc == 0 && l->req->config_dir)
		w->config_dir = xstrdup(l->req->config_dir);
	if (rc == 0)
		rc = read_overrides(l) ?:
		     choose(l) ?:
		     compose(l) ?:
		     apply_overrides(l) ?:
		     compose_hydra(l) ?:
		     interpolate(l) ?:
		     (secret_take(w), 0) ?:
		     keep(l, framework_take_costs(w, false, l->e)) ?:
		     workload_type(w, l->req, l->e);
	/* rules across keys say nothing of keys that were not understood */
	if (rc == 0)
		rc = workload_derive(w, false, l->e);
	if (rc == 0)
		rc = workload_validate(w, l->req->ranks > 0 ? l->req->ranks : 1, l->e);
	if (rc == 0 && !l->req->inspect)
		rc = workload_check_features(w, l->e);
	keep(l, rc);
	return workload_first_error(w, l->e);
}

int workload_load(struct workload *w, const struct workload_request *req, struct err *e)
{
	struct err own = {0};
	struct loading l = {.w = w, .req = req, .e = e ? e : &own};

	memset(w, 0, sizeof(*w));
	int rc = load(&l);

	for (size_t i = 0; i < l.tasks; i++)
		override_release(&l.task[i]);
	for (size_t i = 0; i < l.hydras; i++)
		override_release(&l.hydra[i]);
	free(l.task);
	free(l.hydra);
	node_free(l.hydra_tree);
	node_free(l.choice);
	return rc;
}

int workload_read_back(struct workload *w, const struct node *config, struct err *e)
{
	const struct node *sections = node_get(config, "workload");
	struct err own = {0};
	int rc;

	memset(w, 0, sizeof(*w));
	if (!e)
		e = &own;
	w->origin = xcalloc(workload_row_count, sizeof(*w->origin));
	rc = opt_set_defaults(workload_rows, workload_row_count, w, e);
	if (rc == 0 && (!sections || sections->kind != NODE_MAP))
		rc = err_set(e, ERR_USAGE, "the configuration has no map 'workload'");
	if (rc < 0)
		return rc;
	w->composed = node_clone(config);
	w->tree = node_clone(config);
	rc = node_interpolate(w->tree, 0, e) ?:
	     framework_take_costs(w, true, e) ?:
	     workload_type(w, &(struct workload_request){0}, e);
	return rc == 0 ? workload_derive(w, true, e) : rc;
}

void workload_release(struct workload *w)
{
	opt_release(workload_rows, workload_row_count, w);
	costs_release(w->costs);
	recorded_release(w->recorded);
	node_free(w->tree);
	node_free(w->composed);
	free(w->origin);
	str_list_release(&w->overrides);
	str_list_release(&w->hydra_overrides);
	str_list_release(&w->warnings);
	str_list_release(&w->notes);
	str_list_release(&w->added);
	str_list_release(&w->errors);
	free(w->choice);
	free(w->config_dir);
	free(w->run_dir);
	free(w->hydra_subdir);
	memset(w, 0, sizeof(*w));
}
