/* How the connections of the tree come about: each process listens for those below it, says to
 * process 0 where, and connects to the one that process 0 names. */
#include "comm/net_tree.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/program.h"
#include "base/clock.h"
#include "comm/net_talk.h"

/* For all connections of the tree; without it the run goes on. */
#define TREE_NS (20 * NS_PER_S)
#define STRANGERS_MAX 16

/* ---- the shape ---- */

struct shape {
	const struct net_process *table;
	const uint32_t *order; /* by hosts */
	uint32_t *parent;
};

static uint32_t node_at(const struct shape *s, uint32_t i)
{
	return s->table[s->order[i]].node;
}

/* The first of range [from, to) that is on another host than `from`; `to`: none is. */
static uint32_t next_host(const struct shape *s, uint32_t from, uint32_t to)
{
	uint32_t i = from;

	while (i < to && node_at(s, i) == node_at(s, from))
		i++;
	return i;
}

static void place_range(const struct shape *s, uint32_t from, uint32_t to, uint32_t parent,
			uint32_t depth, uint32_t *deepest);

/* Range [from, to) as up to `parts` ranges below `parent`. They end where hosts do, unless all are
 * on the parent's. */
static void split_range(const struct shape *s, uint32_t from, uint32_t to, uint32_t parts,
			uint32_t parent, uint32_t depth, uint32_t *deepest)
{
	bool one_host = from < to && node_at(s, from) == s->table[parent].node;

	for (; from < to; parts--) {
		uint32_t end = from + (to - from + parts - 1) / parts;

		assert(parts > 0);
		if (!one_host) {
			uint32_t at = from;

			while (at < end)
				at = next_host(s, at, to);
			end = at;
		}
		place_range(s, from, end, parent, depth, deepest);
		from = end;
	}
}

static void place_range(const struct shape *s, uint32_t from, uint32_t to, uint32_t parent,
			uint32_t depth, uint32_t *deepest)
{
	uint32_t first = s->order[from], host = next_host(s, from, to);
	uint32_t local = from + 1 < host && host < to;

	s->parent[first] = parent;
	if (depth > *deepest)
		*deepest = depth;
	if (local) /* the rest of this host is one of the parts */
		place_range(s, from + 1, host, first, depth + 1, deepest);
	split_range(s, local ? host : from + 1, to, NET_TREE_BELOW - local, first, depth + 1,
		    deepest);
}

uint32_t net_tree_shape(const struct net_process *table, uint32_t processes, uint32_t *parent)
{
	uint32_t *order = xcalloc(processes, sizeof(*order)), n = 0, nodes = 0, deepest = 0;
	uint32_t *first;

	/* in the order of nodes, by counting */
	for (uint32_t p = 0; p < processes; p++)
		nodes = table[p].node >= nodes ? table[p].node + 1 : nodes;
	first = xcalloc(nodes + 1, sizeof(*first));
	for (uint32_t p = 0; p < processes; p++)
		first[table[p].node + 1]++;
	for (uint32_t i = 0; i < nodes; i++)
		first[i + 1] += first[i];
	for (uint32_t p = 0; p < processes; p++, n++)
		order[first[table[p].node]++] = p;
	assert(n == processes && order[0] == 0);
	place_range(&(struct shape){table, order, parent}, 0, processes, 0, 0, &deepest);
	free(first);
	free(order);
	return deepest;
}

/* ---- the connections ---- */

static void add_peer(struct net *n, uint32_t at, uint32_t process, int fd)
{
	struct net_peer *p = &n->tree[at];

	p->fd = fd;
	p->process = process;
	p->queues = true;
	net_set_no_delay(fd);
	atomic_store_explicit(&p->lives, 1, memory_order_release);
}

static void make_peers(struct net *n, uint32_t count)
{
	n->trees = count;
	n->tree = xcalloc(count ? count : 1, sizeof(*n->tree));
	for (uint32_t i = 0; i < count; i++) {
		n->tree[i].fd = -1;
		pthread_mutex_init(&n->tree[i].send_lock, NULL);
	}
}

