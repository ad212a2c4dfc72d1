/* How the processes of a run get their connections: process 0 listens, the others come, show that
 * they were invited, and have their clocks compared. */
#include "comm/net_connect.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/program.h"
#include "base/clock.h"
#include "base/compare.h"
#include "base/str.h"
#include "comm/net_talk.h"
#include "comm/net_tree.h"

/* Names of interfaces against their addresses. */

/* The bytes of an address; NULL for other families. */
static const unsigned char *bytes_of(const struct sockaddr *a, unsigned *bits)
{
	if (a->sa_family == AF_INET) {
		*bits = 32;
		return (const unsigned char *)&((const struct sockaddr_in *)a)->sin_addr;
	}
	*bits = 128;
	return a->sa_family == AF_INET6
		       ? (const unsigned char *)&((const struct sockaddr_in6 *)a)->sin6_addr
		       : NULL;
}

static bool same_bits(const unsigned char *a, const unsigned char *b, unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;

	return memcmp(a, b, whole) == 0 && (rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0);
}

/* "10.1.0.0/16", or an address alone. */
static bool in_network(const struct sockaddr *a, const char *text)
{
	char address[INET6_ADDRSTRLEN];
	unsigned char network[16];
	unsigned bits, most;
	const unsigned char *own = bytes_of(a, &most);
	const char *slash = strchr(text, '/');
	size_t n = slash ? (size_t)(slash - text) : strlen(text);
	int64_t said;

	if (!own || n >= sizeof(address))
		return false;
	memcpy(address, text, n);
	address[n] = '\0';
	if (inet_pton(a->sa_family, address, network) != 1)
		return false;
	bits = most;
	if (slash) {
		if (!str_to_i64(slash + 1, &said) || said < 0 || said > (int64_t)most)
			return false;
		bits = (unsigned)said;
	}
	return same_bits(own, network, bits);
}

static bool resolves_to(const struct sockaddr *a, const char *host)
{
	const struct addrinfo ask = {.ai_family = a->sa_family, .ai_socktype = SOCK_STREAM};
	struct addrinfo *all = NULL;
	unsigned bits;
	const unsigned char *own = bytes_of(a, &bits);
	bool found = false;

	if (!own || getaddrinfo(host, NULL, &ask, &all) != 0)
		return false;
	for (const struct addrinfo *i = all; i && !found; i = i->ai_next)
		found = i->ai_family == a->sa_family &&
			same_bits(own, bytes_of(i->ai_addr, &bits), bits);
	freeaddrinfo(all);
	return found;
}

static bool is_named(const struct ifaddrs *i, const char *word)
{
	if (strcmp(word, i->ifa_name) == 0)
		return true;
	/* the name of another interface is no host's */
	if (strchr(word, '/') || if_nametoindex(word) > 0)
		return in_network(i->ifa_addr, word);
	return in_network(i->ifa_addr, word) || resolves_to(i->ifa_addr, word);
}

bool interface_is_named(const struct ifaddrs *i, const char *list)
{
	static const char separators[] = ", \t";
	char word[256];

	while (i->ifa_addr && *(list += strspn(list, separators))) {
		size_t n = strcspn(list, separators);

		if (n < sizeof(word)) {
			memcpy(word, list, n);
			word[n] = '\0';
			if (is_named(i, word))
				return true;
		}
		list += n;
	}
	return false;
}

#define GATHER_S 60
#define ROUND_TRIPS 8

/* More silent strangers than this, beside the processes to come, and the oldest goes. */
#define STRANGERS_MAX 256

static uint32_t tree_from = NET_TREE_FROM;

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

static int listen_everywhere(struct net_listener *l, struct net_invitation *inv)
{
	struct sockaddr_in6 six = {.sin6_family = AF_INET6};
	struct sockaddr_in four = {.sin_family = AF_INET};
	int fd = net_listen_at((struct sockaddr *)&six, sizeof(six), true);

	if (fd < 0) /* a host without IPv6 */
		fd = net_listen_at((struct sockaddr *)&four, sizeof(four), true);
	if (fd < 0)
		return fd;
	l->fd[l->fds++] = fd;
	inv->port = net_port_of(fd);
	return 0;
}

static int listen_tcp(struct net_listener *l, struct net_invitation *inv,
		      const struct net_where *where)
{
	if (where->one_host) {
		snprintf(inv->address[0], sizeof(inv->address[0]), "127.0.0.1");
		inv->addresses = 1;
		if (net_listen_there(l, inv) == 0)
			return 0;
	}
	inv->addresses = 0;
	list_addresses(inv, where->interfaces);
	if (where->interfaces && inv->addresses && net_listen_there(l, inv) == 0)
		return 0;
	/* none is named, or what is named is not here */
	net_listener_stop(l);
	inv->addresses = 0;
	list_addresses(inv, NULL);
	return listen_everywhere(l, inv);
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
	l->fd[l->fds++] = net_listen_local(inv, 0);
	*out = l;
	return 0;
}

