#pragma once
/* The formats of checkpoints: one row each, found by checkpoint.format. A format turns a file of
 * the plan into what its library would write, and reads it as its library would. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "checkpoint/checkpoint_plan.h"
#include "checkpoint/stream.h"
#include "format/pyfile.h"
#include "store/mapped.h"
#include "workload/backend.h"

enum { TORCH_1, TORCH_2 }; /* checkpoint.torch */

/* What all ranks of a process share, read-only. */
struct checkpoint_common {
	const struct checkpoint_plan *plan;
	struct content_pool pool[CHECKPOINT_DATATYPES]; /* those in use */
	uint64_t seed;
	int torch;
	uint32_t python; /* 311 or 314: the size of file buffers */
};

struct file_writer {
	const struct checkpoint_common *common;
	const struct checkpoint_file *file;
	uint64_t key; /* content_file_key of the file */
	struct stream *stream;
	/* kept from file to file, so that their memory is taken once */
	struct buf meta, directory, index;
};

#define READ_PIECE (2u << 20) /* 1024 of them are more than Linux reads at once */

enum read_way { READ_FRAMEWORK, READ_NATIVE, READ_MAPPED };

struct file_reader {
	const struct checkpoint_common *common;
	const struct checkpoint_file *file;
	uint64_t key;
	const struct io *io;
	struct blob *blob; /* open */
	const char *path;
	uint64_t file_bytes;
	enum read_way way;
	bool verify;
	uint64_t request;      /* native: largest request; with verify at most READ_PIECE */
	unsigned char *piece;  /* READ_PIECE bytes */
	unsigned char *buffer; /* of the library's file object */
	size_t buffer_bytes;
	struct buf meta;
	struct store_map map;        /* READ_MAPPED */
	struct file_writer *measure; /* a writer whose stream only counts */
	uint64_t payload;            /* bytes of tensors read so far */
};

struct checkpoint_format_ops {
	struct checkpoint_facts is;
	const char *part_suffix[3]; /* after the file's name; one file for each, in this order; then
				     * NULL */
	enum stream_law law;
	bool maps;    /* the library reads through a mapping */
	size_t limit; /* 0: the file system's block, as CPython's buffers have */
	/* Puts part `part` of the file into the stream. A pure function of what w says. */
	void (*write)(struct file_writer *w, unsigned part);
	/* Reads part `part`, which is open. ERR_DATA where it is not what the plan says. */
	int (*read)(struct file_reader *r, unsigned part, struct err *e);
	/* May be NULL. The files of a checkpoint that no rank writes, of which the last makes it
	 * whole: *name gets that of file `index`, or NULL after the last, and `out` (NULL: only
	 * the name is asked) its content. Called once all ranks' files are in place; reading asks
	 * that they are there. */
	int (*commit)(struct file_writer *w, unsigned index, const char **name, struct buf *out,
		      struct err *e);
	/* May be NULL. The file's own name in place of the plan's. */
	void (*name_of)(const struct checkpoint_plan *p, const struct checkpoint_file *f,
			uint64_t index, char *out, size_t out_size);
};

extern const struct checkpoint_format_ops *const checkpoint_table[]; /* written by the build */
const struct checkpoint_format_ops *checkpoint_format_find(const char *name);

/* Begins the writer's stream so that it only counts. */
void file_writer_measure(struct file_writer *w, const struct checkpoint_file *f);

static inline const struct content_pool *pool_of(const struct checkpoint_common *c,
						 enum checkpoint_datatype type)
{
	return &c->pool[type];
}

/* ---- reading, for formats ---- */

/* n bytes of a tensor that lies at `offset`: in requests of the reader's way, or through the
 * library's file object `py` (which may hold its first bytes) where that is given. Compares them
 * when asked. */
int read_payload(struct file_reader *r, struct pybuffer *py, const struct checkpoint_tensor *t,
		 uint64_t offset, uint64_t n, struct err *e);
/* n bytes at `offset` into `out`, counted as metadata. */
int read_meta(struct file_reader *r, uint64_t offset, void *out, size_t n, struct err *e);
/* ERR_DATA "'path': ..." */
int read_wrong(const struct file_reader *r, struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
