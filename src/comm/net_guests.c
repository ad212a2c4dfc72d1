/* Many half-read hellos, one poll. */
#include "comm/net_guests.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

#define GREETING_NS (5 * NS_PER_S)
/* when no descriptor is left for those who wait to be let in */
#define FULL_NS (NS_PER_S / 100)
#define LISTENERS_MAX 32

struct guest {
	int fd;
	int64_t until_ns;
	size_t have;
	struct {
		struct net_head head;
		char body[NET_HELLO_MAX];
	} said;
};

struct net_guests {
	int listener[LISTENERS_MAX];
	unsigned listeners, most, guests;
	struct guest **guest; /* in the order in which they came */
	struct pollfd *poll;
};

struct net_guests *net_guests_open(const int *listener, unsigned listeners, unsigned most)
{
	struct net_guests *g = xcalloc(1, sizeof(*g));

	for (unsigned i = 0; i < listeners && i < LISTENERS_MAX; i++)
		g->listener[g->listeners++] = listener[i];
	g->most = most;
	g->guest = xcalloc(most, sizeof(struct guest *));
	g->poll = xcalloc(g->listeners + most, sizeof(*g->poll));
	return g;
}

/* Takes a guest from the list; its socket stays open. */
static void take(struct net_guests *g, unsigned i)
{
	free(g->guest[i]);
	g->guests--;
	memmove(g->guest + i, g->guest + i + 1, (g->guests - i) * sizeof(struct guest *));
}

static void drop(struct net_guests *g, unsigned i)
{
	close(g->guest[i]->fd);
	take(g, i);
}

void net_guests_close(struct net_guests *g)
{
	if (!g)
		return;
	while (g->guests)
		drop(g, g->guests - 1);
	free(g->guest);
	free(g->poll);
	free(g);
}

static void let_in(struct net_guests *g, int listener)
{
	for (;;) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		struct guest *new;

		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (fd < 0 &&
		    (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
			if (g->guests)
				drop(g, 0);
			else
				clock_sleep_until(clock_now_ns() + FULL_NS);
		}
		if (fd < 0)
			return;
		if (g->guests == g->most)
			drop(g, 0);
		new = xcalloc(1, sizeof(*new));
		new->fd = fd;
		new->until_ns = clock_now_ns() + GREETING_NS;
		g->guest[g->guests++] = new;
	}
}

/* 1: the hello is whole; 0: more is to come; negative: it is none. Not a byte more is read. */
static int hear(struct guest *one)
{
	for (;;) {
		size_t n = sizeof(one->said.head);
		ssize_t r;

		if (one->have >= n) {
			if (one->said.head.magic != NET_MAGIC || one->said.head.type != NET_HELLO ||
			    one->said.head.bytes > sizeof(one->said.body))
				return -EPROTO;
			n += one->said.head.bytes;
		}
		if (one->have == n)
			return 1;
		r = recv(one->fd, (char *)&one->said + one->have, n - one->have, MSG_DONTWAIT);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return r < 0 && errno == EAGAIN ? 0 : -EPIPE;
		one->have += (size_t)r;
	}
}

/* The first whose hello is whole; those that are none, or late, go. */
static int hear_all(struct net_guests *g, int *fd, struct net_head *head, void *body)
{
	int64_t now = clock_now_ns();

	for (unsigned i = 0; i < g->guests;) {
		struct guest *one = g->guest[i];
		int rc = hear(one);

		if (rc > 0) {
			*fd = one->fd;
			*head = one->said.head;
			memcpy(body, one->said.body, sizeof(one->said.body));
			take(g, i);
			return 1;
		}
		if (rc < 0 || one->until_ns <= now)
			drop(g, i);
		else
			i++;
	}
	return 0;
}

int net_guests_next(struct net_guests *g, int64_t deadline_ns, int *fd, struct net_head *head,
		    void *body)
{
	for (;;) {
		int64_t until = deadline_ns, left;
		nfds_t n = 0;

		if (hear_all(g, fd, head, body))
			return 1;
		if (clock_now_ns() >= deadline_ns)
			return 0;
		for (unsigned i = 0; i < g->listeners; i++)
			g->poll[n++] = (struct pollfd){.fd = g->listener[i], .events = POLLIN};
		for (unsigned i = 0; i < g->guests; i++) {
			g->poll[n++] = (struct pollfd){.fd = g->guest[i]->fd, .events = POLLIN};
			if (g->guest[i]->until_ns < until)
				until = g->guest[i]->until_ns;
		}
		left = until - clock_now_ns();
		if (left > 0 && poll(g->poll, n, (int)(left / 1000000) + 1) <= 0)
			continue;
		for (unsigned i = 0; i < g->listeners; i++)
			if (g->poll[i].revents)
				let_in(g, g->listener[i]);
	}
}
