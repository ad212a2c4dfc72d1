#pragma once
/* What the network interfaces of this machine moved, whoever caused it: /sys/class/net (Linux's
 * Documentation/ABI/testing/sysfs-class-net-statistics) and the ports of InfiniBand and RoCE
 * (sysfs-class-infiniband). */
#include <stdbool.h>
#include <stdint.h>

struct net_io {
	bool known;                          /* there is an interface other than the loopback */
	uint64_t received_bytes, sent_bytes; /* frames with their headers */
	uint64_t loopback_bytes;             /* received from this machine itself */
	bool rdma_known;                     /* there is a port that moves memory past them */
	uint64_t rdma_received_bytes, rdma_sent_bytes;
};

/* Sums over interfaces with hardware behind them, or, where none has (containers), over those that
 * are not made of others: a bond, a bridge or a VLAN and what it is made of count once. `root`
 * stands before /sys. `names` (may be NULL): "eth0, mlx5_0/1", as far as it fits. */
void net_io_sample(struct net_io *out, const char *root, char *names, unsigned long names_size);
/* a - b, of an earlier moment. Not known when one went back: an interface is gone. */
void net_io_sub(struct net_io *a, const struct net_io *b);
void net_io_add(struct net_io *to, const struct net_io *from);
