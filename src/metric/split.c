/* The division of waits. */
#include "metric/split.h"

#include <assert.h>
#include <string.h>

const char *const wait_part_names[WAIT_PARTS] = {
	[WAIT_START] = "start_up",
	[WAIT_STARVED] = "starved",
	[WAIT_QUEUE] = "queueing",
	[WAIT_OPEN] = "open_metadata",
	[WAIT_DATA] = "data",
	[WAIT_DECODE] = "decode",
	[WAIT_PREPROCESS] = "preprocess",
	[WAIT_TRANSPORT] = "transport",
	[WAIT_FRAMEWORK] = "framework",
	[WAIT_NO_CPU] = "no_processor",
	[WAIT_OTHER] = "unknown",
};

static const enum wait_part part_of[WORK_KINDS] = {
	[WORK_OPEN] = WAIT_OPEN,
	[WORK_META] = WAIT_OPEN,
	[WORK_DATA] = WAIT_DATA,
	[WORK_DECODE] = WAIT_DECODE,
	[WORK_PREPROCESS] = WAIT_PREPROCESS,
	[WORK_TRANSPORT] = WAIT_TRANSPORT,
	[WORK_FRAMEWORK] = WAIT_FRAMEWORK,
	[WORK_NO_CPU] = WAIT_NO_CPU,
};

/* Moves *at to `until` unless that is in the past; returns the time in between. */
static int64_t advance_to(int64_t *at, int64_t until, int64_t end)
{
	int64_t took;

	if (until > end)
		until = end;
	took = until > *at ? until - *at : 0;
	*at += took;
	return took;
}

/* Disjoint: waiting for a processor is taken off what the thread was at. */
static void work_net(const struct batch_work *w, double net[WORK_KINDS])
{
	double sum = 0, without;

	for (int k = 0; k < WORK_NO_CPU; k++)
		sum += w->ns[k] > 0 ? (double)w->ns[k] : 0;
	without = w->ns[WORK_NO_CPU] > 0 ? (double)w->ns[WORK_NO_CPU] : 0;
	without = without < sum ? without : sum;
	for (int k = 0; k < WORK_NO_CPU; k++)
		net[k] = w->ns[k] > 0 ? (double)w->ns[k] * (1 - without / sum) : 0;
	net[WORK_NO_CPU] = without;
}

static void divide_by_work(int64_t out[WAIT_PARTS], int64_t ns, const struct batch_work *w)
{
	double sum = 0, net[WORK_KINDS];
	int64_t left = ns;

	work_net(w, net);
	for (int k = 0; k < WORK_KINDS; k++)
		sum += net[k];
	for (int k = 0; k < WORK_KINDS && sum > 0; k++) {
		int64_t part = (int64_t)((double)ns * net[k] / sum);

		part = part > left ? left : part;
		out[part_of[k]] += part;
		left -= part;
	}
	out[WAIT_OTHER] += left;
}

static void keep_shares(struct step_times *t, const int64_t out[WAIT_PARTS])
{
	int64_t wait = t->got_ns - t->ask_ns;

	for (int i = 0; i < WAIT_OTHER; i++)
		t->share[i] = wait > 0 ? (uint8_t)(255.0 * (double)out[i] / (double)wait) : 0;
}

/* Of a time that cannot be negative. */
static int64_t less_of(int64_t ns, int64_t most)
{
	return ns < 0 ? 0 : ns < most ? ns : most;
}

static uint32_t microseconds(int64_t ns)
{
	return ns <= 0 ? 0 : ns / 1000 < UINT32_MAX ? (uint32_t)(ns / 1000) : UINT32_MAX;
}

/* When its worker was through with it. */
static int64_t packed_ns(const struct batch_span *b)
{
	return b->done_ns + b->costs.pack_ns;
}

/* Of the framework's code after the batch was done, what ran while the rank waited. */
static int64_t code_after(const struct step_times *t, const struct batch_span *b)
{
	int64_t before = t->ask_ns > b->done_ns ? t->ask_ns - b->done_ns : 0;
	int64_t others = b->costs.pack_ns + b->costs.pin_ns;

	return b->costs.hand_ns + less_of(others - before, others);
}

void wait_split(int64_t out[WAIT_PARTS], struct step_times *t, const struct batch_span *b,
		bool first)
{
	int64_t at = t->ask_ns, end = t->got_ns, part, late, code;

	assert(end >= at);
	memset(out, 0, WAIT_PARTS * sizeof(*out));
	part = advance_to(&at, b->sent_ns, end);
	out[WAIT_FRAMEWORK] += code = less_of(b->costs.start_ns, part);
	out[WAIT_NO_CPU] += late = less_of(b->costs.start_late_ns, part - code);
	out[first ? WAIT_START : WAIT_STARVED] += part - code - late;
	part = advance_to(&at, b->begun_ns, end);
	out[WAIT_NO_CPU] += late = less_of(b->late_ns, part);
	out[WAIT_FRAMEWORK] += code = less_of(b->costs.begin_ns, part - late);
	out[first ? WAIT_START : WAIT_QUEUE] += part - late - code;
	divide_by_work(out, advance_to(&at, b->done_ns, end), b->work);
	part = advance_to(&at, end, end);
	out[WAIT_NO_CPU] += late = less_of(b->rank_late_ns, part);
	out[WAIT_FRAMEWORK] += code = less_of(code_after(t, b), part - late);
	out[WAIT_TRANSPORT] += part - late - code;
	keep_shares(t, out);
	t->service_us = microseconds(packed_ns(b) - b->begun_ns);
	t->ready_us = microseconds(t->got_ns - packed_ns(b));
}

