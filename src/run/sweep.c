/* Sweeps of readers. A point is one number of readers for a part of the time; its readers share
 * what is to be read and a moment at which they begin. */
#include "run/sweep.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/rng.h"
#include "base/saturate.h"
#include "os/sysinfo.h"
#include "comm/net.h"
#include "dataset/each.h"
#include "dataset/residency.h"
#include "judge/judge.h"
#include "loader/sample_reader.h"

/* The sweep goes to at least this many times the readers of the run, and to this many at least. */
#define BEYOND 4
#define READERS_LEAST 8
/* Files that are read, evenly spread over the dataset: evicting them takes a fraction of a second.
 */
#define FILES_MAX 4096u
/* How long a point's last samples are waited for once its time is over, at least. */
#define LINGER_NS (NS_PER_S / 2)
/* How long a request that does not return is waited for after that. */
#define GRACE_NS (5 * NS_PER_S)
/* A point is left out when one request would take so many times its time. */
#define TOO_LONG 3
#define LOOK_NS (NS_PER_S / 50)
/* s: of training that is worth a probe which nobody asked for, and the most that one takes. */
#define OWN_LEAST_S 1.0
#define OWN_LEAST_LOST 0.05 /* of it, in anything but computing */
#define OWN_MOST_S 2.0
/* Requests of another size: this part of the usual one, or so many times that; whole pages where
 * that leaves something. From one open, and not one after another: nothing is read ahead of them.
 */
#define SIZED_BY 4
#define SIZED_NATIVE 2 /* times the usual one */
#define SIZED_AN_OPEN 8
#define SIZED_PAGE 4096u
#define SIZED_MOST (4u << 20)

struct sweep;

struct probe_reader {
	struct sweep *sweep;
	struct sample_reader reader;
	struct worker_stat stat;
	struct io_stat io; /* stat.io */
	struct thread thread;
	struct blob *blob; /* for requests of another size, and their bytes */
	void *bytes;
	int64_t end_ns;
	struct err err; /* code 0: none */
};

/* On the heap, and left there when a reader hangs. */
struct sweep {
	const struct run_plan *plan;
	struct run_shared *shared;
	struct loader_config config;
	struct reader_config settings;
	uint64_t files, units; /* that may be read; a unit is a sample, or all of a file */
	bool whole_files;
	struct perm order;
	bool again; /* units are read more than once */
	uint32_t part, parts;
	struct probe_reader *reader;
	uint32_t readers;
	uint64_t usual; /* bytes of a request of the last point for data */
	size_t sized;   /* bytes of the requests of this point; 0: samples are read */
	double slow_s; /* the mean time of the kind of request that takes longest, at the last point
			*/
	/* ---- of a point ---- */
	_Atomic uint64_t next;    /* unit, over all points until the files are evicted again */
	_Atomic uint32_t go;      /* futex word */
	_Atomic uint32_t ended;   /* readers */
	_Atomic uint32_t closing; /* no further sample is begun */
	_Atomic uint32_t halt;
	int64_t linger_ns;     /* at least: the last samples are waited for */
	struct stop_flag stop; /* no further request is made; its own, cleared between points */
};

/* ---- how many ---- */

