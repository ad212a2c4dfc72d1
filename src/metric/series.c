/* The sampler. */
#include "metric/series.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"

#define INTERVAL_LEAST_NS (NS_PER_S / 100)

struct series {
	struct series_point *point;
	struct gpu_counters *gpu; /* gpus_count of each point */
	struct gpus *gpus;
	size_t points;
	int64_t interval_ns;
	struct block_tree tree;
	series_extra_fn extra;
	void *arg;
	pthread_mutex_t lock; /* of latest */
	struct series_point latest;
	pthread_t thread;
	_Atomic uint32_t quit;
	bool running;
};

size_t series_memory_bytes(void)
{
	return sizeof(struct series) + SERIES_POINTS_MAX * (sizeof(struct series_point) +
							    GPUS_MAX * sizeof(struct gpu_counters));
}

static void sample_cpu(struct series_point *p)
{
	unsigned long long v[8] = {0};
	FILE *f = fopen("/proc/stat", "re");

	if (!f)
		return;
	/* user nice system idle iowait irq softirq steal */
	if (fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2], &v[3],
		   &v[4], &v[5], &v[6], &v[7]) == 8) {
		for (int i = 0; i < 8; i++)
			p->cpu_all_ticks += v[i];
		p->cpu_busy_ticks = p->cpu_all_ticks - v[3] - v[4];
	}
	fclose(f);
}

static void sample_memory(struct series_point *p)
{
	FILE *f = fopen("/proc/meminfo", "re");
	char line[128];

	while (f && fgets(line, sizeof(line), f)) {
		unsigned long long kib;

		if (sscanf(line, "Cached: %llu", &kib) == 1)
			p->cached_bytes = kib * 1024;
		else if (sscanf(line, "Dirty: %llu", &kib) == 1)
			p->dirty_bytes = kib * 1024;
		else if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
			p->available_bytes = kib * 1024;
	}
	if (f)
		fclose(f);
}

static void halve(struct series *s)
{
	size_t gpus = gpus_count(s->gpus);

	for (size_t i = 1; 2 * i < s->points; i++) {
		s->point[i] = s->point[2 * i];
		for (size_t k = 0; k < gpus; k++)
			s->gpu[i * gpus + k] = s->gpu[2 * i * gpus + k];
	}
	s->points = (s->points + 1) / 2;
	s->interval_ns *= 2;
}

static void sample(struct series *s)
{
	struct series_point *p;

	if (s->points == SERIES_POINTS_MAX)
		halve(s);
	p = &s->point[s->points];
	*p = (struct series_point){.t_ns = clock_now_ns()};
	block_list_sample(&s->tree.whole, &p->disk);
	proc_io_sample(&p->process);
	p->process_cpu_ns = proc_cpu_ns();
	sample_cpu(p);
	sample_memory(p);
	if (s->gpus)
		gpus_sample(s->gpus, p->t_ns, &s->gpu[s->points * gpus_count(s->gpus)]);
	if (s->extra)
		p->user = s->extra(s->arg);
	s->points++;
	pthread_mutex_lock(&s->lock);
	s->latest = *p;
	pthread_mutex_unlock(&s->lock);
}

void series_latest(struct series *s, struct series_point *out)
{
	pthread_mutex_lock(&s->lock);
	*out = s->latest;
	pthread_mutex_unlock(&s->lock);
}

static void *series_main(void *arg)
{
	struct series *s = arg;
	int64_t next = clock_now_ns() + s->interval_ns;

	while (atomic_load(&s->quit) == 0) {
		int64_t left = next - clock_now_ns();

		if (left > 0) {
			thread_wait(&s->quit, 0, left);
			continue;
		}
		sample(s);
		next += s->interval_ns;
		/* a machine that was suspended or overloaded takes no burst of points */
		if (next < clock_now_ns())
			next = clock_now_ns() + s->interval_ns;
	}
	return NULL;
}

/* Without room for their counters the GPUs are not sampled. */
static void look_for_gpus(struct series *s)
{
	s->gpus = gpus_open();
	if (!s->gpus)
		return;
	s->gpu = calloc((size_t)SERIES_POINTS_MAX * gpus_count(s->gpus), sizeof(*s->gpu));
	if (s->gpu)
		return;
	gpus_close(s->gpus);
	s->gpus = NULL;
}

int series_start(struct series **out, const char *folder, int64_t interval_ns, bool gpus,
		 series_extra_fn extra, void *arg, struct err *e)
{
	struct series *s = xcalloc(1, sizeof(*s));
	int rc;

	*out = NULL;
	s->interval_ns = interval_ns < INTERVAL_LEAST_NS ? INTERVAL_LEAST_NS : interval_ns;
	s->extra = extra;
	s->arg = arg;
	pthread_mutex_init(&s->lock, NULL);
	s->point = try_calloc(SERIES_POINTS_MAX, sizeof(*s->point), "samples of the machine", e);
	if (!s->point) {
		series_release(s);
		return -ENOMEM;
	}
	block_tree_of(&s->tree, "", folder);
	if (gpus)
		look_for_gpus(s);
	sample(s);
	rc = thread_start(&s->thread, series_main, s, 0, "series", e);
	if (rc < 0) {
		series_release(s);
		return rc;
	}
	s->running = true;
	*out = s;
	return 0;
}

void series_stop(struct series *s)
{
	if (!s || !s->running)
		return;
	atomic_store(&s->quit, 1);
	thread_wake(&s->quit, 1);
	pthread_join(s->thread, NULL);
	s->running = false;
	sample(s);
}

const struct series_point *series_points(const struct series *s, size_t *n)
{
	*n = s ? s->points : 0;
	return s ? s->point : NULL;
}

const struct block_list *series_devices(const struct series *s)
{
	return &s->tree.whole;
}

const struct gpus *series_gpus(const struct series *s)
{
	return s->gpus;
}

const struct gpu_counters *series_gpu_counters(const struct series *s, size_t point)
{
	return &s->gpu[point * gpus_count(s->gpus)];
}

int64_t series_interval_ns(const struct series *s)
{
	return s->interval_ns;
}

void series_release(struct series *s)
{
	if (!s)
		return;
	pthread_mutex_destroy(&s->lock);
	gpus_close(s->gpus);
	free(s->gpu);
	free(s->point);
	free(s);
}
