#pragma once
/* Other processes, as /proc tells of them. */
#include <stdbool.h>
#include <sys/types.h>

/* Whether a process is on its way out: it gives back what it has, or a thread of it is in a request
 * to storage that does not return, so that waitpid(2) does not tell of its end. `*status` is then
 * what it would tell. False of one that is not there. */
bool process_ends(pid_t pid, int *status);