static uint32_t run_readers(const struct run_plan *p)
{
	uint64_t batches, depth = (uint64_t)p->w->reader.queue_depth;
	uint32_t workers;
	uint64_t n;

	p->loader->window(p->w, &workers, &batches);
	n = u64_product(workers ? workers : 1, p->at->ranks);
	n = u64_product(n, depth > 1 ? depth : 1);
	return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

static void reader_settings(const struct run_plan *p, const struct stop_flag *stop,
			    struct loader_config *config, struct reader_config *out)
{
	*config = (struct loader_config){.workload = p->w,
					 .dataset = p->d,
					 .kind = DATASET_TRAIN,
					 .store = p->store,
					 .batch_size = 1,
					 .stop = stop,
					 .one_request = true};
	sample_reader_settings(out, config);
	/* requests alone count, and those of every sample */
	out->decode = DECODE_NONE;
	out->keep_open = false;
}

/* What native access would ask for at once; 0: that is how files are read already. */
static uint64_t native_bytes(const struct run_plan *p)
{
	double sample = dataset_sample_file_bytes(p->d, DATASET_TRAIN, NULL);

	if (p->w->reader.access != ACCESS_FRAMEWORK || !(sample > 0))
		return 0;
	return sample < NATIVE_PIECE_MAX ? (uint64_t)sample : NATIVE_PIECE_MAX;
}

/* The largest request of another size. */
static uint64_t sized_room(const struct run_plan *p)
{
	uint64_t part = p->d->max_sample_bytes / SIZED_BY, least = native_bytes(p);

	if (least < SIZED_PAGE * SIZED_BY * SIZED_BY)
		least = SIZED_PAGE * SIZED_BY * SIZED_BY;
	return part > SIZED_MOST ? SIZED_MOST : part > least ? part : least;
}

/* The most readers of this process, and their memory. */
static uint32_t readers_here(const struct run_plan *p, uint64_t *bytes)
{
	uint32_t parts = p->at->net ? net_processes(p->at->net) : 1;
	uint64_t want = u64_product(BEYOND, run_readers(p)), each, most;
	struct loader_config config;
	struct reader_config settings;
	uint32_t n = 1;

	if (want < READERS_LEAST)
		want = READERS_LEAST;
	while (n < want && n < PROBE_READERS_MAX)
		n *= 2;
	n = (n + parts - 1) / parts;
	reader_settings(p, NULL, &config, &settings);
	each = sample_reader_bytes(&config, &settings, NULL);
	each = each ? u64_sum(each, sizeof(struct probe_reader) + sized_room(p)) : UINT64_MAX;
	each = u64_sum(each, (uint64_t)p->w->run.stack_bytes);
	most = host_available_bytes() / run_processes_here(p->at) / 4;
	while (n > 1 && u64_product(each, n) > most)
		n /= 2;
	*bytes = u64_product(each, n);
	return *bytes > most ? 0 : n;
}

uint64_t probe_bytes(const struct run_plan *p)
{
	uint64_t bytes = 0;

	if (p->w->run.probe == PROBE_NEVER || (p->w->run.probe == PROBE_AUTO && p->no_own_probe) ||
	    !p->w->workflow.train || p->d->format->is.flags & FORMAT_NO_IO)
		return 0;
	return readers_here(p, &bytes) ? bytes : 0;
}

/* ---- whether ---- */

static bool asks_for_probe(const struct limit *l)
{
	return fact_first(&l->facts, REASON_EFFECT_PROBE) ||
	       fact_first(&l->effects, REASON_EFFECT_PROBE) ||
	       fact_first(&l->remedy, REASON_EFFECT_PROBE);
}

/* Whether what the run says without a probe is that one could tell; *length_s: of training. */
static bool is_untold(struct result *r, double *length_s)
{
	struct run_metrics m = {0};
	struct err e;
	bool untold = metrics_compute(&m, r, &e) == 0 && judge_trust(r, &m, &e) == 0;
	const struct decomposition *d = &r->judged.time;

	*length_s = d->wall_s;
	/* what takes long is left out where it would be of no use */
	untold = untold && d->wall_s >= OWN_LEAST_S &&
		 d->mean_s[TIME_COMPUTE] < (1 - OWN_LEAST_LOST) * d->wall_s &&
		 judge_result(r, &m, &e) == 0 && asks_for_probe(&r->judged.limit);
	judgement_release(&r->judged);
	metrics_release(&m);
	return untold;
}

double probe_time_s(const struct run_plan *p, struct result *r)
{
	double time_s = p->w->run.probe_time, length_s;

	if (p->w->run.probe != PROBE_AUTO)
		return p->w->run.probe == PROBE_ALWAYS ? time_s : 0;
	/* files that are kept in the page cache are not the storage's any more */
	if (!probe_bytes(p) || !is_untold(r, &length_s))
		return 0;
	r->probe.own = true;
	return fmin(fmin(time_s, OWN_MOST_S), length_s);
}

/* ---- a reader ---- */

static bool take_unit(struct sweep *s, uint64_t *first, uint64_t *count)
{
	uint64_t per_file = s->config.dataset->samples_per_file, u, file;

	u = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed) * s->parts + s->part;
	if (u >= s->units && !s->again)
		return false;
	u = perm_at(&s->order, u % s->units);
	file = each_even(s->config.dataset->files[DATASET_TRAIN], s->files,
			 s->whole_files ? u : u / per_file);
	*first = file * per_file + (s->whole_files ? 0 : u % per_file);
	*count = s->whole_files ? per_file : 1;
	return true;
}

