/* A training in virtual time, from the command line, over a model of reading:
 *
 *     virtual_tool WORKLOAD RANKS STEPS MODEL [KEY=VALUE]...
 *
 * STEPS of an epoch at most; 0: all. "+STEPS" makes a dataset of that many. MODEL is KIND:SECONDS,
 * what reading a sample takes, KIND being "sample", or "batch" where workers read their batches, or
 * runs of them, at once. With KIND:SECONDS/RATE a file's bytes take their time in addition, at RATE
 * bytes/s, "sample" alone. With KIND:SECONDSxSPREAD reads of ranks and workers differ: 1 to
 * 1 + SPREAD times. KIND:SECONDS@SERVERS: so many reads of all ranks at once, others wait in turn.
 *
 * $VIRTUAL_TIMES names a file of times that reads and steps took in a run, which are taken instead:
 * lines "r RANK WORKER NS", in the order of the worker's reads, and "c RANK NS", of its steps.
 *
 * Prints what came out. The file that $VIRTUAL_STEPS names gets a line a step: rank epoch step
 * batch worker ask got compute_end done; that of $VIRTUAL_READS a line a read: rank worker sample.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/rng.h"
#include "predict/virtual_run.h"
#include "workload/workload.h"

static struct {
	double seconds, rate, spread;
	unsigned servers, busy;
	struct virtual_waiters line;
	struct dataset d;
	FILE *steps, *reads;
} tool;

/* Times of one reader, or of one rank's steps, in order. */
struct times {
	int64_t *ns;
	size_t n, used;
};
#define READERS_MAX 64
#define RANKS_MAX 1024
static struct times read_times[RANKS_MAX][READERS_MAX], step_times[RANKS_MAX];

static bool next_time(struct times *t, int64_t *ns)
{
	if (t->used == t->n)
		return false;
	*ns = t->ns[t->used++];
	return true;
}

static void load_times(const char *path)
{
	FILE *f = fopen(path, "r");
	unsigned rank, worker;
	long long ns;
	char line[128];

	while (f && fgets(line, sizeof(line), f)) {
		struct times *t = NULL;

		if (sscanf(line, "r %u %u %lld", &rank, &worker, &ns) == 3 && rank < RANKS_MAX &&
		    worker < READERS_MAX)
			t = &read_times[rank][worker];
		else if (sscanf(line, "c %u %lld", &rank, &ns) == 2 && rank < RANKS_MAX)
			t = &step_times[rank];
		if (!t)
			continue;
		t->ns = realloc(t->ns, (t->n + 1) * sizeof(*t->ns));
		if (t->ns)
			t->ns[t->n++] = ns;
	}
	if (f)
		fclose(f);
}

static int64_t told_compute(void *arg, uint32_t rank, uint32_t epoch, uint64_t step)
{
	int64_t ns = 0;

	(void)arg;
	(void)epoch;
	(void)step;
	if (rank < RANKS_MAX)
		next_time(&step_times[rank], &ns);
	return ns;
}

static double bytes_of(const struct modelled_read *r)
{
	uint64_t file = r->sample / tool.d.samples_per_file;

	return (double)dataset_file_bytes(&tool.d, DATASET_TRAIN, file) /
	       (double)tool.d.samples_per_file;
}

static void take(void *arg, const struct modelled_read *r)
{
	double s = tool.seconds * r->samples;
	int64_t ns;

	(void)arg;
	if (tool.reads)
		fprintf(tool.reads, "%u %u %llu\n", r->rank, r->worker,
			(unsigned long long)r->sample);
	if (r->rank < RANKS_MAX && r->worker < READERS_MAX &&
	    next_time(&read_times[r->rank][r->worker], &ns)) {
		virtual_sleep_until(virtual_now_ns() + ns);
		return;
	}
	if (tool.rate > 0)
		s += bytes_of(r) / tool.rate;
	if (tool.spread > 0)
		s *= 1 + tool.spread * 0x1p-64 *
				 (double)rng_word(rng_key(r->rank, r->worker, r->batch), 0);
	if (tool.servers && tool.busy == tool.servers)
		virtual_wait(&tool.line);
	else
		tool.busy++;
	virtual_sleep_until(virtual_now_ns() + (int64_t)(s * 1e9));
	/* who waits has the place of the one who leaves */
	if (tool.line.first)
		virtual_wake(&tool.line, 1);
	else
		tool.busy--;
}

