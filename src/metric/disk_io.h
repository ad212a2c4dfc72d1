#pragma once
/* What the kernel says a block device moved, for whoever asked: /sys/dev/block/M:N/stat
 * (Documentation/block/stat.rst of Linux). */
#include <stdbool.h>
#include <stdint.h>

/* Bytes that device `device` (st_dev of a file on it) has read and written since it was there.
 * false where there is none: tmpfs, network file systems, some that span devices. */
bool disk_io_sample(uint64_t device, uint64_t *read_bytes, uint64_t *written_bytes);