static bool closing(const struct sweep *s)
{
	return atomic_load_explicit(&s->closing, memory_order_relaxed) || stop_is_set(&s->stop);
}

static void read_samples(struct probe_reader *r)
{
	struct sweep *s = r->sweep;
	uint64_t first, count, payload = 0;
	int64_t now = clock_now_ns();
	int rc = 0;

	while (rc == 0 && !closing(s) && take_unit(s, &first, &count))
		for (uint64_t i = 0; rc == 0 && i < count && !closing(s); i++)
			rc = sample_reader_read(&r->reader, first + i, &now, &payload, &r->err);
	/* what the end of the point cut off is no failure */
	r->err.code = rc == ERR_CANCELED && stop_is_set(&s->stop) ? 0 : rc;
	r->end_ns = clock_now_ns();
}

/* From the end of the file towards its beginning. */
static int read_sized(struct probe_reader *r, uint64_t file)
{
	struct sweep *s = r->sweep;
	const struct io *io = &r->reader.io;
	struct store_stat st = {0};
	char path[DATASET_PATH_MAX];
	int rc = dataset_path(s->plan->d, DATASET_TRAIN, file, path, sizeof(path), &r->err), closed;

	if (rc < 0)
		return rc;
	rc = io_open(io, path, STORE_READ, r->blob, &r->err);
	if (rc < 0)
		return rc;
	rc = io_stat_blob(io, r->blob, &st, &r->err);
	for (uint64_t i = 1; rc == 0 && i <= SIZED_AN_OPEN && i * s->sized <= st.bytes; i++) {
		uint64_t at = (st.bytes - i * s->sized) / SIZED_PAGE * SIZED_PAGE;

		if (closing(s))
			break;
		if (io_pread(io, IO_DATA, r->blob, r->bytes, s->sized, at, &r->err) < 0)
			rc = r->err.code;
	}
	closed = io_close(io, r->blob, rc == 0 ? &r->err : NULL);
	return rc < 0 ? rc : closed;
}

static void read_other_sizes(struct probe_reader *r)
{
	struct sweep *s = r->sweep;
	uint64_t first, count;
	int rc = 0;

	while (rc == 0 && !closing(s) && take_unit(s, &first, &count))
		rc = read_sized(r, first / s->config.dataset->samples_per_file);
	r->err.code = rc == ERR_CANCELED && stop_is_set(&s->stop) ? 0 : rc;
	r->end_ns = clock_now_ns();
}

static void reader_main(void *arg)
{
	struct probe_reader *r = arg;
	struct sweep *s = r->sweep;

	while (atomic_load_explicit(&s->go, memory_order_acquire) == 0)
		thread_wait(&s->go, 0, -1);
	if (s->sized)
		read_other_sizes(r);
	else
		read_samples(r);
	/* nobody touches the readers before all have ended */
	atomic_fetch_add_explicit(&s->ended, 1, memory_order_release);
	thread_wake(&s->ended, 1);
}

/* ---- a point ---- */

static bool all_ended(const struct sweep *s, uint32_t n)
{
	return atomic_load_explicit(&s->ended, memory_order_acquire) >= n;
}

