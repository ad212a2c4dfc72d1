/* Removing a dataset by its exact names: a folder may hold more than what was generated. */
#include "dataset/remove.h"

#include <errno.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/file.h"
#include "os/sysinfo.h"
#include "dataset/each.h"
#include "dataset/manifest.h"
#include "dataset/sidecar.h"

static int remove_blob(void *arg, enum dataset_kind kind, uint64_t index, struct each_worker *w,
		       struct err *e)
{
	const struct dataset *d = arg;
	struct store *s = w->io.store;
	int rc = store_remove(s, w->path, e);

	(void)kind;
	(void)index;
	return rc == -ENOENT || rc == 0 ? sidecars_remove(d, s, w->path, e) : rc;
}

static int remove_if_empty(struct store *s, const char *path, struct err *e)
{
	(void)e;
	store_remove(s, path, NULL);
	return 0;
}

/* Subfolders, then train and valid, then the dataset's own folder; those with other files stay. */
static void remove_folders(const struct dataset *d, struct store *s)
{
	char path[DATASET_PATH_MAX];

	for (int kind = 0; kind < DATASET_KINDS; kind++) {
		for (uint64_t i = 0; d->subfolders[kind] > 1 && i < d->subfolders[kind]; i++)
			if (dataset_folder(d, (enum dataset_kind)kind, i, path, sizeof(path),
					   NULL) == 0) {
				sidecar_folders(d, s, path, remove_if_empty, NULL);
				store_remove(s, path, NULL);
			}
		snprintf(path, sizeof(path), "%s/%s", d->folder, dataset_kind_folder[kind]);
		sidecar_folders(d, s, path, remove_if_empty, NULL);
		store_remove(s, path, NULL);
	}
	store_remove(s, d->folder, NULL);
}

int dataset_remove(const struct dataset *d, struct store *store, struct err *e)
{
	struct each_job job = {
		.dataset = d,
		.store = store,
		.threads = host_threads(),
		.file = remove_blob,
		.arg = (void *)(uintptr_t)d,
	};
	AUTO_FREE char *manifest = path_join(d->folder, MANIFEST_NAME);
	int rc;

	/* the manifest first: what is left after a failure must not look like a dataset */
	rc = store_remove(store, manifest, e);
	if (rc < 0 && rc != -ENOENT)
		return rc;
	rc = each_file(&job, e);
	if (rc == 0)
		remove_folders(d, store);
	return rc;
}