static void put_hello(const struct net *n, const struct net_invitation *inv, struct net_hello *out)
{
	*out = (struct net_hello){.processes = n->processes, .ranks_each = n->ranks_each};
	memcpy(out->secret, inv->secret, sizeof(out->secret));
	snprintf(out->version, sizeof(out->version), "%s", build_id);
}

/* Lets in the `below` processes whose parent this one is. */
static bool let_in(struct net *n, const struct net_invitation *inv, struct net_listener *door,
		   uint32_t below, int64_t deadline_ns)
{
	struct net_guests *guests =
		net_guests_open(door->fd, door->fds, below + (unsigned)STRANGERS_MAX);
	char said[NET_HELLO_MAX];
	struct net_hello hello, mine;
	struct net_head h;
	uint32_t come = 0;
	int fd;

	put_hello(n, inv, &mine);
	while (come < below && net_guests_next(guests, deadline_ns, &fd, &h, said)) {
		bool known = h.bytes == sizeof(hello) && h.process < n->processes;

		memcpy(&hello, said, sizeof(hello));
		for (uint32_t i = 0; known && i < come; i++)
			known = n->tree[i].process != h.process;
		if (!known || memcmp(hello.secret, inv->secret, sizeof(hello.secret)) != 0 ||
		    net_send_fd(fd, n->process, NET_HELLO, &mine, sizeof(mine)) < 0) {
			close(fd);
			continue;
		}
		add_peer(n, come++, h.process, fd);
	}
	net_guests_close(guests);
	return come == below;
}

/* A socket whose other end is that process of this run; or negative. */
static int greet(const struct net *n, const struct net_invitation *inv, uint32_t process, int fd,
		 int64_t deadline_ns)
{
	struct net_hello mine, theirs;
	struct net_head h;

	if (fd < 0)
		return fd;
	put_hello(n, inv, &mine);
	if (net_send_fd(fd, n->process, NET_HELLO, &mine, sizeof(mine)) == 0 &&
	    net_recv_fd(fd, &h, &theirs, sizeof(theirs), deadline_ns) == 0 && h.type == NET_HELLO &&
	    h.process == process && h.bytes == sizeof(theirs) &&
	    memcmp(theirs.secret, inv->secret, sizeof(theirs.secret)) == 0)
		return fd;
	close(fd);
	return -EPROTO;
}

static int connect_up(const struct net *n, const struct net_invitation *inv,
		      const struct net_tree_place *place, int64_t deadline_ns)
{
	const struct net_invitation *door = &place->door;
	int fd = greet(n, inv, place->parent, net_connect_local(inv->secret, place->parent),
		       deadline_ns);

	for (int i = 0; fd < 0 && i < door->addresses && i < NET_TCP_MAX; i++)
		fd = greet(n, inv, place->parent, net_connect_text(door->address[i], door->port),
			   deadline_ns);
	return fd;
}

/* ---- process 0 ---- */

/* What all answer to a message that all got, `size` bytes each in `out`; not *all: one of them with
 * fewer. false: one does not answer. */
static bool ask_all(struct net *n, enum net_message answer, void *out, size_t size, bool *all)
{
	int64_t deadline = clock_now_ns() + 2 * TREE_NS;
	struct net_head h;

	*all = true;
	for (uint32_t p = 1; p < n->processes; p++) {
		if (net_recv_fd(n->peer[p].fd, &h, (char *)out + p * size, size, deadline) < 0 ||
		    h.type != answer)
			return false;
		*all = *all && h.bytes == size;
	}
	return true;
}

