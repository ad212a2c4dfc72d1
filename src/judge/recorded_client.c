/* The least level of `client`, by the counters of processors in result.json. */
#include "judge/recorded.h"
#include "judge/recorded_json.h"

static const double MEMORY_SHARE = 0.90;
static const double BUSY_SHARE = 0.90;
static const double WORKER_CPU_SHARE = 0.80;
static const double LOST_WARN = 0.05;
static const double LOST_FAIL = 0.25;
static const double STOOD_WARN = 0.01;
static const double STEAL_WARN = 0.10;
static const double PERIODS_SHARE = 0.1;
static const double OTHERS_SHARE = 0.25;
static const double OTHERS_TO_OWN = 0.4;
/* The counters of the worst process are recorded, those of the others are not. */
static const double MARGIN = 1.1;

struct counters {
	double room, own, busy, steal, stood, frozen, periods, throttled, worst;
	double framework; /* of own: the framework's own code */
};

static double or_zero(double v)
{
	return isnan(v) ? 0 : v;
}

static struct counters counters_of(const json_t *epochs)
{
	struct counters c = {0};

	for (size_t i = 0; i < json_array_size(epochs); i++) {
		const json_t *e = json_array_get(epochs, i), *p = part(e, "processors");
		double room = figure(e, "wall_s") * figure(p, "allowed"), cpu;

		c.room += or_zero(room);
		c.own += or_zero(figure(e, "cpu_s"));
		c.busy += or_zero(figure(p, "busy_s"));
		c.steal += or_zero(figure(p, "steal_s"));
		c.stood += or_zero(figure(p, "stood_still_s"));
		c.frozen += or_zero(figure(p, "thread_stood_still_s"));
		c.periods += or_zero(figure(p, "quota_periods"));
		c.throttled += or_zero(figure(p, "quota_throttled_periods"));
		/* the framework's own code is no work of this program */
		cpu = figure(e, "cpu_s") - or_zero(figure(e, "framework_cpu_s"));
		c.worst = cpu / figure(e, "wall_s") > c.worst ? cpu / figure(e, "wall_s") : c.worst;
		c.framework += or_zero(figure(e, "framework_cpu_s"));
	}
	return c;
}

/* Whether somebody else than the threads of the run had the processors. */
static bool taken_by_others(const struct counters *c)
{
	double others = c->busy - c->own;

	return c->stood > 0 || c->frozen > 0 ||
	       (c->throttled > 0 && c->throttled >= PERIODS_SHARE * c->periods * MARGIN) ||
	       (others >= MARGIN * OTHERS_SHARE * c->room &&
		others >= MARGIN * OTHERS_TO_OWN * c->own);
}

static void look_at_processors(const json_t *result, struct verdict *v)
{
	const json_t *d = part(part(result, "training"), "decomposition");
	struct counters c = counters_of(epochs_of(result));
	double lost = fmax(figure(part(d, "mean_over_ranks_percent"), "no_processor"),
			   figure(part(d, "critical_path_percent"), "no_processor")) /
		      100;

	lost = fmax(lost, c.stood / figure(d, "wall_s"));
	if (c.room > 0 && c.steal > MARGIN * STEAL_WARN * c.room) {
		verdict_worsen(v, VERDICT_WARN);
		verdict_say(v, "the hypervisor took %.3g %% of the processors. ",
			    100 * c.steal / c.room);
	}
	if (!(lost > 1.001 * LOST_WARN) && !(c.stood + c.frozen > 0 && lost > MARGIN * STOOD_WARN))
		return;
	/* of several processes the worst alone is recorded */
	if (!part(result, "hosts") && !taken_by_others(&c))
		return;
	if (part(result, "hosts"))
		return;
	verdict_worsen(v, lost > 1.001 * LOST_FAIL ? VERDICT_FAIL : VERDICT_WARN);
	verdict_say(v, "threads had no processor for %.4g %% of the training time. ", 100 * lost);
}

static void look_at_load(const json_t *result, struct verdict *v)
{
	const json_t *ranks = part(result, "ranks");
	double usable = figure(part(result, "environment"), "usable_cpus");
	struct counters c = counters_of(epochs_of(result));
	double busy = 0, room = 0;

	if (c.worst / usable > MARGIN * BUSY_SHARE) {
		verdict_worsen(v, VERDICT_WARN);
		verdict_say(v, "%.4g of %.4g processors were busy. ", c.worst, usable);
	}
	for (size_t k = 0; k < json_array_size(ranks); k++) {
		const json_t *one = json_array_get(ranks, k);

		busy += figure(one, "worker_busy_s");
		room += figure(one, "wall_s") * fmax(1, figure(one, "workers"));
	}
	if (busy > 1.05 * BUSY_SHARE * room &&
	    c.own - c.framework > 1.05 * WORKER_CPU_SHARE * busy) {
		verdict_worsen(v, VERDICT_WARN);
		verdict_say(v, "the workers were busy for %.4g of %.4g s, with %.4g s of CPU time.",
			    busy, room, c.own);
	}
}

void recorded_client(const json_t *result, const struct workload *w, struct verdict *v)
{
	double peak = figure(part(result, "memory"), "peak_rss_bytes");
	double memory = figure(part(result, "environment"), "memory_bytes");

	(void)w;
	look_at_processors(result, v);
	/* of several hosts, the sums of their processors and memory are not recorded */
	if (part(result, "hosts"))
		return;
	look_at_load(result, v);
	if (!(peak > 1.001 * MEMORY_SHARE * memory))
		return;
	verdict_worsen(v, VERDICT_WARN);
	verdict_say(v, "peak memory use was %.10g of %.10g bytes.", peak, memory);
}
