#include "dataset/file_sizes.h"

#include "dataset/each.h"
#include "dataset/verify.h"

int file_sizes_look(struct dataset *d, struct store *store, struct err *e)
{
	struct io io = {.store = store};
	char path[DATASET_PATH_MAX];
	int rc = 0;

	for (int k = 0; k < DATASET_KINDS; k++) {
		enum dataset_kind kind = (enum dataset_kind)k;
		uint64_t n = presence_looks(d->workload, d->files[k]);
		uint64_t bytes = 0;

		for (uint64_t i = 0; rc == 0 && i < n; i++) {
			struct store_stat st;

			rc = dataset_path(d, kind, each_spread(d, kind, n, i), path, sizeof(path),
					  e);
			if (rc == 0)
				rc = io_stat_path(&io, path, &st, e);
			if (rc == 0)
				bytes += st.bytes;
		}
		if (rc < 0)
			return rc;
		d->seen_files[k] = n;
		d->seen_bytes[k] = bytes;
	}
	return 0;
}
