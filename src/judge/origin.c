#include "judge/origin.h"

#include <math.h>

static const double SERVED_SHARE = 0.10;  /* of the bytes, charged to a device: it is seen */
static const double NOTHING_SHARE = 0.10; /* of the bytes, by all disks and the network */
static const double BELOW_SHARE = 0.90;   /* of the device's, from which on the disks gave them */

bool origin_is_served(const struct result *r)
{
	return workload_base_store(r->workload)->flags & STORE_HAS_FILES && r->host_source &&
	       r->host_source->client.local_server;
}

double origin_delivered(const struct result *r, bool eval)
{
	double sum = r->usage && r->epochs_begun ? 0 : NAN;

	for (uint32_t i = 0; r->usage && i < r->epochs_begun; i++) {
		const struct host_io *h = eval ? &r->usage[i].host_eval : &r->usage[i].host_train;

		if (!h->disks.known || !h->net.known)
			return NAN;
		sum += (double)h->disks.read_bytes + (double)h->net.received_bytes +
		       (double)h->net.rdma_received_bytes;
	}
	return sum;
}

bool origin_is_cached_below(const struct block_tree *t, double device, double disks, double *share)
{
	*share = device > 0 ? fmin(1, disks / device) : NAN;
	return t->cached[0] && *share < BELOW_SHARE;
}

bool origin_is_from_server(const struct fs_client *c, double returned, double charged,
			   double delivered)
{
	return c->local_server && charged < SERVED_SHARE * returned &&
	       delivered < NOTHING_SHARE * returned;
}

void origin_judge_server(struct verdict *v, const struct result *r, double returned, double charged,
			 double delivered)
{
	struct fact origin;
	bool nothing;

	if (!origin_is_served(r) || v->takes & TAKES_STORAGE || !(returned > 0) ||
	    charged >= SERVED_SHARE * returned)
		return;
	nothing = origin_is_from_server(&r->host_source->client, returned, charged, delivered);
	origin = fact_with(nothing ? FACT(ORIGIN_SERVER_NOTHING, delivered)
				   : FACT(ORIGIN_SERVER_UNKNOWN),
			   0, r->host_source->client.type);
	verdict_found(v, nothing ? VERDICT_WARN : VERDICT_UNKNOWN, origin);
	verdict_takes_origin(v, origin);
}

bool origin_judge_device(struct verdict *v, const struct result *r)
{
	const struct block_tree *t = r->host_source ? &r->host_source->tree : NULL;
	const struct ledger_line *disks = &r->judged.ledger.line[LEDGER_DISKS];
	struct fact origin;

	if (!(workload_base_store(r->workload)->flags & STORE_HAS_FILES) || !t || t->memory[0] ||
	    (!t->unseen[0] && (!t->cached[0] || disks->known)))
		return false;
	origin = t->unseen[0] ? fact_with(FACT(ORIGIN_DEVICE_UNSEEN), 0, t->unseen)
			      : fact_with(FACT(ORIGIN_DEVICE_CACHED), 0, t->cached);
	verdict_found(v, VERDICT_UNKNOWN, origin);
	verdict_takes_origin(v, origin);
	return true;
}

void origin_judge_checkpoints(struct verdict *v, const struct result *r)
{
	const struct host_io_source *s = r->checkpoint_source;

	if (!s || !(workload_base_store(r->workload)->flags & STORE_HAS_FILES) || s->memory ||
	    s->tree.memory[0] || (!s->tree.unseen[0] && !s->client.local_server))
		return;
	verdict_takes(v, TAKES_TARGET, REASON_NONE);
	verdict_found(v, VERDICT_UNKNOWN,
		      s->tree.unseen[0]
			      ? fact_with(FACT(ORIGIN_CHECKPOINTS_DEVICE), 0, s->tree.unseen)
			      : fact_with(FACT(ORIGIN_CHECKPOINTS_SERVER), 0, s->client.type));
}
