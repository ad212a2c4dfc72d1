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
	return rc;
}

/* *root is NULL where there is no such file. One that cannot be read, or is not whole, is an error:
 * what it says of a run is not known then. `else_` is what removing it costs. */
static int read_json(const char *path, const char *else_, json_t **root, struct err *e)
{
	struct buf raw = {0};
	struct err why = {0};
	int rc = file_read(path, STATE_BYTES_MAX, &raw, &why);

	*root = NULL;
	if (rc == -ENOENT || rc == -ENOTDIR)
		return 0;
	if (rc < 0)
		return err_set(e, rc, "%s", why.text);
	*root = json_loadb(raw.data, raw.len, 0, NULL);
	buf_release(&raw);
	if (*root)
		return 0;
	return err_set(e, ERR_DATA, "'%s' is damaged: it is not JSON. Remove it%s", path, else_);
}

char *state_path(const struct study_plan *p)
{
	return xasprintf("%s/%s%s.study.json", p->options->results,
			 path_basename(p->options->design), p->options->small ? ".small" : "");
}

static int state_load(const struct study_plan *p, json_t **out, struct err *e)
{
	AUTO_FREE char *path = state_path(p);

	return read_json(path, "; the study goes on without the reasons of failed runs", out, e);
}

static int mark_load(const char *folder, json_t **out, struct err *e)
{
	AUTO_FREE char *path = path_join(folder, STUDY_RUN_NAME);

	return read_json(path, " with its folder, so that the run is made again", out, e);
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

int run_mark_key(const char *folder, uint64_t *key, struct err *e)
{
	json_t *root;
	int rc = mark_load(folder, &root, e);

	*key = key_in(root);
	json_decref(root);
	return rc;
}

int study_status(const struct study_plan *p, struct run_status *status, struct err *e)
{
	json_t *saved;
	int rc = state_load(p, &saved, e);

	for (size_t i = 0; i < p->experiments && rc == 0; i++) {
		const struct experiment *x = &p->experiment[i];
		enum design_state state = p->design.row[x->row].state;

		status[i] = (struct run_status){.state = RUN_PENDING};
		if (state == DESIGN_DONE)
			status[i].state = RUN_DONE;
		else if (state == DESIGN_FAILED) {
			status[i].state = RUN_BAD;
			snprintf(status[i].reason, sizeof(status[i].reason), "%s",
				 state_reason(p, saved, i));
		} else if ((rc = run_mark_is_new(p, x, e)) != 0) {
			status[i].state = rc > 0 ? RUN_DONE : RUN_PENDING;
			rc = rc < 0 ? rc : 0;
		} else if (p->options->small && state_reason(p, saved, i)[0]) {
			status[i].state = RUN_BAD;
			snprintf(status[i].reason, sizeof(status[i].reason), "%s",
				 state_reason(p, saved, i));
		}
	}
	json_decref(saved);
	return rc;
}
