#pragma once
/* The thread of one worker that downloads the shards of its samples ahead of it into the cache of
 * this host (loader/shard_cache.h), in the order of the samples, and what the worker waits for.
 *
 * MDS (streaming 0.13.0, base/dataset.py): the thread walks from sample to sample, at most
 * reader.predownload ahead of the one that is read, and looks again every 7 ms; a worker whose
 * shard is not there looks every 7 ms, too, and downloads one that was removed before it came to
 * it. In the library a second thread of each worker does the waiting, and may download when it is
 * ahead of the first.
 *
 * LitData (0.2.64, streaming/reader.py, streaming/item_loader.py): the thread walks from chunk to
 * chunk, at most reader.max_pre_download ahead of those that were read, and listens for 0.1 s after
 * each; a worker looks every 0.1 s for its chunk, asks for it once more after 30 s and gives up
 * after 120 s. After the last sample of an epoch it waits for the thread, 5 s at most. */
#include <stdatomic.h>
#include <stdint.h>

#include "loader/loader.h"

struct fetch;

/* Memory that create takes, with the thread's. */
uint64_t fetch_bytes(const struct loader_config *c);
/* `halt` is the word that calls the worker off. Counts in `fetched`. */
int fetch_create(struct fetch **out, const struct loader_config *c, uint32_t worker,
		 _Atomic uint32_t *halt, struct fetched *fetched, struct err *e);
/* No thread of it runs. Accepts NULL. */
void fetch_destroy(struct fetch *f);

/* Begins an epoch of so many batches, whose order stays where it is. The worker's. */
int fetch_begin(struct fetch *f, const struct order *order, uint64_t steps, struct err *e);
/* Tells the thread to leave what it does. Any thread. Accepts NULL. */
void fetch_halt(struct fetch *f);
/* After it, and while the worker reads nothing: waits for its end, and once the run was stopped no
 * longer than the loader's grace. False when it hangs in the storage. Accepts NULL. */
bool fetch_end(struct fetch *f);

/* Before the worker reads its next sample: waits until the shard is there. ERR_CANCELED once the
 * worker is called off. */
int fetch_await(struct fetch *f, uint64_t file, struct err *e);
/* After a read of it that found no file: 0 when it is to be tried again, else `rc`. */
int fetch_again(struct fetch *f, uint64_t file, int rc, struct err *e);
/* After it was read. */
void fetch_was_read(struct fetch *f, uint64_t file);
