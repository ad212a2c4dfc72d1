/* Whether the machine that emulates the accelerators was itself the limit. */
#include <math.h>

#include "judge/cpu_loss.h"
#include "judge/limit_io.h"
#include "judge/verdict.h"

static const double CPU_BUSY_SHARE = 0.90;
static const double WORKER_BUSY_SHARE = 0.90;
static const double WORKER_CPU_SHARE = 0.80;
static const double MEMORY_SHARE = 0.90;
static const double LOST_WARN = 0.05;    /* of the time of a phase, without a processor */
static const double STOOD_WARN = 0.01;   /* the same, by standing still */
static const double STEAL_WARN = 0.10;   /* of the processors, by the hypervisor */
static const double BARRIER_WARN = 0.01; /* of a step, for the barrier's own cost */

double verdict_cpus(const struct result *r)
{
	double all = 0;

	if (!r->process)
		return result_usable_cpus(&r->host);
	for (uint32_t n = 0; n < r->nodes; n++) {
		const struct host_facts *h = result_node_host(r, n);
		double here = 0;

		/* a launcher may have bound each process to CPUs of its own */
		for (uint32_t p = 0; h && p < r->processes; p++)
			here += r->process[p].node == n ? result_usable_cpus(h) : 0;
		all += h && here > h->cpu_count ? h->cpu_count : here;
	}
	return all;
}

/* Over all nodes. */
static double memory_gib_of(const struct result *r)
{
	double all = 0;

	if (!r->process)
		return r->host.memory_gib;
	for (uint32_t n = 0; n < r->nodes; n++) {
		const struct host_facts *h = result_node_host(r, n);

		all += h ? h->memory_gib : 0;
	}
	return all;
}

/* The reader threads have no time left, and spend it on the CPU. A fast store cannot help them. */
static bool judge_workers(struct verdict *v, const struct result *r)
{
	double wall = 0, cpu = 0, busy = 0, workers = 0, share;

	for (uint32_t i = 0; r->usage && i < r->epochs_begun; i++) {
		wall += (double)r->usage[i].wall_ns;
		cpu += fmax(0, (double)r->usage[i].cpu_ns - result_framework_ns(r, i, false));
	}
	for (uint32_t k = 0; r->rank && k < r->ranks; k++) {
		if (r->rank[k].lost)
			continue;
		workers += r->rank[k].workers ? r->rank[k].workers : 1;
		busy += (double)r->rank[k].train_busy_ns;
	}
	if (!(wall > 0) || !(busy > 0))
		return false;
	share = busy / (wall * workers);
	if (share <= WORKER_BUSY_SHARE || cpu / busy <= WORKER_CPU_SHARE)
		return false;
	verdict_found(v, VERDICT_WARN,
		      FACT(CLIENT_WORKERS, workers, fmin(1, share), fmin(1, cpu / busy),
			   WORKER_CPU_SHARE));
	return true;
}

/* Where the processors are short: what of it may be decryption. */
static void judge_tls(struct verdict *v, const struct result *r)
{
	double each = result_cpu_per_gb(r);

	for (uint32_t i = 0; i < r->servers.n; i++) {
		if (!r->servers.use[i].tls || r->servers.use[i].timed.wire_received == 0)
			continue;
		verdict_found(v, VERDICT_WARN, FACT(CLIENT_TLS, each));
		return;
	}
}

/* Preprocessing is a wait here, and work of processors in a real job. */
static void judge_preprocessing(struct verdict *v, const struct result *r, double cpus)
{
	const struct decomposition *d = &r->judged.time;
	double needed = d->wall_s > 0 ? d->work_s[WORK_PREPROCESS] / d->wall_s : 0;

	if (cpus > 0 && needed > cpus)
		verdict_found(v, VERDICT_WARN, FACT(CLIENT_PREPROCESS, needed, cpus));
}

