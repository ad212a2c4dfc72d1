/* The state of a study on disk. */
#include "study/study.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "readback/record.h"
#include "readback/result_folder.h"
#include "result/json_out.h"

/* One file, which comes one at a time. */
static int write_json(json_t *root, const char *folder, const char *name, struct err *e)
{
	AUTO_FREE char *path = path_join(folder, name);
	int rc = json_write(root, folder, name, e);

	if (rc == 0)
		file_remove_left(path);
	return rc;
}

/* 0, with NULL when there is no such file; else what is wrong with it, and `remedy`. */
static int read_json(const char *folder, const char *name, const char *remedy, json_t **root,
		     struct err *e)
{
	struct err why = {0};

	*root = result_folder_json(folder, name, &why);
	if (*root || why.code == -ENOENT || why.code == -ENOTDIR)
		return 0;
	return why.code == ERR_DATA ? err_set(e, ERR_DATA, "%.700s; %s", why.text, remedy)
				    : err_set(e, why.code, "%s", why.text);
}

static char *state_name(const struct study_plan *p)
{
	return xasprintf("%s%s.study.json", path_basename(p->options->design),
			 p->options->small ? ".small" : "");
}

char *state_path(const struct study_plan *p)
{
	AUTO_FREE char *name = state_name(p);

	return path_join(p->options->results, name);
}

/* What it holds; NULL when there is none. ERR_DATA when it is damaged. */
static int state_load(const struct study_plan *p, json_t **saved, struct err *e)
{
	AUTO_FREE char *name = state_name(p);

	return read_json(p->options->results, name,
			 "it tells why runs failed: remove it to go on without these reasons",
			 saved, e);
}

static int mark_load(const char *folder, json_t **out, struct err *e)
{
	return read_json(folder, STUDY_RUN_NAME,
			 "it tells which run this is: restore it, or move the folder away, so that "
			 "the run is repeated",
			 out, e);
}

void run_mark_key_text(const struct experiment *x, char key[SHA256_HEX])
{
	snprintf(key, SHA256_HEX, "%016" PRIx64, x->key);
}

static uint64_t key_in(const json_t *root)
{
	const char *key = json_string_value(json_object_get(root, "key"));

	return key ? strtoull(key, NULL, 16) : 0;
}

static const char *state_reason(const struct study_plan *p, const json_t *saved, size_t experiment)
{
	const struct experiment *x = &p->experiment[experiment];
	const json_t *runs = json_object_get(saved, "runs");
	size_t n = json_array_size(runs);

	/* where the design has not changed it is the first that is looked at */
	for (size_t i = 0; i < n; i++) {
		const json_t *one = json_array_get(runs, (experiment + i) % n);
		const char *reason = json_string_value(json_object_get(one, "reason"));

		if (key_in(one) == x->key || (x->key_before && key_in(one) == x->key_before))
			return reason ? reason : "";
	}
	return "";
}

/* What the state and the mark of a run both say of it. */
static json_t *describe(const struct study_plan *p, const struct experiment *x)
{
	json_t *o = json_object();

	json_put_text(o, "model", x->model);
	json_put_text(o, "experiment", x->name);
	json_put_int(o, "repeat", x->repeat);
	json_put_int(o, "processes", (uint64_t)x->processes);
	json_put(o, "overrides", json_texts(&p->design.row[x->row].overrides));
	return o;
}

static json_t *run_of(const struct study_plan *p, size_t i, const struct row_status *s)
{
	static const char *const names[] = {"pending", "done", "failed"};
	const struct experiment *x = &p->experiment[i];
	json_t *o = describe(p, x);
	char key[SHA256_HEX];

	run_mark_key_text(x, key);
	json_put_text(o, "key", key);
	json_put_int(o, "line", p->design.row[x->row].line);
	json_put_text(o, "state", names[s->state]);
	json_put_text(o, "folder", x->folder);
	if (s->seconds > 0)
		json_put_real(o, "seconds", s->seconds);
	if (s->reason[0])
		json_put_text(o, "reason", s->reason);
	return o;
}

int state_save(const struct study_plan *p, const struct row_status *status, struct err *e)
{
	json_t *root = json_object(), *runs = json_array();
	AUTO_FREE char *name = state_name(p);

	for (size_t i = 0; i < p->experiments; i++)
		json_array_append_new(runs, run_of(p, i, &status[i]));
	json_put_mark(root);
	json_put_int(root, "schema", 2);
	json_put_text(root, "design", p->options->design);
	json_put(root, "runs", runs);
	return write_json(root, p->options->results, name, e);
}

