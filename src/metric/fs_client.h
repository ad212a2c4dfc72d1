#pragma once
/* What kind of client serves a file system, by its type, and what it counts: NFS in
 * /proc/self/mountstats (nfs-utils' mountstats(8)), Lustre in the `stats` of its llite and osc
 * devices (the Lustre Operations Manual, "Monitoring Client Activity"). */
#include <stdbool.h>
#include <stdint.h>

enum fs_client_kind { FS_CLIENT_NONE, FS_CLIENT_NFS, FS_CLIENT_LUSTRE };

struct fs_client {
	enum fs_client_kind kind; /* whose counters are known */
	/* Its bytes come over the network. What a FUSE file system does is its server's affair, and
	 * known of some by their name. */
	bool network;
	/* It does not charge its reads to the process (read_bytes of /proc/PID/io): FUSE, Ceph. */
	bool uncounted;
	/* FUSE that is not known to be on the network: a program of this machine serves it, from
	 * wherever it likes. */
	bool local_server;
	char type[40];   /* as mounted: "nfs4", "lustre", "fuse.sshfs", "ext4"; "": not known */
	char place[512]; /* NFS: where it is mounted, as mountinfo writes it */
	char name[64];   /* Lustre: the file system's name, "scratch" of "mgs@tcp:/scratch" */
};

struct fs_client_io {
	bool known, fetched_known;
	uint64_t returned_bytes; /* to read calls of all programs, from its cache or from servers */
	uint64_t fetched_bytes;  /* by its requests to servers */
	uint64_t sent_bytes;     /* written to them */
};

/* The client that serves `path` (or its nearest parent that exists); FS_CLIENT_NONE where none is
 * known to count. `root` stands before /proc and /sys. */
void fs_client_of(struct fs_client *c, const char *root, const char *path);
/* Counters since it was mounted, of all its users on this machine. Lustre's are root's to read
 * where they lie in debugfs; then known is false. */
void fs_client_sample(const struct fs_client *c, const char *root, struct fs_client_io *out);
/* a - b, of an earlier moment. Not known when one went back: it was mounted again. */
void fs_client_sub(struct fs_client_io *a, const struct fs_client_io *b);
void fs_client_add(struct fs_client_io *to, const struct fs_client_io *from);
