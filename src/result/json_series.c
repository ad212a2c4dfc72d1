/* The curves over time of result.json. */
#include <math.h>

#include "result/json_out.h"
#include "result/json_parts.h"

#define CURVE_POINTS 600

/* What a curve is made of: a rate between two points, or a level at the second. */
typedef double (*curve_fn)(const struct series_point *a, const struct series_point *b);

static double seconds(const struct series_point *a, const struct series_point *b)
{
	return (double)(b->t_ns - a->t_ns) / 1e9;
}

/* A second; not known where a counter went back, with its device or by coming round. */
static double rate(uint64_t a, uint64_t b, bool known, const struct series_point *from,
		   const struct series_point *to)
{
	return known && b >= a ? (double)(b - a) / seconds(from, to) : NAN;
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
	return 100 * (double)(b->process_cpu_ns - a->process_cpu_ns) / 1e9 / seconds(a, b);
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
	{"payload", "Sample data delivered", "MiB/s", payload, false},
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

json_t *json_series(const struct result *r)
{
	json_t *o = json_object(), *list = json_object(), *use;
	const struct block_list *devices = series_devices(r->series);
	char names[256];
	size_t n, stride;
	const struct series_point *p = series_points(r->series, &n);

	/* the point of the end comes when it comes; a rate over next to no time is none */
	if (n > 2 && seconds(&p[n - 2], &p[n - 1]) < 0.5 * seconds(&p[0], &p[1]))
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
	use = n > 1 ? json_accelerator_use(r, p, n) : NULL;
	if (use)
		json_put(o, "accelerator_use", use);
	if (series_gpus(r->series))
		json_put(o, "gpus", json_gpus(r->series, p, n, stride));
	return o;
}
