#pragma once
/* Which file, and where in it, a descriptor of a process means: tables of descriptors as the kernel
 * has them. A table belongs to a process, or to several that share it (CLONE_FILES). Its entries
 * lead to open file descriptions, which hold the position and are shared by dup, fork and passing
 * over a socket (open(2), "Open file descriptions").
 *
 * A reader of logs says what the calls were, in their order, and asks for files and offsets. What a
 * log does not show is unknown (JOB_UNKNOWN), never guessed: a position is unknown until a seek if
 * the open was not seen.
 *
 * A table is an array, which a fork copies. Bounds: DESCRIPTORS_OPEN descriptors of a table, and
 * DESCRIPTORS_ENTRIES in all (72 MiB with what they lead to); a table that would exceed them is
 * emptied and unknown from then on, which is counted (descriptors_lost). Beside this 8 bytes for
 * each file of the job and 24 for each table. One thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DESCRIPTORS_OPEN (UINT32_C(1) << 16)
#define DESCRIPTORS_ENTRIES (UINT32_C(1) << 21)
#define DESCRIPTOR_MAX INT32_MAX /* larger ones, and negative ones, are never open */

enum descriptor_flags {
	DESCRIPTOR_CLOEXEC = 1 << 0, /* of the descriptor: closed by exec */
	DESCRIPTOR_APPEND = 1 << 1,  /* of the description: writes go to the end of the file */
	DESCRIPTOR_STREAM = 1 << 2,  /* a pipe, socket or eventfd: there is no position */
};

struct descriptors;

struct descriptors *descriptors_new(void);
void descriptors_free(struct descriptors *d); /* accepts NULL */

/* ---- tables: a number each, valid until it is dropped as often as it was made or shared ---- */

uint32_t descriptors_table(struct descriptors *d); /* an empty one */
/* fork, vfork: the child's table, in which every description is shared with the parent's. */
uint32_t descriptors_fork(struct descriptors *d, uint32_t table);
/* clone with CLONE_FILES: the same table. Returns it. */
uint32_t descriptors_share(struct descriptors *d, uint32_t table);
/* exec: ends sharing and closes what is close-on-exec. Returns the caller's table from now on. */
uint32_t descriptors_exec(struct descriptors *d, uint32_t table);
/* unshare(CLONE_FILES), close_range with UNSHARE: as exec without closing. */
uint32_t descriptors_unshare(struct descriptors *d, uint32_t table);
/* exit of one that has the table. */
void descriptors_drop(struct descriptors *d, uint32_t table);

/* ---- descriptors ---- */

/* A new description of `file` (an index of the job) at `position`, which is 0 after an open, and
 * JOB_UNKNOWN where the open was not seen. What the number meant before is closed. */
void descriptors_open(struct descriptors *d, uint32_t table, int64_t fd, uint32_t file,
		      int64_t position, unsigned flags);
/* dup, fcntl(F_DUPFD), and SCM_RIGHTS with two tables: `to` of `to_table` leads to the description
 * of `fd`. Where that is unknown, `to` becomes unknown. Flags: DESCRIPTOR_CLOEXEC or 0. */
void descriptors_dup(struct descriptors *d, uint32_t table, int64_t fd, uint32_t to_table,
		     int64_t to, unsigned flags);
void descriptors_close(struct descriptors *d, uint32_t table, int64_t fd);
void descriptors_close_range(struct descriptors *d, uint32_t table, int64_t first, int64_t last);
void descriptors_set_cloexec(struct descriptors *d, uint32_t table, int64_t fd, bool on);
void descriptors_set_append(struct descriptors *d, uint32_t table, int64_t fd, bool on);

/* The file of a descriptor, JOB_NONE where it is unknown. */
uint32_t descriptors_file(const struct descriptors *d, uint32_t table, int64_t fd);
/* As descriptors_open at an unknown position, unless the descriptor leads to `file` already, or to
 * what was renamed to it: for logs that name the file beside each descriptor. Returns the file of
 * the descriptor. */
uint32_t descriptors_expect(struct descriptors *d, uint32_t table, int64_t fd, uint32_t file,
			    unsigned flags);

/* ---- requests ---- */

/* A read or write of `n` bytes at the position, which moves behind them. Returns where they lie,
 * JOB_UNKNOWN. n of JOB_UNKNOWN makes the position unknown; negative ones (errors) move nothing. */
int64_t descriptors_transfer(struct descriptors *d, uint32_t table, int64_t fd, int64_t n,
			     bool write);
/* The same at an offset of the call (pread, pwrite), which leaves the position. Returns where they
 * lie: a write to a descriptor that appends is at the end (pwrite(2), BUGS). */
int64_t descriptors_transfer_at(struct descriptors *d, uint32_t table, int64_t fd, int64_t offset,
				int64_t n, bool write);
/* The position, after a seek whose result the log has; JOB_UNKNOWN where it has not. */
void descriptors_seek(struct descriptors *d, uint32_t table, int64_t fd, int64_t position);
int64_t descriptors_position(const struct descriptors *d, uint32_t table, int64_t fd);

/* ---- files ---- */

/* The size of a file, which the log shows (stat, truncate, an open that created or truncated it):
 * where appended bytes go. */
void descriptors_size(struct descriptors *d, uint32_t file, int64_t size);
int64_t descriptors_size_of(const struct descriptors *d, uint32_t file); /* JOB_UNKNOWN */
/* `from` has the name of `to` from now on; descriptors of `from` still lead to `from`. */
void descriptors_rename(struct descriptors *d, uint32_t from, uint32_t to);

/* Descriptors that were not kept because of the bounds. */
uint64_t descriptors_lost(const struct descriptors *d);