/* Index files are read in one request. */
static void work(void *arg, const struct modelled_read *r, enum modelled_work what)
{
	(void)arg;
	(void)r;
	if (what == MODEL_INDEX)
		virtual_sleep_until(virtual_now_ns() + (int64_t)(tool.seconds * 1e9));
}

static void note(void *arg, const struct virtual_step *s)
{
	(void)arg;
	fprintf(tool.steps, "%u %u %llu %llu %u %lld %lld %lld %lld\n", s->rank, s->epoch,
		(unsigned long long)s->step, (unsigned long long)s->batch, s->worker,
		(long long)s->ask_ns, (long long)s->got_ns, (long long)s->compute_end_ns,
		(long long)s->done_ns);
}

static bool parse_model(const char *text, struct read_model *m)
{
	const char *at = strchr(text, ':');
	char *end;

	m->whole = strncmp(text, "batch:", 6) == 0;
	if (!at || (!m->whole && strncmp(text, "sample:", 7) != 0))
		return false;
	tool.seconds = strtod(at + 1, &end);
	if (*end == '/')
		tool.rate = strtod(end + 1, &end);
	if (*end == 'x')
		tool.spread = strtod(end + 1, &end);
	if (*end == '@')
		tool.servers = (unsigned)strtoul(end + 1, &end, 10);
	return *end == '\0' && !(m->whole && tool.rate > 0);
}

static int fail(const struct err *e)
{
	fprintf(stderr, "virtual_tool: %s\n", e->text);
	return 1;
}

int main(int argc, char **argv)
{
	struct workload_request req = {.workload = argc > 4 ? argv[1] : NULL, .inspect = true};
	struct read_model model = {.read = take, .work = work};
	struct virtual_training t = {.model = &model};
	const char *steps = getenv("VIRTUAL_STEPS"), *reads = getenv("VIRTUAL_READS");
	struct virtual_outcome out;
	struct workload w;
	struct err e;
	struct rusage usage;

	if (argc < 5 || !parse_model(argv[4], &model)) {
		fprintf(stderr, "usage: virtual_tool WORKLOAD RANKS STEPS MODEL [KEY=VALUE]...\n");
		return 2;
	}
	t.ranks = (uint32_t)strtoul(argv[2], NULL, 10);
	t.steps = strtoull(argv[3], NULL, 10);
	req.ranks = t.ranks;
	req.overrides = (const char *const *)argv + 5;
	req.override_count = (size_t)argc - 5;
	if (workload_load(&w, &req, &e) < 0)
		return fail(&e);
	if (argv[3][0] == '+')
		virtual_steps(&w, t.ranks, t.steps);
	if ((tool.rate > 0 ? dataset_init(&tool.d, &w, &e)
			   : dataset_init_typical(&tool.d, &w, &e)) < 0)
		return fail(&e);
	t.workload = &w;
	t.dataset = &tool.d;
	t.costs = w.costs;
	tool.steps = steps ? fopen(steps, "w") : NULL;
	tool.reads = reads ? fopen(reads, "w") : NULL;
	if (tool.steps)
		t.step = note;
	if (getenv("VIRTUAL_TIMES")) {
		load_times(getenv("VIRTUAL_TIMES"));
		t.compute_ns = told_compute;
	}
	if (virtual_training_run(&t, &out, &e) < 0)
		return fail(&e);
	if (tool.steps)
		fclose(tool.steps);
	if (tool.reads)
		fclose(tool.reads);
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
	dataset_release(&tool.d);
	workload_release(&w);
	return 0;
}
