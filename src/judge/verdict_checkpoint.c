/* What the times of checkpoints stand for: a disk, or memory. */
#include <math.h>

#include "judge/origin.h"
#include "judge/verdict.h"
#include "store/store.h"

/* A disk that received this share of the bytes received the checkpoint. */
static const double TAKEN_SHARE = 0.95;
/* If the disk delivered less of what was read back, memory served it. */
static const double GIVEN_SHARE = 0.5;

/* Bytes of all complete checkpoints, and what the disk moved in that time. */
struct sum {
	uint64_t count, bytes, disk_bytes, process_bytes;
	bool disk_known, process_known;
};

static struct sum sum_of(const struct result *r, bool load, uint64_t *unfinished)
{
	struct sum s = {.disk_known = true, .process_known = true};
	struct checkpoint_measure one;

	for (uint32_t i = 0; i < r->epochs_begun; i++)
		for (uint32_t c = 0; checkpoint_measure_of(r, i, c, load, &one); c++) {
			*unfinished += !one.done;
			if (!one.done)
				continue;
			s.count++;
			s.bytes += load ? one.payload_bytes : one.file_bytes;
			s.disk_known = s.disk_known && one.disk_known;
			s.process_known = s.process_known && one.process_known;
			s.disk_bytes += one.disk_bytes;
			s.process_bytes += one.process_bytes;
		}
	return s;
}

static bool has_files(const struct result *r)
{
	const struct store_facts *base = workload_base_store(r->workload);

	return base->flags & STORE_HAS_FILES;
}

static bool has_objects(const struct result *r)
{
	return workload_base_store(r->workload)->flags & STORE_HAS_OBJECTS;
}

static void judge_writes(struct verdict *v, const struct result *r, const struct sum *s)
{
	bool taken = s->disk_known && (double)s->disk_bytes >= TAKEN_SHARE * (double)s->bytes;

	verdict_found(v, VERDICT_PASS,
		      FACT(CHECKPOINT_WRITTEN, (double)s->count, (double)s->bytes,
			   s->disk_known && has_files(r) ? (double)s->disk_bytes : (double)NAN));
	if (has_objects(r))
		return; /* the server took them */
	if (!has_files(r)) {
		verdict_takes(v, TAKES_CHECKPOINT, REASON_INSTEAD_MEMORY);
		verdict_found(v, VERDICT_WARN,
			      fact_with(FACT(CHECKPOINT_DISCARDED), 0, r->workload->storage.store));
	} else if (!r->workload->checkpoint.fsync) {
		if (taken)
			return;
		verdict_takes(v, TAKES_CHECKPOINT, REASON_INSTEAD_PAGE_CACHE);
		verdict_found(v, VERDICT_WARN, FACT(CHECKPOINT_NOT_SYNCED));
	} else if (!s->disk_known) {
		verdict_found(v, VERDICT_UNKNOWN, FACT(CHECKPOINT_NO_DISK));
	} else if (taken) {
		verdict_found(v, VERDICT_PASS, FACT(CHECKPOINT_SYNCED));
	} else {
		verdict_takes(v, TAKES_CHECKPOINT, REASON_INSTEAD_PAGE_CACHE);
		verdict_found(v, VERDICT_WARN, FACT(CHECKPOINT_DISK_LESS));
	}
}

static void judge_reads(struct verdict *v, const struct result *r, const struct sum *s)
{
	bool known = s->process_known && has_files(r);
	double stored = fmin((double)s->process_bytes, (double)s->bytes);

	verdict_found(v, VERDICT_PASS,
		      FACT(CHECKPOINT_READ, (double)s->count, (double)s->bytes,
			   known ? stored : (double)NAN));
	if (!known || (double)s->process_bytes >= GIVEN_SHARE * (double)s->bytes)
		return;
	verdict_takes(v, TAKES_CHECKPOINT, REASON_INSTEAD_PAGE_CACHE);
	verdict_found(v, VERDICT_WARN, FACT(CHECKPOINT_READ_CACHED));
}

/* Folders of which nothing reaches a device. */
static void judge_memory(struct verdict *v, const struct result *r)
{
	const struct host_io_source *s = r->checkpoint_source;

	if (!s || !has_files(r) || (!s->memory && !s->tree.memory[0]))
		return;
	verdict_takes(v, TAKES_CHECKPOINT, REASON_INSTEAD_MEMORY);
	verdict_found(v, VERDICT_WARN,
		      s->memory ? fact_with(FACT(CHECKPOINT_MEMORY), 0, s->file_system)
				: fact_with(FACT(CHECKPOINT_DEVICE_MEMORY), 0, s->tree.memory));
}

/* Fewer ranks than whole copies of the model need write, and read, less than a real job would. */
static void judge_partial(struct verdict *v, const struct result *r)
{
	const struct checkpoint_totals *t = &r->checkpoint_totals;
	double ranks = (double)t->ranks, whole = (double)t->whole_ranks;
	double bytes = (double)t->total_bytes, all = (double)t->whole_bytes;

	if (t->ranks >= t->whole_ranks)
		return;
	if (r->workload->checkpoint.mode == 1) { /* as it was asked for */
		verdict_found(v, VERDICT_PASS, FACT(CHECKPOINT_SUBSET, ranks, whole, bytes, all));
		return;
	}
	verdict_found(v, VERDICT_PASS, FACT(CHECKPOINT_PARTIAL, ranks, whole, bytes, all));
	verdict_found(v, VERDICT_WARN, FACT(CHECKPOINT_FULL));
}

static void judge_checkpoint(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	uint64_t unfinished = 0;
	struct sum save = {0}, load = {0};

	(void)m;
	if (r->rank) {
		save = sum_of(r, false, &unfinished);
		load = sum_of(r, true, &unfinished);
	}
	if (save.count + load.count + unfinished == 0) {
		verdict_found(v, VERDICT_WARN, FACT(CHECKPOINT_NONE));
		return;
	}
	if (save.count)
		judge_writes(v, r, &save);
	if (load.count)
		judge_reads(v, r, &load);
	judge_memory(v, r);
	origin_judge_checkpoints(v, r);
	judge_partial(v, r);
	if (unfinished)
		verdict_found(v, VERDICT_FAIL, FACT(CHECKPOINT_INCOMPLETE, (double)unfinished));
}

extern const struct verdict_ops verdict_checkpoint;
const struct verdict_ops verdict_checkpoint = {
	.name = "checkpoint",
	.help = "Were checkpoints complete, and did they reach a disk?",
	.needs = VERDICT_OF_CHECKPOINTS,
	.judge = judge_checkpoint,
};
