/* Rows are a label and a text that is wrapped, never cut: what does not fit is left out as a whole.
 */
#include "result/answer.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/say.h"
#include "base/str.h"
#include "result/supply.h"
#include "workload/framework_costs.h"

#define COLUMNS 100
#define INDENT 18
#define PLACES 2               /* results, page */
#define ROW_LINES 2            /* a row has no more where it can say less in whole sentences */
#define VERDICT_LINES 3        /* the same of a verdict */
#define EVALUATION_NOTABLE 0.3 /* of the time of epochs: it is said, */
#define EVALUATION_MOST 0.5    /* and the row is never left out */
#define NOTE_MOST 24           /* a longer remark (run.note) is in the result alone */

struct answer {
	const struct result *r;
	const struct run_metrics *m;
	bool color;
	bool warned; /* of the workload, before the run */
	struct buf *out;
};

static const char *colored(const struct answer *a, const char *code)
{
	return a->color ? code : "";
}

/* ---- rows ---- */

static unsigned lines_of(const char *text)
{
	struct buf b = {0};
	unsigned n = 0;

	buf_wrap(&b, text, INDENT, INDENT, COLUMNS);
	for (size_t i = 0; i < b.len; i++)
		n += b.data[i] == '\n';
	buf_release(&b);
	return n;
}

static void put_text(struct answer *a, const char *text)
{
	AUTO_FREE char *s = xstrdup(text);
	size_t n = strlen(s);

	while (n && strchr(".;:, ", s[n - 1]))
		s[--n] = '\0';
	buf_wrap(a->out, s, INDENT, INDENT, COLUMNS);
}

