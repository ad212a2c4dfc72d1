/* Writes, reads and removes checkpoints without a run, a thread a rank:
 *
 *   checkpoint_tool write|read|remove WORKLOAD RANKS EPOCH STEP [--from SHIFT] [key=value ...]
 *   checkpoint_tool list FILE        tensors of a torch.save file: name type place bytes dims
 *
 * Prints one line of JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "base/thread.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/torch.h"

static struct {
	const char *verb;
	const struct checkpoint *c;
	struct store *store;
	int64_t ranks, epoch, step, shift;
	struct stop_flag stop;
	pthread_barrier_t barrier;
} job;

struct rank_thread {
	pthread_t thread;
	int64_t rank;
	struct checkpoint_stat stat;
	struct io_stat io_stat;
	int64_t ns;
	int rc;
	struct err e;
};

static int one_rank(struct rank_thread *t, struct checkpoint_rank *r)
{
	struct io io = {.store = job.store, .stat = &t->io_stat, .stop = &job.stop};

	if (strcmp(job.verb, "read") == 0)
		return checkpoint_read(r, (t->rank + job.shift) % job.ranks, job.epoch, job.step,
				       &io, &t->stat, &t->e);
	if (strcmp(job.verb, "remove") == 0)
		return checkpoint_remove(r, job.epoch, job.step, &io, &t->e);
	return checkpoint_write(r, job.epoch, job.step, &io, &t->stat, &t->e);
}

static void *run_rank(void *arg)
{
	struct rank_thread *t = arg;
	struct checkpoint_rank *r = NULL;
	struct io io = {.store = job.store, .stat = &t->io_stat};
	int64_t start;

	io_stat_init(&t->io_stat);
	t->rc = checkpoint_rank_open(&r, job.c, job.store, t->rank, &t->e);
	pthread_barrier_wait(&job.barrier);
	start = clock_now_ns();
	if (t->rc == 0)
		t->rc = one_rank(t, r);
	t->ns = clock_now_ns() - start;
	pthread_barrier_wait(&job.barrier);
	if (t->rank == 0 && t->rc == 0 && strcmp(job.verb, "write") == 0)
		t->rc = checkpoint_commit(r, job.epoch, job.step, &io, &t->e);
	if (t->rank == 0 && t->rc == 0 && strcmp(job.verb, "remove") == 0)
		t->rc = checkpoint_remove_end(r, job.epoch, job.step, &io, &t->e);
	checkpoint_rank_close(r);
	return NULL;
}

static double cpu_seconds(const struct rusage *u)
{
	return (double)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) +
	       1e-6 * (double)(u->ru_utime.tv_usec + u->ru_stime.tv_usec);
}

static int report(struct rank_thread *t, double cpu)
{
	uint64_t payload = 0, file = 0, files = 0, requests = 0, syncs = 0, data = 0;
	size_t memory = checkpoint_memory_bytes(job.c);
	int64_t longest = 0;
	struct buf b = {0};
	long peak = 0;
	struct rusage u;

	for (int64_t i = 0; i < job.ranks; i++) {
		if (t[i].rc < 0) {
			fprintf(stderr, "rank %" PRId64 ": %s\n", i, t[i].e.text);
			return 1;
		}
		payload += t[i].stat.payload_bytes;
		file += t[i].stat.file_bytes;
		files += t[i].stat.files;
		requests += t[i].io_stat.kind[IO_WRITE].requests;
		syncs += t[i].io_stat.kind[IO_SYNC].requests;
		data += t[i].io_stat.kind[IO_DATA].returned_bytes;
		memory += checkpoint_rank_memory_bytes(job.c, job.store, i);
		if (t[i].ns > longest)
			longest = t[i].ns;
	}
	getrusage(RUSAGE_SELF, &u);
	/* not ru_maxrss, which holds that of the process before exec */
	if (file_read("/proc/self/status", 65536, &b, NULL) == 0 && strstr(b.data, "VmHWM:"))
		peak = strtol(strstr(b.data, "VmHWM:") + 6, NULL, 10);
	buf_release(&b);
	printf("{\"payload_bytes\": %" PRIu64 ", \"file_bytes\": %" PRIu64 ", \"files\": %" PRIu64
	       ", \"writes\": %" PRIu64 ", \"syncs\": %" PRIu64 ", \"data_bytes\": %" PRIu64
	       ", \"seconds\": %.6f, \"cpu_seconds\": %.6f, \"peak_kib\": %ld"
	       ", \"stated_bytes\": %zu}\n",
	       payload, file, files, requests, syncs, data, 1e-9 * (double)longest,
	       cpu_seconds(&u) - cpu, peak, memory);
	return 0;
}

