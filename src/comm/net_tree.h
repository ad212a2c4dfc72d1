#pragma once
/* The tree of a run with many processes: its shape, and its connections. Private to comm/. */
#include "comm/net_wire.h"

struct net_listener;

/* parent[p] of every process (of process 0: itself), by the nodes in `table`: no process has more
 * than NET_TREE_BELOW below it, and what is below a process is a range of whole hosts, or of one
 * host's processes, so that each host is entered once. Returns the depth. */
uint32_t net_tree_shape(const struct net_process *table, uint32_t processes, uint32_t *parent);

/* A process's place in it. */
struct net_tree_place {
	uint32_t parent, below, depth;
	struct net_invitation door; /* of the parent */
};

/* Process 0, when all others are connected and wait: makes the tree. false: it could not be made
 * (a process cannot reach another one, perhaps), and there is none. */
bool net_tree_lead(struct net *n, const struct net_invitation *inv, struct net_listener *l);
/* The others: NET_OPEN_DOOR and NET_PLACE came from process 0 over fd. *door (NULL before) listens
 * until net_tree_close_door. Negative: the connection to process 0 is over, or misused. */
int net_tree_open_door(struct net *n, const struct net_invitation *inv, int fd,
		       struct net_listener **door);
int net_tree_take_place(struct net *n, const struct net_invitation *inv, int fd,
			const struct net_tree_place *place, struct net_listener **door);
void net_tree_close_door(struct net_listener **door);
/* What rounds go over: the tree's connections, which are in use from here on; or, not `used`, those
 * with process 0, and the tree's are closed. */
void net_tree_settle(struct net *n, bool used);
