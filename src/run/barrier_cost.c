/* Barriers with nothing between them: every rank is there at once, so what passes is the barrier's
 * own time. */
#include "run/barrier_cost.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/stats.h"
#include "comm/fabric.h"
#include "comm/net.h"
#include "workload/workload.h"

/* The first ones wake threads for the first time. */
#define WARM_UP 2
#define LEAST 12
#define MOST 48
#define BUDGET_NS (NS_PER_S / 5)

static void summarize(double *took, uint32_t n, struct barrier_cost *out)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += took[i];
	sort_numbers(took, n);
	out->count = n;
	out->median_s = n % 2 ? took[n / 2] : (took[n / 2 - 1] + took[n / 2]) / 2;
	out->mean_s = sum / n;
	out->max_s = took[n - 1];
}

int barrier_cost_measure(struct comm *c, const struct net *net, struct barrier_cost *out)
{
	int64_t due_ns = clock_now_ns() + BUDGET_NS, before, now;
	double took[MOST];
	uint64_t messages = 0;
	uint32_t n = 0;
	bool due = false;
	int rc;

	for (uint32_t i = 0; i < WARM_UP; i++) {
		rc = comm_barrier(c);
		if (rc < 0)
			return rc;
	}
	if (net)
		messages = net_round_messages(net);
	before = clock_now_ns();
	/* rank 0 says for all when it is enough */
	while (n < LEAST || (n < MOST && !due)) {
		rc = comm_barrier_until(c, due_ns, &due);
		if (rc < 0)
			return rc;
		now = clock_now_ns();
		took[n++] = clock_seconds(now - before);
		before = now;
	}
	if (c->local != 0)
		return 0;
	summarize(took, n, out);
	out->processes = net ? net_processes(net) : 1;
	out->depth = net ? net_depth(net) : 0;
	out->messages = net ? (double)(net_round_messages(net) - messages) / n : 0;
	out->way = !net ? BARRIER_THREADS : net_fabric(net) ? BARRIER_MPI : BARRIER_SOCKETS;
	return 0;
}

/* The median of barriers of processes, over the fabric or the sockets. */
static int measure_processes(const struct run_place *at, struct fabric *f,
			     const struct stop_flag *stop, double *median_s)
{
	struct barrier_cost cost = {0};
	double took[WARM_UP + LEAST];
	int64_t before = clock_now_ns(), now;
	bool due;

	for (uint32_t i = 0; i < WARM_UP + LEAST; i++) {
		int rc = f ? fabric_barrier(f, false, 0, &due, stop, at->net)
			   : comm_barrier(at->processes);

		if (rc < 0)
			return rc;
		now = clock_now_ns();
		took[i] = clock_seconds(now - before);
		before = now;
	}
	summarize(took + WARM_UP, LEAST, &cost);
	*median_s = cost.median_s;
	return 0;
}

int barrier_choose(const struct run_place *at, struct fabric *fabric, struct barrier_cost *out,
		   const struct workload *w, const struct stop_flag *stop, struct err *e)
{
	int choice = w->comm.barrier, rc = 0;
	bool mpi = choice == BARRIER_OVER_MPI;

	if (!at->net)
		return 0;
	net_use_fabric(at->net, NULL);
	if (choice == BARRIER_OVER_SOCKETS)
		return 0;
	if (!fabric)
		rc = err_set(
			e, mpi ? ERR_USAGE : ERR_ABSENT,
			"comm.barrier=%s: no MPI library is kept: the processes have to be started "
			"by the launcher of one, with comm.barrier on the command line, and "
			"without STOKER_MPI=none",
			mpi ? "mpi" : "auto");
	else if (fabric->why[0])
		rc = err_set(e, ERR_ABSENT, "comm.barrier=%s: %s", mpi ? "mpi" : "auto",
			     fabric->why);
	rc = run_agree(at, rc, e);
	if (rc == ERR_ABSENT && !mpi) {
		if (run_leads(at))
			log_warning("%s; the barriers of steps go over sockets", e->text);
		return 0;
	}
	if (rc < 0)
		return rc;
	if (choice == BARRIER_OVER_FASTER) {
		rc = measure_processes(at, NULL, stop, &out->sockets_s);
		if (rc == 0)
			rc = measure_processes(at, fabric, stop, &out->mpi_s);
		if (rc < 0)
			return run_agree(at, err_set(e, rc, "the run was stopped"), e);
		mpi = out->mpi_s < out->sockets_s;
		rc = run_share(at, &mpi, sizeof(mpi), e);
	}
	memcpy(out->library, fabric->library, sizeof(out->library));
	net_use_fabric(at->net, rc == 0 && mpi ? fabric : NULL);
	return rc;
}
