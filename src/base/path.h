#pragma once
/* Paths as texts. Any thread. */
#include <sys/stat.h>

#include "base/err.h"

/* Directory part and joined path, heap strings owned by the caller. `name` absolute: a copy of it.
 */
char *path_join(const char *dir, const char *name);
char *path_dirname(const char *path);
const char *path_basename(const char *path);
/* `path`, or the nearest folder above it that exists, with its stat(2); NULL when even the root
 * cannot be read. Heap string. */
char *path_nearest(const char *path, struct stat *st);
/* The absolute form (current directory + path), no symlink resolution. Heap string. */
char *path_absolute(const char *path);
/* Of this program. Heap string; NULL and `e` where it cannot be found. */
char *path_of_program(struct err *e);
