#pragma once
/* The JSON objects of DFTracer's .pfw, of which trace.json has the same: one event each. Nothing is
 * copied: values are found in the text and stay there. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct pfw_text {
	const char *p; /* of the line; behind the quote of a string */
	size_t n;
	bool there, quoted;
};

/* Keys of the object (F_) and of its `args` (A_). */
#define PFW_FIELDS_OF(FIELD)                                                                       \
	FIELD(F_NAME, "name")                                                                      \
	FIELD(F_CAT, "cat")                                                                        \
	FIELD(F_PH, "ph")                                                                          \
	FIELD(F_ID, "id")                                                                          \
	FIELD(F_PID, "pid")                                                                        \
	FIELD(F_TID, "tid")                                                                        \
	FIELD(F_TS, "ts")                                                                          \
	FIELD(F_DUR, "dur")                                                                        \
	FIELD(A_NAME, "name")                                                                      \
	FIELD(A_VALUE, "value")                                                                    \
	FIELD(A_HHASH, "hhash")                                                                    \
	FIELD(A_FHASH, "fhash")                                                                    \
	FIELD(A_FNAME, "fname")                                                                    \
	FIELD(A_HOSTNAME, "hostname")                                                              \
	FIELD(A_FD, "fd")                                                                          \
	FIELD(A_RET, "ret")                                                                        \
	FIELD(A_COUNT, "count")                                                                    \
	FIELD(A_SIZE, "size")                                                                      \
	FIELD(A_OFFSET, "offset")                                                                  \
	FIELD(A_WHENCE, "whence")                                                                  \
	FIELD(A_FLAGS, "flags")                                                                    \
	FIELD(A_LENGTH, "length")                                                                  \
	FIELD(A_MODE, "mode")                                                                      \
	FIELD(A_EPOCH, "epoch")                                                                    \
	FIELD(A_STEP, "step")                                                                      \
	FIELD(A_PPID, "ppid")                                                                      \
	FIELD(A_CMD, "cmd_hash")                                                                   \
	FIELD(A_NEWPATH, "newpath")                                                                \
	/* of our own trace.json, and of its otherData */                                          \
	FIELD(A_FILE, "file")                                                                      \
	FIELD(A_SAMPLE, "sample")                                                                  \
	FIELD(A_ASKED, "asked_bytes")                                                              \
	FIELD(A_BYTES, "bytes")                                                                    \
	FIELD(A_METADATA, "metadata")                                                              \
	FIELD(A_FAILED, "failed")                                                                  \
	FIELD(A_PROGRAM, "program")                                                                \
	FIELD(A_BEGIN, "begin_unix_ns")                                                            \
	FIELD(A_DROPPED, "spans_dropped")                                                          \
	/* of DLIO's */                                                                            \
	FIELD(A_IMAGE, "image_idx")                                                                \
	FIELD(A_IMAGE_SIZE, "image_size")

#define PFW_NUMBER(number, key) number,
enum pfw_field { PFW_FIELDS_OF(PFW_NUMBER) PFW_FIELDS };
#undef PFW_NUMBER

struct pfw_line {
	struct pfw_text f[PFW_FIELDS];
	/* The first thing that is not JSON, and where it is in the text; NULL. DFTracer escapes
	 * less than JSON demands, so that this alone is no reason to refuse a line. */
	const char *wrong, *at;
};

/* Reads the object at `p`, which ends in NUL. `args`: its members are those of an event's `args`.
 * False: it is no object, or is cut, and l->wrong says why. */
bool pfw_object(const char *p, bool args, struct pfw_line *l);

bool pfw_is(const struct pfw_text *t, const char *what);
/* A whole number in 64 bits, its decimals left out. */
bool pfw_number(const struct pfw_text *t, int64_t *v);
/* Microseconds with decimals as nanoseconds, up to a quarter of what 64 bits hold. */
#define PFW_NS_MAX (INT64_MAX / 4)
bool pfw_ns(const struct pfw_text *t, int64_t *ns);
/* The value without its escapes, "" where there is none, in `out`, whose data it returns. Half a
 * surrogate pair, and NUL, become '?'. */
const char *pfw_plain(const struct pfw_text *t, struct buf *out);
