/* What judging a run yields, in result.json: verdicts, limit, what would change it, where the time
 * went, the ledger of bytes, stragglers. */
#include <math.h>

#include "result/json_out.h"
#include "result/json_result.h"

static const char *const level_names[] = {[VERDICT_PASS] = "pass",
					  [VERDICT_WARN] = "warn",
					  [VERDICT_FAIL] = "fail",
					  [VERDICT_UNKNOWN] = "unknown"};

json_t *json_limit(const struct limit *l)
{
	json_t *o = json_object();

	json_put_text(o, "cause", l->cause);
	json_put_text(o, "text", l->text);
	json_put_real(o, "lost_percent", l->loss_share);
	if (l->remedy[0])
		json_put_text(o, "remedy", l->remedy);
	return o;
}

static json_t *change_of(const struct what_if *w)
{
	json_t *one = json_object();

	json_put_text(one, "change", w->change);
	if (w->words[0])
		json_put_text(one, "words", w->words);
	json_put_real(one, "whole_au_percent", w->known ? w->au : NAN);
	json_put_real(one, "error_points", w->known ? w->error : NAN);
	json_put_real(one, "low_percent", w->low);
	json_put_real(one, "high_percent", w->high);
	json_put_real(one, "storage_bytes_per_s", w->rate);
	if (!w->known)
		json_put_text(one, "why", w->why);
	return one;
}

static json_t *json_costs_effect(const struct costs_effect *c)
{
	json_t *o = json_object();

	json_put_text(o, "profile", c->profile);
	json_put_bool(o, "spent", c->spent);
	json_put_real(o, "whole_au_percent", c->au);
	json_put_real(o, "low_percent", c->low);
	json_put_real(o, "high_percent", c->high);
	json_put_text(o, "text", c->text);
	return o;
}

json_t *json_what_if(const struct outlook *w)
{
	uint32_t order[WHAT_IF_MAX];
	json_t *o = json_object(), *list = json_array();

	json_put_bool(o, "known", w->known);
	if (w->costs.said)
		json_put(o, "framework_costs", json_costs_effect(&w->costs));
	if (!w->known) {
		json_put_text(o, "why", w->why);
		json_decref(list);
		return o;
	}
	json_put_real(o, "measured_whole_au_percent", w->measured_au);
	json_put_real(o, "modeled_whole_au_percent", w->modeled_au);
	if (w->changes)
		json_put_real(o, "storage_bytes_per_s", w->change[0].rate_now);
	json_put_real(o, "batch_fixed_s", w->fixed_s);
	json_put_real(o, "batch_shared_s", w->shared_s);
	json_put_bool(o, "sharing_known", w->sharing_known);
	json_put_real(o, "reads_latency_share", w->latency_share);
	json_put_real(o, "reads_stream_share", w->stream_share);
	json_put_real(o, "reads_shared_share", w->shared_share);
	json_put_real(o, "reads_queue_share", w->queue_share);
	json_put_bool(o, "probed", w->probed);
	json_put_text(o, "untold", w->untold[0] ? w->untold : NULL);
	json_put(o, "workers_for_90_percent",
		 w->workers_needed ? json_count(w->workers_needed) : json_null());
	if (w->workers_best)
		json_put_int(o, "workers_best", w->workers_best);
	if (w->workers_needed || w->workers_best) {
		json_put_real(o, "workers_whole_au_percent", w->needed_au);
		json_put_real(o, "workers_low_percent", w->needed_low);
		json_put_real(o, "workers_high_percent", w->needed_high);
	}
	what_if_order(w, order);
	for (uint32_t i = 0; i < w->changes; i++)
		json_array_append_new(list, change_of(&w->change[order[i]]));
	json_put(o, "changes", list);
	return o;
}

static json_t *json_taken(unsigned taken)
{
	json_t *list = json_array();

	for (int i = 0; i < TAKEN_KINDS; i++)
		if (taken & 1u << i)
			json_array_append_new(list, json_string(taken_names[i]));
	return list;
}

json_t *json_measured(const struct measured *m)
{
	json_t *o = json_object();

	json_put_text(o, "storage", measured_names[m->storage]);
	json_put_text(o, "text", m->text);
	json_put(o, "taken", json_taken(m->taken));
	return o;
}

static json_t *stall_of(const struct stall *s)
{
	json_t *o = json_object();

	json_put_int(o, "epoch", s->epoch);
	json_put_int(o, "step", s->step);
	json_put_int(o, "rank", s->rank);
	json_put_real(o, "at_s", s->at_s);
	json_put_real(o, "length_s", s->length_s);
	json_put_real(o, "waited_s", s->waited_s);
	json_put_bool(o, "whole_process", s->process);
	return o;
}