static void put_row(struct answer *a, const char *label, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void put_row(struct answer *a, const char *label, const char *fmt, ...)
{
	struct buf text = {0};
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	buf_say(a->out, "  %-*s", INDENT - 2, label);
	put_text(a, text.data);
	buf_release(&text);
}

/* A path is of no use when it is cut. */
static void put_path(struct answer *a, const char *label, const char *text)
{
	buf_say(a->out, "  %-*s%s\n", INDENT - 2, label, text);
}

/* ---- what was asked for, and what came of it ---- */

static void put_title(struct answer *a)
{
	static const char *const status[] = {[RUN_COMPLETE] = "complete",
					     [RUN_INTERRUPTED] = "interrupted",
					     [RUN_FAILED] = "failed"};
	const struct result *r = a->r;
	const char *note = r->workload->run.note;

	buf_puts(a->out, colored(a, TEXT_BOLD));
	buf_say(a->out, "%s", r->workload->choice ? r->workload->choice : "workload");
	buf_puts(a->out, colored(a, TEXT_PLAIN));
	buf_say(a->out, ": %u accelerator%s, ", r->ranks, r->ranks == 1 ? "" : "s");
	if (r->processes > 1)
		buf_say(a->out, "%u processes on %u host%s, ", r->processes, r->nodes,
			r->nodes == 1 ? "" : "s");
	if (r->trained || !r->checkpointed)
		buf_say(a->out, "%u of %u %s, ", r->epochs_done, r->epochs_planned,
			r->only_evaluated ? "evaluations" : "epochs");
	buf_say(a->out, "%s", status[r->status]);
	if (note && strlen(note) <= NOTE_MOST)
		buf_say(a->out, " (%s)", note);
	buf_putc(a->out, '\n');
}

/* A target that was met says nothing good where something else than the storage met it. */
static void say_reservation(const struct result *r, char *text, size_t size)
{
	const struct measured *of = &r->judged.measured;
	char instead[64];

	if (of->storage == MEASURED_NOT)
		str_append(text, size, ", but not from the storage");
	else if (of->storage == MEASURED_PART)
		str_append(text, size, ", but partly from %s",
			   measured_instead(of, instead, sizeof(instead)));
	else if (of->storage == MEASURED_UNKNOWN)
		str_append(text, size, ", but the source of the data is not known");
	else if (of->taken & TAKES_END)
		str_append(text, size, " so far: the run did not end as planned");
	else if (of->taken & TAKES_LASTING)
		str_append(text, size, ", but not at a rate that lasts");
	else if (of->taken & ~(unsigned)(TAKES_WINDOW | TAKES_CHECKPOINT | TAKES_TARGET))
		str_append(text, size, ", with the reservations below");
}

static void say_target(const struct result *r, double au, char *text, size_t size)
{
	const struct steadiness *c = r->only_evaluated ? &r->judged.eval_steady : &r->judged.steady;
	double want = r->workload->metric.au * 100;

	if (!(want > 0))
		return;
	str_append(text, size, ", target %.4g %%: ", want);
	/* what lasts is what a longer run would have */
	if (au < want) {
		str_append(text, size, "missed");
	} else if (c->changed && c->change != CHANGE_ALTERNATE && c->last_au < want) {
		str_append(text, size, "missed by the last part of the run (%.1f %%)", c->last_au);
	} else {
		str_append(text, size, "met");
		say_reservation(r, text, size);
	}
}

static void put_au(struct answer *a)
{
	const struct result *r = a->r;
	const struct run_metrics *m = a->m;
	bool eval = r->only_evaluated;
	const struct series_stat *dlio = eval ? &m->eval_au : &m->train_au;
	double au = eval ? (m->eval_au.count ? r->judged.eval_steady.whole_au : NAN) : m->whole.au;
	static const char label[] = "whole-run AU";
	char text[256] = "";

	if (!isfinite(au)) {
		put_row(a, label, "none: no %s was completed", eval ? "evaluation" : "epoch");
		return;
	}
	str_append(text, sizeof(text), "%.1f %%", au);
	say_target(r, au, text, sizeof(text));
	if (dlio->count)
		str_append(text, sizeof(text), " (%.1f %% by DLIO's definition)", dlio->mean);
	else
		str_append(text, sizeof(text), " (none by DLIO's definition: too few steps)");
	put_row(a, label, "%s", text);
}

static const char *source_of(const struct result *r, char *out, size_t size)
{
	const struct measured *of = &r->judged.measured;
	char instead[64];

	switch (of->storage) {
	case MEASURED_STORAGE:
		return " from the storage";
	case MEASURED_PART:
		snprintf(out, size, " from the storage and %s",
			 measured_instead(of, instead, sizeof(instead)));
		return out;
	case MEASURED_NOT:
		snprintf(out, size, " from %s", measured_instead(of, instead, sizeof(instead)));
		return out;
	case MEASURED_EMULATED:
		snprintf(out, size, " from the emulated store '%.64s'",
			 r->workload->storage.store ? r->workload->storage.store : "");
		return out;
	case MEASURED_UNKNOWN:
	case MEASURED_KINDS:
		break;
	}
	return ", from an unknown source";
}

static void put_rate(struct answer *a)
{
	const struct run_metrics *m = a->m;
	bool eval = a->r->only_evaluated;
	double rate = eval ? m->eval_throughput.mean : m->whole.throughput;
	char text[160], bytes[32], from[96];
	struct supply s;

	if (!(rate > 0))
		return;
	supply_find(a->r, m, &s);
	snprintf(text, sizeof(text), "%s samples/s", NUMBER(rate, 3));
	/* bytes in files: what samples hold when decoded is no matter of the storage */
	if (isfinite(s.bytes))
		str_append(text, sizeof(text), ", %s/s%s", str_bytes(s.bytes, bytes, sizeof(bytes)),
			   source_of(a->r, from, sizeof(from)));
	put_row(a, "rate", "%s", text);
}

/* Of the time of epochs: evaluations'. */
static double evaluation_share(const struct run_metrics *m)
{
	double train = 0, eval = 0;

	for (uint32_t i = 0; i < m->epochs; i++) {
		train += m->epoch[i].longest_s;
		eval += m->epoch[i].eval_wall_s;
	}
	return train + eval > 0 ? eval / (train + eval) : 0;
}

static void put_evaluation(struct answer *a)
{
	const struct run_metrics *m = a->m;
	double share = evaluation_share(m);
	char au[48] = "no AU", most[64] = "";

	if (m->eval_au.count)
		snprintf(au, sizeof(au), "AU %.1f %%", a->r->judged.eval_steady.whole_au);
	if (share >= EVALUATION_NOTABLE)
		snprintf(most, sizeof(most), "%.0f %% of the time; ", 100 * share);
	put_row(a, "evaluation", "%s%s, %s samples/s", most, au,
		NUMBER(m->eval_throughput.mean, 3));
}

static const char *short_time(double s, char *out, size_t size)
{
	if (s >= 0.01)
		return str_seconds(s, out, size);
	snprintf(out, size, "%.2g ms", 1e3 * s);
	return out;
}

static void put_checkpoints(struct answer *a)
{
	double stall, au, without;
	char text[256] = "", took[32], rate[32];

	for (int load = 0; load < 2; load++) {
		struct series_stat s, speed;

		checkpoint_series(a->r, load, &s, &speed);
		if (s.count)
			str_append(text, sizeof(text), "%s%llu %s in %s each, %s/s",
				   text[0] ? "; " : "", (unsigned long long)s.count,
				   load ? "read back" : "written",
				   short_time(s.mean, took, sizeof(took)),
				   str_bytes(speed.mean * 1073741824.0, rate, sizeof(rate)));
	}
	if (!text[0])
		str_append(text, sizeof(text), "none was completed");
	if (a->r->trained) {
		checkpoint_cost(a->r, &stall, &au, &without);
		if (isfinite(au) && isfinite(without))
			str_append(text, sizeof(text), "; without their stalls AU is %.1f %%",
				   without);
	}
	put_row(a, "checkpoints", "%s", text);
}

static void put_need(struct answer *a)
{
	struct supply s;
	char text[320];

	supply_find(a->r, a->m, &s);
	if (s.need.known)
		put_row(a, "one needs", "%s",
			supply_text_within(&s, COLUMNS - INDENT, text, sizeof(text)));
}

/* What was asked for beside training. */
static void put_probe(struct answer *a)
{
	const struct probe *p = &a->r->probe;
	struct buf text = {0};

	if (p->own)
		probe_own_text(p, &text);
	else
		probe_text(p, &text);
	if (p->why[0] && !p->own)
		buf_say(&text, "; %s", p->why);
	put_row(a, "probe", "%s", text.data);
	buf_release(&text);
}

void answer_head(const struct result *r, const struct run_metrics *m, bool color, struct buf *out)
{
	struct answer a = {r, m, color, false, out};

	put_title(&a);
	if (r->trained || r->only_evaluated) {
		put_au(&a);
		put_rate(&a);
		put_need(&a);
	}
}

/* ---- what limits it ---- */

/* Appends facts [from, ..): the first, and of the others those that fit within so many lines with
 * it. A fact is said as a whole or not at all. */
static void say_facts(struct buf *text, const struct fact_list *list, uint32_t from, uint32_t end,
		      unsigned lines)
{
	for (uint32_t i = from; i < end; i++) {
		size_t before = text->len;

		if (i > from)
			buf_puts(text, "; ");
		words_put(text, &list->fact[i], WORDS_SHORT);
		if (i == from || lines_of(text->data) <= lines)
			continue;
		text->len = before;
		text->data[before] = '\0';
	}
}

static void put_facts(struct answer *a, unsigned lines, const char *label,
		      const struct fact_list *list)
{
	struct buf text = {0};

	say_facts(&text, list, 0, list->count, lines);
	if (text.len)
		put_row(a, label, "%s", text.data);
	buf_release(&text);
}

/* What the run would have been with the framework's own code; empty where nothing is said. */
static void say_costs(const struct answer *a, struct buf *text)
{
	const struct workload *w = a->r->workload;
	const struct costs_effect *c = &a->r->judged.outlook.costs;
	struct fact f;

	if (workload_costs_in_part(w))
		f = fact_with(FACT(COSTS_IN_PART), 0, w->costs->name);
	else if (c->said && !c->spent)
		f = costs_effect_fact(c);
	else
		return;
	words_put(text, &f, WORDS_SHORT);
}

/* ---- whether to trust it ---- */

static bool is_bad(const struct verdict *v)
{
	return v->level == VERDICT_FAIL || v->level == VERDICT_WARN;
}

static bool one_thing(const struct verdict *v, const struct verdict *other)
{
	return v == other || (v->about != ABOUT_ITSELF && v->about == other->about);
}

/* Whether a worse verdict, or an earlier one of its level, is about the same. */
static bool is_led(const struct judgement *j, uint32_t i)
{
	const struct verdict *v = &j->verdict[i];

	for (uint32_t k = 0; k < j->verdicts; k++) {
		const struct verdict *other = &j->verdict[k];

		if (k != i && is_bad(other) && one_thing(v, other) &&
		    (other->level != v->level ? other->level == VERDICT_FAIL : k < i))
			return true;
	}
	return false;
}

/* The warnings and failures about what `v` is about: "cache, bytes", the worst first. */
static void name_group(const struct judgement *j, const struct verdict *v, char *out, size_t size)
{
	out[0] = '\0';
	for (size_t l = 0; l < LEVEL_LOOKS_BAD; l++)
		for (uint32_t k = 0; k < j->verdicts; k++)
			if (j->verdict[k].level == level_looks[l].level &&
			    one_thing(v, &j->verdict[k]))
				str_append(out, size, "%s%s", out[0] ? ", " : "",
					   j->verdict[k].check);
}

static enum verdict_level worst_about(const struct judgement *j, enum verdict_about about)
{
	enum verdict_level worst = VERDICT_PASS;

	for (uint32_t k = 0; k < j->verdicts; k++)
		if (j->verdict[k].about == about && is_bad(&j->verdict[k]) && worst != VERDICT_FAIL)
			worst = j->verdict[k].level;
	return worst;
}

static void put_level(struct answer *a, enum verdict_level level, const char *label)
{
	size_t i = 0;

	while (level_looks[i].level != level)
		i++;
	buf_puts(a->out, "  ");
	buf_puts(a->out, colored(a, level_looks[i].color));
	buf_say(a->out, "%-4s", level_looks[i].word);
	buf_puts(a->out, colored(a, TEXT_PLAIN));
	buf_say(a->out, " %-*s", INDENT - 7, label);
	if (strlen(label) >= INDENT - 7)
		buf_putc(a->out, ' ');
}

/* Something else than the storage, or nobody knows: one line for all verdicts about it. */
static bool put_measured(struct answer *a)
{
	const struct judgement *j = &a->r->judged;
	enum verdict_level worst = worst_about(j, ABOUT_ORIGIN);
	struct verdict any = {.about = ABOUT_ORIGIN};
	struct buf text = {0};
	char names[128];

	/* an emulated store is named with the rate */
	if (j->measured.facts.count == 0 || j->measured.storage == MEASURED_STORAGE ||
	    (j->measured.storage == MEASURED_EMULATED && worst == VERDICT_PASS))
		return false;
	name_group(j, &any, names, sizeof(names));
	words_put(&text, &j->measured.facts.fact[0], WORDS_SHORT);
	if (names[0])
		buf_printf(&text, " (%s)", names);
	if (worst == VERDICT_PASS && j->measured.storage == MEASURED_UNKNOWN)
		worst = VERDICT_UNKNOWN;
	if (worst == VERDICT_PASS)
		buf_say(a->out, "  %-*s", INDENT - 2, "measured");
	else
		put_level(a, worst, "measured");
	put_text(a, text.data);
	buf_release(&text);
	return true;
}

/* Why, and who else says so, in about so many lines. */
static void say_verdict(const struct answer *a, uint32_t i, unsigned lines, struct buf *text)
{
	const struct judgement *j = &a->r->judged;
	const struct verdict *v = &j->verdict[i];
	char names[128];

	name_group(j, v, names, sizeof(names));
	if (strcmp(names, v->check) != 0)
		buf_printf(text, "(also %s) ", names + strlen(v->check) + 2);
	say_facts(text, &v->facts, v->first_bad, v->end_bad, lines);
}

/* What it takes at least. */
static unsigned lines_of_verdict(const struct answer *a, uint32_t i)
{
	struct buf text = {0};
	unsigned n;

	say_verdict(a, i, 1, &text);
	n = lines_of(text.data);
	buf_release(&text);
	return n;
}

static void put_verdict(struct answer *a, uint32_t i, unsigned lines)
{
	const struct verdict *v = &a->r->judged.verdict[i];
	struct buf text = {0};

	say_verdict(a, i, lines, &text);
	put_level(a, v->level, v->check);
	put_text(a, text.data);
	buf_release(&text);
}

/* Verdicts of this level that have no line: ", WARN: config, order". */
static void say_others(struct answer *a, enum verdict_level level, const char *word,
		       const bool *shown, struct buf *text)
{
	const struct judgement *j = &a->r->judged;
	const char *before = text->len ? "; " : "";

	for (uint32_t i = 0; i < j->verdicts; i++) {
		if (j->verdict[i].level != level || shown[i])
			continue;
		buf_say(text, "%s%s%s", before, before[0] == ',' ? "" : word, j->verdict[i].check);
		before = ", ";
	}
}

/* All that have no line: their names are never cut. */
static void name_others(struct answer *a, const bool *shown, struct buf *text)
{
	say_others(a, VERDICT_FAIL, "FAIL: ", shown, text);
	say_others(a, VERDICT_WARN, "WARN: ", shown, text);
	say_others(a, VERDICT_UNKNOWN, "not known: ", shown, text);
	buf_say(text, "%s(details: -v, or the page)", text->len ? " " : "");
}

static unsigned lines_of_checks(struct answer *a, const bool *shown)
{
	struct buf text = {0};
	unsigned n;

	name_others(a, shown, &text);
	n = lines_of(text.data);
	buf_release(&text);
	return n;
}

static void put_checks(struct answer *a, const bool *shown)
{
	const struct judgement *j = &a->r->judged;
	struct buf text = {0};
	char label[32];
	uint32_t ok = 0;

	for (uint32_t i = 0; i < j->verdicts; i++)
		ok += j->verdict[i].level == VERDICT_PASS;
	name_others(a, shown, &text);
	if (ok)
		snprintf(label, sizeof(label), "%u check%s ok", ok, ok == 1 ? "" : "s");
	else
		snprintf(label, sizeof(label), "no checks ok");
	put_row(a, label, "%s", text.data);
	buf_release(&text);
}

/* What another line says already: what was measured. */
static void mark_told(const struct judgement *j, bool measured, bool *shown)
{
	for (uint32_t i = 0; i < j->verdicts; i++)
		shown[i] =
			measured && is_bad(&j->verdict[i]) && j->verdict[i].about == ABOUT_ORIGIN;
}

static bool has_row(const struct answer *a, uint32_t i, const bool *shown)
{
	const struct judgement *j = &a->r->judged;

	return !shown[i] && !is_led(j, i) && !(a->warned && j->verdict[i].about == ABOUT_WORKLOAD);
}

/* Lines that those of a level take at least. */
static unsigned lines_of_level(const struct answer *a, const bool *shown, enum verdict_level level)
{
	const struct judgement *j = &a->r->judged;
	unsigned n = 0;

	for (uint32_t i = 0; i < j->verdicts; i++)
		if (j->verdict[i].level == level && has_row(a, i, shown))
			n += lines_of_verdict(a, i);
	return n;
}

/* FAIL before WARN, each in the order of its table; as many as have room, each with what the
 * others leave it. */
static void put_verdicts(struct answer *a, unsigned room, bool *shown)
{
	const struct judgement *j = &a->r->judged;
	unsigned others =
		lines_of_level(a, shown, VERDICT_FAIL) + lines_of_level(a, shown, VERDICT_WARN);

	for (size_t l = 0; l < LEVEL_LOOKS_BAD; l++)
		for (uint32_t i = 0; i < j->verdicts; i++) {
			unsigned least, lines;
			size_t before = a->out->len;

			if (j->verdict[i].level != level_looks[l].level || !has_row(a, i, shown))
				continue;
			least = lines_of_verdict(a, i);
			others -= least;
			if (least > room)
				continue;
			lines = room > others ? room - others : 1;
			put_verdict(a, i, lines < VERDICT_LINES ? lines : VERDICT_LINES);
			for (uint32_t k = 0; k < j->verdicts; k++)
				shown[k] = shown[k] || (is_bad(&j->verdict[k]) &&
							one_thing(&j->verdict[i], &j->verdict[k]));
			for (size_t c = before; c < a->out->len && room > 0; c++)
				room -= a->out->data[c] == '\n';
		}
}

/* ---- where the rest is ---- */

static const char *trace_name(const struct result *r, char *out, size_t size)
{
	int64_t form = r->workload->run.trace;

	out[0] = '\0';
	if (!r->trace || !r->rank)
		return out;
	if (form & TRACE_CHROME)
		str_append(out, size, r->processes > 1 ? "trace-R.json" : "trace.json");
	if (form & TRACE_PFW)
		str_append(out, size, "%strace-R-of-%u.pfw", out[0] ? ", " : "", r->ranks);
	return out;
}

void answer_places(const struct result *r, struct buf *out)
{
	struct answer a = {.r = r, .out = out};
	struct buf text = {0};
	char trace[96];

	buf_puts(&text, r->folder);
	if (trace_name(r, trace, sizeof(trace))[0])
		buf_say(&text, " (trace: %s)", trace);
	put_path(&a, "results", text.data ? text.data : "");
	buf_reset(&text);
	buf_puts(&text, "stoker report ");
	shell_put_word(&text, r->folder);
	buf_puts(&text, " -o report.html");
	put_path(&a, "page", text.data);
	buf_release(&text);
}

/* ---- all ---- */

static unsigned count_lines(const struct buf *b)
{
	unsigned n = 0;

	for (size_t i = 0; i < b->len; i++)
		n += b->data[i] == '\n';
	return n;
}

/* Lines that are left when each of what follows has one. */
static unsigned spare(const struct answer *a, unsigned lines, unsigned follow)
{
	unsigned used = count_lines(a->out) + follow;

	return lines > used ? lines - used : 0;
}

void result_answer(const struct result *r, const struct run_metrics *m, bool color, unsigned lines,
		   struct buf *out)
{
	const struct judgement *j = &r->judged;
	const struct series_stat *evals = &m->eval_throughput;
	struct answer a = {r, m, color, lines < ANSWER_LINES && r->workload->warnings.n > 0, out};
	bool *shown = xcalloc(j->verdicts ? j->verdicts : 1, sizeof(*shown)), measured;
	bool limit = j->limit.facts.count, remedy = j->limit.remedy.count, saves;
	struct buf code = {0};
	unsigned fails, bad, tail, costs;

	saves = r->checkpointed && r->rank;
	say_costs(&a, &code);
	costs = code.len ? lines_of(code.data) : 0;
	buf_reset(out);
	put_title(&a);
	if (r->trained || r->only_evaluated)
		put_au(&a);
	measured = put_measured(&a);
	mark_told(j, measured, shown);
	fails = lines_of_level(&a, shown, VERDICT_FAIL);
	bad = fails + lines_of_level(&a, shown, VERDICT_WARN);
	tail = PLACES + lines_of_checks(&a, shown);
	if (r->trained || r->only_evaluated) {
		put_rate(&a);
		if (spare(&a, lines, saves + costs + limit + remedy + fails + tail))
			put_need(&a);
	}
	if (saves)
		put_checkpoints(&a);
	if (r->trained && evals->count &&
	    (evaluation_share(m) >= EVALUATION_MOST ||
	     spare(&a, lines, costs + limit + remedy + fails + tail)))
		put_evaluation(&a);
	if (r->probe.asked &&
	    (r->probe.own || spare(&a, lines, costs + limit + remedy + fails + tail)))
		put_probe(&a);
	if (costs)
		put_row(&a, "framework", "%s", code.data);
	if (limit)
		put_facts(&a, spare(&a, lines, remedy + bad + tail) > 1 ? ROW_LINES : 1,
			  "limited by", &j->limit.facts);
	if (remedy)
		put_facts(&a, spare(&a, lines, bad + tail) > 1 ? ROW_LINES : 1, "to change it",
			  &j->limit.remedy);
	put_verdicts(&a, spare(&a, lines, tail), shown);
	put_checks(&a, shown);
	answer_places(r, out);
	buf_release(&code);
	free(shown);
}
