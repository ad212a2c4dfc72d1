#pragma once
/* A folder of the tests on a disk, whatever lies below /tmp. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "os/file_system.h"

/* Makes a new folder on a file system that is not memory; false when there is none. */
static inline bool disk_folder(char *out, size_t out_size, const char *name)
{
	static const char *const roots[] = {"/tmp", "/var/tmp", "."};
	struct file_system fs;

	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
		if (!file_system_of_path(roots[i], &fs) || fs.memory)
			continue;
		snprintf(out, out_size, "%s/stoker-%s-XXXXXX", roots[i], name);
		return mkdtemp(out) != NULL;
	}
	return false;
}