json_t *json_steadiness(const struct steadiness *c)
{
	json_t *o = json_object(), *stalls = json_array();

	json_put_bool(o, "known", c->known);
	json_put_text(o, "change", steady_change_names[c->change]);
	json_put_bool(o, "hidden", c->hidden);
	for (uint32_t i = 0; i < c->stalls && i < STALLS_KEPT; i++)
		json_array_append_new(stalls, stall_of(&c->stall[i]));
	json_put_int(o, "stalls", c->stalls);
	json_put_real(o, "stalled_s", c->stalled_s);
	json_put(o, "longest_stalls", stalls);
	if (c->change == CHANGE_NONE)
		return o;
	if (c->rank != UINT32_MAX)
		json_put_int(o, "rank", c->rank);
	if (c->change == CHANGE_ALTERNATE) {
		json_put_real(o, "fast_samples_per_s", c->before_rate);
		json_put_real(o, "slow_samples_per_s", c->last_rate);
		json_put_int(o, "slow_phases", c->slow_phases);
		json_put_real(o, "slow_phase_s", c->slow_s);
		json_put_real(o, "period_s", c->period_s > 0 ? c->period_s : NAN);
		return o;
	}
	json_put_int(o, "epoch", c->epoch);
	json_put_int(o, "step", c->step);
	json_put_real(o, "at_s", c->at_s);
	json_put_text(o, "part", time_part_names[c->part]);
	json_put_real(o, "before_samples_per_s", c->before_rate);
	json_put_real(o, "lasting_samples_per_s", c->last_rate);
	json_put_real(o, "before_payload_bytes_per_s", c->before_payload);
	json_put_real(o, "lasting_payload_bytes_per_s", c->last_payload);
	json_put_real(o, "before_au_percent", c->before_au);
	json_put_real(o, "last_au_percent", c->last_au);
	json_put_real(o, "last_part_percent", 100 * c->last_share);
	json_put_real(o, "before_batch_read_s", c->before_read_s);
	json_put_real(o, "last_batch_read_s", c->last_read_s);
	if (c->kept_up_s > 0)
		json_put_real(o, "keeps_up_for_s", c->kept_up_s);
	return o;
}

