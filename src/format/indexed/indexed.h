#pragma once
/* What the two indexed binary formats share: how the files look, and the reader that reads. */
#include "format/format.h"
#include "format/reader.h"

enum { INDEXED_OFFSETS, INDEXED_SIZES, INDEXED_COMPANIONS };

#define INDEXED_PATH_MAX 1152
/* Bytes of one entry of a companion. */
#define INDEXED_ENTRY 8u

/* struct format_ops' functions, by their names there. */
int indexed_check(const struct file_spec *f, struct err *e);
uint64_t indexed_file_bytes(const struct file_spec *f);
int indexed_put(struct blob_stream *s, const struct file_spec *f,
		const struct content_source *content, void *scratch, struct err *e);
int indexed_sidecar_path(const char *path, uint32_t which, char *out, size_t out_size);
uint64_t indexed_sidecar_bytes(const struct file_spec *f, uint32_t which);
int indexed_sidecar_put(struct blob_stream *s, const struct file_spec *f, uint32_t which,
			struct err *e);
int indexed_extent(const struct reader_config *c, const struct file_spec *f, uint64_t index,
		   struct extent *out, struct err *e);

/* The members of a row that are the same for both. */
#define INDEXED_FILE_OPS                                                                           \
	.check = indexed_check, .file_bytes = indexed_file_bytes, .put = indexed_put,              \
	.extent = indexed_extent, .sidecars = INDEXED_COMPANIONS,                                  \
	.sidecar_path = indexed_sidecar_path, .sidecar_bytes = indexed_sidecar_bytes,              \
	.sidecar_put = indexed_sidecar_put

/* Its reader is that of both formats with ACCESS_NATIVE. */
extern const struct format_ops format_indexed_binary;

/* Path of a companion; ERR_USAGE when it is too long. */
int indexed_path(const char *path, uint32_t which, char out[INDEXED_PATH_MAX], struct err *e);
/* Whether `offset` is where DLIO may say that sample `index` lies: where it does, or at the same
 * place counted from the beginning of a chunk of generation. */
bool indexed_offset_fits(uint64_t offset, uint64_t index, uint64_t sample_bytes);
/* ERR_DATA with a sentence for an entry that is not this file's. */
int indexed_bad_entry(uint32_t which, uint64_t index, uint64_t has, uint64_t wanted, struct err *e);
/* ERR_DATA: the blob ends within the sample. */
int indexed_cut_short(uint64_t index, uint64_t offset, uint64_t sample_bytes, uint64_t file_bytes,
		      struct err *e);
