#include "judge/origin.h"

#include <math.h>
#include <stdio.h>

#include "base/str.h"
#include "store/store.h"

static const double SERVED_SHARE = 0.10;  /* of the bytes, charged to a device: it is seen */
static const double NOTHING_SHARE = 0.10; /* of the bytes, by all disks and the network */

#define OF_SERVER "the FUSE file system "
#define OF_DEVICE "not known whether it was the storage: "

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

void origin_judge_server(struct verdict *v, const struct result *r, double returned, double charged,
			 double delivered)
{
	char origin[sizeof(v->origin)], a[32];
	const char *type;

	if (!origin_is_served(r) || v->takes & TAKES_STORAGE || !(returned > 0) ||
	    charged >= SERVED_SHARE * returned)
		return;
	type = r->host_source->client.type;
	if (delivered < NOTHING_SHARE * returned) {
		verdict_worsen(v, VERDICT_WARN);
		verdict_say(v,
			    " No disk and no network interface of this machine delivered these "
			    "bytes (%s in all): the server of %s had them in memory, or "
			    "got them from where the kernel does not count.",
			    str_bytes(delivered, a, sizeof(a)), type);
		snprintf(origin, sizeof(origin),
			 "%s%s; no disk and no network interface of this "
			 "machine delivered these bytes",
			 OF_SERVER, type);
	} else {
		verdict_worsen(v, VERDICT_UNKNOWN);
		verdict_say(v, " What the server of %s read from is not known.", type);
		snprintf(origin, sizeof(origin), "%s%s; what its server read from is not known",
			 OF_SERVER, type);
	}
	verdict_takes_origin(v, origin);
}

bool origin_judge_device(struct verdict *v, const struct result *r, const char *but)
{
	const struct block_tree *t = r->host_source ? &r->host_source->tree : NULL;
	const struct ledger_line *disks = &r->judged.ledger.line[LEDGER_DISKS];
	char origin[sizeof(v->origin)];

	if (!(workload_base_store(r->workload)->flags & STORE_HAS_FILES) || !t || t->memory[0] ||
	    (!t->unseen[0] && (!t->cached[0] || disks->known)))
		return false;
	verdict_worsen(v, VERDICT_UNKNOWN);
	if (t->unseen[0])
		verdict_say(v, "%s %s: what is below it is not known.", but, t->unseen);
	else
		verdict_say(v, "%s %s, which may be in the page cache of this machine.", but,
			    t->cached);
	snprintf(origin, sizeof(origin), "%s%.110s", OF_DEVICE,
		 t->unseen[0] ? t->unseen : t->cached);
	verdict_takes_origin(v, origin);
	return true;
}

void origin_judge_checkpoints(struct verdict *v, const struct result *r)
{
	const struct host_io_source *s = r->checkpoint_source;

	if (!s || !(workload_base_store(r->workload)->flags & STORE_HAS_FILES) || s->memory ||
	    s->tree.memory[0] || (!s->tree.unseen[0] && !s->client.local_server))
		return;
	verdict_worsen(v, VERDICT_UNKNOWN);
	verdict_takes(v, TAKES_TARGET, NULL);
	if (s->tree.unseen[0])
		verdict_say(v, " The device %s: whether they reached a disk is not known.",
			    s->tree.unseen);
	else
		verdict_say(v, " Where the server of %s keeps them is not known.", s->client.type);
}
