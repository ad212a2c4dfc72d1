#pragma once
/* Groups of samples (row groups) of one worker in flight: a window of them is asked for in the
 * order in which the worker needs them, and each is delivered in its turn, as DLIO's iterator over
 * row groups does. For formats with units (format_ops.unit_begin).
 *
 * A request's bytes go through a buffer of its own. With DECODE_NONE they are forgotten when they
 * come; else the format's own reader reads them from there, in their order. A range that is larger
 * than a buffer is read in pieces, one after another, so that no group is ever held. */
#include <stdbool.h>
#include <stdint.h>

#include "loader/loader.h"

struct groups;

/* What to read: samples, numbered over all files. */
struct groups_source {
	/* The next sample that is needed and in none of the units so far; false: there is none. */
	bool (*next)(struct groups_source *s, uint64_t *sample);
	/* Samples [first, end) are in its unit. */
	void (*covered)(struct groups_source *s, uint64_t first, uint64_t end);
};

/* Whether this workload reads units: with a loader of groups, or with reader.queue_depth. */
bool groups_wanted(const struct loader_config *c);
/* Bytes of the largest unit, and what a library that keeps whole units would hold of them for one
 * worker: those that were asked for. */
void groups_of_library(const struct loader_config *c, uint64_t *unit, uint64_t *held);
/* Memory that create takes; 0 and `e` where no machine has as much. */
uint64_t groups_bytes(const struct loader_config *c, const struct reader_config *settings,
		      struct err *e);
/* `io` counts; all pointers are borrowed. */
int groups_create(struct groups **out, const struct loader_config *c,
		  const struct reader_config *settings, const struct io *io, struct err *e);
/* Accepts NULL. */
void groups_destroy(struct groups *g);
/* For the format's reader: serves what has come, and passes on the rest. */
const struct io *groups_io(struct groups *g);

/* Nothing is in flight; what `source` names is read from now on. */
void groups_begin(struct groups *g, struct groups_source *source);
/* Waits for what is in flight, and forgets it and the source. Accepts NULL. */
void groups_end(struct groups *g);
/* Whether a sample lies in the unit that was delivered last. */
bool groups_has(const struct groups *g, uint64_t sample);
/* Delivers the unit that has a sample, which is the next one; *begun_ns: when it was asked for.
 * With decoding, through `reader`. */
int groups_take(struct groups *g, struct reader *reader, uint64_t sample, int64_t *begun_ns,
		struct err *e);
/* Payload of a sample that it has. */
uint64_t groups_payload(const struct groups *g);
