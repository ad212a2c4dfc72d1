#pragma once
/* Goes through a tar archive as WebDataset does: member after member, each of which belongs to a
 * sample or to none. The bytes come from the caller.
 *
 * (Reference: webdataset 1.0.2, tariterators.py: base_plus_ext, tar_file_iterator, group_by_keys;
 * Python's Lib/tarfile.py.) */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "format/tar/tar.h"

/* Of the extensions of one sample, with a zero behind each; of what exceeds it is not told whether
 * it was there before. */
#define TAR_EXTENSIONS_MAX 2048u

/* The archive's next n bytes to `out`, or (NULL) nowhere: how many there were, fewer at its end. */
typedef ssize_t tar_take_fn(void *arg, unsigned char *out, uint64_t n, struct err *e);

struct tar_walk {
	tar_take_fn *take;
	void *arg;
	unsigned char *extra; /* TAR_EXTRA_MAX, lent */
	uint64_t offset;      /* of the next byte */
	uint64_t skip;        /* bytes of the last member that were not asked for yet */
	struct tar_member member;
	/* of the sample that has begun */
	bool begun, bad; /* bad: a member says that it is none ("__bad__") */
	size_t key_bytes;
	char key[TAR_NAME_MAX];
	char extensions[TAR_EXTENSIONS_MAX];
	size_t extensions_bytes;
};

void tar_walk_begin(struct tar_walk *w, tar_take_fn *take, void *arg, unsigned char *extra);
/* The next regular file, with its header read: 1, or 0 at the end, which is two blocks of zeros or
 * the end of the bytes where a header would begin. Before that the data of the last one is passed,
 * as far as nobody took it. */
int tar_walk_next(struct tar_walk *w, struct err *e);
/* The member's data, n bytes of it, and then its padding with the next header. */
int tar_walk_data(struct tar_walk *w, unsigned char *out, struct err *e);

enum tar_belongs {
	TAR_TO_NOTHING, /* its data is read */
	TAR_TO_META,    /* and here it is not */
	TAR_TO_SAMPLE,  /* to the one that has begun */
	TAR_TO_NEXT     /* to another one, which the walk has begun now */
};

/* Where the member belongs; *bad_before: the sample that had begun says that it is none. ERR_DATA
 * for a member that is there twice in its sample, which the library refuses. */
int tar_walk_group(struct tar_walk *w, enum tar_belongs *out, const char **extension,
		   bool *bad_before, struct err *e);

/* Samples of the whole archive, the bytes of all their members, and the most of one. */
struct tar_counts {
	uint64_t samples, members, bytes, most_bytes;
};
int tar_walk_count(struct tar_walk *w, struct tar_counts *out, struct err *e);
