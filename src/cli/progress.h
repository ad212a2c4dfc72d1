#pragma once
/* Progress on a terminal (one line, redrawn) or as plain lines elsewhere. */
#include <stdbool.h>
#include <stdint.h>

#include "run/run.h"

struct progress_view {
	bool terminal, quiet;
	int64_t last_line_ns;
	bool drawn;
	enum progress_phase phase;
	bool begun;
};

void progress_init(struct progress_view *v, bool quiet);
/* A run_options.progress callback; arg is the view. */
void progress_show(void *arg, const struct run_progress *p);
/* Leaves the cursor on a fresh line. */
void progress_done(struct progress_view *v);
