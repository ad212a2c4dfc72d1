#pragma once
/* What kind of file system a file lies on (statfs(2)). */
#include <stdbool.h>
#include <stddef.h>

struct file_system {
	long magic;
	bool memory;   /* tmpfs, ramfs, hugetlbfs: the page cache is all there is */
	char name[24]; /* "ext4"; "type 0x1234" when it is not a known one */
};

/* False, with errno set, when the system does not say. */
bool file_system_of_fd(int fd, struct file_system *out);
/* Of `path`, or of the nearest folder above it that exists. */
bool file_system_of_path(const char *path, struct file_system *out);