json_t *json_verdicts(const struct judgement *j)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < j->verdicts; i++) {
		const struct verdict *v = &j->verdict[i];
		json_t *o = json_object();

		json_put_text(o, "check", v->check);
		json_put_text(o, "level", level_names[v->level]);
		json_put_text(o, "text", v->text);
		if (v->takes)
			json_put(o, "takes", json_taken(v->takes));
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *time_parts(const double part[TIME_PARTS], double wall, double scale)
{
	json_t *o = json_object();

	for (int p = 0; p < TIME_PARTS; p++)
		json_put_real(o, time_part_names[p], wall > 0 ? part[p] * scale : 0);
	return o;
}

json_t *json_decomposition(const struct decomposition *d)
{
	static const char *const work[WORK_KINDS] = {"open",      "metadata",    "data",
						     "decode",    "preprocess",  "transport",
						     "framework", "no_processor"};
	json_t *o = json_object(), *w = json_object();

	json_put_real(o, "wall_s", d->wall_s);
	json_put(o, "mean_over_ranks_s", time_parts(d->mean_s, d->wall_s, 1));
	json_put(o, "mean_over_ranks_percent", time_parts(d->mean_s, d->wall_s, 100 / d->wall_s));
	json_put_real(o, "critical_path_wall_s", d->critical_wall_s);
	json_put(o, "critical_path_s", time_parts(d->critical_s, d->critical_wall_s, 1));
	json_put(o, "critical_path_percent",
		 time_parts(d->critical_s, d->critical_wall_s, 100 / d->critical_wall_s));
	for (int k = 0; k < WORK_KINDS; k++)
		json_put_real(w, work[k], d->work_s[k]);
	json_put(o, "workers_s", w);
	/* the rest of no_processor is in waits */
	json_put_real(o, "late_compute_s", d->late_compute_s);
	json_put_real(o, "late_barrier_s", d->late_barrier_s);
	json_put_real(o, "late_framework_s", d->late_framework_s);
	/* the rest of framework is in waits */
	json_put_real(o, "framework_loop_s", d->framework_loop_s);
	json_put_real(o, "hidden_io_s", d->hidden_io_s);
	json_put_real(o, "ready_batches_mean", d->ready_mean);
	json_put_real(o, "batch_service_mean_s", d->service_mean_s);
	json_put_real(o, "batch_service_stdev_s", d->service_dev_s);
	return o;
}

static json_t *slow_sample(const struct result *r, const struct stragglers *s, uint32_t i)
{
	const struct straggling_sample *one = &s->sample[i];
	json_t *o = json_object();
	char path[4096];

	json_put_int(o, "rank", one->rank);
	json_put_text(o, "host", result_rank_host(r, one->rank)->hostname);
	json_put_int(o, "sample", one->of.sample);
	json_put_text(o, "file", result_sample_file(r, one->of.sample, path, sizeof(path)));
	json_put_real(o, "begin_s", (double)(one->of.begin_ns - r->begin_ns) / 1e9);
	json_put_real(o, "seconds", (double)one->of.ns / 1e9);
	if (s->mean_s > 0)
		json_put_real(o, "times_mean", (double)one->of.ns / 1e9 / s->mean_s);
	return o;
}

json_t *json_stragglers(const struct result *r)
{
	const struct decomposition *d = &r->judged.time;
	const struct stragglers *s = &r->judged.stragglers;
	json_t *o = json_object(), *list = json_array();

	if (r->ranks > 1 && d->last_share > 0) {
		json_t *last = json_object();

		json_put_int(last, "rank", d->last_rank);
		json_put_text(last, "host", result_rank_host(r, d->last_rank)->hostname);
		json_put_real(last, "last_in_percent_of_steps", 100 * d->last_share);
		json_put_real(last, "behind_the_others_s", d->last_behind_s);
		json_put_text(last, "spends_more_on", time_part_names[d->last_part]);
		json_put(o, "slowest_rank", last);
	}
	if (r->nodes > 1 && d->last_node_share > 0) {
		const struct host_facts *h = result_node_host(r, d->last_node);
		json_t *last = json_object();

		json_put_text(last, "host", h ? h->hostname : NULL);
		json_put_real(last, "last_in_percent_of_steps", 100 * d->last_node_share);
		json_put(o, "slowest_host", last);
	}
	for (uint32_t i = 0; i < s->samples; i++)
		json_array_append_new(list, slow_sample(r, s, i));
	json_put(o, "slowest_samples", list);
	return o;
}

static const char *const states[] = {
	[LEDGER_AGREES] = "agrees", [LEDGER_EXPLAINED] = "explained", [LEDGER_FLAGGED] = "flagged"};

/* One number an epoch, null where it is not known; NULL when none is. */
static json_t *ledger_epochs(const struct judgement *j, enum ledger_key key, bool eval)
{
	json_t *list = json_array();
	bool some = false;

	for (uint32_t i = 0; i < j->epochs; i++) {
		const struct epoch_judgement *e = &j->epoch[i];
		double bytes = eval ? e->eval_bytes[key] : e->train_bytes[key];

		some = some || !isnan(bytes);
		json_array_append_new(list,
				      isnan(bytes) ? json_null() : json_count((uint64_t)bytes));
	}
	if (some)
		return list;
	json_decref(list);
	return NULL;
}

static json_t *ledger_line(const struct result *r, enum ledger_key key)
{
	const struct ledger *l = &r->judged.ledger;
	const struct ledger_line *line = &l->line[key];
	json_t *o = json_object(), *list;
	char place[256];

	json_put_text(o, "key", ledger_keys[key]);
	json_put_text(o, "title", ledger_titles[key]);
	if (result_ledger_place(r, key, place, sizeof(place))[0])
		json_put_text(o, "place", place);
	json_put_int(o, "bytes", (uint64_t)line->bytes);
	if ((list = ledger_epochs(&r->judged, key, false)))
		json_put(o, "epoch_bytes", list);
	if ((list = ledger_epochs(&r->judged, key, true)))
		json_put(o, "evaluation_bytes", list);
	if (line->against < 0)
		return o;
	json_put_text(o, "compared_with", ledger_keys[line->against]);
	if (l->line[line->against].bytes > 0)
		json_put_real(o, "percent", 100 * line->bytes / l->line[line->against].bytes);
	json_put_text(o, "state", states[line->state]);
	if (line->why[0])
		json_put_text(o, "why", line->why);
	return o;
}

json_t *json_ledger(const struct result *r)
{
	json_t *list = json_array();

	for (int k = 0; k < LEDGER_LINES; k++)
		if (r->judged.ledger.line[k].known)
			json_array_append_new(list, ledger_line(r, (enum ledger_key)k));
	return list;
}
