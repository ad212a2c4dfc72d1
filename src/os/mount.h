#pragma once
/* Mounts of this process's namespace: proc_pid_mountinfo(5). */
#include <stdbool.h>
#include <stdint.h>

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
