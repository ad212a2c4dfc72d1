/* What counting, timing and tracing cost, beside the same work without: turns of a few milliseconds
 * in one process, so that little else comes between.
 *
 *   measure_tool reads FILE BYTES READS THREADS ROUNDS
 *   measure_tool epochs ROUNDS STEP_NS KEY=VALUE...
 *   measure_tool samples COUNT
 *
 * reads: each thread reads BYTES at random places of FILE through the posix store, READS times a
 * turn. Threads begin a turn together.
 * epochs: a turn is an epoch of a workload's loader, the dataset being there. A batch is asked for
 * STEP_NS after the one before; 0: at once. There are three loaders, whose threads live on.
 * samples: takes COUNT samples of the machine, as a run does now and then; prints ns of processor
 * time of one.
 *
 * A round is three turns: without measuring, with it, and traced besides, and the next one the
 * other way round, so that what drifts falls on all. Prints a line for each round (and thread): ns
 * of processor time that a read (or sample) took in the three; then the same of wall time. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/run_delay.h"
#include "dataset/dataset.h"
#include "dataset/order_proof.h"
#include "loader/loader.h"
#include "metric/series.h"
#include "store/store.h"
#include "workload/workload.h"

enum mode { NONE, ALL, TRACED, MODES };

#define RING 65536
#define SAMPLE_NS (NS_PER_S / 100) /* the shortest interval there is */

static void fail(const struct err *e)
{
	fprintf(stderr, "measure_tool: %s\n", e->text);
	exit(1);
}

static double now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* ---- turns ---- */

struct round {
	clockid_t cpu;
	double begin[2], mean[2 * MODES];
};

static enum mode turn(long round, int k)
{
	return (enum mode)(round % 2 ? MODES - 1 - k : k);
}

static void turn_begins(struct round *r)
{
	r->begin[0] = now_ns(r->cpu);
	r->begin[1] = now_ns(CLOCK_MONOTONIC);
}

static void turn_ends(struct round *r, enum mode m, double units)
{
	r->mean[MODES + m] = (now_ns(CLOCK_MONOTONIC) - r->begin[1]) / units;
	r->mean[m] = (now_ns(r->cpu) - r->begin[0]) / units;
}

static void print(const struct round *r)
{
	for (int i = 0; i < 2 * MODES; i++)
		printf("%.2f%c", r->mean[i], i + 1 < 2 * MODES ? ' ' : '\n');
}

/* Makes room in a ring that is nearly full. */
static void make_room(struct span_ring *r, uint32_t spans)
{
	if (atomic_load(&r->count) + spans > r->capacity)
		atomic_store(&r->count, 0);
}

/* ---- reads ---- */

struct job {
	const char *path;
	size_t bytes;
	uint64_t places;
	long reads, rounds;
	struct store *store;
	struct trace *trace;
	pthread_barrier_t *together;
	uint32_t number;
	struct round *out;
	pthread_t thread;
};

static void *read_blocks(void *arg)
{
	struct job *j = arg;
	struct err e = {0};
	struct io_stat *stat = xcalloc(1, sizeof(*stat));
	struct span_ring *ring = trace_ring(j->trace, 0, 0, j->number, false);
	struct io io[MODES] = {{.store = j->store},
			       {.store = j->store, .stat = stat},
			       {.store = j->store, .stat = stat, .trace = ring}};
	struct blob *b = store_blob_new(j->store, &e);
	char *p = xcalloc(1, j->bytes);
	uint64_t random = j->number + 1;

	if (!b || !ring || io_open(&io[NONE], j->path, STORE_READ, b, &e) < 0)
		fail(&e);
	/* the first is for the caches */
	for (long i = 0; i <= j->rounds; i++) {
		struct round r = {.cpu = CLOCK_THREAD_CPUTIME_ID};

		for (int k = 0; k < MODES; k++) {
			enum mode m = turn(i, k);

			make_room(ring, (uint32_t)j->reads);
			pthread_barrier_wait(j->together);
			turn_begins(&r);
			for (long n = 0; n < j->reads; n++) {
				random = random * 6364136223846793005u + 1442695040888963407u;
				if (io_pread(&io[m], IO_DATA, b, p, j->bytes,
					     (random >> 33) % j->places * j->bytes, &e) < 0)
					fail(&e);
			}
			turn_ends(&r, m, (double)j->reads);
		}
		if (i > 0)
			j->out[i - 1] = r;
	}
	io_close(&io[NONE], b, NULL);
	free(b);
	free(p);
	free(stat);
	return NULL;
}

static void reads(const char *path, size_t bytes, long count, long threads, long rounds)
{
	struct job *job = xcalloc((size_t)threads, sizeof(*job));
	pthread_barrier_t together;
	struct store *store;
	struct trace *trace;
	struct err e = {0};
	struct stat st = {0};

	if (stat(path, &st) != 0 || (uint64_t)st.st_size < bytes) {
		err_set(&e, -1, "'%s' does not hold %zu bytes", path, bytes);
		fail(&e);
	}
	if (store_create(&store, "posix", NULL, &e) < 0 || trace_create(&trace, 0, 1, RING, &e) < 0)
		fail(&e);
	pthread_barrier_init(&together, NULL, (unsigned)threads);
	for (long i = 0; i < threads; i++) {
		job[i] = (struct job){.path = path,
				      .bytes = bytes,
				      .places = (uint64_t)st.st_size / bytes,
				      .reads = count,
				      .rounds = rounds,
				      .store = store,
				      .trace = trace,
				      .together = &together,
				      .number = (uint32_t)i,
				      .out = xcalloc((size_t)rounds, sizeof(*job[i].out))};
		pthread_create(&job[i].thread, NULL, read_blocks, &job[i]);
	}
	for (long i = 0; i < threads; i++) {
		pthread_join(job[i].thread, NULL);
		for (long k = 0; k < rounds; k++)
			print(&job[i].out[k]);
		free(job[i].out);
	}
	free(job);
	trace_destroy(trace);
	store_destroy(store);
}

