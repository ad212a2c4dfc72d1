#pragma once
/* What a trace holds, in the order in which it is written: for the files that render it. Private to
 * this folder. A rank is a process there, numbered from 1 because 0 is taken for the idle one, and
 * each reader a thread of it. */
#include "base/file_out.h"
#include "result/result.h"

struct trace_event {
	const struct span *span;
	uint32_t pid, tid;
	uint32_t epoch;  /* from 1; 0: outside of all */
	uint8_t dataset; /* enum dataset_kind of span->file and span->sample, or SPAN_NAMED */
	const struct span_ring *ring; /* NULL: the rank's own times */
};

typedef void (*trace_event_fn)(void *arg, const struct trace_event *ev);
typedef void (*trace_thread_fn)(void *arg, uint32_t pid, uint32_t tid, const char *name);

/* Every span of a rank: the rank's own, from the times of its steps, then ring by ring. Within each
 * by beginning, and what holds others before them; spans marked SPAN_IN_FLIGHT may overlap. Sorts
 * the rings. */
void trace_rank_events(const struct result *r, uint32_t rank, trace_event_fn fn, void *arg);
void trace_rank_threads(const struct result *r, uint32_t rank, trace_thread_fn fn, void *arg);

/* Path of the file of an event, of the dataset or a checkpoint; false without one. */
bool trace_file_path(const struct result *r, const struct trace_event *ev, char *out, size_t size);
/* A text as the inside of a JSON string. */
void trace_put_text(struct out_file *f, const char *text);

/* ---- files of a trace, in the folder of the result: of the ranks of this process, with times by
 * its own clock. The result has a trace, and no other thread uses its rings ---- */

/* trace-R-of-N.pfw for each rank R of N, as DFTracer leaves them under DLIO. */
int trace_write_pfw(const struct result *r, struct err *e);
/* trace.json for Perfetto and chrome://tracing; with `several` processes trace-R.json, R being the
 * first rank of this one. */
int trace_write_chrome(const struct result *r, bool several, struct err *e);