/* Until all readers have ended, the deadline, or the end of the run. */
static void wait_for_readers(struct sweep *s, uint32_t n, int64_t deadline_ns, bool to_the_end)
{
	for (;;) {
		uint32_t seen = atomic_load_explicit(&s->ended, memory_order_acquire);
		int64_t left = deadline_ns - clock_now_ns();

		if (seen >= n || left <= 0 || (!to_the_end && run_stopped(&s->shared->stop)))
			return;
		thread_wait(&s->ended, seen, left < LOOK_NS ? left : LOOK_NS);
	}
}

static void stop_readers(struct sweep *s)
{
	atomic_store_explicit(&s->closing, 1, memory_order_relaxed);
	atomic_store_explicit(&s->stop.set, 1, memory_order_relaxed);
}

/* Starts `n` readers, which wait for `go`. */
static int start_readers(struct sweep *s, uint32_t n, uint32_t *started, struct err *e)
{
	int rc = 0;

	*started = 0;
	for (uint32_t i = 0; rc == 0 && i < n; i++) {
		struct probe_reader *r = &s->reader[i];
		char name[16];

		io_stat_init(&r->io);
		r->stat.samples = 0;
		r->err.code = 0;
		snprintf(name, sizeof(name), "probe%u", i);
		rc = thread_run(&r->thread, reader_main, r, (size_t)s->plan->w->run.stack_bytes,
				name, e);
		*started += rc == 0;
	}
	return rc;
}

/* False when one hangs: it is left to itself. */
static bool end_readers(struct sweep *s, uint32_t n, int64_t linger_ns)
{
	int64_t now = clock_now_ns();
	bool ended;

	atomic_store_explicit(&s->closing, 1, memory_order_relaxed);
	wait_for_readers(s, n, now + linger_ns, false);
	stop_readers(s);
	wait_for_readers(s, n, clock_now_ns() + GRACE_NS, true);
	ended = all_ended(s, n);
	for (uint32_t i = 0; i < n; i++)
		if (!thread_join_within(&s->reader[i].thread, ended ? -1 : 0))
			thread_leave(&s->reader[i].thread);
	return ended;
}

static double longest_request_s(const struct io_stat *io)
{
	uint64_t most = 0;

	for (int kind = IO_META; kind <= IO_DATA; kind++)
		if (io->kind[kind].requests && io->kind[kind].latency_ns.max > most)
			most = io->kind[kind].latency_ns.max;
	return (double)most / 1e9;
}

static void add_reader(struct probe_point *p, const struct probe_reader *r)
{
	const struct io_stat *io = &r->io;
	double longest = longest_request_s(io);

	p->samples += r->stat.samples;
	p->opens += (io->kind[IO_OPEN].requests + 1) / 2;
	p->open_s += (double)io->kind[IO_OPEN].busy_ns / 1e9;
	p->meta_s += (double)io->kind[IO_META].busy_ns / 1e9;
	for (int kind = IO_META; kind <= IO_DATA; kind++) {
		for (int size = 0; size < IO_CLASSES; size++)
			p->requests +=
				io_stat_sized(io, (enum io_kind)kind, (enum io_class)size)->total;
		p->bytes += io->kind[kind].returned_bytes;
		p->read_s += (double)io->kind[kind].busy_ns / 1e9;
	}
	p->longest_s = fmax(p->longest_s, longest);
}

static uint64_t usual_bytes(const struct sweep *s, uint32_t n)
{
	uint64_t requests = 0, bytes = 0;

	for (uint32_t i = 0; i < n; i++) {
		requests += s->reader[i].io.kind[IO_DATA].requests;
		bytes += s->reader[i].io.kind[IO_DATA].asked_bytes;
	}
	return requests ? bytes / requests : 0;
}

