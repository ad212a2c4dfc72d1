/* Where the wall time of training went. */
#include "judge/decompose.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

/* The step of a rank, or NULL when it did not make it. */
static const struct step_times *step_of(const struct result *r, uint32_t rank, uint32_t epoch,
					uint32_t block, uint64_t i)
{
	const struct rank_epoch *ep = &r->rank[rank].epoch[epoch];

	return block < ep->blocks && i < ep->block[block].steps ? &ep->block[block].step[i] : NULL;
}

/* How often a rank came last, by how much: behind all others, and behind those on other nodes. */
struct lateness {
	uint64_t last;
	double behind_s, node_behind_s;
	uint32_t node;
};

/* What of [begin, end] lies after `from`. */
static double seconds_after(int64_t from, int64_t begin, int64_t end)
{
	begin = begin > from ? begin : from;
	return end > begin ? clock_seconds(end - begin) : 0;
}

/* The way through an epoch that took longest, as far as it is counted. */
struct path {
	int64_t at_ns;
	uint32_t saves; /* of the first rank, counted */
};

/* Adds the first rank's checkpoints that began before `until_ns`. */
static void add_stalls(struct decomposition *d, const struct rank_epoch *ep, int64_t until_ns,
		       struct path *p)
{
	for (; p->saves < ep->saves && ep->save[p->saves].begin_ns < until_ns; p->saves++) {
		int64_t begin = ep->save[p->saves].begin_ns;
		int64_t end = begin + ep->save[p->saves].stall_ns;

		d->critical_s[TIME_CHECKPOINT] += seconds_after(p->at_ns, begin, end);
		p->at_ns = p->at_ns > end ? p->at_ns : end;
	}
}

/* Adds seconds of a part, of which a share was late for want of a processor. */
static void add_late(double part_s[TIME_PARTS], enum time_part p, double s, uint16_t late)
{
	double share = late / 65535.0;

	part_s[p] += s * (1 - share);
	part_s[TIME_NO_CPU] += s * share;
}

/* Adds the step of the rank that came last; in_framework: its loop has costs. The path goes from
 * rank to rank at barriers, which ranks leave one after the other: what lies before where it stands
 * is in it already. */
static void add_critical(struct decomposition *d, const struct step_times *t, bool in_framework,
			 struct path *p)
{
	double waited = clock_seconds(t->got_ns - t->ask_ns),
	       kept = seconds_after(p->at_ns, t->ask_ns, t->got_ns);
	int64_t wait[WAIT_PARTS];

	wait_split_again(wait, t);
	for (int w = 0; w < WAIT_PARTS && waited > 0; w++)
		d->critical_s[TIME_WAIT + w] += clock_seconds(wait[w]) * kept / waited;
	/* between these the rank runs the training loop's own code, and little else */
	if (in_framework)
		d->critical_s[TIME_FRAMEWORK] +=
			seconds_after(p->at_ns, t->got_ns, t->compute_begin_ns) +
			seconds_after(p->at_ns, t->compute_end_ns, t->barrier_in_ns);
	add_late(d->critical_s, TIME_COMPUTE,
		 seconds_after(p->at_ns, t->compute_begin_ns, t->compute_end_ns), t->late_compute);
	add_late(d->critical_s, TIME_COLLECTIVE,
		 seconds_after(p->at_ns, t->barrier_in_ns, t->barrier_out_ns), t->late_barrier);
	p->at_ns = p->at_ns > t->barrier_out_ns ? p->at_ns : t->barrier_out_ns;
}

/* A rank that left the barrier before this step later than the path did: for want of a processor.
 */
static void add_late_start(struct decomposition *d, const struct step_times *before,
			   const struct step_times *t, struct path *p)
{
	int64_t late;
	double s;

	if (!before || p->at_ns == INT64_MIN)
		return;
	late = late_ns(before->late_barrier, before->barrier_out_ns - before->barrier_in_ns);
	s = fmin(clock_seconds(late), seconds_after(p->at_ns, p->at_ns, t->ask_ns));
	d->critical_s[TIME_NO_CPU] += s;
	p->at_ns += (int64_t)(s * 1e9);
}

