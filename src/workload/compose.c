/* Finds workload files and merges them: user folders first, then the built-in ones; defaults lists
 * and "@package" headers as Hydra reads them. */
#include "workload/compose.h"

#include <assert.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/str.h"
#include "workload/framework_key.h"
#include "workload/workload.h"

#define MAX_DEPTH 16
#define MAX_FILE_BYTES ((size_t)4 << 20)

struct source {
	char *label; /* the path, or "built-in/NAME.yaml" */
	char *id;    /* the same for all paths of one file */
	char *dir;   /* folder of a file; NULL: built in */
	struct buf text;
};

struct composer {
	struct node *root;
	const char *config_dir;
	/* Identities of the files being merged. A file whose defaults list has its own name means
	 * the next one found under that name, so that a user's unet3d_h100.yaml can build on the
	 * built-in one. */
	const struct source *stack[MAX_DEPTH];
	int depth;
};

static void source_release(struct source *s)
{
	free(s->label);
	free(s->id);
	free(s->dir);
	buf_release(&s->text);
}

static bool in_use(const struct composer *c, const char *id)
{
	for (int i = 0; i < c->depth; i++)
		if (strcmp(c->stack[i]->id, id) == 0)
			return true;
	return false;
}

/* 1: taken, 0: no such file or being merged already, negative: unreadable. */
static int try_file(const struct composer *c, const char *path, struct source *s, struct err *e)
{
	int kind = path_look(path, e);

	if (kind == PATH_FOLDER && str_ends(path, ".yaml"))
		return err_set(e, ERR_USAGE, "'%s' is a folder; a workload is a YAML file", path);
	if (kind != PATH_OTHER)
		return kind < 0 ? kind : 0;
	AUTO_FREE char *real = WITH_MEMORY(realpath(path, NULL));
	const char *id = real ? real : path;

	if (in_use(c, id))
		return 0;
	int rc = file_read(path, MAX_FILE_BYTES, &s->text, e);

	if (rc < 0)
		return rc;
	s->label = xstrdup(path);
	s->id = xstrdup(id);
	s->dir = path_dirname(path);
	return 1;
}

static int try_dir(const struct composer *c, const char *dir, const char *sub, const char *name,
		   struct source *s, struct err *e)
{
	if (!dir)
		return 0;
	AUTO_FREE char *path = xasprintf("%s/%s%s.yaml", dir, sub, name);

	return try_file(c, path, s, e);
}

static int try_builtin(const struct composer *c, const char *name, struct source *s)
{
	const char *text = workload_builtin_text(name);
	AUTO_FREE char *label = xasprintf(WORKLOAD_BUILTIN_PREFIX "%s.yaml", name);

	if (!text || in_use(c, label))
		return 0;
	buf_puts(&s->text, text);
	s->label = xstrdup(label);
	s->id = xstrdup(label);
	return 1;
}

