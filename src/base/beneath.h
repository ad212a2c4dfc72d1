#pragma once
/* Files below an open folder that others may have prepared. No part of a path is a link that is
 * followed, none leads out of the folder, and opening waits for nobody: not for the other end of a
 * FIFO, not for a device. Paths are relative; "" is the folder itself. Any thread. */
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

/* open(2), also O_PATH, with O_CLOEXEC. A descriptor, or -1 with errno: ELOOP or ENOTDIR where a
 * part is a link. What was opened may still be anything: beneath_is_plain. */
int beneath_open(int folder, const char *path, int flags, mode_t mode);
/* The folder of the last part of `path`, which is *name (it points into `path`; "." of ""). `make`:
 * folders that are missing are made. To be closed; -1 with errno. */
int beneath_parent(int folder, const char *path, bool make, const char **name);
/* A regular file without another name, so that writing to it changes nothing elsewhere. */
bool beneath_is_plain(const struct stat *st);
