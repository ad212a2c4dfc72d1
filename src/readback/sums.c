/* Files that sum up runs: are they whole, are their runs there, and do their figures follow? */
#include "readback/sums.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/map.h"
#include "base/program.h"
#include "base/str.h"
#include "base/transfer.h"
#include "readback/result_folder.h"
#include "result/json_out.h"
#include "result/seal.h"

#define FILE_BYTES_MAX ((size_t)256 << 20)
#define RUNS "its runs"
#define BUILD "build"

/* ---- names ---- */

static void name_set(struct run_name *name, const char *id, const char *digest)
{
	snprintf(name->id, sizeof(name->id), "%s", id ? id : "");
	snprintf(name->digest, sizeof(name->digest), "%s", digest ? digest : "");
}

void run_name_of(struct run_name *name, const struct run_record *r)
{
	name_set(name, r->facts.run_id, r->facts.seal);
}

void run_name_read(struct run_name *name, const char *folder)
{
	json_t *result = result_folder_json(folder, "result.json", NULL);

	name_set(name, figure_text(part_whole(result), F_RUN_ID),
		 derive_string(json_object_get(result, field_key(F_RUN_INTEGRITY)), SEAL_SELF));
	json_decref(result);
}

void run_name_stated(struct run_name *name, const json_t *row)
{
	name_set(name, derive_string(row, field_key(F_RUN_ID)), derive_string(row, SEAL_SELF));
}

void run_name_put(json_t *row, const struct run_name *name)
{
	if (name->id[0])
		json_put_text(row, field_key(F_RUN_ID), name->id);
	if (name->digest[0])
		json_put_text(row, SEAL_SELF, name->digest);
}

const char *sums_workload(const struct run_record *r)
{
	return r->facts.workload ? path_basename(r->facts.workload) : NULL;
}

/* ---- one file ---- */

static bool is_of(const struct sums_ops *ops, const char *name, const json_t *root)
{
	const char *of = derive_string(root, "of"), *program = derive_string(root, "program");

	if (!ops->file)
		return program && str_starts(program, "stoker ") &&
		       json_object_get(root, ops->sign);
	/* a search that has measured nothing has no list */
	return strcmp(ops->file, name) == 0 &&
	       (of && ops->of ? strcmp(ops->of, of) == 0 : of == ops->of) &&
	       (json_object_get(root, ops->list) ||
		json_object_get(root, field_key(F_RUN_INTEGRITY)));
}

static const struct sums_ops *ops_of(const struct sums_ops *const *ops, const char *name,
				     const json_t *root)
{
	while (*ops && !is_of(*ops, name, root))
		ops++;
	return *ops;
}

struct checking {
	struct audit *audit;
	size_t i;
	char *folder;
	const char *name;
	const json_t *root;
	const struct sums_ops *ops;
	struct derive runs, figures;
	struct texts seen, folders; /* numbers (run_id) and paths of its runs */
	void *made;
	bool named, same; /* a row names its run; this build wrote all of them */
};

static void check_seal(struct checking *c)
{
	const json_t *integrity = json_object_get(c->root, field_key(F_RUN_INTEGRITY));
	const char *stated = derive_string(integrity, SEAL_FILE);
	struct derive d = derive_begin(c->audit, c->i, "digest", "digest",
				       "the SHA-256 of the file, which is in it");
	struct buf text = {0};
	char hex[SHA256_HEX];
	struct err e = {0};

	if (!stated && !c->named)
		derive_unchecked(&d, "an earlier version wrote the file, without a digest");
	else if (!stated)
		derive_holds(&d, false, "%.40s %s, but its digest was removed.", c->name,
			     c->ops->sign ? "says what it was made of" : "names its runs");
	else if (file_read(c->audit->record[c->i].folder, FILE_BYTES_MAX, &text, &e) < 0 ||
		 !text.data)
		derive_unchecked(&d, "%s", e.text);
	else
		derive_holds(&d,
			     seal_of_text(text.data, text.len, SEAL_FILE, stated, hex) &&
				     strcmp(hex, stated) == 0,
			     "%.40s was changed after it was written: its SHA-256 is not the one "
			     "that it states.",
			     c->name);
	buf_release(&text);
}

static bool is_inside(const char *name)
{
	return name[0] && name[0] != '/' && !strstr(name, "..");
}