static void add_names_of_folder(struct str_list *names, const char *path)
{
	DIR *dir = WITH_MEMORY(opendir(path));

	if (!dir)
		return;
	for (struct dirent *d; (d = readdir(dir));)
		if (str_ends(d->d_name, ".yaml") && d->d_name[0] != '.')
			str_list_add(names, xstrndup(d->d_name, strlen(d->d_name) - 5));
	closedir(dir);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int not_found(const struct composer *c, const char *name, struct err *e)
{
	struct str_list names = {0}, own = {0};
	struct buf list = {0};
	size_t left_out = 0;

	if (c->config_dir) {
		AUTO_FREE char *sub = path_join(c->config_dir, "workload");

		add_names_of_folder(&own, sub);
		add_names_of_folder(&own, c->config_dir);
	}
	for (const char *const *b = workload_builtin_names(); *b; b++)
		str_list_add(&names, xstrdup(*b));
	for (size_t i = 0; i < own.n; i++)
		str_list_add(&names, xstrdup(own.v[i]));
	const char *near = str_nearest(name, (const char *const *)names.v, names.n);

	if (own.n > 1)
		qsort(own.v, own.n, sizeof(*own.v), compare_names);
	for (size_t i = 0; i < own.n; i++) {
		if (i > 0 && strcmp(own.v[i], own.v[i - 1]) == 0)
			continue;
		/* Room for the rest of the sentence within ERR_TEXT_MAX. */
		if (list.len + strlen(own.v[i]) > ERR_TEXT_MAX - 320)
			left_out++;
		else
			buf_printf(&list, "%s%s", list.len ? ", " : "", own.v[i]);
	}
	if (left_out)
		buf_printf(&list, " and %zu more", left_out);
	int rc = err_set(
		e, ERR_USAGE,
		"there is no workload '%.64s'%s%s%s; 'stoker show workloads' lists the built-in "
		"ones%s%s",
		name, near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "",
		list.data ? ", and --config-dir has: " : "", list.data ? list.data : "");

	str_list_release(&names);
	str_list_release(&own);
	buf_release(&list);
	return rc;
}

static int find_path(const struct composer *c, const char *name, const char *near_dir,
		     struct source *s, struct err *e)
{
	AUTO_FREE char *path = near_dir ? path_join(near_dir, name) : xstrdup(name);
	AUTO_FREE char *longer = xasprintf("%s.yaml", path);
	int rc = try_file(c, path, s, e) ?: try_file(c, longer, s, e);

	if (rc != 0)
		return rc < 0 ? rc : 0;
	rc = path_look(path, e);
	if (rc < 0)
		return rc;
	if (rc == PATH_FOLDER)
		return err_set(e, ERR_USAGE, "'%s' is a folder; a workload is a YAML file", path);
	if (rc == PATH_OTHER || file_exists(longer))
		return err_set(e, ERR_USAGE, "the defaults list of '%s' refers back to it", path);
	return err_set(e, ERR_USAGE, "there is no workload file '%s'", path);
}

/* near_dir: folder of the file whose defaults list names it, searched first; NULL: none. */
static int find_source(const struct composer *c, const char *name, const char *near_dir,
		       struct source *s, struct err *e)
{
	if (!name[0])
		return err_set(e, ERR_USAGE, "the name of the workload is empty");
	int kind = str_ends(name, ".yaml") && !near_dir ? path_look(name, e) : PATH_ABSENT;

	if (kind < 0)
		return kind;
	if (strchr(name, '/') || kind != PATH_ABSENT)
		return find_path(c, name, near_dir, s, e);

	AUTO_FREE char *stem = xstrndup(name, strlen(name) - (str_ends(name, ".yaml") ? 5 : 0));
	int rc = try_dir(c, near_dir, "", stem, s, e) ?:
		 try_dir(c, c->config_dir, "workload/", stem, s, e) ?:
		 try_dir(c, c->config_dir, "", stem, s, e) ?:
		 try_builtin(c, stem, s);

	if (rc < 0)
		return rc;
	return rc ? 0 : not_found(c, stem, e);
}

/* The dotted path after "# @package" in the comments above the first key, or NULL. */
static char *package_header(const char *text)
{
	for (const char *p = text; *p;) {
		size_t length = strcspn(p, "\n");
		const char *q = p + strspn(p, " \t\r");

		if (*q == '#') {
			q += 1 + strspn(q + 1, " \t");
			if (str_starts(q, "@package")) {
				q += 8;
				q += strspn(q, " \t:");
				return xstrndup(q, strcspn(q, " \t\r\n"));
			}
		} else if (*q != '\n' && *q != '\0') {
			return NULL;
		}
		p += length + (p[length] == '\n');
	}
	return NULL;
}

/* A saved .hydra/config.yaml, or a file with everything below "workload:". */
static bool is_whole_document(const struct node *doc)
{
	const struct node *inner = node_get(doc, "workload");

	if (!inner || inner->kind != NODE_MAP)
		return false;
	for (size_t i = 0; i < doc->n; i++)
		if (strcmp(doc->key[i], "workload") != 0 && strcmp(doc->key[i], "hydra") != 0 &&
		    strcmp(doc->key[i], "defaults") != 0)
			return false;
	return true;
}

static struct node *target_of(struct node *root, const char *package, struct node_mark mark)
{
	struct node *at = root;

	for (const char *p = package; *p;) {
		size_t length = strcspn(p, ".");
		AUTO_FREE char *part = xstrndup(p, length);
		struct node *next = node_get(at, part);

		if (!next || next->kind != NODE_MAP) {
			next = node_new(NODE_MAP, mark);
			node_set(at, part, next);
		}
		at = next;
		p += length + (p[length] == '.');
	}
	return at;
}

static int merge_name(struct composer *c, const char *name, const char *near_dir, struct err *e);

static int bad_default(const struct node *item, struct err *e)
{
	return err_set(
		e, ERR_USAGE,
		"%s: line %d: an entry of a defaults list is '_self_' or the name of a workload",
		item->mark.file, item->mark.line);
}

static int merge_default(struct composer *c, const struct node *item, const char *near_dir,
			 struct err *e)
{
	if (item->kind == NODE_STR) {
		const char *name = item->s;

		if (str_starts(name, "/workload/"))
			name += 10;
		return merge_name(c, name, near_dir, e);
	}
	if (item->kind != NODE_MAP || item->n != 1)
		return bad_default(item, e);
	const char *group = item->key[0];
	const struct node *value = item->child[0];

	if (strstr(group, "hydra/"))
		return 0;
	if (strcmp(group, "workload") != 0 && strcmp(group, "/workload") != 0 &&
	    strcmp(group, "override workload") != 0 && strcmp(group, "override /workload") != 0)
		return bad_default(item, e);
	if (value->kind == NODE_STR)
		return merge_name(c, value->s, near_dir, e);
	if (value->kind != NODE_LIST)
		return bad_default(item, e);
	for (size_t i = 0; i < value->n; i++) {
		if (value->child[i]->kind != NODE_STR)
			return bad_default(item, e);
		int rc = merge_name(c, value->child[i]->s, near_dir, e);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int merge_document(struct composer *c, struct node *doc, const char *package,
			  const char *near_dir, struct err *e)
{
	const struct node *listed = node_get(doc, "defaults");
	struct node *defaults = listed ? node_clone(listed) : NULL, *sections;
	bool self_done = false;
	int rc = 0;

	if (defaults && defaults->kind != NODE_LIST && defaults->kind != NODE_NULL)
		rc = err_set(
			e, ERR_USAGE, "%s: line %d: 'defaults' is a list of workload names, not %s",
			defaults->mark.file, defaults->mark.line, node_kind_name(defaults->kind));
	node_unset(doc, "defaults");
	sections = package[0] ? doc : node_get(doc, "workload");
	if (rc == 0)
		rc = framework_said_once(sections, e);
	framework_mend(sections);
	for (size_t i = 0; rc == 0 && defaults && i < defaults->n; i++) {
		const struct node *item = defaults->child[i];

		if (item->kind == NODE_STR && strcmp(item->s, "_self_") == 0) {
			node_merge(target_of(c->root, package, doc->mark), doc);
			self_done = true;
		} else {
			rc = merge_default(c, item, near_dir, e);
		}
	}
	if (rc == 0 && !self_done)
		node_merge(target_of(c->root, package, doc->mark), doc);
	node_free(defaults);
	return rc;
}

static int merge_source(struct composer *c, const struct source *s, struct err *e)
{
	const char *text = s->text.data ? s->text.data : "";
	AUTO_FREE char *header = package_header(text);
	struct node *doc = yaml_parse(text, s->text.len, s->label, e);
	const char *package = header ? header : "workload";

	if (!doc)
		return e->code;
	if (doc->kind != NODE_MAP) {
		int rc = err_set(e, ERR_USAGE, "%s: a workload is a map of sections, not %s",
				 s->label, node_kind_name(doc->kind));
		node_free(doc);
		return rc;
	}
	if (strcmp(package, "_global_") == 0 || (!header && is_whole_document(doc)))
		package = "";
	else if (strcmp(package, "_group_") == 0)
		package = "workload";
	assert(c->depth < MAX_DEPTH);
	c->stack[c->depth++] = s;
	int rc = merge_document(c, doc, package, s->dir, e);
	c->depth--;
	node_free(doc);
	return rc;
}

static int merge_name(struct composer *c, const char *name, const char *near_dir, struct err *e)
{
	struct source s = {0};

	if (c->depth == MAX_DEPTH)
		return err_set(e, ERR_USAGE, "%s: defaults lists are nested deeper than %d",
			       c->stack[c->depth - 1]->label, MAX_DEPTH);
	int rc = find_source(c, name, near_dir, &s, e);

	if (rc == 0)
		rc = merge_source(c, &s, e);
	else if (c->depth > 0)
		err_wrap(e, "%s", c->stack[c->depth - 1]->label);
	source_release(&s);
	return rc;
}

int workload_compose(struct node *root, const char *name, const char *config_dir, struct err *e)
{
	struct composer c = {.root = root, .config_dir = config_dir};

	return merge_name(&c, name, NULL, e);
}
