#include "metric/fs_client.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "metric/counter.h"
#include "os/file_system.h"

/* File systems that are on no disk of this machine, or do not say what they read. Of FUSE without a
 * row of its own ("fuse", "fuse.NAME") the server may be anywhere. */
static const struct {
	const char *type;
	enum fs_client_kind kind;
	bool network, uncounted;
} known[] = {
	{"nfs", FS_CLIENT_NFS, true, false},
	{"nfs4", FS_CLIENT_NFS, true, false},
	{"lustre", FS_CLIENT_LUSTRE, true, false},
	{"cifs", FS_CLIENT_NONE, true, false},
	{"smb3", FS_CLIENT_NONE, true, false},
	{"ceph", FS_CLIENT_NONE, true, true},
	{"beegfs", FS_CLIENT_NONE, true, true},
	{"gpfs", FS_CLIENT_NONE, true, true},
	{"afs", FS_CLIENT_NONE, true, true},
	{"pvfs2", FS_CLIENT_NONE, true, true},
	{"wekafs", FS_CLIENT_NONE, true, true},
	{"glusterfs", FS_CLIENT_NONE, true, true},
	/* of the host of a virtual machine, mostly */
	{"9p", FS_CLIENT_NONE, false, true},
	{"virtiofs", FS_CLIENT_NONE, false, true},
	{"vboxsf", FS_CLIENT_NONE, false, true},
	{"fuseblk", FS_CLIENT_NONE, false, true},
	{"fuse.sshfs", FS_CLIENT_NONE, true, true},
	{"fuse.glusterfs", FS_CLIENT_NONE, true, true},
	{"fuse.ceph", FS_CLIENT_NONE, true, true},
	{"fuse.ceph-fuse", FS_CLIENT_NONE, true, true},
	{"fuse.s3fs", FS_CLIENT_NONE, true, true},
	{"fuse.mountpoint-s3", FS_CLIENT_NONE, true, true},
	{"fuse.goofys", FS_CLIENT_NONE, true, true},
	{"fuse.gcsfuse", FS_CLIENT_NONE, true, true},
	{"fuse.juicefs", FS_CLIENT_NONE, true, true},
	{"fuse.rclone", FS_CLIENT_NONE, true, true},
	{"fuse", FS_CLIENT_NONE, false, true},
};

static void find_kind(struct fs_client *c)
{
	/* the last row is for all of FUSE that has none */
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcmp(c->type, known[i].type) != 0 &&
		    (strcmp(known[i].type, "fuse") != 0 || strncmp(c->type, "fuse.", 5) != 0))
			continue;
		c->kind = known[i].kind;
		c->network = known[i].network;
		c->uncounted = known[i].uncounted;
		c->local_server = !c->network && strcmp(known[i].type, "fuse") == 0;
		return;
	}
}

void fs_client_of(struct fs_client *c, const char *root, const char *path)
{
	struct mount m;

	*c = (struct fs_client){0};
	if (!mount_of_path(root, path, &m))
		return;
	snprintf(c->type, sizeof(c->type), "%.39s", m.type);
	find_kind(c);
	if (c->kind == FS_CLIENT_LUSTRE) {
		const char *slash = strchr(m.source, '/');
		const char *name = slash ? slash + 1 : m.source;

		/* "mgs@tcp:/scratch/folder" mounts a folder of scratch */
		snprintf(c->name, sizeof(c->name), "%.*s", (int)strcspn(name, "/"), name);
	}
	if (c->kind != FS_CLIENT_NONE)
		snprintf(c->place, sizeof(c->place), "%s", m.place);
	mount_release(&m);
}

/* "device SERVER:/PATH mounted on PLACE with fstype nfs4 statvers=1.1" begins what belongs to a
 * mount. Its line "bytes:" has bytes read by read(2) and with O_DIRECT, and from the server, each
 * before the same of writes: normal r, normal w, direct r, direct w, server r, server w, pages. */
