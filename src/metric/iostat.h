#pragma once
/* What `iostat -mdxtcy -o JSON DEVICE... 1` of sysstat 12 writes, from the kernel's own counters,
 * without that program: a file for who reads its output. Names and formulas of the fields:
 * iostat(1). */
#include <stddef.h>

#include "base/err.h"

struct iostat; /* opaque */

/* Starts a thread that adds what the machine did to `path` once a second. The file is there when
 * iostat_stop has ended it. `devices` (`n` of them; copied): names of disks or partitions, with or
 * without "/dev/"; without any, all whole disks that ever had a request, as iostat takes them. */
int iostat_start(struct iostat **out, const char *path, const char *const *devices, size_t n,
		 struct err *e);
/* Adds what has passed of the last second, if it is half of one, and ends thread and file. Releases
 * all. Accepts NULL. An error says that the file could not be written. */
int iostat_stop(struct iostat *s, struct err *e);
