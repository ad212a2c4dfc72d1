#pragma once
/* What of a file the page cache holds, and its eviction; no privileges are needed. Any thread. */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "store/store.h"

struct page_cached {
	uint64_t file_bytes;
	uint64_t cached_bytes; /* whole pages, at most file_bytes */
	uint64_t dirty_bytes;  /* of them, not yet written or being written; 0 with mincore */
	/* Whole pages that were in it until the kernel took them back for want of memory, or as
	 * idle, and that nobody has read since; 0 with mincore. Eviction on request leaves none. */
	uint64_t reclaimed_bytes;
	bool mincore; /* asked with mincore(2), not with cachestat(2) */
};

/* Looks without touching a page: with cachestat(2), or where the kernel (before 6.5) or the file
 * system has none, or the pages belong to a file below (overlay), with mincore(2) on a mapping.
 * Neither tells on files that the caller does not own and may not write; that is -EPERM with a
 * sentence. */
int page_cache_look(const char *path, struct page_cached *out, struct err *e);
/* Writes dirty pages out (fdatasync) and has the kernel drop all pages (POSIX_FADV_DONTNEED), again
 * if some are left. Pages that are mapped or locked by anyone stay: *out, which may be NULL, is a
 * look afterwards, of zeros where none is possible. */
int page_cache_evict(const char *path, struct page_cached *out, struct err *e);

/* Where a file lies on its device: the extents that a file system reports (FIEMAP of Linux,
 * Documentation/filesystems/fiemap.rst). No privileges are needed. Any thread. */

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

/* A store that reads files beside a run and leaves the page cache as it was: with O_DIRECT, and
 * where the file system refuses that or reads through the cache all the same, by dropping again
 * what a read brought in. Dirty pages of a file are written out. What a server or a device below
 * keeps of what was read cannot be undone. Read only; any thread. */

struct aside_store {
	struct store base;
};
/* It needs no release. */
void aside_init(struct aside_store *s);
