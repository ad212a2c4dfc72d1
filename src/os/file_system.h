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
