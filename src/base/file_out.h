#pragma once
/* Files that are written whole: readers see the old or the new content, never a part. The bytes go
 * to a temporary file in the same folder, whose name nobody can foresee and which must be new; it
 * is synced and renamed at the end. The folder is opened once, so that all of this happens in one
 * place whatever becomes of its name. */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/err.h"

/* N when the path is a name of this process's descriptor N (/dev/stdout, /dev/fd/N), else -1. */
int place_named_descriptor(const char *path);

enum file_whose {
	/* The path was given by somebody, on the command line or in a file of theirs. It may be a
	 * link, also one whose target is not there yet: the target is replaced, and gets its old
	 * mode and, where that is allowed, its owner. A link is only followed if it belongs to this
	 * user or to root: others may not choose what is overwritten. What is no regular file - a
	 * FIFO, a character device, /dev/stdout, /proc/self/fd/N whatever that is - is written to
	 * as it is; a FIFO is waited for until somebody reads it. Refused with a sentence: folders,
	 * sockets, block devices, files without write permission, and in a folder where everyone
	 * may write, files and FIFOs of other users. */
	FILE_NAMED,
	/* A name of our own in somebody's folder ("result.json"): a file, link, FIFO or socket that
	 * has the name is replaced, never followed or written to. Folders and devices are refused.
	 */
	FILE_OURS,
};

struct file_out {
	int fd;
	int held; /* keeps the lock of the temporary file until it has its name, or -1 */
	enum file_whose whose;
	int folder;       /* -1: written through */
	char *path;       /* as named */
	char *name, *tmp; /* in the folder; NULL: written through */
	int left;         /* the temporary file (base/left.h) */
};
int file_out_open(struct file_out *f, const char *path, enum file_whose whose, struct err *e);
/* 0, or -errno, which the caller hands to file_out_close. */
int file_out_write(const struct file_out *f, const void *bytes, size_t n);
/* Syncs, closes and renames, and of FILE_NAMED syncs the folder, so that what a command said it
 * wrote outlasts a loss of power; of FILE_OURS, which may be many, that is left to
 * file_sync_folder. After a failure, of these or an earlier one (`failed`, -errno), the temporary
 * file is removed and the file is as it was, unless only its folder could not be synced. */
int file_out_close(struct file_out *f, int failed, struct err *e);
/* The three at once, FILE_NAMED and FILE_OURS. */
int file_write(const char *path, const void *bytes, size_t n, struct err *e);
int file_write_ours(const char *path, const void *bytes, size_t n, struct err *e);
/* As file_write of a file that exists and must stay what it is, its mode and owner. Of
 * another user's, which cannot be replaced by one of the same owner, the bytes that differ are
 * written in place; also in a folder where no temporary file can be made. */
int file_rewrite(const char *path, const void *bytes, size_t n, struct err *e);
/* Syncs a folder, so that the names in it outlast a loss of power. Does nothing on a file system
 * that has no such thing, or where the folder may not be read. */
int file_sync_folder(const char *path, struct err *e);
/* Removes what killed processes left when they were writing this file; files that live ones are
 * writing stay. It reads the whole folder. Opening a FILE_NAMED does it by itself; for FILE_OURS,
 * of which a folder may have many, this is for those that come one at a time. */
void file_remove_left(const char *path);
/* If `name` is one of the temporary names above: the length of the name of the file that it is for,
 * which begins behind its first character, else 0. */
size_t file_temporary_of(const char *name);

/* Makes a new regular file under a name of our own, in the place of what else has it as for
 * FILE_OURS, and opens it for writing with `flags` (O_APPEND ...). For what is written bit by bit.
 * A descriptor, or negative. */
int file_make_ours(const char *path, int flags, mode_t mode, struct err *e);
/* The same of a file that is gone on with if it is there: a regular one, with no other name, of
 * this user or root. */
int file_append_ours(const char *path, mode_t mode, struct err *e);
/* Opens for writing, by the rules of FILE_NAMED, what is to be written to as it is: what is there
 * is emptied if it is a regular file, else written to without waiting for a reader (-ENXIO). */
int file_open_out(const char *path, int flags, struct err *e);

/* A file written piece by piece, in constant memory: a file_out with a buffer. */

#define OUT_FILE_BUFFER 65536u
#define OUT_FILE_LINE 16384u /* one out_file_print at most; more is cut */

struct out_file {
	struct file_out file;
	char *buffer;
	size_t used;
	int failed; /* the first failure, -errno; later pieces go nowhere */
};

int out_file_open(struct out_file *f, const char *path, enum file_whose whose, struct err *e);
void out_file_put(struct out_file *f, const char *bytes, size_t n);
/* A text, and a number in decimal: for what is written by the million. */
static inline void out_file_text(struct out_file *f, const char *text)
{
	size_t n = strlen(text);

	if (n >= OUT_FILE_BUFFER - f->used) {
		out_file_put(f, text, n);
		return;
	}
	memcpy(f->buffer + f->used, text, n);
	f->used += n;
}
void out_file_number(struct out_file *f, uint64_t v);
void out_file_print(struct out_file *f, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Flushes, and closes as file_out_close does; a failure of an earlier piece is reported here. */
int out_file_close(struct out_file *f, struct err *e);

/* Files that somebody named to be written. A command that reads one of them, or writes two things
 * to the same, was not meant so: what was there would be lost. */

/* So many at most are known; further ones are not checked. */
#define NAMED_OUTPUTS_MAX 8

/* Before anything is read: the process will write `path`. ERR_USAGE when that is the same regular
 * file, or the same name in the same folder, as one said before. Not from two threads. */
int named_output_add(const char *path, struct err *e);
/* What was opened to be read. Any thread, after all were added. */
void named_output_read(const struct stat *st);
