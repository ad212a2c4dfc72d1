#include "metric/host_io.h"

#include <stdio.h>
#include <string.h>

#include "os/file_system.h"

void host_io_source_init(struct host_io_source *s, const char *root, const char *folder)
{
	struct file_system fs;
	struct net_io net;
	struct mount m;

	*s = (struct host_io_source){0};
	block_tree_of(&s->tree, root, folder);
	io_limit_of(&s->limit, root, &s->tree);
	fs_client_of(&s->client, root, folder);
	if (s->client.local_server)
		block_disks_of(&s->disks, root);
	net_io_sample(&net, root, s->interfaces, sizeof(s->interfaces));
	if (!mount_of_path(root, folder, &m))
		return;
	snprintf(s->file_system, sizeof(s->file_system), "%.60s", m.type);
	mount_release(&m);
	if (!file_system_of_path(folder, &fs))
		return;
	s->memory = fs.memory;
	/* the mount's type says which FUSE it is; what lies below an overlay is in the other */
	if (strncmp(fs.name, s->file_system, strlen(s->file_system)) == 0)
		snprintf(s->file_system, sizeof(s->file_system), "%s", fs.name);
}

void host_io_sample(const struct host_io_source *s, const char *root, struct host_io *out)
{
	block_list_sample(&s->tree.whole, &out->whole);
	block_list_sample(&s->tree.part, &out->part);
	block_list_sample(&s->tree.lower, &out->lower);
	block_list_sample(&s->disks, &out->disks);
	net_io_sample(&out->net, root, NULL, 0);
	fs_client_sample(&s->client, root, &out->client);
}

void host_io_sub(struct host_io *a, const struct host_io *b)
{
	block_counters_sub(&a->whole, &b->whole);
	block_counters_sub(&a->part, &b->part);
	block_counters_sub(&a->lower, &b->lower);
	block_counters_sub(&a->disks, &b->disks);
	net_io_sub(&a->net, &b->net);
	fs_client_sub(&a->client, &b->client);
}

void host_io_add(struct host_io *to, const struct host_io *from)
{
	block_counters_add(&to->whole, &from->whole);
	block_counters_add(&to->part, &from->part);
	block_counters_add(&to->lower, &from->lower);
	block_counters_add(&to->disks, &from->disks);
	net_io_add(&to->net, &from->net);
	fs_client_add(&to->client, &from->client);
}
