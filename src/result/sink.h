#pragma once
/* What writes a result into its folder: a row for each set of files.
 *
 * result.json is written first: a run that is killed between two files leaves it, or nothing of its
 * figures. It has the digests of the others, so each set is rendered twice, into digests and then
 * into files. */
#include <jansson.h>
#include <stdbool.h>

#include "result/metrics.h"
#include "result/result.h"

struct sink_out; /* where the files of a set go */
/* A whole file of `folder`, which is made if it is not that of the run. */
int sink_put(struct sink_out *out, const char *folder, const char *name, const char *text, size_t n,
	     struct err *e);
/* The same of an object, which is released. */
int sink_put_json(struct sink_out *out, json_t *object, const char *folder, const char *name,
		  struct err *e);
/* The digests of the files of all other sets, and of what the run has already left in its folder:
 * seal_of_folder(). New reference; for the row that seals. */
json_t *sink_seal(const struct sink_out *out);

struct sink_ops {
	const char *name, *help;
	/* `r` is judged, and `m` are its measures. Renders the same bytes each time. */
	int (*render)(const struct result *r, const struct run_metrics *m, struct sink_out *out,
		      struct err *e);
	bool seals;   /* it has digests of the other files */
	bool figures; /* JSON of figures, in the folder of the run */
};
extern const struct sink_ops *const sink_table[]; /* NULL-terminated, written by the build */

/* Writes all files; traces and the log, which is closed, are already there. After a failure the
 * other files are still written; the first one is reported. */
int sinks_write(const struct result *r, const struct run_metrics *m, struct err *e);

/* Makes the files of figures again, but for the one that seals, and gives each to `take`. */
typedef void (*sink_take)(void *arg, const char *name, const json_t *file);
int sinks_render(const struct result *r, const struct run_metrics *m, sink_take take, void *arg,
		 struct err *e);
/* result.json as a tree, without its digests. `r` is judged. New reference. */
json_t *result_tree(const struct result *r, const struct run_metrics *m);
