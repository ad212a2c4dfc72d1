/* The connections in use: one thread reads them all, and keeps watch over the other processes. */
#include "comm/net.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "comm/net_wire.h"

#define POLL_MS 500
#define EVENTS 64
#define BEAT_NS NS_PER_S
/* A loop this late was not running itself (the whole job was suspended): what it did not hear in
 * the meantime says nothing about the others. */
#define OWN_PAUSE_NS (3 * NS_PER_S)
/* How long a waiter may miss an event that came between its check and its sleep. */
#define RECHECK_NS (NS_PER_S / 10)

uint32_t net_process_number(const struct net *n)
{
	return n->process;
}

uint32_t net_processes(const struct net *n)
{
	return n->processes;
}

const struct net_process *net_process(const struct net *n, uint32_t process)
{
	assert(process < n->processes);
	return &n->table[process];
}

uint32_t net_nodes(const struct net *n)
{
	return n->nodes;
}

void net_use_fabric(struct net *n, struct fabric *f)
{
	n->fabric = f;
}

struct fabric *net_fabric(const struct net *n)
{
	return n->fabric;
}

uint64_t net_round_messages(const struct net *n)
{
	return atomic_load_explicit(&n->round_messages, memory_order_relaxed);
}

static void process_text(const struct net *n, uint32_t process, char *out, size_t size)
{
	uint32_t first = process * n->ranks_each;

	if (n->ranks_each == 1)
		snprintf(out, size, "rank %u on host '%s'", first, n->table[process].host);
	else
		snprintf(out, size, "the process of ranks %u to %u on host '%s'", first,
			 first + n->ranks_each - 1, n->table[process].host);
}

static void wake_waiters(struct net *n)
{
	atomic_fetch_add_explicit(&n->events, 1, memory_order_release);
	thread_wake(&n->events, -1);
	for (int c = 0; c < NET_CHANNELS; c++) {
		thread_wake(&n->channel[c].gathered, -1);
		thread_wake(&n->channel[c].taken, -1);
	}
}

/* Sends what the socket takes of a message, from where `m` stands; all of it unless `wait` is
 * false. -EPIPE when the peer is gone. */
static int send_parts(struct net_peer *p, struct msghdr *m, bool wait)
{
	while (m->msg_iovlen > 0) {
		ssize_t r = atomic_load_explicit(&p->lives, memory_order_acquire)
				    ? sendmsg(p->fd, m, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT))
				    : (errno = EPIPE, -1);

		if (r < 0 && errno == EAGAIN && !wait)
			return 0;
		if (r < 0 && errno != EINTR)
			return -EPIPE;
		while (r >= 0 && m->msg_iovlen > 0) {
			size_t k =
				(size_t)r < m->msg_iov->iov_len ? (size_t)r : m->msg_iov->iov_len;

			m->msg_iov->iov_base = (char *)m->msg_iov->iov_base + k;
			m->msg_iov->iov_len -= k;
			r -= (ssize_t)k;
			if (m->msg_iov->iov_len > 0)
				break;
			m->msg_iov++;
			m->msg_iovlen--;
		}
	}
	return 0;
}

/* What the thread is told of: input, and room for what is unsent. Under send_lock. */
static void await_events(struct net *n, struct net_peer *p)
{
	struct epoll_event ev = {.events = EPOLLIN | (p->unsent.len ? (uint32_t)EPOLLOUT : 0),
				 .data.ptr = p};

	epoll_ctl(n->poll_fd, EPOLL_CTL_MOD, p->fd, &ev);
}

/* The thread: there is room again. */
static void send_unsent(struct net *n, struct net_peer *p)
{
	struct iovec part;
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};

	pthread_mutex_lock(&p->send_lock);
	if (p->unsent.len) {
		part = (struct iovec){p->unsent.data + p->sent, p->unsent.len - p->sent};
		send_parts(p, &m, false);
		p->sent = m.msg_iovlen ? p->unsent.len - part.iov_len : p->unsent.len;
		if (p->sent == p->unsent.len) {
			buf_release(&p->unsent);
			p->sent = 0;
			await_events(n, p);
		}
	}
	pthread_mutex_unlock(&p->send_lock);
}

