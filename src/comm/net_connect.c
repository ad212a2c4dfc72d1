/* How the processes of a run get their connections: process 0 listens, the others come, show that
 * they were invited, and have their clocks compared. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/build_id.h"
#include "base/clock.h"
#include "comm/interface.h"
#include "comm/net_guests.h"

#define GATHER_S 60
#define GREETING_NS (5 * NS_PER_S)
#define CONNECT_NS (3 * NS_PER_S)
#define ROUND_TRIPS 8

/* More silent strangers than this, beside the processes to come, and the oldest goes. */
#define STRANGERS_MAX 256

#define TCP_MAX 16

struct net_listener {
	int fd[TCP_MAX + 1]; /* TCP, and a local one or -1 at the end */
	unsigned fds;
};

static void describe_self(struct net_process *out)
{
	FILE *f = WITH_MEMORY(fopen("/proc/sys/kernel/random/boot_id", "r"));

	memset(out, 0, sizeof(*out));
	if (gethostname(out->host, sizeof(out->host) - 1) != 0 || !out->host[0])
		snprintf(out->host, sizeof(out->host), "?");
	if (f && fgets(out->boot, sizeof(out->boot), f))
		out->boot[strcspn(out->boot, "\n")] = '\0';
	if (f)
		fclose(f);
	out->pid = (int32_t)getpid();
}

static bool same_host(const struct net_process *a, const struct net_process *b)
{
	return strcmp(a->host, b->host) == 0 && strcmp(a->boot, b->boot) == 0;
}

/* A name that only processes of the same network namespace can see. */
static socklen_t local_name(struct sockaddr_un *a, const unsigned char secret[16])
{
	char text[40] = "stoker-";

	for (int i = 0; i < 8; i++)
		snprintf(text + 7 + 2 * i, 3, "%02x", secret[i]);
	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(a->sun_path + 1, text, 23);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + 23);
}

static void add_address(struct net_invitation *inv, const struct sockaddr *a)
{
	const void *bytes = a->sa_family == AF_INET
				    ? (const void *)&((const struct sockaddr_in *)a)->sin_addr
				    : (const void *)&((const struct sockaddr_in6 *)a)->sin6_addr;

	if (inv->addresses < sizeof(inv->address) / sizeof(inv->address[0]) &&
	    inet_ntop(a->sa_family, bytes, inv->address[inv->addresses], sizeof(inv->address[0])))
		inv->addresses++;
}

/* Of this host: those of the named interfaces, or all. */
static void list_addresses(struct net_invitation *inv, const char *interfaces)
{
	struct ifaddrs *all = NULL;

	if (getifaddrs(&all) != 0)
		return;
	for (int family = AF_INET; family == AF_INET || family == AF_INET6;
	     family = family == AF_INET ? AF_INET6 : -1) {
		for (struct ifaddrs *i = all; i; i = i->ifa_next) {
			if (!i->ifa_addr || i->ifa_addr->sa_family != family ||
			    !(i->ifa_flags & IFF_UP) || i->ifa_flags & IFF_LOOPBACK)
				continue;
			if (family == AF_INET6 &&
			    IN6_IS_ADDR_LINKLOCAL(&((struct sockaddr_in6 *)i->ifa_addr)->sin6_addr))
				continue;
			if (interfaces && !interface_is_named(i, interfaces))
				continue;
			add_address(inv, i->ifa_addr);
		}
	}
	freeifaddrs(all);
}

/* A listening socket at an address; port 0: any. Negative: -errno. */
static int listen_at(const struct sockaddr *a, socklen_t n, bool both)
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

static uint16_t port_of(int fd)
{
	struct sockaddr_in6 six; /* the port lies at the same place for both families */
	socklen_t n = sizeof(six);

	return getsockname(fd, (struct sockaddr *)&six, &n) == 0 ? ntohs(six.sin6_port) : 0;
}

static int listen_everywhere(struct net_listener *l, struct net_invitation *inv)
{
	struct sockaddr_in6 six = {.sin6_family = AF_INET6};
	struct sockaddr_in four = {.sin_family = AF_INET};
	int fd = listen_at((struct sockaddr *)&six, sizeof(six), true);

	if (fd < 0) /* a host without IPv6 */
		fd = listen_at((struct sockaddr *)&four, sizeof(four), true);
	if (fd < 0)
		return fd;
	l->fd[l->fds++] = fd;
	inv->port = port_of(fd);
	return 0;
}

