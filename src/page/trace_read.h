#pragma once
/* A trace file read back, ours or DFTracer's, one event after another in constant memory: JSON of
 * the Trace Event Format, as a list of events or as an object with "traceEvents", and .pfw, whose
 * events have no commas between them; each plain or through gzip. Private to this folder. */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

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

struct trace_reader;

int trace_reader_open(struct trace_reader **out, const char *path, struct err *e);
/* 1 and *item, or 0 at the end. ERR_DATA with the file and the line where it is no trace. A file
 * that just ends early has what is before. */
int trace_reader_next(struct trace_reader *r, struct trace_item *item, struct err *e);
/* Accepts NULL. */
void trace_reader_close(struct trace_reader *r);

/* After the end: whether the file broke off, and at which line. */
bool trace_reader_cut(const struct trace_reader *r, uint64_t *line);
/* So far: written by this program, in the order in which spans begin, those that hold others
 * first. */
bool trace_reader_ours(const struct trace_reader *r);
/* So far: spans that the file says were not kept. */
uint64_t trace_reader_dropped(const struct trace_reader *r);
