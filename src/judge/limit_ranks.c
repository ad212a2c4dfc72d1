/* Whether one host, one rank, or the meeting of ranks holds the run back. A rank is slow by its own
 * service: of equal ranks on one queue, one is always served last, and is not the cause. */
#include <math.h>

#include "judge/limit_view.h"

static const double RANK_SHARE = 0.4;    /* of the loss, by one rank's being behind */
static const double ALONE_SHARE = 0.5;   /* of its host's being behind, by the last rank's own */
static const double AS_SLOW = 0.7;       /* of the last rank's time for a sample: as slow as it */
static const double SLOWER = 2;          /* times what ranks of other hosts take for a sample */
static const double BY_ITSELF = 1.3;     /* times what others take: slow by its own service */
static const double COMPUTES = 1.1;      /* times what others compute for */
static const double BESIDE_QUEUE = 1.8;  /* the same, where all ranks share one saturated store */
static const double BARRIER_SHARE = 0.4; /* of the loss */
static const double BUSY_SHARE = 0.7;    /* of the workers' time: data, not the meeting, is short */

/* s that a rank takes for a batch, from begun to done, or for a sample; 0: not known. */
static double serving_time(const struct rank_result *k)
{
	double sum = 0;

	for (uint32_t i = 0; i < k->service.n; i++)
		sum += (double)k->service.ns[i] / 1e9;
	return k->service.n ? sum / k->service.n : (double)k->sample_ns / 1e9;
}

static double computing_time(const struct limit_view *v, uint32_t rank)
{
	double sum = 0;

	for (uint32_t e = 0; e < v->m->epochs; e++) {
		const struct rank_epoch *ep = &v->r->rank[rank].epoch[e];

		for (uint32_t b = 0; b < ep->blocks; b++)
			for (uint64_t i = 0; i < ep->block[b].steps; i++)
				sum += (double)(ep->block[b].step[i].compute_end_ns -
						ep->block[b].step[i].compute_begin_ns);
	}
	return sum / 1e9;
}

/* How many times longer `rank`, or the ranks of `host`, take for what they are late by than others
 * do; 0: not known. */
static double slowness(const struct limit_view *v, uint32_t rank, const struct host_facts *host)
{
	bool computing = v->d->last_part == TIME_COMPUTE;
	double here = 0, others = 0;
	uint32_t n_here = 0, n_others = 0;

	for (uint32_t k = 0; k < v->r->ranks_here; k++) {
		bool inside = host ? result_rank_host(v->r, k) == host : k == rank;
		double took;

		if (v->r->rank[k].lost)
			continue;
		took = computing ? computing_time(v, k) : serving_time(&v->r->rank[k]);
		if (!(took > 0))
			return 0;
		*(inside ? &here : &others) += took;
		*(inside ? &n_here : &n_others) += 1;
	}
	return n_here && n_others ? here / n_here / (others / n_others) : 0;
}

/* Whether what the last ones are behind by is their own doing, not the order of service, or the
 * moment at which they happened to begin. */
static bool slow_by_itself(const struct limit_view *v, uint32_t rank, const struct host_facts *host)
{
	double times = slowness(v, rank, host);

	if (v->d->last_part > TIME_WAIT_END || !(times > 0))
		return true;
	if (v->d->last_part == TIME_COMPUTE)
		return times >= COMPUTES;
	return times >= (v->stations.saturated >= 0 ? BESIDE_QUEUE : BY_ITSELF);
}

/* Whether another rank is the last one in another epoch. */
static bool roles_swap(const struct limit_view *v)
{
	for (uint32_t i = 0; i < v->m->epochs && i < v->r->judged.epochs; i++) {
		const struct decomposition *d = &v->r->judged.epoch[i].time;

		if (d->common_steps && d->last_rank != v->d->last_rank)
			return true;
	}
	return false;
}

/* Whether all ranks of the host that is behind read about as slowly as the one that is last most
 * often, and far more slowly than ranks of other hosts. They need not arrive together: ranks that
 * read ahead from one slow store keep the distance in time at which they happened to start. */
