#pragma once
/* A file written piece by piece, in constant memory: a file_out with a buffer. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"

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
