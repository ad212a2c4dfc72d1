/* DLIO's log, line by line. */
#include "result/dlio_log.h"

#include <math.h>
#include <stdarg.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/program.h"

#define STAMP_MAX 64

static const double GIB = 1073741824.0;

double dlio_data_gib(const struct result *r)
{
	double share = 1;

	/* of the first host, by its ranks */
	for (uint32_t p = 0; p < r->processes; p++)
		share -= r->process[p].node != 0 ? (double)r->process[p].ranks / r->ranks : 0;
	return share * metrics_data_bytes(r) / GIB;
}

double dlio_checkpoint_gib(const struct result *r)
{
	return checkpoint_size_bytes(r) / GIB;
}

bool dlio_fits_memory(const struct result *r, const struct host_facts *h)
{
	return dlio_data_gib(r) <= h->memory_gib;
}

const char *dlio_expectation(const struct result *r, const struct series_stat *au)
{
	return au->count && au->mean >= r->workload->metric.au * 100 ? "success" : "fail";
}

static const char *stamp(int64_t wall_ns, char *out)
{
	clock_timestamp(wall_ns ? wall_ns : clock_wall_ns(), out, STAMP_MAX);
	return out;
}

/* One line; a time of 0 is now. */
__attribute__((format(printf, 2, 3))) static void output_at(int64_t wall_ns, const char *fmt, ...)
{
	AUTO_FREE char *text = NULL;
	char ts[STAMP_MAX];
	va_list ap;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	log_output("%s %s", stamp(wall_ns, ts), text);
}

static double phase_s(const struct phase *p)
{
	return (double)(p->end_ns - p->begin_ns) / 1e9;
}

void dlio_log_mark(void)
{
	char ts[STAMP_MAX];

	log_file_line("[OUTPUT] %s " PROGRAM_WROTE, stamp(0, ts));
}

void dlio_log_running(const struct workload *w, uint32_t ranks)
{
	const struct {
		bool on;
		const char *name;
	} modes[] = {
		{w->workflow.generate_data, "Generating data"},
		{w->workflow.train, "Training"},
		{w->workflow.evaluation, "Evaluation"},
		{w->workflow.checkpoint, "Checkpointing"},
	};
	struct buf b = {0};
	char ts[STAMP_MAX];

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (modes[i].on)
			buf_printf(&b, "%s%s", b.len ? " & " : "", modes[i].name);
	log_output("%s Running DLIO [%s] with %u process(es)", stamp(0, ts), b.data ? b.data : "",
		   ranks);
	buf_release(&b);
}

void dlio_log_generation_start(const struct dataset *d)
{
	char ts[STAMP_MAX];

	log_output("%s Starting data generation", stamp(0, ts));
	log_info("%s Generating dataset in %s/%s and %s/%s", ts, d->folder,
		 dataset_kind_folder[DATASET_TRAIN], d->folder, dataset_kind_folder[DATASET_EVAL]);
	log_info("%s Number of files for training dataset: %llu", ts,
		 (unsigned long long)d->files[DATASET_TRAIN]);
	log_info("%s Number of files for validation dataset: %llu", ts,
		 (unsigned long long)d->files[DATASET_EVAL]);
}

void dlio_log_generation_end(void)
{
	output_at(0, "Generation done");
}

void dlio_log_plan(const struct result *r)
{
	const struct workload *w = r->workload;
	char ts[STAMP_MAX];

	if (dlio_fits_memory(r, &r->host))
		log_noted("The amount of dataset is smaller than the host memory; data might be "
			  "cached after the first epoch. Increase the size of dataset to eliminate "
			  "the caching effect!!!");
	log_output("%s Max steps per epoch: %llu = %.15g * %lld / %lld / %u (samples per file * "
		   "num files / batch size / comm size)",
		   stamp(0, ts), (unsigned long long)r->steps_per_epoch,
		   workload_file_samples(w, false), (long long)w->dataset.num_files_train,
		   (long long)w->reader.batch_size, r->ranks);
	if (w->train.total_training_steps > 0)
		log_output("%s Total training steps is set to be %lld. Will only run up to %lld",
			   ts, (long long)w->train.total_training_steps,
			   (long long)w->train.total_training_steps);
	if (w->workflow.evaluation)
		log_output("%s Steps per eval: %llu = %.15g * %lld / %lld / %u (samples per file * "
			   "num files / batch size eval / comm size)",
			   ts, (unsigned long long)r->eval_steps, workload_file_samples(w, true),
			   (long long)w->dataset.num_files_eval,
			   (long long)w->reader.batch_size_eval, r->ranks);
}

