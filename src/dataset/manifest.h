#pragma once
/* stoker_manifest.json in the dataset folder: what was generated, so that a later run can tell
 * whether it matches its workload. Written by atomic replacement (temporary name and rename). */
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "dataset/dataset.h"

#define MANIFEST_NAME "stoker_manifest.json"

enum manifest_state {
	MANIFEST_COMPLETE, /* every file is on the store */
	MANIFEST_WRITING,  /* generation was begun; files under their final names are whole */
	MANIFEST_CLEARING, /* files of these names may still be those of another dataset */
};

struct manifest {
	bool found;
	bool complete; /* state is MANIFEST_COMPLETE */
	enum manifest_state state;
	int version;
	char format[32], elem[16], compression[16], prefix[256];
	uint64_t files[DATASET_KINDS], subfolders[DATASET_KINDS], samples_per_file;
	uint64_t total_bytes; /* UINT64_MAX when it depends on content */
	uint64_t seed, config_hash;
	char shape[128]; /* "12107 +- 2822.205 square" or "224 x 224 x 3" in words */
	char created[32];
};

/* The old manifest stays whole until the new one is: any failure leaves it. */
int manifest_write(const struct io *io, const struct dataset *d, enum manifest_state state,
		   struct err *e);
/* found = false (and 0) when there is none. ERR_DATA when it is not a manifest or a newer
 * version's. */
int manifest_read(const struct io *io, const char *folder, struct manifest *out, struct err *e);
/* The dataset's keys as overrides ("++workload.dataset.format=npz"), appended to `out`, whose
 * strings are the caller's. ERR_USAGE when there is no manifest, ERR_DATA when it has none. */
int manifest_keys(const struct io *io, const char *folder, struct str_list *out, struct err *e);
/* Its parsing alone; `path` is for sentences. */
int manifest_parse(const char *text, size_t n, const char *path, struct manifest *out,
		   struct err *e);

enum manifest_fit {
	MANIFEST_OTHER,  /* another dataset */
	MANIFEST_SAME,   /* this one */
	MANIFEST_LARGER, /* one with more files, of which this is the first part */
};
/* What it describes; for MANIFEST_OTHER `why` (may be NULL; appended) says every difference in
 * words. Without need_eval the evaluation files do not matter. */
enum manifest_fit manifest_compare(const struct manifest *m, const struct dataset *d,
				   bool need_eval, struct buf *why);
/* Whether it describes exactly this dataset. */
bool manifest_matches(const struct manifest *m, const struct dataset *d, struct buf *why);
