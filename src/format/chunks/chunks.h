#pragma once
/* What MosaicML's MDS shards and LitData's chunks have in common: the number of items, the offset
 * of each and of their end, all of 32 bits, and the items, each with the sizes of its parts in
 * front. Beside the files of a folder lies index.json, which names them. An item is a payload and a
 * label, so all items of a file have one size, and everything has its place. */
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "format/format.h"

#define CHUNKS_LABEL_BYTES 8u
#define CHUNKS_CONFIG_MAX 256
/* Parts of an item, or columns, of others that are looked at. */
#define CHUNKS_PARTS_MAX 64u

/* What tells the two apart. */
struct chunks_kind {
	uint32_t sizes; /* numbers in front of an item: the payload's size, or the label's too */
	/* A reader keeps the file that it reads open; else it opens it for each sample. */
	bool keeps_open;
	/* The text between the offsets and the items, its bytes; `limited`: the file is no larger
	 * than the library's limit. NULL: there is none. */
	size_t (*config)(char out[CHUNKS_CONFIG_MAX], bool limited);
};

struct chunks_layout {
	uint64_t sample_bytes; /* payload */
	uint64_t stride;       /* of an item */
	uint64_t items_at;     /* the first */
	uint64_t file_bytes;
	size_t config_bytes;
	char config[CHUNKS_CONFIG_MAX];
};

extern const struct chunks_kind chunks_mds, chunks_litdata;

/* ERR_USAGE when such a file cannot exist. */
int chunks_layout_of(const struct chunks_kind *k, const struct file_spec *f,
		     struct chunks_layout *l, struct err *e);

/* ---- index.json, and what shards say of themselves (chunks_index.c) ---- */

/* struct format_ops' folder_put and folder_check. */
int mds_folder_put(struct blob_stream *s, const struct folder_files *files, struct err *e);
int mds_folder_check(const char *text, size_t n, const struct folder_files *files, struct err *e);
int litdata_folder_put(struct blob_stream *s, const struct folder_files *files, struct err *e);
int litdata_folder_check(const char *text, size_t n, const struct folder_files *files,
			 struct err *e);

/* The columns of an MDS shard: the size of each, 0 where it differs between samples. */
struct chunks_columns {
	uint32_t n;
	uint64_t size[CHUNKS_PARTS_MAX];
};
/* From the text in a shard. */
int chunks_columns_parse(const char *text, size_t n, struct chunks_columns *out, struct err *e);
/* Where a payload of `want` bytes lies in an item of n bytes that others wrote: the first part of
 * that size. With columns NULL each part has its size in front, and their sum tells how many there
 * are. -1: there is none. */
int64_t chunks_payload_at(const struct chunks_columns *c, const unsigned char *item, uint64_t n,
			  uint64_t want);
