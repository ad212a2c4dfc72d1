/* Names of clients: of their User-Agent, as their requests to a recording server have it. */
#include "trace/workload/workload_storage.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "conf/node.h"
#include "store/s3_profile.h"
#include "workload/backend.h"

/* The newest profile whose name begins so; NULL. */
static const char *profile_named(const char *begin)
{
	const char *found = NULL;

	for (const char *const *name = s3_profile_names; *name; name++)
		if (str_starts(*name, begin))
			found = *name;
	return found;
}

/* The request profile that asks as a client with this User-Agent ("": not known); NULL. `how`: why.
 */
static const char *client_profile(const struct profile *a, const char *agent, const char **how)
{
	/* the first that is in the text */
	static const struct {
		const char *agent, *profile;
	} clients[] = {
		{"s3torchconnector", "s3torchconnector"},
		{"S3TorchConnector", "s3torchconnector"},
		{"CRTS3NativeClient", "s3torchconnector"},
		{"aiobotocore", "s3fs"},
		{"s3fs", "s3fs"},
		{"minio-py", "minio"},
		{"MinIO", "minio"},
		{"s3dlio", "s3dlio"},
		{"aws-sdk-rust", "s3dlio"},
		{"arrow", "arrow"},
		{"aws-sdk-cpp", "arrow"},
		{"Boto3", "boto3"},
		{"Botocore", "boto3"},
	};
	const struct job_server *server = a->servers.n ? &a->servers.v[0] : NULL;
	bool heads = server && 2 * server->requests[JOB_HEAD] >= server->objects &&
		     server->requests[JOB_HEAD] > 0;
	bool ranged = server && 2 * server->ranged > server->gets;

	for (size_t i = 0; i < sizeof(clients) / sizeof(clients[0]); i++) {
		const char *found = profile_named(clients[i].profile);

		if (!strstr(agent, clients[i].agent))
			continue;
		/* two versions, which differ in asking for the size first */
		if (strcmp(clients[i].profile, "s3dlio") == 0 && !heads)
			found = profile_named("s3dlio-0.9") ?: found;
		if (found) {
			*how = "inferred: of its User-Agent";
			return found;
		}
		break;
	}
	*how = "inferred: a client that asks for objects in the same way";
	return heads ? profile_named(ranged ? "arrow" : "s3fs") : ranged ? NULL : "minio";
}

static void put(struct buf *out, const char *indent, const char *key, const char *value,
		const char *how)
{
	struct node *map = node_new(NODE_MAP, (struct node_mark){0});
	struct buf line = {0};
	size_t begin = out->len;

	node_set(map, key, node_new_str(value, (struct node_mark){0}));
	yaml_emit(map, &line);
	buf_printf(out, "%s%.*s", indent, (int)(line.len - 1), line.data);
	while (out->len - begin < 40)
		buf_putc(out, ' ');
	buf_printf(out, " # %s\n", how);
	buf_release(&line);
	node_free(map);
}

static const struct store_facts *store_of_objects(void)
{
	for (size_t i = 0; store_facts_table[i]; i++)
		if (store_facts_table[i]->flags & STORE_HAS_OBJECTS)
			return store_facts_table[i];
	return NULL;
}

void workload_put_storage(const struct profile *a, struct buf *out)
{
	const struct job_server *v = NULL;
	const struct store_facts *store = store_of_objects();
	const char *client, *how;
	bool whole;

	if (!profile_is_objects(a) || !store)
		return;
	for (size_t i = 0; i < a->servers.n && !v; i++)
		if (a->servers.v[i].gets > 0 && !a->servers.v[i].others)
			v = &a->servers.v[i];
	if (!v)
		return;
	/* AWS has its buckets in front of the host's name, and an address of its own */
	whole = strstr(v->name, "amazonaws.com") != NULL;
	client = client_profile(a, v->agent, &how);
	buf_puts(out, "\n# Objects are written into this bucket where the workload generates its "
		      "data:\n# give another one with storage.storage_root=BUCKET.\nstorage:\n");
	put(out, "  ", "storage_type", store->name, "seen");
	put(out, "  ", "storage_root", v->bucket ? v->bucket : "bucket",
	    v->bucket ? "seen: the bucket" : "assumed: the log has no name of a bucket");
	buf_printf(out, "  %s:\n", store->name);
	if (!whole) {
		struct node *list = node_new(NODE_LIST, (struct node_mark){0});
		AUTO_FREE char *endpoint = xasprintf("http://%s", v->name);
		struct buf line = {0};

		node_append(list, node_new_str(endpoint, (struct node_mark){0}));
		yaml_emit(list, &line);
		buf_printf(out, "    endpoints:                           # seen\n      %s",
			   line.data);
		buf_release(&line);
		node_free(list);
		put(out, "    ", "addressing", "path", "seen");
	}
	if (client)
		put(out, "    ", "client", client, how);
}
