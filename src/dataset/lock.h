#pragma once
/* One generator a folder at a time. */
#include "base/folder_lock.h"
#include "store/store.h"

struct folder_lock {
	struct file_lock file;
	bool made; /* the folder is new: removed again if nothing is put there */
};

/* Takes the lock of the folder, which is created. -EBUSY when another process holds it; the
 * sentence names that one. On a store without files, or where the file system has no locks or
 * cannot be written, nothing is held and 0 is returned: what cannot be written fails by itself. The
 * lock ends with the process at the latest; its file is removed with it, and one that was left does
 * not matter. */
int folder_lock(struct folder_lock *l, struct store *s, const char *folder, struct err *e);
/* Fine when it is not held. */
void folder_unlock(struct folder_lock *l);