/* ---- epochs ---- */

struct rig {
	struct workload workload;
	struct dataset dataset;
	struct store *store;
	struct trace *trace;
	struct stop_flag stop;
	const struct loader_ops *ops;
	struct loader *loader;
};

static void rig_init(struct rig *r, enum mode m, const char *const *keys, size_t count)
{
	struct workload_request ask = {.overrides = keys, .override_count = count};
	struct loader_config c = {.kind = DATASET_TRAIN};
	struct workload *w = &r->workload;
	struct err e = {0};

	if (workload_load(w, &ask, &e) < 0)
		fail(&e);
	w->run.measure = m == NONE ? MEASURE_NONE : MEASURE_ALL;
	w->run.trace = m == TRACED ? TRACE_BOTH : TRACE_OFF;
	if (dataset_init(&r->dataset, w, &e) < 0 ||
	    store_create(&r->store, w->storage.store, NULL, &e) < 0)
		fail(&e);
	if (m == TRACED && trace_create(&r->trace, 0, 1, (uint32_t)w->run.trace_events, &e) < 0)
		fail(&e);
	r->ops = loader_find(w->reader.data_loader);
	c.workload = w;
	c.dataset = &r->dataset;
	c.store = r->store;
	c.batch_size = (uint64_t)w->reader.batch_size;
	c.stop = &r->stop;
	c.trace = r->trace;
	if (r->ops->create(&r->loader, &c, &e) < 0 || trace_check(r->trace, &e) < 0)
		fail(&e);
}

static void rig_release(struct rig *r)
{
	r->ops->destroy(r->loader);
	trace_destroy(r->trace);
	store_destroy(r->store);
	dataset_release(&r->dataset);
	workload_release(&r->workload);
}

/* Returns its samples. */
static double epoch(struct rig *r, uint64_t number, int64_t step_ns)
{
	const struct workload *w = &r->workload;
	int64_t at = clock_now_ns();
	struct err e = {0};
	struct batch *b;
	struct order o;
	uint64_t samples = 0;
	int rc;

	order_init(&o, w, dataset_samples(&r->dataset, DATASET_TRAIN), 1,
		   (uint64_t)w->reader.batch_size, (uint64_t)w->train.seed, number);
	if (r->ops->start(r->loader, &o, order_steps(&o), &e) < 0)
		fail(&e);
	while ((rc = r->ops->next(r->loader, &b, &e)) == 1) {
		samples += b->samples;
		r->ops->give_back(r->loader, b);
		if (step_ns)
			clock_sleep_until(at += step_ns);
	}
	if (rc < 0 || r->ops->finish(r->loader, &e) < 0)
		fail(&e);
	return (double)samples;
}

static void epochs(long rounds, int64_t step_ns, const char *const *keys, size_t count)
{
	struct rig *rig = xcalloc(MODES, sizeof(*rig));
	uint64_t number = 0;

	clock_precise_timers();
	for (int m = 0; m < MODES; m++)
		rig_init(&rig[m], (enum mode)m, keys, count);
	for (long i = 0; i <= rounds; i++) {
		struct round r = {.cpu = CLOCK_PROCESS_CPUTIME_ID};

		for (int k = 0; k < MODES; k++) {
			enum mode m = turn(i, k);

			for (struct span_ring *ring = m == TRACED ? rig[m].trace->first : NULL;
			     ring; ring = ring->next)
				make_room(ring, ring->capacity / 2);
			/* for the threads that the epoch starts */
			run_delay_enable(m != NONE);
			turn_begins(&r);
			turn_ends(&r, m, epoch(&rig[m], ++number, step_ns));
		}
		if (i > 0)
			print(&r);
	}
	for (int m = 0; m < MODES; m++)
		rig_release(&rig[m]);
	free(rig);
}

/* ---- samples ---- */

static void samples(long count)
{
	struct series *s;
	struct err e = {0};
	double cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	size_t n;

	if (series_start(&s, ".", SAMPLE_NS, true, NULL, NULL, &e) < 0)
		fail(&e);
	clock_sleep_until(clock_now_ns() + count * SAMPLE_NS);
	series_stop(s);
	series_points(s, &n);
	printf("%.0f\n", (now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu) / (double)n);
	series_release(s);
}

int main(int argc, char **argv)
{
	clock_init();
	if (argc == 7 && strcmp(argv[1], "reads") == 0)
		reads(argv[2], (size_t)atol(argv[3]), atol(argv[4]), atol(argv[5]), atol(argv[6]));
	else if (argc > 4 && strcmp(argv[1], "epochs") == 0)
		epochs(atol(argv[2]), atol(argv[3]), (const char *const *)argv + 4,
		       (size_t)argc - 4);
	else if (argc == 3 && strcmp(argv[1], "samples") == 0)
		samples(atol(argv[2]));
	else
		return fprintf(stderr, "measure_tool reads|epochs|samples ...\n"), 2;
	return 0;
}