static bool host_reads_slowly(const struct limit_view *v)
{
	const struct host_facts *slow = result_node_host(v->r, v->d->last_node);
	double last = (double)v->r->rank[v->d->last_rank].sample_ns, here = INFINITY, others = 0;
	uint32_t ranks = 0;

	for (uint32_t k = 0; k < v->r->ranks_here; k++) {
		double took = (double)v->r->rank[k].sample_ns;

		if (v->r->rank[k].lost || k == v->d->last_rank)
			continue;
		if (result_rank_host(v->r, k) == slow) {
			here = fmin(here, took);
		} else {
			others += took;
			ranks++;
		}
	}
	return ranks > 0 && others > 0 && isfinite(here) && here >= AS_SLOW * last &&
	       here >= SLOWER * others / ranks;
}

double limit_lost_to_host(const struct limit_view *v)
{
	return v->d->last_node_behind_s * v->d->last_node_share * (double)v->d->common_steps;
}

double limit_lost_to_rank(const struct limit_view *v)
{
	return v->d->last_behind_s * v->d->last_share * (double)v->d->common_steps;
}

/* Of several hosts one that is behind nearly always, and not because of a single rank: such a rank
 * would be far behind the others of its host, too, and they would read faster. */
bool limit_at_host(struct limit_view *v)
{
	const struct decomposition *d = v->d;
	double of_ranks = (double)d->last_node_ranks / v->r->ranks;
	const struct host_facts *h;
	struct fact f;

	if (v->r->nodes < 2 || d->last_node_ranks < 2 || d->last_node_share < 0.75 ||
	    d->last_node_share < fmin(0.95, 1.5 * of_ranks) ||
	    limit_lost_to_host(v) < RANK_SHARE * v->loss)
		return false;
	if (d->last_share >= 0.75 * d->last_node_share &&
	    d->last_behind_s >= ALONE_SHARE * d->last_node_behind_s && !host_reads_slowly(v))
		return false;
	h = result_node_host(v->r, d->last_node);
	if (!slow_by_itself(v, d->last_rank, h))
		return false;
	f = FACT(LIMIT_SLOW_HOST, d->last_node_ranks, d->last_node_share, d->last_node_behind_s);
	f = fact_with(f, 0, h ? h->hostname : "?");
	limit_found(v, fact_with(f, 1, time_part_names[d->last_part]));
	return true;
}

bool limit_at_rank(struct limit_view *v)
{
	const struct decomposition *d = v->d;
	double often = fmax(0.6, fmin(0.75, 1.5 / v->r->ranks));
	struct fact f;

	if (v->r->ranks < 2 || d->last_share < often ||
	    limit_lost_to_rank(v) < RANK_SHARE * v->loss ||
	    !slow_by_itself(v, d->last_rank, NULL) || roles_swap(v))
		return false;
	f = FACT(LIMIT_SLOW_RANK, d->last_rank, d->last_share, d->last_behind_s);
	if (v->r->nodes > 1)
		f = fact_with(f, 0, result_rank_host(v->r, d->last_rank)->hostname);
	limit_found(v, fact_with(f, 1, time_part_names[d->last_part]));
	return true;
}

bool limit_at_barrier(struct limit_view *v)
{
	const struct decomposition *d = v->d;
	bool of_compute = v->skew_of_compute >= 0.5 * v->skew;
	double share = v->skew / d->wall_s;

	if (v->r->ranks < 2 || v->skew <= v->wait || v->skew < BARRIER_SHARE * v->loss)
		return false;
	/* ranks that wait for data are late by that, whoever they then wait for */
	if (!of_compute && (v->busy > BUSY_SHARE || v->stations.saturated >= 0))
		return false;
	limit_found(v, of_compute
			       ? FACT(LIMIT_BARRIER_COMPUTE, share, d->last_rank, d->last_share)
			       : FACT(LIMIT_BARRIER_BATCHES, share, d->last_rank, d->last_share));
	return true;
}
