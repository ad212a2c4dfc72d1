#pragma once
/* Mounts of this process's namespace: proc_pid_mountinfo(5). */
#include <stdbool.h>
#include <stdint.h>

/* As mountinfo writes them: a space in a path is \040. Owned; mount_release frees. */
struct mount {
	char *text; /* what the others point into */
	const char *place, *options, *type, *source, *super;
};

/* The first mount of the file system whose files have `st_dev`. `root` stands before /proc ("" for
 * the machine's own; a folder in tests). False, with *out all zero, when none is known. */
bool mount_find(const char *root, uint64_t st_dev, struct mount *out);
void mount_release(struct mount *m);