static int listen_text(const char *text, uint16_t port)
{
	struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

	if (inet_pton(AF_INET, text, &four.sin_addr) == 1)
		return listen_at((struct sockaddr *)&four, sizeof(four), false);
	if (inet_pton(AF_INET6, text, &six.sin6_addr) == 1)
		return listen_at((struct sockaddr *)&six, sizeof(six), false);
	return -EINVAL;
}

static void close_all(struct net_listener *l)
{
	while (l->fds)
		if (l->fd[--l->fds] >= 0)
			close(l->fd[l->fds]);
}

/* At the addresses of the invitation alone, one port for all. */
static int listen_there(struct net_listener *l, struct net_invitation *inv)
{
	int rc = -EADDRINUSE;

	/* the port of the first may be taken at another address */
	for (int attempt = 0; attempt < 8 && rc == -EADDRINUSE; attempt++) {
		close_all(l);
		rc = 0;
		for (unsigned i = 0; rc == 0 && i < inv->addresses; i++) {
			int fd = listen_text(inv->address[i], i ? inv->port : 0);

			if (fd < 0) {
				rc = fd;
				break;
			}
			l->fd[l->fds++] = fd;
			inv->port = port_of(fd);
		}
	}
	return rc;
}

static int listen_tcp(struct net_listener *l, struct net_invitation *inv,
		      const struct net_where *where)
{
	if (where->one_host) {
		snprintf(inv->address[0], sizeof(inv->address[0]), "127.0.0.1");
		inv->addresses = 1;
		if (listen_there(l, inv) == 0)
			return 0;
	}
	inv->addresses = 0;
	list_addresses(inv, where->interfaces);
	if (where->interfaces && inv->addresses && listen_there(l, inv) == 0)
		return 0;
	/* none is named, or what is named is not here */
	close_all(l);
	inv->addresses = 0;
	list_addresses(inv, NULL);
	return listen_everywhere(l, inv);
}

/* Without it, TCP serves as well. */
static int listen_local(const struct net_invitation *inv)
{
	struct sockaddr_un name;
	socklen_t n = local_name(&name, inv->secret);

	return listen_at((struct sockaddr *)&name, n, false);
}

int net_listen(struct net_listener **out, struct net_invitation *inv, const struct net_where *where,
	       struct err *e)
{
	struct net_listener *l;
	struct net_process self;
	int rc;

	memset(inv, 0, sizeof(*inv));
	inv->start_wall_ns = clock_wall_ns();
	snprintf(inv->version, sizeof(inv->version), "%s", build_id);
	describe_self(&self);
	memcpy(inv->host, self.host, sizeof(inv->host));
	if (getrandom(inv->secret, sizeof(inv->secret), 0) != (ssize_t)sizeof(inv->secret))
		return err_sys(e, errno, "cannot get random numbers for the secret of the run");
	l = xcalloc(1, sizeof(*l));
	rc = listen_tcp(l, inv, where);
	if (rc < 0) {
		net_listener_close(l);
		return err_sys(e, -rc, "cannot open a TCP port for the other processes of the run");
	}
	l->fd[l->fds++] = listen_local(inv);
	*out = l;
	return 0;
}

