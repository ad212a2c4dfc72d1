/* The measures of a run against each other: what was measured twice, or adds up by the way it is
 * measured. Who edits one of them and makes every file of figures again from it leaves the others
 * as they were. */
#include <math.h>
#include <string.h>

#include "checkpoint/checkpoint.h"
#include "dataset/order_proof.h"
#include "metric/step.h"
#include "loader/loader.h"
#include "readback/derivation.h"
#include "result/result.h"
#include "workload/time_draw.h"

#define PROVED_MOST 50000000u                             /* samples: a few tenths of a second */
static const double CLOCKS_NS = 1e8, CLOCKS_SHARE = 0.01; /* two clocks, read one after the other */
static const double WRITTEN_SHARE = 0.01; /* containers are written to in places twice */

struct check {
	struct derive *d;
	const struct result *r;
	uint32_t rank;
	size_t epoch;
};

static const char others[] = "other measures of the run";

#define SAME(c, stated, derived, what)                                                             \
	derive_near((c)->d, (double)(stated), (double)(derived), 0.5, others,                      \
		    "measures.bin, rank %u, epoch %zu: " what, (c)->rank, (c)->epoch + 1)

static bool in_order(const struct step_times *t)
{
	return t->ask_ns <= t->got_ns && t->got_ns <= t->compute_begin_ns &&
	       t->compute_begin_ns <= t->compute_end_ns && t->compute_end_ns <= t->barrier_in_ns &&
	       t->barrier_in_ns <= t->barrier_out_ns;
}

/* What was asked for, where each step asks for the same: within the rounding of the share. */
static bool as_asked(const struct step_times *t, double asked_ns)
{
	double all = (double)(t->compute_end_ns - t->compute_begin_ns);

	return fabs(all * (1 - t->over_compute / 65535.0) - asked_ns) <= all / 65535 + 2;
}

/* Each step begins when the one before it ended; the first of a phase behind what the framework's
 * code does at its beginning. */
static void check_steps(const struct check *c, const struct phase *p, const struct time_dist *dist)
{
	double asked_ns = time_dist_varies(dist) ? NAN : 1e9 * time_dist_mean(dist);
	bool costs = c->r->workload->costs != NULL;
	int64_t ask = p->begin_ns;

	for (uint64_t i = 0; i < p->steps; i++) {
		const struct step_times *t = &p->step[i];

		derive_holds(
			c->d,
			(t->ask_ns == ask || (i == 0 && costs && t->ask_ns > ask)) && in_order(t) &&
				t->barrier_out_ns <= p->end_ns,
			"measures.bin, rank %u, epoch %zu: the times of step %llu do not follow "
			"each other and those of the steps beside it.",
			c->rank, c->epoch + 1, (unsigned long long)(p->first_step + i + 1));
		if (asked_ns >= 0)
			derive_holds(c->d, as_asked(t, asked_ns),
				     "measures.bin, rank %u, epoch %zu: step %llu computed %.9g s, "
				     "which is not the computation that was asked for and what its "
				     "timer was late.",
				     c->rank, c->epoch + 1,
				     (unsigned long long)(p->first_step + i + 1),
				     (double)(t->compute_end_ns - t->compute_begin_ns) / 1e9);
		ask = t->barrier_out_ns;
	}
}

static void check_clocks(const struct check *c, int64_t begin_ns, int64_t end_ns,
			 int64_t begin_wall, int64_t end_wall)
{
	double took = (double)(end_ns - begin_ns);

	derive_near(c->d, (double)(end_wall - begin_wall) / 1e9, took / 1e9,
		    (CLOCKS_NS + CLOCKS_SHARE * fabs(took)) / 1e9, "its times of the other clock",
		    "measures.bin, rank %u, epoch %zu: a duration (s)", c->rank, c->epoch + 1);
}

/* What was added up of the steps of a phase, or of all blocks. */
struct sums {
	double wait_ns, service_us;
	uint64_t steps, samples;
};

