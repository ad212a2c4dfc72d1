/* What the reads of a store cost, with nothing around them.
 *
 *   store_tool STORE YAML BYTES DEPTH THREADS SECONDS BLOB...
 *
 * Each thread keeps DEPTH reads of BYTES at the beginning of the blobs, in turn, under way for
 * SECONDS, through the store's queue, or by plain reads where DEPTH is 1. YAML holds the options
 * of the store ("s3: {bucket: b}"). A read of each slot that is not measured comes first. Prints
 * one line: bytes and reads a second, seconds of processor time a GB (10^9 bytes), microseconds of
 * it a read. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "conf/node.h"
#include "store/async.h"
#include "store/store.h"

static struct store *store;
static char **names;
static int blobs;
static size_t bytes;
static unsigned depth;
static double seconds;
static pthread_barrier_t start;
static _Atomic uint64_t reads, moved;
static _Atomic unsigned turn;

static void fail(const struct err *e)
{
	fprintf(stderr, "store_tool: %s\n", e->text);
	exit(1);
}

static struct blob *opened(const char *name)
{
	struct err e = {0};
	struct blob *b = store_blob_new(store, &e);

	if (!b || store_open(store, name, STORE_READ, b, &e) < 0)
		fail(&e);
	return b;
}

static void meet(int64_t *end)
{
	pthread_barrier_wait(&start);
	pthread_barrier_wait(&start);
	*end = clock_now_ns() + (int64_t)(seconds * 1e9);
}

static void plainly(struct blob *const *b, void *memory, int at)
{
	struct err e = {0};
	int64_t end;

	if (store_pread(b[at], memory, bytes, 0, &e) < 0)
		fail(&e);
	meet(&end);
	while (clock_now_ns() < end) {
		ssize_t got = store_pread(b[at], memory, bytes, 0, &e);

		if (got < 0)
			fail(&e);
		reads++;
		moved += (uint64_t)got;
		at = (at + 1) % blobs;
	}
}

static void check(const struct store_request *r)
{
	if (r->result < 0)
		fail(&r->err);
}

static void queued(struct blob *const *b, char *memory, int at)
{
	const struct store_queue_config config = {.depth = depth};
	const struct io io = {.store = store};
	struct store_request *r = xcalloc(depth, sizeof(*r)),
			     **done = xcalloc(depth, sizeof(*done));
	struct store_queue *q;
	unsigned flying = 0;
	struct err e = {0};
	int64_t end = 0;
	int n;

	if (store_queue_create(&q, &io, &config, &e) < 0)
		fail(&e);
	for (unsigned i = 0; i < depth; i++) {
		r[i].buffer = memory + i * bytes;
		r[i].n = bytes;
		done[i] = &r[i];
	}
	n = (int)depth;
	for (int round = 0; n > 0 || flying > 0;) {
		for (int i = 0; i < n; i++) {
			done[i]->blob = b[at];
			at = (at + 1) % blobs;
			if (store_queue_submit(q, done[i], &e) < 0)
				fail(&e);
			flying++;
		}
		n = store_queue_reap(q, done, depth, &e);
		if (n < 0)
			fail(&e);
		flying -= (unsigned)n;
		for (int i = 0; i < n; i++) {
			check(done[i]);
			if (round)
				moved += (uint64_t)done[i]->result;
		}
		if (round)
			reads += (unsigned)n;
		if (!round) { /* all connections stand */
			while (flying > 0) {
				int more = store_queue_reap(q, done + n, depth, &e);

				if (more < 0)
					fail(&e);
				for (int i = 0; i < more; i++)
					check(done[n + i]);
				n += more;
				flying -= (unsigned)more;
			}
			meet(&end);
			round = 1;
		}
		if (clock_now_ns() >= end)
			n = 0;
	}
	store_queue_destroy(q);
	free(r);
	free(done);
}

static void *work(void *arg)
{
	struct blob **b = xcalloc((size_t)blobs, sizeof(*b));
	struct err e = {0};
	char *memory = buffer_alloc(depth * bytes, "reads", &e);
	int at = (int)(atomic_fetch_add(&turn, 1) * depth) % blobs;

	(void)arg;
	if (!memory)
		fail(&e);
	for (int i = 0; i < blobs; i++)
		b[i] = opened(names[i]);
	if (depth == 1)
		plainly(b, memory, at);
	else
		queued(b, memory, at);
	for (int i = 0; i < blobs; i++) {
		store_close(b[i], &e);
		free(b[i]);
	}
	free(b);
	buffer_free(memory, depth * bytes);
	return NULL;
}

static double processor(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
	       1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

int main(int argc, char **argv)
{
	struct err e = {0};
	struct node *options;
	unsigned threads;
	pthread_t *t;
	double cpu;
	int64_t begin;

	if (argc < 8)
		return 2;
	options = yaml_parse(argv[2], strlen(argv[2]), "the options", &e);
	if (!options || store_create(&store, argv[1], options, &e) < 0)
		fail(&e);
	bytes = (size_t)atoll(argv[3]);
	depth = (unsigned)atoi(argv[4]);
	threads = (unsigned)atoi(argv[5]);
	seconds = atof(argv[6]);
	names = argv + 7;
	blobs = argc - 7;
	t = xcalloc(threads, sizeof(*t));
	pthread_barrier_init(&start, NULL, threads + 1);
	for (unsigned i = 0; i < threads; i++)
		if (pthread_create(&t[i], NULL, work, NULL) != 0)
			return 1;
	pthread_barrier_wait(&start);
	cpu = processor();
	begin = clock_now_ns();
	pthread_barrier_wait(&start);
	for (unsigned i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	cpu = processor() - cpu;
	seconds = (double)(clock_now_ns() - begin) / 1e9;
	printf("%.1f MB/s %.1f reads/s %.4f s/GB %.2f us/read\n", (double)moved / 1e6 / seconds,
	       (double)reads / seconds, cpu / ((double)moved / 1e9), cpu * 1e6 / (double)reads);
	store_destroy(store);
	node_free(options);
	free(t);
	return 0;
}
