/* Broadcast, gathering and agreement, each one exchange. */
#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "comm/comm.h"
#include "comm/fabric.h"
#include "comm/net.h"
#include "comm/net_wire.h"

/* What the collective calls are made of. Private to comm/. */

/* The ranks of a process: a generation-counting barrier on a futex. With other processes, the last
 * one to arrive speaks for all, and the answer of the others moves the generation. */

struct comm_part {
	const void *p;
	size_t bytes;
};

struct comm_group {
	uint32_t locals, size;
	const struct stop_flag *stop;
	struct net *net; /* NULL: no other process */
	unsigned channel;
	_Atomic uint32_t generation;
	_Atomic uint32_t arrived;
	int64_t due_ns;         /* rank 0's, of the barrier under way; 0: never given one */
	bool due;               /* whether that had come at the last barrier */
	struct comm_part *slot; /* of the exchange under way, one a local rank */
	struct buf answer;      /* of the last one */
};

/* Makes the answer of all ranks' parts. Runs once, in process 0, with rank 0's `arg` or that of
 * another rank of its process: it must mean the same in all of them. */
typedef void comm_answer(void *arg, const struct comm_part *part, uint32_t ranks, struct buf *out);

/* How long a waiter may miss a comm_wake that came between its check and its sleep. */
#define RECHECK_NS (NS_PER_S / 2)

static void next_generation(struct comm_group *g)
{
	/* reset before the generation moves: nobody can arrive for the next barrier earlier */
	atomic_store_explicit(&g->arrived, 0, memory_order_relaxed);
	atomic_fetch_add_explicit(&g->generation, 1, memory_order_acq_rel);
	thread_wake(&g->generation, -1);
}

static void all_processes_met(void *arg, bool due)
{
	struct comm_group *g = arg;

	g->due = due;
	next_generation(g);
}

struct comm_group *comm_create(struct comm *ranks, uint32_t locals, struct net *net,
			       enum comm_channel channel, const struct stop_flag *stop)
{
	struct comm_group *g = xcalloc(1, sizeof(*g));
	uint32_t processes = net ? net_processes(net) : 1;
	uint32_t first = net ? net_process_number(net) * locals : 0;

	assert(locals > 0 && (unsigned)channel < NET_CHANNELS);
	/* of a channel only one group at a time */
	assert(!net || !net->channel[channel].met);
	g->locals = locals;
	g->size = locals * processes;
	g->stop = stop;
	g->net = net;
	g->channel = channel;
	g->slot = xcalloc(locals, sizeof(*g->slot));
	for (uint32_t r = 0; r < locals; r++)
		ranks[r] =
			(struct comm){.group = g, .rank = first + r, .size = g->size, .local = r};
	if (net) {
		net->channel[channel].due_ns = 0;
		net->channel[channel].met_arg = g;
		net->channel[channel].met = all_processes_met;
	}
	return g;
}

void comm_local_destroy(struct comm_group *g)
{
	if (!g)
		return;
	if (g->net) {
		/* under the lock of those who call it */
		pthread_mutex_lock(&g->net->lock);
		g->net->channel[g->channel].met = NULL;
		pthread_mutex_unlock(&g->net->lock);
	}
	buf_release(&g->answer);
	free(g->slot);
	free(g);
}

void comm_wake(struct comm_group *g)
{
	thread_wake(&g->generation, -1);
}

static bool group_stopped(struct comm_group *g)
{
	return atomic_load_explicit(&g->stop->set, memory_order_relaxed);
}

static int wait_generation(struct comm_group *g, uint32_t seen)
{
	while (atomic_load_explicit(&g->generation, memory_order_acquire) == seen) {
		if (group_stopped(g))
			return ERR_CANCELED;
		/* no monitor may be there to pass on what happens elsewhere */
		if (g->net && net_cause(g->net, NULL, NULL))
			return ERR_CANCELED;
		thread_wait(&g->generation, seen, RECHECK_NS);
	}
	return 0;
}

/* True for the last rank of this process to arrive. */
static bool rank_arrives(struct comm_group *g)
{
	/* acq_rel: what a rank wrote before it arrived is visible to all that leave */
	return atomic_fetch_add_explicit(&g->arrived, 1, memory_order_acq_rel) + 1 == g->locals;
}

