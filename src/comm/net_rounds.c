/* What a process says over its connections and waits for: barriers, exchanges, results. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "comm/net_wire.h"

#define RECHECK_NS (NS_PER_S / 10)

int net_arrive(struct net *n, unsigned channel)
{
	if (n->process != 0)
		return net_send(n, &n->peer[0], NET_MEET, channel, NULL, 0);
	if (net_count_arrival(n, channel, 0, NULL))
		net_all_met(n, channel, false);
	return 0;
}

static int wait_for(struct net *n, _Atomic uint32_t *word, uint32_t seen,
		    const struct stop_flag *stop)
{
	while (atomic_load_explicit(word, memory_order_acquire) == seen) {
		if (net_cause(n, NULL, NULL) || (stop && atomic_load(&stop->set)))
			return ERR_CANCELED;
		thread_wait(word, seen, RECHECK_NS);
	}
	return 0;
}

int net_exchange(struct net *n, unsigned channel, const void *mine, size_t bytes,
		 int (*answer)(void *arg, const struct buf *part, struct buf *out), void *arg,
		 bool for_all, struct buf *out, const struct stop_flag *stop)
{
	struct net_channel *c = &n->channel[channel];
	struct buf own = {0};
	uint32_t seen;
	int rc;

	if (n->process != 0) {
		seen = atomic_load(&c->taken);
		rc = net_send(n, &n->peer[0], NET_GIVE, channel, mine, bytes);
		if (rc == 0)
			rc = wait_for(n, &c->taken, seen, stop);
		if (rc < 0)
			return ERR_CANCELED;
		*out = c->answer;
		c->answer = (struct buf){0};
		return 0;
	}
	seen = atomic_load(&c->gathered);
	buf_append(&own, mine, bytes);
	if (net_count_arrival(n, channel, 0, &own))
		net_all_gave(n, channel);
	rc = wait_for(n, &c->gathered, seen, stop);
	if (rc < 0)
		return rc;
	rc = answer(arg, c->given, out);
	/* before the answer goes out: it may be followed at once by the parts of the next one */
	for (uint32_t p = 0; p < n->processes; p++)
		buf_release(&c->given[p]);
	if (rc < 0) {
		struct err e;

		err_set(&e, rc, "the processes of the run do not make the same exchanges");
		net_stop(n, NET_CAUSE_ERROR, &e);
		return ERR_CANCELED;
	}
	net_send_all(n, NET_TAKE, channel, out->data, for_all ? out->len : 0);
	return 0;
}

/* ---- the end ---- */

static void wait_event(struct net *n, uint32_t seen)
{
	thread_wait(&n->events, seen, RECHECK_NS);
}

/* Whether the patience that a stop leaves is over. */
static bool tired(struct net *n, int64_t *since, int patience_s)
{
	int64_t now = clock_now_ns();

	if (!net_cause(n, NULL, NULL))
		return false;
	if (*since == 0)
		*since = now;
	return now - *since > patience_s * NS_PER_S;
}

int net_collect(struct net *n, const void *mine, size_t bytes, int patience_s, struct buf *block,
		struct err *e)
{
	int64_t since = 0;

	if (n->process != 0) {
		if (net_send(n, &n->peer[0], NET_RESULT, 0, mine, bytes) < 0)
			return err_set(e, -EPIPE,
				       "the results could not be sent to process 0 on host '%s': "
				       "it is gone",
				       n->table[0].host);
		return 0;
	}
	for (;;) {
		uint32_t seen = atomic_load(&n->events), missing = 0;

		pthread_mutex_lock(&n->lock);
		for (uint32_t p = 1; p < n->processes; p++)
			missing += !n->has_result[p] && atomic_load(&n->peer[p].lives);
		pthread_mutex_unlock(&n->lock);
		if (missing == 0 || tired(n, &since, patience_s))
			break;
		wait_event(n, seen);
	}
	pthread_mutex_lock(&n->lock);
	for (uint32_t p = 1; p < n->processes; p++) {
		block[p] = n->result[p];
		n->result[p] = (struct buf){0};
	}
	pthread_mutex_unlock(&n->lock);
	return 0;
}

int net_conclude(struct net *n, int code, int patience_s)
{
	int32_t wire = code;
	int64_t since = 0;

	if (n->process == 0) {
		pthread_mutex_lock(&n->lock);
		atomic_store(&n->has_end, 1); /* from here on they may leave */
		pthread_mutex_unlock(&n->lock);
		net_send_all(n, NET_END, 0, &wire, sizeof(wire));
		return code;
	}
	for (;;) {
		uint32_t seen = atomic_load(&n->events);
		bool over, gone = !atomic_load(&n->peer[0].lives);

		pthread_mutex_lock(&n->lock);
		over = atomic_load(&n->has_end);
		wire = n->end_code;
		pthread_mutex_unlock(&n->lock);
		if (over)
			return wire;
		if (gone || tired(n, &since, patience_s))
			return -EPIPE;
		wait_event(n, seen);
	}
}
