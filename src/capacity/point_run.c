#include "capacity/point_run.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/child.h"
#include "base/child_log.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/remove_tree.h"
#include "codec/sha256.h"
#include "conf/override.h"
#include "judge/verdict.h"
#include "readback/record.h"
#include "readback/result_folder.h"
#include "readback/sides.h"
#include "readback/steady_au.h"
#include "result/json_out.h"

#define TICK_NS (NS_PER_S / 10)
#define GRACE_NS (15 * NS_PER_S)
#define MARK_NAME "capacity_run.json"

/* Of what was read by busy readers, to be a rate: turns of all of them, and a share of the time. */
static const double TURNS_BUSY = 2, BUSY_LEAST = 0.2;

/* Causes that are of this machine: another one would have let the storage give more. */
static const char *const client_causes[] = {"other_programs",  "cpu_quota", "stopped",
					    "hypervisor",      "decode",    "memory",
					    "memory_bandwidth"};

/* ---- commands ---- */

void point_key(struct str_list *list, const char *key, const char *fmt, ...)
{
	struct buf text = {0};
	va_list ap;

	buf_printf(&text, "++workload.%s=", key);
	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	str_list_add(list, buf_take(&text));
}

void point_key_text(struct str_list *list, const char *key, const char *value)
{
	AUTO_FREE char *quoted = override_quote(value);

	str_list_add(list, xasprintf("++workload.%s=%s", key, quoted));
}

/* `trains`: a run, else the generation of its data. */
static void put_command(const struct capacity_options *o, bool trains, uint32_t ranks,
			const struct str_list *keys, struct str_list *a)
{
	str_list_add(a, xstrdup(o->program));
	str_list_add(a, xstrdup(trains ? "run" : "generate"));
	if (o->workload)
		str_list_add(a, xstrdup(o->workload));
	str_list_add(a, xstrdup("-q"));
	if (trains && o->hosts) {
		spread_put(o->host, o->hosts, ranks, a);
		for (size_t i = 0; i < o->ssh->n; i++)
			str_list_add(a, xstrdup(o->ssh->v[i]));
	} else {
		str_list_add(a, xstrdup("-n"));
		str_list_add(a, xasprintf("%u", ranks));
	}
	if (o->config_dir) {
		str_list_add(a, xstrdup("--config-dir"));
		str_list_add(a, xstrdup(o->config_dir));
	}
	for (size_t i = 0; i < o->override_count; i++)
		str_list_add(a, xstrdup(o->overrides[i]));
	for (size_t i = 0; i < keys->n; i++)
		str_list_add(a, xstrdup(keys->v[i]));
}

/* Of all that the run depends on; not of the program, which may be a newer build. */
static void command_key(const struct str_list *command, char key[SHA256_HEX])
{
	struct sha256 h;

	sha256_begin(&h);
	for (size_t i = 1; i < command->n; i++)
		sha256_add(&h, command->v[i], strlen(command->v[i]) + 1);
	sha256_end(&h, key);
}

/* Whether a run ended, by its own sentence, because this machine has too little memory or too few
 * threads or descriptors for so many ranks. */
static bool lacks_resources(const char *why)
{
	static const char *const said[] = {" of memory, but only ", "the system refused ",
					   "out of memory",         "Cannot allocate memory",
					   "cannot start thread",   "Too many open files"};

	for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++)
		if (strstr(why, said[i]))
			return true;
	return false;
}

static int run_command(const struct capacity *c, const struct str_list *command, const char *log,
		       struct capacity_event tick, double limit_s, double *seconds, struct err *e)
{
	const char **argv = xcalloc(command->n + 1, sizeof(*argv));
	int64_t begin = clock_now_ns();
	char outcome[ERR_TEXT_MAX - 64];
	struct child child;
	bool late = false;
	int rc;

