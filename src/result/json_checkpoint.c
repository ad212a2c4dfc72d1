/* The checkpoints of result.json. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "result/json_out.h"
#include "result/json_result.h"

static void put_count(json_t *o, const char *key, bool known, uint64_t v)
{
	json_put(o, key, known ? json_count(v) : json_null());
}

static json_t *one_measure(const struct checkpoint_measure *c, bool load, bool async)
{
	json_t *o = json_object();

	json_put_int(o, "epoch", c->epoch);
	json_put_int(o, "number", c->number);
	json_put_bool(o, "whole", c->done);
	if (!c->done)
		return o;
	json_put_real(o, "duration_s", c->duration_s);
	json_put_real(o, "duration_shortest_rank_s", c->shortest_s);
	json_put_real(o, "duration_rank_0_s", c->first_rank_s);
	json_put_real(o, "span_s", c->span_s);
	json_put_real(o, "throughput_bytes_per_s", c->rate);
	json_put_int(o, "files", c->files);
	json_put_int(o, "tensor_bytes", c->payload_bytes);
	if (!load) {
		json_put_int(o, "file_bytes", c->file_bytes);
		json_put_real(o, "stall_mean_s", c->stall_mean_s);
		json_put_real(o, "stall_max_s", c->stall_max_s);
	}
	if (async && !load) {
		json_put_real(o, "waited_for_previous_s", c->wait_max_s);
		json_put_real(o, "stage_s", c->stage_max_s);
		json_put_real(o, "write_s", c->write_max_s);
		json_put_real(o, "hidden_s", c->hidden_mean_s);
	}
	put_count(o, load ? "process_read_bytes" : "process_write_bytes", c->process_known,
		  c->process_bytes);
	put_count(o, load ? "disk_read_bytes" : "disk_written_bytes", c->disk_known, c->disk_bytes);
	return o;
}

static json_t *all_measures(const struct result *r, bool load)
{
	bool async = r->workload->checkpoint.async && r->trained;
	json_t *o = json_object(), *list = json_array();
	struct io_stat *sum = xmalloc(sizeof(*sum));
	struct checkpoint_measure one;
	struct series_stat s, unused;

	checkpoint_series(r, load, &s, &unused);
	json_put_int(o, "count", s.count);
	if (s.count) {
		json_put_real(o, "duration_mean_s", s.mean);
		json_put_real(o, "duration_stdev_s", s.stdev);
		json_put_real(o, "duration_min_s", s.min);
		json_put_real(o, "duration_max_s", s.max);
		json_put_real(o, "throughput_mean_bytes_per_s", unused.mean * 1073741824.0);
		json_put_real(o, "throughput_min_bytes_per_s", unused.min * 1073741824.0);
	}
	for (uint32_t i = 0; i < r->epochs_begun; i++)
		for (uint32_t c = 0; checkpoint_measure_of(r, i, c, load, &one); c++)
			json_array_append_new(list, one_measure(&one, load, async));
	json_put(o, "each", list);
	io_stat_init(sum);
	for (uint32_t k = 0; k < r->ranks; k++)
		if (load ? r->rank[k].load_io : r->rank[k].save_io)
			io_stat_merge(sum, load ? r->rank[k].load_io : r->rank[k].save_io);
	json_put(o, "io", json_io(sum));
	free(sum);
	return o;
}

static void put_cost(json_t *o, const struct result *r)
{
	double stall, au, without, drain = 0;

	if (!r->trained)
		return;
	checkpoint_cost(r, &stall, &au, &without);
	for (uint32_t k = 0; k < r->ranks; k++)
		drain = fmax(drain, (double)r->rank[k].drain_ns / 1e9);
	json_put_real(o, "stall_s", stall);
	json_put_real(o, "after_last_epoch_s", drain);
	if (isfinite(au) && isfinite(without)) {
		json_put_real(o, "whole_au_percent", au);
		json_put_real(o, "whole_au_without_stall_percent", without);
	}
}

json_t *json_checkpoint(const struct result *r)
{
	const struct checkpoint_totals *t = &r->checkpoint_totals;
	const struct workload *w = r->workload;
	json_t *o = json_object();

	json_put_text(o, "folder", w->checkpoint.checkpoint_folder);
	json_put_bool(o, "fsync", w->checkpoint.fsync);
	json_put_bool(o, "async", w->checkpoint.async && r->trained);
	json_put_text(o, "duration_counts",
		      w->compat.dlio ? "rank 0" : "the longest of any rank, by its own clock");
	json_put_int(o, "parameters", r->checkpoint_parameters);
	json_put_int(o, "model_bytes", t->model_bytes);
	json_put_int(o, "optimizer_bytes", t->optimizer_bytes);
	json_put_int(o, "total_bytes", t->total_bytes);
	json_put_int(o, "whole_job_bytes", t->whole_bytes);
	json_put_int(o, "whole_job_ranks", t->whole_ranks);
	json_put_int(o, "dlio_total_bytes", t->dlio_model_bytes + t->dlio_optimizer_bytes);
	json_put_int(o, "writing_ranks", t->writers);
	put_cost(o, r);
	json_put(o, "save", all_measures(r, false));
	json_put(o, "load", all_measures(r, true));
	return o;
}
