/* A lock file in the dataset's folder. */
#include "dataset/lock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NAME ".stoker_generate.lock"

int folder_lock(struct folder_lock *l, struct store *s, const char *folder, struct err *e)
{
	char path[sizeof(l->file.path)], who[FILE_LOCK_WHO_MAX];
	struct store_stat st;

	l->file.fd = -1;
	l->made = store_stat_path(s, folder, &st, NULL) == -ENOENT;
	if (!(store_base_flags(s) & STORE_HAS_FILES) ||
	    (size_t)snprintf(path, sizeof(path), "%s/" NAME, folder) >= sizeof(path) ||
	    store_mkdirs(s, folder, NULL) < 0 || file_lock(&l->file, path, who) == 0)
		return 0;
	return err_set(e, -EBUSY,
		       "another program is generating a dataset in '%s'%s%s: wait for it to "
		       "finish, stop it, or choose another dataset.data_folder",
		       folder, who[0] ? ": " : "", who);
}

void folder_unlock(struct folder_lock *l)
{
	if (l->file.fd < 0)
		return;
	file_unlock(&l->file);
	if (l->made) {
		*strrchr(l->file.path, '/') = '\0';
		rmdir(l->file.path);
	}
}