/* Sends one message whole, or leaves it to the thread. Any thread; -EPIPE when the peer is gone. */
static int send_message(struct net *n, struct net_peer *p, enum net_message type, unsigned channel,
			const void *body, size_t bytes)
{
	struct net_head h = {.magic = NET_MAGIC,
			     .type = (uint8_t)type,
			     .channel = (uint8_t)channel,
			     .process = n->process,
			     .bytes = bytes};
	struct iovec part[2] = {{&h, sizeof(h)}, {(void *)(uintptr_t)body, bytes}};
	struct msghdr m = {.msg_iov = part, .msg_iovlen = bytes ? 2 : 1};
	int rc = 0;

	if (type == NET_MEET || type == NET_GIVE || type == NET_TAKE)
		atomic_fetch_add_explicit(&n->round_messages, 1, memory_order_relaxed);
	if (type == NET_BEAT ? pthread_mutex_trylock(&p->send_lock) != 0 : false)
		return 0; /* something is being sent: that is as good */
	if (type != NET_BEAT)
		pthread_mutex_lock(&p->send_lock);
	if (!p->queues) {
		rc = send_parts(p, &m, true);
	} else if (!(type == NET_BEAT && p->unsent.len)) {
		bool first = p->unsent.len == 0;

		if (first)
			rc = send_parts(p, &m, false);
		for (size_t i = 0; rc == 0 && i < m.msg_iovlen; i++)
			buf_append(&p->unsent, m.msg_iov[i].iov_base, m.msg_iov[i].iov_len);
		if (first && p->unsent.len)
			await_events(n, p);
	}
	pthread_mutex_unlock(&p->send_lock);
	return rc;
}

static void send_to_all(struct net *n, enum net_message type, unsigned channel, const void *body,
			size_t bytes)
{
	for (uint32_t i = 0; i < n->peers; i++)
		if (n->peer[i].fd >= 0 &&
		    atomic_load_explicit(&n->peer[i].lives, memory_order_acquire))
			send_message(n, &n->peer[i], type, channel, body, bytes);
}

static void send_down(struct net *n, enum net_message type, unsigned channel, const void *body,
		      size_t bytes)
{
	for (uint32_t i = 0; i < n->downs; i++)
		if (n->down[i].fd >= 0)
			send_message(n, &n->down[i], type, channel, body, bytes);
}

/* ---- causes ---- */

static bool take_cause(struct net *n, const struct net_stop_body *b, bool always)
{
	bool better;

	pthread_mutex_lock(&n->lock);
	better = !n->stopped || always || b->kind > n->cause.kind ||
		 (b->kind == n->cause.kind && b->wall_ns < n->cause.wall_ns);
	if (better)
		n->cause = *b;
	n->stopped = true;
	pthread_mutex_unlock(&n->lock);
	wake_waiters(n);
	return better;
}

void net_stop(struct net *n, enum net_cause_kind kind, const struct err *why)
{
	struct net_stop_body b = {.kind = (int)kind, .code = why->code, .wall_ns = clock_wall_ns()};

	snprintf(b.text, sizeof(b.text), "%s", why->text);
	if (take_cause(n, &b, false))
		send_to_all(n, NET_STOP, 0, &b, sizeof(b));
}

int net_cause(struct net *n, enum net_cause_kind *kind, struct err *e)
{
	int code = 0;

	pthread_mutex_lock(&n->lock);
	if (n->stopped) {
		code = n->cause.code;
		if (kind)
			*kind = (enum net_cause_kind)n->cause.kind;
		if (e) {
			e->code = code;
			memcpy(e->text, n->cause.text, sizeof(e->text));
		}
	}
	pthread_mutex_unlock(&n->lock);
	return code;
}

static void heard_stop(struct net *n, uint32_t from, const struct net_stop_body *b)
{
	struct net_stop_body c = *b;

	c.text[sizeof(c.text) - 1] = '\0';
	if (n->process != 0) {
		take_cause(n, &c, true);
		return;
	}
	c.wall_ns -= n->table[from].wall_offset_ns;
	if (take_cause(n, &c, false))
		send_to_all(n, NET_STOP, 0, &c, sizeof(c));
}

static void peer_lost(struct net *n, struct net_peer *p, const char *how)
{
	char who[NET_HOST_MAX + 64];
	bool expected = p->said_bye || atomic_load_explicit(&n->has_end, memory_order_acquire);
	struct err e;

	if (!atomic_exchange_explicit(&p->lives, 0, memory_order_acq_rel))
		return;
	/* whoever is sending to it gives up; the number stays taken until the end */
	shutdown(p->fd, SHUT_RDWR);
	if (expected) {
		wake_waiters(n);
		return;
	}
	process_text(n, p->process, who, sizeof(who));
	err_set(&e, -ECONNRESET, "%s %s", who, how);
	net_stop(n, NET_CAUSE_DEATH, &e);
}

