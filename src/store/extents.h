#pragma once
/* Where a file lies on its device: the extents that a file system reports (FIEMAP of Linux,
 * Documentation/filesystems/fiemap.rst). No privileges are needed. Any thread. */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define EXTENTS_KEPT 32 /* places of a file that are kept; of a file with more, the first */

struct extent_place {
	uint64_t device, at, bytes; /* st_dev, and bytes on it */
};

struct file_extents {
	uint64_t file_bytes;
	uint64_t hole_bytes; /* without blocks, or with blocks that were never written: reads of
			      * them reach no device */
	uint64_t compressed_bytes; /* of the file, in extents that hold fewer bytes */
	uint64_t inline_bytes;     /* of the file, kept in the metadata of the file system */
	bool shared;               /* blocks are also those of other files, or of a snapshot */
	uint32_t places;
	struct extent_place place[EXTENTS_KEPT];
};

/* -EOPNOTSUPP when the file system reports none (network file systems, tmpfs, FUSE). Data that is
 * not written out yet counts as written. */
int extents_look(const char *path, struct file_extents *out, struct err *e);