bool net_tree_lead(struct net *n, const struct net_invitation *inv, struct net_listener *l)
{
	struct net_invitation *door = xcalloc(n->processes, sizeof(*door));
	uint32_t *parent = xcalloc(n->processes, sizeof(*parent));
	uint32_t *below = xcalloc(n->processes, sizeof(*below));
	char *placed = xcalloc(n->processes, 1);
	bool heard, all;

	door[0] = *inv;
	n->depth = net_tree_shape(n->table, n->processes, parent);
	for (uint32_t p = 1; p < n->processes; p++)
		below[parent[p]]++;
	assert(below[0] <= NET_TREE_BELOW);
	make_peers(n, below[0]);
	for (uint32_t p = 1; p < n->processes; p++)
		net_send_fd(n->peer[p].fd, 0, NET_OPEN_DOOR, NULL, 0);
	heard = ask_all(n, NET_DOOR, door, sizeof(*door), &all);
	for (uint32_t p = 1; heard && all && p < n->processes; p++) {
		struct net_tree_place place = {.parent = parent[p],
					       .below = below[p],
					       .depth = n->depth,
					       .door = door[parent[p]]};

		net_send_fd(n->peer[p].fd, 0, NET_PLACE, &place, sizeof(place));
	}
	if (heard && all) {
		bool mine = let_in(n, inv, l, below[0], clock_now_ns() + TREE_NS);

		heard = ask_all(n, NET_PLACED, placed, 1, &all);
		for (uint32_t p = 1; p < n->processes; p++)
			all = all && placed[p];
		all = all && mine;
	}
	free(placed);
	free(below);
	free(parent);
	free(door);
	return heard && all;
}

/* ---- the others ---- */

/* The address at which the processes below can reach this one: that of its connection to process
 * 0, or, on the same host (a Unix socket), the addresses of process 0. */
static void own_addresses(const struct net_invitation *inv, int fd, struct net_invitation *out)
{
	struct sockaddr_storage own;
	socklen_t size = sizeof(own);
	const void *bytes = NULL;

	*out = *inv;
	if (getsockname(fd, (struct sockaddr *)&own, &size) != 0)
		return;
	if (own.ss_family == AF_INET)
		bytes = &((const struct sockaddr_in *)&own)->sin_addr;
	else if (own.ss_family == AF_INET6)
		bytes = &((const struct sockaddr_in6 *)&own)->sin6_addr;
	if (!bytes)
		return;
	out->addresses = 0;
	if (inet_ntop(own.ss_family, bytes, out->address[0], sizeof(out->address[0])))
		out->addresses = 1;
}

int net_tree_open_door(struct net *n, const struct net_invitation *inv, int fd,
		       struct net_listener **door)
{
	struct net_invitation where;
	struct net_listener *l;
	bool open;

	if (*door) /* asked twice */
		return -EPROTO;
	l = xcalloc(1, sizeof(*l));
	own_addresses(inv, fd, &where);
	open = where.addresses > 0 && net_listen_there(l, &where) == 0;
	l->fd[l->fds++] = net_listen_local(inv, n->process);
	*door = l;
	return net_send_fd(fd, n->process, NET_DOOR, &where, open ? sizeof(where) : 0);
}

int net_tree_take_place(struct net *n, const struct net_invitation *inv, int fd,
			const struct net_tree_place *place, struct net_listener **door)
{
	int64_t deadline = clock_now_ns() + TREE_NS;
	char placed;
	int up;

	if (!*door || n->tree || place->below > NET_TREE_BELOW || place->parent >= n->processes)
		return -EPROTO;
	make_peers(n, place->below + 1);
	n->depth = place->depth;
	up = connect_up(n, inv, place, deadline);
	placed = up >= 0 && let_in(n, inv, *door, place->below, deadline);
	if (up >= 0)
		add_peer(n, place->below, place->parent, up);
	net_tree_close_door(door);
	return net_send_fd(fd, n->process, NET_PLACED, &placed, 1);
}

void net_tree_close_door(struct net_listener **door)
{
	if (*door)
		net_listener_stop(*door);
	free(*door);
	*door = NULL;
}

void net_tree_settle(struct net *n, bool used)
{
	if (used) {
		n->downs = n->trees - (n->process != 0);
		n->down = n->tree;
		n->up = n->process ? &n->tree[n->downs] : NULL;
		return;
	}
	for (uint32_t i = 0; i < n->trees; i++) {
		if (n->tree[i].fd >= 0)
			close(n->tree[i].fd);
		pthread_mutex_destroy(&n->tree[i].send_lock);
	}
	free(n->tree);
	n->tree = NULL;
	n->trees = 0;
	n->depth = 1;
	n->up = n->process ? &n->peer[0] : NULL;
	n->down = n->process ? NULL : n->peer + 1;
	n->downs = n->process ? 0 : n->processes - 1;
}
