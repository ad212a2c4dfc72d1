/* Counters of requests with their latencies: quantiles to read, and buckets that other results' can
 * be added to. */
#include "result/json_out.h"
#include "result/json_result.h"

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

/* ---- counters of the hosts ---- */

static void put_block(json_t *o, const char *read, const char *written,
		      const struct block_counters *c)
{
	if (!c->known)
		return;
	json_put_int(o, read, c->read_bytes);
	json_put_int(o, written, c->written_bytes);
}

json_t *json_host_io(const struct result *r, const struct host_io *h)
{
	json_t *o;

	if (!r->host_source)
		return json_null();
	o = json_object();
	put_block(o, "device_read_bytes", "device_written_bytes", &h->whole);
	put_block(o, "partition_read_bytes", "partition_written_bytes", &h->part);
	put_block(o, "disks_below_read_bytes", "disks_below_written_bytes", &h->lower);
	if (h->net.known) {
		json_put_int(o, "network_received_bytes", h->net.received_bytes);
		json_put_int(o, "network_sent_bytes", h->net.sent_bytes);
		json_put_int(o, "loopback_received_bytes", h->net.loopback_bytes);
	}
	if (h->net.rdma_known) {
		json_put_int(o, "rdma_received_bytes", h->net.rdma_received_bytes);
		json_put_int(o, "rdma_sent_bytes", h->net.rdma_sent_bytes);
	}
	if (h->client.known)
		json_put_int(o, "client_returned_bytes", h->client.returned_bytes);
	if (h->client.fetched_known) {
		json_put_int(o, "client_fetched_bytes", h->client.fetched_bytes);
		json_put_int(o, "client_sent_bytes", h->client.sent_bytes);
	}
	return o;
}

static json_t *names_of(const struct block_list *l)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < l->n; i++)
		json_array_append_new(list, json_text(l->device[i].name));
	return list;
}

json_t *json_storage_path(const struct result *r)
{
	const struct host_io_source *s = r->host_source;
	json_t *o = json_object();

	json_put_text(o, "file_system", s->file_system[0] ? s->file_system : NULL);
	json_put(o, "devices", names_of(&s->tree.whole));
	json_put(o, "partitions", names_of(&s->tree.part));
	json_put(o, "disks_below", names_of(&s->tree.lower));
	json_put_text(o, "network_interfaces", s->interfaces);
	json_put_text(o, "client", s->client.kind ? s->client.type : NULL);
	json_put_text(o, "in_memory", s->tree.memory[0] ? s->tree.memory : NULL);
	json_put_text(o, "through_page_cache", s->tree.cached[0] ? s->tree.cached : NULL);
	json_put_text(o, "unseen", s->tree.unseen[0] ? s->tree.unseen : NULL);
	if (s->limit.bytes_per_s > 0)
		json_put_real(o, "control_group_read_bytes_per_s", s->limit.bytes_per_s);
	if (s->limit.reads_per_s > 0)
		json_put_real(o, "control_group_reads_per_s", s->limit.reads_per_s);
	return o;
}

static void put_known(json_t *o, const char *key, int64_t ns)
{
	if (ns >= 0)
		json_put_real(o, key, (double)ns / 1e9);
}

void json_put_processors(json_t *to, const struct result *r, const struct processors *p,
			 uint32_t process)
{
	const struct processor_group *g = processors_throttled(p);
	json_t *o;

	if (p->wall_ns <= 0)
		return;
	o = json_object();
	if (r->process && process < r->processes)
		json_put_text(o, "host", r->process[process].hostname);
	json_put_int(o, "online", (uint64_t)p->online);
	json_put_int(o, "allowed", (uint64_t)p->allowed);
	put_known(o, "threads_waited_s", p->waited_ns);
	put_known(o, "threads_ran_s", p->ran_ns);
	put_known(o, "busy_s", p->busy_ns);
	put_known(o, "steal_s", p->steal_ns);
	put_known(o, "pressure_s", p->pressure_ns);
	if (p->involuntary >= 0)
		json_put_int(o, "involuntary_switches", (uint64_t)p->involuntary);
	json_put_real(o, "nice", p->nice);
	if (p->groups) {
		g = g ? g : &p->group[0];
		json_put_real(o, "quota_processors", g->quota);
		json_put_int(o, "quota_periods", (uint64_t)(g->periods > 0 ? g->periods : 0));
		json_put_int(o, "quota_throttled_periods",
			     (uint64_t)(g->throttled_periods > 0 ? g->throttled_periods : 0));
		put_known(o, "quota_throttled_s", g->throttled_ns);
	}
	if (p->stops)
		put_known(o, "stood_still_s", p->stopped_ns);
	if (p->freezes) {
		put_known(o, "thread_stood_still_s", p->frozen_ns);
		json_put_text(o, "thread", p->frozen_thread);
	}
	json_put(to, "processors", o);
}
