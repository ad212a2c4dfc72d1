#pragma once
/* The part of a trace that a page draws: chosen steps of chosen ranks, and as many of their spans
 * as a small page can hold. The files are read a few times over, in memory that does not grow with
 * them. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "conf/opt.h"

/* As a legend has them. */
enum view_kind {
	VIEW_COMPUTE,
	VIEW_WAIT,
	VIEW_BARRIER,
	VIEW_CHECKPOINT,
	VIEW_STEP,
	VIEW_BATCH,
	VIEW_ITEM,
	VIEW_SAMPLE,
	VIEW_DECODE, /* also what is left of a sample between its requests */
	VIEW_PREPROCESS,
	VIEW_FRAMEWORK,
	VIEW_TRANSPORT,
	VIEW_OPEN, /* and close */
	VIEW_METADATA,
	VIEW_READ,
	VIEW_WRITE,
	VIEW_OTHER,
	VIEW_KINDS,
	VIEW_NOT = VIEW_KINDS /* holds steps, and is not drawn */
};
extern const char *const view_kind_names[VIEW_KINDS];

#define TRACE_VIEW_WINDOWS 2
#define TRACE_VIEW_SPANS                                                                           \
	6000                /* of a window; the longest are kept, those of ranks before others     \
			     */
#define TRACE_VIEW_RANKS 16 /* the first, and that of the slowest step, unless chosen */

/* 0 and false: not chosen. */
struct trace_choice {
	uint64_t epoch, first_step, last_step; /* as the trace numbers them, from 1 */
	uint32_t first_rank, last_rank;
	bool has_ranks;
};

struct view_span {
	int64_t begin_ns, dur_ns;                    /* begin: since the window's */
	uint64_t sample, file, offset, asked, moved; /* TRACE_NONE; file: key of a path */
	uint64_t epoch, step;
	uint32_t lane;
	uint8_t kind, name; /* enum view_kind; of trace_view.name */
	bool failed;
};

struct view_window {
	uint64_t epoch, first_step, last_step; /* 0: all there is, the trace has no steps */
	int64_t begin_ns, end_ns;              /* as in the trace */
	bool slowest;                          /* chosen for its slowest step: */
	uint64_t slow_step;
	uint32_t slow_rank;
	int64_t slow_ns;
	struct view_span *span;
	size_t spans;
	uint64_t seen;                                   /* spans in it, drawn or not */
	uint64_t count[VIEW_KINDS], time_ns[VIEW_KINDS]; /* of all those, by kind */
};

struct view_lane {
	uint64_t pid, tid;
	uint32_t rank;
	char name[48];
	/* while a trace is read: the sample that is being read, for what is decoded in it */
	int64_t sample_end, cursor;
	uint64_t sample, epoch, step;
};

struct view_path {
	uint64_t key;
	char *path; /* NULL: the trace does not say */
};

#define VIEW_NAMES 64

struct trace_view {
	struct view_window window[TRACE_VIEW_WINDOWS];
	size_t windows;
	struct view_lane *lane;
	size_t lanes;
	char name[VIEW_NAMES][48];
	size_t names;
	struct view_path *path; /* sorted by key */
	size_t paths;
	uint64_t ranks, ranks_left_out, lanes_left_out;
	uint64_t dropped; /* spans that were not kept while the run was traced */
	char note[512];   /* a sentence about files that end unexpectedly; "" */
};

/* Files of a trace in the folder of a result, as this program and DFTracer name them: trace.json,
 * else trace-*.json, else trace-*.pfw and trace-*.pfw.gz. Appends; none is no failure. */
void trace_view_files(const char *folder, struct str_list *out);
/* ERR_USAGE when the trace does not have what is chosen, ERR_DATA where a file is no trace. Release
 * in any case. */
int trace_view_build(struct trace_view *v, const struct str_list *files,
		     const struct trace_choice *choice, struct err *e);
void trace_view_release(struct trace_view *v);
/* Where in v->path the file of a span is; -1: nowhere. */
int64_t trace_view_file(const struct trace_view *v, uint64_t key);
