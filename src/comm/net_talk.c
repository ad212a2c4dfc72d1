/* Sockets before they are in use. */
#include "comm/net_talk.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

#define CONNECT_NS (3 * NS_PER_S)

/* A name that only processes of the same network namespace can see: of process 0 (door 0), or of
 * another process of its run (door: its number). */
static socklen_t net_local_name(struct sockaddr_un *a, const unsigned char secret[16],
				uint32_t door)
{
	char text[64] = "stoker-";
	size_t n = 23;

	for (int i = 0; i < 8; i++)
		snprintf(text + 7 + 2 * i, 3, "%02x", secret[i]);
	if (door)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "-%u", door);
	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(a->sun_path + 1, text, n);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
}

int net_listen_at(const struct sockaddr *a, socklen_t n, bool both)
{
	int fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), off = !both;

	if (fd < 0)
		return -errno;
	if (a->sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (bind(fd, a, n) != 0 || listen(fd, 1024) != 0) {
		int errnum = errno;

		close(fd);
		return -errnum;
	}
	return fd;
}

uint16_t net_port_of(int fd)
{
	struct sockaddr_in6 six; /* the port lies at the same place for both families */
	socklen_t n = sizeof(six);

	return getsockname(fd, (struct sockaddr *)&six, &n) == 0 ? ntohs(six.sin6_port) : 0;
}

static int listen_text(const char *text, uint16_t port)
{
	struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

	if (inet_pton(AF_INET, text, &four.sin_addr) == 1)
		return net_listen_at((struct sockaddr *)&four, sizeof(four), false);
	if (inet_pton(AF_INET6, text, &six.sin6_addr) == 1)
		return net_listen_at((struct sockaddr *)&six, sizeof(six), false);
	return -EINVAL;
}

void net_listener_stop(struct net_listener *l)
{
	while (l->fds)
		if (l->fd[--l->fds] >= 0)
			close(l->fd[l->fds]);
}

int net_listen_there(struct net_listener *l, struct net_invitation *inv)
{
	int rc = -EADDRINUSE;

	/* the port of the first may be taken at another address */
	for (int attempt = 0; attempt < 8 && rc == -EADDRINUSE; attempt++) {
		net_listener_stop(l);
		rc = 0;
		for (unsigned i = 0; rc == 0 && i < inv->addresses; i++) {
			int fd = listen_text(inv->address[i], i ? inv->port : 0);

			if (fd < 0) {
				rc = fd;
				break;
			}
			l->fd[l->fds++] = fd;
			inv->port = net_port_of(fd);
		}
	}
	return rc;
}

int net_listen_local(const struct net_invitation *inv, uint32_t door)
{
	struct sockaddr_un name;
	socklen_t n = net_local_name(&name, inv->secret, door);

	return net_listen_at((struct sockaddr *)&name, n, false);
}

/* ---- blocking messages with a deadline ---- */

static bool ready(int fd, short events, int64_t deadline_ns)
{
	for (;;) {
		int64_t left = deadline_ns - clock_now_ns();
		struct pollfd p = {.fd = fd, .events = events};
		int rc;

		if (left <= 0)
			return false;
		rc = poll(&p, 1, (int)(left / 1000000) + 1);
		if (rc > 0)
			return true;
		if (rc < 0 && errno != EINTR)
			return false;
	}
}

static int read_whole(int fd, void *to, size_t n, int64_t deadline_ns)
{
	for (size_t have = 0; have < n;) {
		ssize_t r;

		if (!ready(fd, POLLIN, deadline_ns))
			return -ETIMEDOUT;
		r = recv(fd, (char *)to + have, n - have, MSG_DONTWAIT);
		if (r == 0)
			return -EPIPE;
		if (r < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		have += r > 0 ? (size_t)r : 0;
	}
	return 0;
}

int net_recv_fd(int fd, struct net_head *h, void *body, size_t capacity, int64_t deadline_ns)
{
	int rc = read_whole(fd, h, sizeof(*h), deadline_ns);

	if (rc < 0)
		return rc;
	if (h->magic != NET_MAGIC || h->bytes > capacity)
		return -EPROTO;
	return read_whole(fd, body, h->bytes, deadline_ns);
}

int net_send_fd(int fd, uint32_t process, enum net_message type, const void *body, size_t bytes)
{
	struct net_head h = {
		.magic = NET_MAGIC, .type = (uint8_t)type, .process = process, .bytes = bytes};
	const char *part[2] = {(const char *)&h, body};
	size_t size[2] = {sizeof(h), bytes};

	for (int i = 0; i < 2; i++)
		for (size_t at = 0; at < size[i];) {
			ssize_t r = send(fd, part[i] + at, size[i] - at, MSG_NOSIGNAL);

			if (r < 0 && errno != EINTR)
				return -errno;
			at += r > 0 ? (size_t)r : 0;
		}
	return 0;
}

/* ---- connecting ---- */

void net_set_no_delay(int fd)
{
	int one = 1;

	/* messages are small and waited for; on a local socket this fails and is not needed */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static int connect_to(const struct sockaddr *a, socklen_t n)
{
	int fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int errnum = 0;
	socklen_t size = sizeof(errnum);

	if (fd < 0)
		return -errno;
	if (connect(fd, a, n) != 0) {
		if (errno == EINPROGRESS && ready(fd, POLLOUT, clock_now_ns() + CONNECT_NS))
			getsockopt(fd, SOL_SOCKET, SO_ERROR, &errnum, &size);
		else
			errnum = errno == EINPROGRESS ? ETIMEDOUT : errno;
	}
	if (errnum) {
		close(fd);
		return -errnum;
	}
	fcntl(fd, F_SETFL, 0);
	net_set_no_delay(fd);
	return fd;
}

int net_connect_text(const char *text, uint16_t port)
{
	struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

	if (inet_pton(AF_INET, text, &four.sin_addr) == 1)
		return connect_to((struct sockaddr *)&four, sizeof(four));
	if (inet_pton(AF_INET6, text, &six.sin6_addr) == 1)
		return connect_to((struct sockaddr *)&six, sizeof(six));
	return -EINVAL;
}

int net_connect_local(const unsigned char secret[16], uint32_t door)
{
	struct sockaddr_un name;
	socklen_t n = net_local_name(&name, secret, door);

	return connect_to((struct sockaddr *)&name, n);
}

/* Many half-read hellos, one poll. */

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
