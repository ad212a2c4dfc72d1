#include "metric/net_io.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "metric/counter.h"

#define RDMA_UNIT_BYTES 4 /* port_rcv_data and port_xmit_data count octets over four lanes */

static bool read_counter(const char *folder, const char *name, uint64_t *out)
{
	AUTO_FREE char *path = xasprintf("%s/%s", folder, name);
	FILE *f = WITH_MEMORY(fopen(path, "re"));
	bool known;

	if (!f)
		return false;
	known = fscanf(f, "%" SCNu64, out) == 1;
	fclose(f);
	return known;
}

static void append_name(char *names, unsigned long size, const char *name)
{
	size_t n = names ? strlen(names) : 0;

	if (names && n < size)
		snprintf(names + n, size - n, "%s%s", n ? ", " : "", name);
}

/* Calls `each` for every entry of a folder. */
static void for_each_entry(const char *folder,
			   void (*each)(void *arg, const char *path, const char *name), void *arg)
{
	DIR *d = WITH_MEMORY(opendir(folder));
	struct dirent *entry;

	while (d && (entry = readdir(d))) {
		AUTO_FREE char *path = xasprintf("%s/%s", folder, entry->d_name);

		if (entry->d_name[0] != '.')
			each(arg, path, entry->d_name);
	}
	if (d)
		closedir(d);
}

struct net_scan {
	struct net_io *out;
	char *names;
	unsigned long names_size;
	bool hardware; /* only interfaces that have some */
	bool any;
	const char *device; /* of InfiniBand */
};

static void find_lower(void *arg, const char *path, const char *name)
{
	(void)path;
	*(bool *)arg = *(bool *)arg || strncmp(name, "lower_", 6) == 0;
}

static void add_interface(void *arg, const char *path, const char *name)
{
	struct net_scan *l = arg;
	AUTO_FREE char *hardware = xasprintf("%s/device", path);
	bool made_of_others = false;
	uint64_t in = 0, out = 0;

	if (!read_counter(path, "statistics/rx_bytes", &in) ||
	    !read_counter(path, "statistics/tx_bytes", &out))
		return;
	if (strcmp(name, "lo") == 0) {
		l->out->loopback_bytes = in;
		return;
	}
	if (l->hardware && access(hardware, F_OK) != 0)
		return;
	if (!l->hardware)
		for_each_entry(path, find_lower, &made_of_others);
	if (made_of_others)
		return;
	l->any = true;
	l->out->received_bytes += in;
	l->out->sent_bytes += out;
	append_name(l->names, l->names_size, name);
}

static void add_port(void *arg, const char *path, const char *name)
{
	struct net_scan *l = arg;
	AUTO_FREE char *full = xasprintf("%s/%s", l->device, name);
	uint64_t in, out;

	if (!read_counter(path, "counters/port_rcv_data", &in) ||
	    !read_counter(path, "counters/port_xmit_data", &out))
		return;
	l->out->rdma_known = true;
	l->out->rdma_received_bytes += in * RDMA_UNIT_BYTES;
	l->out->rdma_sent_bytes += out * RDMA_UNIT_BYTES;
	append_name(l->names, l->names_size, full);
}

static void add_rdma(void *arg, const char *path, const char *name)
{
	struct net_scan *l = arg;
	AUTO_FREE char *ports = xasprintf("%s/ports", path);

	l->device = name;
	for_each_entry(ports, add_port, l);
}

void net_io_sample(struct net_io *out, const char *root, char *names, unsigned long names_size)
{
	AUTO_FREE char *interfaces = xasprintf("%s/sys/class/net", root);
	AUTO_FREE char *rdma = xasprintf("%s/sys/class/infiniband", root);
	struct net_scan l = {
		.out = out, .names = names, .names_size = names_size, .hardware = true};

	*out = (struct net_io){0};
	if (names && names_size)
		names[0] = '\0';
	for_each_entry(interfaces, add_interface, &l);
	if (!l.any) {
		l.hardware = false;
		for_each_entry(interfaces, add_interface, &l);
	}
	out->known = l.any;
	for_each_entry(rdma, add_rdma, &l);
}

void net_io_sub(struct net_io *a, const struct net_io *b)
{
	a->known = a->known && b->known;
	counter_sub(&a->received_bytes, b->received_bytes, &a->known);
	counter_sub(&a->sent_bytes, b->sent_bytes, &a->known);
	counter_sub(&a->loopback_bytes, b->loopback_bytes, &a->known);
	a->rdma_known = a->rdma_known && b->rdma_known;
	counter_sub(&a->rdma_received_bytes, b->rdma_received_bytes, &a->rdma_known);
	counter_sub(&a->rdma_sent_bytes, b->rdma_sent_bytes, &a->rdma_known);
}

void net_io_add(struct net_io *to, const struct net_io *from)
{
	to->known = to->known && from->known;
	to->received_bytes += from->received_bytes;
	to->sent_bytes += from->sent_bytes;
	to->loopback_bytes += from->loopback_bytes;
	to->rdma_known = to->rdma_known && from->rdma_known;
	to->rdma_received_bytes += from->rdma_received_bytes;
	to->rdma_sent_bytes += from->rdma_sent_bytes;
}
