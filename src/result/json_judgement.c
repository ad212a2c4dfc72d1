/* What judging a run yields, in result.json: verdicts, limit, what would change it. */
#include <math.h>

#include "result/fields.h"
#include "result/json_facts.h"
#include "result/json_out.h"
#include "result/json_result.h"

static const char *const level_names[] = {[VERDICT_PASS] = "pass",
					  [VERDICT_WARN] = "warn",
					  [VERDICT_FAIL] = "fail",
					  [VERDICT_UNKNOWN] = "unknown"};

/* Texts are for people; who reads a result takes the facts beside them. */
json_t *json_limit(const struct limit *l)
{
	json_t *o = json_object();
	struct buf text = {0};

	json_put_text(o, field_key(F_LIMIT_CAUSE), cause_name(l->cause));
	json_put_real(o, field_key(F_LIMIT_LOST), l->loss_share);
	if (l->cause_share > 0)
		json_put_real(o, field_key(F_LIMIT_CAUSE_SHARE), l->cause_share);
	json_put(o, field_key(F_LIMIT_FACTS), json_facts(&l->facts));
	json_put(o, field_key(F_LIMIT_EFFECTS), json_facts(&l->effects));
	limit_put(&text, l);
	json_put_text(o, field_key(F_LIMIT_SAID), text.data);
	if (l->remedy.count) {
		json_put(o, field_key(F_LIMIT_REMEDY_FACTS), json_facts(&l->remedy));
		json_put_words(o, field_key(F_LIMIT_REMEDY), &l->remedy, WORDS_SHORT);
	}
	buf_release(&text);
	return o;
}

static void put_sentence(json_t *o, const char *key, const struct fact *f)
{
	char text[512];

	json_put_text(o, key, words_of(f, WORDS_SHORT, text, sizeof(text)));
}

static json_t *change_of(const struct what_if *w)
{
	json_t *one = json_object();
	struct buf change = {0};

	what_if_put(&change, w);
	json_put_text(one, "change", change.data);
	buf_release(&change);
	if (w->what.reason != REASON_NONE)
		json_put(one, "change_fact", json_fact(&w->what));
	if (w->what.reason != REASON_NONE && w->keys[0])
		put_sentence(one, "words", &w->what);
	json_put_real(one, "whole_au_percent", w->known ? w->au : NAN);
	json_put_real(one, "error_points", w->known ? w->error : NAN);
	json_put_real(one, "low_percent", w->low);
	json_put_real(one, "high_percent", w->high);
	json_put_real(one, "storage_bytes_per_s", w->rate);
	if (!w->known) {
		struct fact why = fact_of(w->why, 0, NULL);

		json_put(one, "why_fact", json_fact(&why));
		put_sentence(one, "why", &why);
	}
	return one;
}

static json_t *json_costs_effect(const struct costs_effect *c)
{
	json_t *o = json_object();
	struct fact f = costs_effect_fact(c);

	json_put_text(o, "profile", c->profile);
	json_put_bool(o, "spent", c->spent);
	json_put_real(o, "whole_au_percent", c->au);
	json_put_real(o, "low_percent", c->low);
	json_put_real(o, "high_percent", c->high);
	json_put_real(o, "dlio_au_percent", c->dlio_au);
	json_put_real(o, "loop_au_percent", c->loop_au);
	put_sentence(o, "text", &f);
	return o;
}

json_t *json_what_if(const struct outlook *w)
{
	uint32_t order[WHAT_IF_MAX];
	json_t *o = json_object(), *list = json_array();

	json_put_bool(o, "known", w->known);
	if (w->costs.said)
		json_put(o, field_key(F_WHAT_IF_COSTS), json_costs_effect(&w->costs));
	if (!w->known) {
		json_put(o, "why_fact", json_fact(&w->why));
		put_sentence(o, "why", &w->why);
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
	if (w->untold.reason != REASON_NONE) {
		json_put(o, "untold_fact", json_fact(&w->untold));
		put_sentence(o, "untold", &w->untold);
	} else {
		json_put(o, "untold", json_null());
	}
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
	json_put(o, field_key(F_WHAT_IF_CHANGES), list);
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

json_t *json_measured(const struct judgement *j)
{
	const struct measured *m = &j->measured;
	struct buf text = {0};
	json_t *o = json_object();

	measured_put(&text, j);
	json_put_text(o, field_key(F_MEASURED_STORAGE), measured_names[m->storage]);
	if (m->storage == MEASURED_NOT || m->storage == MEASURED_PART)
		json_put_text(o, field_key(F_MEASURED_INSTEAD), reason_name(m->instead));
	json_put_text(o, field_key(F_MEASURED_SAID), text.data);
	buf_release(&text);
	json_put(o, field_key(F_MEASURED_FACTS), json_facts(&m->facts));
	json_put(o, field_key(F_MEASURED_TAKEN), json_taken(m->taken));
	return o;
}

json_t *json_verdicts(const struct judgement *j)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < j->verdicts; i++) {
		const struct verdict *v = &j->verdict[i];
		json_t *o = json_object();

		json_put_text(o, field_key(F_VERDICT_CHECK), v->check);
		json_put_text(o, field_key(F_VERDICT_LEVEL), level_names[v->level]);
		json_put_words(o, field_key(F_VERDICT_SAID), &v->facts, WORDS_LONG);
		json_put(o, field_key(F_VERDICT_FACTS), json_facts(&v->facts));
		if (v->takes)
			json_put(o, field_key(F_VERDICT_TAKES), json_taken(v->takes));
		json_array_append_new(list, o);
	}
	return list;
}