/* A rank leaves the barrier late: first of what came after the last rank. */
static void add_barrier(struct decomposition *d, double skew, double after, uint16_t share)
{
	double late = (skew + after) * share / 65535.0, off = fmin(late, after);

	d->mean_s[TIME_COLLECTIVE] += after - off;
	d->mean_s[TIME_SKEW] += skew - (late - off);
	d->mean_s[TIME_NO_CPU] += late;
	d->late_barrier_s += late;
}

/* One step of all ranks; false when none made it. `late` has a place for each rank. */
static bool add_step(const struct result *r, uint32_t epoch, uint32_t block, uint64_t i,
		     struct decomposition *d, struct lateness *late, struct path *path)
{
	const struct step_times *last = NULL, *t;
	int64_t second = INT64_MIN, elsewhere = INT64_MIN;
	uint32_t at = 0;

	for (uint32_t k = 0; k < r->ranks; k++) {
		t = step_of(r, k, epoch, block, i);
		if (!t)
			continue;
		if (!last || t->barrier_in_ns > last->barrier_in_ns) {
			second = last ? last->barrier_in_ns : second;
			last = t;
			at = k;
		} else if (t->barrier_in_ns > second) {
			second = t->barrier_in_ns;
		}
	}
	if (!last)
		return false;
	add_stalls(d, &r->rank[result_present_rank(r)].epoch[epoch], last->barrier_in_ns, path);
	if (i > 0)
		add_late_start(d, step_of(r, at, epoch, block, i - 1), last, path);
	add_critical(d, last, r->rank[at].epoch[epoch].split.framework_loop_ns > 0, path);
	for (uint32_t k = 0; k < r->ranks; k++) {
		int64_t meet = last->barrier_in_ns;

		t = step_of(r, k, epoch, block, i);
		if (!t)
			continue;
		/* a rank that was stopped did not wait for the last one */
		meet = meet < t->barrier_out_ns ? meet : t->barrier_out_ns;
		if (late[k].node != late[at].node && t->barrier_in_ns > elsewhere)
			elsewhere = t->barrier_in_ns;
		add_barrier(d, clock_seconds(meet - t->barrier_in_ns),
			    clock_seconds(t->barrier_out_ns - meet), t->late_barrier);
	}
	if (second != INT64_MIN) {
		late[at].last++;
		late[at].behind_s += clock_seconds(last->barrier_in_ns - second);
	}
	if (elsewhere != INT64_MIN)
		late[at].node_behind_s += clock_seconds(last->barrier_in_ns - elsewhere);
	return true;
}

static void add_steps(const struct result *r, uint32_t from, uint32_t to, struct decomposition *d,
		      struct lateness *late)
{
	for (uint32_t e = from; e < to; e++) {
		uint32_t blocks = 0;
		struct path path = {.at_ns = INT64_MIN};

		for (uint32_t k = 0; k < r->ranks; k++)
			if (r->rank[k].epoch[e].blocks > blocks)
				blocks = r->rank[k].epoch[e].blocks;
		for (uint32_t b = 0; b < blocks; b++)
			for (uint64_t i = 0; add_step(r, e, b, i, d, late, &path); i++)
				d->common_steps++;
		add_stalls(d, &r->rank[result_present_rank(r)].epoch[e], INT64_MAX, &path);
	}
}

/* Without, or only, what was late for want of a processor. */
static double computed(const struct step_times *t, bool late)
{
	double s = clock_seconds(t->compute_end_ns - t->compute_begin_ns);
	double share = t->late_compute / 65535.0;

	return late ? s * share : s * (1 - share);
}