static void add_phase(struct sums *s, const struct phase *p)
{
	for (uint64_t i = 0; i < p->steps; i++) {
		s->wait_ns += (double)(p->step[i].got_ns - p->step[i].ask_ns);
		s->service_us += p->step[i].service_us;
	}
	s->steps += p->steps;
	s->samples += p->samples;
}

static void check_split(const struct check *c, const struct sums *s,
			const struct epoch_split *split, const struct order_proof *delivered)
{
	double wait_ns = 0;

	for (int k = 0; k < WAIT_PARTS; k++)
		wait_ns += (double)split->wait_ns[k];
	SAME(c, wait_ns, s->wait_ns, "waits by their causes (ns)");
	SAME(c, split->batches, s->steps, "batches");
	SAME(c, delivered->count, s->samples, "samples of the proof");
	derive_near(c->d, split->service_ns / 1e3, s->service_us, 1.5 * (double)s->steps, others,
		    "measures.bin, rank %u, epoch %zu: time of workers for its batches (us)",
		    c->rank, c->epoch + 1);
	derive_at_most(c->d, (double)split->waited, (double)s->steps, 0, others,
		       "measures.bin, rank %u, epoch %zu: batches that were waited for", c->rank,
		       c->epoch + 1);
}

static void check_checkpoint(const struct check *c, const struct rank_epoch *ep,
			     const struct checkpoint_times *t, uint32_t number)
{
	uint64_t made = 0;
	bool async = c->r->workload->checkpoint.async;

	if (!t->done)
		return;
	for (uint32_t b = 0; b < ep->blocks; b++)
		made += ep->block[b].end_ns <= t->begin_ns ? ep->block[b].steps : 0;
	SAME(c, t->number, number, "the number of a checkpoint");
	check_clocks(c, t->begin_ns, t->end_ns, t->begin_wall_ns, t->end_wall_ns);
	derive_holds(c->d,
		     t->begin_ns <= t->end_ns && t->stat.total_ns <= t->end_ns - t->begin_ns &&
			     (async || t->end_ns - t->begin_ns <= t->stall_ns) &&
			     t->begin_ns >= ep->begin_ns && (async || t->end_ns <= ep->end_ns),
		     "measures.bin, rank %u, epoch %zu: the times of checkpoint %u contradict each "
		     "other.",
		     c->rank, c->epoch + 1, number);
	derive_holds(c->d,
		     t->io_before.rchar_bytes <= t->io_after.rchar_bytes &&
			     t->io_before.read_bytes <= t->io_after.read_bytes &&
			     t->io_before.write_bytes <= t->io_after.write_bytes &&
			     t->io_before.syscr <= t->io_after.syscr &&
			     (!t->disk_known || t->disk_before_bytes <= t->disk_after_bytes),
		     "measures.bin, rank %u, epoch %zu: a counter goes back in checkpoint %u.",
		     c->rank, c->epoch + 1, number);
	if (!async && c->r->trained)
		SAME(c, t->total_steps, made, "steps before a checkpoint");
}

/* DLIO's loader without samples leaves out the last batch of all ranks together: of one, a step. */
static bool ends_early(const struct result *r)
{
	return r->workload->compat.dlio && r->ranks == 1 &&
	       workload_loader(r->workload)->rule == RULE_NONE;
}

