/* Rows, their folders and their children. */
#include "study/runner.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "os/child.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "readback/record.h"
#include "readback/result_folder.h"
#include "result/json_out.h"
#include "study/beside.h"

#define TICK_NS (NS_PER_S / 10)
#define GRACE_NS (15 * NS_PER_S)

/* ---- commands ---- */

static void add_all(struct str_list *out, const char *const *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		str_list_add(out, xstrdup(text[i]));
}

void runner_command(const struct runner_base *b, const char *verb, const struct str_list *places,
		    const struct str_list *keys, struct str_list *out)
{
	const char *head[] = {b->program, verb, b->workload ? b->workload : "-q", "-q"};
	const char *config[] = {"--config-dir", b->config_dir};

	add_all(out, head, b->workload ? 4 : 3);
	add_all(out, (const char *const *)places->v, places->n);
	add_all(out, config, b->config_dir ? 2 : 0);
	add_all(out, b->overrides, b->override_count);
	add_all(out, (const char *const *)keys->v, keys->n);
}

void runner_key(const struct str_list *command, char key[SHA256_HEX])
{
	struct sha256 h;

	sha256_begin(&h);
	for (size_t i = 1; i < command->n; i++)
		sha256_add(&h, command->v[i], strlen(command->v[i]) + 1);
	sha256_end(&h, key);
}

/* ---- one child ---- */

/* The code that the child left, which is removed; -EIO: none. */
static int take_code(const char *path)
{
	struct buf text = {0};
	int64_t code = 0;

	if (file_read(path, 64, &text, NULL) < 0 || !text.data || !str_to_i64(text.data, &code) ||
	    code >= 0)
		code = -EIO;
	buf_release(&text);
	unlink(path);
	return (int)code;
}

static int start(struct child *c, const struct str_list *command, const char *log, const char *code,
		 struct err *e)
{
	AUTO_FREE const char **argv = xcalloc(command->n + 1, sizeof(*argv));
	int rc;

	for (size_t i = 0; i < command->n; i++)
		argv[i] = command->v[i];
	unlink(code);
	setenv(ERR_CODE_FILE, code, 1);
	rc = child_start(c, argv, log, e);
	unsetenv(ERR_CODE_FILE);
	return rc;
}

static int fail(const struct child *c, const struct runner_child *o, const char *outcome, int code,
		struct err *e)
{
	char why[ERR_TEXT_MAX];

	child_log_reason(o->log, outcome, o->kept, why, sizeof(why));
	/* SIGKILL usually comes from the out-of-memory killer */
	if (WIFSIGNALED(c->status) && WTERMSIG(c->status) == SIGKILL)
		code = -ENOMEM;
	return err_set(e, code, "%s", why);
}

int runner_child(const struct str_list *command, const struct runner_child *o, double *seconds,
		 struct err *e)
{
	AUTO_FREE char *left = xasprintf("%s.code", o->log);
	int64_t begin = clock_now_ns();
	bool late = false, stopped = false;
	char outcome[128];
	struct child c;
	int rc = start(&c, command, o->log, left, e);

	*seconds = 0;
	if (rc < 0)
		return rc;
	while (!late && !stopped && !child_wait(&c, TICK_NS)) {
		*seconds = clock_seconds(clock_now_ns() - begin);
		stopped = stop_is_set(o->stop);
		late = o->limit_s > 0 && *seconds > o->limit_s;
		if (late || stopped)
			child_end(&c, GRACE_NS, o->stop);
		else if (o->tick)
			o->tick(o->arg, *seconds);
	}
	*seconds = clock_seconds(clock_now_ns() - begin);
	rc = take_code(left);
	if (late && !stopped)
		return err_set(e, -ETIMEDOUT, "it did not end within %.0f s and was ended; see %s",
			       o->limit_s, o->kept);
	if (!stopped && child_outcome(&c, outcome, sizeof(outcome)) == 0)
		return 0;
	if (stop_is_set(o->stop))
		return err_set(e, ERR_CANCELED, "interrupted");
	return fail(&c, o, outcome, rc, e);
}

int runner_help(struct str_list *command, struct runner_child *o, struct err *e)
{
	double seconds;
	int rc;

	o->kept = o->log;
	unlink(o->log);
	rc = runner_child(command, o, &seconds, e);
	str_list_release(command);
	return rc;
}

/* ---- a row ---- */

struct making {
	const struct runner *r;
	struct runner_row *row;
	char *partial, *failed;
};

static void tell(const struct making *m, enum runner_event event)
{
	if (m->r->tell)
		m->r->tell(m->r->arg, event, m->row);
}

static void tick(void *arg, double seconds)
{
	struct making *m = arg;

	m->row->seconds = seconds;
	tell(m, RUNNER_TICK);
}

static bool is_there(const struct making *m, const char *folder)
{
	json_t *mark = result_folder_json(folder, m->r->mark, NULL);
	const char *key = json_string_value(json_object_get(mark, "key"));
	bool there = key && strcmp(key, m->row->key) == 0 &&
		     !json_is_true(json_object_get(mark, "late")) &&
		     (!m->r->counts || m->r->counts(m->r->arg, m->row, mark)) &&
		     record_check(folder, NULL) == 0;

	if (there)
		m->row->seconds = json_number_value(json_object_get(mark, "seconds"));
	json_decref(mark);
	return there;
}

/* What had the name before was another run. */
static int name_result(const struct making *m, struct err *e)
{
	int rc = remove_tree(m->row->folder, e);

	if (rc == 0 && rename(m->partial, m->row->folder) < 0)
		rc = err_sys(e, errno, "cannot rename '%s' to '%s'", m->partial, m->row->folder);
	return rc;
}

