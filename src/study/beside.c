#include "study/beside.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"

#define LOOK_NS (NS_PER_S / 20)
#define GRACE_NS (60 * NS_PER_S) /* results are written */
#define PROGRESS_MOST ((size_t)64 << 20)
#define TOLD_EVERY_S "0.1"

/* By the last whole line of its progress. */
static bool is_ready(const struct beside *b)
{
	struct buf text = {0};
	json_t *last = NULL;
	const char *phase;
	size_t end;
	bool ready;

	if (file_read(b->progress, PROGRESS_MOST, &text, NULL) >= 0 && text.data) {
		for (end = text.len; end > 0 && text.data[end - 1] != '\n'; end--)
			;
		if (end > 0) {
			text.data[end - 1] = '\0';
			last = json_loads(strrchr(text.data, '\n') ? strrchr(text.data, '\n') + 1
								   : text.data,
					  0, NULL);
		}
	}
	phase = json_string_value(json_object_get(last, "phase"));
	ready = phase && strcmp(phase, "training") == 0 &&
		json_integer_value(json_object_get(last, "done")) >= (json_int_t)b->ready;
	json_decref(last);
	buf_release(&text);
	return ready;
}

static int start(struct beside *b, const char *folder, struct err *e)
{
	AUTO_FREE char *out = path_join(folder, b->name);
	const char *more[] = {"--progress-file", NULL, "--progress-interval",
			      TOLD_EVERY_S,      "-o", out};
	AUTO_FREE const char **argv =
		xcalloc(b->command.n + sizeof(more) / sizeof(more[0]) + 1, sizeof(*argv));
	size_t n = 0;

	b->log = xasprintf("%s.log", out);
	b->progress = xasprintf("%s.progress", out);
	more[1] = b->progress;
	for (size_t i = 0; i < b->command.n; i++)
		argv[n++] = b->command.v[i];
	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
		argv[n++] = more[i];
	return child_start(&b->child, argv, b->log, e);
}

/* The sentence of one that has ended. */
static int ended(const struct beside *b, struct err *e)
{
	char why[ERR_TEXT_MAX];

	if (child_outcome(&b->child, why, sizeof(why)) == 0)
		return err_set(e, -EIO, "'%s', which runs beside it, had no more steps to make",
			       b->name);
	child_log_reason(b->log, why, b->log, why, sizeof(why));
	return err_set(e, -EIO, "'%s', which runs beside it: %.900s", b->name, why);
}

static int wait_ready(struct beside *b, const struct stop_flag *stop, struct err *e)
{
	int64_t begin = clock_now_ns();

	while (!is_ready(b)) {
		if (child_wait(&b->child, LOOK_NS))
			return ended(b, e);
		if (stop_is_set(stop))
			return err_set(e, ERR_CANCELED, "interrupted");
		if (clock_seconds(clock_now_ns() - begin) > b->limit_s)
			return err_set(e, -ETIMEDOUT,
				       "'%s', which runs beside it, did not train within %.0f s; "
				       "see %s",
				       b->name, b->limit_s, b->log);
	}
	return 0;
}

int beside_start(struct beside *b, size_t n, const char *folder, const struct stop_flag *stop,
		 struct err *e)
{
	AUTO_FREE char *below = path_join(folder, BESIDE_FOLDER);
	int rc = n ? file_mkdirs(below, e) : 0;

	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = start(&b[i], below, e);
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = wait_ready(&b[i], stop, e);
	if (rc < 0)
		beside_end(b, n, stop, NULL);
	return rc;
}

int beside_end(struct beside *b, size_t n, const struct stop_flag *stop, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < n; i++) {
		/* one that has ended by itself was not there for all of the row */
		if (b[i].child.pid == 0 || child_wait(&b[i].child, 0)) {
			if (rc == 0 && b[i].log)
				rc = ended(&b[i], e);
			continue;
		}
		child_end(&b[i].child, GRACE_NS, stop);
		unlink(b[i].progress);
	}
	return rc;
}

void beside_release(struct beside *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(b[i].name);
		free(b[i].log);
		free(b[i].progress);
		str_list_release(&b[i].command);
	}
	free(b);
}
