/* The emulated and the real accelerators over time, beside the other curves of result.json. */
#include <math.h>
#include <stdlib.h>

#include "result/accelerator_use.h"
#include "result/json_out.h"
#include "result/json_parts.h"

#define BINS 150
/* a row each; of more ranks the mean and the least tell */
#define ROWS_MAX 32
#define CELLS_MAX ((size_t)64 << 20)

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

json_t *json_accelerator_use(const struct result *r, const struct series_point *p, size_t n)
{
	size_t bins = n - 1 < BINS ? n - 1 : BINS;
	int64_t bin_ns = n > 1 ? (p[n - 1].t_ns - p[0].t_ns) / (int64_t)bins : 0;
	float *share = NULL;
	json_t *o;

	if (bin_ns > 0 && r->rank && r->ranks > 0 && r->ranks <= CELLS_MAX / bins)
		share = malloc((size_t)r->ranks * bins * sizeof(*share));
	if (!share)
		return NULL;
	o = json_object();
	accelerator_use(r, p[0].t_ns, bin_ns, bins, share);
	put_emulated(o, r, bin_ns, bins, share);
	free(share);
	return o;
}

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

json_t *json_gpus(const struct series *s, const struct series_point *p, size_t n, size_t stride)
{
	json_t *list = json_array();

	for (uint32_t k = 0; n > 0 && k < gpus_count(series_gpus(s)); k++)
		json_array_append_new(list, one_gpu(s, k, p, n, stride));
	return list;
}