static void check_epoch(const struct check *c, const struct rank_epoch *ep)
{
	const struct workload *w = c->r->workload;
	struct sums blocks = {0}, eval = {0};
	int64_t at = ep->begin_ns;

	for (uint32_t b = 0; b < ep->blocks; b++) {
		const struct phase *p = &ep->block[b];

		SAME(c, p->number, b + 1, "the number of a block");
		SAME(c, p->first_step, blocks.steps, "the first step of a block");
		derive_holds(c->d, at <= p->begin_ns && p->begin_ns <= p->end_ns,
			     "measures.bin, rank %u, epoch %zu: block %u begins before what is "
			     "before it ended.",
			     c->rank, c->epoch + 1, b + 1);
		check_steps(c, p, &w->train.computation_time);
		check_clocks(c, p->begin_ns, p->end_ns, p->begin_wall_ns, p->end_wall_ns);
		add_phase(&blocks, p);
		at = p->end_ns;
	}
	if (ep->blocks)
		check_split(c, &blocks, &ep->split, &ep->delivered);
	if (ep->blocks && !ep->saves)
		SAME(c, ep->train_end_ns - ep->begin_ns, at - ep->begin_ns, "training (ns)");
	check_clocks(c, ep->begin_ns, ep->train_end_ns, ep->begin_wall_ns, ep->train_end_wall_ns);
	check_clocks(c, ep->begin_ns, ep->end_ns, ep->begin_wall_ns, ep->end_wall_ns);
	if (ep->has_eval) {
		check_steps(c, &ep->eval, &w->evaluation.eval_time);
		check_clocks(c, ep->eval.begin_ns, ep->eval.end_ns, ep->eval.begin_wall_ns,
			     ep->eval.end_wall_ns);
		add_phase(&eval, &ep->eval);
		check_split(c, &eval, &ep->eval_split, &ep->eval_delivered);
		derive_near(c->d, (double)ep->eval.steps, (double)c->r->eval_steps,
			    ends_early(c->r) ? 1.5 : 0.5, others,
			    "measures.bin, rank %u, epoch %zu: steps of the evaluation", c->rank,
			    c->epoch + 1);
	}
	derive_holds(c->d,
		     at <= ep->train_end_ns && ep->train_end_ns <= ep->end_ns &&
			     (!ep->has_eval || (ep->train_end_ns <= ep->eval.begin_ns &&
						ep->eval.end_ns <= ep->end_ns)),
		     "measures.bin, rank %u, epoch %zu: its phases do not lie within it.", c->rank,
		     c->epoch + 1);
	check_clocks(c, c->r->begin_ns, ep->begin_ns, c->r->begin_wall_ns, ep->begin_wall_ns);
	derive_holds(
		c->d,
		ep->end_wall_ns <= c->r->end_wall_ns && blocks.steps <= ep->steps_planned &&
			(c->r->evaluated || !ep->has_eval),
		"measures.bin, rank %u, epoch %zu: it ends after the run, or has more steps or "
		"evaluations than the run.",
		c->rank, c->epoch + 1);
	for (uint32_t i = 0; i < ep->saves; i++)
		check_checkpoint(c, ep, &ep->save[i], i + 1);
}

/* ---- all ranks ---- */

/* No rank leaves a barrier that another has not reached. */
static void check_barriers(const struct check *c, const struct rank_epoch *a,
			   const struct rank_epoch *b)
{
	for (uint32_t k = 0; k < a->blocks && k < b->blocks; k++)
		for (uint64_t i = 0; i < a->block[k].steps && i < b->block[k].steps; i++)
			derive_holds(
				c->d,
				a->block[k].step[i].barrier_in_ns <=
						b->block[k].step[i].barrier_out_ns &&
					b->block[k].step[i].barrier_in_ns <=
						a->block[k].step[i].barrier_out_ns,
				"measures.bin, epoch %zu: rank %u left the barrier of step %llu "
				"before all had reached it.",
				c->epoch + 1, c->rank,
				(unsigned long long)(a->block[k].first_step + i + 1));
}

