#pragma once
/* How processes meet at a place that all of them know and one can take, process 0 (comm/meet.h): it
 * listens there until all have come, and tells them the same. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "comm/meet.h"

/* A place. All but `token` are there for good. */
struct meeting_point {
	const char *where;    /* "on this host", for sentences */
	const char *else_why; /* why nobody may come there, behind "It may have ended before, or" */
	bool strangers; /* others than this user's processes can come: those of the job say the
			   token */
	char token[MEET_TOKEN];
	/* A socket that listens and does not block, or a negative errno; -EADDRINUSE: another has
	 * the place. */
	int (*listen)(void);
	/* A socket to who listens there, or a negative errno; tries once, and no longer than until.
	 */
	int (*connect)(int64_t until_ns);
	/* Whether the other side may be one of the job's processes; its PID where that is known. */
	bool (*trusts)(int fd, pid_t *pid);
	/* Who has the place, for sentences; valid until the next call. */
	const char *(*owner)(void);
};

/* What a way does at a place; `at` stays the caller's. One meeting a process. */
void meeting_begin(const struct meet_job *job, const struct meeting_point *at,
		   struct meet_place *place);
int meeting_broadcast(void *p, size_t n, struct err *e);
void meeting_end(void);
void meeting_give_up(void);
