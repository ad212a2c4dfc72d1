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
	uint64_t filled_bytes; /* of them, zeros behind the items: file_spec.want_bytes */
	size_t config_bytes;
	char config[CHUNKS_CONFIG_MAX];
};

/* ERR_USAGE when such a file cannot exist. */
int chunks_layout_of(const struct chunks_kind *k, const struct file_spec *f,
		     struct chunks_layout *l, struct err *e);
