/* A plan as text for a terminal, and as JSON. */

#include <math.h>
#include <stdio.h>

#include "base/say.h"
#include "base/str.h"
#include "plan/sizing.h"
#include "result/json_out.h"
#include "workload/need.h"

#define INDENT 22

/* "  name        text", wrapped; releases the text. */
static void put_line(struct buf *out, size_t columns, const char *name, struct buf *text)
{
	buf_say(out, "  %-*s", INDENT - 2, name);
	buf_wrap(out, text->data ? text->data : "", INDENT, INDENT, columns);
	buf_release(text);
}

static void put_said(struct buf *out, size_t columns, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
static void put_said(struct buf *out, size_t columns, const char *name, const char *fmt, ...)
{
	struct buf text = {0};
	va_list ap;

	va_start(ap, fmt);
	buf_vsay(&text, fmt, ap);
	va_end(ap);
	put_line(out, columns, name, &text);
}

/* "1,234,567", "12.3" */
static const char *number(double v, char *out, size_t size)
{
	char digits[40];
	size_t n, at = 0;

	if (v < 99.95) {
		snprintf(out, size, v < 9.995 ? "%.2f" : "%.1f", v);
		return out;
	}
	n = (size_t)snprintf(digits, sizeof(digits), "%.0f", v);
	for (size_t i = 0; i < n && at + 2 < size; i++) {
		if (i && (n - i) % 3 == 0)
			out[at++] = ',';
		out[at++] = digits[i];
	}
	out[at] = '\0';
	return out;
}

static const char *count(double v, char *out, size_t size)
{
	if (v >= 100)
		return number(v, out, size);
	snprintf(out, size, "%.0f", v);
	return out;
}

/* "93.4 % (91.0 to 95.2)", "at least 71.5 %; 93.4 % (up to 95.2) if nothing else limits it" */
static void put_share(struct buf *out, const struct sizing_range *r, bool bounded)
{
	if (bounded)
		buf_say(out, "%.1f %% (%.1f to %.1f)", 100 * r->mid, 100 * r->low, 100 * r->high);
	else
		buf_say(out, "at least %.1f %%; %.1f %% (up to %.1f) if nothing else limits it",
			100 * r->low, 100 * r->mid, 100 * r->high);
}

static const char *const words[] = {
	[SIZING_NO] = "no", [SIZING_YES] = "yes", [SIZING_UNKNOWN] = "not known"};

static void put_answers(const struct sizing *s, const struct sizing_row *r, size_t columns,
			struct buf *out)
{
	struct buf text = {0};

	if (s->plan.target > 0)
		buf_say(&text, "%s: ", words[r->passes]);
	buf_puts(&text, "AU as DLIO defines it ");
	put_share(&text, &r->au, r->bounded);
	if (s->plan.target > 0)
		buf_say(&text, "; target %.4g %%", 100 * s->plan.target);
	put_line(out, columns, "does it pass?", &text);
	if (s->plan.target > 0)
		buf_say(&text, "%s: ", words[r->enough]);
	buf_puts(&text, "by samples/s they compute ");
	put_share(&text, &r->share, r->bounded);
	buf_puts(&text, r->bounded ? " of the time" : "");
	put_line(out, columns, "is it enough?", &text);
}

static void put_need(const struct sizing *s, const struct sizing_row *r, size_t columns,
		     struct buf *out)
{
	char rate[32], full[32], samples[48], opens[48], requests[48];
	struct buf text = {0};

	need_rate_text(r->need_bytes, rate, sizeof(rate));
	need_rate_text(r->full_bytes, full, sizeof(full));
	buf_say(&text, "%s, %s samples/s", rate, number(r->need_samples, samples, sizeof(samples)));
	if (isfinite(r->need_requests))
		buf_say(&text, ", %s requests/s",
			number(r->need_requests, requests, sizeof(requests)));
	if (isfinite(r->need_opens))
		buf_say(&text, ", %s opens/s", number(r->need_opens, opens, sizeof(opens)));
	if (s->plan.target > 0)
		buf_say(&text, " for the target; %s at 100 %%", full);
	if (!isfinite(r->need_requests))
		buf_puts(&text, "; requests/s are not known without a result of Stoker (--from)");
	put_line(out, columns, "storage needed", &text);
}

static void put_rate(const struct sizing *s, const struct sizing_row *r, size_t columns,
		     struct buf *out)
{
	char low[48], mid[48], high[48], bytes[32];
	struct buf text = {0};

	number(r->samples_per_s.low, low, sizeof(low));
	number(r->samples_per_s.mid, mid, sizeof(mid));
	number(r->samples_per_s.high, high, sizeof(high));
	if (r->bounded)
		buf_say(&text, "%s samples/s (%s to %s), %s", mid, low, high,
			need_rate_text(r->samples_per_s.mid * s->plan.sample_bytes, bytes,
				       sizeof(bytes)));
	else
		buf_say(&text, "at least %s samples/s, %s; what more it gives was not measured",
			low,
			need_rate_text(r->samples_per_s.low * s->plan.sample_bytes, bytes,
				       sizeof(bytes)));
	put_line(out, columns, "storage gives", &text);
}

static void put_most(const struct sizing *s, size_t columns, struct buf *out)
{
	const struct sizing_most *m = &s->most;
	const char *least = m->n.low < 1 ? "none for certain" : "at least ";
	char low[32] = "", mid[32], high[32], hosts[32];
	struct buf text = {0};

	if (!m->known)
		return;
	if (m->n.low >= 1 || m->bounded)
		count(m->n.low, low, sizeof(low));
	count(m->n.mid, mid, sizeof(mid));
	count(m->n.high, high, sizeof(high));
	count(s->row[0].hosts, hosts, sizeof(hosts));
	if (m->n.high < 1)
		buf_puts(&text, "none: even one on each host misses the target");
	else if (m->bounded)
		buf_say(&text, "%s (%s to %s)", mid, low, high);
	else if (m->n.mid >= m->searched)
		buf_say(&text, "%s%s; no end was seen up to %.0f, beyond which nothing is known",
			least, low, m->searched);
	else
		buf_say(&text, "%s%s; %s (up to %s) if nothing else limits it", least, low, mid,
			high);
	if (m->n.high >= 1)
		buf_say(&text, " on %s host%s", hosts, s->row[0].hosts == 1 ? "" : "s");
	put_line(out, columns, "most that pass", &text);
}

static void put_first(const struct sizing *s, size_t columns, struct buf *out)
{
	const struct sizing_row *r = &s->row[0];
	char n[32], hosts[32];

	buf_say(out, "%s accelerator%s on %s host%s: %s\n", count(r->accelerators, n, sizeof(n)),
		r->accelerators == 1 ? "" : "s", count(r->hosts, hosts, sizeof(hosts)),
		r->hosts == 1 ? "" : "s", s->plan.name);
	put_answers(s, r, columns, out);
	put_need(s, r, columns, out);
	put_rate(s, r, columns, out);
	put_said(out, columns, "limited by", "%s", r->limit);
	put_most(s, columns, out);
	if (r->assumption[0])
		put_said(out, columns, "decides most", "%s", r->assumption);
	if (r->next[0])
		put_said(out, columns, "would settle it", "%s", r->next);
	put_said(out, columns, "simpler rules",
		 "linear: %.1f %% of the time; no more bytes/s than measured: %.1f %%",
		 100 * r->linear_share, 100 * r->cap_share);
}

static void put_cell(char *out, size_t size, const struct sizing_range *r, bool bounded)
{
	if (bounded)
		snprintf(out, size, "%.1f (%.1f to %.1f)", 100 * r->mid, 100 * r->low,
			 100 * r->high);
	else
		snprintf(out, size, ">= %.1f (up to %.1f)", 100 * r->low, 100 * r->high);
}

static void put_table(const struct sizing *s, struct buf *out)
{
	buf_say(out, "\n%12s %6s  %-21s %-21s %11s  %s\n", "accelerators", "hosts",
		"AU, DLIO's (%)", "AU by rate (%)", "needs", s->plan.target > 0 ? "passes" : "");
	for (size_t i = 0; i < s->rows; i++) {
		const struct sizing_row *r = &s->row[i];
		char au[48], share[48], rate[32];

		put_cell(au, sizeof(au), &r->au, r->bounded);
		put_cell(share, sizeof(share), &r->share, r->bounded);
		need_rate_text(r->need_bytes, rate, sizeof(rate));
		buf_say(out, "%12.0f %6.0f  %-21s %-21s %11s  %s\n", r->accelerators, r->hosts, au,
			share, rate, s->plan.target > 0 ? words[r->passes] : "");
	}
}

static void put_points(const struct sizing *s, struct buf *out)
{
	if (s->points)
		buf_say(out, "\nfrom %zu point%s:\n", s->points, s->points == 1 ? "" : "s");
	for (size_t i = 0; i < s->points && i < 16; i++) {
		const struct point *p = &s->point[i];
		char rate[32];

		need_rate_text(p->samples_per_s * p->of.sample_bytes, rate, sizeof(rate));
		buf_say(out, "  %s: %.0f accelerator%s on %.0f host%s, %s, %s samples/s (%s), ",
			p->from, p->accelerators, p->accelerators == 1 ? "" : "s", p->hosts,
			p->hosts == 1 ? "" : "s", p->of.name, NUMBER(p->samples_per_s, 4), rate);
		if (isnan(p->au))
			buf_puts(out, "AU not given");
		else
			buf_say(out, "AU %.1f %%", 100 * p->au);
		buf_say(out, ", by rate %.1f %%\n", 100 * fmin(1, point_share(p)));
	}
	if (s->points > 16)
		buf_say(out, "  and %zu more\n", s->points - 16);
	for (size_t i = 0; i < s->notes.n; i++)
		buf_say(out, "  note: %s\n", s->notes.v[i]);
}

/* ---- checkpoints ---- */

static void put_goodput_at(struct buf *out, size_t columns, const char *name,
			   const struct goodput_at *a, const char *more)
{
	char interval[32];
	double points = 100 * a->per_gigabyte;

	put_said(out, columns, name,
		 "every %s: %.2f %% of the time trains; 1 GB/s more adds %s points%s",
		 str_seconds(a->interval_s, interval, sizeof(interval)), 100 * a->share,
		 points < 0.001 ? "less than 0.001" : NUMBER(points, 3), more);
}

static void put_intervals(const struct sizing *s, size_t columns, struct buf *out)
{
	const struct goodput *g = &s->goodput;
	char young[32], daly[32], best[32], available[32], demand[32], least[32];

	put_goodput_at(out, columns, "best", &g->best,
		       g->best_is_bound ? " (the shortest interval in which a write ends)" : "");
	put_said(out, columns, "", "Young %s, Daly %s, exact %s, best availability %s",
		 str_seconds(g->young_s, young, sizeof(young)),
		 str_seconds(g->daly_s, daly, sizeof(daly)),
		 str_seconds(goodput_best(g->pause_s, g->mtbf_s), best, sizeof(best)),
		 str_seconds(g->availability_s, available, sizeof(available)));
	if (isfinite(g->asked.interval_s))
		put_goodput_at(out, columns, "as asked", &g->asked,
			       g->asked_waits ? " (too short: the next write waits for the one "
						"before)"
					      : "");
	if (!isnan(s->checkpoint.pause_s))
		put_said(out, columns, "asynchronous",
			 "a write takes %s beside training and must end before the next: at least "
			 "%s between two; it takes %s of the storage meanwhile; a failure before "
			 "its end goes back to the checkpoint before",
			 str_seconds(g->write_s, young, sizeof(young)),
			 str_seconds(g->least_interval_s, least, sizeof(least)),
			 need_rate_text(g->read_demand, demand, sizeof(demand)));
	if (isfinite(g->two_level_share))
		put_said(out, columns, "two levels",
			 "local every %s, shared every %s: %.2f %% of the time trains (first "
			 "order)",
			 str_seconds(g->local_interval_s, young, sizeof(young)),
			 str_seconds(g->shared_interval_s, daly, sizeof(daly)),
			 100 * g->two_level_share);
}

static void put_goodput(const struct sizing *s, size_t columns, struct buf *out)
{
	const struct goodput *g = &s->goodput;
	const struct goodput_input *in = &s->checkpoint;
	char size[32], mtbf[32], pause[32], restart[32], rate[32];

	buf_say(out, "%scheckpoints of %s, %.0f accelerators\n", s->rows ? "\n" : "",
		str_bytes(in->bytes, size, sizeof(size)), in->accelerators);
	put_said(out, columns, "a failure every", "%s (%.0f h an accelerator%s)",
		 str_seconds(g->mtbf_s, mtbf, sizeof(mtbf)), in->mtbf_one_s / 3600,
		 s->mtbf_given ? "" : ": MLCommons' figure; --mtbf-hours sets another");
	if (isfinite(g->pause_s)) {
		put_said(out, columns, "training stops", "%s for each, %s after a failure%s",
			 str_seconds(g->pause_s, pause, sizeof(pause)),
			 str_seconds(g->restart_s, restart, sizeof(restart)),
			 s->restart_given ? ""
					  : " (5 min to detect and restart: assumed; "
					    "--restart sets another)");
		put_intervals(s, columns, out);
	} else {
		put_said(out, columns, "interval",
			 "not known without the rate of writing (--write-rate)");
	}
	if (isnan(in->loss))
		return;
	if (isfinite(g->needed_rate))
		put_said(out, columns, "to lose", "%.3g %% at most: write at %s or more",
			 100 * in->loss, need_rate_text(g->needed_rate, rate, sizeof(rate)));
	else
		put_said(out, columns, "to lose",
			 "%.3g %% at most: no rate of writing is enough, restarts alone take %.3g "
			 "%%%s",
			 100 * in->loss, 100 * g->restart_loss,
			 isnan(in->pause_s) ? "" : ", or the copy to memory too much");
}

void sizing_text(const struct sizing *s, size_t columns, struct buf *out)
{
	if (s->rows)
		put_first(s, columns, out);
	if (s->rows > 1)
		put_table(s, out);
	if (s->has_goodput)
		put_goodput(s, columns, out);
	put_points(s, out);
}

/* ---- JSON: docs/plan.md has the keys ---- */

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
	json_t *o = json_object(), *need = json_object(), *rules = json_object();

	json_put_int(o, "accelerators", (uint64_t)r->accelerators);
	json_put_int(o, "hosts", (uint64_t)r->hosts);
	json_put_text(o, "passes", s->plan.target > 0 ? words[r->passes] : NULL);
	json_put_text(o, "enough", s->plan.target > 0 ? words[r->enough] : NULL);
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
	if (s->plan.step_s > 0)
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
