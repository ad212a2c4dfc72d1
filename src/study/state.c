/* The state of a study on disk. */
#include "study/state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "readback/record.h"
#include "result/json_out.h"

#define STATE_BYTES_MAX (64u << 20)

static int write_json(json_t *root, const char *path, struct err *e)
{
	char *dump = json_dumps(root, JSON_INDENT(2));
	int rc;

	json_decref(root);
	if (!dump)
		return err_set(e, ERR_DATA, "'%s' cannot be written as JSON", path);
	rc = file_write_ours(path, dump, strlen(dump), e);
	free(dump);
	if (rc == 0)
		file_remove_left(path);
	return rc;
}

/* 0, with NULL when there is no such file; else what is wrong with it, and `remedy`. */
static int read_json(const char *path, const char *remedy, json_t **root, struct err *e)
{
	struct buf raw = {0};
	json_error_t why;
	int rc = file_read(path, STATE_BYTES_MAX, &raw, e);

	*root = NULL;
	if (rc < 0)
		return rc == -ENOENT || rc == -ENOTDIR ? 0 : rc;
	*root = json_loadb(raw.data ? raw.data : "", raw.len, 0, &why);
	buf_release(&raw);
	if (json_is_object(*root))
		return 0;
	if (!*root && json_error_code(&why) == json_error_out_of_memory)
		return err_set(e, -ENOMEM, "there is no memory to read '%s'", path);
	rc = err_set(e, ERR_DATA, "'%s' is damaged in line %d: %s; %s", path, *root ? 1 : why.line,
		     *root ? "it is not a JSON object" : why.text, remedy);
	json_decref(*root);
	*root = NULL;
	return rc;
}

char *state_path(const struct study_plan *p)
{
	return xasprintf("%s/%s%s.study.json", p->options->results,
			 path_basename(p->options->design), p->options->small ? ".small" : "");
}

static int state_load(const struct study_plan *p, json_t **out, struct err *e)
{
	AUTO_FREE char *path = state_path(p);

	return read_json(path, "it tells why runs failed: remove it to go on without these reasons",
			 out, e);
}

static int mark_load(const char *folder, json_t **out, struct err *e)
{
	AUTO_FREE char *path = path_join(folder, STUDY_RUN_NAME);

	return read_json(path,
			 "it tells which run this is: restore it, or move the folder away, so that "
			 "the run is repeated",
			 out, e);
}

static json_t *key_text(const struct experiment *x)
{
	char key[32];

	snprintf(key, sizeof(key), "%016" PRIx64, x->key);
	return json_string(key);
}

static uint64_t key_in(const json_t *root)
{
	const char *key = json_string_value(json_object_get(root, "key"));

	return key ? strtoull(key, NULL, 16) : 0;
}

const char *state_reason(const struct study_plan *p, const json_t *saved, size_t experiment)
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

static json_t *run_of(const struct study_plan *p, size_t i, const struct run_status *s)
{
	static const char *const names[] = {"pending", "done", "failed"};
	const struct experiment *x = &p->experiment[i];
	json_t *o = json_object();

	json_object_set_new(o, "key", key_text(x));
	json_object_set_new(o, "line", json_integer((json_int_t)p->design.row[x->row].line));
	json_object_set_new(o, "model", json_text(x->model));
	json_object_set_new(o, "experiment", json_text(x->name));
	json_object_set_new(o, "repeat", json_integer(x->repeat));
	json_object_set_new(o, "processes", json_integer(x->processes));
	json_object_set_new(o, "overrides", json_texts(&p->design.row[x->row].overrides));
	json_object_set_new(o, "state", json_string(names[s->state]));
	json_object_set_new(o, "folder", json_text(x->folder));
	if (s->seconds > 0)
		json_object_set_new(o, "seconds", json_real(s->seconds));
	if (s->reason[0])
		json_object_set_new(o, "reason", json_text(s->reason));
	return o;
}