void wait_split_again(int64_t out[WAIT_PARTS], const struct step_times *t)
{
	int64_t wait = t->got_ns - t->ask_ns, left = wait;
	int most = 0;

	for (int i = 0; i < WAIT_OTHER; i++) {
		out[i] = (int64_t)((double)wait * t->share[i] / 255.0);
		left -= out[i];
	}
	/* what the shares lost in rounding belongs to the largest of them */
	for (int i = 1; i < WAIT_OTHER; i++)
		most = t->share[i] > t->share[most] ? i : most;
	if (t->share[most] && (double)left * 255 < (double)wait * WAIT_PARTS) {
		out[most] += left;
		left = 0;
	}
	out[WAIT_OTHER] = left;
}

uint16_t late_share(int64_t of_ns, int64_t all_ns)
{
	return all_ns > 0 ? (uint16_t)(65535.0 * (double)less_of(of_ns, all_ns) / (double)all_ns)
			  : 0;
}

int64_t late_ns(uint16_t share, int64_t all_ns)
{
	return all_ns > 0 ? (int64_t)((double)all_ns * share / 65535.0) : 0;
}

int64_t step_late_ns(const struct step_times *t)
{
	uint16_t share = t->late_compute < t->over_compute ? t->late_compute : t->over_compute;

	return late_ns(share, t->compute_end_ns - t->compute_begin_ns);
}

double step_computed_s(const struct step_times *t)
{
	int64_t all = t->compute_end_ns - t->compute_begin_ns;

	return (double)(all - late_ns(t->late_compute, all)) / 1e9;
}

int64_t wait_split_take(struct epoch_split *s, struct step_times *t, int64_t ns)
{
	int64_t part[WAIT_PARTS], others, taken = 0;

	wait_split_again(part, t);
	others = t->got_ns - t->ask_ns - part[WAIT_NO_CPU];
	ns = less_of(ns, others);
	if (ns == 0)
		return 0;
	for (int k = 0; k < WAIT_PARTS; k++) {
		int64_t off = (int64_t)((double)part[k] * (double)ns / (double)others);

		if (k == WAIT_NO_CPU)
			continue;
		/* the shares of a step are rounded: the totals may have a little less */
		if (s)
			off = less_of(off, s->wait_ns[k]);
		part[k] -= off;
		taken += off;
		if (s)
			s->wait_ns[k] -= off;
	}
	part[WAIT_NO_CPU] += taken;
	if (s)
		s->wait_ns[WAIT_NO_CPU] += taken;
	keep_shares(t, part);
	return taken;
}

void epoch_split_add(struct epoch_split *s, const int64_t wait[WAIT_PARTS],
		     const struct step_times *all, uint64_t i, const struct batch_span *b)
{
	int64_t done = packed_ns(b), part;
	double service = done > b->begun_ns ? (double)(done - b->begun_ns) : 0;
	double net[WORK_KINDS];

	work_net(b->work, net);
	for (int k = 0; k < WAIT_PARTS; k++)
		s->wait_ns[k] += wait[k];
	for (int k = 0; k < WORK_KINDS; k++)
		s->work_ns[k] += (int64_t)net[k];
	s->batches++;
	s->service_ns += service;
	s->service_sq += service * service;
	if (b->done_ns > all[i].ask_ns) {
		s->waited++;
		part = all[i].got_ns - b->done_ns;
		s->delivery_ns += (double)(part - less_of(code_after(&all[i], b), part));
	}
	if (i == 0)
		s->framework_start_ns += b->costs.start_ns + b->costs.begin_ns;
	s->framework_step_ns += b->costs.hand_ns;
	/* this batch was ready at each request for a batch since it was done; there are at most as
	 * many as the prefetch depth */
	for (uint64_t k = i + 1; k-- > 0 && all[k].ask_ns >= done;)
		s->ready++;
}

void epoch_split_merge(struct epoch_split *into, const struct epoch_split *from)
{
	for (int k = 0; k < WAIT_PARTS; k++)
		into->wait_ns[k] += from->wait_ns[k];
	for (int k = 0; k < WORK_KINDS; k++)
		into->work_ns[k] += from->work_ns[k];
	into->batches += from->batches;
	into->ready += from->ready;
	into->service_ns += from->service_ns;
	into->service_sq += from->service_sq;
	into->delivery_ns += from->delivery_ns;
	into->waited += from->waited;
	into->framework_start_ns += from->framework_start_ns;
	into->framework_step_ns += from->framework_step_ns;
	into->framework_loop_ns += from->framework_loop_ns;
	into->framework_late_ns += from->framework_late_ns;
}

void service_times_add(struct service_times *s, int64_t ns)
{
	if (s->stride == 0)
		s->stride = 1;
	if (s->seen++ % s->stride)
		return;
	if (s->n == SERVICE_KEPT) {
		for (uint32_t i = 0; i < SERVICE_KEPT / 2; i++)
			s->ns[i] = s->ns[2 * i];
		s->n = SERVICE_KEPT / 2;
		s->stride *= 2;
		if ((s->seen - 1) % s->stride)
			return;
	}
	s->ns[s->n++] = ns;
}