void net_listener_close(struct net_listener *l)
{
	if (!l)
		return;
	net_listener_stop(l);
	free(l);
}

/* ---- process 0 ---- */

static void compare_clocks(int fd, struct net_process *them)
{
	struct net_head h;
	struct net_pong pong;

	them->rtt_ns = INT64_MAX;
	for (int i = 0; i < ROUND_TRIPS; i++) {
		int64_t wall = clock_wall_ns(), mono = clock_now_ns(), rtt;

		if (net_send_fd(fd, 0, NET_PING, NULL, 0) < 0 ||
		    net_recv_fd(fd, &h, &pong, sizeof(pong), mono + NET_GREETING_NS) < 0 ||
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

/* Checks the hello of a connection. 0: it is now a peer; 1: it does not belong to this run;
 * negative: it does, but cannot take part. `said`: NET_HELLO_MAX bytes. */
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
	if (net_send_fd(fd, 0, NET_HELLO, &mine, sizeof(mine)) < 0)
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

/* Those who came are to end as process 0 does, and after it: their connections stay open too. */
static void end_all(struct net *n, int code, const struct err *e)
{
	struct net_stop_body stop = {.kind = NET_CAUSE_ERROR, .code = code};

	if (e)
		snprintf(stop.text, sizeof(stop.text), "%s", e->text);
	for (uint32_t p = 1; p < n->processes; p++)
		if (n->peer[p].fd >= 0)
			net_send_fd(n->peer[p].fd, 0, NET_STOP, &stop, sizeof(stop));
	for (uint32_t p = 1; p < n->processes; p++)
		n->peer[p].fd = -1;
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
	bool tree;
	int why = 0;

	describe_self(&n->table[0]);
	/* Once one is refused the others are still let in for a while, to hear why it ended from
	 * this process alone. The connection of the refused stays open until this process ends: a
	 * launcher ends all processes when the first one fails, which must not be before this one
	 * has said why. */
	while (come + refused < n->processes) {
		int rc, fd;

		if (!net_guests_next(guests, deadline, &fd, &h, said))
			break;
		net_set_no_delay(fd);
		rc = receive_guest(n, inv, fd, &h, said, refused ? NULL : e);
		if (rc > 0)
			close(fd);
		if (rc < 0 && refused++ == 0) {
			deadline = clock_now_ns() + NET_GREETING_NS;
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
	tree = n->processes >= tree_from && n->processes > 1 && net_tree_lead(n, inv, l);
	net_tree_settle(n, tree);
	for (uint32_t p = 1; p < n->processes; p++)
		if (net_send_fd(n->peer[p].fd, 0, tree ? NET_WELCOME_TREE : NET_WELCOME, n->table,
				n->processes * sizeof(*n->table)) < 0)
			return err_set(e, -EPIPE,
				       "process %u on host '%s' closed its connection at the start",
				       p, n->table[p].host);
	return 0;
}

/* ---- the others ---- */

/* Introduces this process; false when who answers is not process 0 of this run. */
static bool greet(struct net *n, const struct net_invitation *inv, int fd)
{
	struct net_hello mine = {.processes = n->processes, .ranks_each = n->ranks_each}, theirs;
	struct net_head h;

	memcpy(mine.secret, inv->secret, sizeof(mine.secret));
	snprintf(mine.version, sizeof(mine.version), "%s", build_id);
	describe_self(&mine.self);
	return net_send_fd(fd, n->process, NET_HELLO, &mine, sizeof(mine)) == 0 &&
	       net_recv_fd(fd, &h, &theirs, sizeof(theirs), clock_now_ns() + 2 * NET_GREETING_NS) ==
		       0 &&
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
	struct buf tried = {0};
	int fd = net_connect_local(inv->secret, 0);

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

		fd = net_connect_text(text, inv->port);
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

/* What process 0 says until all are there: 1 when they are. */
static int take_message(struct net *n, const struct net_invitation *inv, int fd,
			const struct net_head *h, const char *body, struct net_listener **door,
			struct err *e)
{
	struct net_pong pong = {clock_wall_ns(), clock_now_ns()};
	struct net_tree_place place;
	struct net_stop_body stop;

	switch (h->type) {
	case NET_PING:
		return net_send_fd(fd, n->process, NET_PONG, &pong, sizeof(pong));
	case NET_OPEN_DOOR:
		return net_tree_open_door(n, inv, fd, door);
	case NET_PLACE:
		if (h->bytes != sizeof(place))
			return -EPROTO;
		memcpy(&place, body, sizeof(place));
		return net_tree_take_place(n, inv, fd, &place, door);
	case NET_STOP:
		if (h->bytes != sizeof(stop))
			return -EPROTO;
		memcpy(&stop, body, sizeof(stop));
		stop.text[sizeof(stop.text) - 1] = '\0';
		return err_set(e, stop.code, "%s", stop.text);
	case NET_WELCOME:
	case NET_WELCOME_TREE:
		if (h->bytes != n->processes * sizeof(*n->table))
			return -EPROTO;
		memcpy(n->table, body, h->bytes);
		for (uint32_t p = 0; p < n->processes; p++)
			if (n->table[p].node >= n->nodes)
				n->nodes = n->table[p].node + 1;
		net_tree_settle(n, h->type == NET_WELCOME_TREE);
		return 1;
	default:
		return 0;
	}
}

static int join_process_0(struct net *n, const struct net_invitation *inv, struct err *e)
{
	int64_t deadline = clock_now_ns() + 2 * GATHER_S * NS_PER_S;
	size_t capacity = n->processes * sizeof(*n->table);
	struct net_listener *door = NULL;
	struct net_head h = {0};
	bool told = false; /* by process 0, why it ends */
	char *body;
	int rc = 0, fd = find_process_0(n, inv, e);

	if (fd < 0)
		return fd;
	if (capacity < sizeof(struct net_stop_body))
		capacity = sizeof(struct net_stop_body);
	if (capacity < sizeof(struct net_tree_place))
		capacity = sizeof(struct net_tree_place);
	body = xcalloc(1, capacity);
	n->peer[0].fd = fd;
	atomic_store_explicit(&n->peer[0].lives, 1, memory_order_release);
	while (rc == 0) {
		rc = net_recv_fd(fd, &h, body, capacity, deadline);
		if (rc == 0) {
			rc = take_message(n, inv, fd, &h, body, &door, e);
			told = h.type == NET_STOP && rc != -EPROTO;
		}
	}
	net_tree_close_door(&door);
	/* process 0 closes the connection when it ends, having said why */
	while (told &&
	       net_recv_fd(fd, &h, body, capacity, clock_now_ns() + 2 * NET_GREETING_NS) == 0)
		;
	free(body);
	if (rc > 0)
		return 0;
	return told ? rc
		    : err_set(e, rc, "process 0 on host '%s' ended the run before it began",
			      inv->host);
}

void net_set_tree_from(uint32_t processes)
{
	tree_from = processes;
}

uint32_t net_depth(const struct net *n)
{
	return n->depth;
}

int net_open(struct net **out, const struct net_invitation *inv, struct net_listener *l,
	     uint32_t process, uint32_t processes, uint32_t ranks_each, int control, struct err *e)
{
	struct net *n = xcalloc(1, sizeof(*n));
	int64_t begin = clock_now_ns(), took;
	int rc = 0;

	n->process = process;
	n->processes = processes;
	n->ranks_each = ranks_each;
	n->control = control;
	n->peers = process == 0 ? processes : 1;
	n->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	n->poll_fd = epoll_create1(EPOLL_CLOEXEC);
	pthread_mutex_init(&n->lock, NULL);
	n->table = xcalloc(processes, sizeof(*n->table));
	n->peer = xcalloc(n->peers, sizeof(*n->peer));
	n->result = xcalloc(processes, sizeof(*n->result));
	n->has_result = xcalloc(processes, sizeof(*n->has_result));
	for (int c = 0; c < NET_CHANNELS; c++)
		n->channel[c].given = xcalloc(processes, sizeof(struct buf));
	for (uint32_t i = 0; i < n->peers; i++) {
		n->peer[i].fd = -1;
		n->peer[i].process = i;
		pthread_mutex_init(&n->peer[i].send_lock, NULL);
	}
	if (n->wake_fd < 0 || n->poll_fd < 0)
		rc = err_sys(e, errno, "cannot create an event counter");
	else
		rc = process == 0 ? receive_all(n, inv, l, e) : join_process_0(n, inv, e);
	net_listener_close(l);
	took = (clock_now_ns() - begin) / NS_PER_S;
	LOWER(took, NET_SILENCE_MOST_S);
	net_set_silence(n, (took > NET_SILENCE_S ? took : NET_SILENCE_S) * NS_PER_S);
	if (rc == 0)
		net_poll_peers(n);
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
