#pragma once
/* A trace file read back, ours or DFTracer's, one event after another in constant memory: JSON of
 * the Trace Event Format, as a list of events or as an object with "traceEvents", and .pfw, whose
 * events have no commas between them; each plain or through gzip. Private to this folder. */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "trace/pfw_line.h"
#include "trace/trace_reader.h"

#define TRACE_NONE UINT64_MAX /* the event does not say */

enum trace_item_kind {
	TRACE_ITEM_SPAN,
	TRACE_ITEM_PROCESS, /* `text` is the name of pid */
	TRACE_ITEM_THREAD,  /* of pid, tid */
	TRACE_ITEM_FILE,    /* `text` is the path that `file` stands for */
};

struct trace_item {
	enum trace_item_kind kind;
	const char *name, *cat, *text; /* valid until the next call; text: the path, "" when none */
	uint64_t pid, tid;
	int64_t begin_ns, end_ns; /* since 1970 where the file says so, else since its own zero */
	uint64_t epoch, step, sample, offset, asked, moved;
	uint64_t file; /* stands for a path in all files of a trace; TRACE_NONE */
	bool in_flight, metadata, failed;
};

struct trace_items {
	struct trace_lines in; /* in.line + 1: where it is */
	bool cut;              /* the file broke off */
	bool ours; /* so far: written by this program, in the order in which spans begin, those
		    * that hold others first */
	uint64_t dropped; /* so far: spans that the file says were not kept */
	/* the reader's own */
	struct pfw_line ev;
	struct buf name, cat, text, key;
	enum { TRACE_BEGIN, TRACE_MEMBERS, TRACE_EVENTS, TRACE_OVER } state;
	bool in_object, seen_events;
	int64_t zero_ns;
	struct trace_pending *pending;
	size_t next_pending;
};

void trace_items_open(struct trace_items *r, const char *path);
/* 1 and *item, or 0 at the end. ERR_DATA with the file and the line where it is no trace. A file
 * that just ends early has what is before. */
int trace_items_next(struct trace_items *r, struct trace_item *item, struct err *e);
void trace_items_close(struct trace_items *r);