static void check_usage(const struct check *c, const struct epoch_usage *u,
			const struct rank_epoch *ep)
{
	bool alone = c->r->processes <= 1 && c->r->workload->run.measure == MEASURE_ALL;

	if (alone && c->r->trained)
		derive_near(c->d, (double)u->cpu_train.cpu_ns, (double)u->cpu_ns,
			    CLOCKS_NS + 0.05 * (double)u->cpu_ns, others,
			    "measures.bin, epoch %zu: processor time of training (ns)",
			    c->epoch + 1);
	if (alone && ep->has_eval)
		SAME(c, u->cpu_eval_ns, u->cpu_eval.cpu_ns,
		     "processor time of the evaluation (ns)");
	if (c->r->trained)
		SAME(c, u->wall_ns, ep->train_end_ns - ep->begin_ns, "wall time of training (ns)");
	if (ep->has_eval)
		SAME(c, u->eval_wall_ns, ep->eval.end_ns - ep->eval.begin_ns,
		     "wall time of the evaluation (ns)");
}

/* An epoch of a recorded job may have a sample twice, and another not at all; so may the shards of
 * DALI's readers, all of which are the first with compat.dlio. */
static bool repeats_samples(const struct result *r, enum dataset_kind kind, uint64_t samples)
{
	const struct workload *w = r->workload;
	struct order o;

	if (w->reader.order == ORDER_RECORDED)
		return true;
	(kind == DATASET_EVAL ? order_init_evaluation : order_init)(
		&o, w, samples, r->ranks,
		(uint64_t)(kind == DATASET_EVAL ? w->reader.batch_size_eval : w->reader.batch_size),
		r->shuffle_seed, 1);
	return order_repeats(&o) > 0 || (o.one_shard && r->ranks > 1);
}

/* All samples were delivered, and each once: then it is known what their proof is. */
static void check_proof(const struct check *c, const struct order_proof *all,
			enum dataset_kind kind, enum order_kept kept)
{
	uint64_t n = c->r->dataset ? dataset_samples(c->r->dataset, kind) : 0;
	struct order_proof want = {0};

	/* which numbers samples of files of different length have is not known here */
	if (c->r->workload && workload_files_differ(c->r->workload))
		return;
	if (kept != ORDER_KEPT || n == 0 || all->count != n || n > PROVED_MOST ||
	    repeats_samples(c->r, kind, n))
		return;
	order_proof_range(&want, 0, n);
	derive_holds(c->d, all->sum_a == want.sum_a && all->sum_b == want.sum_b,
		     "measures.bin, epoch %zu: the proof of its samples is not that of all %llu "
		     "samples.",
		     c->epoch + 1, (unsigned long long)n);
}

static void check_ranks(struct check *c)
{
	const struct result *r = c->r;
	struct order_proof train = {0}, eval = {0};
	bool own_order = false;

	for (c->rank = 0; c->rank < r->ranks; c->rank++) {
		const struct rank_epoch *ep = &r->rank[c->rank].epoch[c->epoch];

		if (r->rank[c->rank].lost)
			return;
		check_epoch(c, ep);
		order_proof_merge(&train, &ep->delivered);
		order_proof_merge(&eval, &ep->eval_delivered);
		own_order = own_order || ep->accounted || ep->eval_accounted;
		if (c->rank && r->processes <= 1)
			check_barriers(c, &r->rank[0].epoch[c->epoch], ep);
	}
	c->rank = 0;
	if (!r->usage)
		return;
	check_usage(c, &r->usage[c->epoch], &r->rank[0].epoch[c->epoch]);
	if (r->dropped_samples || own_order)
		return;
	check_proof(c, &train, DATASET_TRAIN, r->usage[c->epoch].order_kept);
	check_proof(c, &eval, DATASET_EVAL, r->usage[c->epoch].eval_order_kept);
}

/* ---- what a rank keeps of all epochs ---- */

/* Of every stride-th step. */
static void check_service(const struct check *c, const struct rank_result *rank)
{
	const struct service_times *s = &rank->service;
	uint64_t steps = 0, kept = 0;
	bool same = true;

	for (uint32_t e = 0; e < c->r->epochs_begun; e++)
		for (uint32_t b = 0; b < rank->epoch[e].blocks; b++)
			for (uint64_t i = 0; i < rank->epoch[e].block[b].steps; i++, steps++) {
				const struct step_times *t = &rank->epoch[e].block[b].step[i];

				if (s->stride == 0 || steps % s->stride)
					continue;
				same = same && kept < s->n &&
				       (t->service_us == UINT32_MAX ||
					fabs((double)s->ns[kept] / 1e3 - t->service_us) <= 1.5);
				kept++;
			}
	derive_holds(c->d, same && kept == s->n && steps == s->seen,
		     "measures.bin, rank %u: the times that its workers took for batches are not "
		     "those of its steps.",
		     c->rank);
}