static double slow_kind_s(const struct sweep *s, uint32_t n)
{
	double slow = 0;

	for (int kind = IO_OPEN; kind <= IO_DATA; kind++) {
		uint64_t requests = 0;
		double busy = 0;

		for (uint32_t i = 0; i < n; i++) {
			requests += s->reader[i].io.kind[kind].requests;
			busy += (double)s->reader[i].io.kind[kind].busy_ns / 1e9;
		}
		if (requests)
			slow = fmax(slow, busy / (double)requests);
	}
	return slow;
}

static void join_logs(const struct sweep *s, uint32_t n, bool opens, struct probe_log *out)
{
	const struct read_log *log[PROBE_READERS_MAX];

	for (uint32_t i = 0; i < n; i++)
		log[i] = opens ? &s->reader[i].io.opens : &s->reader[i].io.reads;
	out->seen = read_log_join(log, n, &out->n, &out->apart, &out->wide);
}

/* 0, or the failure of a reader; -ETIMEDOUT when one hangs. */
static int run_point(struct sweep *s, uint32_t n, int64_t time_ns, struct probe_point *out,
		     struct err *e)
{
	int64_t begin, end, cpu = proc_cpu_ns();
	uint32_t started;
	int rc;

	atomic_store_explicit(&s->go, 0, memory_order_relaxed);
	atomic_store_explicit(&s->ended, 0, memory_order_relaxed);
	atomic_store_explicit(&s->closing, 0, memory_order_relaxed);
	atomic_store_explicit(&s->stop.set, 0, memory_order_relaxed);
	rc = start_readers(s, n, &started, e);
	if (rc < 0)
		stop_readers(s);
	begin = end = clock_now_ns();
	atomic_store_explicit(&s->go, 1, memory_order_release);
	thread_wake(&s->go, -1);
	if (rc == 0)
		wait_for_readers(s, started, begin + time_ns, false);
	if (!end_readers(s, started, time_ns > s->linger_ns ? time_ns : s->linger_ns))
		return err_set(e, -ETIMEDOUT,
			       "a request of one of %u readers did not return for %d s", n,
			       (int)(GRACE_NS / NS_PER_S));
	for (uint32_t i = 0; i < started; i++) {
		const struct probe_reader *r = &s->reader[i];

		add_reader(out, r);
		out->reader_s += (double)(r->end_ns - begin) / 1e9;
		end = r->end_ns > end ? r->end_ns : end;
		if (r->err.code < 0 && rc == 0) {
			*e = r->err;
			rc = r->err.code;
		}
	}
	s->slow_s = slow_kind_s(s, started);
	if (!s->sized)
		s->usual = usual_bytes(s, started);
	out->seconds = (double)(end - begin) / 1e9;
	out->cpu_s = (double)(proc_cpu_ns() - cpu) / 1e9;
	if (rc == 0) {
		join_logs(s, started, false, &out->reads);
		join_logs(s, started, true, &out->open_log);
	}
	return rc;
}

/* ---- the page cache ---- */

/* Whether the readers' bytes could come from this machine's page cache. */
static bool through_page_cache(const struct run_plan *p)
{
	return store_base_flags(p->store) & STORE_HAS_FILES &&
	       !(store_base_flags(p->store) & STORE_IS_UNCACHED);
}

static bool evicts(const struct run_plan *p)
{
	return through_page_cache(p) && p->w->storage.page_cache != PAGE_CACHE_KEEP;
}

static struct residency_job cache_job(const struct sweep *s)
{
	return (struct residency_job){.dataset = s->plan->d,
				      .store = s->plan->store,
				      .files = s->files,
				      .stop = &s->shared->stop.flag};
}

static int evict_files(struct sweep *s, double *took_s, struct err *e)
{
	struct residency_job job = cache_job(s);
	int64_t begin = clock_now_ns();
	int rc = residency_evict_some(&job, e);

	*took_s += (double)(clock_now_ns() - begin) / 1e9;
	atomic_store_explicit(&s->next, 0, memory_order_relaxed);
	return rc;
}

