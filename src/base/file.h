#pragma once
/* Whole files and paths on the local file system (configuration, results, manifests). Dataset and
 * checkpoint bytes never pass here: those go through store/. */
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* Reads a whole file of at most max_bytes into `out` (appended). Larger or unreadable: error,
 * and `out` is as before. */
int file_read(const char *path, size_t max_bytes, struct buf *out, struct err *e);
/* Writes a temporary file beside `path`, flushes, syncs, closes (all checked) and renames it over
 * `path`: readers see the old or the new content, never a part. */
int file_write_atomic(const char *path, const void *bytes, size_t n, struct err *e);
/* mkdir -p, mode 0755. An existing directory is fine; an existing file is an error. */
int file_mkdirs(const char *path, struct err *e);
bool file_exists(const char *path);
bool file_is_dir(const char *path);
/* Directory part and joined path, heap strings owned by the caller. `name` absolute: a copy of it.
 */
char *path_join(const char *dir, const char *name);
char *path_dirname(const char *path);
const char *path_basename(const char *path);
/* `path`, or the nearest folder above it that exists, and what stat(2) says of it; NULL when not
 * even the root can be asked. Heap string. */
struct stat;
char *path_nearest(const char *path, struct stat *st);
/* The absolute form (current directory + path), no symlink resolution. Heap string. */
char *path_absolute(const char *path);
