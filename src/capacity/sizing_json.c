/* A plan as JSON: docs/plan.md has the keys. */
#include <math.h>

#include "base/alloc.h"
#include "capacity/sizing.h"
#include "result/json_out.h"

static json_t *json_range(const struct sizing_range *r, double by, bool bounded)
{
	json_t *o = json_object();

	json_put_real(o, bounded ? "low" : "at_least", r->low * by);
	json_put_real(o, "estimate", r->mid * by);
	json_put_real(o, "high", r->high * by);
	return o;
}

static void put_duty(json_t *o, const struct duty *d)
{
	json_put_text(o, "workload", d->name);
	json_put_text(o, "model", d->model[0] ? d->model : NULL);
	json_put_text(o, "accelerator", d->accelerator[0] ? d->accelerator : NULL);
	json_put_real(o, "batch_size", d->batch);
	json_put_real(o, "computation_s", d->step_s);
	json_put_real(o, "sample_bytes", d->sample_bytes);
	if (d->target > 0)
		json_put_real(o, "target_percent", 100 * d->target);
}

static json_t *json_point(const struct point *p)
{
	json_t *o = json_object();

	json_put_text(o, "from", p->from);
	json_put_int(o, "accelerators", (uint64_t)p->accelerators);
	json_put_int(o, "hosts", (uint64_t)p->hosts);
	put_duty(o, &p->of);
	json_put_real(o, "samples_per_s", p->samples_per_s);
	json_put_real(o, "bytes_per_s", p->samples_per_s * p->of.sample_bytes);
	json_put_real(o, "au_percent", 100 * p->au);
	json_put_real(o, "by_rate_percent", 100 * point_share(p));
	json_put_bool(o, "largest", p->largest);
	return o;
}

static json_t *json_row(const struct sizing *s, const struct sizing_row *r)
{
	static const char *const answers[] = {
		[SIZING_NO] = "no", [SIZING_YES] = "yes", [SIZING_UNKNOWN] = "not known"};
	json_t *o = json_object(), *need = json_object(), *rules = json_object();

	json_put_int(o, "accelerators", (uint64_t)r->accelerators);
	json_put_int(o, "hosts", (uint64_t)r->hosts);
	json_put_text(o, "passes", s->plan.target > 0 ? answers[r->passes] : NULL);
	json_put_text(o, "enough", s->plan.target > 0 ? answers[r->enough] : NULL);
	json_put_bool(o, "bounded", r->bounded);
	json_put(o, "au_percent", json_range(&r->au, 100, r->bounded));
	json_put(o, "by_rate_percent", json_range(&r->share, 100, r->bounded));
	json_put(o, "samples_per_s", json_range(&r->samples_per_s, 1, r->bounded));
	json_put(o, "bytes_per_s", json_range(&r->samples_per_s, s->plan.sample_bytes, r->bounded));
	json_put_real(need, "samples_per_s", r->need_samples);
	json_put_real(need, "bytes_per_s", r->need_bytes);
	json_put_real(need, "requests_per_s", r->need_requests);
	json_put_real(need, "opens_per_s", r->need_opens);
	json_put_real(need, "samples_per_s_at_100", r->full_samples);
	json_put_real(need, "bytes_per_s_at_100", r->full_bytes);
	json_put(o, "needs", need);
	json_put_text(o, "limited_by", r->limit);
	json_put_text(o, "assumption", r->assumption[0] ? r->assumption : NULL);
	json_put_text(o, "next_measurement", r->next[0] ? r->next : NULL);
	json_put_text(o, "by", r->simulated ? "simulation" : "points");
	json_put_real(rules, "linear_by_rate_percent", 100 * r->linear_share);
	json_put_real(rules, "same_bytes_by_rate_percent", 100 * r->cap_share);
	json_put(o, "simpler_rules", rules);
	return o;
}

static json_t *json_most(const struct sizing *s)
{
	json_t *o = json_range(&s->most.n, 1, s->most.bounded);

	json_put_int(o, "hosts", (uint64_t)s->row[0].hosts);
	json_put_bool(o, "bounded", s->most.bounded);
	json_put_real(o, "searched_to", s->most.searched);
	return o;
}

static json_t *json_at(const struct goodput_at *a)
{
	json_t *o = json_object();

	json_put_real(o, "interval_s", a->interval_s);
	json_put_real(o, "goodput_percent", 100 * a->share);
	json_put_real(o, "points_per_gigabyte_per_s", 100 * a->per_gigabyte);
	return o;
}

static json_t *json_goodput(const struct sizing *s)
{
	const struct goodput *g = &s->goodput;
	const struct goodput_input *in = &s->checkpoint;
	json_t *o = json_object();

	json_put_int(o, "accelerators", (uint64_t)in->accelerators);
	json_put_real(o, "bytes", in->bytes);
	json_put_real(o, "write_bytes_per_s", in->write_rate);
	json_put_real(o, "accelerator_mtbf_h", in->mtbf_one_s / 3600);
	json_put_real(o, "mtbf_s", g->mtbf_s);
	json_put_real(o, "pause_s", g->pause_s);
	json_put_real(o, "write_s", g->write_s);
	json_put_real(o, "restart_s", g->restart_s);
	json_put_real(o, "young_s", g->young_s);
	json_put_real(o, "daly_s", g->daly_s);
	json_put_real(o, "availability_s", g->availability_s);
	if (isfinite(g->pause_s))
		json_put_real(o, "exact_s", goodput_best(g->pause_s, g->mtbf_s));
	if (isfinite(g->best.share)) {
		json_put(o, "best", json_at(&g->best));
		json_put_bool(o, "best_is_shortest", g->best_is_bound);
		json_put_real(o, "least_interval_s", g->least_interval_s);
		json_put_real(o, "write_demand_bytes_per_s", g->read_demand);
	}
	if (isfinite(g->asked.interval_s)) {
		json_put(o, "asked", json_at(&g->asked));
		json_put_bool(o, "asked_waits", g->asked_waits);
	}
	json_put_real(o, "target_loss_percent", 100 * in->loss);
	json_put_real(o, "needed_write_bytes_per_s", g->needed_rate);
	json_put_real(o, "restart_loss_percent", 100 * g->restart_loss);
	json_put_real(o, "local_interval_s", g->local_interval_s);
	json_put_real(o, "shared_interval_s", g->shared_interval_s);
	json_put_real(o, "two_level_goodput_percent", 100 * g->two_level_share);
	return o;
}

json_t *sizing_json(const struct sizing *s)
{
	json_t *o = json_object(), *points = json_array(), *rows = json_array();

	json_put_int(o, "schema", 1);
	json_put_mark(o);
	put_duty(o, &s->plan);
	json_put_bool(o, "storage_grows", s->grows);
	for (size_t i = 0; i < s->points; i++)
		json_array_append_new(points, json_point(&s->point[i]));
	for (size_t i = 0; i < s->rows; i++)
		json_array_append_new(rows, json_row(s, &s->row[i]));
	json_put(o, "points", points);
	json_put(o, "plans", rows);
	if (s->most.known)
		json_put(o, "most_that_pass", json_most(s));
	if (s->has_goodput)
		json_put(o, "checkpoints", json_goodput(s));
	json_put(o, "notes", json_texts(&s->notes));
	return o;
}
