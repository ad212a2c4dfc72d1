#pragma once
/* Whole files and folders on the local file system (configuration, results, manifests). Dataset and
 * checkpoint bytes never pass here: those go through store/. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file_out.h"

/* Paths as texts. Any thread. */

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

/* mkdir -p, mode 0755, behind links too. An existing folder is fine; an existing file is an error.
 */
int file_mkdirs(const char *path, struct err *e);
/* One folder of our own name in another one: a link in its place is refused. */
int file_mkdir_ours(const char *path, struct err *e);
/* What lies behind a path; links are followed, and one that leads nowhere is
 * PATH_OTHER: reading it says so. */
enum path_kind { PATH_ABSENT, PATH_FOLDER, PATH_OTHER };
/* One of these, or negative with a sentence when that cannot be told (no right, an error of the
 * device): nothing follows from it then. The two functions below are for where nothing depends on
 * the difference. */
int path_look(const char *path, struct err *e);
bool file_exists(const char *path);
bool file_is_dir(const char *path);

/* Folders that the program made and removes. Links are removed, never followed. */

/* Removes a file, or a folder with all in it. Fine when there is none. */
int remove_tree(const char *path, struct err *e);
/* Removes the folder and those above it that are empty, but not `top` (as path_nearest gave it
 * before the folder was made) and what is above that. `top` NULL: the folder alone. */
void remove_empty_folders(const char *path, const char *top);

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
/* Lets the process have as many open files as the system allows it: shells begin with 1,024. */
void file_allow_more(void);
/* "a FIFO (named pipe)", "a folder": of st_mode. */
const char *file_kind(mode_t mode);
