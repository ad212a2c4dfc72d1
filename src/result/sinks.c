/* The files of a result, in their order: the one that seals, then the others. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/file_out.h"
#include "result/json_out.h"
#include "result/seal.h"
#include "result/sink.h"

struct sink_out {
	const struct result *r;
	bool writing;             /* else digests are taken */
	sink_take take;           /* in place of both; NULL */
	void *arg;                /* of it */
	struct seal_list *sealed; /* of the files of the run's folder */
	char *below;              /* the folder in it that was written to, .hydra; NULL */
	int rc;                   /* the first failure to write */
	struct err why;
};

/* The name within the run's folder; NULL: it is elsewhere. */
static char *name_within(const struct result *r, const char *path)
{
	AUTO_FREE char *folder = path_absolute(r->folder);
	AUTO_FREE char *file = path_absolute(path);
	size_t n = strlen(folder);

	while (n > 1 && folder[n - 1] == '/')
		n--;
	if (strncmp(file, folder, n) != 0 || file[n] != '/')
		return NULL;
	return xstrdup(file + n + strspn(file + n, "/"));
}

static void note_failure(struct sink_out *out, int rc, const struct err *why)
{
	if (rc < 0 && out->rc == 0) {
		out->rc = rc;
		out->why = *why;
	}
}

/* The others are tried all the same. */
static void write_file(struct sink_out *out, const char *folder, const char *path, const char *text,
		       size_t n)
{
	AUTO_FREE char *above = path_dirname(folder);
	struct err e = {0};
	int rc = 0;

	if (strcmp(folder, out->r->folder) != 0) {
		rc = file_mkdirs(above, &e);
		if (rc == 0)
			rc = file_mkdir_ours(folder, &e);
	}
	if (rc == 0)
		rc = file_write_ours(path, text, n, &e);
	/* somebody moved or removed the folder during the run: what was measured is kept */
	if (rc == -ENOENT && file_mkdirs(folder, NULL) == 0) {
		e = (struct err){0};
		rc = file_write_ours(path, text, n, &e);
	}
	note_failure(out, rc, &e);
	if (strcmp(folder, out->r->folder) != 0 && !out->below)
		out->below = xstrdup(folder);
}

int sink_put(struct sink_out *out, const char *folder, const char *name, const char *text, size_t n,
	     struct err *e)
{
	AUTO_FREE char *path = path_join(folder, name);
	AUTO_FREE char *within = name_within(out->r, path);

	(void)e;
	assert(!out->take);
	if (out->writing)
		write_file(out, folder, path, text, n);
	else if (within)
		seal_add(out->sealed, within, text, n);
	return 0;
}

int sink_put_json(struct sink_out *out, json_t *object, const char *folder, const char *name,
		  struct err *e)
{
	AUTO_FREE char *text = NULL;

	if (out->take) {
		out->take(out->arg, name, object);
		json_decref(object);
		return 0;
	}
	text = json_file_text(object);
	json_decref(object);
	if (!text)
		return err_set(e, -ENOMEM, "there is no memory to write '%s/%s'", folder, name);
	return sink_put(out, folder, name, text, strlen(text), e);
}

json_t *sink_seal(const struct sink_out *out)
{
	return seal_of_folder(out->r->folder, out->r->workload->output.log_file, out->sealed);
}

static void render(struct sink_out *out, const struct run_metrics *m, bool sealing)
{
	for (size_t i = 0; sink_table[i]; i++) {
		struct err e = {0};
		int rc = 0;

		if (sink_table[i]->seals == sealing)
			rc = sink_table[i]->render(out->r, m, out, &e);
		/* without memory for a digest, there is none either for the file */
		if (out->writing)
			note_failure(out, rc, &e);
	}
}

int sinks_render(const struct result *r, const struct run_metrics *m, sink_take take, void *arg,
		 struct err *e)
{
	struct sink_out out = {.r = r, .take = take, .arg = arg};
	int rc = 0;

	for (size_t i = 0; sink_table[i] && rc == 0; i++)
		if (sink_table[i]->figures)
			rc = sink_table[i]->render(r, m, &out, e);
	return rc;
}

int sinks_write(const struct result *r, const struct run_metrics *m, struct err *e)
{
	struct sink_out out = {.r = r, .sealed = seal_list_new()};
	struct err why = {0};

	render(&out, m, false);
	out.writing = true;
	render(&out, m, true);
	render(&out, m, false);
	/* the files are safe: their names are now */
	if (out.rc == 0)
		note_failure(&out, out.below ? file_sync_folder(out.below, &why) : 0, &why);
	if (out.rc == 0)
		note_failure(&out, file_sync_folder(r->folder, &why), &why);
	free(out.below);
	seal_list_free(out.sealed);
	if (out.rc < 0 && e)
		*e = out.why;
	return out.rc;
}