	for (size_t i = 0; i < command->n; i++)
		argv[i] = command->v[i];
	rc = child_start(&child, argv, log, e);
	free(argv);
	if (rc < 0)
		return rc;
	tick.kind = CAPACITY_TICK;
	while (!child_wait(&child, TICK_NS)) {
		*seconds = tick.seconds = clock_seconds(clock_now_ns() - begin);
		if (stop_is_set(c->o->stop)) {
			child_end(&child, GRACE_NS, c->o->stop);
			return err_set(e, ERR_CANCELED, "interrupted");
		}
		late = tick.seconds > limit_s;
		if (late) {
			child_end(&child, GRACE_NS, c->o->stop);
			break;
		}
		if (c->tell)
			c->tell(c->arg, &tick);
	}
	*seconds = clock_seconds(clock_now_ns() - begin);
	if (stop_is_set(c->o->stop))
		return err_set(e, ERR_CANCELED, "interrupted");
	if (late)
		return err_set(e, -ETIMEDOUT, "it did not end within %.0f s and was ended; see %s",
			       limit_s, log);
	if (child_outcome(&child, outcome, sizeof(outcome)) == 0)
		return 0;
	child_log_reason(log, outcome, log, outcome, sizeof(outcome));
	err_set(e, -EIO, "%.900s", outcome);
	/* nobody else does that but for want of memory */
	if (WIFSIGNALED(child.status) && WTERMSIG(child.status) == SIGKILL)
		return err_set(e, -ENOMEM,
			       "the run was killed (SIGKILL), as the kernel does where there is "
			       "too little memory; see %s",
			       log);
	e->code = lacks_resources(outcome) ? -ENOMEM : -EIO;
	return e->code;
}

int point_generate(const struct capacity *c, const struct str_list *keys, const char *log,
		   const struct capacity_event *tick, double limit_s, struct err *e)
{
	struct str_list argv = {0};
	double seconds;
	int rc;

	put_command(c->o, false, 1, keys, &argv);
	rc = run_command(c, &argv, log, *tick, limit_s, &seconds, e);
	str_list_release(&argv);
	return rc;
}

/* ---- the result ---- */