/* Threads without a processor: nothing is said of little, except that it could not be measured. */
static void judge_waits(struct verdict *v, const struct result *r, bool eval)
{
	enum verdict_level lost;
	struct cpu_loss l;
	struct fact taker;
	double limit;
	bool stood;

	cpu_loss_of(r, eval, &l);
	if (!l.measured)
		return;
	stood = l.stopped_s + l.frozen_s > 0;
	if (!l.known && !eval)
		verdict_found(v, VERDICT_UNKNOWN, FACT(CLIENT_NOT_TOLD));
	if (l.steal_share >= STEAL_WARN)
		verdict_found(v, VERDICT_WARN, FACT(CLIENT_STEAL, l.steal_share, eval, STEAL_WARN));
	if (l.lost_share < LOST_WARN && !(stood && l.lost_share >= STOOD_WARN)) {
		if (l.known && l.lost_share >= STOOD_WARN)
			verdict_found(v, VERDICT_PASS,
				      FACT(CLIENT_WAITED, 100 * l.lost_share, eval));
		return;
	}
	/* that its own threads wait for each other is for the limit and the use of processors */
	lost = l.taker == CPU_TAKEN_BY_SELF ? VERDICT_PASS
	       : cpu_loss_spoils(&l)        ? VERDICT_FAIL
					    : VERDICT_WARN;
	limit = lost == VERDICT_PASS   ? NAN
		: lost == VERDICT_FAIL ? CPU_LOSS_SPOILS
		: stood                ? STOOD_WARN
				       : LOST_WARN;
	verdict_found(v, lost,
		      FACT(CLIENT_LOST, 100 * l.lost_share,
			   l.known && l.waited_s > 0 && !stood ? l.waited_s : NAN, l.wanted_share,
			   eval, 100 * limit));
	if (cpu_loss_fact(r, &l, &taker))
		verdict_found(v, lost, taker);
	if (cpu_loss_spoils(&l))
		verdict_found(v, lost, FACT(CLIENT_SPOILT));
}

static void judge_io_limit(struct verdict *v, const struct result *r)
{
	struct fact f;
	bool reached;

	if (io_group_fact(r, &reached, &f))
		verdict_found(v, reached ? VERDICT_WARN : VERDICT_PASS, f);
}

/* In training the steps themselves have to show it: threads that are still awake meet faster. */
static void judge_barrier(struct verdict *v, const struct result *r)
{
	const struct decomposition *d = &r->judged.time;
	double share = result_barrier_share(r), step = result_step_s(r), seen;

	if (!(share > BARRIER_WARN))
		return;
	seen = (d->mean_s[TIME_COLLECTIVE] + d->late_barrier_s) / (double)d->common_steps / step;
	if (!(seen > BARRIER_WARN))
		return;
	verdict_found(v, VERDICT_WARN,
		      fact_with(FACT(CLIENT_BARRIER, r->barrier.median_s, 100 * share,
				     100 * BARRIER_WARN),
				0, result_barrier_way(&r->barrier)));
}

static void judge_client(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	const struct host_facts *h = &r->host;
	double cpus = verdict_cpus(r);
	double busy = 0, own = 0, memory = memory_gib_of(r) * 1073741824.0;
	bool known = false;

	(void)m;
	for (uint32_t i = 0; r->usage && i < r->epochs_done; i++) {
		const struct epoch_usage *u = &r->usage[i];

		if (u->wall_ns <= 0 || !(cpus > 0))
			continue;
		known = true;
		busy = fmax(busy, (double)u->cpu_ns / (double)u->wall_ns / cpus);
		own = fmax(own, ((double)u->cpu_ns - result_framework_ns(r, i, false)) /
					(double)u->wall_ns / cpus);
	}
	if (known)
		verdict_found(v, VERDICT_PASS,
			      FACT(CLIENT_BUSY, busy, cpus,
				   r->nodes > 1 ? (double)r->nodes : (double)NAN,
				   r->nodes <= 1 && cpus < h->cpu_count ? (double)h->cpu_count
									: (double)NAN,
				   (double)r->peak_rss_bytes, memory));
	else
		verdict_found(v, VERDICT_UNKNOWN,
			      FACT(CLIENT_NO_EPOCH, (double)r->peak_rss_bytes, memory));
	if (busy > own + 0.005)
		verdict_found(v, VERDICT_PASS, FACT(CLIENT_FRAMEWORK, busy - own));
	if (own > CPU_BUSY_SHARE)
		verdict_found(v, VERDICT_WARN, FACT(CLIENT_CPU, own, CPU_BUSY_SHARE));
	if (judge_workers(v, r) || own > CPU_BUSY_SHARE)
		judge_tls(v, r);
	judge_waits(v, r, false);
	judge_waits(v, r, true);
	if (r->workload->run.measure == MEASURE_NONE)
		verdict_found(v, VERDICT_UNKNOWN, FACT(CLIENT_NOT_MEASURED));
	judge_io_limit(v, r);
	judge_preprocessing(v, r, cpus);
	judge_barrier(v, r);
	if (memory > 0 && (double)r->peak_rss_bytes > MEMORY_SHARE * memory)
		verdict_found(
			v, VERDICT_WARN,
			FACT(CLIENT_MEMORY, (double)r->peak_rss_bytes / memory, MEMORY_SHARE));
}

extern const struct verdict_ops verdict_client;
const struct verdict_ops verdict_client = {
	.name = "client",
	.help = "Was this machine, not the storage, the bottleneck?",
	.about = ABOUT_MACHINE,
	.worst_first = true,
	.needs = VERDICT_OF_TRAINING,
	.takes = TAKES_CLIENT,
	.judge = judge_client,
};
