#pragma once
/* Files that are written together: a batch of them is made durable at once, and then each gets its
 * name. Whatever happens, also a loss of power, a file under its name is whole.
 *
 * Until then a file has no name at all (O_TMPFILE, linkat) where the file system is known to allow
 * that, and nothing is left of it when the process ends; elsewhere it has a temporary one,
 * ".<name>.part", in the same folder. A batch is made durable by one syncfs(2) where that is known
 * to do what fsync(2) does for each file (os/file_system.h: `batches`), and as long as it is the
 * faster way: it also writes what other programs have left in memory. Elsewhere the writing of all
 * files is started, and then each is synced. On a store without descriptors, and below a shim that
 * tells calls apart (STORE_EACH_CALL), each file is synced when it was written.
 *
 * Bounds: a batch is committed before a file is added to it once it has STORE_BATCH_FILES files (or
 * as many as may be open), STORE_BATCH_BYTES bytes, STORE_BATCH_PATHS bytes of names, or is a
 * second old. Nothing else grows. A batch belongs to one thread. */
#include <stdatomic.h>
#include <stdint.h>

#include "base/err.h"
#include "store/store.h"

#define STORE_BATCH_FILES 1000u
#define STORE_BATCH_BYTES (32u << 20)
#define STORE_BATCH_PATHS (192u << 10)
/* Memory of one, all of it. */
#define STORE_BATCH_MEMORY (STORE_BATCH_PATHS + STORE_BATCH_FILES * 40u + 2560u)

struct store_batch;

/* `batches` are in use at the same time in this process, and share the descriptors that it may
 * open: its soft limit is raised as far as it needs and may. */
int store_batch_new(struct store_batch **out, struct store *s, unsigned batches, struct err *e);
/* Opens the file that is to be named `path` for writing; it is empty. Commits before that if the
 * batch is full. After a failure, which names the file, there is nothing to close. */
int store_batch_open(struct store_batch *b, const struct io *io, const char *path,
		     struct blob *blob, struct err *e);
/* Closes the file opened last and puts it into the batch. `written`: how writing it ended; when
 * that is negative (with `e` set), or closing fails, the file is discarded and the failure
 * returned, with the name of the file. `named` (may be NULL) is incremented when the file has its
 * name. */
int store_batch_close(struct store_batch *b, const struct io *io, struct blob *blob, int written,
		      _Atomic uint64_t *named, struct err *e);
/* Syncs all files, then names them in the order in which they were closed; existing files of these
 * names are replaced at one moment. A failure names the file, and the files without a name are
 * discarded. The batch is empty afterwards. The folders are not synced. */
int store_batch_commit(struct store_batch *b, struct err *e);
/* Discards what was not committed. Accepts NULL. */
void store_batch_free(struct store_batch *b);