/* Whether the next point could read what is left before its time is over. */
static bool runs_short(const struct sweep *s, const struct probe_point *last)
{
	uint64_t next = atomic_load_explicit(&s->next, memory_order_relaxed) * s->parts;
	uint64_t units = s->whole_files ? last->samples / s->config.dataset->samples_per_file
					: last->samples;

	return next > s->units || s->units - next < 4 * units;
}

static double cached_part(const struct residency *c)
{
	return c->known && c->bytes ? (double)c->cached_bytes / (double)c->bytes : NAN;
}

/* Files that the run read from the storage and left in a page cache that is not to be touched would
 * be read from there now. */
static int check_kept_cache(const struct sweep *s, const struct result *r, struct err *e)
{
	struct residency_job job = cache_job(s);
	struct residency now;
	int rc;

	if (!through_page_cache(s->plan) || evicts(s->plan) || !r->usage)
		return 0;
	job.files = job.files < 64 ? job.files : 64;
	rc = residency_look(&job, &now, e);
	if (rc < 0)
		return rc;
	if (cached_part(&r->usage[0].cache_start) < 0.5 && cached_part(&now) > 0.5)
		return err_set(e, ERR_USAGE,
			       "training read the files from the storage, but now they are in the "
			       "page cache, and storage.page_cache is keep: set it to cold or "
			       "cold_epochs");
	return 0;
}

/* ---- the sweep ---- */

static void release_sweep(struct sweep *s)
{
	for (uint32_t i = 0; i < s->readers; i++) {
		sample_reader_close(&s->reader[i].reader, NULL);
		sample_reader_release(&s->reader[i].reader);
		free(s->reader[i].blob);
		buffer_free(s->reader[i].bytes, s->sized);
	}
	free(s->reader);
	free(s);
}

static void plan_units(struct sweep *s)
{
	const struct dataset *d = s->plan->d;

	s->files = d->files[DATASET_TRAIN] < FILES_MAX ? d->files[DATASET_TRAIN] : FILES_MAX;
	s->whole_files = d->format->is.flags & FORMAT_STREAM;
	s->units = s->whole_files ? s->files : u64_product(s->files, d->samples_per_file);
	s->again = !evicts(s->plan);
	perm_init(&s->order, s->units, rng_key(s->plan->seed, 0x70726f62, 0));
}

static int make_sweep(struct sweep **out, const struct run_plan *p, struct run_shared *shared,
		      uint32_t readers, struct err *e)
{
	struct sweep *s = try_calloc(1, sizeof(*s), "a probe", e);
	int rc = 0;

	*out = s;
	if (!s)
		return -ENOMEM;
	s->plan = p;
	s->shared = shared;
	s->part = p->at->net ? net_process_number(p->at->net) : 0;
	s->parts = p->at->net ? net_processes(p->at->net) : 1;
	reader_settings(p, &s->stop, &s->config, &s->settings);
	plan_units(s);
	s->reader = try_calloc(readers, sizeof(*s->reader), "the readers of a probe", e);
	if (!s->reader)
		return -ENOMEM;
	for (; rc == 0 && s->readers < readers; s->readers++) {
		struct probe_reader *r = &s->reader[s->readers];

		r->sweep = s;
		r->stat.io = &r->io;
		sample_reader_init(&r->reader, &s->config, &s->settings, s->readers, false,
				   &s->halt, &r->stat);
		r->reader.io.stat = &r->io;
		rc = sample_reader_open(&r->reader, e);
	}
	return rc;
}

/* What process 0 decides before each point. */
struct next_point {
	uint32_t readers; /* of all processes; 0: the sweep is over */
	bool cut;         /* before its end: the time of a request is why */
	double request_s;
	uint64_t
		sized; /* after the sweep: bytes of requests of another size; 0: none is possible */
};

/* Doubling until `most`. What a request takes now tells how long one of twice as many readers may
 * take. */
