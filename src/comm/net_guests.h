#pragma once
/* Those who connected to process 0 and have not yet said who they are. They are heard side by side:
 * one that is silent, slow or gone keeps nobody waiting. Private to comm/. */
#include "comm/net_wire.h"

/* Longest hello: another version may say more of itself, or less. */
#define NET_HELLO_MAX 4096

struct net_guests;

/* Of connections to these listening sockets (-1: none), which stay the caller's and must not block.
 * `most` may be connected and silent at once: the oldest goes when another comes. */
struct net_guests *net_guests_open(const int *listener, unsigned listeners, unsigned most);
/* The next who has said hello, whoever it is: 1, and its socket (now the caller's, blocking) with
 * the message's head and body (NET_HELLO_MAX bytes). 0: nobody did until the deadline. */
int net_guests_next(struct net_guests *g, int64_t deadline_ns, int *fd, struct net_head *head,
		    void *body);
void net_guests_close(struct net_guests *g);
