#pragma once
/* File formats of datasets: how samples lie in a blob, how the real library asks for them, and how
 * to write such a blob as a stream. A format is one row of a table; it reaches bytes only through
 * io_*.
 *
 * Reading has two patterns. FRAMEWORK issues the requests the real Python library issues, in size
 * and order (reference: the comments in each format's file); NATIVE the fewest and largest. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/elem.h"
#include "base/err.h"
#include "format/file_spec.h"
#include "store/store.h"
#include "workload/backend.h"

struct recorded;

/* The payload stream of a file: element bytes at any offset, a pure function. */
struct content_source {
	/* Fills n bytes of the file's payload stream from `offset` (bytes; both multiples of
	 * nothing in particular). Pure and thread-safe. */
	void (*fill)(const struct content_source *src, uint64_t file_index, uint64_t offset,
		     void *out, size_t n);
	uint64_t seed;
	const struct elem_type *elem;
	/* The same stream with elements of another type; NULL: its bytes are those of any. */
	void (*of_elem)(const struct content_source *src, const struct elem_type *elem,
			struct content_source *out);
};

/* The largest request of native reading. The piece of memory that all go through then stays in the
 * processor's cache; larger ones save calls and cost more. */
#define NATIVE_PIECE_MAX (2u << 20)
/* Of a format with FORMAT_HEADED: a sample that ends within so many bytes comes with the beginning
 * of its file, unless it lies in chunks. */
#define NATIVE_WINDOW 65536u

/* object: whole files, by the loaders alone (loader/ahead.h); what readers of formats are made of
 * is native's. */
enum read_access { ACCESS_FRAMEWORK, ACCESS_NATIVE, ACCESS_RECORDED, ACCESS_OBJECT };
enum read_decode {
	DECODE_FULL,   /* what the framework does with the bytes: checksums, inflate, parse */
	DECODE_VERIFY, /* compare every payload byte with the content source */
	DECODE_NONE    /* read, look at nothing that is not needed to find the data */
};

/* TensorFlow's reader without a buffer: each record's two parts are requests of their own. */
#define TRANSFER_UNBUFFERED UINT32_MAX

struct reader_config {
	enum read_access access;
	enum read_decode decode;
	bool keep_open;          /* DLIO's read_type memory: load a file once and keep it */
	bool dlio;               /* where DLIO's own reader has a defect, the same (compat.dlio) */
	uint32_t transfer_bytes; /* TFRecord's read buffer; 0: TensorFlow's own 256 KiB */
	uint32_t buffer_bytes; /* CPython's buffer, exactly; 0: by the law, from the blob's block */
	uint32_t block_bytes;  /* what a stat of the dataset's folder said, so that the reader has
				* room for the law's buffer; 0: room for FORMAT_BLOCK_MAX */
	uint32_t python;       /* CPython generation, 311 or 314: the buffering law */
	bool npz_once;         /* NumPy 2.3 and later: a member is opened once */
	uint64_t max_sample_bytes; /* over all files of the dataset */
	uint64_t max_file_bytes;
	uint64_t samples_per_file;
	uint64_t files;                       /* of the dataset: every file_index is below it */
	const struct content_source *content; /* for DECODE_VERIFY */
	/* Any file of the dataset, while memory is laid out; NULL: room for ordinary ones. */
	const struct file_spec *example;
	const struct recorded *recorded; /* for ACCESS_RECORDED */
};

/* What a read delivered. */
struct sample {
	const void *data; /* payload, or the last piece of it when streamed (with keep_open, of the
			   * file read last); NULL when no byte was read; valid until next read */
	/* Payload of this sample that was read from the store by this call; 0 after a failure, and
	 * when it came from what the reader had loaded before. */
	uint64_t payload_bytes;
	/* So many samples behind this one came with it: to read them next, in their order, is no
	 * request and delivers as much payload each. 0 where that is not known. */
	uint64_t along;
};

