/* The lines of checkpoints in DLIO's log. */
#include "base/clock.h"
#include "base/log.h"
#include "result/dlio_log.h"
#include "result/dlio_values.h"

#define STAMP_MAX 64

static const double GIB = 1073741824.0;

static const char *stamp(int64_t wall_ns, char *out)
{
	clock_timestamp(wall_ns ? wall_ns : clock_wall_ns(), out, STAMP_MAX);
	return out;
}

void dlio_log_checkpoint_size(const struct result *r)
{
	const char *subset = r->workload->checkpoint.mode == 1 ? " (subset)" : "";
	const struct checkpoint_totals *t = &r->checkpoint_totals;
	bool dlio = r->workload->compat.dlio;
	uint64_t model = dlio ? t->dlio_model_bytes : t->model_bytes;
	uint64_t optimizer = dlio ? t->dlio_optimizer_bytes : t->optimizer_bytes;
	char ts[STAMP_MAX];

	stamp(0, ts);
	if (r->workload->model.num_layers > 0)
		log_output("%s Total number of parameters in the model: %llu", ts,
			   (unsigned long long)r->checkpoint_parameters);
	log_output("%s Model size: %.6f GB %s", ts, (double)model / GIB, subset);
	if (optimizer > 0)
		log_output("%s Optimizer state size: %.6f GB %s", ts, (double)optimizer / GIB,
			   subset);
	log_output("%s Total checkpoint size: %.6f GB %s", ts, dlio_checkpoint_gib(r), subset);
}

void dlio_log_checkpoint_phase(const char *what)
{
	char ts[STAMP_MAX];

	log_output("%s Checkpointing %s", stamp(0, ts), what);
}

void dlio_log_checkpoint_start(const struct checkpoint_times *t, bool load, uint32_t epoch)
{
	char ts[STAMP_MAX];

	log_output("%s Starting %s checkpoint %u after total step %llu for epoch %u",
		   stamp(t->begin_wall_ns, ts), load ? "loading" : "saving", t->number,
		   (unsigned long long)t->total_steps, epoch);
}

void dlio_log_checkpoint_end(const struct result *r, const struct checkpoint_times *t, bool load,
			     uint32_t epoch, bool background)
{
	const char *done = load ? "Loaded" : "Saved";
	char ts[STAMP_MAX];
	double took;

	/* the end is then another thread's to write */
	if (background) {
		log_info("%s Checkpoint %u of epoch %u goes on in the background after %.4f s",
			 stamp(0, ts), t->number, epoch, (double)t->stall_ns / 1e9);
		return;
	}
	took = (double)(t->end_ns - t->begin_ns) / 1e9;
	stamp(t->end_wall_ns, ts);
	if (t->stat.part_ns[CHECKPOINT_LAYERS] > 0)
		log_output("%s %s model checkpoint in %.4f seconds", ts, done,
			   (double)t->stat.part_ns[CHECKPOINT_LAYERS] / 1e9);
	if (t->stat.part_ns[CHECKPOINT_OPTIMIZER] > 0)
		log_output("%s %s optimizer checkpoint in %.4f seconds", ts, done,
			   (double)t->stat.part_ns[CHECKPOINT_OPTIMIZER] / 1e9);
	log_output("%s Finished %s checkpoint %u for epoch %u in %.4f s; Throughput: %.4f GB/s", ts,
		   load ? "loading" : "saving", t->number, epoch, took,
		   took > 0 ? dlio_checkpoint_gib(r) / took : 0);
}