static double number(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

static void copy_text(const json_t *o, const char *key, char *out, size_t size)
{
	const char *s = json_string_value(json_object_get(o, key));

	snprintf(out, size, "%s", s ? s : "");
}

/* Of the epoch in which most was done. */
static void find_busy(const struct run_record *r, const json_t *training, struct capacity_run *out)
{
	double hosts = r->hosts ? r->hosts : 1;
	const json_t *epoch;
	size_t i;

	out->client_busy = out->run_busy = NAN;
	json_array_foreach(json_object_get(training, "epochs"), i, epoch)
	{
		const json_t *p = json_object_get(epoch, "processors");
		double all = number(p, "allowed") * number(epoch, "wall_s");
		double busy = number(p, "busy_s") / all;
		double own = number(epoch, "cpu_s") / all / hosts;

		if (isfinite(busy) && !(busy < out->client_busy))
			out->client_busy = fmin(1, busy);
		if (isfinite(own) && !(own < out->run_busy))
			out->run_busy = fmin(1, own);
	}
}

/* That its length is what fails is known: a point is as short as may be. */
static void failed_verdict(const json_t *result, struct capacity_run *out)
{
	const json_t *v;
	size_t i;

	json_array_foreach(json_object_get(result, "verdicts"), i, v)
	{
		const char *check = json_string_value(json_object_get(v, "check"));
		const char *level = json_string_value(json_object_get(v, "level"));
		const struct verdict_ops *row = check ? verdict_find(check) : NULL;

		if (!row || !level || strcmp(level, "fail") != 0 || row->about == ABOUT_LENGTH)
			continue;
		out->client_failed = out->client_failed || row->about == ABOUT_MACHINE;
		if (!out->failed[0])
			snprintf(out->failed, sizeof(out->failed), "%s", check);
	}
}

/* Points of AU that a client without other work might have had more. */
static double disturbance(const json_t *training)
{
	const json_t *parts = json_object_get(json_object_get(training, "decomposition"),
					      "critical_path_percent");
	double lost = number(parts, "no_processor");

	return isfinite(lost) ? lost : 0;
}

static double samples_of(const json_t *training)
{
	const json_t *epoch;
	double sum = 0;
	size_t i;

	json_array_foreach(json_object_get(training, "epochs"), i, epoch) sum +=
		number(epoch, "samples");
	return sum;
}

/* Samples/s that the storage gave the readers while they were busy: without those that the start
 * of an epoch reads ahead where enough was read later. A point that hardly kept them busy says no
 * more than what it used. */
static double delivered(const struct run_record *r, const json_t *training,
			const struct steady_au *s)
{
	const json_t *read = json_object_get(training, "reading");
	double batch = (double)r->workload.reader.batch_size;
	double turn = (double)s->turn * r->ranks, wall = 0;
	double busy_s = number(read, "busy_s"), batches = number(read, "batches");
	double later_s = number(read, "later_busy_s"), later = number(read, "later_batches");
	const json_t *epoch;
	size_t i;

	json_array_foreach(json_object_get(training, "epochs"), i, epoch) wall +=
		number(epoch, "wall_s");
	if (later >= TURNS_BUSY * turn && later_s >= BUSY_LEAST * wall)
		return batch * later / later_s;
	if (batches >= TURNS_BUSY * turn && busy_s >= BUSY_LEAST * wall)
		return batch * batches / busy_s;
	return batch * r->ranks / s->step_s;
}

static bool is_client(const char *cause)
{
	for (size_t i = 0; i < sizeof(client_causes) / sizeof(client_causes[0]); i++)
		if (strcmp(cause, client_causes[i]) == 0)
			return true;
	return false;
}

static void take_record(const struct capacity *c, const struct run_record *r,
			struct capacity_run *out)
{
	const json_t *training = json_object_get(r->result, "training");
	const json_t *limit = json_object_get(r->result, "limit");
	struct steady_au s;

	steady_au_find(r, &s);
	out->au = s.au;
	out->error = s.error;
	out->blocks = s.blocks;
	out->step_s = s.step_s;
	out->whole_au = number(training, "whole_run_au_percent");
	out->samples_per_s = delivered(r, training, &s);
	out->bytes_per_s =
		out->samples_per_s * number(training, "returned_bytes") / samples_of(training);
	find_busy(r, training, out);
	out->cached_share = sides_cached_share(r);
	copy_text(json_object_get(r->result, "measured"), "storage", out->storage,
		  sizeof(out->storage));
	copy_text(limit, "cause", out->cause, sizeof(out->cause));
	copy_text(limit, "text", out->text, sizeof(out->text));
	failed_verdict(r->result, out);
	out->disturbed = disturbance(training);
	out->error = hypot(out->error, out->disturbed / 2);
	out->client = out->au < c->o->target && (is_client(out->cause) || out->client_failed ||
						 out->au + out->disturbed >= c->o->target);
}

static int read_point(const struct capacity *c, const char *folder, struct capacity_run *out,
		      struct err *e)
{
	struct run_record r = {0};
	json_t *mark = result_folder_json(folder, MARK_NAME, NULL);
	int rc = 0;

	record_load(&r, folder);
	if (r.broken)
		rc = err_set(e, ERR_DATA, "%.900s", r.broken);
	else
		take_record(c, &r, out);
	if (rc == 0 && !isfinite(out->au))
		rc = err_set(e, ERR_DATA,
			     "the run in '%s' has no step after those that its prefetched "
			     "batches serve",
			     folder);
	out->seconds = number(mark, "seconds");
	json_decref(mark);
	record_release(&r);
	return rc;
}

/* ---- the run ---- */

static bool is_there(const char *folder, const char *key)
{
	json_t *mark = result_folder_json(folder, MARK_NAME, NULL);
	const char *was = json_string_value(json_object_get(mark, "key"));
	bool same = was && strcmp(was, key) == 0 && record_check(folder, NULL) == 0;

	json_decref(mark);
	return same;
}

static bool has_result(const char *folder)
{
	AUTO_FREE char *path = path_join(folder, "result.json");

	return file_exists(path);
}

static int make_run(const struct capacity *c, const struct point_order *order,
		    const struct str_list *command, const char *partial, const char *folder,
		    const char *key, struct err *e)
{
	AUTO_FREE char *log = path_join(partial, "capacity_run.log");
	struct capacity_event tick = {.kind = CAPACITY_RUN,
				      .accelerators = order->accelerators,
				      .repeat = order->repeat,
				      .expected_s = order->expected_s};
	json_t *mark;
	double seconds = 0;
	int rc = remove_tree(partial, e);

	if (rc == 0)
		rc = remove_tree(folder, e);
	if (rc == 0)
		rc = file_mkdirs(partial, e);
	if (rc == 0 && c->tell)
		c->tell(c->arg, &tick);
	if (rc == 0)
		rc = run_command(c, command, log, tick, order->limit_s, &seconds, e);
	if (rc == ERR_CANCELED)
		remove_tree(partial, NULL);
	if (rc == 0 && c->o->hosts && !has_result(partial))
		rc = err_set(e, -ENOENT,
			     "the run left no result in '%s' on this machine: it is written on "
			     "the first host ('%s'), which must have the folder of the search in "
			     "common with this machine",
			     partial, c->o->host[0].name);
	if (rc < 0)
		return rc;
	mark = json_object();
	json_put_mark(mark);
	json_put_text(mark, "key", key);
	json_put_int(mark, "accelerators", order->accelerators);
	json_put_int(mark, "steps", order->steps);
	json_put_real(mark, "seconds", seconds);
	rc = json_write(mark, partial, MARK_NAME, e);
	if (rc == 0 && rename(partial, folder) < 0)
		rc = err_sys(e, errno, "cannot rename '%s' to '%s'", partial, folder);
	return rc;
}

int point_make(const struct capacity *c, const struct point_order *order, char **where, bool *found,
	       struct err *e)
{
	char *folder = xasprintf("%s/%u/%u", c->o->folder, order->accelerators, order->repeat);
	AUTO_FREE char *partial = xasprintf("%s.partial", folder);
	struct str_list keys = {0}, command = {0};
	char key[SHA256_HEX];
	int rc = 0;

	for (size_t i = 0; i < order->keys->n; i++)
		str_list_add(&keys, xstrdup(order->keys->v[i]));
	if (order->epochs)
		point_key(&keys, "train.epochs", "%llu", (unsigned long long)order->epochs);
	if (order->steps)
		point_key(&keys, "train.total_training_steps", "%llu",
			  (unsigned long long)order->steps);
	put_command(c->o, true, order->accelerators, &keys, &command);
	command_key(&command, key);
	str_list_add(&command, xstrdup("-o"));
	str_list_add(&command, xstrdup(partial));
	*where = folder;
	*found = is_there(folder, key);
	if (!*found && order->prepare)
		rc = order->prepare(order->arg, e);
	if (rc == 0 && !*found)
		rc = make_run(c, order, &command, partial, folder, key, e);
	str_list_release(&keys);
	str_list_release(&command);
	return rc;
}

int point_run(const struct capacity *c, const struct point_order *order, struct capacity_run *out,
	      bool *found, struct err *e)
{
	AUTO_FREE char *folder = NULL;
	int rc = point_make(c, order, &folder, found, e);

	*out = (struct capacity_run){.accelerators = order->accelerators,
				     .repeat = order->repeat,
				     .steps = order->steps};
	return rc == 0 ? read_point(c, folder, out, e) : rc;
}
