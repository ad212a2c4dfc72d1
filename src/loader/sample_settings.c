/* What the keys of a workload say to the readers of its format. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "loader/sample_reader.h"
#include "workload/key.h"

/* The same for every blob of a store in memory, so that any existing folder above tells it. */
static uint32_t volatile_block_bytes(const struct io *io, const char *folder)
{
	AUTO_FREE char *at = xstrdup(folder);
	struct store_stat st;

	while (io_stat_path(io, at, &st, NULL) < 0) {
		char *up = path_dirname(at);
		bool top = strcmp(up, at) == 0;

		free(at);
		at = up;
		if (top)
			return 0;
	}
	return st.block_bytes;
}

/* Of the kind's folder and its first file: file systems need not agree with themselves. 0: unknown.
 */
static uint32_t block_bytes(const struct loader_config *c)
{
	const struct io io = {.store = c->store};
	char path[DATASET_PATH_MAX];
	struct store_stat st;
	uint32_t most = 0;

	if (c->dataset->format->is.flags & FORMAT_NO_IO)
		return 0;
	if (dataset_folder(c->dataset, c->kind, 0, path, sizeof(path), NULL) == 0 &&
	    io_stat_path(&io, path, &st, NULL) == 0)
		most = st.block_bytes;
	if (dataset_path(c->dataset, c->kind, 0, path, sizeof(path), NULL) == 0 &&
	    io_stat_path(&io, path, &st, NULL) == 0 && st.block_bytes > most)
		most = st.block_bytes;
	if (most == 0 && store_base_flags(c->store) & STORE_IS_VOLATILE)
		most = volatile_block_bytes(&io, path);
	return most;
}

/* TensorFlow's buffer_size: None and 0 are not the same. */
static uint32_t transfer_bytes(const struct workload *w)
{
	int64_t bytes = w->reader.transfer_size;

	if (bytes >= TRANSFER_UNBUFFERED)
		return TRANSFER_UNBUFFERED - 1;
	if (bytes == 0 && w->origin && workload_is_set(w, "reader.transfer_size"))
		return TRANSFER_UNBUFFERED;
	return (uint32_t)bytes;
}

void sample_reader_settings(struct reader_config *out, const struct loader_config *config)
{
	const struct workload *w = config->workload;
	const struct dataset *d = config->dataset;
	int64_t buffer = w->reader.buffer_size;

	*out = (struct reader_config){
		/* of whole objects nothing is looked at */
		.access = w->reader.access == ACCESS_OBJECT ? ACCESS_NATIVE
							    : (enum read_access)w->reader.access,
		.decode = w->reader.access == ACCESS_OBJECT ? DECODE_NONE
							    : (enum read_decode)w->reader.decode,
		.transfer_bytes = transfer_bytes(w),
		.keep_open = w->reader.read_type == READ_MEMORY && !groups_wanted(config),
		.dlio = w->compat.dlio,
		.buffer_bytes =
			buffer > UINT32_MAX ? UINT32_MAX : (uint32_t)(buffer > 0 ? buffer : 0),
		.block_bytes = block_bytes(config),
		.python = w->reader.python == 0 ? 311 : 314,
		.npz_once = w->reader.numpy != 0,
		.max_sample_bytes = d->max_sample_bytes,
		.max_file_bytes = d->max_file_bytes,
		.samples_per_file = d->samples_per_file,
		.files = dataset_file_index_end(d),
		.content = &d->content,
		.example = &d->form,
		.recorded = w->recorded,
	};
}