/* Whether the run of a row is there, and the one that is named. */
static bool check_run(struct checking *c, const char *folder, const json_t *row,
		      const struct run_record *r)
{
	struct run_name named, found;
	size_t before = c->seen.n;

	if (!derive_holds(&c->runs, !r->broken,
			  "%.40s counts the run in '%.60s', which is not there or cannot be read: "
			  "%.200s.",
			  c->name, folder, r->broken ? r->broken : ""))
		return false;
	run_name_stated(&named, row);
	run_name_of(&found, r);
	if (c->named) {
		derive_text(&c->runs, named.id, found.id, "the result there",
			    "the number (run_id) of the run in '%.60s'", folder);
		derive_text(&c->runs, named.digest, found.digest, "the result there",
			    "the digest of the run in '%.60s'", folder);
	}
	if (found.id[0])
		derive_holds(&c->runs, texts_add(&c->seen, found.id) == before,
			     "%.40s counts the run in '%.60s' twice.", c->name, folder);
	c->same = c->same && (c->ops->sign || derive_is_this_build(r));
	return true;
}

static bool has_run(const char *folder, const json_t *row)
{
	struct run_name named, there;

	run_name_stated(&named, row);
	run_name_read(&there, folder);
	return there.id[0] && strcmp(named.id, there.id) == 0;
}

/* A folder as it was given lies below the current folder, or, of a plan that was moved with its
 * runs, beside the plan: wherever the run is that the row names. */
static char *path_of_run(const struct checking *c, const char *folder, const json_t *row)
{
	AUTO_FREE char *beside = path_join(c->folder, folder);
	bool here = c->ops->sign && (folder[0] == '/' || has_run(folder, row) ||
				     (file_exists(folder) && !has_run(beside, row)));

	return xstrdup(here ? folder : beside);
}

/* One that is named again is not loaded again: a small file may name it often. */
static bool is_first(struct checking *c, const char *folder, const char *path)
{
	AUTO_FREE char *real = WITH_MEMORY(realpath(path, NULL));
	size_t before = c->folders.n;

	return derive_holds(&c->runs, texts_add(&c->folders, real ? real : path) == before,
			    "%.40s counts the run in '%.60s' twice.", c->name, folder);
}

static void check_row(struct checking *c, const json_t *row)
{
	const char *folder = derive_string(row, "folder");
	AUTO_FREE char *path = folder ? path_of_run(c, folder, row) : NULL;
	struct run_record r = {0};

	if (!folder || !is_first(c, folder, path)) {
		c->ops->take(c->made, row, NULL, &c->figures);
		return;
	}
	if (!derive_holds(&c->runs, c->ops->sign || is_inside(folder),
			  "%.40s has a run in '%.60s', outside its folder.", c->name, folder))
		return;
	record_load(&r, path);
	c->ops->take(c->made, row, check_run(c, folder, row, &r) ? &r : NULL, &c->figures);
	record_release(&r);
}

/* ---- runs that it leaves out ---- */

static void check_counted(struct checking *c, const char *folder)
{
	json_t *result = result_folder_json(folder, "result.json", NULL);
	const struct part *whole = part_whole(result);
	const char *id = figure_text(whole, F_RUN_ID);

	if (id && !figure_text(whole, F_RUN_REASON))
		derive_holds(&c->runs, texts_find(&c->seen, id) != TEXT_NONE,
			     "%.40s does not count the run in '%.60s', which came to its end.",
			     c->name, folder + strlen(c->folder) + 1);
	json_decref(result);
}

/* Repetitions and searches number the folders of their runs, "3" or "8/2". */
static void check_numbered(struct checking *c, const char *folder, int depth)
{
	DIR *d = WITH_MEMORY(folder_open(folder));
	struct dirent *entry;

	while (d && folder_next(d, &entry) > 0) {
		AUTO_FREE char *below = path_join(folder, entry->d_name);

		if (entry->d_name[strspn(entry->d_name, "0123456789")])
			continue;
		check_counted(c, below);
		if (depth > 1)
			check_numbered(c, below, depth - 1);
	}
	if (d)
		closedir(d);
}

static bool is_this_build(const json_t *root)
{
	const char *build = derive_string(root, BUILD);

	return build && strcmp(build, build_id) == 0;
}

bool sums_in_haste(const json_t *root, const struct audit *a)
{
	return a->quick || !is_this_build(root);
}

