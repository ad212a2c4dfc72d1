/* Least sums of absolute errors: over one time by a grid and then golden section, over another by
 * golden section, and of a constant it is the median. */
#include "predict/queue_fit.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/stats.h"

#define GOLDEN 18
#define GRID 8

static const double SLACK = 1.5;
static const double UNSEEN = 0.1; /* of a read, by all under way: less is no queue */
static const double KNOWN = 0.25; /* of the reads, that a burst must be tried on */

struct queue_try {
	const struct queue_reads *q;
	uint32_t number; /* servers, or of a burst */
	struct read_rates *r;
	double *error;
	double limit; /* of the bytes' time */
	double spare_rate;
};

void queue_note_end(double *last, uint32_t most, uint32_t *n, double end)
{
	uint32_t i = *n < most ? (*n)++ : most;

	for (; i > 0 && last[i - 1] < end; i--)
		if (i < most)
			last[i] = last[i - 1];
	if (i < most)
		last[i] = end;
}

static double quantile(double *v, size_t n, double part)
{
	return nth_number(v, n, (size_t)((double)(n - 1) * part));
}

static double wait_of(const struct queue_try *t, size_t i)
{
	double w = t->q->ahead[i * QUEUE_AHEAD + t->number - 1] - t->r->latency_ns;

	return w > 0 ? w : 0;
}

/* Of what waiting, latency and bytes leave, the median. */
static double set_serve(void *arg)
{
	struct queue_try *t = arg;
	const struct queue_reads *q = t->q;
	double sum = 0;

	for (size_t i = 0; i < q->n; i++) {
		t->error[i] = q->took[i] - wait_of(t, i) - t->r->latency_ns -
			      t->r->serve_ns_per_byte * q->bytes[i];
		q->spare[i] = t->error[i];
	}
	t->r->serve_ns = fmax(0, quantile(q->spare, q->n, 0.5));
	for (size_t i = 0; i < q->n; i++) {
		t->error[i] -= t->r->serve_ns;
		sum += fabs(t->error[i]);
	}
	t->r->error_ns = sum / (double)q->n;
	return t->r->error_ns;
}

/* The grid first: the error has several valleys. */
static double grid_golden(struct queue_try *t, double *x, double low, double high,
			  double (*error)(void *))
{
	double step = (high - low) / GRID, best = INFINITY, at = low;

	for (int i = 0; i <= GRID; i++) {
		double e;

		*x = low + step * i;
		e = error(t);
		if (e < best) {
			best = e;
			at = *x;
		}
	}
	return golden_section(x, fmax(low, at - step), fmin(high, at + step), GOLDEN, error, t);
}

static double set_bytes(void *arg)
{
	struct queue_try *t = arg;
	double with, without;

	if (!t->q->sizes_differ)
		return set_serve(t);
	with = golden_section(&t->r->serve_ns_per_byte, 0, t->limit, GOLDEN, set_serve, t);
	t->spare_rate = t->r->serve_ns_per_byte;
	t->r->serve_ns_per_byte = 0;
	without = set_serve(t);
	if (without <= with)
		return without;
	t->r->serve_ns_per_byte = t->spare_rate;
	return set_serve(t);
}

static double mean_of(const double *v, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += v[i] / (double)n;
	return sum;
}

/* Most reads take longer. */
static double shortest(const struct queue_reads *q)
{
	memcpy(q->spare, q->took, q->n * sizeof(*q->spare));
	return quantile(q->spare, q->n, 0.25);
}

static double took_in_all(const struct queue_reads *q)
{
	return mean_of(q->took, q->n) * (double)q->n;
}

bool queue_fit_servers(const struct queue_reads *q, uint32_t servers, bool whole,
		       struct read_rates *r, double *error)
{
	struct queue_try t = {.q = q, .number = servers, .r = r, .error = error};
	double wait = 0, serve = 0;

	assert(servers > 0 && servers <= QUEUE_AHEAD);
	*r = (struct read_rates){.servers = servers};
	t.limit = 2 * mean_of(q->took, q->n) / mean_of(q->bytes, q->n);
	if (whole)
		set_bytes(&t);
	else
		grid_golden(&t, &r->latency_ns, 0, shortest(q), set_bytes);
	for (size_t i = 0; i < q->n; i++) {
		wait += wait_of(&t, i);
		serve += r->serve_ns + r->serve_ns_per_byte * q->bytes[i];
	}
	return wait <= SLACK * serve * q->most / servers &&
	       serve / servers * q->most >= UNSEEN * took_in_all(q);
}

static double burst_wait(const struct queue_try *t, size_t i)
{
	return t->q->ahead[i * QUEUE_AHEAD + t->number - 1] + t->number * t->r->pace_ns;
}

static double sum_burst(void *arg)
{
	struct queue_try *t = arg;
	const struct queue_reads *q = t->q;
	double sum = 0, due, n = 0;

	for (size_t i = 0; i < q->n; i++) {
		t->error[i] = NAN;
		if (q->history[i] < t->number)
			continue;
		due = fmax(burst_wait(t, i),
			   t->r->latency_ns + t->r->stream_ns_per_byte * q->bytes[i]);
		t->error[i] = q->took[i] - due;
		sum += fabs(t->error[i]);
		n++;
	}
	t->r->error_ns = n > 0 ? sum / n : INFINITY;
	return t->r->error_ns;
}

static double set_burst_latency(void *arg)
{
	struct queue_try *t = arg;

	return golden_section(&t->r->latency_ns, 0, t->limit, GOLDEN, sum_burst, t);
}

bool queue_fit_burst(const struct queue_reads *q, uint32_t burst, struct read_rates *r,
		     double *error)
{
	struct queue_try t = {.q = q, .number = burst, .r = r, .error = error};
	double longest, wait = 0, known = 0;

	assert(burst > 0 && burst <= QUEUE_AHEAD);
	*r = (struct read_rates){.burst = burst};
	t.limit = shortest(q);
	memcpy(q->spare, q->took, q->n * sizeof(*q->spare));
	longest = quantile(q->spare, q->n, 0.98);
	/* a pace that makes no read wait explains nothing: the longest read waited for all of it */
	grid_golden(&t, &r->pace_ns, 0, longest / (burst > 4 ? burst / 2.0 : 1), set_burst_latency);
	for (size_t i = 0; i < q->n; i++) {
		if (q->history[i] < burst)
			continue;
		wait += fmax(0, burst_wait(&t, i) - r->latency_ns);
		known++;
	}
	return known >= KNOWN * (double)q->n &&
	       wait <= SLACK * known * r->pace_ns * (q->most + burst) &&
	       r->pace_ns * q->most >= UNSEEN * took_in_all(q) / (double)q->n;
}
