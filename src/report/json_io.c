/* Counters of requests with their latencies: quantiles to read, and buckets that other results' can
 * be added to. */
#include "report/json_out.h"
#include "report/json_parts.h"

static json_t *buckets(const struct hist *h)
{
	json_t *list = json_array();

	for (size_t i = 0; i < HIST_BUCKETS; i++) {
		json_t *pair;

		if (h->count[i] == 0)
			continue;
		pair = json_array();
		json_array_append_new(pair, json_count(hist_bucket_low(i)));
		json_array_append_new(pair, json_count(h->count[i]));
		json_array_append_new(list, pair);
	}
	return list;
}

static json_t *latency(const struct hist *h)
{
	static const struct {
		const char *name;
		double fraction;
	} quantiles[] = {{"p50_ns", 0.5}, {"p90_ns", 0.9}, {"p99_ns", 0.99}, {"p99_9_ns", 0.999}};
	json_t *o = json_object();

	json_put_int(o, "count", h->total);
	if (h->total == 0)
		return o;
	json_put_real(o, "mean_ns", h->sum / (double)h->total);
	json_put_int(o, "min_ns", h->min);
	for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++)
		json_put_int(o, quantiles[i].name, hist_quantile(h, quantiles[i].fraction));
	json_put_int(o, "max_ns", h->max);
	json_put(o, "buckets", buckets(h));
	return o;
}

json_t *json_io(const struct io_stat *io)
{
	json_t *out = json_object();

	for (int k = 0; k < IO_KINDS; k++) {
		json_t *o = json_object();

		json_put_int(o, "requests", io->kind[k].requests);
		json_put_int(o, "asked_bytes", io->kind[k].asked_bytes);
		json_put_int(o, "returned_bytes", io->kind[k].returned_bytes);
		json_put_real(o, "busy_s", (double)io->kind[k].busy_ns / 1e9);
		json_put(o, "latency", latency(&io->kind[k].latency_ns));
		json_put(out, io_kind_names[k], o);
	}
	return out;
}
