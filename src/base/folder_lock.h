#pragma once
/* A lock file: one program at a time in a folder. */
#include <stdbool.h>

#define FILE_LOCK_WHO_MAX 320
/* In the folder of results, while a run writes them. */
#define RUN_LOCK_NAME ".stoker_run.lock"

struct file_lock {
	int fd; /* -1: not held */
	char path[1100];
};

/* Makes the file and locks it. -EBUSY when another process holds it; `who` is then what that one
 * wrote of itself ("process N on host 'H'"), or "". Where the file cannot be made or the file
 * system has no locks, or the path is too long, nothing is held and 0 is returned: what cannot be
 * written fails by itself. The lock ends with the process at the latest; a file that a dead one
 * left does not matter. */
int file_lock(struct file_lock *l, const char *path, char who[FILE_LOCK_WHO_MAX]);
/* Whether another process, or this one, holds it; `who` as above. False when there is no such file
 * or it cannot be opened. Makes nothing and holds nothing, but a lock that is taken in this moment
 * by somebody else may fail. */
bool file_lock_held(const char *path, char who[FILE_LOCK_WHO_MAX]);
/* Removes the file and ends the lock. Fine when it is not held. */
void file_unlock(struct file_lock *l);
