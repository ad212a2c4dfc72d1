/* The curves over time of result.json: the machine, and the accelerators, emulated and real. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "result/json_out.h"
#include "result/json_result.h"

#define BINS 150
/* a row each; of more ranks the mean and the least tell */
#define ROWS_MAX 32
#define CELLS_MAX ((size_t)64 << 20)

#define CURVE_POINTS 600

/* What a curve is made of: a rate between two points, or a level at the second. */
typedef double (*curve_fn)(const struct series_point *a, const struct series_point *b);

static double seconds_between(const struct series_point *a, const struct series_point *b)
{
	return (double)(b->t_ns - a->t_ns) / 1e9;
}

/* A second; not known where a counter went back, with its device or by coming round. */
static double rate(uint64_t a, uint64_t b, bool known, const struct series_point *from,
		   const struct series_point *to)
{
	return known && b >= a ? (double)(b - a) / seconds_between(from, to) : NAN;
}

static double disk_rate(const struct series_point *a, const struct series_point *b, uint64_t from,
			uint64_t to)
{
	return rate(from, to, a->disk.known && b->disk.known, a, b);
}

static double device_read(const struct series_point *a, const struct series_point *b)
{
	return disk_rate(a, b, a->disk.read_bytes, b->disk.read_bytes) / 0x1p20;
}

static double device_write(const struct series_point *a, const struct series_point *b)
{
	return disk_rate(a, b, a->disk.written_bytes, b->disk.written_bytes) / 0x1p20;
}

static double device_busy(const struct series_point *a, const struct series_point *b)
{
	double share = disk_rate(a, b, a->disk.busy_ms, b->disk.busy_ms) / 10;

	/* the kernel adds the time of a long request when it ends */
	return share > 100 ? 100 : share;
}

static double device_queue(const struct series_point *a, const struct series_point *b)
{
	return disk_rate(a, b, a->disk.queued_ms, b->disk.queued_ms) / 1000;
}

static double process_returned(const struct series_point *a, const struct series_point *b)
{
	return rate(a->process.rchar_bytes, b->process.rchar_bytes,
		    a->process.known && b->process.known, a, b) /
	       0x1p20;
}

static double payload(const struct series_point *a, const struct series_point *b)
{
	return rate(a->user, b->user, true, a, b) / 0x1p20;
}

/* The kernel's idle times go back a little at times. */
static double machine_cpu(const struct series_point *a, const struct series_point *b)
{
	double all = (double)b->cpu_all_ticks - (double)a->cpu_all_ticks;
	double busy = (double)b->cpu_busy_ticks - (double)a->cpu_busy_ticks;

	return all > 0 ? fmin(100, fmax(0, 100 * busy / all)) : NAN;
}

static double process_cpu(const struct series_point *a, const struct series_point *b)
{
	return 100 * (double)(b->process_cpu_ns - a->process_cpu_ns) / 1e9 / seconds_between(a, b);
}

static double cached(const struct series_point *a, const struct series_point *b)
{
	(void)a;
	return (double)b->cached_bytes / 0x1p20;
}

static double dirty(const struct series_point *a, const struct series_point *b)
{
	(void)a;
	return (double)b->dirty_bytes / 0x1p20;
}

static const struct {
	const char *key, *title, *unit;
	curve_fn of;
	bool disk;
} curves[] = {
	{"payload", "Sample data delivered (decoded)", "MiB/s", payload, false},
	{"returned", "Bytes returned by read calls of the run", "MiB/s", process_returned, false},
	{"device_read", "Read from the device", "MiB/s", device_read, true},
	{"device_write", "Written to the device", "MiB/s", device_write, true},
	{"device_busy", "Device busy", "%", device_busy, true},
	{"device_queue", "Requests queued at the device", "requests", device_queue, true},
	{"machine_cpu", "Processors busy, whole machine", "%", machine_cpu, false},
	{"process_cpu", "Processor time of the run", "% of one", process_cpu, false},
	{"page_cache", "Page cache of the machine", "MiB", cached, false},
	{"dirty", "Dirty pages of the machine", "MiB", dirty, false},
};

static json_t *curve_of(const struct series_point *p, size_t n, size_t stride, curve_fn of)
{
	json_t *values = json_array();

	for (size_t i = stride; i < n; i += stride) {
		double v = of(&p[i - stride], &p[i]);

		/* four digits draw any curve */
		if (isfinite(v) && v != 0) {
			double scale = pow(10, 3 - floor(log10(fabs(v))));

			v = round(v * scale) / scale;
		}
		json_array_append_new(values, json_number(v));
	}
	return values;
}

