/* Views of a result that rows of the table of fields are of. Each is made where its object is
 * written: what it holds is needed nowhere else. */
#include "result/fields_view.h"

#include <math.h>

#include "base/alloc.h"

const char *const work_names[WORK_KINDS] = {"open",       "metadata",  "data",      "decode",
					    "preprocess", "transport", "framework", "no_processor"};
const char *const result_status_names[] = {
	[RUN_COMPLETE] = "complete", [RUN_INTERRUPTED] = "interrupted", [RUN_FAILED] = "failed"};
const char *const ledger_states[] = {
	[LEDGER_AGREES] = "agrees", [LEDGER_EXPLAINED] = "explained", [LEDGER_FLAGGED] = "flagged"};
const char *const sizes_names[] = {[SIZES_UNKNOWN] = NULL,
				   [SIZES_EXACT] = "layout",
				   [SIZES_SEEN] = "files",
				   [SIZES_LIKELY] = "estimate"};

double seconds(int64_t ns)
{
	return (double)ns / 1e9;
}

double per(uint64_t sum, uint64_t n)
{
	return n ? (double)sum / (double)n : 0;
}

double part_of(double part, double whole, double scale)
{
	return whole > 0 ? part * scale : 0;
}

double a_second(uint64_t n, const struct probe_point *p)
{
	return (double)n / (p->seconds > 0 ? p->seconds : 1);
}

const struct io_sum *training_view(const struct result *r, void *room)
{
	struct io_sum *v = room;

	io_stat_init(&v->io);
	for (uint32_t k = 0; k < r->ranks; k++)
		io_stat_merge(&v->io, &r->rank[k].train_io);
	return v;
}

const struct io_sum *evaluation_view(const struct result *r, void *room)
{
	struct io_sum *v = room;

	io_stat_init(&v->io);
	if (r->eval_io)
		io_stat_merge(&v->io, r->eval_io);
	return v;
}

const struct servers_at *servers_view(const struct result *r, void *room)
{
	struct servers_at *v = room;

	*v = (struct servers_at){r, servers_sum(&r->servers, false),
				 servers_sum(&r->servers, true)};
	return v;
}

const struct epoch_at *epoch_view(const struct result *r, const struct run_metrics *m, size_t i,
				  void *room)
{
	struct epoch_at *v = room;

	*v = (struct epoch_at){(uint32_t)i, &m->epoch[i], &r->usage[i], &r->judged.epoch[i]};
	return v;
}

static double rank_measure(const struct rank_epoch_metrics *k, enum rank_measure what)
{
	switch (what) {
	case RANK_AU:
		return k->train_valid ? k->train_au : NAN;
	case RANK_RATE:
		return k->train_valid ? k->train_throughput : NAN;
	case RANK_WHOLE:
		return k->whole_au;
	case RANK_WAIT:
		return k->exposed_wait_s;
	case RANK_BARRIER:
		return k->barrier_wait_s;
	default:
		return k->wall_s;
	}
}

const struct over_ranks *over_ranks_view(const struct result *r, uint32_t epoch, void *room)
{
	AUTO_FREE double *v = xcalloc(r->ranks, RANK_MEASURES * sizeof(*v));
	struct over_ranks *out = room;

	for (uint32_t k = 0; k < r->ranks; k++) {
		struct rank_epoch_metrics one;

		metrics_rank_epoch(r, k, epoch, &one);
		for (int i = 0; i < RANK_MEASURES; i++)
			v[(size_t)i * r->ranks + k] =
				r->rank[k].lost ? NAN : rank_measure(&one, (enum rank_measure)i);
	}
	for (int i = 0; i < RANK_MEASURES; i++)
		out->of[i] = series_stat_of(v + (size_t)i * r->ranks, r->ranks);
	return out;
}

const struct processors_at *processors_view(const struct processors *p, uint32_t process,
					    void *room)
{
	const struct processor_group *g = processors_throttled(p);
	struct processors_at *v = room;

	if (!g && p->groups)
		g = &p->group[0];
	*v = (struct processors_at){p, g, process};
	return v;
}

const struct io_at *io_view(const struct io_stat *io, size_t kind, void *room)
{
	struct io_at *v = room;

	*v = (struct io_at){io, (enum io_kind)kind};
	return v;
}

const struct io_latency *sized_view(const struct io_at *io, size_t size_class)
{
	const struct io_latency *l = io_stat_sized(io->io, io->kind, (enum io_class)size_class);

	return l && l->total > 0 ? l : NULL;
}

const struct checkpoint_at *checkpoint_view(const struct result *r, void *room)
{
	struct checkpoint_at *v = room;

	if (!r->trained)
		return v;
	checkpoint_cost(r, &v->stall, &v->au, &v->without);
	for (uint32_t k = 0; k < r->ranks; k++)
		v->drain = fmax(v->drain, seconds(r->rank[k].drain_ns));
	return v;
}

