#include "judge/busy_reading.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define PARTS 1024u
static const double BUSY = 0.5; /* of the most readers of a part */

/* Of an epoch. */
struct parts {
	double readers[PARTS + 1], batches[PARTS + 1]; /* in each part; change from part to part */
	double more_readers[PARTS + 1], more_batches[PARTS + 1];
	double first_ns, part_ns;
};

uint64_t busy_reading_bytes(void)
{
	return sizeof(struct parts);
}

/* A batch, read from begin to end, in parts. */
static void add_batch(struct parts *p, double begin, double end)
{
	double rate;
	uint32_t first, last;

	begin = fmax(0, fmin(PARTS, begin));
	end = fmax(begin, fmin(PARTS, end));
	first = (uint32_t)begin;
	last = (uint32_t)end;
	if (end - begin < 1e-6) {
		p->batches[last] += 1;
		return;
	}
	rate = 1 / (end - begin);
	if (first == last) {
		p->readers[first] += end - begin;
		p->batches[first] += 1;
		return;
	}
	p->readers[first] += first + 1 - begin;
	p->batches[first] += (first + 1 - begin) * rate;
	p->readers[last] += end - last;
	p->batches[last] += (end - last) * rate;
	p->more_readers[first + 1] += 1;
	p->more_batches[first + 1] += rate;
	p->more_readers[last] -= 1;
	p->more_batches[last] -= rate;
}

static void add_rank(struct parts *p, const struct rank_epoch *ep)
{
	for (uint32_t b = 0; b < ep->blocks; b++)
		for (uint64_t i = 0; i < ep->block[b].steps; i++) {
			const struct step_times *t = &ep->block[b].step[i];
			double done = (double)t->got_ns - t->ready_us * 1e3 - p->first_ns;

			add_batch(p, (done - t->service_us * 1e3) / p->part_ns, done / p->part_ns);
		}
}

/* When the last rank had used the batches that the start of the epoch reads ahead, ns; INFINITY:
 * one never had. */
static double later_ns(const struct result *r, uint32_t epoch)
{
	uint64_t window = result_window(r);
	double most = 0;

	for (uint32_t k = 0; k < r->ranks; k++) {
		const struct rank_epoch *ep = r->rank[k].lost ? NULL : &r->rank[k].epoch[epoch];
		const struct step_times *t = NULL;

		for (uint32_t b = 0; ep && b < ep->blocks && !t; b++) {
			const struct phase *of = &ep->block[b];

			if (of->first_step + of->steps > window)
				t = &of->step[window > of->first_step ? window - of->first_step
								      : 0];
		}
		if (ep)
			most = fmax(most, t ? (double)t->got_ns : INFINITY);
	}
	return most;
}

static bool span_of(const struct result *r, uint32_t epoch, double *begin, double *end)
{
	*begin = INFINITY;
	*end = -INFINITY;
	for (uint32_t k = 0; k < r->ranks; k++)
		if (!r->rank[k].lost) {
			*begin = fmin(*begin, (double)r->rank[k].epoch[epoch].begin_ns);
			*end = fmax(*end, (double)r->rank[k].epoch[epoch].train_end_ns);
		}
	return *end > *begin;
}

static void add_epoch(const struct result *r, uint32_t epoch, struct parts *p,
		      struct busy_reading *out)
{
	double end, later = later_ns(r, epoch), most = 0, readers = 0, batches = 0;

	memset(p, 0, sizeof(*p));
	if (!span_of(r, epoch, &p->first_ns, &end))
		return;
	p->part_ns = (end - p->first_ns) / PARTS;
	for (uint32_t k = 0; k < r->ranks; k++)
		if (!r->rank[k].lost)
			add_rank(p, &r->rank[k].epoch[epoch]);
	for (uint32_t i = 0; i < PARTS; i++) {
		readers += p->more_readers[i];
		batches += p->more_batches[i];
		p->readers[i] += readers;
		p->batches[i] += batches;
		most = fmax(most, p->readers[i]);
	}
	out->wall_s += (end - p->first_ns) / 1e9;
	for (uint32_t i = 0; i < PARTS; i++) {
		if (!(most > 0) || p->readers[i] < BUSY * most)
			continue;
		out->busy_s += p->part_ns / 1e9;
		out->batches += p->batches[i];
		if (p->first_ns + i * p->part_ns < later)
			continue;
		out->later_s += p->part_ns / 1e9;
		out->later_batches += p->batches[i];
	}
}

int busy_reading_find(const struct result *r, uint32_t epochs, struct busy_reading *out,
		      struct err *e)
{
	struct parts *p = try_calloc(1, sizeof(*p), "times of reading", e);

	*out = (struct busy_reading){0};
	if (!p)
		return -ENOMEM;
	for (uint32_t i = 0; i < epochs; i++)
		add_epoch(r, i, p, out);
	free(p);
	return 0;
}