/* ---- the emulated accelerators ---- */

struct bins {
	int64_t begin_ns, bin_ns;
	size_t n;
	float *share;
};

static void add_computing(const struct bins *b, int64_t from_ns, int64_t to_ns)
{
	int64_t at = from_ns > b->begin_ns ? from_ns - b->begin_ns : 0, end = to_ns - b->begin_ns;

	while (at < end) {
		size_t i = (size_t)(at / b->bin_ns);
		int64_t edge = ((int64_t)i + 1) * b->bin_ns;

		if (i >= b->n)
			return;
		edge = edge < end ? edge : end;
		b->share[i] += (float)((double)(edge - at) / (double)b->bin_ns);
		at = edge;
	}
}

static void add_phase_computing(const struct bins *b, const struct phase *p)
{
	for (uint64_t i = 0; i < p->steps; i++)
		add_computing(b, p->step[i].compute_begin_ns,
			      p->step[i].compute_end_ns - step_late_ns(&p->step[i]));
}

/* Per rank and bin: the share of the time from begin_ns + i * bin_ns to the next bin in which the
 * rank computed, in training and evaluation; out[rank * bins + i], 0 to 1. Time is CLOCK_MONOTONIC
 * as in the steps of `r`. One pass over the steps. */
static void accelerator_use(const struct result *r, int64_t begin_ns, int64_t bin_ns, size_t bins,
			    float *out)
{
	memset(out, 0, (size_t)r->ranks * bins * sizeof(*out));
	for (uint32_t k = 0; k < r->ranks; k++) {
		struct bins b = {begin_ns, bin_ns, bins, &out[(size_t)k * bins]};

		for (uint32_t e = 0; e < r->epochs_begun; e++) {
			const struct rank_epoch *ep = &r->rank[k].epoch[e];

			for (uint32_t i = 0; i < ep->blocks; i++)
				add_phase_computing(&b, &ep->block[i]);
			if (ep->has_eval)
				add_phase_computing(&b, &ep->eval);
		}
		/* sums of floats: a hair above */
		for (size_t i = 0; i < bins; i++)
			b.share[i] = b.share[i] < 1 ? b.share[i] : 1;
	}
}

static json_t *percents(const float *share, size_t bins)
{
	json_t *values = json_array();

	for (size_t i = 0; i < bins; i++)
		json_array_append_new(values, json_number(round(100 * (double)share[i])));
	return values;
}

static void put_emulated(json_t *o, const struct result *r, int64_t bin_ns, size_t bins,
			 const float *share)
{
	json_t *mean = json_array(), *least = json_array(), *rows = json_array();

	for (size_t i = 0; i < bins; i++) {
		double sum = 0, low = 1;
		uint32_t n = 0;

		for (uint32_t k = 0; k < r->ranks; k++) {
			double v = (double)share[(size_t)k * bins + i];

			if (r->rank[k].lost)
				continue;
			n++;
			sum += v;
			low = v < low ? v : low;
		}
		json_array_append_new(mean, json_number(round(1000 * sum / n) / 10));
		json_array_append_new(least, json_number(round(1000 * low) / 10));
	}
	json_put_real(o, "interval_s", (double)bin_ns / 1e9);
	json_put_text(o, "unit", "%");
	json_put(o, "mean", mean);
	json_put(o, "least", least);
	for (uint32_t k = 0; k < r->ranks && r->ranks <= ROWS_MAX; k++)
		json_array_append_new(rows, percents(&share[(size_t)k * bins], bins));
	json_put(o, "ranks", rows);
}

static json_t *emulated_accelerators(const struct result *r, const struct series_point *p, size_t n)
{
	size_t bins = n - 1 < BINS ? n - 1 : BINS;
	int64_t bin_ns = n > 1 ? (p[n - 1].t_ns - p[0].t_ns) / (int64_t)bins : 0;
	float *share = NULL;
	json_t *o;

	if (bin_ns > 0 && r->rank && r->ranks > 0 && r->ranks <= CELLS_MAX / bins)
		share = xmalloc((size_t)r->ranks * bins * sizeof(*share));
	if (!share)
		return NULL;
	o = json_object();
	accelerator_use(r, p[0].t_ns, bin_ns, bins, share);
	put_emulated(o, r, bin_ns, bins, share);
	free(share);
	return o;
}