static void check_slow(const struct check *c, const struct rank_result *rank)
{
	const struct slow_samples *s = &rank->slow;
	int64_t least = INT64_MAX;
	bool within = true;

	for (uint32_t i = 0; i < s->n; i++) {
		const struct slow_sample *one = &s->kept[i];

		least = one->ns < least ? one->ns : least;
		within = within && one->ns >= 0 && one->begin_ns >= rank->epoch[0].begin_ns &&
			 one->begin_ns + one->ns <=
				 rank->epoch[c->r->epochs_begun - 1].end_ns + (int64_t)CLOCKS_NS;
	}
	derive_holds(c->d, within && (s->n < SLOW_SAMPLES_KEPT || s->least_ns == least),
		     "measures.bin, rank %u: its slowest samples were not read within its epochs.",
		     c->rank);
}

static void check_rank(const struct check *c)
{
	const struct rank_result *rank = &c->r->rank[c->rank];
	const struct loader_ops *loader = loader_find(c->r->workload->reader.data_loader);
	uint32_t workers;
	uint64_t batches;

	if (rank->lost || c->r->epochs_begun == 0 || !c->r->trained)
		return;
	check_service(c, rank);
	check_slow(c, rank);
	derive_holds(c->d, rank->train_busy_ns <= rank->worker_busy_ns,
		     "measures.bin, rank %u: its workers were busy for longer in training than in "
		     "all.",
		     c->rank);
	if (!loader)
		return;
	loader->window(c->r->workload, &workers, &batches);
	derive_holds(c->d, rank->workers == workers && rank->prefetch_batches == batches,
		     "measures.bin, rank %u: its %u workers read %llu batches ahead, but the "
		     "configuration asks for %u and %llu.",
		     c->rank, rank->workers, (unsigned long long)rank->prefetch_batches, workers,
		     (unsigned long long)batches);
}

/* ---- requests ---- */

static void check_latencies(struct derive *d, const char *of, const struct io_stat *io, int k)
{
	const struct hist *h = &io->kind[k].latency_ns;
	double counted = 0, sized = 0, most = 0;
	size_t low = HIST_BUCKETS, high = 0;

	for (size_t b = 0; b < HIST_BUCKETS; b++) {
		counted += h->count[b];
		if (h->count[b]) {
			low = low == HIST_BUCKETS ? b : low;
			high = b;
		}
	}
	for (int c = 0; c < IO_CLASSES; c++) {
		const struct io_latency *l = io_stat_sized(io, k, c);
		double n = 0;

		for (size_t b = 0; l && b < IO_CLASS_BUCKETS; b++)
			n += l->count[b];
		if (l) {
			derive_near(d, (double)l->total, n, 0.5, others,
				    "measures.bin, %s: requests (%s, %s)", of, io_kind_names[k],
				    io_class_names[c]);
			sized += (double)l->total;
			most = fmax(most, (double)l->max_ns);
		}
	}
	derive_near(d, (double)io->kind[k].requests, counted, 0.5, "their latencies",
		    "measures.bin, %s: requests (%s)", of, io_kind_names[k]);
	derive_near(d, (double)h->total, counted, 0.5, "their latencies",
		    "measures.bin, %s: latencies (%s)", of, io_kind_names[k]);
	derive_near(d, (double)io->kind[k].busy_ns, h->sum, 1 + 1e-9 * h->sum, "their latencies",
		    "measures.bin, %s: time of requests (%s, ns)", of, io_kind_names[k]);
	if (counted > 0)
		derive_holds(
			d,
			hist_bucket_of(h->min) == low && hist_bucket_of(h->max) == high &&
				sized <= (double)h->total &&
				(sized < (double)h->total ? most <= (double)h->max
							  : (sized <= 0 || most == (double)h->max)),
			"measures.bin, %s: the least and the longest latency (%s) are not those "
			"of its requests.",
			of, io_kind_names[k]);
}

