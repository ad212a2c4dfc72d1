#pragma once
/* What of Linux is younger than the headers of the oldest system that the program is built on
 * (Linux 5.10, glibc 2.31): numbers of include/uapi/linux, the same on every architecture. Kernels
 * that lack a call answer ENOSYS or EINVAL. */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif
#ifndef STATX_MNT_ID
#define STATX_MNT_ID 0x1000u
#endif
#ifndef STATX_DIOALIGN
#define STATX_DIOALIGN 0x2000u
#endif
#ifndef IORING_SETUP_COOP_TASKRUN
#define IORING_SETUP_COOP_TASKRUN (1u << 8)
#endif
#ifndef IORING_ENTER_SQ_WAIT
#define IORING_ENTER_SQ_WAIT (1u << 2)
#endif

/* Fields of struct statx, valid where its mask has STATX_MNT_ID or STATX_DIOALIGN. */
static inline uint64_t statx_mount_id(const struct statx *sx)
{
	uint64_t id;

	memcpy(&id, (const char *)sx + 0x90, sizeof(id));
	return id;
}

static inline uint32_t statx_direct_memory_align(const struct statx *sx)
{
	uint32_t bytes;

	memcpy(&bytes, (const char *)sx + 0x98, sizeof(bytes));
	return bytes;
}

static inline uint32_t statx_direct_offset_align(const struct statx *sx)
{
	uint32_t bytes;

	memcpy(&bytes, (const char *)sx + 0x9c, sizeof(bytes));
	return bytes;
}