const struct saves_at *saves_view(const struct result *r, bool load, void *room)
{
	struct saves_at *v = room;

	v->load = load;
	checkpoint_series(r, load, &v->duration, &v->rate);
	io_stat_init(&v->io);
	for (uint32_t k = 0; k < r->ranks; k++)
		if (load ? r->rank[k].load_io : r->rank[k].save_io)
			io_stat_merge(&v->io, load ? r->rank[k].load_io : r->rank[k].save_io);
	return v;
}

/* Finds the checkpoint `i` of all epochs; its number in `*count` when there are fewer. */
static bool find_saved(const struct result *r, bool load, size_t i, size_t *count,
		       struct checkpoint_measure *out)
{
	size_t n = 0;

	for (uint32_t e = 0; e < r->epochs_begun; e++)
		for (uint32_t c = 0; checkpoint_measure_of(r, e, c, load, out); c++)
			if (n++ == i)
				return true;
	*count = n;
	return false;
}

size_t saves_count(const struct result *r, bool load)
{
	struct checkpoint_measure unused;
	size_t n = 0;

	find_saved(r, load, SIZE_MAX, &n, &unused);
	return n;
}

const struct saved_at *saved_view(const struct result *r, const struct saves_at *of, size_t i,
				  void *room)
{
	struct saved_at *v = room;
	size_t unused;

	v->load = of->load;
	v->async = r->workload->checkpoint.async && r->trained && !of->load;
	return find_saved(r, of->load, i, &unused, &v->c) ? v : NULL;
}

const struct trace_at *trace_view(const struct result *r, void *room)
{
	struct trace_at *v = room;

	trace_count(r->trace, &v->kept, &v->dropped);
	return v;
}

const struct rank_at *rank_view(const struct result *r, const struct run_metrics *m, size_t rank,
				void *room)
{
	struct rank_at *v = room;

	v->of = &r->rank[rank];
	for (uint32_t i = 0; i < m->epochs && !v->of->lost; i++) {
		struct rank_epoch_metrics one;

		metrics_rank_epoch(r, (uint32_t)rank, i, &one);
		v->payload += one.payload_bytes;
		v->samples += one.samples;
		v->compute += one.compute_s - one.compute_late_s;
		v->late += one.compute_late_s;
		v->wall += one.wall_s;
		v->wait += one.exposed_wait_s;
		v->barrier += one.barrier_wait_s;
	}
	for (int i = 0; i < IO_KINDS; i++)
		v->requests += v->of->train_io.kind[i].requests;
	return v;
}

const struct host_at *host_view(const struct result *r, size_t node, void *room)
{
	struct host_at *v = room;

	*v = (struct host_at){.node = (uint32_t)node, .facts = result_node_host(r, (uint32_t)node)};
	for (uint32_t p = 0; p < r->processes && !v->first; p++)
		if (r->process[p].node == v->node)
			v->first = &r->process[p];
	return v;
}

const struct supply *need_view(const struct result *r, const struct run_metrics *m, void *room)
{
	supply_find(r, m, room);
	return room;
}

const struct residency *cache_look(const struct epoch_usage *u)
{
	return u->cache_start.known ? &u->cache_start : &u->cache_end;
}

bool cache_looked(const struct epoch_usage *u)
{
	return cache_look(u)->known;
}

bool cache_of_hosts(const struct result *r, const struct epoch_usage *u)
{
	const struct residency *c = cache_look(u);

	return c->known && c->hosts > 1 && r->process && c->process < r->processes;
}

const char *page_cache_why(const struct epoch_usage *u)
{
	if (!cache_looked(u))
		return u->cache_start.why[0] ? u->cache_start.why : NULL;
	if (u->evicted && !u->cache_found.known && u->cache_found.why[0])
		return u->cache_found.why;
	if (!u->cache_start.known && u->cache_start.why[0])
		return u->cache_start.why;
	return u->cache_end.known ? "" : u->cache_end.why;
}

bool changed_once(const struct steadiness *c)
{
	return c->change != CHANGE_NONE && c->change != CHANGE_ALTERNATE;
}

bool rank_has_costs(const struct rank_result *k)
{
	return !k->lost && (k->framework_ns > 0 || k->framework_beyond_ns > 0);
}

const char *node_hostname(const struct result *r, uint32_t node)
{
	const struct host_facts *h = result_node_host(r, node);

	return h ? h->hostname : NULL;
}

const char *checked_by(const struct presence_result *p)
{
	if (!p->note[0])
		return NULL;
	return p->how == PRESENCE_MANIFEST  ? "manifest"
	       : p->how == PRESENCE_ASSUMED ? "nothing"
	       : p->how == PRESENCE_LISTED  ? "indexes"
					    : "sizes";
}
