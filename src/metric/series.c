/* The sampler. */
#include "metric/series.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "metric/ticker.h"

#define INTERVAL_LEAST_NS (NS_PER_S / 100)

struct series {
	struct series_point *point;
	struct gpu_counters *gpu; /* gpus_count of each point */
	struct gpus *gpus;
	size_t points;
	struct block_tree tree;
	series_extra_fn extra;
	void *arg;
	pthread_mutex_t lock; /* of latest */
	struct series_point latest;
	struct ticker ticker;
	bool running;
};

size_t series_memory_bytes(void)
{
	return sizeof(struct series) + SERIES_POINTS_MAX * (sizeof(struct series_point) +
							    GPUS_MAX * sizeof(struct gpu_counters));
}

static void sample_cpu(struct series_point *p)
{
	uint64_t v[CPU_STATES];

	if (!host_cpu_ticks(v))
		return;
	for (int i = 0; i < CPU_STATES; i++)
		p->cpu_all_ticks += v[i];
	p->cpu_busy_ticks = p->cpu_all_ticks - v[CPU_IDLE] - v[CPU_IOWAIT];
}

static void sample_memory(struct series_point *p)
{
	FILE *f = WITH_MEMORY(fopen("/proc/meminfo", "re"));
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

static void halve_points(struct series *s)
{
	size_t gpus = gpus_count(s->gpus);

	assert(s->points == SERIES_POINTS_MAX);
	for (size_t i = 1; 2 * i < s->points; i++) {
		s->point[i] = s->point[2 * i];
		for (size_t k = 0; k < gpus; k++)
			s->gpu[i * gpus + k] = s->gpu[2 * i * gpus + k];
	}
	s->points = (s->points + 1) / 2;
	s->ticker.interval_ns *= 2;
}

static void take_point(void *arg)
{
	struct series *s = arg;
	struct series_point *p;

	if (s->points == SERIES_POINTS_MAX)
		halve_points(s);
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

/* Without room for their counters the GPUs are not sampled. */
static void open_gpus(struct series *s)
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
	s->ticker = (struct ticker){
		.fn = take_point,
		.arg = s,
		.interval_ns = interval_ns < INTERVAL_LEAST_NS ? INTERVAL_LEAST_NS : interval_ns,
	};
	s->extra = extra;
	s->arg = arg;
	pthread_mutex_init(&s->lock, NULL);
	s->point = try_calloc(SERIES_POINTS_MAX, sizeof(*s->point), "samples of the machine", e);
	if (!s->point) {
		series_release(s);
		return -ENOMEM;
	}
	if (folder)
		block_tree_of(&s->tree, "", folder);
	if (gpus)
		open_gpus(s);
	take_point(s);
	rc = ticker_start(&s->ticker, "series", e);
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
	ticker_stop(&s->ticker);
	s->running = false;
	take_point(s);
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
	assert(s->gpus && point < s->points);
	return &s->gpu[point * gpus_count(s->gpus)];
}

size_t series_flows(const struct series *s, struct series_flow out[SERIES_FLOWS_MAX])
{
	size_t n = s && s->points < SERIES_FLOWS_MAX ? s->points : SERIES_FLOWS_MAX;

	if (!s)
		return 0;
	for (size_t i = 0; i < n; i++) {
		const struct series_point *p = &s->point[n > 1 ? i * (s->points - 1) / (n - 1) : 0];

		out[i] = (struct series_flow){p->t_ns, p->user, p->process.rchar_bytes,
					      p->process_cpu_ns};
	}
	return n;
}

static uint64_t between(uint64_t a, uint64_t b, double at)
{
	return a + (uint64_t)((double)(b - a) * at);
}

void series_add_flows(struct series *s, const struct series_flow *flow, size_t n)
{
	size_t k = 0;

	for (size_t i = 0; n && i < s->points; i++) {
		struct series_point *p = &s->point[i];
		const struct series_flow *a, *b;
		double at;

		while (k + 1 < n && flow[k + 1].t_ns <= p->t_ns)
			k++;
		a = &flow[k];
		b = k + 1 < n && p->t_ns > a->t_ns ? &flow[k + 1] : a;
		at = b->t_ns > a->t_ns ? (double)(p->t_ns - a->t_ns) / (double)(b->t_ns - a->t_ns)
				       : 0;
		p->user += between(a->user, b->user, at);
		p->process.rchar_bytes += between(a->rchar_bytes, b->rchar_bytes, at);
		p->process_cpu_ns += (int64_t)between((uint64_t)a->cpu_ns, (uint64_t)b->cpu_ns, at);
	}
}

struct series *series_of(const struct block_list *devices, struct series_point *point, size_t n)
{
	struct series *s = xcalloc(1, sizeof(*s));

	pthread_mutex_init(&s->lock, NULL);
	s->tree.whole = *devices;
	s->point = point;
	s->points = n;
	if (n)
		s->latest = point[n - 1];
	return s;
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
