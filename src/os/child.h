#pragma once
/* Child processes by argument vector, never through a shell. Each is the leader of a process group
 * of its own, so that it and what it started can be ended together; it gets SIGTERM when the thread
 * that started it dies. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/thread.h"

struct child {
	pid_t pid;         /* 0: none runs */
	int status;        /* of waitpid, once it ended */
	int64_t ending_ns; /* since when it cannot end; 0: it does not try */
};

/* Starts argv[0] (looked up in PATH) with stdin from /dev/null and stdout and stderr appended to
 * the file `log`, or inherited when it is NULL. Signals are unblocked in it. Fails with a sentence
 * when the program cannot be executed. Call from the main thread. */
int child_start(struct child *c, const char *const *argv, const char *log, struct err *e);
/* true when it has ended within timeout_ns (0: looks only), or for a second as far as it can
 * (base/ending.h); then c->pid is 0 and status is set. */
bool child_wait(struct child *c, int64_t timeout_ns);
/* SIGTERM, and again once `hurry` (may be NULL) is set to STOP_HURRY, up to grace_ns, then SIGKILL;
 * has ended afterwards, as far as it can. */
void child_end(struct child *c, int64_t grace_ns, const struct stop_flag *hurry);
/* Kills what a child that has ended, of process group `group` (its number), left behind there. */
void child_end_rest(pid_t group);
/* 0 for exit status 0; else "ended with status 3" or "was killed by signal 9 (Killed)". */
int child_outcome(const struct child *c, char *out, size_t out_size);

/* ---- what a child of the program said in its log ---- */

/* The sentence with which it ended: the last line "stoker: ..." of `log` without that word, else
 * how it ended (`outcome`, of child_outcome), the last line "who: what" of the log (its first line
 * without one), and where the log is kept
 * (`kept`). `out` may be `outcome`. */
void child_log_reason(const char *log, const char *outcome, const char *kept, char *out,
		      size_t out_size);

/* The processes above this one, up to the launcher that started it. */

struct ancestor {
	pid_t pid;
	uint64_t start; /* since boot, in ticks: with the number, what no other process has */
};

#define ANCESTORS_MAX 16

/* This process's parent, its parent and so on, up to the first one whose environment lacks `mark`
 * ("PMI_RANK=1") or may not be read, which is the launcher. Returns how many there are, the
 * launcher last; 0 when it is not found among ANCESTORS_MAX, or lies outside of this process's PID
 * namespace. */
size_t ancestors_to_launcher(const char *mark, struct ancestor out[ANCESTORS_MAX]);

/* Before an end that a thread may hold up which the kernel cannot end: it would keep pipes, sockets
 * and terminals open, and whoever reads them waiting. They are closed. */
void process_drop_outputs(void);
