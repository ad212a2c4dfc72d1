#pragma once
/* stoker_manifest.json in the dataset folder: what was generated, so that a later run can tell whether
 * it matches its workload. Written by atomic replacement (temporary name and rename). */
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "dataset/dataset.h"

#define MANIFEST_NAME "stoker_manifest.json"

struct manifest {
	bool found;
	bool complete;           /* false: generation was begun and not finished */
	int version;
	char format[32], elem[16], compression[16], prefix[256];
	uint64_t files[DATASET_KINDS], subfolders[DATASET_KINDS], samples_per_file;
	uint64_t total_bytes, seed, config_hash;
	char shape[128];         /* "12107 +- 2822.205 square" or "224 x 224 x 3" in words */
	char created[32];
};

int manifest_write(const struct io *io, const struct dataset *d, bool complete, struct err *e);
/* found = false (and 0) when there is none. ERR_DATA when it is not a manifest. */
int manifest_read(const struct io *io, const char *folder, struct manifest *out, struct err *e);
/* Whether it describes this dataset; else *why (appended) says every difference in words. */
bool manifest_matches(const struct manifest *m, const struct dataset *d, struct buf *why);