json_t *run_mark_about(const struct study_plan *p, const struct experiment *x)
{
	json_t *o = describe(p, x);

	json_put_int(o, "schema", 2);
	json_put_text(o, "design", p->options->design);
	json_put(o, "epochs", json_integer(p->design.row[x->row].epochs));
	if (p->options->small)
		json_put_bool(o, "shrunk", true);
	return o;
}

bool run_mark_is_noted(const struct study_plan *p, const json_t *mark)
{
	const json_t *designs = json_object_get(mark, "noted_by");
	const char *name = path_basename(p->options->design);

	for (size_t i = 0; i < json_array_size(designs); i++) {
		const char *one = json_string_value(json_array_get(designs, i));

		if (one && strcmp(one, name) == 0)
			return true;
	}
	return false;
}

static int run_mark_is_new(const struct study_plan *p, const struct experiment *x, struct err *e)
{
	json_t *root;
	int rc = mark_load(x->folder, &root, e);

	if (rc == 0)
		rc = root && key_in(root) == x->key && !run_mark_is_noted(p, root);
	json_decref(root);
	return rc;
}

int run_mark_note(const struct study_plan *p, const struct experiment *x, struct err *e)
{
	json_t *root, *designs;
	int rc = mark_load(x->folder, &root, e);

	if (rc < 0)
		return rc;
	if (!root || key_in(root) != x->key || run_mark_is_noted(p, root)) {
		json_decref(root);
		return 0;
	}
	designs = json_object_get(root, "noted_by");
	if (!json_is_array(designs)) {
		designs = json_array();
		json_object_set_new(root, "noted_by", designs);
	}
	json_array_append_new(designs, json_text(path_basename(p->options->design)));
	return write_json(root, x->folder, STUDY_RUN_NAME, e);
}

int run_mark_key(const char *folder, uint64_t *key, struct err *e)
{
	json_t *root;
	int rc = mark_load(folder, &root, e);

	*key = key_in(root);
	json_decref(root);
	return rc;
}

/* A run that is finished counts only if its result is whole: else it is repeated. */
static int take_mark(const struct study_plan *p, const struct experiment *x, struct row_status *s,
		     struct err *e)
{
	struct err why = {0};
	int rc = run_mark_is_new(p, x, e);

	if (rc == 1 && record_check(x->folder, &why) == 0)
		s->state = RUN_DONE;
	else if (rc == 1)
		snprintf(s->reason, sizeof(s->reason), "%s", why.text);
	return rc < 0 ? rc : 0;
}

int study_status(const struct study_plan *p, struct row_status *status, struct err *e)
{
	json_t *saved;
	int rc = state_load(p, &saved, e);

	for (size_t i = 0; rc == 0 && i < p->experiments; i++) {
		const struct experiment *x = &p->experiment[i];
		enum design_state state = p->design.row[x->row].state;
		struct row_status *s = &status[i];

		*s = (struct row_status){.state = RUN_PENDING};
		if (state == DESIGN_DONE) {
			s->state = RUN_DONE;
			continue;
		}
		if (state != DESIGN_FAILED)
			rc = take_mark(p, x, s, e);
		if (s->state == RUN_PENDING && !s->reason[0] &&
		    (state == DESIGN_FAILED ||
		     (p->options->small && state_reason(p, saved, i)[0]))) {
			s->state = RUN_BAD;
			snprintf(s->reason, sizeof(s->reason), "%s", state_reason(p, saved, i));
		}
	}
	json_decref(saved);
	return rc;
}

int study_check_done(const struct study_plan *p, const struct row_status *status, struct err *e)
{
	struct err first = {0};
	size_t done = 0, bad = 0;

	for (size_t i = 0; i < p->experiments; i++) {
		const struct experiment *x = &p->experiment[i];
		struct err why = {0};

		/* results that were moved away are nobody's loss */
		if (status[i].state != RUN_DONE || !file_is_dir(x->folder))
			continue;
		done++;
		if (record_check(x->folder, &why) == 0)
			continue;
		if (bad++ == 0)
			first = why;
	}
	if (!bad)
		return 0;
	return err_set(e, ERR_DATA,
		       "%.700s (%zu of %zu finished runs are damaged or incomplete; to repeat one, "
		       "remove its folder and set the state of its row back to N)",
		       first.text, bad, done);
}