static int write_mark(const struct making *m, int64_t begin_wall_ns, struct err *e)
{
	json_t *mark = json_object();

	json_put_mark(mark);
	json_put_text(mark, "key", m->row->key);
	if (m->row->about)
		json_object_update(mark, m->row->about);
	json_put(mark, "command", json_texts(&m->row->command));
	json_put_time(mark, "begin", begin_wall_ns);
	json_put_real(mark, "seconds", m->row->seconds);
	if (m->row->late)
		json_put_bool(mark, "late", true);
	return json_write(mark, m->partial, m->r->mark, e);
}

/* What is left of a run that was cut off. Its process may outlive who began it by the moment in
 * which it keeps its results. */
static int clear_partial(const struct making *m, struct err *e)
{
	char who[FILE_LOCK_WHO_MAX];

	for (int64_t end = clock_now_ns() + GRACE_NS;
	     result_folder_is_used(m->partial, who) && clock_now_ns() < end;) {
		if (stop_is_set(m->r->stop))
			return err_set(e, ERR_CANCELED, "interrupted");
		nanosleep(&(struct timespec){.tv_nsec = TICK_NS}, NULL);
	}
	if (result_folder_is_used(m->partial, who)) {
		AUTO_FREE char *used = result_folder_used_text(m->partial, who);

		return err_set(e, -EBUSY, "%s", used);
	}
	return remove_tree(m->partial, e);
}

static int make_result(struct making *m, struct err *e)
{
	AUTO_FREE char *log = path_join(m->partial, m->r->log);
	AUTO_FREE char *kept = path_join(m->failed, m->r->log);
	struct runner_row *row = m->row;
	const struct runner_child child = {.log = log,
					   .kept = kept,
					   .limit_s = row->limit_s,
					   .stop = m->r->stop,
					   .tick = tick,
					   .arg = m};
	int64_t begin = clock_wall_ns();
	struct err alone = {0};
	int rc = clear_partial(m, e), beside;

	if (rc == 0)
		rc = file_mkdirs(m->partial, e);
	if (rc == 0)
		rc = beside_start(row->beside, row->besides, m->partial, m->r->stop, e);
	if (rc < 0)
		return rc;
	tell(m, RUNNER_RUN);
	str_list_add(&row->command, xstrdup("-o"));
	str_list_add(&row->command, xstrdup(m->partial));
	rc = runner_child(&row->command, &child, &row->seconds, e);
	beside = beside_end(row->beside, row->besides, m->r->stop, &alone);
	if (rc == 0 && beside < 0) {
		*e = alone;
		rc = beside;
	}
	row->late = rc == -ETIMEDOUT;
	if (row->late && row->late_counts)
		rc = 0;
	if (rc == 0)
		rc = write_mark(m, begin, e);
	return rc == 0 ? name_result(m, e) : rc;
}

/* 1: the result was there already, or only needed its final name. */
static int make_row(struct making *m, struct err *e)
{
	struct runner_row *row = m->row;
	int rc = row->why.code;

	if (rc == 0 && m->r->mark && is_there(m, row->folder))
		return 1;
	if (rc == 0 && m->r->mark && is_there(m, m->partial))
		rc = name_result(m, e) < 0 ? e->code : 1;
	if (rc == 0 && m->r->prepare)
		rc = m->r->prepare(m->r->arg, row, e);
	if (rc == 0)
		rc = make_result(m, e);
	return rc;
}

/* What an unfinished run left. */
static void put_away(const struct making *m, int rc)
{
	if (rc == ERR_CANCELED || remove_tree(m->failed, NULL) < 0 ||
	    (rc < 0 && file_is_dir(m->partial) && rename(m->partial, m->failed) < 0))
		remove_tree(m->partial, NULL);
}

static int carry_out(const struct runner *r, struct runner_row *row, struct err *e)
{
	struct making m = {.r = r, .row = row};
	struct err why = row->why;
	int rc;

	if (!row->folder) {
		rc = row->why.code ? row->why.code : r->make(r->arg, row, &why);
	} else {
		m.partial = xasprintf("%s.partial", row->folder);
		m.failed = xasprintf("%s.failed", row->folder);
		rc = make_row(&m, &why);
		put_away(&m, rc);
		free(m.partial);
		free(m.failed);
	}
	if (rc == ERR_CANCELED) {
		*e = why;
		return rc;
	}
	row->end = rc < 0 ? ROW_FAILED : rc > 0 ? ROW_FOUND : ROW_DONE;
	if (rc < 0)
		row->why = why;
	return r->take(r->arg, row, e);
}

int runner_run(const struct runner *r, struct err *e)
{
	int rc;

	do {
		struct runner_row row = {.expected_s = NAN};

		rc = r->next(r->arg, &row, e);
		if (rc == 1 && stop_is_set(r->stop))
			rc = err_set(e, ERR_CANCELED, "interrupted");
		if (rc == 1)
			rc = carry_out(r, &row, e) < 0 ? e->code : 1;
		free(row.folder);
		str_list_release(&row.command);
		json_decref(row.about);
		beside_release(row.beside, row.besides);
	} while (rc == 1);
	return rc;
}

int runner_lock(struct file_lock *lock, const char *folder, const char *name, const char *who,
		const char *option, struct err *e)
{
	AUTO_FREE char *path = path_join(folder, name);
	char holder[FILE_LOCK_WHO_MAX];
	int rc = file_mkdirs(folder, e);

	lock->fd = -1;
	if (rc == 0)
		rc = file_lock(lock, path, holder, e);
	if (rc != -EBUSY)
		return rc;
	return err_set(e, ERR_USAGE,
		       "another %s is writing to '%s'%s%s: wait until it has ended, or choose "
		       "another folder with %s (lock file '%s')",
		       who, folder, holder[0] ? ": " : "", holder, option, path);
}