static void check_io(struct derive *d, const char *of, const struct io_stat *io)
{
	for (int k = 0; io && k < IO_KINDS; k++)
		check_latencies(d, of, io, k);
}

static void check_requests(struct derive *d, const struct result *r)
{
	struct requested all = {.known = true};
	char of[64];

	for (uint32_t k = 0; k < r->ranks; k++) {
		const struct rank_result *rank = &r->rank[k];
		struct requested train = {.known = true};
		bool counts = r->workload->run.measure == MEASURE_ALL, known = true;
		double written = 0;

		if (rank->lost)
			return;
		for (uint32_t e = 0; e < r->epochs_begun; e++) {
			const struct rank_epoch *ep = &rank->epoch[e];

			known = known && ep->train_requested.known == counts &&
				(!ep->eval_requested.known || counts); /* of no step: none */
			train.known = train.known && ep->train_requested.known;
			train.asked_bytes += ep->train_requested.asked_bytes;
			train.returned_bytes += ep->train_requested.returned_bytes;
			all.known = all.known && (!ep->has_eval || ep->eval_requested.known);
			all.asked_bytes += ep->eval_requested.asked_bytes;
			all.returned_bytes += ep->eval_requested.returned_bytes;
			for (uint32_t i = 0; i < ep->saves; i++)
				written += (double)ep->save[i].stat.file_bytes;
		}
		derive_holds(d, !r->trained || known,
			     "measures.bin, rank %u: whether its requests were counted is not what "
			     "run.measure says.",
			     k);
		snprintf(of, sizeof(of), "training of rank %u", k);
		check_io(d, of, &rank->train_io);
		if (train.known && r->trained) {
			derive_near(d, (double)io_stat_asked(&rank->train_io),
				    (double)train.asked_bytes, 0.5, "its epochs",
				    "measures.bin, %s: bytes that were asked for", of);
			derive_near(d, (double)io_stat_returned(&rank->train_io),
				    (double)train.returned_bytes, 0.5, "its epochs",
				    "measures.bin, %s: bytes that were returned", of);
		}
		snprintf(of, sizeof(of), "checkpoints of rank %u", k);
		check_io(d, of, rank->save_io);
		check_io(d, of, rank->load_io);
		if (rank->save_io)
			derive_near(d, (double)rank->save_io->kind[IO_WRITE].returned_bytes,
				    written, WRITTEN_SHARE * written + 4096, "their files",
				    "measures.bin, %s: bytes that were written", of);
	}
	check_io(d, "evaluation", r->eval_io);
	if (!r->eval_io || !all.known)
		return;
	derive_near(d, (double)io_stat_asked(r->eval_io), (double)all.asked_bytes, 0.5,
		    "its epochs", "measures.bin, evaluation: bytes that were asked for");
	derive_near(d, (double)io_stat_returned(r->eval_io), (double)all.returned_bytes, 0.5,
		    "its epochs", "measures.bin, evaluation: bytes that were returned");
}

/* A checkpoint of all ranks together has the bytes and files that each was planned to have. */
static void check_saved(struct check *c)
{
	const struct result *r = c->r;
	const struct checkpoint_totals *all = &r->checkpoint_totals;

	for (uint32_t i = 0; i < r->rank[0].epoch[c->epoch].saves; i++) {
		double bytes = 0, files = 0;
		bool done = true;

		for (uint32_t k = 0; k < r->ranks; k++) {
			const struct rank_epoch *ep = &r->rank[k].epoch[c->epoch];

			done = done && i < ep->saves && ep->save[i].done && !r->rank[k].lost;
			bytes += done ? (double)ep->save[i].stat.payload_bytes : 0;
			files += done ? (double)ep->save[i].stat.files : 0;
		}
		if (!done)
			continue;
		SAME(c, bytes, all->total_bytes, "bytes of a checkpoint");
		SAME(c, files, all->files * checkpoint_parts(r->workload), "files of a checkpoint");
	}
}

