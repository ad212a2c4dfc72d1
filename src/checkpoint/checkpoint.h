#pragma once
/* Checkpoints of a run: written, read back and removed, a rank at a time.
 *
 *   checkpoint_open          once a process: the plan, the format, the content of tensors
 *   checkpoint_rank_open     once a rank: all the memory that the rank needs
 *   checkpoint_write         each rank writes its files
 *   checkpoint_commit        one rank, after all have written (a barrier lies between)
 *   checkpoint_read          each rank reads what it restores
 *   checkpoint_remove        each rank removes its files, then checkpoint_remove_end by one
 *
 * Threads: a struct checkpoint is read-only after open, and any number of ranks of one process use
 * it at once; a struct checkpoint_rank belongs to one thread at a time, so that a background thread
 * can write while the rank goes on, but a rank writes one checkpoint after another. The struct io
 * is the caller's: its counters are of one thread, its stop flag ends a write or read between two
 * requests with ERR_CANCELED.
 *
 * A file is written under "<name>.tmp" and renamed when it is whole (and synced, if asked): what
 * has its name is whole. After a failure or a stop the temporary file is removed; a file of the
 * same name from before stays. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "checkpoint/checkpoint_plan.h"
#include "store/store.h"
#include "workload/workload.h"

struct checkpoint;
struct checkpoint_rank;

struct checkpoint_stat {
	uint64_t files;
	uint64_t payload_bytes; /* of tensors */
	uint64_t file_bytes;    /* with what the format puts around them; of reads: 0 */
	int64_t part_ns[CHECKPOINT_PARTS];
	int64_t total_ns; /* with folder, commit and syncs */
};

/* Plan and format of `w`, which must outlive it, for `ranks` ranks in all. ERR_USAGE where the
 * workload does not fit: an unknown format, ranks that the model cannot be spread over. */
int checkpoint_open(struct checkpoint **out, const struct workload *w, int64_t ranks,
		    struct err *e);
void checkpoint_close(struct checkpoint *c);
const struct checkpoint_plan *checkpoint_plan_of(const struct checkpoint *c);
/* Files that the format makes of each file of a plan. */
unsigned checkpoint_parts(const struct workload *w);
/* What checkpoint_open holds, and what each rank needs on top. */
size_t checkpoint_memory_bytes(const struct checkpoint *c);
size_t checkpoint_rank_memory_bytes(const struct checkpoint *c, const struct store *s,
				    int64_t rank);

/* All memory of one rank; `s` is the store that its io will name. */
int checkpoint_rank_open(struct checkpoint_rank **out, const struct checkpoint *c,
			 const struct store *s, int64_t rank, struct err *e);
void checkpoint_rank_close(struct checkpoint_rank *r);
/* Bytes and files that a write leaves behind, with what the format adds. Pure. */
void checkpoint_rank_file_bytes(struct checkpoint_rank *r, uint64_t *bytes, uint64_t *files);

/* Writes the rank's files of one checkpoint; makes the folder. With checkpoint.fsync each file is
 * synced before it gets its name, and the folder at the end. `out` may be NULL. */
int checkpoint_write(struct checkpoint_rank *r, int64_t epoch, int64_t step, const struct io *io,
		     struct checkpoint_stat *out, struct err *e);
/* What makes a checkpoint of all ranks whole in formats that have such a thing (distcp's .metadata,
 * tensorflow's "checkpoint"); nothing in others. One rank, after all ranks have written. */
bool checkpoint_has_commit(const struct checkpoint *c); /* whether it does anything */
int checkpoint_commit(struct checkpoint_rank *r, int64_t epoch, int64_t step, const struct io *io,
		      struct err *e);
/* ERR_USAGE where the store cannot be read as the workload wants checkpoints to be: to be asked
 * before one is written. */
int checkpoint_check_reading(const struct checkpoint *c, const struct store *s, struct err *e);
/* Reads and checks what `from` wrote: the rank itself, or another under rank shift. With
 * checkpoint.restore all, a rank of another copy reads what only the first copy wrote, too. What is
 * missing or is not what was written is an error that names file and place. */
int checkpoint_read(struct checkpoint_rank *r, int64_t from, int64_t epoch, int64_t step,
		    const struct io *io, struct checkpoint_stat *out, struct err *e);
/* Removes the rank's files of one checkpoint, and temporary files of theirs. What is not there is
 * no error. */
int checkpoint_remove(struct checkpoint_rank *r, int64_t epoch, int64_t step, const struct io *io,
		      struct err *e);
/* Removes the folder and what checkpoint_commit made. A folder that holds anything else is kept.
 * One rank, after all ranks have removed their files. */
int checkpoint_remove_end(struct checkpoint_rank *r, int64_t epoch, int64_t step,
			  const struct io *io, struct err *e);
