/* Counters of requests with their latencies: quantiles to read, and buckets that other results' can
 * be added to. */
#include "result/json_out.h"
#include "result/json_parts.h"

static json_t *bucket(uint64_t low, uint32_t count)
{
	json_t *pair = json_array();

	json_array_append_new(pair, json_count(low));
	json_array_append_new(pair, json_count(count));
	return pair;
}

static json_t *buckets(const struct hist *h)
{
	json_t *list = json_array();

	for (size_t i = 0; i < HIST_BUCKETS; i++)
		if (h->count[i])
			json_array_append_new(list, bucket(hist_bucket_low(i), h->count[i]));
	return list;
}

static const struct {
	const char *name;
	double fraction;
} quantiles[] = {{"p50_ns", 0.5},
		 {"p90_ns", 0.9},
		 {"p99_ns", 0.99},
		 {"p99_9_ns", 0.999},
		 {"p99_99_ns", 0.9999}};
#define QUANTILES (sizeof(quantiles) / sizeof(quantiles[0]))

static json_t *latency(const struct hist *h)
{
	json_t *o = json_object();

	json_put_int(o, "count", h->total);
	if (h->total == 0)
		return o;
	json_put_real(o, "mean_ns", h->sum / (double)h->total);
	json_put_int(o, "min_ns", h->min);
	for (size_t i = 0; i < QUANTILES; i++)
		json_put_int(o, quantiles[i].name, hist_quantile(h, quantiles[i].fraction));
	json_put_int(o, "max_ns", h->max);
	json_put(o, "buckets", buckets(h));
	return o;
}

static json_t *sized_latency(const struct io_latency *l)
{
	json_t *o = json_object(), *list = json_array();

	json_put_int(o, "count", l->total);
	for (size_t i = 0; i < QUANTILES; i++)
		json_put_int(o, quantiles[i].name, io_latency_quantile(l, quantiles[i].fraction));
	json_put_int(o, "max_ns", l->max_ns);
	for (size_t i = 0; i < IO_CLASS_BUCKETS; i++)
		if (l->count[i])
			json_array_append_new(list, bucket(io_latency_bucket_low(i), l->count[i]));
	json_put(o, "buckets", list);
	return o;
}

/* Only sizes that were asked for. */
static json_t *sizes(const struct io_stat *io, enum io_kind kind)
{
	json_t *o = json_object();

	for (int c = 0; c < IO_CLASSES; c++) {
		const struct io_latency *l = io_stat_sized(io, kind, (enum io_class)c);

		if (l && l->total > 0)
			json_put(o, io_class_names[c], sized_latency(l));
	}
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
		if (io_stat_sized(io, (enum io_kind)k, IO_TO_4_KIB))
			json_put(o, "latency_by_size", sizes(io, (enum io_kind)k));
		json_put(out, io_kind_names[k], o);
	}
	return out;
}
