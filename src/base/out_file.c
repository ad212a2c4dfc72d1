#include "base/out_file.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

int out_file_open(struct out_file *f, const char *path, enum file_whose whose, struct err *e)
{
	int rc;

	*f = (struct out_file){0};
	rc = file_out_open(&f->file, path, whose, e);
	if (rc == 0)
		f->buffer = xmalloc(OUT_FILE_BUFFER);
	return rc;
}

static void flush_buffer(struct out_file *f)
{
	assert(f->used <= OUT_FILE_BUFFER);
	if (f->failed == 0)
		f->failed = file_out_write(&f->file, f->buffer, f->used);
	f->used = 0;
}

void out_file_put(struct out_file *f, const char *bytes, size_t n)
{
	while (n > 0) {
		size_t room = OUT_FILE_BUFFER - f->used, part = n < room ? n : room;

		memcpy(f->buffer + f->used, bytes, part);
		f->used += part;
		bytes += part;
		n -= part;
		if (f->used == OUT_FILE_BUFFER)
			flush_buffer(f);
	}
}

void out_file_number(struct out_file *f, uint64_t v)
{
	char digits[20], *at = digits + sizeof(digits);

	do {
		*--at = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	out_file_put(f, at, (size_t)(digits + sizeof(digits) - at));
}

void out_file_print(struct out_file *f, const char *format, ...)
{
	va_list args;
	int n;

	if (OUT_FILE_BUFFER - f->used < OUT_FILE_LINE)
		flush_buffer(f);
	va_start(args, format);
	n = vsnprintf(f->buffer + f->used, OUT_FILE_LINE, format, args);
	va_end(args);
	if (n > 0)
		f->used += (size_t)n < OUT_FILE_LINE ? (size_t)n : OUT_FILE_LINE - 1;
}

int out_file_close(struct out_file *f, struct err *e)
{
	flush_buffer(f);
	free(f->buffer);
	return file_out_close(&f->file, f->failed, e);
}
