#pragma once
/* What of a file the page cache holds, and its eviction; no privileges are needed. Any thread. */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

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
/* The same of an open file; 0, or an errno. */
int page_cache_look_fd(int fd, struct page_cached *out);
/* Writes dirty pages out (fdatasync) and has the kernel drop all pages (POSIX_FADV_DONTNEED), again
 * if some are left. Pages that are mapped or locked by anyone stay: *out, which may be NULL, is a
 * look afterwards, of zeros where none is possible. */
int page_cache_evict(const char *path, struct page_cached *out, struct err *e);