/* ---- rounds ---- */

/* Everybody arrived at the barrier: tells those below. `due`: process 0 said so; there it is found
 * out. */
static void all_met(struct net *n, unsigned channel, bool due)
{
	struct net_channel *c = &n->channel[channel];

	if (n->process == 0)
		due = c->due_ns && clock_now_ns() >= c->due_ns;
	send_down(n, NET_MEET, channel, "", due);
	/* the group may just be ending */
	pthread_mutex_lock(&n->lock);
	if (c->met)
		c->met(c->met_arg, due);
	pthread_mutex_unlock(&n->lock);
}

/* This process, or one below with all that are below it, is in the round. True for the last one. */
static bool count_arrival(struct net *n, struct net_channel *c)
{
	assert(c->arrived < 1 + n->downs);
	if (++c->arrived < 1 + n->downs)
		return false;
	c->arrived = 0;
	return true;
}

/* At a barrier. */
static int came_to_barrier(struct net *n, unsigned channel)
{
	bool last;

	pthread_mutex_lock(&n->lock);
	last = count_arrival(n, &n->channel[channel]);
	pthread_mutex_unlock(&n->lock);
	if (last && n->up)
		return send_message(n, n->up, NET_MEET, channel, NULL, 0);
	if (last)
		all_met(n, channel, false);
	return 0;
}

/* Process 0: parts of one or more processes. false: they are none. */
static bool sort_parts(struct net *n, struct net_channel *c, const struct buf *parts)
{
	for (size_t at = 0; at < parts->len;) {
		struct net_part part;

		if (parts->len - at < sizeof(part))
			return false;
		memcpy(&part, parts->data + at, sizeof(part));
		at += sizeof(part);
		if (part.process >= n->processes || parts->len - at < part.bytes)
			return false;
		buf_release(&c->given[part.process]);
		buf_append(&c->given[part.process], parts->data + at, part.bytes);
		at += part.bytes;
	}
	return true;
}

/* In an exchange, with the parts of this process or of those below. */
static int gave_parts(struct net *n, unsigned channel, const struct buf *parts)
{
	struct net_channel *c = &n->channel[channel];
	struct buf all = {0};
	bool last, sound = true;
	int rc = 0;

	pthread_mutex_lock(&n->lock);
	if (n->up)
		buf_append(&c->bundle, parts->data, parts->len);
	else
		sound = sort_parts(n, c, parts);
	last = count_arrival(n, c);
	if (last) {
		all = c->bundle;
		c->bundle = (struct buf){0};
	}
	pthread_mutex_unlock(&n->lock);
	assert(sound); /* the same program sent it */
	if (last && n->up) {
		rc = send_message(n, n->up, NET_GIVE, channel, all.data, all.len);
	} else if (last) {
		atomic_fetch_add_explicit(&c->gathered, 1, memory_order_release);
		thread_wake(&c->gathered, -1);
	}
	buf_release(&all);
	return rc;
}

/* ---- the thread ---- */

static void take_body(struct net *n, struct net_peer *p, struct buf *body)
{
	unsigned channel = p->head.channel % NET_CHANNELS;
	struct net_channel *c = &n->channel[channel];
	struct net_stop_body stop;

	if (p->head.type == NET_MEET || p->head.type == NET_GIVE || p->head.type == NET_TAKE)
		atomic_fetch_add_explicit(&n->round_messages, 1, memory_order_relaxed);
	switch (p->head.type) {
	case NET_MEET:
		if (p == n->up)
			all_met(n, channel, body->len > 0);
		else
			came_to_barrier(n, channel);
		break;
	case NET_GIVE:
		gave_parts(n, channel, body);
		break;
	case NET_TAKE:
		send_down(n, NET_TAKE, channel, body->data, body->len);
		buf_release(&c->answer);
		c->answer = *body;
		*body = (struct buf){0};
		atomic_fetch_add_explicit(&c->taken, 1, memory_order_release);
		thread_wake(&c->taken, -1);
		break;
	case NET_STOP:
		if (body->len == sizeof(stop)) {
			memcpy(&stop, body->data, sizeof(stop));
			heard_stop(n, p->process, &stop);
		}
		break;
	case NET_RESULT:
		pthread_mutex_lock(&n->lock);
		if (n->process == 0 && !n->has_result[p->process]) {
			n->result[p->process] = *body;
			n->has_result[p->process] = true;
			*body = (struct buf){0};
		}
		pthread_mutex_unlock(&n->lock);
		wake_waiters(n);
		break;
	case NET_END:
		pthread_mutex_lock(&n->lock);
		if (body->len == sizeof(int32_t)) {
			int32_t code;

			memcpy(&code, body->data, sizeof(code));
			n->end_code = code;
			atomic_store_explicit(&n->has_end, 1, memory_order_release);
		}
		pthread_mutex_unlock(&n->lock);
		wake_waiters(n);
		break;
	case NET_BYE:
		p->said_bye = true;
		break;
	default: /* a beat: that it came is all it says */
		break;
	}
}

