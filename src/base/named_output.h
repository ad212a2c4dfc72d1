#pragma once
/* Files that somebody named to be written. A command that reads one of them, or writes two things
 * to the same, was not meant so: what was there would be lost. */
#include <sys/stat.h>

#include "base/err.h"

/* So many at most are known; further ones are not checked. */
#define NAMED_OUTPUTS_MAX 8

/* Before anything is read: the process will write `path`. ERR_USAGE when that is the same regular
 * file, or the same name in the same folder, as one said before. Not from two threads. */
int named_output_add(const char *path, struct err *e);
/* What was opened to be read. Any thread, after all were added. */
void named_output_read(const struct stat *st);
/* ERR_USAGE when `st`, which is to be replaced, was added and then read. `path` is for the
 * sentence. Any thread. */
int named_output_check(const char *path, const struct stat *st, struct err *e);