void dlio_log_epoch_start(uint32_t epoch, uint64_t steps)
{
	output_at(0, "Starting epoch %u: %llu steps expected", epoch, (unsigned long long)steps);
}

void dlio_log_epoch_end(uint32_t epoch, uint64_t steps, int64_t end_wall_ns, int64_t took_ns)
{
	output_at(end_wall_ns, "Ending epoch %u - %llu steps completed in %.2f s", epoch,
		  (unsigned long long)steps, (double)took_ns / 1e9);
}

void dlio_log_block_start(uint32_t block)
{
	output_at(0, "Starting block %u", block);
}

void dlio_log_block_end(uint32_t block, const struct phase *p)
{
	output_at(p->end_wall_ns, "Ending block %u - %llu steps completed in %.2f s", block,
		  (unsigned long long)p->steps, phase_s(p));
}

static double compute_s(const struct step_times *t)
{
	return (double)(t->compute_end_ns - t->compute_begin_ns) / 1e9;
}

/* Mean and population standard deviation over the steps of a phase. */
static void compute_times(const struct phase *p, double *mean, double *stdev)
{
	double sum = 0, squares = 0, steps = p->steps ? (double)p->steps : 1;

	for (uint64_t i = 0; i < p->steps; i++)
		sum += compute_s(&p->step[i]);
	*mean = sum / steps;
	for (uint64_t i = 0; i < p->steps; i++)
		squares += (compute_s(&p->step[i]) - *mean) * (compute_s(&p->step[i]) - *mean);
	*stdev = sqrt(squares / steps);
}

void dlio_log_block_metrics(uint32_t epoch, const struct phase *p, double au, double throughput,
			    const struct time_dist *computation_time)
{
	AUTO_FREE char *set = time_dist_python(computation_time);
	double mean, stdev;
	char ts[STAMP_MAX];

	compute_times(p, &mean, &stdev);

	log_output("%s Epoch %u - Block %u [Training] Accelerator Utilization [AU] (%%): %.4f",
		   stamp(0, ts), epoch, p->number, au);
	log_output("%s Epoch %u - Block %u [Training] Throughput (samples/second): %.4f", ts, epoch,
		   p->number, throughput);
	log_output("%s Epoch %u - Block %u [Training] Computation time per step (second): "
		   "%.4f+/-%.4f (set value: %s)",
		   ts, epoch, p->number, mean, stdev, set);
}

void dlio_log_eval_start(uint64_t steps)
{
	output_at(0, "Starting eval - %llu steps expected", (unsigned long long)steps);
}

void dlio_log_eval_end(const struct phase *p)
{
	output_at(p->end_wall_ns, "Ending eval - %llu steps completed in %.2f s",
		  (unsigned long long)p->steps, phase_s(p));
}

void dlio_log_eval_metrics(uint32_t epoch, double au, double throughput)
{
	char ts[STAMP_MAX];

	log_output("%s Epoch %u [Eval] Accelerator Utilization [AU] (%%): %.4f", stamp(0, ts),
		   epoch, au);
	log_output("%s Epoch %u [Eval] Throughput (samples/second): %.4f", ts, epoch, throughput);
}

/* ---- checkpoints ---- */

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
	output_at(0, "Checkpointing %s", what);
}

