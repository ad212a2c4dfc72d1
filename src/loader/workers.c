/* The threads of reader workers, and the tasks that go through them. */
#include "loader/workers.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"

/* Batches through shared memory. */

#define SHARED_FOLDER "/dev/shm"
#define PAGE_BYTES 4096u

uint64_t handover_bytes(const struct loader_config *c, struct err *e)
{
	const struct workload *w = c->workload;
	const struct i64_list *dims = &w->reader.transformed_record_dims;
	uint64_t sample = c->dataset->max_sample_bytes, bytes;
	bool fits = true;

	if (dims->n) {
		const struct elem_type *elem = elem_find(w->reader.transformed_record_element_type);

		sample = elem ? elem->bytes : 1;
		for (size_t i = 0; i < dims->n; i++)
			fits = !__builtin_mul_overflow(sample, (uint64_t)dims->v[i], &sample) &&
			       fits;
	} else if (w->dataset.record_length_bytes_resize >= 1) {
		sample = (uint64_t)w->dataset.record_length_bytes_resize;
	}
	if (!fits || __builtin_mul_overflow(sample, c->batch_size, &bytes) ||
	    bytes > INT64_MAX / 4) {
		err_set(e, -ENOMEM,
			"a batch of %llu samples exceeds the memory of any machine; "
			"reader.transport and reader.pin_thread copy whole batches",
			(unsigned long long)c->batch_size);
		return 0;
	}
	return bytes ? bytes : 1;
}

static int check_space(uint64_t bytes, uint64_t parcels, struct err *e)
{
	char need[32], have[32];
	struct statvfs st;
	uint64_t total;
	double space;

	if (statvfs(SHARED_FOLDER, &st) < 0)
		return err_sys(e, errno,
			       "reader.transport shared_memory needs the file system "
			       "'" SHARED_FOLDER "'");
	space = (double)st.f_bavail * (double)st.f_frsize;
	if (!__builtin_mul_overflow(bytes, parcels, &total) && (double)total <= space)
		return 0;
	return err_set(e, -ENOSPC,
		       "reader.transport shared_memory needs up to %s in '" SHARED_FOLDER
		       "' for %llu batches and there are %s: mount it larger, or lower "
		       "reader.batch_size, reader.prefetch_size or reader.read_threads",
		       str_bytes((double)bytes * (double)parcels, need, sizeof(need)),
		       (unsigned long long)parcels, str_bytes(space, have, sizeof(have)));
}

int handover_init(struct handover *h, const struct loader_config *c, uint64_t parcels, bool shared,
		  struct err *e)
{
	int rc = 0;

	*h = (struct handover){.bytes = handover_bytes(c, e), .rank = c->rank};
	if (h->bytes == 0)
		return -ENOMEM;
	if (shared)
		rc = check_space(h->bytes, parcels, e);
	if (rc < 0)
		return rc;
	h->content = buffer_alloc(h->bytes, "the content of handed over batches", e);
	return h->content ? 0 : -ENOMEM;
}

void handover_release(struct handover *h)
{
	buffer_free(h->content, h->bytes);
	*h = (struct handover){0};
}

/* A descriptor of an object that has no name any more. */
static int shared_object(uint32_t rank, struct err *e)
{
	static _Atomic uint64_t counter;
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/stoker_%ld_%u_%llu", (long)getpid(), rank,
		 (unsigned long long)atomic_fetch_add_explicit(&counter, 1, memory_order_relaxed));
	fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(e, errno, "cannot create the shared memory object '%s'", name);
	shm_unlink(name);
	return fd;
}

/* The worker's part. A full file system is an error and not a signal. */
static int handover_pack(const struct handover *h, struct parcel *p, struct err *e)
{
	int fd = shared_object(h->rank, e), rc;
	void *at;

	if (fd < 0)
		return fd;
	rc = ftruncate(fd, (off_t)h->bytes) < 0 ? errno : 0;
	/* allocated now: a missing page would raise SIGBUS later */
	while (rc == 0 && (rc = posix_fallocate(fd, 0, (off_t)h->bytes)) == EINTR)
		rc = 0;
	if (rc != 0) {
		close(fd);
		return err_sys(e, rc, "cannot allocate %llu bytes of shared memory for a batch",
			       (unsigned long long)h->bytes);
	}
	at = mmap(NULL, h->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED) {
		rc = errno;
		close(fd);
		return err_sys(e, rc, "cannot map the shared memory of a batch");
	}
	memcpy(at, h->content, h->bytes);
	munmap(at, h->bytes);
	*p = (struct parcel){.packed = true, .fd = fd};
	return 0;
}

