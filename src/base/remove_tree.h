#pragma once
/* Folders that the program made and removes. Links are removed, never followed. */
#include "base/err.h"

/* Removes a file, or a folder with all in it. Fine when there is none. */
int remove_tree(const char *path, struct err *e);
/* Removes the folder and those above it that are empty, but not `top` (as path_nearest gave it
 * before the folder was made) and what is above that. `top` NULL: the folder alone. */
void remove_empty_folders(const char *path, const char *top);
