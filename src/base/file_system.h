#pragma once
/* What kind of file system a file lies on (statfs(2)). */
#include <stdbool.h>
#include <stddef.h>

struct file_system {
	long magic;
	bool memory; /* tmpfs, ramfs, hugetlbfs, or an overlay whose files lie on one of these: the
		      * page cache is all there is */
	/* Its files' pages may belong to files of another file system (overlay; FUSE that passes
	 * through): what cachestat(2) says of them is not all. */
	bool stacked;
	char name[56]; /* "ext4"; "overlay over ext4"; "type 0x1234" when it is not a known one */
};

/* False, with errno set, when the system does not say. Of an overlay what lies below is not looked
 * for. */
bool file_system_of_fd(int fd, struct file_system *out);
/* Of `path`, or of the nearest folder above it that exists. */
bool file_system_of_path(const char *path, struct file_system *out);