/* A range of a blob. */
struct extent {
	uint64_t offset, bytes; /* bytes: EXTENT_TO_END up to the end of the blob */
	bool whole;             /* with it, all samples of the file are read */
};
#define EXTENT_TO_END UINT64_MAX

/* Samples of a file that are asked for together, such as those of a row group. */
struct sample_unit {
	uint64_t first, end; /* samples of the file */
	uint64_t payload;    /* of each, that is wanted */
};

/* How a library has units under way for one worker. */
struct unit_pace {
	uint32_t requests, window; /* at once; units that were asked for and not taken */
	bool early;                /* another one is asked for before the next is waited for */
	bool python;               /* through a Python file object for each unit */
	uint64_t largest;          /* bytes of one range, at most */
	uint64_t unit_bytes;       /* of the largest unit */
};

struct reader; /* one per worker; not shared */
struct blob_stream;
struct blob_part;

/* The files of a folder, in order, as a file that lists them has them. */
struct folder_files {
	uint64_t files;
	/* The name, without folders, and the spec of file i. */
	int (*file)(const struct folder_files *files, uint64_t i, char *name, size_t name_size,
		    struct file_spec *f, struct err *e);
};

/* What a file that others wrote holds. */
struct file_look {
	uint64_t samples;
	/* Of those bytes of a sample that readers want: in the mean, and of the largest sample as
	 * far as it is known. */
	uint64_t sample_bytes, most_bytes;
	void *index; /* comes back as file_spec.index; released with free. NULL: none is needed */
	size_t index_bytes;
	/* Numbers of the format's own, by which readers have their memory: the largest of all files
	 * come back as file_spec.room of reader_config.example. */
	uint64_t room[FILE_ROOMS];
};

struct format_ops {
	struct format_facts is;
	/* What keys of the format's own say of all files: *own is released with free, also after a
	 * failure, and `form` gets it, and shape and element type where they decide these. NULL:
	 * there is nothing but what a file_spec has. */
	int (*own)(const struct workload *w, struct file_spec *form, void **own, struct err *e);
	/* Can such files exist? (dimensions, element type; compression is one of `is`). To be asked
	 * through format_check. */
	int (*check)(const struct file_spec *f, struct err *e);
	/* Size of the blob in bytes: a pure function of the spec. UINT64_MAX when it depends on
	 * content. */
	uint64_t (*file_bytes)(const struct file_spec *f);
	/* Puts all bytes of the file into the stream, which writes them or compares them with a
	 * file: format_write and format_verify. `scratch`, of put_scratch(f) bytes (NULL: 0), whole
	 * pages, is the only memory used. */
	int (*put)(struct blob_stream *s, const struct file_spec *f,
		   const struct content_source *content, void *scratch, struct err *e);
	size_t (*put_scratch)(const struct file_spec *f);
	/* Memory one reader needs, all of it, counted into the stated bound of the run. 0: the
	 * sizes in `c` are beyond what one machine can address. */
	size_t (*reader_bytes)(const struct reader_config *c, const struct store *s);
	/* Builds a reader in `memory` (reader_bytes long, 4096-aligned, touched), which may hold
	 * anything, such as what a closed reader has left: what must begin as zeros is zeroed here,
	 * and that is little, because workers are restarted in timed parts. */
	int (*reader_init)(void *memory, const struct reader_config *c, const struct io *io,
			   struct reader **out, struct err *e);
	/* Reads sample `index` of the file at `path`. Opens and closes as read_type says. Under
	 * keep_open only the requests are modelled, not the memory: the framework's cache of whole
	 * files has no bound, so the reader remembers which files it has loaded (a bit each, by
	 * file_index) and their other samples cost nothing. After an error the reader can be used
	 * again. */
	int (*read)(struct reader *r, const char *path, const struct file_spec *f, uint64_t index,
		    struct sample *out, struct err *e);
	/* What DLIO's reader loads of a file when its worker begins, before the first sample: the
	 * index, which `read` then does not load again. Only with ACCESS_FRAMEWORK. NULL: nothing.
	 */
	int (*load_index)(struct reader *r, const char *path, const struct file_spec *f,
			  struct err *e);
	/* Closes what is open; the memory is the caller's. */
	int (*reader_close)(struct reader *r, struct err *e);
	/* format_verify, where bytes of a file may differ from those that `put` puts. NULL: they
	 * may not. */
	int (*verify)(const struct io *io, const char *path, const struct file_spec *f,
		      const struct content_source *content, void *scratch, size_t scratch_bytes,
		      struct err *e);
	/* How large blobs whose file_bytes is UINT64_MAX are in the mean, within 2 %. NULL: as
	 * large as their payload. */
	uint64_t (*file_bytes_estimate)(const struct file_spec *f);
	/* The extension of files of this compression. NULL: the same for all. */
	const char *(*compressed_extension)(const char *compression);

