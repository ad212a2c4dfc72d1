#pragma once
/* What kind of file system a file lies on (statfs(2)). */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Mounts of this process's namespace: proc_pid_mountinfo(5). */

/* As mountinfo writes them: a space in a path is \040. Owned; mount_release frees. */
struct mount {
	char *text;       /* what the others point into */
	const char *root; /* the folder of the file system that is mounted, "/" for all of it */
	const char *place, *options, *type, *source, *super;
};

/* The mount through which `path` (or its nearest parent that exists) is reached. File systems whose
 * files have other device numbers than their mount (btrfs) are found as well, where the kernel
 * gives the number of a file's mount (statx(2), since 5.8). */
bool mount_of_path(const char *root, const char *path, struct mount *out);
void mount_release(struct mount *m);

/* Where a file or folder of an overlay lies: its path in the layer that holds it (of a folder the
 * first one with a file in it). NULL: `path` is on no overlay, or its layers cannot be reached from
 * here, as inside a container. Heap string. */
char *mount_layer_path(const char *root, const char *path);

struct file_system {
	long magic;
	bool memory; /* tmpfs, ramfs, hugetlbfs, or an overlay whose files lie on one of these: the
		      * page cache is all there is */
	/* Its files' pages may belong to files of another file system (overlay; FUSE that passes
	 * through): what cachestat(2) says of them is not all. */
	bool stacked;
	/* Files without a name can be made in it and then linked, and syncfs(2) does for all files
	 * what fsync(2) does for one: their bytes and sizes outlast a loss of power, and errors of
	 * writing back are reported (since Linux 5.8). */
	bool batches;
	char name[56]; /* "ext4"; "overlay over ext4"; "type 0x1234" when it is not a known one */
};

/* False, with errno set, when the system does not say. Of an overlay what lies below is not looked
 * for. */
bool file_system_of_fd(int fd, struct file_system *out);
/* Of `path`, or of the nearest folder above it that exists. */
bool file_system_of_path(const char *path, struct file_system *out);
/* Bytes and files that can still be written under `path`, which exists. UINT64_MAX: there is no
 * limit, or the file system does not say: it has no statfs(2), or counts no blocks at all. False,
 * with errno set, when the system refuses. */
bool file_system_room(const char *path, uint64_t *bytes, uint64_t *files);