static void choose_next(const struct sweep *s, const struct probe *p, uint32_t most, double time_s,
			struct next_point *n)
{
	n->readers = p->count ? 2 * p->point[p->count - 1].readers : 1;
	if (n->readers > most || p->count == PROBE_POINTS_MAX) {
		n->readers = 0;
	} else if (2 * s->slow_s > TOO_LONG * time_s) {
		n->readers = 0;
		n->cut = true;
		n->request_s = s->slow_s;
	}
}

/* Those of native access, where they are much larger; else rather smaller ones. Of whole pages: a
 * page cache and direct reads know no others. */
static uint64_t other_size(const struct sweep *s)
{
	uint64_t less = s->usual / SIZED_BY, more = s->usual * SIZED_BY;
	uint64_t room = sized_room(s->plan), native = native_bytes(s->plan);

	native = (native < room ? native : room) / SIZED_PAGE * SIZED_PAGE;
	if (s->usual > 0 && native / SIZED_NATIVE >= s->usual)
		return native;
	if (less >= SIZED_PAGE)
		return (less > room ? room : less) / SIZED_PAGE * SIZED_PAGE;
	more = (more + SIZED_PAGE - 1) / SIZED_PAGE * SIZED_PAGE;
	if (s->usual > 0 && more <= room && more <= s->plan->d->max_file_bytes)
		return more;
	return store_base_flags(s->plan->store) & STORE_HAS_FILES ? 0 : less;
}

static unsigned points_up_to(uint32_t most)
{
	unsigned n = 1;

	while (1u << n <= most && n < PROBE_POINTS_MAX)
		n++;
	return n;
}

/* One point in all processes: the share of this one. `fresh`: nothing of what it reads was read
 * before. */
static int point_everywhere(struct sweep *s, struct probe_point *out, uint32_t readers,
			    double time_s, bool fresh, struct probe *p, struct err *e)
{
	uint32_t here = readers / s->parts + (s->part < readers % s->parts);
	int rc = 0;

	*out = (struct probe_point){.readers = readers};
	if (here > s->readers)
		rc = err_set(e, -ENOMEM, "the memory of %u readers is not available", here);
	if (rc == 0 && evicts(s->plan) && fresh)
		rc = evict_files(s, &p->evict_s, e);
	rc = run_agree(s->plan->at, rc, e);
	if (rc < 0)
		return rc;
	rc = run_point(s, here, (int64_t)(time_s * 1e9), out, e);
	p->hung = rc == -ETIMEDOUT;
	if (rc == 0 && run_stopped(&s->shared->stop))
		rc = err_set(e, ERR_CANCELED, "the run was stopped");
	rc = run_agree(s->plan->at, rc, e);
	if (rc < 0) {
		free(out->reads.seen);
		free(out->open_log.seen);
		*out = (struct probe_point){0};
	}
	atomic_fetch_add_explicit(&s->shared->probe_done, 1, memory_order_relaxed);
	return rc;
}

/* Readers read requests of `bytes` from now on. */
static int begin_sized(struct sweep *s, uint64_t bytes, struct err *e)
{
	s->sized = (size_t)bytes;
	s->whole_files = true;
	s->units = s->files;
	perm_init(&s->order, s->units, rng_key(s->plan->seed, 0x70726f62, 1));
	atomic_store_explicit(&s->next, 0, memory_order_relaxed);
	for (uint32_t i = 0; i < s->readers; i++) {
		struct probe_reader *r = &s->reader[i];

		r->blob = store_blob_new(s->plan->store, e);
		if (r->blob)
			r->bytes = buffer_alloc(s->sized, "buffers of a probe", e);
		if (!r->bytes)
			return -ENOMEM;
	}
	return 0;
}

static int sweep_sizes(struct sweep *s, struct probe *p, uint64_t bytes, double time_s,
		       struct err *e)
{
	uint32_t readers[PROBE_SIZED_MAX] = {1, p->point[p->count - 1].readers};
	int rc = run_agree(s->plan->at, begin_sized(s, bytes, e), e);

