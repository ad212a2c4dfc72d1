#pragma once
/* Several requests of one worker in flight: for the samples of a batch, and for the pieces of large
 * samples. The depth runs out at a batch's end and is built up again by the next: a worker of
 * PyTorch or of a generator takes the next batch up when it has handed the last one over
 * (prefetch_factor is how many may wait for it, not how many it reads), and how requests are made
 * (ACCESS_NATIVE) does not change who reads what and when. Reading into the next batch would make
 * that one's samples delay this one's, and give a batch of one sample a depth that the loader does
 * not have. Larger batches and more workers keep more in flight, as they do there. Only for
 * ACCESS_NATIVE: where a sample's bytes lie is computed (format_ops.extent), so that nothing needs
 * to be read before its request can be made.
 *
 * With DECODE_NONE bytes go into the buffer of their request and are forgotten. Otherwise a sample
 * is read whole into memory, and then the format's own reader reads it from there; what it asks for
 * besides is requested then, one at a time.
 *
 * read_type on_demand opens a file for the samples of it that are in flight together and closes it
 * after them; memory keeps FLIGHT_KEPT_OPEN files more open, and what a format's own reader loads
 * once and for all samples of a file is loaded once here. */
#include <stdint.h>

#include "loader/loader.h"

#define FLIGHT_PIECE (1u << 20) /* the largest request */
#define FLIGHT_KEPT_OPEN 16u

struct flight;

/* What to read, and the callbacks about it, in the calling thread. */
struct flight_run {
	/* The next sample; false when there is no further one. */
	bool (*next)(struct flight_run *run, uint64_t *sample);
	/* The reading of a sample has begun or goes on, since a moment: for the watchdog. */
	void (*doing)(struct flight_run *run, uint64_t sample, int64_t since_ns);
	/* A sample was read, in any order; *now is the time, and is moved on by what is done. */
	void (*done)(struct flight_run *run, uint64_t sample, uint64_t payload, int64_t *now);
	bool lingers;     /* done takes its time: requests are sent before */
	int64_t begun_ns; /* out, for done: when the sample's first request was sent */
	uint64_t failed;  /* out: the sample whose reading failed */
};

/* Whether this workload keeps requests in flight: reader.queue_depth above 1, and there is I/O. */
bool flight_wanted(const struct loader_config *c);
/* Memory that create takes; 0 and `e` when the format cannot do it or no machine has as much. */
uint64_t flight_bytes(const struct loader_config *c, const struct reader_config *settings,
		      struct err *e);
/* Takes all memory, and threads where the store needs them. `io` counts, its store is the dataset's
 * and its `stop` is heeded; all pointers are borrowed. */
int flight_create(struct flight **out, const struct loader_config *c,
		  const struct reader_config *settings, const struct io *io, struct err *e);
/* Closes files that are open. */
int flight_close(struct flight *f, struct err *e);
/* Accepts NULL. */
void flight_destroy(struct flight *f);
/* For the format's reader: serves what is in memory. */
const struct io *flight_io(struct flight *f);
/* Reads until next has no more. The first failure ends it, when all requests have come back:
 * run->failed says whose it was. */
int flight_read(struct flight *f, struct reader *reader, struct flight_run *run, struct err *e);
