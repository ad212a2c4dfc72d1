#pragma once
/* Named files that are read: workloads, designs, results, lists, ledgers. Only here are they
 * opened; files of datasets and checkpoints are opened by their store.
 *
 * Only regular files are read, and opening never waits: a FIFO, a socket or a device in place of
 * one is looked at, never opened (opening alone can wait for ever, rewind a tape or reset a line).
 * Links are followed. What was named may be:
 *   absent       -ENOENT, or -ENOTDIR where a part of its path is no folder
 *   no file      -EISDIR of a folder, ERR_KIND of all others, a link that leads nowhere included;
 *                the sentence tells what it is
 *   too large    -EFBIG
 *   unreadable   another -errno: no right to it, a loop of links, an error of the device
 * What was read but is not what it should be, is ERR_DATA or ERR_USAGE of whoever parses it. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/* Opens a file for reading (close-on-exec). The descriptor, or negative. `st`, where not NULL, is
 * what was opened. A pipe is opened too if the path names a descriptor of this process in so many
 * words (/dev/stdin, /dev/fd/N, /proc/self/fd/N): somebody gave it on the command line. */
int file_open(const char *path, struct stat *st, struct err *e);
/* Reads a whole file of at most max_bytes into `out` (appended). After an error `out` is as
 * before. Without memory for it the process ends (base/alloc.h). */
int file_read(const char *path, size_t max_bytes, struct buf *out, struct err *e);
/* The same from an open descriptor, from where it stands to the end; `path` is for sentences. */
int file_read_open(int fd, const char *path, size_t max_bytes, struct buf *out, struct err *e);
/* Whether something has this name: 1; nothing: 0; that cannot be told: negative. Something may be
 * no file, or a link that leads nowhere: reading it then says so. */
int file_there(const char *path, struct err *e);
/* "a FIFO (named pipe)", "a folder": of st_mode. */
const char *file_kind(mode_t mode);