int handover_unpack(const struct handover *h, struct parcel *p, struct err *e)
{
	volatile unsigned char *at;
	int rc;

	if (!p->packed || p->map)
		return 0;
	p->map = mmap(NULL, h->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0);
	rc = errno;
	if (p->map == MAP_FAILED) {
		p->map = NULL;
		return err_sys(e, rc, "cannot map the shared memory of a batch");
	}
	close(p->fd);
	p->fd = -1;
	at = p->map;
	for (uint64_t i = 0; i < h->bytes; i += PAGE_BYTES)
		(void)at[i];
	return 0;
}

void handover_drop(const struct handover *h, struct parcel *p)
{
	if (p->map)
		munmap(p->map, h->bytes);
	else if (p->packed)
		close(p->fd);
	*p = (struct parcel){0};
}

struct worker {
	struct workers *all;
	struct sample_reader *reader;
	struct queue in;
	struct task control; /* the one RESUME or QUIT under way */
	int64_t begin_ns;    /* the framework's code when it began; until it is a batch's */
	/* 1: it has begun, and looks at the order, and counts, only for tasks. */
	_Atomic uint32_t begun;
};

/* ---- memory ---- */

static struct crew_size size_of(uint32_t count)
{
	return (struct crew_size){
		.threads = count, .readers = count ? count : 1, .inline_reads = count == 0};
}

int workers_memory_bytes(const struct loader_config *c, uint32_t count, uint64_t depth,
			 uint64_t results, uint64_t *out, struct err *e)
{
	uint64_t queues = (results + count + count * depth) * sizeof(void *), crew = 0;
	const struct crew_size size = size_of(count);
	struct reader_config settings;
	int rc;

	sample_reader_settings(&settings, c);
	rc = crew_memory_bytes(c, &settings, &size, &crew, e);
	if (rc < 0)
		return rc;
	if (__builtin_add_overflow(crew, queues + count * sizeof(struct worker), out))
		return err_set(e, -ENOMEM, "the buffers of %u workers do not fit in memory", count);
	return 0;
}

/* Queues whose memory was not taken yet have no one waiting. */
static void workers_close_queues(struct crew *c)
{
	struct workers *w = (struct workers *)c;

	if (w->count == 0 || !w->worker)
		return;
	queue_close(&w->results);
	if (w->inbox != &w->results)
		queue_close(w->inbox);
	for (uint32_t i = 0; i < w->count; i++)
		queue_close(&w->worker[i].in);
}

int workers_init(struct workers *w, const struct loader_ops *ops,
		 const struct loader_config *config, uint32_t count, uint64_t depth,
		 uint64_t results, struct err *e)
{
	const struct crew_size size = size_of(count);
	int rc;

	w->count = count;
	w->persistent = config->workload->reader.persistent_workers;
	w->inbox = &w->results;
	sample_reader_settings(&w->crew.settings, config);
	rc = crew_init(&w->crew, ops, config, &size, workers_close_queues, e);
	if (rc == 0 && count) {
		rc = queue_init(&w->results, results + count, e);
		w->worker = rc == 0 ? try_calloc(count, sizeof(*w->worker), "workers", e) : NULL;
		rc = w->worker ? 0 : -ENOMEM;
	}
	for (uint32_t i = 0; i < count && rc == 0; i++) {
		w->worker[i].all = w;
		w->worker[i].reader = &w->crew.reader[i];
		rc = queue_init(&w->worker[i].in, depth, e);
	}
	return rc < 0 ? rc : crew_open_readers(&w->crew, e);
}

void workers_cost(struct workers *w, uint64_t collated_bytes)
{
	w->code = crew_code_of_rank(&w->crew);
	w->collated_bytes = collated_bytes;
}

void workers_release(struct workers *w)
{
	crew_release(&w->crew);
	for (uint32_t i = 0; w->worker && i < w->count; i++)
		queue_release(&w->worker[i].in);
	queue_release(&w->results);
	free(w->worker);
}

/* ---- one worker ---- */

/* A pause of so many seconds that ends early with the run: of a start-up that is emulated. */
static void pause_for(struct crew *c, double seconds)
{
	int64_t deadline = clock_now_ns() + (int64_t)(seconds * (double)NS_PER_S), left;

	while (seconds > 0 && (left = deadline - clock_now_ns()) > 0) {
		uint32_t seen = atomic_load_explicit(&c->halt, memory_order_acquire);

		if (seen & HALT_STOP || stop_is_set(c->config.stop))
			break;
		thread_wait(&c->halt, seen, left < NS_PER_S ? left : NS_PER_S);
	}
}