void net_listener_close(struct net_listener *l)
{
	if (!l)
		return;
	close_all(l);
	free(l);
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

static int recv_fd(int fd, struct net_head *h, void *body, size_t capacity, int64_t deadline_ns)
{
	int rc = read_whole(fd, h, sizeof(*h), deadline_ns);

	if (rc < 0)
		return rc;
	if (h->magic != NET_MAGIC || h->bytes > capacity)
		return -EPROTO;
	return read_whole(fd, body, h->bytes, deadline_ns);
}

static int send_fd(int fd, uint32_t process, enum net_message type, const void *body, size_t bytes)
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

/* ---- process 0 ---- */

static void compare_clocks(int fd, struct net_process *them)
{
	struct net_head h;
	struct net_pong pong;

	them->rtt_ns = INT64_MAX;
	for (int i = 0; i < ROUND_TRIPS; i++) {
		int64_t wall = clock_wall_ns(), mono = clock_now_ns(), rtt;

		if (send_fd(fd, 0, NET_PING, NULL, 0) < 0 ||
		    recv_fd(fd, &h, &pong, sizeof(pong), mono + GREETING_NS) < 0 ||
		    h.type != NET_PONG)
			break;
		rtt = clock_now_ns() - mono;
		if (rtt >= them->rtt_ns)
			continue;
		them->rtt_ns = rtt;
		them->wall_offset_ns = pong.wall_ns - (wall + rtt / 2);
		them->mono_offset_ns = pong.mono_ns - (mono + rtt / 2);
	}
	if (them->rtt_ns == INT64_MAX)
		them->rtt_ns = 0;
	if (llabs(them->wall_offset_ns) <= them->rtt_ns)
		them->wall_offset_ns = 0;
	if (llabs(them->mono_offset_ns) <= them->rtt_ns)
		them->mono_offset_ns = 0;
}

static int refuse_version(const char *host, const char *version, const struct net_invitation *inv,
			  struct err *e)
{
	return err_set(e, ERR_USAGE,
		       "host '%s' runs version %s of this program and host '%s' runs version %s: "
		       "install the same build on all hosts ('stoker --version' prints it)",
		       host, version, inv->host, inv->version);
}

/* One who said hello: 0 when it is now a peer, 1 when it is none of ours, negative when it must not
 * be. `said`: NET_HELLO_MAX bytes. */
static int receive_guest(struct net *n, const struct net_invitation *inv, int fd,
			 const struct net_head *h, const char *said, struct err *e)
{
	struct net_hello hello, mine = {0};

	memcpy(&hello, said, sizeof(hello));
	if (h->bytes < offsetof(struct net_hello, self) ||
	    memcmp(hello.secret, inv->secret, sizeof(hello.secret)) != 0)
		return 1;
	hello.self.host[sizeof(hello.self.host) - 1] = '\0';
	hello.self.boot[sizeof(hello.self.boot) - 1] = '\0';
	hello.version[sizeof(hello.version) - 1] = '\0';
	if (strcmp(hello.version, inv->version) != 0)
		return refuse_version(hello.self.host, hello.version, inv, e);
	if (h->bytes != sizeof(hello))
		return 1;
	if (h->process == 0 || h->process >= n->processes || n->peer[h->process].fd >= 0)
		return err_set(
			e, -EPROTO,
			"two processes of the run (one on host '%s') have the same number, %u",
			hello.self.host, h->process);
	if (hello.ranks_each != n->ranks_each || hello.processes != n->processes)
		return err_set(e, ERR_USAGE,
			       "process %u on host '%s' has %u ranks out of %u processes, but "
			       "process 0 on host '%s' has %u ranks out of %u processes: start all "
			       "of them with the same arguments",
			       h->process, hello.self.host, hello.ranks_each, hello.processes,
			       inv->host, n->ranks_each, n->processes);
	memcpy(mine.secret, inv->secret, sizeof(mine.secret));
	if (send_fd(fd, 0, NET_HELLO, &mine, sizeof(mine)) < 0)
		return 1;
	n->table[h->process] = hello.self;
	n->peer[h->process].fd = fd;
	atomic_store_explicit(&n->peer[h->process].lives, 1, memory_order_release);
	return 0;
}

static void number_nodes(struct net *n)
{
	for (uint32_t p = 0; p < n->processes; p++) {
		struct net_process *me = &n->table[p];
		uint32_t q = 0;

		while (q < p && !same_host(&n->table[q], me))
			q++;
		me->node = q < p ? n->table[q].node : n->nodes++;
		me->on_node = 0;
		for (q = 0; q < p; q++)
			me->on_node += n->table[q].node == me->node;
	}
}

static void set_no_delay(int fd)
{
	int one = 1;

	/* messages are small and waited for; on a local socket this fails and is not needed */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

/* Those who came are to end as process 0 does. */
static void end_all(struct net *n, int code, const struct err *e)
{
	struct net_stop_body stop = {.kind = NET_CAUSE_ERROR, .code = code};

	if (e)
		snprintf(stop.text, sizeof(stop.text), "%s", e->text);
	for (uint32_t p = 1; p < n->processes; p++)
		if (n->peer[p].fd >= 0)
			send_fd(n->peer[p].fd, 0, NET_STOP, &stop, sizeof(stop));
}

static int receive_all(struct net *n, const struct net_invitation *inv, struct net_listener *l,
		       struct err *e)
{
	int64_t deadline = clock_now_ns() + GATHER_S * NS_PER_S;
	struct net_guests *guests =
		net_guests_open(l->fd, l->fds, n->processes + (unsigned)STRANGERS_MAX);
	uint32_t come = 1, refused = 0;
	char said[NET_HELLO_MAX];
	struct net_head h;
	int why = 0;

	describe_self(&n->table[0]);
	/* once one is refused the others are still let in for a while, to hear why it ended from
	 * this process alone */
	while (come + refused < n->processes) {
		int rc, fd;

		if (!net_guests_next(guests, deadline, &fd, &h, said))
			break;
		set_no_delay(fd);
		rc = receive_guest(n, inv, fd, &h, said, refused ? NULL : e);
		if (rc != 0)
			close(fd);
		if (rc < 0 && refused++ == 0) {
			deadline = clock_now_ns() + GREETING_NS;
			why = rc;
		}
		come += rc == 0;
	}
	net_guests_close(guests);
	if (refused) {
		end_all(n, why, e);
		return why;
	}
	if (come < n->processes)
		return err_set(e, -ETIMEDOUT,
			       "only %u of %u processes connected to process 0 on host '%s' "
			       "within %d s: check whether TCP between the hosts is blocked",
			       come, n->processes, inv->host, GATHER_S);
	for (uint32_t p = 1; p < n->processes; p++)
		compare_clocks(n->peer[p].fd, &n->table[p]);
	number_nodes(n);
	for (uint32_t p = 1; p < n->processes; p++)
		if (send_fd(n->peer[p].fd, 0, NET_WELCOME, n->table,
			    n->processes * sizeof(*n->table)) < 0)
			return err_set(e, -EPIPE,
				       "process %u on host '%s' closed its connection at the start",
				       p, n->table[p].host);
	return 0;
}

/* ---- the others ---- */

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
	set_no_delay(fd);
	return fd;
}

static int connect_text(const char *text, uint16_t port)
{
	struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

	if (inet_pton(AF_INET, text, &four.sin_addr) == 1)
		return connect_to((struct sockaddr *)&four, sizeof(four));
	if (inet_pton(AF_INET6, text, &six.sin6_addr) == 1)
		return connect_to((struct sockaddr *)&six, sizeof(six));
	return -EINVAL;
}

/* Introduces this process; false when who answers is not process 0 of this run. */
static bool greet(struct net *n, const struct net_invitation *inv, int fd)
{
	struct net_hello mine = {.processes = n->processes, .ranks_each = n->ranks_each}, theirs;
	struct net_head h;

	memcpy(mine.secret, inv->secret, sizeof(mine.secret));
	snprintf(mine.version, sizeof(mine.version), "%s", build_id);
	describe_self(&mine.self);
	return send_fd(fd, n->process, NET_HELLO, &mine, sizeof(mine)) == 0 &&
	       recv_fd(fd, &h, &theirs, sizeof(theirs), clock_now_ns() + 2 * GREETING_NS) == 0 &&
	       h.type == NET_HELLO && memcmp(theirs.secret, inv->secret, 16) == 0;
}

static int refuse_own_version(const struct net_invitation *inv, struct err *e)
{
	struct net_process self;

	describe_self(&self);
	return refuse_version(self.host, build_id, inv, e);
}

static int find_process_0(struct net *n, const struct net_invitation *inv, struct err *e)
{
	struct sockaddr_un name;
	struct buf tried = {0};
	int fd = connect_to((struct sockaddr *)&name, local_name(&name, inv->secret));

	bool other = strcmp(inv->version, build_id) != 0;

	if (fd >= 0 && greet(n, inv, fd))
		return fd;
	if (fd >= 0)
		close(fd);
	/* process 0 was told, and says so */
	if (fd >= 0 && other)
		return refuse_own_version(inv, e);
	for (int i = 0; i <= inv->addresses; i++) {
		/* alone on a host without a network, or in another namespace of it */
		const char *text = i < inv->addresses ? inv->address[i] : "127.0.0.1";

		fd = connect_text(text, inv->port);
		if (fd >= 0 && greet(n, inv, fd)) {
			buf_release(&tried);
			return fd;
		}
		if (fd >= 0 && other) {
			close(fd);
			buf_release(&tried);
			return refuse_own_version(inv, e);
		}
		buf_printf(&tried, "%s%s (%s)", i ? ", " : "", text,
			   fd < 0 ? strerror(-fd) : "not process 0");
		if (fd >= 0)
			close(fd);
	}
	err_set(e, -ECONNREFUSED,
		"process %u cannot reach process 0 on host '%s', TCP port %u; tried %s", n->process,
		inv->host, inv->port, tried.data);
	buf_release(&tried);
	return e->code;
}

static int join_process_0(struct net *n, const struct net_invitation *inv, struct err *e)
{
	int64_t deadline = clock_now_ns() + 2 * GATHER_S * NS_PER_S;
	size_t table = n->processes * sizeof(*n->table), capacity = table;
	struct net_stop_body stop;
	char *body;
	int rc = 0, fd = find_process_0(n, inv, e);

	if (fd < 0)
		return fd;
	if (capacity < sizeof(stop))
		capacity = sizeof(stop);
	body = xcalloc(1, capacity);
	n->peer[0].fd = fd;
	atomic_store_explicit(&n->peer[0].lives, 1, memory_order_release);
	while (rc == 0) {
		struct net_head h;

		rc = recv_fd(fd, &h, body, capacity, deadline);
		if (rc == 0 && h.type == NET_PING) {
			struct net_pong pong = {clock_wall_ns(), clock_now_ns()};

			rc = send_fd(fd, n->process, NET_PONG, &pong, sizeof(pong));
		} else if (rc == 0 && h.type == NET_STOP && h.bytes == sizeof(stop)) {
			memcpy(&stop, body, sizeof(stop));
			stop.text[sizeof(stop.text) - 1] = '\0';
			rc = err_set(e, stop.code, "%s", stop.text);
			free(body);
			return rc;
		} else if (rc == 0 && h.type == NET_WELCOME && h.bytes == table) {
			memcpy(n->table, body, table);
			for (uint32_t p = 0; p < n->processes; p++)
				if (n->table[p].node >= n->nodes)
					n->nodes = n->table[p].node + 1;
			free(body);
			return 0;
		}
	}
	free(body);
	return err_set(e, rc, "process 0 on host '%s' ended the run before it began", inv->host);
}

int net_open(struct net **out, const struct net_invitation *inv, struct net_listener *l,
	     uint32_t process, uint32_t processes, uint32_t ranks_each, int control, struct err *e)
{
	struct net *n = xcalloc(1, sizeof(*n));
	int rc = 0;

	n->process = process;
	n->processes = processes;
	n->ranks_each = ranks_each;
	n->control = control;
	n->peers = process == 0 ? processes : 1;
	n->wake_fd = eventfd(0, EFD_CLOEXEC);
	pthread_mutex_init(&n->lock, NULL);
	n->table = xcalloc(processes, sizeof(*n->table));
	n->peer = xcalloc(n->peers, sizeof(*n->peer));
	n->result = xcalloc(processes, sizeof(*n->result));
	n->has_result = xcalloc(processes, sizeof(*n->has_result));
	for (int c = 0; c < NET_CHANNELS; c++)
		n->channel[c].given = xcalloc(processes, sizeof(struct buf));
	for (uint32_t i = 0; i < n->peers; i++) {
		n->peer[i].fd = -1;
		pthread_mutex_init(&n->peer[i].send_lock, NULL);
	}
	if (n->wake_fd < 0)
		rc = err_sys(e, errno, "cannot create an event counter");
	else
		rc = process == 0 ? receive_all(n, inv, l, e) : join_process_0(n, inv, e);
	net_listener_close(l);
	if (rc == 0)
		rc = thread_start(&n->thread, net_main, n, 0, "net", e);
	n->started = rc == 0;
	if (rc < 0) {
		net_close(n);
		return rc;
	}
	*out = n;
	return 0;
}
