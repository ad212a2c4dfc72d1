/* The run of a workload compared with the job that the workload was made of. */
#include "cli/explain_fidelity.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/say.h"
#include "result/fields.h"
#include "trace/replay/fidelity.h"
#include "trace/trace_reader.h"

#define OUTPUT_MAX (UINT64_C(256) << 20)

struct steps {
	double *s;
	size_t n, room;
	double wall_s; /* of training; NAN */
};

static void add_step(struct steps *t, double s)
{
	if (t->n == t->room) {
		t->room = t->room ? 2 * t->room : 1024;
		t->s = xrealloc(t->s, t->room * sizeof(*t->s));
	}
	t->s[t->n++] = s;
}

static json_t *read_json(const char *folder, const char *name, struct err *e)
{
	AUTO_FREE char *path = path_join(folder, name);
	struct buf text = {0};
	json_error_t why;
	json_t *root;

	if (file_read(path, OUTPUT_MAX, &text, e) < 0)
		return NULL;
	root = json_loadb(text.data ? text.data : "", text.len, 0, &why);
	buf_release(&text);
	if (!root)
		err_set(e, ERR_DATA, "%s: line %d: %s", path, why.line, why.text);
	return root;
}

/* From having one batch to having the next: the rest of this step, whose time has that of loading
 * in it, and the wait for the next. */
static void take_block(const json_t *load, const json_t *proc, struct steps *out)
{
	for (size_t i = 0; i + 1 < json_array_size(proc); i++) {
		const json_t *p = json_array_get(proc, i), *l = json_array_get(load, i),
			     *next = json_array_get(load, i + 1);

		if (json_is_number(p) && json_is_number(l) && json_is_number(next))
			add_step(out, json_number_value(p) - json_number_value(l) +
					      json_number_value(next));
	}
}

static void take_output(const json_t *root, struct steps *out)
{
	const char *epoch, *block;
	json_t *e, *proc;

	json_object_foreach((json_t *)(uintptr_t)root, epoch, e)
	{
		json_t *procs = json_object_get(e, "proc"), *loads = json_object_get(e, "load");

		json_object_foreach(procs, block, proc) if (strncmp(block, "block", 5) == 0)
			take_block(json_object_get(loads, block), proc, out);
	}
}

static int take_results(const char *folder, struct steps *out, struct err *e)
{
	json_t *result = read_json(folder, "result.json", e);
	const struct part *training = part(part_whole(result), F_RUN_TRAINING);
	int rc = 0;

	if (!result)
		return e->code;
	out->wall_s = figure(part(training, F_TRAINING_DECOMPOSITION), F_DECOMPOSITION_WALL);
	/* a run without an epoch has none */
	if (isnan(out->wall_s))
		out->wall_s = 0;
	json_decref(result);
	for (int rank = 0; rc == 0; rank++) {
		AUTO_FREE char *name = xasprintf("%d_output.json", rank);
		AUTO_FREE char *path = path_join(folder, name);
		json_t *root;

		if (file_there(path, NULL) <= 0)
			break;
		root = read_json(folder, name, e);
		if (!root)
			rc = e->code;
		else
			take_output(root, out);
		json_decref(root);
	}
	return rc;
}

static bool has_results(const char *path)
{
	AUTO_FREE char *result = path_join(path, "result.json");

	return file_there(result, NULL) > 0;
}

int explain_fidelity(const struct job *log, const struct str_list *runs, bool json, struct err *e)
{
	const char **logs = xcalloc(runs->n + 1, sizeof(*logs));
	struct steps steps = {.wall_s = NAN};
	struct buf text = {0};
	struct fidelity f;
	struct job run;
	size_t n = 0;
	int rc = 0;

	job_init(&run);
	for (size_t i = 0; i < runs->n && rc == 0; i++) {
		if (has_results(runs->v[i]))
			rc = take_results(runs->v[i], &steps, e);
		else
			logs[n++] = runs->v[i];
	}
	if (rc == 0 && n)
		rc = job_read(&run, logs, n, e);
	if (rc == 0) {
		fidelity_of(log, &run, false, true, &f);
		if (!n)
			fidelity_forget_requests(&f);
		if (steps.n)
			fidelity_set_steps(&f, log, steps.s, steps.n);
		if (!isnan(steps.wall_s))
			f.wall_s.run = steps.wall_s;
		if (json)
			fidelity_json(&f, &text);
		else
			fidelity_print(&f, &text);
		say_text(stdout, &text);
		fflush(stdout);
	}
	buf_release(&text);
	job_release(&run);
	free(steps.s);
	free(logs);
	return rc;
}