/* The last rank of this process waits for the other processes in the library. */
static int meet_over_fabric(struct comm_group *g, bool timed)
{
	bool due = false;
	int rc = fabric_barrier(net_fabric(g->net), timed, g->net->channel[g->channel].due_ns, &due,
				g->stop, g->net);

	if (rc == 0)
		all_processes_met(g, due);
	return rc;
}

static int barrier(struct comm *c, bool timed)
{
	struct comm_group *g = c->group;
	uint32_t seen = atomic_load_explicit(&g->generation, memory_order_acquire);

	if (group_stopped(g))
		return ERR_CANCELED;
	if (g->size == 1)
		return 0;
	if (rank_arrives(g)) {
		if (!g->net) {
			g->due = g->due_ns && clock_now_ns() >= g->due_ns;
			next_generation(g);
			return 0;
		}
		if (g->channel == COMM_RANKS && net_fabric(g->net))
			return meet_over_fabric(g, timed);
		if (net_arrive(g->net, g->channel) < 0)
			return ERR_CANCELED;
	}
	return wait_generation(g, seen);
}

int comm_barrier(struct comm *c)
{
	return barrier(c, false);
}

int comm_barrier_until(struct comm *c, int64_t due_ns, bool *due)
{
	struct comm_group *g = c->group;
	int rc;

	/* nobody looks at it before this rank arrived, and all that have it leave before the next
	 */
	if (c->rank == 0 && g->net)
		g->net->channel[g->channel].due_ns = due_ns;
	else if (c->rank == 0)
		g->due_ns = due_ns;
	rc = barrier(c, true);
	*due = rc == 0 && (g->size == 1 ? clock_now_ns() >= due_ns : g->due);
	return rc;
}

/* The parts of ranks, each with its length in front: a comm_answer. */
static void pack_parts(void *arg, const struct comm_part *part, uint32_t ranks, struct buf *out)
{
	(void)arg;
	for (uint32_t r = 0; r < ranks; r++) {
		uint64_t n = part[r].bytes;

		buf_append(out, &n, sizeof(n));
		buf_append(out, part[r].p, part[r].bytes);
	}
}

static int unpack_parts(const struct buf *in, uint32_t locals, struct comm_part *part)
{
	size_t at = 0;

	for (uint32_t r = 0; r < locals; r++) {
		uint64_t n;

		if (in->len - at < sizeof(n))
			return ERR_DATA;
		memcpy(&n, in->data + at, sizeof(n));
		at += sizeof(n);
		if (in->len - at < n)
			return ERR_DATA;
		part[r] = (struct comm_part){in->data + at, n};
		at += n;
	}
	return 0;
}

struct answering {
	struct comm_group *g;
	comm_answer *fn;
	void *arg;
};

static int answer_parts(void *arg, const struct buf *block, struct buf *out)
{
	const struct answering *a = arg;
	uint32_t locals = a->g->locals;
	struct comm_part *part = xcalloc(a->g->size, sizeof(*part));
	int rc = 0;

	for (uint32_t p = 0; rc == 0 && p < a->g->size / locals; p++)
		rc = unpack_parts(&block[p], locals, part + (size_t)p * locals);
	if (rc == 0)
		a->fn(a->arg, part, a->g->size, out);
	free(part);
	return rc;
}

static int exchange_for_all(struct comm_group *g, comm_answer *fn, void *arg, bool for_all)
{
	struct answering a = {g, fn, arg};
	struct buf mine = {0};
	int rc = 0;

	buf_release(&g->answer);
	if (!g->net) {
		fn(arg, g->slot, g->size, &g->answer);
		return 0;
	}
	pack_parts(NULL, g->slot, g->locals, &mine);
	rc = net_exchange(g->net, g->channel, mine.data, mine.len, answer_parts, &a, for_all,
			  &g->answer, g->stop);
	buf_release(&mine);
	return rc;
}

/* Each rank gives n bytes; *out is the answer, valid until this rank's next call. Not for_all:
 * other processes than 0 get an empty one. */