/* ---- the real ones ---- */

static void put_curve(json_t *o, const char *key, const char *unit, json_t *values)
{
	json_t *one = json_object();

	json_put_text(one, "unit", unit);
	json_put(one, "values", values);
	json_put(o, key, one);
}

static json_t *one_gpu(const struct series *s, uint32_t k, const struct series_point *p, size_t n,
		       size_t stride)
{
	json_t *o = json_object(), *busy = json_array(), *memory_busy = json_array();
	json_t *power = json_array(), *used = json_array();
	const struct gpu_counters *first = &series_gpu_counters(s, 0)[k];
	const struct gpu_counters *last = &series_gpu_counters(s, n - 1)[k];
	double whole = (double)(p[n - 1].t_ns - p[0].t_ns);

	for (size_t i = stride; i < n; i += stride) {
		const struct gpu_counters *a = &series_gpu_counters(s, i - stride)[k];
		const struct gpu_counters *b = &series_gpu_counters(s, i)[k];
		double ns = (double)(p[i].t_ns - p[i - stride].t_ns);

		json_array_append_new(
			busy,
			json_number(round(1000 * (double)(b->busy_ns - a->busy_ns) / ns) / 10));
		json_array_append_new(
			memory_busy,
			json_number(
				round(1000 * (double)(b->memory_busy_ns - a->memory_busy_ns) / ns) /
				10));
		json_array_append_new(
			power,
			json_number(round((double)(b->energy_mj - a->energy_mj) * 1e6 / ns)));
		json_array_append_new(used, json_number(round((double)b->memory_used / 0x1p20)));
	}
	json_put_text(o, "name", gpu_name(series_gpus(s), k));
	json_put_text(o, "driver", gpus_driver(series_gpus(s)));
	json_put_int(o, "memory_bytes", gpu_memory_bytes(series_gpus(s), k));
	if (whole > 0)
		json_put_real(o, "busy_percent",
			      100 * (double)(last->busy_ns - first->busy_ns) / whole);
	json_put_real(o, "energy_j", (double)(last->energy_mj - first->energy_mj) / 1e3);
	put_curve(o, "busy", "%", busy);
	put_curve(o, "memory_busy", "%", memory_busy);
	put_curve(o, "power", "W", power);
	put_curve(o, "memory_used", "MiB", used);
	return o;
}

static json_t *real_accelerators(const struct series *s, const struct series_point *p, size_t n,
				 size_t stride)
{
	json_t *list = json_array();

	for (uint32_t k = 0; n > 0 && k < gpus_count(series_gpus(s)); k++)
		json_array_append_new(list, one_gpu(s, k, p, n, stride));
	return list;
}

/* ---- all of it ---- */

json_t *json_series(const struct result *r)
{
	json_t *o = json_object(), *list = json_object(), *use;
	const struct block_list *devices = series_devices(r->series);
	char names[256];
	size_t n, stride;
	const struct series_point *p = series_points(r->series, &n);

	/* the point of the end comes when it comes; a rate over next to no time is none */
	if (n > 2 && seconds_between(&p[n - 2], &p[n - 1]) < 0.5 * seconds_between(&p[0], &p[1]))
		n--;
	stride = (n + CURVE_POINTS - 1) / CURVE_POINTS;
	stride = stride ? stride : 1;
	if (n > stride)
		json_put_real(o, "interval_s", (double)(p[stride].t_ns - p[0].t_ns) / 1e9);
	json_put_real(o, "begin_s", n ? (double)(p[0].t_ns - r->begin_ns) / 1e9 : 0);
	json_put_text(o, "device",
		      devices->n ? block_list_names(devices, names, sizeof(names)) : NULL);
	for (size_t i = 0; i < sizeof(curves) / sizeof(curves[0]); i++) {
		json_t *one;

		if (curves[i].disk && devices->n == 0)
			continue;
		one = json_object();
		json_put_text(one, "title", curves[i].title);
		json_put_text(one, "unit", curves[i].unit);
		json_put(one, "values", curve_of(p, n, stride, curves[i].of));
		json_put(list, curves[i].key, one);
	}
	json_put(o, "curves", list);
	use = n > 1 ? emulated_accelerators(r, p, n) : NULL;
	if (use)
		json_put(o, "accelerator_use", use);
	if (series_gpus(r->series))
		json_put(o, "gpus", real_accelerators(r->series, p, n, stride));
	return o;
}
