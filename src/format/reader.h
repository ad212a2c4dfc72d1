#pragma once
/* What the readers of formats are made of. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "format/format.h"
#include "format/inflater.h"

/* Lays a reader's parts out in one block. With base NULL it only measures, so that a reader's
 * stated size and its layout are one piece of code. */
struct carver {
	unsigned char *base;
	size_t used;
	bool overflow; /* the sum is more than a process can address */
};

/* The next n bytes, aligned to a page when n is at least one, else to 64. NULL while measuring. */
void *carve(struct carver *c, uint64_t n);
/* The sum, a whole number of 64-byte lines, or 0 after an overflow. */
size_t carved(const struct carver *c);

/* Which files of the dataset a reader has loaded: a bit each. */
struct file_marks {
	unsigned char *bits;
	uint64_t files;
};

/* Only readers that keep files open have a bit for each. */
void file_marks_lay_out(struct carver *c, const struct reader_config *config, struct file_marks *m);
bool file_marks_get(const struct file_marks *m, uint64_t file);
void file_marks_set(struct file_marks *m, uint64_t file);
/* None is loaded. */
void file_marks_clear(struct file_marks *m);

/* Compares payload with its content source, piece by piece through a small buffer. */
#define EXPECT_BYTES 65536u

struct expectation {
	const struct content_source *content; /* NULL: nothing is compared */
	unsigned char *expect;                /* EXPECT_BYTES */
};

/* `offset` is the piece's place in the payload stream; `data_offset` the payload's place in the
 * blob, or UINT64_MAX when it is compressed there. */
int expectation_check(const struct expectation *x, uint64_t file_index, uint64_t offset,
		      uint64_t data_offset, const void *piece, size_t n, struct err *e);

/* First member of a format's struct reader. */
struct reader_base {
	struct reader_config config;
	const struct io *io;
	struct blob *blob; /* of readers with one file open at a time */
	struct expectation expect;
	struct file_marks loaded;
	const void *last; /* data of the file read last, where `loaded` is kept */
};

/* Carves blob, marks and, to verify, the expectation. */
void reader_base_lay_out(struct carver *c, const struct reader_config *config,
			 const struct store *s, struct reader_base *b);

/* Carves all that a format's reader needs besides its struct, into members of it. */
typedef void reader_lay_out_fn(struct carver *c, const struct reader_config *config,
			       const struct store *s, struct reader *r);
/* struct format_ops' reader_bytes. `r` is zeroed, `bytes` long, and only written to. */
size_t reader_measure(struct reader *r, size_t bytes, reader_lay_out_fn *lay_out,
		      const struct reader_config *config, const struct store *s);
/* struct format_ops' reader_init: a struct of `bytes`, zeros but for what is carved and its base,
 * which is ready. ERR_USAGE for a configuration no reader can work with: an unknown Python, nothing
 * to compare with. */
int reader_begin(void *memory, size_t bytes, reader_lay_out_fn *lay_out,
		 const struct reader_config *config, const struct io *io, struct reader **out,
		 struct err *e);
/* Both as static functions NAME_reader_bytes and NAME_reader_init of a file's own struct reader;
 * `start(r, e)` has the last word. */
#define FORMAT_READER(name, lay_out, start)                                                        \
	static size_t name##_reader_bytes(const struct reader_config *c, const struct store *s)    \
	{                                                                                          \
		struct reader r = {0};                                                             \
                                                                                                   \
		return reader_measure(&r, sizeof(r), lay_out, c, s);                               \
	}                                                                                          \
                                                                                                   \
	static int name##_reader_init(void *memory, const struct reader_config *c,                 \
				      const struct io *io, struct reader **out, struct err *e)     \
	{                                                                                          \
		int rc = reader_begin(memory, sizeof(struct reader), lay_out, c, io, out, e);      \
                                                                                                   \
		return rc < 0 ? rc : start(*out, e);                                               \
	}
/* For those that have nothing to say. */
int reader_start_nothing(struct reader *r, struct err *e);
/* struct format_ops' read, of formats that read a file by itself: opens it, unless it is loaded,
 * and closes it. `contents` reads what it has to; it may leave out->payload_bytes 0, which becomes
 * the sample's. */
int reader_read_file(struct reader *r, const char *path, const struct file_spec *f, uint64_t index,
		     struct sample *out,
		     int (*contents)(struct reader *r, const struct file_spec *f, uint64_t index,
				     struct sample *out, struct err *e),
		     struct err *e);
/* The same as the static function NAME_read. */
#define FORMAT_READ(name, contents)                                                                \
	static int name##_read(struct reader *r, const char *path, const struct file_spec *f,      \
			       uint64_t index, struct sample *out, struct err *e)                  \
	{                                                                                          \
		return reader_read_file(r, path, f, index, out, contents, e);                      \
	}
/* struct format_ops' read, of formats whose framework reads a file as a stream: by `framework` or
 * `native`, as the access is, unless the file is loaded. Both open what they read. */
typedef int reader_path_fn(struct reader *r, const char *path, const struct file_spec *f,
			   uint64_t index, struct sample *out, struct err *e);
int reader_read_stream(struct reader *r, const char *path, const struct file_spec *f,
		       uint64_t index, struct sample *out, reader_path_fn *framework,
		       reader_path_fn *native, struct err *e);
/* The same as the static function NAME_read. */
#define FORMAT_READ_STREAM(name, framework, native)                                                \
	static int name##_read(struct reader *r, const char *path, const struct file_spec *f,      \
			       uint64_t index, struct sample *out, struct err *e)                  \
	{                                                                                          \
		return reader_read_stream(r, path, f, index, out, framework, native, e);           \
	}
/* struct format_ops' reader_close, where every read closes what it opened. */
int reader_close_nothing(struct reader *r, struct err *e);
/* struct format_ops' extent: the whole file. */
int extent_whole_file(const struct reader_config *c, const struct file_spec *f, uint64_t index,
		      struct extent *out, struct err *e);

/* Room for CPython's buffer that the configuration asks for. */
size_t reader_buffer_bytes(const struct reader_config *c);
/* The buffer's size for a blob of this preferred request size; ERR_USAGE when it exceeds `room`. */
int reader_buffer_of(const struct reader_config *c, uint32_t block_bytes, size_t room, size_t *out,
		     struct err *e);
/* Checks the index and empties *out. */
int reader_sample_begin(const struct file_spec *f, uint64_t index, const char *path,
			struct sample *out, struct err *e);
/* Gives *out its payload, once all of it was read. */
void reader_sample_done(const struct file_spec *f, struct sample *out);
/* Closes the blob of a read that ended with rc; the sentence of the first failure gets the path. */
int reader_blob_close(const struct io *io, struct blob *b, const char *path, int rc, struct err *e);

/* The native read of a format whose samples lie one after another: opens the blob, calls `item` for
 * the sample, or for each of a file that is kept open, and closes it. `layout` is item's. */
typedef int reader_item_fn(struct reader *r, const void *layout, const struct file_spec *f,
			   uint64_t index, struct sample *out, struct err *e);
int reader_items(struct reader *r, const char *path, const struct file_spec *f, uint64_t index,
		 reader_item_fn *item, const void *layout, struct sample *out, struct err *e);
