/* The ledger of bytes in result.json. */
#include <math.h>

#include "result/json_out.h"
#include "result/json_parts.h"
#include "judge/ledger.h"

static const char *const states[] = {
	[LEDGER_AGREES] = "agrees", [LEDGER_EXPLAINED] = "explained", [LEDGER_FLAGGED] = "flagged"};

/* One number an epoch, null where it is not known; NULL when none is. */
static json_t *of_epochs(const struct result *r, enum ledger_key key, bool eval)
{
	json_t *list = json_array();
	bool some = false;

	for (uint32_t i = 0; i < r->epochs_begun; i++) {
		double bytes[LEDGER_LINES];

		ledger_of_epoch(r, i, eval, bytes);
		some = some || !isnan(bytes[key]);
		json_array_append_new(list, isnan(bytes[key]) ? json_null()
							      : json_count((uint64_t)bytes[key]));
	}
	if (some)
		return list;
	json_decref(list);
	return NULL;
}

static json_t *line_of(const struct result *r, const struct ledger *l, enum ledger_key key)
{
	const struct ledger_line *line = &l->line[key];
	json_t *o = json_object(), *list;
	char place[256];

	json_put_text(o, "key", ledger_keys[key]);
	json_put_text(o, "title", ledger_titles[key]);
	if (ledger_place(r, key, place, sizeof(place))[0])
		json_put_text(o, "place", place);
	json_put_int(o, "bytes", (uint64_t)line->bytes);
	if ((list = of_epochs(r, key, false)))
		json_put(o, "epoch_bytes", list);
	if ((list = of_epochs(r, key, true)))
		json_put(o, "evaluation_bytes", list);
	if (line->against < 0)
		return o;
	json_put_text(o, "compared_with", ledger_keys[line->against]);
	if (l->line[line->against].bytes > 0)
		json_put_real(o, "percent", 100 * line->bytes / l->line[line->against].bytes);
	json_put_text(o, "state", states[line->state]);
	if (line->why[0])
		json_put_text(o, "why", line->why);
	return o;
}

json_t *json_ledger(const struct result *r)
{
	json_t *list = json_array();
	struct ledger l;

	ledger_of(r, &l);
	for (int k = 0; k < LEDGER_LINES; k++)
		if (l.line[k].known)
			json_array_append_new(list, line_of(r, &l, (enum ledger_key)k));
	return list;
}

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
	return o;
}