	/* Companion files of each blob, such as indices; 0 in most formats, and the rest is NULL
	 * then. Their bytes are pure functions of the spec. They are in place whenever the blob is.
	 */
	uint32_t sidecars;
	/* Path of the blob's companion `which` (below sidecars) into out; -ENAMETOOLONG when it
	 * does not fit. All blobs of one folder have the `which`th in one folder. */
	int (*sidecar_path)(const char *path, uint32_t which, char *out, size_t out_size);
	uint64_t (*sidecar_bytes)(const struct file_spec *f, uint32_t which);
	/* As put. */
	int (*sidecar_put)(struct blob_stream *s, const struct file_spec *f, uint32_t which,
			   struct err *e);

	/* Formats with is.folder_file, else NULL: what it holds, a pure function of the files; as
	 * put. And whether one that others may have written, the n bytes of `text`, lists these
	 * files first: ERR_DATA with a sentence when it does not. */
	int (*folder_put)(struct blob_stream *s, const struct folder_files *files, struct err *e);
	int (*folder_check)(const char *text, size_t n, const struct folder_files *files,
			    struct err *e);

	/* Where the bytes of sample `index` lie, so that a loader can keep requests for several
	 * samples in flight: the range that a read with ACCESS_NATIVE needs, computed from the spec
	 * alone. Such a read may ask for more besides (an HDF5 file's metadata); with DECODE_NONE
	 * the range is all there is to read. ERR_USAGE with a sentence when the place cannot be
	 * computed. NULL: in no file of this format. */
	int (*extent)(const struct reader_config *c, const struct file_spec *f, uint64_t index,
		      struct extent *out, struct err *e);

	/* Formats with FORMAT_LISTED, else NULL: what the file of others at `path`, of so many
	 * bytes, holds by its own index. ERR_DATA in a sentence, without the path, when it cannot
	 * be used. `form`: what all files have in common (own: the keys). Any memory it takes for
	 * a while is bounded. Called by several threads. */
	int (*look)(const struct io *io, const char *path, uint64_t bytes,
		    const struct file_spec *form, struct file_look *out, struct err *e);

	/* What of a sample's bytes readers want; NULL: all. */
	uint64_t (*wanted_bytes)(const struct file_spec *f);

	/* Formats with FORMAT_GROUPS, else NULL: the unit that has a sample, and the ranges that
	 * are asked for to read it, in their order. `unit` is memory of unit_bytes, begun by
	 * unit_begin; `c` and `f` stay until the last range. They are those that `read` asks for,
	 * which reads a unit when its first sample is asked for, in the order of the file. */
	size_t unit_bytes;
	int (*unit_begin)(void *unit, const struct reader_config *c, const struct file_spec *f,
			  uint64_t index, struct sample_unit *out, struct err *e);
	bool (*unit_next)(void *unit, struct extent *out);
	void (*unit_pace)(const struct reader_config *c, struct unit_pace *out);
};