/* Starts the body of a message whose head is whole. false: what came is not ours. */
static bool begin_body(struct net_peer *p)
{
	if (p->head.magic != NET_MAGIC || p->head.type >= NET_MESSAGES ||
	    p->head.bytes > SIZE_MAX / 2)
		return false;
	p->have = 0;
	p->in_body = true;
	p->body = malloc(p->head.bytes + 1);
	return p->body != NULL;
}

/* Reads what is there. false: the connection is over. */
static bool receive(struct net *n, struct net_peer *p, const char **how)
{
	for (;;) {
		char *to = p->in_body ? p->body : (char *)&p->head;
		size_t whole = p->in_body ? p->head.bytes : sizeof(p->head);
		ssize_t r = 0;

		if (p->have < whole) {
			r = recv(p->fd, to + p->have, whole - p->have, MSG_DONTWAIT);
			if (r < 0 && errno == EINTR)
				continue;
			if (r < 0 && errno == EAGAIN)
				return true;
			if (r <= 0)
				return false;
			p->have += (size_t)r;
			p->heard_ns = clock_now_ns();
		}
		if (p->have < whole)
			continue;
		if (!p->in_body) {
			if (!begin_body(p)) {
				*how = "sent an invalid message";
				return false;
			}
		} else {
			struct buf body = {p->body, p->head.bytes, p->head.bytes + 1};

			p->body[p->head.bytes] = '\0';
			p->body = NULL;
			p->in_body = false;
			p->have = 0;
			take_body(n, p, &body);
			buf_release(&body);
		}
	}
}

/* Relaxed: a number of its own. */
int64_t net_silence_ns(const struct net *n)
{
	return atomic_load_explicit(&n->silence_ns, memory_order_relaxed);
}

void net_set_silence(struct net *n, int64_t ns)
{
	assert(ns > 0 && ns <= 255 * NS_PER_S);
	atomic_store_explicit(&n->silence_ns, ns, memory_order_relaxed);
}

static void watch_some(struct net *n, struct net_peer *peer, uint32_t count, int64_t now,
		       bool paused)
{
	int64_t silence = net_silence_ns(n);
	char how[96];

	snprintf(how, sizeof(how), "has not answered for %d s", (int)(silence / NS_PER_S));
	for (uint32_t i = 0; i < count; i++) {
		struct net_peer *p = &peer[i];

		if (p->fd < 0 || !atomic_load_explicit(&p->lives, memory_order_acquire))
			continue;
		if (paused)
			p->heard_ns = now;
		else if (now - p->heard_ns > silence)
			peer_lost(n, p, how);
	}
}

/* That this process lives, and how long it may be silent. */
static void tell_parent(struct net *n)
{
	unsigned char limit;

	n->told_ns = net_silence_ns(n);
	limit = (unsigned char)(n->told_ns / NS_PER_S);
	if (n->control >= 0)
		send(n->control, &limit, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void watch_peers(struct net *n, int64_t now)
{
	bool paused = now - n->round_ns > OWN_PAUSE_NS, due = now - n->beat_ns >= BEAT_NS;

	n->round_ns = now;
	watch_some(n, n->peer, n->peers, now, paused);
	watch_some(n, n->tree, n->trees, now, paused);
	/* a new limit at once: this process may be stopped before the next beat */
	if (due || n->told_ns != net_silence_ns(n))
		tell_parent(n);
	if (!due)
		return;
	n->beat_ns = now;
	send_to_all(n, NET_BEAT, 0, NULL, 0);
	for (uint32_t i = 0; i < n->trees; i++)
		send_message(n, &n->tree[i], NET_BEAT, 0, NULL, 0);
}

/* The launcher's process is gone, and with it the launcher's knowledge of this one. */
static void launcher_gone(struct net *n)
{
	char who[NET_HOST_MAX + 64];
	struct err e;

	n->control = -1;
	if (atomic_load_explicit(&n->has_end, memory_order_acquire))
		return;
	process_text(n, n->process, who, sizeof(who));
	err_set(&e, ERR_CANCELED, "%s was ended by its launcher", who);
	net_stop(n, NET_CAUSE_STOP, &e);
}

/* Of two marks, whose addresses tell them from peers. */
static const char waking, controlling;

static void poll_fd(struct net *n, int fd, const void *mark)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = (void *)(uintptr_t)mark};

	if (fd >= 0)
		epoll_ctl(n->poll_fd, EPOLL_CTL_ADD, fd, &ev);
}