static void pack_batch(struct worker *w, struct task *t)
{
	const struct handover *h = w->all->handover;
	int64_t begin = clock_now_ns(), took, delay = w->reader->stat->no_cpu_ns;
	int rc;

	if (!h || t->batch.err.code < 0)
		return;
	rc = handover_pack(h, &t->parcel, &t->batch.err);
	t->batch.err.code = rc;
	took = clock_now_ns() - begin;
	span_add(w->reader->ring, SPAN_TRANSPORT, rc < 0 ? SPAN_FAILED : 0, begin, begin + took,
		 h->bytes);
	w->reader->stat->transport_ns += took;
	t->batch.work.ns[WORK_TRANSPORT] += took;
	worker_note_delay(w->reader->stat, took);
	t->batch.work.ns[WORK_NO_CPU] += w->reader->stat->no_cpu_ns - delay;
}

/* The framework's code for a batch that was read, beside what packs it. */
static void collate_batch(struct sample_reader *r, const struct workers *w, enum cost_row row,
			  struct batch *b)
{
	int64_t begin = b->done_ns, took, delay = r->stat->no_cpu_ns;

	if (!sample_reader_at_cost(r) || b->err.code < 0)
		return;
	framework_spend(&r->code, row, b->samples, (double)w->collated_bytes, 0);
	b->done_ns = clock_now_ns();
	took = b->done_ns - begin;
	span_add(r->ring, SPAN_FRAMEWORK, 0, begin, b->done_ns, w->collated_bytes);
	r->stat->framework_ns += took;
	b->work.ns[WORK_FRAMEWORK] += took;
	worker_note_delay(r->stat, took);
	b->work.ns[WORK_NO_CPU] += r->stat->no_cpu_ns - delay;
}

/* What packing takes the framework, less `own_ns`, after it was done here. */
static void pack_in_framework(struct worker *w, struct batch *b, int64_t own_ns)
{
	struct sample_reader *r = w->reader;
	int64_t begin, end, delay = r->stat->no_cpu_ns;

	if (!sample_reader_at_cost(r) || b->err.code < 0)
		return;
	begin = clock_now_ns();
	b->costs.pack_ns = framework_spend(&r->code, COST_PACK, b->samples,
					   (double)w->all->collated_bytes, own_ns);
	end = clock_now_ns();
	span_add(r->ring, SPAN_FRAMEWORK, 0, begin, end, w->all->collated_bytes);
	r->stat->framework_ns += end - begin;
	b->work.ns[WORK_FRAMEWORK] += end - begin;
	worker_note_delay(r->stat, end - begin);
	b->work.ns[WORK_NO_CPU] += r->stat->no_cpu_ns - delay;
}

/* Packing here is a part of what packing takes the framework. */
static bool packs_at_cost(const struct worker *w)
{
	return w->all->handover && framework_on(&w->all->code);
}

/* A forked worker has the modules of the rank's process; another imports them. */
static int64_t begin_in_framework(struct worker *w)
{
	struct framework_code *f = &w->reader->code;
	int method = w->all->crew.config.workload->reader.multiprocessing_context;
	int64_t spent = framework_spend(f, costs_begin_row(f->costs, method), 0, 0, 0);

	if (method != START_FORK)
		spent += framework_spend(f, COST_IMPORT_DLIO, 0, 0, 0);
	return spent + framework_spend(f, COST_BEGIN_DLIO, 0, 0, 0) +
	       framework_spend_import(f, workload_format(w->all->crew.config.workload));
}

static void worker_main(void *arg)
{
	struct worker *w = arg;
	struct crew *c = &w->all->crew;
	int64_t idle_from, own;
	void *item;

	pause_for(c, c->config.workload->reader.worker_init_time);
	w->reader->code.been = 0;
	if (framework_on(&w->all->code))
		w->begin_ns = begin_in_framework(w);
	sample_reader_prepare(w->reader, &c->order);
	sample_reader_idle(w->reader);
	atomic_store_explicit(&w->begun, 1, memory_order_release);
	thread_wake(&w->begun, 1);
	idle_from = clock_now_ns();

	while (queue_get(&w->in, &item) == 1) {
		struct task *t = item;

		if (t->kind == TASK_QUIT)
			break;
		if (t->kind == TASK_READ) {
			w->reader->stat->idle_ns += clock_now_ns() - idle_from;
			sample_reader_batch(w->reader, &c->order, &t->batch);
			t->batch.costs.begin_ns = w->begin_ns;
			w->begin_ns = 0;
			collate_batch(w->reader, w->all, COST_COLLATE, &t->batch);
			own = packs_at_cost(w) ? framework_thread_ns() : 0;
			pack_batch(w, t);
			own = own ? framework_thread_ns() - own : 0;
			pack_in_framework(w, &t->batch, own);
		} else {
			pause_for(c, c->config.workload->reader.worker_resume_time);
		}
		/* Before the put: whoever receives it may already send the next task. */
		idle_from = clock_now_ns();
		if (queue_put(&w->all->results, t) < 0)
			break;
		sample_reader_idle(w->reader);
	}
	sample_reader_idle(w->reader);
}

