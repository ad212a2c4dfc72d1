#pragma once
/* Whole files and paths on the local file system (configuration, results, manifests). Dataset and
 * checkpoint bytes never pass here: those go through store/. */
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file_in.h"

/* An output that somebody named. Links are followed, also one whose target is not there yet. A
 * regular file (or a new one) is replaced at the end by a temporary file beside it, which gets its
 * mode and, where that is allowed, its owner: readers see the old or the new content, never a part.
 * What is none - a FIFO, a device, /dev/stdout, /proc/self/fd/N whatever that is - is written to as
 * it is; a FIFO is waited for until somebody reads it. A folder is an error. */
struct file_out {
	int fd;
	char *path;         /* as named */
	char *target, *tmp; /* NULL: written through */
};
int file_out_open(struct file_out *f, const char *path, struct err *e);
/* 0, or -errno, which the caller hands to file_out_close. */
int file_out_write(const struct file_out *f, const void *bytes, size_t n);
/* Syncs, closes and renames. After a failure, of these or an earlier one (`failed`, -errno), the
 * temporary file is removed and the file is as it was. */
int file_out_close(struct file_out *f, int failed, struct err *e);
/* The three at once. */
int file_write(const char *path, const void *bytes, size_t n, struct err *e);
/* N when the path is a name of this process's descriptor N (/dev/stdout, /dev/fd/N), else -1. */
int file_descriptor_named(const char *path);
/* mkdir -p, mode 0755, behind links too. An existing folder is fine; an existing file is an error.
 */
int file_mkdirs(const char *path, struct err *e);
bool file_exists(const char *path);
bool file_is_dir(const char *path);
/* Directory part and joined path, heap strings owned by the caller. `name` absolute: a copy of it.
 */
char *path_join(const char *dir, const char *name);
char *path_dirname(const char *path);
const char *path_basename(const char *path);
/* `path`, or the nearest folder above it that exists, with its stat(2); NULL when even the root
 * cannot be read. Heap string. */
struct stat;
char *path_nearest(const char *path, struct stat *st);
/* The absolute form (current directory + path), no symlink resolution. Heap string. */
char *path_absolute(const char *path);