static void sample_nfs(const struct fs_client *c, const char *root, struct fs_client_io *out)
{
	AUTO_FREE char *path = xasprintf("%s/proc/self/mountstats", root);
	AUTO_FREE char *place = xasprintf(" mounted on %s with fstype nfs", c->place);
	FILE *f = WITH_MEMORY(fopen(path, "re"));
	bool here = false;
	char line[4096];
	uint64_t v[6];

	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "device ", 7) == 0)
			here = strstr(line, place) != NULL;
		else if (here && sscanf(line,
					" bytes: %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
					" %" SCNu64 " %" SCNu64,
					&v[0], &v[1], &v[2], &v[3], &v[4], &v[5]) == 6) {
			*out = (struct fs_client_io){.known = true,
						     .fetched_known = true,
						     .returned_bytes = v[0] + v[2],
						     .fetched_bytes = v[4],
						     .sent_bytes = v[5]};
			break;
		}
	}
	if (f)
		fclose(f);
}

/* The sum of a line of a Lustre stats file: "read_bytes 1021 samples [bytes] 4096 1048576
 * 1070596096". False when the file is not there; a line that is not there has counted nothing. */
static bool lustre_sums(const char *folder, uint64_t *read, uint64_t *written)
{
	AUTO_FREE char *path = xasprintf("%s/stats", folder);
	FILE *f = WITH_MEMORY(fopen(path, "re"));
	char line[512], name[64];
	uint64_t sum;

	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63s %*u samples [%*[^]]] %*u %*u %" SCNu64, name, &sum) != 2)
			continue;
		if (strcmp(name, "read_bytes") == 0)
			*read += sum;
		else if (strcmp(name, "write_bytes") == 0)
			*written += sum;
	}
	fclose(f);
	return true;
}

/* Sums over the devices of one kind that belong to the file system; they are called NAME-... */
static bool lustre_devices(const struct fs_client *c, const char *folder, uint64_t *read,
			   uint64_t *written)
{
	DIR *d = WITH_MEMORY(opendir(folder));
	struct dirent *entry;
	size_t n = strlen(c->name);
	bool any = false;

	while (d && (entry = readdir(d))) {
		AUTO_FREE char *path = xasprintf("%s/%s", folder, entry->d_name);

		if (strncmp(entry->d_name, c->name, n) == 0 && entry->d_name[n] == '-')
			any = lustre_sums(path, read, written) || any;
	}
	if (d)
		closedir(d);
	return any;
}

/* Versions differ in where the counters lie. */
static bool lustre_kind(const struct fs_client *c, const char *root, const char *kind,
			uint64_t *read, uint64_t *written)
{
	static const char *const places[] = {"/proc/fs/lustre", "/sys/kernel/debug/lustre",
					     "/sys/fs/lustre"};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		AUTO_FREE char *folder = xasprintf("%s%s/%s", root, places[i], kind);

		*read = *written = 0;
		if (lustre_devices(c, folder, read, written))
			return true;
	}
	return false;
}

static void sample_lustre(const struct fs_client *c, const char *root, struct fs_client_io *out)
{
	uint64_t read, written;

	out->known = lustre_kind(c, root, "llite", &read, &written);
	out->returned_bytes = read;
	out->fetched_known = lustre_kind(c, root, "osc", &read, &written);
	out->fetched_bytes = read;
	out->sent_bytes = written;
}

void fs_client_sample(const struct fs_client *c, const char *root, struct fs_client_io *out)
{
	*out = (struct fs_client_io){0};
	if (c->kind == FS_CLIENT_NFS)
		sample_nfs(c, root, out);
	else if (c->kind == FS_CLIENT_LUSTRE)
		sample_lustre(c, root, out);
}

void fs_client_sub(struct fs_client_io *a, const struct fs_client_io *b)
{
	a->known = a->known && b->known;
	a->fetched_known = a->fetched_known && b->fetched_known;
	counter_sub(&a->returned_bytes, b->returned_bytes, &a->known);
	counter_sub(&a->fetched_bytes, b->fetched_bytes, &a->fetched_known);
	counter_sub(&a->sent_bytes, b->sent_bytes, &a->fetched_known);
}

void fs_client_add(struct fs_client_io *to, const struct fs_client_io *from)
{
	to->known = to->known && from->known;
	to->fetched_known = to->fetched_known && from->fetched_known;
	to->returned_bytes += from->returned_bytes;
	to->fetched_bytes += from->fetched_bytes;
	to->sent_bytes += from->sent_bytes;
}