void dlio_log_checkpoint_start(const struct checkpoint_times *t, bool load, uint32_t epoch)
{
	output_at(t->begin_wall_ns, "Starting %s checkpoint %u after total step %llu for epoch %u",
		  load ? "loading" : "saving", t->number, (unsigned long long)t->total_steps,
		  epoch);
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

/* ---- the end ---- */

static void checkpoint_lines(const struct result *r, struct buf *out)
{
	const int64_t wanted[] = {r->workload->checkpoint.num_checkpoints_write,
				  r->workload->checkpoint.num_checkpoints_read};
	static const char *const word[] = {"save", "load"};
	struct series_stat duration, rate;

	for (int load = 0; load < 2; load++) {
		checkpoint_series(r, load, &duration, &rate);
		if (wanted[load] > 0 && duration.count)
			buf_printf(out,
				   "[METRIC] Checkpoint %s duration (seconds): %.4f (%.4f)\n"
				   "[METRIC] Checkpoint %s I/O Throughput (GB/second): %.4f "
				   "(%.4f)\n",
				   word[load], duration.mean, duration.stdev, word[load], rate.mean,
				   rate.stdev);
	}
}

static void metric_lines(const struct result *r, const struct run_metrics *m, struct buf *out)
{
	static const char rule[] =
		"[METRIC] ==========================================================\n";

	buf_puts(out, rule);
	buf_printf(out, "[METRIC] Number of Simulated Accelerators: %u \n", r->ranks);
	if (r->trained) {
		if (m->train_au.count)
			buf_printf(
				out,
				"[METRIC] Training Accelerator Utilization [AU] (%%): %.4f (%.4f)\n"
				"[METRIC] Training Throughput (samples/second): %.4f (%.4f)\n"
				"[METRIC] Training I/O Throughput (MB/second): %.4f (%.4f)\n",
				m->train_au.mean, m->train_au.stdev, m->train_throughput.mean,
				m->train_throughput.stdev, m->train_io.mean, m->train_io.stdev);
		buf_printf(out, "[METRIC] train_au_meet_expectation: %s\n",
			   dlio_expectation(r, &m->train_au));
	}
	if (r->checkpointed)
		checkpoint_lines(r, out);
	if (r->evaluated) {
		if (m->eval_au.count)
			buf_printf(out,
				   "[METRIC] Eval Accelerator Utilization [AU] (%%): %.4f (%.4f)\n"
				   "[METRIC] Eval Throughput (samples/second): %.6f (%.6f)\n"
				   "[METRIC] Eval Throughput (MB/second): %.6f (%.6f)\n",
				   m->eval_au.mean, m->eval_au.stdev, m->eval_throughput.mean,
				   m->eval_throughput.stdev, m->eval_io.mean, m->eval_io.stdev);
		buf_printf(out, "[METRIC] eval_au_meet_expectation: %s\n",
			   dlio_expectation(r, &m->eval_au));
	}
	buf_puts(out, rule);
}

static void warn_missing(const struct run_metrics *m)
{
	for (uint32_t i = 0; i < m->epochs; i++) {
		const struct epoch_metrics *e = &m->epoch[i];

		if (e->steps && !e->train_valid)
			log_noted("Epoch %u has no AU or throughput: %s", i + 1, e->why);
		if (e->has_eval && !e->eval_valid)
			log_noted("The evaluation of epoch %u has no AU%s: %s", i + 1,
				  e->eval_throughput > 0 ? "" : " or throughput", e->eval_why);
	}
}

void dlio_log_saved(const struct result *r, const struct run_metrics *m)
{
	struct buf b = {0};
	char ts[STAMP_MAX];

	warn_missing(m);
	log_output("%s Saved outputs in %s", stamp(0, ts), r->folder);
	buf_puts(&b, "Averaged metric over all steps/epochs\n");
	metric_lines(r, m, &b);
	log_text(LOG_OUTPUT, "%s", b.data);
	buf_release(&b);
	log_output("%s outputs saved in RANKID_output.json", stamp(0, ts));
}
