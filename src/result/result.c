/* A result: what its parts say together, and its end. */
#include "result/result.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Blocks of phases that never began are released too. */
static uint32_t steps_held(const struct rank_epoch *ep)
{
	return ep->blocks > ep->block_capacity ? ep->blocks : ep->block_capacity;
}

static void release_rank(struct rank_result *k, uint32_t epochs)
{
	for (uint32_t i = 0; k->epoch && i < epochs; i++) {
		struct rank_epoch *ep = &k->epoch[i];

		for (uint32_t b = 0; ep->block && b < steps_held(ep); b++)
			free(ep->block[b].shared ? NULL : ep->block[b].step);
		free(ep->save);
		free(ep->load);
		free(ep->block);
		free(ep->eval.step);
	}
	free(k->epoch);
	free(k->save_io);
	free(k->load_io);
}

static void release_usage(struct epoch_usage *u)
{
	for (size_t i = 0; i < u->meminfo_count; i++) {
		free(u->meminfo[i].key);
		free(u->meminfo[i].value);
	}
	free(u->meminfo);
}

void result_release(struct result *r)
{
	for (uint32_t k = 0; r->rank && k < r->ranks_here; k++)
		release_rank(&r->rank[k], r->epochs_planned);
	for (uint32_t i = 0; r->usage && i < r->epochs_planned; i++)
		release_usage(&r->usage[i]);
	for (uint32_t p = 0; r->process && p < r->processes; p++) {
		for (uint32_t i = 0; r->process[p].meminfo && i < r->epochs_planned; i++)
			host_pairs_free(r->process[p].meminfo[i].pairs,
					r->process[p].meminfo[i].count);
		free(r->process[p].meminfo);
		host_facts_release(&r->process[p].host);
	}
	judgement_release(&r->judged);
	if (!r->probe.hung)
		probe_release(&r->probe);
	free(r->process);
	free(r->rank);
	free(r->eval_io);
	free(r->usage);
	servers_release(&r->servers);
	host_facts_release(&r->host);
	system_facts_release(&r->system);
	series_release(r->series);
	free(r->host_source);
	r->host_source = NULL;
	free(r->checkpoint_source);
	r->checkpoint_source = NULL;
	trace_destroy(r->trace);
	*r = (struct result){0};
}

bool result_caches(const struct result *r)
{
	const struct workload *w = r->workload;

	return w->reader.cache_folder && w->reader.cache_folder[0] &&
	       workload_loader(w)->deal != DEAL_NONE;
}

struct fetched result_fetched(const struct result *r, uint32_t epoch, bool eval)
{
	struct fetched all = {0};

	for (uint32_t k = 0; r->rank && k < r->ranks; k++) {
		const struct rank_epoch *ep = &r->rank[k].epoch[epoch];

		if (!r->rank[k].lost)
			fetched_merge(&all, eval ? &ep->eval_fetched : &ep->train_fetched);
	}
	return all;
}

uint32_t result_present_rank(const struct result *r)
{
	for (uint32_t k = 0; r->rank && k < r->ranks_here; k++)
		if (!r->rank[k].lost)
			return k;
	return 0;
}

uint32_t result_workers(const struct result *r)
{
	return r->rank[result_present_rank(r)].workers;
}

uint64_t result_window(const struct result *r)
{
	return r->rank[result_present_rank(r)].prefetch_batches;
}

/* The process that sent the facts of a node; NULL when it was this one, or none did. */
static const struct result_process *process_of_node(const struct result *r, uint32_t node)
{
	for (uint32_t p = 0; p < r->processes; p++)
		if (r->process[p].node == node && r->process[p].host.hostname[0])
			return &r->process[p];
	return NULL;
}

/* The process that holds this result, and sent nothing. */
static const struct result_process *own_process(const struct result *r)
{
	for (uint32_t p = 0; p < r->processes; p++)
		if (!r->process[p].lost && r->process[p].own)
			return &r->process[p];
	return NULL;
}

static uint32_t node_of(const struct result *r, uint32_t rank)
{
	for (uint32_t p = 0; p < r->processes; p++)
		if (rank - r->process[p].first_rank < r->process[p].ranks)
			return r->process[p].node;
	return 0;
}

const struct host_facts *result_node_host(const struct result *r, uint32_t node)
{
	const struct result_process *me = own_process(r), *p;

	if (!me || me->node == node)
		return &r->host;
	p = process_of_node(r, node);
	return p ? &p->host : NULL;
}

const struct host_facts *result_rank_host(const struct result *r, uint32_t rank)
{
	const struct host_facts *h;

	assert(rank < r->ranks);
	h = result_node_host(r, node_of(r, rank));

	return h ? h : &r->host;
}

