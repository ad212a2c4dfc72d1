/* Processes of several hosts meet at an address that their launcher gave to all of them: host and
 * port of process 0. Anyone may come there, so that each says first what only the environment of
 * the job has (a digest of it); nobody else gets a byte. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "comm/meeting.h"

/* The launcher itself may listen at its port, as torchrun does: the next ones are tried, by all. */
#define PORTS 8
#define CONNECT_NS NS_PER_S

static struct {
	char host[256], where[320];
	uint16_t port;
	unsigned next; /* the port to try, of PORTS */
	struct meeting_point point;
} self;

static int closed(int fd)
{
	int code = errno;

	close(fd);
	return -code;
}

/* The addresses of a host and a port; `host` NULL: all of this host. NULL: none, at the moment. */
static struct addrinfo *addresses(const char *host, uint16_t port)
{
	const struct addrinfo ask = {.ai_socktype = SOCK_STREAM, .ai_flags = host ? 0 : AI_PASSIVE};
	struct addrinfo *all = NULL;
	char text[8];

	snprintf(text, sizeof(text), "%u", port);
	return getaddrinfo(host, text, &ask, &all) == 0 ? all : NULL;
}

static int listen_at(const struct addrinfo *a)
{
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const int on = 1;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	return bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, 4096) == 0 ? fd : closed(fd);
}

static int listen_at_port(void)
{
	int fd = -EADDRINUSE;

	for (unsigned i = 0; fd == -EADDRINUSE && i < PORTS; i++) {
		struct addrinfo *all = addresses(NULL, (uint16_t)(self.port + i));

		/* IPv6 first, which takes IPv4 as well; not every host has it */
		for (int family = 0; fd < 0 && family < 2; family++)
			for (struct addrinfo *a = all; a && fd < 0; a = a->ai_next)
				if (a->ai_family == (family ? AF_INET : AF_INET6))
					fd = listen_at(a);
		if (all)
			freeaddrinfo(all);
	}
	return fd;
}

static int connect_one(const struct addrinfo *a, int64_t until_ns)
{
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), code = 0;
	socklen_t n = sizeof(code);
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	int64_t left = until_ns - clock_now_ns();

	if (fd < 0)
		return -errno;
	if (connect(fd, a->ai_addr, a->ai_addrlen) == 0)
		return fd;
	if (errno != EINPROGRESS)
		return closed(fd);
	left = left < CONNECT_NS ? left : CONNECT_NS;
	if (left <= 0 || poll(&p, 1, (int)(left / 1000000) + 1) <= 0)
		errno = ETIMEDOUT;
	else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &n) == 0 && code == 0)
		return fd;
	else
		errno = code ? code : EIO;
	return closed(fd);
}

static int connect_to_port(int64_t until_ns)
{
	struct addrinfo *all = addresses(self.host, (uint16_t)(self.port + self.next++ % PORTS));
	int fd = -EHOSTUNREACH;

	for (struct addrinfo *a = all; a && fd < 0; a = a->ai_next)
		fd = connect_one(a, until_ns);
	if (all)
		freeaddrinfo(all);
	return fd;
}

static bool trusts_token(int fd, pid_t *pid)
{
	(void)fd;
	*pid = 0;
	return true;
}

static const char *owner(void)
{
	return "another program";
}

static int begin(const struct meet_job *job, struct meet_place *place, struct err *e)
{
	const char *colon = strrchr(job->address, ':');
	size_t n = colon ? (size_t)(colon - job->address) : 0;
	const char *host = job->address;
	int64_t port;

	if (n > 1 && host[0] == '[' && host[n - 1] == ']') {
		host++;
		n -= 2;
	}
	if (n == 0 || n >= sizeof(self.host) || !str_to_i64(colon + 1, &port) || port < 1 ||
	    port > UINT16_MAX - PORTS)
		return err_set(
			e, -ECONNREFUSED,
			"the processes of %s are to meet at '%.80s', which is no HOST:PORT with a "
			"port up to %d",
			job->launcher, job->address, UINT16_MAX - PORTS);
	snprintf(self.host, sizeof(self.host), "%.*s", (int)n, host);
	snprintf(self.where, sizeof(self.where), "at %.*s:%d", (int)n, host, (int)port);
	self.port = (uint16_t)port;
	self.point = (struct meeting_point){
		.where = self.where,
		.else_why = "cannot reach that address",
		.strangers = true,
		.listen = listen_at_port,
		.connect = connect_to_port,
		.trusts = trusts_token,
		.owner = owner,
	};
	memcpy(self.point.token, job->token, MEET_TOKEN);
	meeting_begin(job, &self.point, place);
	return 0;
}

const struct meet_way meet_at_address = {begin, meeting_broadcast, meeting_end, meeting_give_up};