	for (int i = 0; rc == 0 && i < PROBE_SIZED_MAX; i++) {
		rc = point_everywhere(s, &p->sized[i], readers[i], time_s, true, p, e);
		p->sized_count += rc == 0;
	}
	return rc;
}

static int sweep_points(struct sweep *s, struct probe *p, uint32_t most, double all_s,
			struct err *e)
{
	unsigned points = points_up_to(most) + PROBE_SIZED_MAX;
	double time_s = all_s / points;
	struct next_point next = {0};
	struct err sized;
	int rc = 0;

	atomic_store_explicit(&s->shared->probe_total, points, memory_order_relaxed);
	while (rc == 0) {
		choose_next(s, p, most, time_s, &next);
		next.sized = next.readers ? 0 : other_size(s);
		rc = run_share(s->plan->at, &next, sizeof(next), e);
		if (rc < 0 || next.readers == 0)
			break;
		rc = point_everywhere(s, &p->point[p->count], next.readers, time_s,
				      p->count == 0 || runs_short(s, &p->point[p->count - 1]), p,
				      e);
		p->count += rc == 0;
	}
	if (rc == 0 && next.cut)
		snprintf(p->why, sizeof(p->why),
			 "it ended at %u readers, as a request took %.1f s there: raise "
			 "run.probe_time",
			 p->point[p->count - 1].readers, next.request_s);
	if (rc == 0 && next.sized > 0 && p->count > 0 &&
	    sweep_sizes(s, p, next.sized, time_s, &sized) < 0)
		snprintf(p->why, sizeof(p->why), "requests of another size were not tried: %.200s",
			 sized.text);
	return rc;
}

static int carry_out(const struct run_plan *p, struct run_shared *shared, double time_s,
		     struct result *r, struct err *e)
{
	struct probe *out = &r->probe;
	struct sweep *s = NULL;
	uint64_t bytes;
	uint32_t here = readers_here(p, &bytes), most;
	int rc = here ? 0 : err_set(e, -ENOMEM, "the memory of its readers is not available");

	out->run_readers = run_readers(p);
	out->processes = p->at->net ? net_processes(p->at->net) : 1;
	out->cold = !through_page_cache(p) || evicts(p);
	if (rc == 0)
		rc = make_sweep(&s, p, shared, here, e);
	/* nobody asked for more time than its own */
	if (rc == 0)
		s->linger_ns = out->own ? 0 : LINGER_NS;
	if (rc == 0)
		rc = check_kept_cache(s, r, e);
	rc = run_agree(p->at, rc, e);
	most = here * out->processes < PROBE_READERS_MAX ? here * out->processes
							 : PROBE_READERS_MAX;
	if (rc == 0)
		rc = run_share(p->at, &most, sizeof(most), e);
	if (rc == 0)
		rc = sweep_points(s, out, most, time_s, e);
	if (s && !out->hung)
		release_sweep(s);
	return rc;
}

void probe_sweep(const struct run_plan *p, struct run_shared *shared, double time_s,
		 struct result *r)
{
	struct probe *out = &r->probe;
	struct err e = {0};
	int rc;

	out->asked = true;
	if (!p->w->workflow.train)
		rc = err_set(&e, ERR_USAGE, "without workflow.train no training files are read");
	else if (p->d->format->is.flags & FORMAT_NO_IO)
		rc = err_set(&e, ERR_USAGE, "dataset.format %s reads nothing",
			     p->w->dataset.format);
	else
		rc = carry_out(p, shared, time_s, r, &e);
	/* nobody asked for it: the run is as it would be without */
	if (rc < 0 && out->own && out->count == 0 && !out->hung) {
		*out = (struct probe){0};
		return;
	}
	if (rc < 0)
		snprintf(out->why, sizeof(out->why), "%.*s", (int)sizeof(out->why) - 1, e.text);
	/* two numbers of readers are the least that can be compared */
	out->done = rc == 0 && out->count >= 2;
}
