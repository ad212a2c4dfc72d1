#pragma once
/* index.json of MDS and LitData, and what shards say of themselves. */
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "format/chunks/chunks_layout.h"
#include "format/format.h"

/* Parts of an item, or columns, of others that are looked at. */
#define CHUNKS_PARTS_MAX 64u

extern const struct chunks_kind chunks_mds, chunks_litdata;

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
