/* What the times of checkpoints stand for: a disk, or memory. */
#include <math.h>

#include "base/str.h"
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

static void say_writes(struct verdict *v, const struct result *r, const struct sum *s)
{
	char a[32], b[32];

	verdict_say(v, "%llu written, %s.", (unsigned long long)s->count,
		    str_bytes((double)s->bytes, a, sizeof(a)));
	if (!has_files(r)) {
		verdict_worsen(v, VERDICT_WARN);
		verdict_takes(v, TAKES_CHECKPOINT, "memory");
		verdict_say(v, " The store '%s' keeps them in memory or discards them.",
			    r->workload->storage.store);
		return;
	}
	if (s->disk_known)
		verdict_say(v, " The disk received %s while they were written.",
			    str_bytes((double)s->disk_bytes, b, sizeof(b)));
	if (r->workload->checkpoint.fsync) {
		if (s->disk_known && (double)s->disk_bytes < TAKEN_SHARE * (double)s->bytes) {
			verdict_worsen(v, VERDICT_WARN);
			verdict_takes(v, TAKES_CHECKPOINT, "the page cache");
			verdict_say(
				v,
				" That is less than was written, although each file was synced.");
		} else if (!s->disk_known) {
			verdict_worsen(v, VERDICT_UNKNOWN);
			verdict_say(v, " Each file was synced, but the file system has no block "
				       "device with counters to confirm it.");
		} else {
			verdict_say(v, " Each file was synced before it counted as complete.");
		}
		return;
	}
	if (s->disk_known && (double)s->disk_bytes >= TAKEN_SHARE * (double)s->bytes)
		return;
	verdict_worsen(v, VERDICT_WARN);
	verdict_takes(v, TAKES_CHECKPOINT, "the page cache");
	verdict_say(v, " Checkpoints were not synced (checkpoint.fsync is false): the times are "
		       "those of writing "
		       "to the page cache, not to the storage.");
}

static void say_reads(struct verdict *v, const struct result *r, const struct sum *s)
{
	char a[32], b[32];

	verdict_say(v, " %llu read back, %s", (unsigned long long)s->count,
		    str_bytes((double)s->bytes, a, sizeof(a)));
	if (!s->process_known || !has_files(r)) {
		verdict_say(v, ".");
		return;
	}
	verdict_say(v, ", of which %s came from the storage.",
		    str_bytes(fmin((double)s->process_bytes, (double)s->bytes), b, sizeof(b)));
	if ((double)s->process_bytes < GIVEN_SHARE * (double)s->bytes) {
		verdict_worsen(v, VERDICT_WARN);
		verdict_takes(v, TAKES_CHECKPOINT, "the page cache");
		verdict_say(v, " The rest was still in the page cache of this machine.");
	}
}

/* Folders of which nothing reaches a device. */
static void say_memory(struct verdict *v, const struct result *r)
{
	const struct host_io_source *s = r->checkpoint_source;

	if (!s || !has_files(r) || (!s->memory && !s->tree.memory[0]))
		return;
	verdict_worsen(v, VERDICT_WARN);
	verdict_takes(v, TAKES_CHECKPOINT, "memory");
	if (s->memory)
		verdict_say(v, " Their folder is on %s, which is memory: no storage was measured.",
			    s->file_system);
	else
		verdict_say(v, " The device %s: this says nothing about storage.", s->tree.memory);
}

/* Fewer ranks than whole copies of the model need write, and read, less than a real job would. */
static void say_partial(struct verdict *v, const struct result *r)
{
	const struct checkpoint_totals *t = &r->checkpoint_totals;
	char a[32], b[32];

	if (t->ranks >= t->whole_ranks)
		return;
	verdict_say(v,
		    " %s: %llu of the %llu ranks of the whole job, and therefore %s of the %s of a "
		    "full checkpoint.",
		    r->workload->checkpoint.mode == 1 ? "Subset" : "Partial model",
		    (unsigned long long)t->ranks, (unsigned long long)t->whole_ranks,
		    str_bytes((double)t->total_bytes, a, sizeof(a)),
		    str_bytes((double)t->whole_bytes, b, sizeof(b)));
	if (r->workload->checkpoint.mode == 1) /* as it was asked for */
		return;
	verdict_worsen(v, VERDICT_WARN);
	verdict_say(v, " For a full checkpoint, run a multiple of tensor x pipeline ranks.");
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
		v->level = VERDICT_WARN;
		verdict_say(v, "Checkpoints are enabled, but none was due.");
		return;
	}
	if (save.count)
		say_writes(v, r, &save);
	if (load.count)
		say_reads(v, r, &load);
	say_memory(v, r);
	origin_judge_checkpoints(v, r);
	say_partial(v, r);
	if (unfinished) {
		verdict_worsen(v, VERDICT_FAIL);
		verdict_say(v, " %llu remained incomplete.", (unsigned long long)unfinished);
	}
}

extern const struct verdict_ops verdict_checkpoint;
const struct verdict_ops verdict_checkpoint = {
	.name = "checkpoint",
	.help = "Were checkpoints complete, and did they reach a disk?",
	.needs = VERDICT_OF_CHECKPOINTS,
	.judge = judge_checkpoint,
};
