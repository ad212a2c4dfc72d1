/* What checkpoints took, over all ranks. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "result/metrics.h"

static const double GIB = 1073741824.0;

double checkpoint_size_bytes(const struct result *r)
{
	const struct checkpoint_totals *t = &r->checkpoint_totals;

	return r->workload->compat.dlio
		       ? (double)t->dlio_model_bytes + (double)t->dlio_optimizer_bytes
		       : (double)t->total_bytes;
}

static const struct checkpoint_times *times_of(const struct result *r, uint32_t rank,
					       uint32_t epoch, uint32_t index, bool load)
{
	const struct rank_epoch *ep = &r->rank[rank].epoch[epoch];

	if (index >= (load ? ep->loads : ep->saves))
		return NULL;
	return load ? &ep->load[index] : &ep->save[index];
}

/* What counters moved while any rank was at it: of each process, and of the disk of the host. */
struct moved {
	uint64_t process_from, process_to, disk_from, disk_to;
};

static const struct moved none_moved = {.process_from = UINT64_MAX, .disk_from = UINT64_MAX};

static void add_moved(struct moved *m, struct checkpoint_measure *out,
		      const struct checkpoint_times *t, bool load)
{
	uint64_t from = load ? t->io_before.read_bytes : t->io_before.write_bytes;
	uint64_t to = load ? t->io_after.read_bytes : t->io_after.write_bytes;

	out->process_known = out->process_known && t->io_before.known && t->io_after.known;
	out->disk_known = out->disk_known && t->disk_known;
	m->process_from = from < m->process_from ? from : m->process_from;
	m->process_to = to > m->process_to ? to : m->process_to;
	m->disk_from = t->disk_before_bytes < m->disk_from ? t->disk_before_bytes : m->disk_from;
	m->disk_to = t->disk_after_bytes > m->disk_to ? t->disk_after_bytes : m->disk_to;
}

static void end_process(struct moved *m, struct checkpoint_measure *out)
{
	if (m->process_to >= m->process_from)
		out->process_bytes += m->process_to - m->process_from;
	m->process_from = UINT64_MAX;
	m->process_to = 0;
}

static void add_rank_times(struct checkpoint_measure *out, const struct checkpoint_times *t,
			   uint32_t ranks)
{
	double took = clock_seconds(t->end_ns - t->begin_ns);
	double hidden = clock_seconds(t->end_ns - t->begin_ns - t->stall_ns - t->waited_ns);

	out->duration_s = fmax(out->duration_s, took);
	out->shortest_s = fmin(out->shortest_s, took);
	out->stall_mean_s += clock_seconds(t->stall_ns) / ranks;
	out->stall_max_s = fmax(out->stall_max_s, clock_seconds(t->stall_ns));
	out->wait_max_s = fmax(out->wait_max_s, clock_seconds(t->wait_ns));
	out->stage_max_s = fmax(out->stage_max_s, clock_seconds(t->stage_ns));
	out->write_max_s = fmax(out->write_max_s, clock_seconds(t->stat.total_ns));
	out->hidden_mean_s += fmax(0, hidden) / ranks;
	out->files += t->stat.files;
	out->payload_bytes += t->stat.payload_bytes;
	out->file_bytes += t->stat.file_bytes;
}

bool checkpoint_measure_of(const struct result *r, uint32_t epoch, uint32_t index, bool load,
			   struct checkpoint_measure *out)
{
	uint32_t each = r->processes ? r->ranks / r->processes : r->ranks;
	struct moved m = none_moved;
	int64_t begin = INT64_MAX, end = 0;
	bool begun = false;

	*out = (struct checkpoint_measure){
		.epoch = epoch + 1,
		.number = index + 1,
		.done = true,
		.shortest_s = INFINITY,
		.process_known = true,
		/* disks of several hosts count apart */
		.disk_known = r->nodes <= 1,
	};
	for (uint32_t k = 0; k < r->ranks; k++) {
		const struct checkpoint_times *t = times_of(r, k, epoch, index, load);

		begun = begun || t;
		if (!t || !t->done) {
			out->done = false;
			continue;
		}
		add_rank_times(out, t, r->ranks);
		add_moved(&m, out, t, load);
		begin = t->begin_ns < begin ? t->begin_ns : begin;
		end = t->end_ns > end ? t->end_ns : end;
		if (k == 0)
			out->first_rank_s = clock_seconds(t->end_ns - t->begin_ns);
		if ((k + 1) % each == 0)
			end_process(&m, out);
	}
	if (!out->done) {
		out->process_known = out->disk_known = false;
		out->shortest_s = 0;
		return begun;
	}
	out->span_s = clock_seconds(end - begin);
	out->rate = out->duration_s > 0 ? checkpoint_size_bytes(r) / out->duration_s : 0;
	out->disk_bytes = m.disk_to - m.disk_from;
	return true;
}

void checkpoint_series(const struct result *r, bool load, struct series_stat *duration,
		       struct series_stat *rate)
{
	double *v, *w, size = checkpoint_size_bytes(r) / GIB;
	struct checkpoint_measure one;
	uint32_t present = result_present_rank(r);
	size_t n = 0, all = 0;

	*duration = *rate = (struct series_stat){0};
	for (uint32_t i = 0; r->rank && r->ranks && i < r->epochs_begun; i++)
		all += load ? r->rank[present].epoch[i].loads : r->rank[present].epoch[i].saves;
	if (all == 0)
		return;
	v = xcalloc(2 * all, sizeof(*v));
	w = v + all;
	for (uint32_t i = 0; i < r->epochs_begun; i++)
		for (uint32_t c = 0; n < all && checkpoint_measure_of(r, i, c, load, &one); c++) {
			double s = r->workload->compat.dlio ? one.first_rank_s : one.duration_s;

			if (!one.done || !(s > 0))
				continue;
			v[n] = s;
			w[n++] = size / s;
		}
	*duration = series_stat_of(v, n);
	*rate = series_stat_of(w, n);
	free(v);
}

/* Then no step follows in which ranks without a stall wait for the others. */
static bool ends_epoch(const struct result *r, uint32_t epoch, uint32_t index)
{
	const struct rank_epoch *ep = &r->rank[result_present_rank(r)].epoch[epoch];
	uint64_t steps = 0;

	for (uint32_t b = 0; b < ep->blocks; b++)
		steps += ep->block[b].steps;
	return index < ep->saves && ep->save[index].total_steps == steps;
}

double checkpoint_stall_s(const struct result *r, const struct checkpoint_measure *m)
{
	return ends_epoch(r, m->epoch - 1, m->number - 1) ? m->stall_mean_s : m->stall_max_s;
}

void checkpoint_cost(const struct result *r, double *stall_s, double *au, double *au_without)
{
	double compute = 0, wall = 0, stall = 0;

	for (uint32_t k = 0; r->rank && k < r->ranks; k++)
		for (uint32_t i = 0; i < r->epochs_done; i++) {
			struct rank_epoch_metrics one;

			metrics_rank_epoch(r, k, i, &one);
			compute += (one.compute_s - one.compute_late_s) / r->ranks;
			wall += one.wall_s / r->ranks;
		}
	for (uint32_t i = 0; r->rank && i < r->epochs_done; i++) {
		struct checkpoint_measure one;

		for (uint32_t c = 0; checkpoint_measure_of(r, i, c, false, &one); c++)
			stall += checkpoint_stall_s(r, &one);
	}
	*stall_s = stall;
	*au = wall > 0 ? 100 * compute / wall : NAN;
	/* a rank that writes nothing computes while another stands still */
	*au_without = compute > 0 ? 100 * compute / fmax(wall - stall, compute) : *au;
}
