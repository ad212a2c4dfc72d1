#pragma once
/* Folders that the program made and removes. Links are removed, never followed. */
#include "base/err.h"

/* Removes a file, or a folder with all in it. Fine when there is none. */
int remove_tree(const char *path, struct err *e);