/* `late`: of TIME_COMPUTE what was late. */
static double rank_part(const struct result *r, uint32_t k, uint32_t from, uint32_t to,
			enum time_part p, bool late)
{
	double sum = 0;

	for (uint32_t e = from; e < to; e++) {
		const struct rank_epoch *ep = &r->rank[k].epoch[e];

		if (p >= TIME_WAIT && p <= TIME_WAIT_END)
			sum += clock_seconds(ep->split.wait_ns[p - TIME_WAIT]);
		if (p == TIME_FRAMEWORK)
			sum += clock_seconds(ep->split.framework_loop_ns);
		for (uint32_t b = 0; p == TIME_COMPUTE && b < ep->blocks; b++)
			for (uint64_t i = 0; i < ep->block[b].steps; i++)
				sum += computed(&ep->block[b].step[i], late);
	}
	return sum;
}

/* Training stood still for checkpoints. */
static double stalls_of(const struct rank_epoch *ep)
{
	double sum = 0;

	for (uint32_t i = 0; i < ep->saves; i++)
		sum += clock_seconds(ep->save[i].stall_ns);
	return sum;
}

/* The node with the ranks that are last most often, relative to their number. */
static void find_last_node(const struct result *r, struct decomposition *d,
			   const struct lateness *late)
{
	struct of_node {
		uint64_t last;
		double behind_s;
		uint32_t ranks;
	} * node;
	double most = 0;

	if (r->nodes < 2)
		return;
	node = xcalloc(r->nodes, sizeof(*node));
	for (uint32_t k = 0; k < r->ranks; k++) {
		node[late[k].node].last += late[k].last;
		node[late[k].node].behind_s += late[k].node_behind_s;
		node[late[k].node].ranks++;
	}
	for (uint32_t n = 0; n < r->nodes; n++) {
		double share = (double)node[n].last / (double)d->common_steps;
		double beyond = node[n].ranks ? share * r->ranks / node[n].ranks : 0;

		if (beyond <= most)
			continue;
		most = beyond;
		d->last_node = n;
		d->last_node_share = share;
		d->last_node_ranks = node[n].ranks;
		d->last_node_behind_s = node[n].behind_s / (double)node[n].last;
	}
	free(node);
}

/* The rank that is last most often, and what it has more of than the mean. */
static void find_last(const struct result *r, uint32_t from, uint32_t to, struct decomposition *d,
		      const struct lateness *late)
{
	uint32_t at = 0;
	double more = 0;

	d->last_part = TIME_OTHER;
	if (r->ranks < 2 || d->common_steps == 0)
		return;
	for (uint32_t k = 1; k < r->ranks; k++)
		at = late[k].last > late[at].last ? k : at;
	if (late[at].last == 0)
		return;
	d->last_rank = at;
	d->last_share = (double)late[at].last / (double)d->common_steps;
	d->last_behind_s = late[at].behind_s / (double)late[at].last;
	find_last_node(r, d, late);
	for (int p = TIME_COMPUTE; p <= TIME_WAIT_END; p++) {
		double extra = rank_part(r, at, from, to, (enum time_part)p, false) - d->mean_s[p];

		if (extra > more) {
			more = extra;
			d->last_part = (enum time_part)p;
		}
	}
}

static void add_split(struct decomposition *d, const struct epoch_split *s)
{
	for (int p = 0; p < WAIT_PARTS; p++)
		d->mean_s[TIME_WAIT + p] += clock_seconds(s->wait_ns[p]);
	d->mean_s[TIME_FRAMEWORK] += clock_seconds(s->framework_loop_ns);
	d->mean_s[TIME_NO_CPU] += clock_seconds(s->framework_late_ns);
	d->late_framework_s += clock_seconds(s->framework_late_ns);
	d->framework_loop_s += clock_seconds(s->framework_loop_ns);
	d->framework_step_s += clock_seconds(s->framework_step_ns);
	d->framework_start_s += clock_seconds(s->framework_start_ns);
	for (int k = 0; k < WORK_KINDS; k++)
		d->work_s[k] += clock_seconds(s->work_ns[k]);
}