static int comm_exchange(struct comm *c, const void *mine, size_t n, comm_answer *fn, void *arg,
			 bool for_all, const struct buf **out)
{
	struct comm_group *g = c->group;
	uint32_t seen = atomic_load_explicit(&g->generation, memory_order_acquire);
	int rc;

	if (group_stopped(g))
		return ERR_CANCELED;
	assert(c->local < g->locals);
	g->slot[c->local] = (struct comm_part){mine, n};
	if (rank_arrives(g)) {
		rc = exchange_for_all(g, fn, arg, for_all);
		if (rc < 0)
			return rc; /* the others leave as the stop that caused it reaches them */
		next_generation(g);
	} else {
		rc = wait_generation(g, seen);
		if (rc < 0)
			return rc;
	}
	*out = &g->answer;
	return 0;
}

static void take_one(void *arg, const struct comm_part *part, uint32_t ranks, struct buf *out)
{
	uint32_t root = *(const uint32_t *)arg;

	if (root < ranks)
		buf_append(out, part[root].p, part[root].bytes);
}

int comm_broadcast(struct comm *c, uint32_t root, void *p, size_t n)
{
	const struct buf *out;
	int rc = comm_exchange(c, p, c->rank == root ? n : 0, take_one, &root, true, &out);

	if (rc == 0 && out->len != n)
		rc = ERR_DATA;
	if (rc == 0 && n)
		memcpy(p, out->data, n);
	return rc;
}

int comm_gather(struct comm *c, const void *mine, size_t n, struct buf *part)
{
	const struct buf *out;
	size_t at = 0;
	int rc = comm_exchange(c, mine, n, pack_parts, NULL, false, &out);

	for (uint32_t k = 0; rc == 0 && c->rank == 0 && k < c->size; k++) {
		uint64_t bytes;

		memcpy(&bytes, out->data + at, sizeof(bytes));
		at += sizeof(bytes);
		part[k] = (struct buf){0};
		buf_append(&part[k], out->data + at, bytes);
		at += bytes;
	}
	return rc;
}

struct opinion {
	int32_t rc;
	char host[NET_HOST_MAX];
	char text[ERR_TEXT_MAX];
};

static bool opinion_is_worse(const struct opinion *a, const struct opinion *b)
{
	if (b->rc == 0)
		return a->rc < 0;
	return b->rc == ERR_CANCELED && a->rc < 0 && a->rc != ERR_CANCELED;
}

static void worst_opinion(void *arg, const struct comm_part *part, uint32_t ranks, struct buf *out)
{
	struct opinion verdict = {0}, one;
	bool several_hosts = *(const bool *)arg;
	uint32_t failed = 0;
	struct err e;

	for (uint32_t k = 0; k < ranks; k++) {
		if (part[k].bytes != sizeof(one))
			continue;
		memcpy(&one, part[k].p, sizeof(one));
		failed += one.rc < 0;
		if (opinion_is_worse(&one, &verdict))
			verdict = one;
	}
	if (several_hosts && failed && failed < ranks && verdict.host[0] &&
	    verdict.rc != ERR_CANCELED) {
		e.code = verdict.rc;
		memcpy(e.text, verdict.text, sizeof(e.text));
		err_wrap(&e, "host '%s'", verdict.host);
		memcpy(verdict.text, e.text, sizeof(e.text));
	}
	buf_append(out, &verdict, sizeof(verdict));
}

int comm_agree(struct comm *c, int rc, struct err *e)
{
	struct net *net = c->group->net;
	struct opinion mine = {.rc = rc < 0 ? rc : 0};
	bool several_hosts = net && net_nodes(net) > 1;
	const struct buf *out;
	int got;

	if (c->size == 1)
		return rc < 0 ? rc : 0;
	if (net)
		memcpy(mine.host, net_process(net, net_process_number(net))->host,
		       sizeof(mine.host));
	if (rc < 0)
		memcpy(mine.text, e->text, sizeof(mine.text));
	got = comm_exchange(c, &mine, sizeof(mine), worst_opinion, &several_hosts, true, &out);
	if (got < 0) {
		/* what stopped it, unless this rank has a failure of its own to tell */
		if (rc < 0 && rc != ERR_CANCELED)
			return rc;
		err_set(e, got, "the run was stopped");
		if (net)
			got = net_cause(net, NULL, e) ? e->code : got;
		return got;
	}
	memcpy(&mine, out->data, sizeof(mine));
	if (mine.rc < 0) {
		e->code = mine.rc;
		memcpy(e->text, mine.text, sizeof(e->text));
	}
	return mine.rc;
}