static void compare_made(struct checking *c)
{
	struct derive_trees at = {.d = &c->figures,
				  .same = c->same,
				  .whole = c->same,
				  .words = c->same,
				  .source = RUNS};
	bool haste = c->ops->late && sums_in_haste(c->root, c->audit);
	json_t *made = c->ops->made(c->made, &c->figures),
	       *stated = json_copy((json_t *)(uintptr_t)c->root);

	/* each has a check of its own, or is of no run */
	json_object_del(stated, field_key(F_RUN_INTEGRITY));
	json_object_del(stated, "key");
	json_object_del(stated, BUILD);
	json_object_del(made, BUILD);
	for (size_t i = 0; haste && c->ops->late[i]; i++)
		json_object_del(stated, c->ops->late[i]);
	if (!c->same)
		json_object_del(made, "program");
	snprintf(at.path, sizeof(at.path), "%.60s ", c->name);
	if (made)
		derive_trees(&at, stated, made);
	json_decref(stated);
	json_decref(made);
}

static void check_file(struct checking *c)
{
	const json_t *list = json_object_get(c->root, c->ops->list);
	struct run_name first;

	c->named = c->ops->sign && json_object_get(c->root, BUILD);
	for (size_t k = 0; k < json_array_size(list); k++) {
		run_name_stated(&first, json_array_get(list, k));
		c->named = c->named || first.id[0];
	}
	check_seal(c);
	c->runs = derive_begin(c->audit, c->i, "identity", "runs",
			       "the runs that it counts: whether each is there and the one named");
	c->figures = derive_begin(c->audit, c->i, "figures", "figures",
				  "its figures, made again from the results of its runs");
	if (!c->named)
		derive_unchecked(&c->runs, "the file does not name its runs");
	if (c->ops->sign ? !c->named : json_array_size(list) == 0) {
		derive_unchecked(&c->figures, c->ops->sign ? "it does not say what it was made of"
							   : "it has no run");
		return;
	}
	c->same = !c->ops->sign || is_this_build(c->root);
	c->made = c->ops->begin(c->root, c->folder);
	for (size_t k = 0; k < json_array_size(list); k++)
		check_row(c, json_array_get(list, k));
	/* a search that was killed goes on with runs that it has not noted */
	if (c->ops->numbered && !json_is_false(json_object_get(c->root, "complete")))
		check_numbered(c, c->folder, 2);
	compare_made(c);
	if (!c->same)
		derive_unchecked(&c->figures, "words: another build of this program wrote them");
	derive_by_digest(&c->figures, c->ops->told);
	c->ops->release(c->made);
	texts_release(&c->seen);
	texts_release(&c->folders);
}

static const char not_ours[] =
	"it is no repeat.json, truth_table.json, capacity.json or plan of this program; to audit a "
	"run, name its folder";

/* What is no JSON may have been: its name says so, or what is left of it. */
static bool was_ours(const struct sums_ops *const *ops, const char *path)
{
	struct buf text = {0};
	struct err e = {0};
	bool ours = file_read(path, FILE_BYTES_MAX, &text, &e) == 0 && text.data &&
		    strstr(text.data, "\"program\": \"stoker ");

	for (; *ops && !ours; ops++)
		ours = (*ops)->file && strcmp(path_basename(path), (*ops)->file) == 0;
	buf_release(&text);
	return ours;
}

static void say_damage(struct audit *a, size_t i, const char *why, bool ours)
{
	struct finding *f = audit_add(a, i, "complete", AUDIT_FAIL);

	f->damage = true;
	finding_say(f, "%s.", why);
	if (ours)
		finding_advise(f, "Restore the file as it was written, or repeat the runs.");
}

static void audit_file(struct audit *a, const struct sums_ops *const *ops, size_t i)
{
	const char *path = a->record[i].folder;
	struct checking c = {
		.audit = a, .i = i, .folder = path_dirname(path), .name = path_basename(path)};
	struct err e = {0};
	json_t *root = result_folder_json(c.folder, c.name, &e);

	c.root = root;
	c.ops = root ? ops_of(ops, c.name, root) : NULL;
	if (c.ops)
		check_file(&c);
	else
		say_damage(a, i, root ? not_ours : e.text, !root && was_ours(ops, path));
	json_decref(root);
	free(c.folder);
}

/* ---- all ---- */

void sums_audit(struct sums *s, const struct sums_ops *const *ops, const struct str_list *paths,
		bool quick)
{
	*s = (struct sums){.audit.quick = quick,
			   .file = xcalloc(paths->n + 1, sizeof(*s->file)),
			   .files = paths->n};
	s->audit.record = s->file;
	s->audit.records = s->files;
	for (size_t i = 0; i < s->files; i++) {
		s->file[i].folder = xstrdup(paths->v[i]);
		audit_file(&s->audit, ops, i);
	}
	audit_close(&s->audit);
}

void sums_release(struct sums *s)
{
	audit_release(&s->audit);
	for (size_t i = 0; i < s->files; i++)
		free(s->file[i].folder);
	free(s->file);
	*s = (struct sums){0};
}