void net_poll_peers(struct net *n)
{
	for (uint32_t i = 0; i < n->peers; i++)
		poll_fd(n, n->peer[i].fd, &n->peer[i]);
	for (uint32_t i = 0; i < n->trees; i++)
		poll_fd(n, n->tree[i].fd, &n->tree[i]);
}

static void take_event(struct net *n, struct net_peer *p, uint32_t events)
{
	const char *how = "ended unexpectedly";

	if (events & EPOLLOUT)
		send_unsent(n, p);
	if (events & ~(uint32_t)EPOLLOUT && !receive(n, p, &how)) {
		peer_lost(n, p, how);
		epoll_ctl(n->poll_fd, EPOLL_CTL_DEL, p->fd, NULL);
	}
}

void *net_main(void *arg)
{
	struct net *n = arg;
	struct epoll_event event[EVENTS];

	n->round_ns = clock_now_ns();
	n->beat_ns = n->round_ns - BEAT_NS;
	for (uint32_t i = 0; i < n->peers; i++)
		n->peer[i].heard_ns = n->round_ns;
	for (uint32_t i = 0; i < n->trees; i++)
		n->tree[i].heard_ns = n->round_ns;
	poll_fd(n, n->wake_fd, &waking);
	poll_fd(n, n->control, &controlling);
	watch_peers(n, n->round_ns); /* the first beat at once */
	while (!atomic_load_explicit(&n->quit, memory_order_acquire)) {
		int events = epoll_wait(n->poll_fd, event, EVENTS, POLL_MS);

		for (int i = 0; i < events; i++) {
			if (event[i].data.ptr == &controlling) {
				epoll_ctl(n->poll_fd, EPOLL_CTL_DEL, n->control, NULL);
				launcher_gone(n);
			} else if (event[i].data.ptr != &waking) {
				take_event(n, event[i].data.ptr, event[i].events);
			}
		}
		watch_peers(n, clock_now_ns());
	}
	return NULL;
}

/* ---- what a process says over its connections, and waits for ---- */

int net_arrive(struct net *n, unsigned channel)
{
	return came_to_barrier(n, channel);
}