/* What no server can have been asked. Of a part, requests that were under way when it ended are
 * counted in two of them. */
static const char *impossible(const struct server_use *u)
{
	const struct server_counts *n = &u->whole;

	if (n->failed > server_requests(n))
		return "more requests failed than were made";
	if (n->answers > server_tries(n))
		return "there are more answers than requests and repetitions";
	if (n->body_sent > n->wire_sent || n->body_received > n->wire_received)
		return "bodies have more bytes than all that was sent or received";
	if (n->first_ns > n->last_ns)
		return "the first bytes of answers came after the last ones";
	if (u->first_max_ns > n->first_ns)
		return "the longest wait for a first byte is longer than all of them";
	if (n->clumped + n->beside_clump > n->answers)
		return "more answers waited than there are";
	return NULL;
}

static void check_servers(struct derive *d, const struct result *r)
{
	for (uint32_t i = 0; i < r->servers.n; i++) {
		const struct server_use *u = &r->servers.use[i];
		const uint64_t *part = (const uint64_t *)&u->timed,
			       *all = (const uint64_t *)&u->whole;
		const char *why = impossible(u);
		bool within = true;

		derive_holds(d, !why, "measures.bin, server %.60s: %s.", u->address,
			     why ? why : "");
		for (size_t k = 0; k < sizeof(u->whole) / sizeof(*all); k++)
			within = within && part[k] <= all[k];
		derive_holds(d, within,
			     "measures.bin, server %.60s: more was counted in the timed part than "
			     "in all.",
			     u->address);
	}
}

void derive_measures(struct audit *a, size_t i, const struct result *r)
{
	struct derive d = derive_begin(a, i, "figures", "parts",
				       "measures of the run against each other: steps, blocks, "
				       "epochs, samples, requests, servers and checkpoints");
	struct check c = {.d = &d, .r = r};

	if (r->rank && r->status != RUN_FAILED)
		derive_holds(&d,
			     r->trained == r->workload->workflow.train &&
				     (!r->trained || r->dataset) &&
				     (!r->evaluated || r->workload->workflow.evaluation) &&
				     (!r->generated || r->workload->workflow.generate_data) &&
				     (!r->trained || r->status != RUN_COMPLETE ||
				      r->epochs_done == r->epochs_begun),
			     "measures.bin: training, evaluation or generation is not what the "
			     "configuration asks for.");
	if (r->trained && r->workload->reader.sample_shuffle != SHUFFLE_RANDOM &&
	    r->workload->reader.file_shuffle != SHUFFLE_RANDOM)
		derive_near(&d, (double)r->shuffle_seed, (double)r->workload->train.seed, 0.5,
			    "train.seed", "measures.bin: the seed of the order");
	for (c.epoch = 0; r->rank && c.epoch < r->epochs_done; c.epoch++) {
		check_ranks(&c);
		if (r->checkpointed)
			check_saved(&c);
	}
	if (r->rank && r->status == RUN_COMPLETE) {
		for (c.rank = 0; c.rank < r->ranks; c.rank++)
			check_rank(&c);
		check_requests(&d, r);
	}
	if (r->status == RUN_COMPLETE)
		check_servers(&d, r);
	if (!r->rank || r->status != RUN_COMPLETE)
		derive_unchecked(&d, "the run did not come to its end, or no rank began");
	derive_by_digest(&d, "what was measured once: the machine, generating and looking at the "
			     "dataset, memory, processors, and how requests are spread over time");
}