int state_save(const struct study_plan *p, const struct run_status *status, struct err *e)
{
	json_t *root = json_object(), *runs = json_array();
	AUTO_FREE char *path = state_path(p);

	for (size_t i = 0; i < p->experiments; i++)
		json_array_append_new(runs, run_of(p, i, &status[i]));
	json_put_mark(root);
	json_object_set_new(root, "schema", json_integer(2));
	json_object_set_new(root, "design", json_text(p->options->design));
	json_object_set_new(root, "runs", runs);
	return write_json(root, path, e);
}

int run_mark_write(const struct study_plan *p, const struct experiment *x, const char *folder,
		   char *const *argv, int64_t begin_wall_ns, double seconds, struct err *e)
{
	AUTO_FREE char *path = path_join(folder, STUDY_RUN_NAME);
	json_t *root = json_object(), *command = json_array();
	char when[64];

	for (char *const *a = argv; *a; a++)
		json_array_append_new(command, json_text(*a));
	clock_timestamp(begin_wall_ns, when, sizeof(when));
	json_put_mark(root);
	json_object_set_new(root, "schema", json_integer(2));
	json_object_set_new(root, "key", key_text(x));
	json_object_set_new(root, "design", json_text(p->options->design));
	json_object_set_new(root, "model", json_text(x->model));
	json_object_set_new(root, "experiment", json_text(x->name));
	json_object_set_new(root, "repeat", json_integer(x->repeat));
	json_object_set_new(root, "processes", json_integer(x->processes));
	json_object_set_new(root, "epochs", json_integer(p->design.row[x->row].epochs));
	json_object_set_new(root, "overrides", json_texts(&p->design.row[x->row].overrides));
	if (p->options->small)
		json_object_set_new(root, "shrunk", json_true());
	json_object_set_new(root, "command", command);
	json_object_set_new(root, "begin", json_string(when));
	json_object_set_new(root, "seconds", json_real(seconds));
	return write_json(root, path, e);
}

/* Whether the mark says that this design has noted the run. */
static bool is_noted(const struct study_plan *p, const json_t *mark)
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
		rc = root && key_in(root) == x->key && !is_noted(p, root);
	json_decref(root);
	return rc;
}

int run_mark_note(const struct study_plan *p, const struct experiment *x, struct err *e)
{
	AUTO_FREE char *path = path_join(x->folder, STUDY_RUN_NAME);
	json_t *root, *designs;
	int rc = mark_load(x->folder, &root, e);

	if (rc < 0)
		return rc;
	if (!root || key_in(root) != x->key || is_noted(p, root)) {
		json_decref(root);
		return 0;
	}
	designs = json_object_get(root, "noted_by");
	if (!json_is_array(designs)) {
		designs = json_array();
		json_object_set_new(root, "noted_by", designs);
	}
	json_array_append_new(designs, json_text(path_basename(p->options->design)));
	return write_json(root, path, e);
}

bool run_is_ready(const struct study_plan *p, const struct experiment *x, const char *folder)
{
	json_t *root = NULL;
	bool ready = mark_load(folder, &root, NULL) == 0 && root && key_in(root) == x->key &&
		     !is_noted(p, root) && record_check(folder, NULL) == 0;

	json_decref(root);
	return ready;
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
static int take_mark(const struct study_plan *p, const struct experiment *x, struct run_status *s,
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

int study_status(const struct study_plan *p, struct run_status *status, struct err *e)
{
	json_t *saved;
	int rc = state_load(p, &saved, e);

	for (size_t i = 0; rc == 0 && i < p->experiments; i++) {
		const struct experiment *x = &p->experiment[i];
		enum design_state state = p->design.row[x->row].state;
		struct run_status *s = &status[i];

		*s = (struct run_status){.state = RUN_PENDING};
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

int study_check_done(const struct study_plan *p, const struct run_status *status, struct err *e)
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
