/* A training in virtual time, from the command line, over a model of reading:
 *
 *     virtual_tool WORKLOAD RANKS STEPS MODEL [KEY=VALUE]...
 *
 * STEPS of an epoch at most; 0: all. "+STEPS" makes a dataset of that many. MODEL is
 * "batch:SECONDS" (of a worker's batch, or run of one), "sample:SECONDS" (of each sample), or
 * "order:SECONDS,SECONDS,..." (a sample of that number takes that of its number modulo how many
 * there are). "SPREAD" after an "x" makes batches of ranks and workers differ: 1 to 1 + SPREAD.
 * Writes the deliveries, a line each (rank epoch step batch worker ask got end of computation), to
 * the file $VIRTUAL_STEPS names, and what came out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/rng.h"
#include "predict/virtual_run.h"
#include "workload/workload.h"

#define TIMES 64

static double seconds[TIMES];
static unsigned times;
static double spread;
static FILE *steps;

static void take(void *arg, const struct modelled_read *r)
{
	const struct read_model *m = arg;
	double s = seconds[r->sample == UINT64_MAX ? 0 : r->sample % times];

	(void)m;
	if (spread > 0)
		s *= 1 +
		     spread * (double)rng_word(rng_key(r->rank, r->worker, r->batch), 0) * 0x1p-64;
	virtual_sleep_until(virtual_now_ns() + (int64_t)(s * 1e9));
}

static void note(void *arg, const struct virtual_step *s)
{
	(void)arg;
	fprintf(steps, "%u %u %llu %llu %u %lld %lld %lld\n", s->rank, s->epoch,
		(unsigned long long)s->step, (unsigned long long)s->batch, s->worker,
		(long long)s->ask_ns, (long long)s->got_ns, (long long)s->compute_end_ns);
}

static bool parse_model(const char *text, struct read_model *m)
{
	const char *at = strchr(text, ':');
	char *end;

	if (!at)
		return false;
	m->whole = strncmp(text, "batch:", 6) == 0;
	do {
		seconds[times++] = strtod(at + 1, &end);
		at = end;
	} while (*at == ',' && times < TIMES);
	if (*at == 'x')
		spread = strtod(at + 1, &end);
	return *end == '\0';
}

static int fail(const struct err *e)
{
	fprintf(stderr, "virtual_tool: %s\n", e->text);
	return 1;
}

int main(int argc, char **argv)
{
	struct workload_request req = {.workload = argc > 4 ? argv[1] : NULL, .inspect = true};
	struct read_model model = {.read = take};
	struct virtual_training t = {.model = &model};
	const char *path = getenv("VIRTUAL_STEPS");
	struct virtual_outcome out;
	struct dataset d;
	struct workload w;
	struct err e;
	struct rusage usage;

	if (argc < 5 || !parse_model(argv[4], &model)) {
		fprintf(stderr, "usage: virtual_tool WORKLOAD RANKS STEPS MODEL [KEY=VALUE]...\n");
		return 2;
	}
	model.arg = &model;
	t.ranks = (uint32_t)strtoul(argv[2], NULL, 10);
	t.steps = strtoull(argv[3], NULL, 10);
	req.ranks = t.ranks;
	req.overrides = (const char *const *)argv + 5;
	req.override_count = (size_t)argc - 5;
	if (workload_load(&w, &req, &e) < 0)
		return fail(&e);
	if (argv[3][0] == '+')
		virtual_steps(&w, t.ranks, t.steps);
	if (dataset_init_typical(&d, &w, &e) < 0)
		return fail(&e);
	t.workload = &w;
	t.dataset = &d;
	t.costs = w.costs;
	steps = path ? fopen(path, "w") : NULL;
	if (steps)
		t.step = note;
	if (virtual_training_run(&t, &out, &e) < 0)
		return fail(&e);
	if (steps)
		fclose(steps);
	getrusage(RUSAGE_SELF, &usage);
	printf("{\"au\": %.6f, \"au_dlio\": %.6f, \"wall_s\": %.9f, \"wait_s\": %.9f, "
	       "\"compute_s\": %.9f, \"steps\": %llu, \"samples\": %llu, \"took_s\": %.3f, "
	       "\"switches\": %llu, \"deadlines\": %llu, \"fibers\": %u, \"stack\": %zu, "
	       "\"bound_bytes\": %llu, \"peak_bytes\": %ld}\n",
	       out.au, out.au_dlio, out.wall_s, out.wait_s, out.compute_s,
	       (unsigned long long)out.steps, (unsigned long long)out.samples, out.took_s,
	       (unsigned long long)out.stats.switches, (unsigned long long)out.stats.deadlines,
	       out.stats.fibers_most, out.stats.stack_most,
	       (unsigned long long)virtual_training_bytes(&t, &e), usage.ru_maxrss * 1024);
	dataset_release(&d);
	workload_release(&w);
	return 0;
}
