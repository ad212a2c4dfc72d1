#pragma once
/* Whole files and folders on the local file system (configuration, results, manifests). Dataset and
 * checkpoint bytes never pass here: those go through store/. */
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file_in.h"
#include "base/file_out.h"
#include "base/path.h"

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
