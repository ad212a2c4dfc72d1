#pragma once
/* What writes a result into its folder: a row for each set of files. */
#include "result/metrics.h"
#include "result/result.h"

struct sink_ops {
	const char *name, *help;
	/* `r` is judged, and `m` are its measures. */
	int (*render)(const struct result *r, const struct run_metrics *m, struct err *e);
	bool seals; /* it digests the other files: rendered when they and the log are whole */
};
extern const struct sink_ops *const sink_table[]; /* NULL-terminated, written by the build */