static int run(struct workload *w)
{
	struct rank_thread *t = xcalloc((size_t)job.ranks, sizeof(*t));
	struct checkpoint *c = NULL;
	struct err e = {0};
	struct rusage before;
	int status, rc = checkpoint_open(&c, w, job.ranks, &e);

	if (rc == 0)
		rc = store_create(&job.store, w->storage.store,
				  node_path(w->tree, "workload.storage"), &e);
	if (rc < 0) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	job.c = c;
	getrusage(RUSAGE_SELF, &before);
	pthread_barrier_init(&job.barrier, NULL, (unsigned)job.ranks);
	for (int64_t i = 0; i < job.ranks; i++) {
		t[i].rank = i;
		rc = thread_start(&t[i].thread, run_rank, &t[i], 0, "rank", &e);
		if (rc < 0)
			abort();
	}
	for (int64_t i = 0; i < job.ranks; i++)
		pthread_join(t[i].thread, NULL);
	status = report(t, cpu_seconds(&before));
	store_destroy(job.store);
	checkpoint_close(c);
	free(t);
	return status;
}

static int print_tensor(void *arg, const struct pickle_tensor *t, uint64_t place, uint64_t bytes,
			struct pybuffer *py, struct err *e)
{
	(void)arg;
	(void)py;
	(void)e;
	printf("%s %s %" PRIu64 " %" PRIu64, t->name, t->type, place, bytes);
	for (unsigned i = 0; i < t->rank; i++)
		printf(" %" PRIu64, t->dims[i]);
	putchar('\n');
	return 0;
}

static int list(const char *path)
{
	struct checkpoint_common common = {.python = 311};
	struct file_reader r = {.common = &common, .path = path, .way = READ_FRAMEWORK};
	struct io io = {0};
	struct store_stat st;
	struct err e = {0};
	int rc = store_create(&job.store, "posix", NULL, &e);

	if (rc < 0)
		return 1;
	io.store = job.store;
	r.io = &io;
	r.blob = store_blob_new(job.store, &e);
	r.buffer = xmalloc(4096);
	r.piece = xmalloc(READ_PIECE);
	rc = io_open(&io, path, STORE_READ, r.blob, &e);
	if (rc == 0)
		rc = io_stat_blob(&io, r.blob, &st, &e);
	if (rc == 0) {
		r.file_bytes = st.bytes;
		rc = torch_read_archive(&r, 0, st.bytes, 4096, print_tensor, NULL, &e);
		io_close(&io, r.blob, NULL);
	}
	if (rc < 0)
		fprintf(stderr, "%s\n", e.text);
	free(r.blob);
	free(r.buffer);
	free(r.piece);
	buf_release(&r.meta);
	store_destroy(job.store);
	return rc < 0;
}

int main(int argc, char **argv)
{
	const char *overrides[128];
	struct workload_request req = {.overrides = overrides, .inspect = true};
	struct workload w = {0};
	struct err e = {0};
	int status, rc;

	if (argc == 3 && strcmp(argv[1], "list") == 0)
		return list(argv[2]);
	if (argc < 6 || !str_to_i64(argv[3], &job.ranks) || !str_to_i64(argv[4], &job.epoch) ||
	    !str_to_i64(argv[5], &job.step))
		return 2;
	job.verb = argv[1];
	req.workload = argv[2];
	req.ranks = job.ranks;
	for (int i = 6; i < argc && req.override_count < 128; i++) {
		if (strcmp(argv[i], "--from") == 0 && i + 1 < argc)
			str_to_i64(argv[++i], &job.shift);
		else
			overrides[req.override_count++] = argv[i];
	}
	rc = workload_load(&w, &req, &e);
	if (rc < 0 && rc != ERR_ABSENT) {
		fprintf(stderr, "%s\n", e.text);
		return 2;
	}
	status = run(&w);
	workload_release(&w);
	return status;
}