void result_rank_memory(const struct result *r, uint32_t rank, uint32_t epoch,
			const struct sysinfo_pair **pairs, size_t *count)
{
	const struct result_process *me = own_process(r), *p = process_of_node(r, node_of(r, rank));

	assert(rank < r->ranks && epoch < r->epochs_planned);
	*pairs = r->usage[epoch].meminfo;
	*count = r->usage[epoch].meminfo_count;
	if (me && me->node != node_of(r, rank) && p && p->meminfo) {
		*pairs = p->meminfo[epoch].pairs;
		*count = p->meminfo[epoch].count;
	}
}

double result_usable_cpus(const struct host_facts *h)
{
	return h->usable_cpus > 0 ? h->usable_cpus : h->cpu_count;
}

double result_framework_ns(const struct result *r, uint32_t epoch, bool eval)
{
	double sum = 0;

	for (uint32_t k = 0; r->rank && k < r->ranks; k++) {
		const struct rank_epoch *ep = &r->rank[k].epoch[epoch];

		if (!r->rank[k].lost)
			sum += (double)(eval ? ep->eval_framework_ns : ep->framework_ns);
	}
	return sum;
}

const char *result_sample_file(const struct result *r, uint64_t sample, char *path, size_t size)
{
	const struct dataset *d = r->dataset;
	uint64_t file = d && d->samples_per_file ? sample / d->samples_per_file : 0;
	struct err e;

	/* the measures of a result that was edited may be of more files than its workload has */
	if (!d || file >= d->name_total[DATASET_TRAIN] ||
	    dataset_path(d, DATASET_TRAIN, file, path, size, &e) < 0)
		path[0] = 0;
	return path;
}

const char *result_ledger_place(const struct result *r, enum ledger_key key, char *out,
				size_t out_size)
{
	const struct host_io_source *s = r->host_source;

	out[0] = '\0';
	if (!s)
		return out;
	if (key == LEDGER_DEVICE)
		block_list_names(&s->tree.whole, out, out_size);
	else if (key == LEDGER_DISKS)
		block_list_names(&s->tree.lower, out, out_size);
	else if (key == LEDGER_NETWORK)
		snprintf(out, out_size, "%s", s->interfaces);
	else if (key == LEDGER_CLIENT || key == LEDGER_FETCHED)
		snprintf(out, out_size, "%s", s->client.type);
	return out;
}

double result_step_s(const struct result *r)
{
	const struct decomposition *d = &r->judged.time;
	double all = d->wall_s - d->mean_s[TIME_CHECKPOINT];

	return d->common_steps && all > 0 ? all / (double)d->common_steps : NAN;
}

double result_barrier_share(const struct result *r)
{
	return r->barrier.count ? r->barrier.median_s / result_step_s(r) : NAN;
}

const char *result_barrier_way(const struct barrier_cost *b)
{
	static const char *const names[] = {[BARRIER_THREADS] = "threads",
					    [BARRIER_SOCKETS] = "sockets",
					    [BARRIER_MPI] = "mpi"};

	return names[b->way];
}

static double request_ns(const struct io_stat *io)
{
	double ns = 0;

	for (int k = 0; io && k < IO_KINDS; k++)
		ns += (double)io->kind[k].busy_ns;
	return ns;
}

double result_again_share(const struct result *r)
{
	struct server_counts n = servers_sum(&r->servers, true);
	double ns = 0;

	if (r->workload->run.measure == MEASURE_NONE || server_requests(&n) == 0)
		return NAN;
	for (uint32_t k = 0; r->rank && r->trained && k < r->ranks; k++)
		ns += request_ns(&r->rank[k].train_io) + request_ns(r->rank[k].save_io) +
		      request_ns(r->rank[k].load_io);
	if (!r->trained)
		ns += request_ns(r->eval_io);
	if (!(ns > 0))
		return NAN;
	/* one request of a reader may be several at once to servers; and what is written is under
	 * way before an answer is waited for: the lesser share is beyond doubt */
	ns = fmax(ns, (double)n.again_ns + (double)n.last_ns);
	return (double)n.again_ns / ns;
}

double result_cpu_per_gb(const struct result *r)
{
	struct server_counts n = servers_sum(&r->servers, true);
	double ns = 0;

	for (uint32_t i = 0; r->usage && i < r->epochs_begun; i++)
		ns += (double)(r->trained ? r->usage[i].cpu_ns : r->usage[i].cpu_eval_ns);
	return n.wire_received && ns > 0 ? ns / (double)n.wire_received : NAN;
}
