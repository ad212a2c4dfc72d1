/* The ledger of bytes, epoch by epoch. */
#include <math.h>

#include "judge/ledger.h"

static void of_ranks(const struct result *r, uint32_t epoch, bool eval, double *bytes)
{
	double wanted = 0, asked = 0, returned = 0;
	bool known = true;

	for (uint32_t k = 0; k < r->ranks; k++) {
		const struct rank_epoch *ep = &r->rank[k].epoch[epoch];
		const struct requested *q = eval ? &ep->eval_requested : &ep->train_requested;

		if (r->rank[k].lost)
			continue;
		known = known && q->known;
		wanted += (double)(eval ? ep->eval_payload_bytes : ep->payload_bytes);
		asked += (double)q->asked_bytes;
		returned += (double)q->returned_bytes;
	}
	bytes[LEDGER_WANTED] = wanted;
	if (!known)
		return;
	bytes[LEDGER_ASKED] = asked;
	bytes[LEDGER_RETURNED] = returned;
}

static void of_kernel(const struct result *r, uint32_t epoch, bool eval, double *bytes)
{
	const struct epoch_usage *u = &r->usage[epoch];
	const struct proc_io *process = eval ? &u->eval : &u->train;
	const struct host_io *host = eval ? &u->host_eval : &u->host_train;

	if (process->known) {
		bytes[LEDGER_CALLS] = (double)process->rchar_bytes;
		bytes[LEDGER_CHARGED] = (double)process->read_bytes;
	}
	if (!r->host_source)
		return;
	if (host->whole.known)
		bytes[LEDGER_DEVICE] = (double)host->whole.read_bytes;
	if (host->lower.known)
		bytes[LEDGER_DISKS] = (double)host->lower.read_bytes;
	if (host->client.known)
		bytes[LEDGER_CLIENT] = (double)host->client.returned_bytes;
	if (host->client.fetched_known)
		bytes[LEDGER_FETCHED] = (double)host->client.fetched_bytes;
	if (host->net.known || host->net.rdma_known)
		bytes[LEDGER_NETWORK] =
			(double)host->net.received_bytes + (double)host->net.rdma_received_bytes;
}

void ledger_of_epoch(const struct result *r, uint32_t epoch, bool eval, double bytes[LEDGER_LINES])
{
	for (int k = 0; k < LEDGER_LINES; k++)
		bytes[k] = NAN;
	if (!r->rank || epoch >= r->epochs_begun)
		return;
	for (uint32_t k = 0; eval && k < r->ranks; k++)
		if (!r->rank[k].lost && !r->rank[k].epoch[epoch].has_eval)
			return;
	of_ranks(r, epoch, eval, bytes);
	if (r->usage)
		of_kernel(r, epoch, eval, bytes);
}
