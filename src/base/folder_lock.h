#pragma once
/* A lock file: one program at a time in a folder, whichever users they belong to. */
#include <stdbool.h>

#include "base/err.h"

#define FILE_LOCK_WHO_MAX 400
/* In the folder of results, while a run writes them. */
#define RUN_LOCK_NAME ".stoker_run.lock"

struct file_lock {
	int fd;   /* -1: not held */
	int left; /* the file (base/left.h), while it is held */
	char path[4096];
};

/* Makes the file and locks it. -EBUSY when another process holds it; `who` then tells which one, as
 * far as can be told ("process N on host 'H' since TIME: COMMAND"), or is "", and `e` is not set.
 * One of this machine that is ending is waited for, ten seconds at most. The lock of one of this
 * machine that is no more, which a server of files still keeps, is taken over. Another negative
 * code, with a sentence, where that cannot be known: what has the name is a link, a FIFO, ..., or
 * cannot be opened. Nothing that somebody else has put there is followed, emptied or written to.
 *
 * Where the file cannot be made, or the file system has no locks, or the path is too long, nothing
 * is held and 0 is returned: what cannot be written fails by itself. The lock ends with the process
 * at the latest; a file that a dead one left does not matter. The file can be read by all, whatever
 * the umask: a lock that others cannot open could not be told from none. */
int file_lock(struct file_lock *l, const char *path, char who[FILE_LOCK_WHO_MAX], struct err *e);
/* Whether another process, or this one, holds it and is not ending; `who` as above. False when
 * there is no such file or it cannot be opened. Makes nothing and holds nothing, but a lock that is
 * taken in this moment by somebody else may fail. */
bool file_lock_held(const char *path, char who[FILE_LOCK_WHO_MAX]);
/* Removes the file and ends the lock. Fine when it is not held. */
void file_unlock(struct file_lock *l);
