/* Whether the machine that emulates the accelerators was itself the limit. */
#include <math.h>

#include "base/str.h"
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

/* Over all nodes: processors that the processes may use. */
static double cpus_of(const struct result *r)
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
static void judge_workers(struct verdict *v, const struct result *r)
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
		return;
	share = busy / (wall * workers);
	if (share <= WORKER_BUSY_SHARE || cpu / busy <= WORKER_CPU_SHARE)
		return;
	verdict_worsen(v, VERDICT_WARN);
	verdict_say(v,
		    " The workers (%.0f) were busy %.0f %% of the time, %.0f %% of that on the "
		    "CPU: they spend their time computing (checksums, decoding, copying), not "
		    "waiting for the store.",
		    workers, fmin(100, 100 * share), fmin(100, 100 * cpu / busy));
}

/* Threads without a processor: nothing is said of little, except that it could not be measured. */
static void judge_waits(struct verdict *v, const struct result *r, bool eval)
{
	const char *phase = eval ? "evaluation" : "training";
	struct cpu_loss l;
	struct fact taker;
	char who[256];
	bool stood;

	cpu_loss_of(r, eval, &l);
	if (!l.measured)
		return;
	stood = l.stopped_s + l.frozen_s > 0;
	if (!l.known && !eval) {
		verdict_worsen(v, VERDICT_UNKNOWN);
		verdict_say(v, " This kernel does not say how long threads waited for a processor "
			       "(/proc/self/schedstat).");
	}
	if (l.steal_share >= STEAL_WARN) {
		verdict_worsen(v, VERDICT_WARN);
		verdict_say(v,
			    " In %s, the hypervisor took %.0f %% of the processors' time "
			    "(steal).",
			    phase, 100 * l.steal_share);
	}
	if (l.lost_share < LOST_WARN && !(stood && l.lost_share >= STOOD_WARN)) {
		if (l.known && l.lost_share >= STOOD_WARN)
			verdict_say(v, " Waiting for a processor took %.1f %% of the %s time.",
				    100 * l.lost_share, phase);
		return;
	}
	/* that its own threads wait for each other is for the limit and the use of processors */
	if (l.taker != CPU_TAKEN_BY_SELF)
		verdict_worsen(v, cpu_loss_spoils(&l) ? VERDICT_FAIL : VERDICT_WARN);
	verdict_say(v, " In %s, threads had no processor for %.1f %% of the time", phase,
		    100 * l.lost_share);
	if (l.known && l.waited_s > 0 && !stood)
		verdict_say(v,
			    " (they waited %.3g s, %.0f %% of the time in which they could have "
			    "run)",
			    l.waited_s, 100 * l.wanted_share);
	verdict_say(v, ".");
	if (cpu_loss_fact(r, &l, &taker))
		verdict_say(v, " %s", words_of(&taker, WORDS_LONG, who, sizeof(who)));
	if (cpu_loss_spoils(&l))
		verdict_say(v, " The result describes this machine, not the storage.");
}

static void judge_io_limit(struct verdict *v, const struct result *r)
{
	struct fact f;
	char text[256];
	bool reached;

	if (!io_group_fact(r, &reached, &f))
		return;
	if (reached)
		verdict_worsen(v, VERDICT_WARN);
	verdict_say(v, " %s", words_of(&f, WORDS_LONG, text, sizeof(text)));
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
	verdict_worsen(v, VERDICT_WARN);
	verdict_say(
		v,
		" The barrier that ends a step takes %.3g ms by itself (%s), %.1f %% of a step: "
		"with fewer processes, each with more accelerators, it takes less.",
		1e3 * r->barrier.median_s, result_barrier_way(&r->barrier), 100 * share);
}

static void judge_client(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	const struct host_facts *h = &r->host;
	double cpus = cpus_of(r);
	double busy = 0, own = 0, memory = memory_gib_of(r) * 1073741824.0;
	bool known = false;
	char a[32], b[32];

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
	if (known) {
		verdict_say(v, "%.0f %% of %.3g cores", 100 * busy, cpus);
		if (r->nodes > 1)
			verdict_say(v, " on %u hosts", r->nodes);
		else if (cpus < h->cpu_count)
			verdict_say(v, " (of %d; this process is limited to these)", h->cpu_count);
		verdict_say(v, " were busy in the busiest epoch");
	} else {
		v->level = VERDICT_UNKNOWN;
		verdict_say(v, "No epoch was completed, so CPU use is unknown");
	}
	verdict_say(v, "; peak memory use was %s of %s.",
		    str_bytes((double)r->peak_rss_bytes, a, sizeof(a)),
		    str_bytes(memory, b, sizeof(b)));
	if (busy > own + 0.005)
		verdict_say(v,
			    " %.0f %% of the cores is the framework's own code "
			    "(framework.costs), which a real run spends, too.",
			    100 * (busy - own));
	if (own > CPU_BUSY_SHARE) {
		verdict_worsen(v, VERDICT_WARN);
		verdict_say(v, " The CPU of this machine, not the storage, may be the bottleneck.");
	}
	judge_waits(v, r, false);
	judge_waits(v, r, true);
	if (r->workload->run.measure == MEASURE_NONE) {
		verdict_worsen(v, VERDICT_UNKNOWN);
		verdict_say(v, " Waits for a processor were not measured (run.measure=none).");
	}
	judge_io_limit(v, r);
	judge_workers(v, r);
	judge_barrier(v, r);
	if (memory > 0 && (double)r->peak_rss_bytes > MEMORY_SHARE * memory) {
		verdict_worsen(v, VERDICT_WARN);
		verdict_say(v, " Memory was nearly full: the results may include swapping.");
	}
}

extern const struct verdict_ops verdict_client;
const struct verdict_ops verdict_client = {
	.name = "client",
	.help = "Was this machine, not the storage, the bottleneck?",
	.about = ABOUT_MACHINE,
	.needs = VERDICT_OF_TRAINING,
	.takes = TAKES_CLIENT,
	.judge = judge_client,
};
