#pragma once
/* Some of one thread's reads with their times, in bounded memory, so that the reads that were under
 * way together are known after a run: threads need to share nothing for it.
 *
 * What is kept are all reads that touch windows of time, [k * apart, k * apart + wide) of the
 * machine's monotonic clock. A full log widens the gaps; lengths are powers of two, so that what
 * two threads both kept is again all reads in such windows. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define READ_LOG_KEPT 512

/* What the place of a read in its file can be, beside the number of reads before it since the file
 * was opened; and what opens have in its stead. */
#define READ_PLACE_UNKNOWN UINT32_MAX
enum { SEEN_OPEN, SEEN_STAT };

/* Which file a request is of, as far as 32 bits can tell: the upper ones are of its folder. 0: not
 * known. */
#define READ_NAME_FOLDER_BITS 12
uint32_t read_name(const char *path);
static inline uint32_t read_name_folder(uint32_t name)
{
	return name >> (32 - READ_NAME_FOLDER_BITS);
}

struct read_seen {
	int64_t begin_ns, end_ns;
	uint64_t bytes;
	uint32_t place;
	uint32_t name;
};

struct read_log {
	uint64_t apart, wide; /* ns; 0: every moment is in a window */
	uint32_t n;
	struct read_seen seen[READ_LOG_KEPT];
};

/* The window that a time lies in, from 0; -1: none. */
int64_t read_log_window(uint64_t apart, uint64_t wide, int64_t ns);
bool read_log_touches(uint64_t apart, uint64_t wide, const struct read_seen *seen);
/* What a read of a log stands for beside others: the longer one takes, the more windows it touches.
 */
static inline double read_log_weight(uint64_t apart, uint64_t wide, const struct read_seen *seen)
{
	return apart ? 1 / ((double)wide + (double)(seen->end_ns - seen->begin_ns)) : 1;
}
/* Keeps a read, if it touches a window. One writer. Seldom longer than a few ns. */
void read_log_add(struct read_log *l, int64_t begin_ns, int64_t end_ns, uint64_t bytes,
		  uint32_t place, uint32_t name);
/* Reads of both threads, in windows that both kept. */
void read_log_merge(struct read_log *into, const struct read_log *from);
/* The logs of many threads in one array of *n reads by their beginning, with their windows. NULL
 * when there are none. Released with free(). */
struct read_seen *read_log_join(const struct read_log *const *logs, size_t count, size_t *n,
				uint64_t *apart, uint64_t *wide);
