/* The texts are DLIO's log lines. */
#include "report/dlio_log.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"

static const char *now(char stamp[32])
{
	clock_timestamp(clock_wall_ns(), stamp, 32);
	return stamp;
}

static double seconds(const struct phase *p)
{
	return (double)(p->end_ns - p->begin_ns) / 1e9;
}

void dlio_log_running(const struct workload *w, uint32_t ranks)
{
	const struct {
		bool on;
		const char *text;
	} modes[] = {{w->workflow.generate_data, "Generating data"},
		     {w->workflow.train, "Training"},
		     {w->workflow.evaluation, "Evaluation"},
		     {w->workflow.checkpoint, "Checkpointing"}};
	struct buf b = {0};
	char t[32];

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (modes[i].on)
			buf_printf(&b, "%s%s", b.len ? " & " : "", modes[i].text);
	log_output("%s Running DLIO [%s] with %u process(es)", now(t), b.data ? b.data : "", ranks);
	buf_release(&b);
}

void dlio_log_generation_start(const struct dataset *d)
{
	char t[32];

	log_output("%s Starting data generation", now(t));
	log_info("%s Generating dataset in %s/train and %s/valid", now(t), d->folder, d->folder);
	log_info("%s Number of files for training dataset: %llu", now(t),
		 (unsigned long long)d->files[DATASET_TRAIN]);
	log_info("%s Number of files for validation dataset: %llu", now(t),
		 (unsigned long long)d->files[DATASET_EVAL]);
}

void dlio_log_generation_end(void)
{
	char t[32];

	log_output("%s Generation done", now(t));
}

void dlio_log_plan(const struct result *r)
{
	const struct workload *w = r->workload;
	char t[32];

	log_output("%s Max steps per epoch: %llu = %lld * %lld / %lld / %u (samples per file * num files / "
		   "batch size / comm size)",
		   now(t), (unsigned long long)r->steps_per_epoch,
		   (long long)w->dataset.num_samples_per_file, (long long)w->dataset.num_files_train,
		   (long long)w->reader.batch_size, r->ranks);
	if (w->train.total_training_steps > 0)
		log_output("%s Total training steps is set to be %lld. Will only run up to %lld", now(t),
			   (long long)w->train.total_training_steps,
			   (long long)w->train.total_training_steps);
	if (r->evaluated)
		log_output("%s Steps per eval: %llu = %lld * %lld / %lld / %u (samples per file * num "
			   "files / batch size eval / comm size)",
			   now(t), (unsigned long long)r->eval_steps,
			   (long long)w->dataset.num_samples_per_file,
			   (long long)w->dataset.num_files_eval, (long long)w->reader.batch_size_eval,
			   r->ranks);
}

void dlio_log_epoch_start(uint32_t epoch, uint64_t steps)
{
	char t[32];

	log_output("%s Starting epoch %u: %llu steps expected", now(t), epoch, (unsigned long long)steps);
}

void dlio_log_epoch_end(uint32_t epoch, const struct phase *p)
{
	char t[32];

	log_output("%s Ending epoch %u - %llu steps completed in %.2f s", now(t), epoch,
		   (unsigned long long)p->steps, seconds(p));
}

void dlio_log_block_start(uint32_t block)
{
	char t[32];

	log_output("%s Starting block %u", now(t), block);
}

void dlio_log_block_end(uint32_t block, const struct phase *p)
{
	char t[32];

	log_output("%s Ending block %u - %llu steps completed in %.2f s", now(t), block,
		   (unsigned long long)p->steps, seconds(p));
}

void dlio_log_block_metrics(uint32_t epoch, const struct phase *p, double au, double throughput,
			    const struct time_dist *set)
{
	AUTO_FREE char *text = time_dist_python(set);
	double mean = 0, var = 0;
	char t[32];

	for (uint64_t i = 0; i < p->steps; i++)
		mean += (double)(p->step[i].compute_end_ns - p->step[i].compute_begin_ns) / 1e9;
	mean /= p->steps ? (double)p->steps : 1;
	for (uint64_t i = 0; i < p->steps; i++) {
		double d = (double)(p->step[i].compute_end_ns - p->step[i].compute_begin_ns) / 1e9 - mean;

		var += d * d / (double)p->steps;
	}
	log_output("%s Epoch %u - Block %u [Training] Accelerator Utilization [AU] (%%): %.4f", now(t),
		   epoch, p->number, au);
	log_output("%s Epoch %u - Block %u [Training] Throughput (samples/second): %.4f", now(t), epoch,
		   p->number, throughput);
	log_output("%s Epoch %u - Block %u [Training] Computation time per step (second): %.4f+/-%.4f "
		   "(set value: %s)",
		   now(t), epoch, p->number, mean, sqrt(var), text);
}

void dlio_log_eval_start(uint64_t steps)
{
	char t[32];

	log_output("%s Starting eval - %llu steps expected", now(t), (unsigned long long)steps);
}

void dlio_log_eval_end(const struct phase *p)
{
	char t[32];

	log_output("%s Ending eval - %llu steps completed in %.2f s", now(t), (unsigned long long)p->steps,
		   seconds(p));
}

void dlio_log_eval_metrics(uint32_t epoch, double au, double throughput)
{
	char t[32];

	log_output("%s Epoch %u [Eval] Accelerator Utilization [AU] (%%): %.4f", now(t), epoch, au);
	log_output("%s Epoch %u [Eval] Throughput (samples/second): %.4f", now(t), epoch, throughput);
}

void dlio_log_saved(const struct result *r, const struct run_metrics *m)
{
	struct buf b = {0};
	char t[32];

	log_output("%s Saved outputs in %s", now(t), r->folder);
	report_dlio_metric_lines(r, m, &b);
	log_output("Averaged metric over all steps/epochs\n%s", b.data ? b.data : "");
	log_output("%s outputs saved in RANKID_output.json", now(t));
	buf_release(&b);
}
