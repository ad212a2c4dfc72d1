#pragma once
/* How far a command is: a panel on a terminal, plain lines elsewhere, and a stream of JSON objects
 * where one is asked for. Nothing here ever waits for who reads it: a frame or an object that would
 * not fit into a pipe or a stopped terminal is left out. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "screen/live.h"
#include "screen/terminal.h"

/* As --progress names them. PROGRESS_AUTO: a panel on a terminal, lines elsewhere. */
enum progress_form {
	PROGRESS_AUTO,
	PROGRESS_PANEL,
	PROGRESS_LINES,
	PROGRESS_JSON,
	PROGRESS_NONE,
};

/* What the command line asks for; the texts are borrowed. */
struct progress_request {
	const char *title; /* what is run */
	enum progress_form form;
	bool quiet;
	const char *file, *interval; /* NULL: not given */
};

struct progress_stream {
	int fd; /* -1: none */
	bool own;
	int64_t every_ns, next_ns;
	uint64_t dropped;
};

/* Static, as a thread that is stuck may still log into it. */
struct progress_view {
	enum progress_form mode; /* of stderr; never PROGRESS_AUTO */
	int64_t every_ns, next_ns;
	struct progress_stream json;
	struct live live;
	struct run_progress last; /* without its ranks */
	struct live_figures figures;
	bool begun, closed;
	const char *title;
	double target;
	/* the screen; of several threads, as messages come from any */
	pthread_mutex_t lock;
	struct terminal terminal;
	struct buf frame;
	struct log_sink sink;
};

/* Begins what `a` asks for; nothing at all unless `speaks`. target: AU to reach in percent, 0:
 * none. From here to progress_done messages go above the panel. ERR_USAGE for a form that cannot be
 * had; the file's own errors. */
int progress_begin(struct progress_view *v, const struct progress_request *a, bool speaks,
		   double target, struct err *e);
/* Opens what --progress-file names, as progress_begin would: a descriptor, or a negative code. */
int progress_open(const char *path, struct err *e);
/* How often progress_show wants to be called. */
int64_t progress_interval_ns(const struct progress_view *v);
/* A run_options.progress callback; arg is the view. One thread at a time. */
void progress_show(void *arg, const struct run_progress *p);
/* The last state stays as a plain line; the stream ends with how it went: what `rc` stands for.
 * Nothing is written to the terminal afterwards. Call once, after progress_begin returned 0. */
void progress_done(struct progress_view *v, int rc);
