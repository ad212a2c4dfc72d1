#pragma once
/* Queues and ceilings tried on reads: predict/read_fit.h. */
#include <stddef.h>
#include <stdint.h>

#include "predict/read_fit.h"

#define QUEUE_AHEAD 128 /* servers, and reads of a burst, that can be told */

/* The reads that are looked at. */
struct queue_reads {
	size_t n;
	uint32_t most;              /* under way at once */
	const double *took, *bytes; /* ns */
	/* QUEUE_AHEAD for each: the ends of those that began before it, the latest first, minus its
	 * beginning, ns; -INFINITY: none */
	const double *ahead;
	const uint32_t *history; /* of those, that are known whatever came before the window */
	bool sizes_differ;
	double *spare; /* n */
};

/* Keeps the latest `most` of the ends of those that began, of which there are *n, the latest first.
 */
void queue_note_end(double *last, uint32_t most, uint32_t *n, double end);

/* The best for so many servers; with `whole` nothing but service takes time. Fills `error`: what
 * each took beyond that, ns. False when reads wait longer than `most` of them under way can take:
 * they wait for something else, that ends them together; and when so many would hardly wait at all.
 */
bool queue_fit_servers(const struct queue_reads *q, uint32_t servers, bool whole,
		       struct read_rates *r, double *error);
/* The best for bursts of so many. The error is NAN of a read whose history is too short for it;
 * false as well when that is so of most. */
bool queue_fit_burst(const struct queue_reads *q, uint32_t burst, struct read_rates *r,
		     double *error);