/* ---- the epoch ---- */

/* The queue is empty: all that was sent before has come back. */
static void send_control(struct workers *w, uint32_t i, enum task_kind kind)
{
	w->worker[i].control.kind = kind;
	workers_send(w, i, &w->worker[i].control);
}

/* The rank is at one worker after another. */
static void spend_on_worker(struct workers *w, enum cost_row row)
{
	w->started_ns += framework_spend_once(&w->code, row, &w->started_late_ns);
}

/* Workers that live on acknowledge that they are ready for the epoch, as PyTorch's do. */
static int resume_workers(struct workers *w, struct err *e)
{
	struct task *t;

	for (uint32_t i = 0; i < w->count; i++) {
		spend_on_worker(w, COST_RESUME_WORKER);
		send_control(w, i, TASK_RESUME);
	}
	for (uint32_t i = 0; i < w->count; i++)
		if (workers_receive(w, &t) < 0)
			return crew_canceled(&w->crew, e);
	return 0;
}

/* A worker that is started again begins with a new reader, as a new process would; its buffers were
 * taken and touched in workers_init, because this is timed. */
static int start_workers(struct workers *w, struct err *e)
{
	double cost = w->crew.config.workload->reader.worker_start_time;
	int method = w->crew.config.workload->reader.multiprocessing_context;

	for (uint32_t i = 0; i < w->count; i++) {
		int rc;

		if (w->crew.thread[i].running)
			continue;
		pause_for(&w->crew, cost);
		spend_on_worker(w, costs_start_row(w->code.costs, method));
		if (crew_stopped(&w->crew))
			return crew_canceled(&w->crew, e);
		atomic_store_explicit(&w->worker[i].begun, 0, memory_order_relaxed);
		rc = sample_reader_open(&w->crew.reader[i], e);
		if (rc == 0)
			rc = crew_start_thread(&w->crew, i, worker_main, &w->worker[i],
					       crew_letter(&w->crew), i, e);
		if (rc < 0)
			return rc;
	}
	w->threads = true;
	return 0;
}

int workers_begin(struct workers *w, struct err *e)
{
	w->started_ns = w->started_late_ns = 0;
	if (w->count == 0)
		return 0;
	return w->threads ? resume_workers(w, e) : start_workers(w, e);
}

void workers_send(struct workers *w, uint32_t worker, struct task *t)
{
	assert(worker < w->count);
	/* Fails only once the queue is closed, which is how a run ends: whoever waits finds out. */
	(void)queue_put(&w->worker[worker].in, t);
}

void workers_read_inline(struct workers *w, struct task *t)
{
	assert(w->count == 0);
	sample_reader_batch(&w->crew.reader[0], &w->crew.order, &t->batch);
	collate_batch(&w->crew.reader[0], w, COST_INLINE, &t->batch);
	sample_reader_idle(&w->crew.reader[0]);
}

int workers_receive(struct workers *w, struct task **out)
{
	void *item;

	if (crew_receive(&w->crew, w->inbox, &item) < 0)
		return ERR_CANCELED;
	*out = item;
	return 0;
}

void workers_epoch_over(struct workers *w)
{
	for (uint32_t i = 0; i < w->count && w->threads && !w->persistent; i++)
		framework_spend(&w->code, COST_END_WORKER, 0, 0, 0);
}

/* Persistent workers may have had no task yet, and may still be starting. */
static void wait_for_begun(struct workers *w)
{
	for (uint32_t i = 0; i < w->count && w->threads; i++)
		while (!atomic_load_explicit(&w->worker[i].begun, memory_order_acquire) &&
		       !crew_stopped(&w->crew))
			thread_wait(&w->worker[i].begun, 0, NS_PER_S / 10);
}

int workers_end(struct workers *w, bool woken, struct err *e)
{
	int rc;

	if (w->count == 0)
		return 0;
	if (!woken && w->persistent) {
		wait_for_begun(w);
		return 0;
	}
	for (uint32_t i = 0; i < w->count && !woken; i++)
		send_control(w, i, TASK_QUIT);
	rc = crew_join(&w->crew, e);
	if (rc < 0)
		return rc;
	w->threads = false;
	return woken ? 0 : crew_close_readers(&w->crew, e);
}