static void fill_batches(struct decomposition *d, const struct epoch_split *all)
{
	double n = (double)all->batches, io, exposed;

	d->batches = all->batches;
	if (n > 0) {
		double mean = all->service_ns / n;
		double var = all->service_sq / n - mean * mean;

		d->service_mean_s = mean / 1e9;
		d->service_dev_s = sqrt(var > 0 ? var : 0) / 1e9;
		d->ready_mean = (double)all->ready / n;
	}
	if (all->waited)
		d->delivery_mean_s = all->delivery_ns / 1e9 / (double)all->waited;
	io = d->work_s[WORK_OPEN] + d->work_s[WORK_META] + d->work_s[WORK_DATA];
	exposed = clock_seconds(all->wait_ns[WAIT_OPEN] + all->wait_ns[WAIT_DATA]);
	d->hidden_io_s = io > exposed ? io - exposed : 0;
}

void decompose(const struct result *r, uint32_t from, uint32_t to, struct decomposition *d)
{
	struct lateness *late = xcalloc(r->ranks ? r->ranks : 1, sizeof(*late));
	struct epoch_split all = {0};
	double ranks;

	assert(from <= to && to <= r->epochs_begun);
	memset(d, 0, sizeof(*d));
	for (uint32_t k = 0; k < r->ranks; k++)
		d->ranks += !r->rank[k].lost;
	ranks = d->ranks ? d->ranks : 1;
	for (uint32_t e = from; e < to; e++) {
		int64_t first = INT64_MAX, last = INT64_MIN;

		for (uint32_t k = 0; k < r->ranks; k++) {
			const struct rank_epoch *ep = &r->rank[k].epoch[e];

			/* lost, or stopped before it began */
			if (ep->train_end_ns == 0)
				continue;
			d->wall_s += clock_seconds(ep->train_end_ns - ep->begin_ns) / ranks;
			first = ep->begin_ns < first ? ep->begin_ns : first;
			last = ep->train_end_ns > last ? ep->train_end_ns : last;
			add_split(d, &ep->split);
			epoch_split_merge(&all, &ep->split);
			d->mean_s[TIME_COMPUTE] += rank_part(r, k, e, e + 1, TIME_COMPUTE, false);
			d->late_compute_s += rank_part(r, k, e, e + 1, TIME_COMPUTE, true);
			d->mean_s[TIME_CHECKPOINT] += stalls_of(ep);
			for (uint32_t b = 0; b < ep->blocks; b++)
				d->steps += ep->block[b].steps;
		}
		d->critical_wall_s += last > first ? clock_seconds(last - first) : 0;
	}
	for (uint32_t p = 0; r->process && p < r->processes; p++)
		for (uint32_t k = 0; k < r->process[p].ranks; k++)
			late[r->process[p].first_rank + k].node = r->process[p].node;
	add_steps(r, from, to, d, late);
	fill_batches(d, &all);
	d->mean_s[TIME_NO_CPU] += d->late_compute_s;
	d->late_compute_s /= ranks;
	d->late_barrier_s /= ranks;
	d->late_framework_s /= ranks;
	d->framework_loop_s /= ranks;
	d->framework_step_s /= ranks;
	d->framework_start_s /= ranks;
	d->mean_s[TIME_OTHER] = d->wall_s;
	d->critical_s[TIME_OTHER] = d->critical_wall_s;
	for (int p = 0; p < TIME_OTHER; p++) {
		d->mean_s[p] /= ranks;
		d->mean_s[TIME_OTHER] -= d->mean_s[p];
		d->critical_s[TIME_OTHER] -= d->critical_s[p];
	}
	find_last(r, from, to, d, late);
	free(late);
}
