#pragma once
/* Control groups of versions 1 and 2: the files of those that bind a process. */
#include <stdbool.h>
#include <stdint.h>

/* Gets the folder of a group; `second`: of version 2. */
typedef void cgroup_fn(void *arg, const char *folder, bool second);

/* Calls `each` for the groups that `list` (as /proc/self/cgroup) names for a controller, "cpu" or
 * "memory", and for those above them, which bind as well, up to where they are mounted below
 * `root`. Folders may be missing: in a container the names may be the host's, and the mount itself
 * the group. One may come more than once. */
void cgroup_walk(const char *list, const char *root, const char *controller, cgroup_fn *each,
		 void *arg);
/* The number that a group's file begins with; false where there is none ("max"). */
bool cgroup_number(const char *folder, const char *name, uint64_t *out);
/* The number beside a name in a file of such lines, as memory.stat; false where it is not there. */
bool cgroup_named_number(const char *path, const char *name, uint64_t *out);