static int wait_for(struct net *n, _Atomic uint32_t *word, uint32_t seen,
		    const struct stop_flag *stop)
{
	while (atomic_load_explicit(word, memory_order_acquire) == seen) {
		if (net_cause(n, NULL, NULL) ||
		    (stop && atomic_load_explicit(&stop->set, memory_order_acquire)))
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
	const struct net_part part = {.process = n->process, .bytes = bytes};
	struct buf own = {0};
	uint32_t seen;
	int rc;

	buf_append(&own, &part, sizeof(part));
	buf_append(&own, mine, bytes);
	if (n->process != 0) {
		seen = atomic_load_explicit(&c->taken, memory_order_acquire);
		rc = gave_parts(n, channel, &own);
		buf_release(&own);
		if (rc == 0)
			rc = wait_for(n, &c->taken, seen, stop);
		if (rc < 0)
			return ERR_CANCELED;
		*out = c->answer;
		c->answer = (struct buf){0};
		return 0;
	}
	seen = atomic_load_explicit(&c->gathered, memory_order_acquire);
	gave_parts(n, channel, &own);
	buf_release(&own);
	rc = wait_for(n, &c->gathered, seen, stop);
	if (rc < 0)
		return rc;
	rc = answer(arg, c->given, out);
	/* before the answer goes out: it may be followed at once by the parts of the next one */
	for (uint32_t p = 0; p < n->processes; p++)
		buf_release(&c->given[p]);
	if (rc < 0) {
		struct err e;

		err_set(&e, rc, "internal error: the processes of the run are out of step");
		net_stop(n, NET_CAUSE_ERROR, &e);
		return ERR_CANCELED;
	}
	send_down(n, NET_TAKE, channel, out->data, for_all ? out->len : 0);
	return 0;
}

/* ---- the end ---- */

static void wait_event(struct net *n, uint32_t seen)
{
	thread_wait(&n->events, seen, RECHECK_NS);
}

/* Whether the patience that a stop leaves is over. */
static bool patience_is_over(struct net *n, int64_t *since, int patience_s)
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
		if (send_message(n, &n->peer[0], NET_RESULT, 0, mine, bytes) < 0)
			return err_set(e, -EPIPE,
				       "the results could not be sent to process 0 on host '%s': "
				       "its connection is closed",
				       n->table[0].host);
		return 0;
	}
	for (;;) {
		uint32_t seen = atomic_load_explicit(&n->events, memory_order_acquire), missing = 0;

		pthread_mutex_lock(&n->lock);
		for (uint32_t p = 1; p < n->processes; p++)
			missing += !n->has_result[p] &&
				   atomic_load_explicit(&n->peer[p].lives, memory_order_acquire);
		pthread_mutex_unlock(&n->lock);
		if (missing == 0 || patience_is_over(n, &since, patience_s))
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
		atomic_store_explicit(&n->has_end, 1,
				      memory_order_release); /* from here on they may leave */
		pthread_mutex_unlock(&n->lock);
		send_to_all(n, NET_END, 0, &wire, sizeof(wire));
		return code;
	}
	for (;;) {
		uint32_t seen = atomic_load_explicit(&n->events, memory_order_acquire);
		bool over, gone = !atomic_load_explicit(&n->peer[0].lives, memory_order_acquire);

		pthread_mutex_lock(&n->lock);
		over = atomic_load_explicit(&n->has_end, memory_order_acquire);
		wire = n->end_code;
		pthread_mutex_unlock(&n->lock);
		if (over)
			return wire;
		if (gone || patience_is_over(n, &since, patience_s))
			return -EPIPE;
		wait_event(n, seen);
	}
}

/* No message of the next run is on its way yet: those follow the agreement. */
void net_next_run(struct net *n)
{
	pthread_mutex_lock(&n->lock);
	for (uint32_t p = 0; n->process == 0 && p < n->processes; p++) {
		buf_release(&n->result[p]);
		n->has_result[p] = false;
	}
	n->end_code = 0;
	atomic_store_explicit(&n->has_end, 0, memory_order_release);
	pthread_mutex_unlock(&n->lock);
}

void net_close(struct net *n)
{
	uint64_t one = 1;

	if (!n)
		return;
	if (n->started) {
		send_to_all(n, NET_BYE, 0, NULL, 0);
		for (uint32_t i = 0; i < n->trees; i++)
			send_message(n, &n->tree[i], NET_BYE, 0, NULL, 0);
		atomic_store_explicit(&n->quit, 1, memory_order_release);
		while (write(n->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
			;
		pthread_join(n->thread, NULL);
	}
	for (uint32_t i = 0; i < n->peers; i++) {
		if (n->peer[i].fd >= 0)
			close(n->peer[i].fd);
		free(n->peer[i].body);
		pthread_mutex_destroy(&n->peer[i].send_lock);
	}
	for (uint32_t i = 0; i < n->trees; i++) {
		close(n->tree[i].fd);
		free(n->tree[i].body);
		buf_release(&n->tree[i].unsent);
		pthread_mutex_destroy(&n->tree[i].send_lock);
	}
	for (int c = 0; c < NET_CHANNELS; c++) {
		for (uint32_t p = 0; n->channel[c].given && p < n->processes; p++)
			buf_release(&n->channel[c].given[p]);
		free(n->channel[c].given);
		buf_release(&n->channel[c].answer);
		buf_release(&n->channel[c].bundle);
	}
	for (uint32_t p = 0; n->result && p < n->processes; p++)
		buf_release(&n->result[p]);
	if (n->wake_fd >= 0)
		close(n->wake_fd);
	if (n->poll_fd >= 0)
		close(n->poll_fd);
	pthread_mutex_destroy(&n->lock);
	free(n->result);
	free(n->has_result);
	free(n->peer);
	free(n->tree);
	free(n->table);
	free(n);
}