/* Whose reader_bytes, reader_init, read and reader_close a reader of this format and configuration
 * has: the format's own, but for ACCESS_RECORDED. */
const struct format_ops *format_reader(const struct format_ops *format,
				       const struct reader_config *c);

/* ---- the requests that a real job made (ACCESS_RECORDED), whatever the format ---- */

/* Files that a reader keeps open at most with reader.read_type memory. */
#define RECORDED_KEPT_OPEN 64u

/* Has a reader's functions alone. */
extern const struct format_ops recorded_requests_ops;

#define FORMAT_WRITE_SCRATCH (4u << 20)
/* Writes the whole blob (already open for writing, empty); `scratch` of scratch_bytes (at least
 * FORMAT_WRITE_SCRATCH) is the only memory used. */
int format_write(const struct format_ops *format, const struct io *io, struct blob *b,
		 const char *path, const struct file_spec *f, const struct content_source *content,
		 void *scratch, size_t scratch_bytes, struct err *e);
/* Compares the whole blob with what format_write would have made. ERR_DATA names the path and the
 * offset of the first byte that differs. `scratch` as there. */
int format_verify(const struct format_ops *format, const struct io *io, const char *path,
		  const struct file_spec *f, const struct content_source *content, void *scratch,
		  size_t scratch_bytes, struct err *e);
/* What parts of the blob are to hold, as far as that can be known by making at most `most` bytes
 * (0: all of it): blob_stream_keep. */
int format_make_parts(const struct format_ops *format, const struct io *io, const char *path,
		      const struct file_spec *f, const struct content_source *content,
		      struct blob_part *part, unsigned parts, uint64_t most, void *scratch,
		      size_t scratch_bytes, struct err *e);
/* The same as format_verify, whatever format->verify is. */
int format_verify_put(const struct format_ops *format, const struct io *io, const char *path,
		      const struct file_spec *f, const struct content_source *content,
		      void *scratch, size_t scratch_bytes, struct err *e);
/* The same of companion `which`, whose own path is `path`. */
int format_sidecar_write(const struct format_ops *format, const struct io *io, struct blob *b,
			 const char *path, const struct file_spec *f, uint32_t which, void *scratch,
			 size_t scratch_bytes, struct err *e);
int format_sidecar_verify(const struct format_ops *format, const struct io *io, const char *path,
			  const struct file_spec *f, uint32_t which, void *scratch,
			  size_t scratch_bytes, struct err *e);
/* The same of the file that lists a folder's files; its size is what it comes to. */
int format_folder_write(const struct format_ops *format, const struct io *io, struct blob *b,
			const char *path, const struct folder_files *files, void *scratch,
			size_t scratch_bytes, struct err *e);
int format_folder_verify(const struct format_ops *format, const struct io *io, const char *path,
			 const struct folder_files *files, void *scratch, size_t scratch_bytes,
			 struct err *e);
/* The largest preferred request size for which a reader with buffer_bytes = block_bytes = 0 has
 * room. */
#define FORMAT_BLOCK_MAX (8u << 20)

extern const struct format_ops *const format_table[]; /* NULL-terminated, written by the build */
/* The row of a name, or NULL. */
const struct format_ops *format_find(const char *name);
/* ERR_USAGE unless such files can exist. */
int format_check(const struct format_ops *format, const struct file_spec *f, struct err *e);

/* The shape of a sample with which a file comes out at a given size. */

/* The two dimensions of a sample with which a file of `form` (whose own dimensions do not matter)
 * has about `want` bytes: the shape nearest to a square whose file comes nearest to it, for images
 * the smallest near a square whose noise alone takes that much. A file of content-dependent size
 * counts as its estimate. ERR_USAGE when even a single element takes more, or none takes so much.
 */
int file_size_shape(const struct format_ops *format, const struct file_spec *form, double want,
		    uint64_t dims[2], struct err *e);
