/* What counting, timing and tracing of a read cost, beside the same read without.
 *
 *   measure_tool FILE BYTES READS THREADS ROUNDS
 *
 * Each thread reads BYTES at random places of FILE through the posix store, READS times a block. A
 * round is nine blocks, in an order that is the same forwards and backwards, so that what drifts
 * falls on all: none, all, traced, all, none, all, traced, all, none. Threads begin a block
 * together. Prints a line for each round and thread: ns of processor time a read took without
 * measuring, with it, and traced besides; then the same of wall time. */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "store/store.h"

enum mode { NONE, ALL, TRACED, MODES };

#define BLOCKS 9
static const enum mode order[BLOCKS] = {NONE, ALL, TRACED, ALL, NONE, ALL, TRACED, ALL, NONE};
#define RING 65536

struct job {
	const char *path;
	size_t bytes;
	uint64_t places;
	long reads, rounds;
	struct store *store;
	struct trace *trace;
	pthread_barrier_t *together;
	uint32_t number;
	double *out; /* rounds * 2 * MODES */
	pthread_t thread;
};

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

static void *work(void *arg)
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
	for (long round = -1; round < j->rounds; round++) {
		double sum[2 * MODES] = {0}, count[MODES] = {0};

		for (int k = 0; k < BLOCKS; k++) {
			enum mode m = order[k];
			double cpu, wall;

			if (atomic_load(&ring->count) + (uint32_t)j->reads > RING)
				atomic_store(&ring->count, 0);
			pthread_barrier_wait(j->together);
			cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);
			wall = now_ns(CLOCK_MONOTONIC);
			for (long i = 0; i < j->reads; i++) {
				random = random * 6364136223846793005u + 1442695040888963407u;
				if (io_pread(&io[m], IO_DATA, b, p, j->bytes,
					     (random >> 33) % j->places * j->bytes, &e) < 0)
					fail(&e);
			}
			sum[MODES + m] += now_ns(CLOCK_MONOTONIC) - wall;
			sum[m] += now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
			count[m] += (double)j->reads;
		}
		for (int m = 0; round >= 0 && m < 2 * MODES; m++)
			j->out[round * 2 * MODES + m] = sum[m] / count[m % MODES];
	}
	io_close(&io[NONE], b, NULL);
	free(b);
	free(p);
	free(stat);
	return NULL;
}

int main(int argc, char **argv)
{
	struct err e = {0};
	struct stat st;
	struct store *store;
	struct trace *trace;
	pthread_barrier_t together;
	long threads, rounds;
	struct job *job;

	if (argc != 6 || stat(argv[1], &st) != 0) {
		fprintf(stderr, "measure_tool FILE BYTES READS THREADS ROUNDS\n");
		return 2;
	}
	threads = atol(argv[4]);
	rounds = atol(argv[5]);
	clock_init();
	if (store_create(&store, "posix", NULL, &e) < 0 || trace_create(&trace, 0, 1, RING, &e) < 0)
		fail(&e);
	pthread_barrier_init(&together, NULL, (unsigned)threads);
	job = xcalloc((size_t)threads, sizeof(*job));
	for (long i = 0; i < threads; i++) {
		job[i] = (struct job){.path = argv[1],
				      .bytes = (size_t)atol(argv[2]),
				      .reads = atol(argv[3]),
				      .rounds = rounds,
				      .store = store,
				      .trace = trace,
				      .together = &together,
				      .number = (uint32_t)i};
		job[i].places = (uint64_t)st.st_size / job[i].bytes;
		job[i].out = xcalloc((size_t)rounds * 2 * MODES, sizeof(double));
		pthread_create(&job[i].thread, NULL, work, &job[i]);
	}
	for (long i = 0; i < threads; i++) {
		pthread_join(job[i].thread, NULL);
		for (long r = 0; r < rounds * 2 * MODES; r++)
			printf("%.2f%c", job[i].out[r], (r + 1) % (2 * MODES) ? ' ' : '\n');
		free(job[i].out);
	}
	free(job);
	trace_destroy(trace);
	store_destroy(store);
	return 0;
}
