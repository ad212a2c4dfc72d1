/* Accelerator utilization and throughput: DLIO's definitions, mended or exact, and whole-run AU. */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "result/metrics.h"

static const double MIB = 1048576.0;

static uint64_t not_negative(int64_t v)
{
	return v > 0 ? (uint64_t)v : 0;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Steps by DLIO's formula, which ignores samples that were left out. */
static uint64_t dlio_steps(const struct result *r, enum phase_kind kind)
{
	const struct workload *w = r->workload;
	int64_t batch = kind == PHASE_EVAL ? w->reader.batch_size_eval : w->reader.batch_size;
	double samples = (double)workload_samples(w, kind == PHASE_EVAL);

	if (kind == PHASE_BLOCK && w->train.total_training_steps > 0)
		return (uint64_t)w->train.total_training_steps;
	if (batch <= 0 || r->ranks == 0 || !(samples > 0))
		return 0;
	return (uint64_t)floor(samples / (double)batch / (double)r->ranks);
}

void metrics_window(const struct result *r, const struct phase *p, uint64_t total, uint64_t *lo,
		    uint64_t *hi)
{
	uint64_t start = not_negative(r->workload->output.metric.exclude_start_steps);
	uint64_t end = not_negative(r->workload->output.metric.exclude_end_steps);
	uint64_t before = p->first_step;

	/* DLIO excludes steps in every block, and counts the end from totals before trimming */
	if (r->workload->compat.dlio) {
		before = 0;
		total = dlio_steps(r, p->kind);
	}
	*lo = min_u64(start > before ? start - before : 0, p->steps);
	end = total > end ? total - end : 0;
	*hi = min_u64(end > before ? end - before : 0, p->steps);
	if (*hi < *lo)
		*hi = *lo;
	assert(*hi <= p->steps);
}

static bool set_why(char *why, size_t why_size, const char *sentence)
{
	snprintf(why, why_size, "%s", sentence);
	return false;
}

static bool check_window(const struct result *r, const struct phase *p, uint64_t measured,
			 int64_t window_ns, char *why, size_t why_size)
{
	const struct workload *w = r->workload;

	if (p->steps == 0)
		return set_why(why, why_size, "no step was completed");
	if (w->compat.dlio && p->steps < 2 && p->kind == PHASE_BLOCK)
		return set_why(
			why, why_size,
			"DLIO's throughput, (steps - 2) / time, is negative for a single step");
	if (measured == 0 && !w->compat.dlio) {
		snprintf(why, why_size,
			 "%llu step%s completed, and output.metric.exclude_start_steps=%lld and "
			 "exclude_end_steps=%lld leave none to measure",
			 (unsigned long long)p->steps, p->steps == 1 ? " was" : "s were",
			 (long long)w->output.metric.exclude_start_steps,
			 (long long)w->output.metric.exclude_end_steps);
		return false;
	}
	if (window_ns <= 0)
		return set_why(why, why_size, "the excluded steps take all the time");
	return true;
}

static double eval_samples_per_s(const struct result *r, const struct phase *p)
{
	double samples = r->workload->compat.dlio
				 ? (double)p->steps * (double)r->workload->reader.batch_size_eval
				 : (double)p->samples;
	int64_t wall_ns = p->end_ns - p->begin_ns;

	return wall_ns > 0 ? samples / clock_seconds(wall_ns) : 0;
}

static bool measure_phase(const struct result *r, const struct phase *p, uint64_t total, double *au,
			  double *throughput, uint64_t *measured, char *why, size_t why_size)
{
	int64_t time_ns = p->end_ns - p->begin_ns, compute_ns = 0;
	double steps, batch;
	uint64_t lo, hi;

	metrics_window(r, p, total, &lo, &hi);
	for (uint64_t i = 0; i < p->steps; i++) {
		const struct step_times *t = &p->step[i];

		if (i >= lo && i < hi)
			compute_ns += t->compute_end_ns - t->compute_begin_ns;
		else
			time_ns -= t->compute_end_ns - t->ask_ns;
	}
	*au = 0;
	/* over all steps: no window can leave it without any */
	*throughput = p->kind == PHASE_EVAL ? eval_samples_per_s(r, p) : 0;
	*measured = hi - lo;
	/* DLIO's figures of an evaluation without a step are zeros */
	if (r->workload->compat.dlio && p->kind == PHASE_EVAL && p->steps == 0 &&
	    r->eval_steps == 0)
		return true;
	if (!check_window(r, p, hi - lo, time_ns, why, why_size))
		return false;
	if (compute_ns < 0 || compute_ns > time_ns)
		return set_why(why, why_size, "the times of the steps exceed the measured window");
	*au = 100.0 * (double)compute_ns / (double)time_ns;
	if (p->kind == PHASE_EVAL)
		return true;
	/* the 2 is DLIO's, whatever is excluded */
	steps = r->workload->compat.dlio ? (double)p->steps - 2 : (double)(hi - lo);
	batch = r->workload->compat.dlio ? (double)r->workload->reader.batch_size
					 : (double)p->samples / (double)p->steps;
	*throughput = steps * batch / clock_seconds(time_ns);
	return true;
}

bool metrics_phase(const struct result *r, const struct phase *p, double *au, double *throughput,
		   uint64_t *measured, char *why, size_t why_size)
{
	uint64_t total = p->steps;

	if (p->kind == PHASE_BLOCK) {
		/* a cap on the run's steps may have cut this epoch */
		total = r->workload->train.total_training_steps > 0 ? p->first_step + p->steps
								    : r->steps_per_epoch;
	}
	return measure_phase(r, p, total, au, throughput, measured, why, why_size);
}

static void add_step_times(struct rank_epoch_metrics *out, const struct phase *p)
{
	for (uint64_t i = 0; i < p->steps; i++) {
		const struct step_times *t = &p->step[i];

		out->exposed_wait_s += clock_seconds(t->got_ns - t->ask_ns);
		out->compute_s += clock_seconds(t->compute_end_ns - t->compute_begin_ns);
		out->compute_late_s += clock_seconds(step_late_ns(t));
		out->barrier_wait_s += clock_seconds(t->barrier_out_ns - t->barrier_in_ns);
	}
	out->steps += p->steps;
	out->samples += p->samples;
}

static void rank_training(const struct result *r, const struct rank_epoch *ep,
			  struct rank_epoch_metrics *out)
{
	double weights = 0, au_sum = 0, rate_sum = 0, alone = 0;
	uint64_t total = 0;

	for (uint32_t b = 0; b < ep->blocks; b++)
		total += ep->block[b].steps;
	for (uint32_t b = 0; b < ep->blocks; b++) {
		const struct phase *p = &ep->block[b];
		double au, rate, weight;
		uint64_t measured;
		char why[256];

		add_step_times(out, p);
		if (!measure_phase(r, p, total, &au, &rate, &measured, why, sizeof(why))) {
			if (p->steps && !out->why[0])
				memcpy(out->why, why, sizeof(why));
			/* AU of a single step is 0 in DLIO, and counts */
			alone += r->workload->compat.dlio && p->steps == 1;
			continue;
		}
		weight = (double)(r->workload->compat.dlio ? p->steps : measured);
		weights += weight;
		au_sum += weight * au;
		rate_sum += weight * rate;
		out->measured_steps += measured;
	}
	out->train_valid = weights > 0;
	if (out->train_valid) {
		out->train_au = au_sum / (weights + alone);
		out->train_throughput = rate_sum / weights;
		out->why[0] = '\0';
	} else if (!out->why[0]) {
		snprintf(out->why, sizeof(out->why), "no step was completed");
	}
}

void metrics_rank_epoch(const struct result *r, uint32_t rank, uint32_t epoch,
			struct rank_epoch_metrics *out)
{
	const struct rank_epoch *ep = &r->rank[rank].epoch[epoch];
	int64_t wall_ns = ep->train_end_ns - ep->begin_ns;
	uint64_t measured;

	*out = (struct rank_epoch_metrics){
		.payload_bytes = ep->payload_bytes,
		.eval_payload_bytes = ep->eval_payload_bytes,
	};
	rank_training(r, ep, out);
	if (wall_ns > 0) {
		out->wall_s = clock_seconds(wall_ns);
		out->whole_au = 100.0 * (out->compute_s - out->compute_late_s) / out->wall_s;
		out->late_percent = 100.0 * out->compute_late_s / out->wall_s;
	}
	if (!ep->has_eval)
		return;
	out->eval_steps = ep->eval.steps;
	out->eval_samples = ep->eval.samples;
	out->eval_wall_s = clock_seconds(ep->eval.end_ns - ep->eval.begin_ns);
	out->eval_valid = metrics_phase(r, &ep->eval, &out->eval_au, &out->eval_throughput,
					&measured, out->eval_why, sizeof(out->eval_why));
}

struct series_stat series_stat_of(const double *v, size_t n)
{
	struct series_stat s = {0};
	double sum = 0, squares = 0;

	for (size_t i = 0; i < n; i++) {
		if (!isfinite(v[i]))
			continue;
		s.min = s.count == 0 || v[i] < s.min ? v[i] : s.min;
		s.max = s.count == 0 || v[i] > s.max ? v[i] : s.max;
		s.count++;
		sum += v[i];
	}
	if (s.count == 0)
		return s;
	s.mean = sum / (double)s.count;
	for (size_t i = 0; i < n; i++)
		squares += isfinite(v[i]) ? (v[i] - s.mean) * (v[i] - s.mean) : 0;
	s.stdev = sqrt(squares / (double)s.count);
	return s;
}

static void invalidate(bool *valid, char *why, size_t why_size, const struct result *r,
		       uint32_t rank, const char *reason)
{
	if (!*valid)
		return;
	*valid = false;
	if (r->ranks > 1)
		snprintf(why, why_size, "rank %u: %.200s", rank, reason);
	else
		snprintf(why, why_size, "%s", reason);
}

/* Adds one rank to its epoch; sums are divided afterwards. */
static void add_rank(struct epoch_metrics *m, const struct result *r, uint32_t rank,
		     const struct rank_epoch_metrics *k)
{
	if (!k->train_valid)
		invalidate(&m->train_valid, m->why, sizeof(m->why), r, rank, k->why);
	if (m->has_eval && !k->eval_valid)
		invalidate(&m->eval_valid, m->eval_why, sizeof(m->eval_why), r, rank, k->eval_why);
	m->train_au += k->train_au;
	m->train_au_min = fmin(m->train_au_min, k->train_au);
	m->train_au_max = fmax(m->train_au_max, k->train_au);
	m->train_throughput += k->train_throughput;
	m->whole_au += k->whole_au;
	m->whole_au_min = fmin(m->whole_au_min, k->whole_au);
	m->whole_au_max = fmax(m->whole_au_max, k->whole_au);
	m->exposed_wait_s += k->exposed_wait_s;
	m->barrier_wait_s += k->barrier_wait_s;
	m->compute_s += k->compute_s;
	m->compute_late_s += k->compute_late_s;
	m->late_percent += k->late_percent;
	m->wall_s += k->wall_s;
	m->eval_au += k->eval_au;
	m->eval_throughput += k->eval_throughput;
	m->samples += k->samples;
	m->payload_bytes += k->payload_bytes;
	m->eval_samples += k->eval_samples;
	m->eval_payload_bytes += k->eval_payload_bytes;
	m->eval_wall_s = fmax(m->eval_wall_s, k->eval_wall_s);
	m->steps = min_u64(m->steps, k->steps);
	m->measured_steps = min_u64(m->measured_steps, k->measured_steps);
}

/* Mean bytes that a delivered sample took from the store, counted; DLIO multiplies the configured
 * length. */
static double sample_bytes(const struct result *r, uint64_t payload, uint64_t samples)
{
	if (r->workload->compat.dlio)
		return r->workload->dataset.record_length_bytes;
	return samples ? (double)payload / (double)samples : 0;
}

static void set_means(struct epoch_metrics *m, const struct result *r, uint32_t present,
		      double longest_s)
{
	double n = present;

	m->train_au /= n;
	m->whole_au /= n;
	m->exposed_wait_s /= n;
	m->barrier_wait_s /= n;
	m->compute_s /= n;
	m->compute_late_s /= n;
	m->late_percent /= n;
	m->wall_s /= n;
	m->eval_au /= n;
	m->longest_s = longest_s;
	if (longest_s > 0) {
		m->whole_throughput = (double)m->samples / longest_s;
		m->whole_payload_rate = (double)m->payload_bytes / longest_s;
	}
	if (!m->train_valid)
		m->train_au = m->train_throughput = m->train_au_min = m->train_au_max = 0;
	if (!m->eval_valid)
		m->eval_au = 0;
	m->train_io_mib = m->train_throughput * sample_bytes(r, m->payload_bytes, m->samples) / MIB;
	m->eval_io_mib =
		m->eval_throughput * sample_bytes(r, m->eval_payload_bytes, m->eval_samples) / MIB;
}

static void epoch_metrics_of(struct epoch_metrics *m, const struct result *r, uint32_t epoch)
{
	uint32_t some = result_present_rank(r), present = 0;
	struct rank_epoch_metrics k;
	double longest_s = 0;

	*m = (struct epoch_metrics){
		.train_valid = true,
		.has_eval = r->rank[some].epoch[epoch].has_eval,
		.steps = UINT64_MAX,
		.measured_steps = UINT64_MAX,
		.train_au_min = 100,
		.whole_au_min = 100,
	};
	m->eval_valid = m->has_eval;
	for (uint32_t i = 0; i < r->ranks; i++) {
		if (r->rank[i].lost)
			continue;
		metrics_rank_epoch(r, i, epoch, &k);
		add_rank(m, r, i, &k);
		longest_s = fmax(longest_s, k.wall_s);
		present++;
	}
	set_means(m, r, present ? present : 1, longest_s);
}

/* The statistics over the epochs that made a step, of one member of struct epoch_metrics. */
static struct series_stat over_epochs(const struct run_metrics *m, size_t member, bool only_valid,
				      double *scratch)
{
	size_t n = 0;

	for (uint32_t i = 0; i < m->epochs; i++) {
		const struct epoch_metrics *e = &m->epoch[i];

		if (e->steps == 0 || (only_valid && !e->train_valid))
			continue;
		memcpy(&scratch[n++], (const char *)e + member, sizeof(double));
	}
	return series_stat_of(scratch, n);
}

static void whole_run(struct run_metrics *m)
{
	double compute = 0, wall = 0, longest = 0, samples = 0, bytes = 0;

	for (uint32_t i = 0; i < m->epochs; i++) {
		const struct epoch_metrics *e = &m->epoch[i];

		if (e->steps == 0)
			continue;
		compute += e->whole_au * e->wall_s;
		wall += e->wall_s;
		longest += e->longest_s;
		samples += (double)e->samples;
		bytes += (double)e->payload_bytes;
	}
	if (!(wall > 0) || !(longest > 0))
		return;
	m->whole = (struct whole_run){
		.au = compute / wall,
		.throughput = samples / longest,
		.payload_rate = bytes / longest,
	};
}

static double rate_or_none(double rate, bool valid)
{
	return valid || rate > 0 ? rate : NAN;
}

static void list_evals(struct run_metrics *m, const struct result *r)
{
	struct rank_epoch_metrics k;
	uint32_t n = 0;

	if (!r->workload->compat.dlio) {
		for (uint32_t i = 0; i < m->epochs; i++) {
			const struct epoch_metrics *e = &m->epoch[i];

			if (!e->has_eval)
				continue;
			m->eval_au_list[n] = e->eval_valid ? e->eval_au : NAN;
			m->eval_throughput_list[n++] =
				rate_or_none(e->eval_throughput, e->eval_valid);
		}
	}
	/* DLIO's reduction over ranks appends their lists, and then divides by the ranks */
	for (uint32_t rank = 0; r->workload->compat.dlio && rank < r->ranks; rank++) {
		for (uint32_t i = 0; i < m->epochs; i++) {
			if (!m->epoch[i].has_eval || r->rank[rank].lost)
				continue;
			metrics_rank_epoch(r, rank, i, &k);
			m->eval_au_list[n] = k.eval_valid ? k.eval_au / r->ranks : NAN;
			m->eval_throughput_list[n++] =
				rate_or_none(k.eval_throughput, k.eval_valid);
		}
	}
	m->evals = n;
}

static void eval_series(struct run_metrics *m, const struct result *r, double *scratch)
{
	size_t n = 0;

	m->eval_au = series_stat_of(m->eval_au_list, m->evals);
	m->eval_throughput = series_stat_of(m->eval_throughput_list, m->evals);
	if (r->workload->compat.dlio) {
		double mib = r->workload->dataset.record_length_bytes / MIB;

		m->eval_io = m->eval_throughput;
		m->eval_io.mean *= mib;
		m->eval_io.stdev *= mib;
		m->eval_io.min *= mib;
		m->eval_io.max *= mib;
		return;
	}
	for (uint32_t i = 0; i < m->epochs; i++)
		if (m->epoch[i].eval_valid)
			scratch[n++] = m->epoch[i].eval_io_mib;
	m->eval_io = series_stat_of(scratch, n);
}

static void overshoot(struct run_metrics *m, const struct result *r)
{
	const struct time_dist *d = &r->workload->train.computation_time;
	double sum = 0;
	uint64_t n = 0;

	if (d->kind != TIME_CONSTANT || !(d->a > 0))
		return;
	for (uint32_t k = 0; k < r->ranks; k++)
		for (uint32_t i = 0; i < m->epochs; i++)
			for (uint32_t b = 0; b < r->rank[k].epoch[i].blocks; b++) {
				const struct phase *p = &r->rank[k].epoch[i].block[b];

				for (uint64_t s = 0; s < p->steps; s++) {
					const struct step_times *t = &p->step[s];
					double late = clock_seconds(t->compute_end_ns -
								    t->compute_begin_ns) -
						      d->a;

					sum += late;
					m->compute_overshoot_max_s =
						fmax(m->compute_overshoot_max_s, late);
					n++;
				}
			}
	m->overshoot_known = n > 0;
	m->compute_overshoot_mean_s = n ? sum / (double)n : 0;
}

/* Over all epochs that were begun, finished or not: the requests, to which these bytes are
 * compared, are counted so too. */
static void device_total(struct run_metrics *m, const struct result *r)
{
	bool known = r->usage && r->epochs_begun > 0;

	for (uint32_t i = 0; known && i < r->epochs_begun; i++) {
		/* begun in name only: the run ended at the barrier before its first read */
		if (i >= r->epochs_done && r->rank[result_present_rank(r)].epoch[i].begin_ns == 0)
			continue;
		known = r->usage[i].train.known;
		m->device_bytes += r->usage[i].train.read_bytes;
	}
	m->device_known = known;
	if (!known)
		m->device_bytes = 0;
}

int metrics_compute(struct run_metrics *m, const struct result *r, struct err *e)
{
	size_t lists = r->workload->compat.dlio ? r->ranks : 1;
	double *scratch;

	*m = (struct run_metrics){.whole = {NAN, NAN, NAN}};
	if (!r->rank || r->ranks == 0)
		return 0;
	device_total(m, r);
	if (r->epochs_done == 0)
		return 0;
	m->epoch = try_calloc(r->epochs_done, sizeof(*m->epoch), "the metrics of epochs", e);
	scratch = try_calloc(r->epochs_done, sizeof(*scratch), "the metrics of epochs", e);
	m->eval_au_list = try_calloc(lists * r->epochs_done, sizeof(double), "evaluations", e);
	m->eval_throughput_list =
		try_calloc(lists * r->epochs_done, sizeof(double), "evaluations", e);
	if (!m->epoch || !scratch || !m->eval_au_list || !m->eval_throughput_list) {
		free(scratch);
		metrics_release(m);
		return -ENOMEM;
	}
	m->epochs = r->epochs_done;
	for (uint32_t i = 0; i < m->epochs; i++) {
		epoch_metrics_of(&m->epoch[i], r, i);
		m->payload_bytes += m->epoch[i].payload_bytes;
	}
#define SERIES(member, valid) over_epochs(m, offsetof(struct epoch_metrics, member), valid, scratch)
	m->train_au = SERIES(train_au, true);
	m->late_percent = SERIES(late_percent, false).mean;
	m->train_throughput = SERIES(train_throughput, true);
	m->train_io = SERIES(train_io_mib, true);
	m->whole_au = SERIES(whole_au, false);
	m->whole_throughput = SERIES(whole_throughput, false);
	m->payload_rate = SERIES(whole_payload_rate, false);
#undef SERIES
	whole_run(m);
	list_evals(m, r);
	eval_series(m, r, scratch);
	overshoot(m, r);
	free(scratch);
	return 0;
}

void metrics_release(struct run_metrics *m)
{
	free(m->epoch);
	free(m->eval_au_list);
	free(m->eval_throughput_list);
	*m = (struct run_metrics){0};
}

double metrics_data_bytes(const struct result *r)
{
	const struct workload *w = r->workload;
	const struct dataset *d = r->dataset;
	double samples = (double)workload_samples(w, false);
	double files = 0;

	/* of files that others wrote the key has the mean; their own sizes are not read back */
	if (w->compat.dlio || !d || w->dataset.names == NAMES_LISTED)
		return samples * w->dataset.record_length_bytes;
	if (!d->drawn)
		return samples * (d->files[DATASET_TRAIN]
					  ? (double)dataset_sample_bytes(d, DATASET_TRAIN, 0)
					  : 0);
	for (uint64_t i = 0; i < d->files[DATASET_TRAIN]; i++)
		files += (double)dataset_sample_bytes(d, DATASET_TRAIN, i);
	return files * (double)d->samples_per_file;
}
