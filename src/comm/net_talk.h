#pragma once
/* Sockets before they are in use: listening, connecting, and whole messages with a deadline.
 * Private to comm/. */
#include <sys/socket.h>
#include <sys/un.h>

#include "comm/net_wire.h"

#define NET_GREETING_NS (5 * NS_PER_S)
#define NET_TCP_MAX 16

struct net_listener {
	int fd[NET_TCP_MAX + 1]; /* TCP, and a local one or -1 at the end */
	unsigned fds;
};

/* A listening socket that does not block; port 0: any. Negative: -errno. */
int net_listen_at(const struct sockaddr *a, socklen_t n, bool both);
uint16_t net_port_of(int fd);
/* At the addresses of the invitation alone, one port for all, which is filled in. */
int net_listen_there(struct net_listener *l, struct net_invitation *inv);
/* At the local name of a door: a socket, or negative. TCP serves as well. */
int net_listen_local(const struct net_invitation *inv, uint32_t door);
void net_listener_stop(struct net_listener *l);

/* A connected, blocking socket; negative: -errno. */
int net_connect_text(const char *text, uint16_t port);
int net_connect_local(const unsigned char secret[16], uint32_t door);
/* Messages are small and waited for; on a local socket this fails and is not needed. */
void net_set_no_delay(int fd);

/* 0 or -errno; -ETIMEDOUT once the deadline has passed, -EPROTO for what is no message, or one
 * longer than `capacity`. */
int net_recv_fd(int fd, struct net_head *h, void *body, size_t capacity, int64_t deadline_ns);
int net_send_fd(int fd, uint32_t process, enum net_message type, const void *body, size_t bytes);

/* Those who connected to process 0 and have not yet said who they are. They are heard side by side:
 * one that is silent, slow or gone keeps nobody waiting. Private to comm/. */

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
