/* The result as people read it: first whether to trust it, then the figures. */
#include "result/text.h"
#include "workload/framework_costs.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/say.h"
#include "base/str.h"
#include "result/answer.h"

#define COLUMNS 100
#define INDENT 18
/* Epochs shown one by one; of more, the first and the last ones. */
#define EPOCHS_SHOWN 12
#define WHY_INDENT 6
/* a sample that took this many times the mean stands out */
#define STANDS_OUT 5

struct paint {
	bool on;
};

static const char *colored(const struct paint *p, const char *code)
{
	return p->on ? code : "";
}

static void put_wrapped(struct buf *out, const char *s, size_t at)
{
	buf_wrap(out, s, at, INDENT, COLUMNS);
}

static void put_row(struct buf *out, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void put_row(struct buf *out, const char *name, const char *fmt, ...)
{
	struct buf text = {0};
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	buf_printf(out, "  %-*s", INDENT - 2, name);
	put_wrapped(out, text.data, INDENT);
	buf_release(&text);
}

static void put_verdicts(struct buf *out, const struct result *r, const struct paint *p)
{
	if (r->judged.verdicts == 0)
		return;
	buf_printf(out, "%sCan the numbers be trusted?%s\n", colored(p, TEXT_BOLD),
		   colored(p, TEXT_PLAIN));
	for (size_t k = 0; k < LEVEL_LOOKS; k++)
		for (uint32_t i = 0; i < r->judged.verdicts; i++) {
			const struct verdict *v = &r->judged.verdict[i];
			struct buf text = {0};

			if (v->level != level_looks[k].level)
				continue;
			buf_printf(out, "  %s%-4s%s ", colored(p, level_looks[k].color),
				   level_looks[k].word, colored(p, TEXT_PLAIN));
			buf_say(out, "%-10s ", v->check);
			words_put_all(&text, &v->facts, 0, v->facts.count, WORDS_LONG);
			put_wrapped(out, text.data, INDENT);
			buf_release(&text);
		}
	buf_putc(out, '\n');
}

static void put_series(struct buf *out, const char *name, const struct series_stat *s)
{
	if (s->count == 0)
		buf_printf(out, "  %-46s %10s\n", name, "none");
	else
		buf_printf(out, "  %-46s %10.2f %10.2f %10.2f %10.2f\n", name, s->mean, s->stdev,
			   s->min, s->max);
}

static struct series_stat scaled(struct series_stat s, double factor)
{
	s.mean *= factor;
	s.stdev *= factor;
	s.min *= factor;
	s.max *= factor;
	return s;
}

/* Bytes of files that an epoch's requests returned, over its time; NAN where they are not counted.
 */
static double files_rate(const struct result *r, const struct run_metrics *m, uint32_t epoch)
{
	const struct epoch_metrics *e = &m->epoch[epoch];

	if (epoch >= r->judged.epochs || !(e->whole_throughput > 0))
		return NAN;
	return r->judged.epoch[epoch].train_bytes[LEDGER_RETURNED] * e->whole_throughput /
	       (double)e->samples;
}

static void put_epoch(struct buf *out, const struct epoch_metrics *e, double files, uint32_t number)
{
	char au[16] = "-", rate[16] = "-", mib[16] = "-";

	if (e->train_valid) {
		snprintf(au, sizeof(au), "%.2f", e->train_au);
		snprintf(rate, sizeof(rate), "%.2f", e->train_throughput);
	}
	if (isfinite(files))
		snprintf(mib, sizeof(mib), "%.2f", files / 1048576.0);
	buf_printf(out, "  %6u %8llu %8s %8.2f %12s %12s %10.3f %10.3f %10.3f\n", number,
		   (unsigned long long)e->steps, au, e->whole_au, rate, mib, e->exposed_wait_s,
		   e->barrier_wait_s, e->wall_s);
}

static void put_epochs(struct buf *out, const struct result *r, const struct run_metrics *m)
{
	uint32_t head = m->epochs > EPOCHS_SHOWN ? EPOCHS_SHOWN / 2 : m->epochs;

	if (m->epochs == 0)
		return;
	buf_printf(out, "  %6s %8s %8s %8s %12s %12s %10s %10s %10s\n", "epoch", "steps", "AU %",
		   "whole %", "samples/s", "MiB/s files", "wait s", "barrier s", "wall s");
	for (uint32_t i = 0; i < m->epochs; i++) {
		if (i == head && m->epochs > EPOCHS_SHOWN) {
			buf_printf(out, "  %6s (%u more, in result.json)\n", "",
				   m->epochs - EPOCHS_SHOWN);
			i = m->epochs - EPOCHS_SHOWN / 2;
		}
		put_epoch(out, &m->epoch[i], files_rate(r, m, i), i + 1);
	}
	buf_putc(out, '\n');
}

static void put_barrier(struct buf *out, const struct result *r)
{
	const struct barrier_cost *b = &r->barrier;
	double share = result_barrier_share(r);

	if (b->count == 0)
		return;
	buf_printf(out, "  barrier of all ranks: %s us (%s", NUMBER(1e6 * b->median_s, 3),
		   result_barrier_way(b));
	if (b->processes > 1)
		buf_printf(out, ", %u processes, %s", b->processes,
			   b->way == BARRIER_MPI ? b->library
			   : b->depth > 1        ? "as a tree"
						 : "through process 0");
	if (b->sockets_s > 0 && b->mpi_s > 0)
		buf_printf(out, "; chosen: sockets took %s us, mpi %s us",
			   NUMBER(1e6 * b->sockets_s, 3), NUMBER(1e6 * b->mpi_s, 3));
	buf_puts(out, ")");
	if (isfinite(share))
		buf_printf(out, ", %s %% of a step", NUMBER(100 * share, 2));
	buf_puts(out, "\n\n");
}

static void put_training(struct buf *out, const struct result *r, const struct run_metrics *m,
			 const struct paint *p)
{
	struct series_stat mib = scaled(m->payload_rate, 1 / 1048576.0), files;
	double *of_files = xcalloc(m->epochs + 1, sizeof(*of_files));
	bool dlio = r->workload->compat.dlio;

	buf_printf(out, "%sTraining%s%*s %10s %10s %10s %10s\n", colored(p, TEXT_BOLD),
		   colored(p, TEXT_PLAIN), 40, "over epochs:", "mean", "stdev", "min", "max");
	put_series(out,
		   dlio ? "AU, exactly as DLIO computes it (%)" : "AU, by DLIO's definition (%)",
		   &m->train_au);
	put_series(out, "AU, whole run: compute / wall time (%)", &m->whole_au);
	put_series(out, "throughput of the measured steps (samples/s)", &m->train_throughput);
	put_series(out, "throughput, whole run (samples/s)", &m->whole_throughput);
	for (uint32_t i = 0; i < m->epochs; i++)
		of_files[i] = files_rate(r, m, i) / 1048576.0;
	files = series_stat_of(of_files, m->epochs);
	free(of_files);
	put_series(out, "bytes in files, whole run (MiB/s)", &files);
	put_series(out, "sample data (decoded), whole run (MiB/s)", &mib);
	buf_putc(out, '\n');
	put_epochs(out, r, m);
	put_barrier(out, r);
}

/* The first and the last epoch around which the page cache was checked. */
static void put_page_cache(struct buf *out, const struct result *r)
{
	uint32_t last = r->epochs_begun;
	char a[32], b[32], c[32], d[32];

	while (last > 0 && !r->usage[last - 1].cache_end.known)
		last--;
	if (last == 0 || !r->usage[0].cache_start.known)
		return;
	const struct epoch_usage *u = &r->usage[0];
	const struct residency *end = &r->usage[last - 1].cache_end;

	str_bytes((double)end->bytes, a, sizeof(a));
	str_bytes((double)u->cache_start.cached_bytes, b, sizeof(b));
	str_bytes((double)end->cached_bytes, c, sizeof(c));
	str_bytes((double)u->cache_found.cached_bytes, d, sizeof(d));
	put_row(out, "page cache",
		"%s of %s of the dataset before epoch 1%s%s%s, %s after epoch %u%s", b, a,
		u->evicted ? " (" : "", u->evicted ? d : "", u->evicted ? " before eviction)" : "",
		c, last, end->looked < end->files ? "; only some of the files were checked" : "");
}

static void put_time_spent(struct buf *out, const struct decomposition *d,
			   const struct paint *paint)
{
	if (!(d->wall_s > 0))
		return;
	buf_printf(out, "%sWhere the time went%s%*s %10s %10s %10s %10s\n",
		   colored(paint, TEXT_BOLD), colored(paint, TEXT_PLAIN), 29,
		   "of training:", "mean s", "%", "critical s", "%");
	for (int p = 0; p < TIME_PARTS; p++) {
		double a = 100 * d->mean_s[p] / d->wall_s;
		double b = d->critical_wall_s > 0 ? 100 * d->critical_s[p] / d->critical_wall_s : 0;
		bool wait = p >= TIME_WAIT && p <= TIME_WAIT_END && p != TIME_NO_CPU &&
			    p != TIME_FRAMEWORK;

		if (fabs(a) < 0.05 && fabs(b) < 0.05)
			continue;
		buf_printf(out, "  %s%-*s %10.3f %10.1f %10.3f %10.1f\n", wait ? "wait: " : "",
			   wait ? 40 : 46, time_part_names[p], d->mean_s[p], a, d->critical_s[p],
			   b);
	}
	buf_printf(out, "  %-46s %10.3f\n\n", "reading hidden behind compute, all workers (s)",
		   d->hidden_io_s);
}
static void put_bytes(struct buf *out, double bytes)
{
	char text[32];

	buf_printf(out, " %11s", isnan(bytes) ? "" : str_bytes(bytes, text, sizeof(text)));
}

static void put_ledger(struct buf *out, const struct result *r, const struct paint *p)
{
	const struct judgement *j = &r->judged;
	char epoch[32];

	if (!j->ledger.line[LEDGER_WANTED].known || j->epochs == 0)
		return;
	buf_printf(out, "%sWhere the bytes went%s%*s %12s %10s", colored(p, TEXT_BOLD),
		   colored(p, TEXT_PLAIN), 24, "in training:", "bytes", "compared");
	if (j->epochs > 1) {
		snprintf(epoch, sizeof(epoch), "epoch %u", j->epochs);
		buf_printf(out, " %11s %11s", "epoch 1", epoch);
	}
	buf_putc(out, '\n');
	for (int k = 0; k < LEDGER_LINES; k++) {
		const struct ledger_line *line = &j->ledger.line[k];
		char bytes[32], place[128], title[96], share[32] = "";

		if (!line->known)
			continue;
		result_ledger_place(r, (enum ledger_key)k, place, sizeof(place));
		snprintf(title, sizeof(title), "%s%s%.40s%s", ledger_titles[k],
			 place[0] ? " (" : "", place, place[0] ? ")" : "");
		if (line->against >= 0 && j->ledger.line[line->against].bytes > 0)
			snprintf(share, sizeof(share), " %8.1f %%",
				 100 * line->bytes / j->ledger.line[line->against].bytes);
		buf_say(out, "  %-42s %12s%11s", title,
			str_bytes(line->bytes, bytes, sizeof(bytes)), share);
		if (j->epochs > 1) {
			put_bytes(out, j->epoch[0].train_bytes[k]);
			put_bytes(out, j->epoch[j->epochs - 1].train_bytes[k]);
		}
		while (out->data[out->len - 1] == ' ')
			out->len--;
		buf_puts(out, line->state == LEDGER_FLAGGED ? "  (!)\n" : "\n");
		if (line->why.reason != REASON_NONE) {
			char why[256];

			buf_printf(out, "%*s", WHY_INDENT, "");
			buf_wrap(out, words_of(&line->why, WORDS_SHORT, why, sizeof(why)),
				 WHY_INDENT, WHY_INDENT, COLUMNS);
		}
	}
	buf_putc(out, '\n');
}

static void put_evaluation(struct buf *out, const struct run_metrics *m)
{
	if (m->eval_au.count == 0 && m->eval_throughput.count > 0)
		put_row(out, "evaluation", "no AU, %.2f samples/s, %.2f MiB/s decoded",
			m->eval_throughput.mean, m->eval_io.mean);
	if (m->eval_au.count == 0)
		return;
	put_row(out, "evaluation", "AU %.2f %% (stdev %.2f), %.2f samples/s, %.2f MiB/s decoded",
		m->eval_au.mean, m->eval_au.stdev, m->eval_throughput.mean, m->eval_io.mean);
}

static void put_checkpoints(struct buf *out, const struct result *r)
{
	const struct checkpoint_totals *t = &r->checkpoint_totals;
	double stall, au, without;
	char size[32], text[32], took[3][32];

	put_row(out, "checkpoint", "%s of tensors in %llu file%s by %llu rank%s",
		str_bytes((double)t->total_bytes, size, sizeof(size)), (unsigned long long)t->files,
		t->files == 1 ? "" : "s", (unsigned long long)t->writers,
		t->writers == 1 ? "" : "s");
	for (int load = 0; load < 2; load++) {
		struct series_stat s, rate;

		checkpoint_series(r, load, &s, &rate);
		if (s.count == 0)
			continue;
		put_row(out, load ? "  read back" : "  written",
			"%llu, %s on average (%s to %s), %s/s", (unsigned long long)s.count,
			str_seconds(s.mean, took[0], 32), str_seconds(s.min, took[1], 32),
			str_seconds(s.max, took[2], 32),
			str_bytes(rate.mean * 1073741824.0, text, sizeof(text)));
	}
	if (!r->trained)
		return;
	checkpoint_cost(r, &stall, &au, &without);
	if (isfinite(au) && isfinite(without))
		put_row(out, "  stall",
			"%s of the training time; whole-run AU is %.2f %%, without stalls %.2f %%",
			str_seconds(stall, text, sizeof(text)), au, without);
}

/* Only one that stands out. */
static void put_slowest_sample(struct buf *out, const struct result *r)
{
	const struct stragglers *s = &r->judged.stragglers;
	const struct straggling_sample *first = &s->sample[0];
	char path[4096];

	if (s->samples == 0 || s->mean_s <= 0 ||
	    (double)first->of.ns < STANDS_OUT * s->mean_s * 1e9)
		return;
	put_row(out, "slowest sample", "%s ms, %s times the mean: rank %u, %s",
		NUMBER((double)first->of.ns / 1e6, 3),
		NUMBER((double)first->of.ns / 1e9 / s->mean_s, 3), first->rank,
		result_sample_file(r, first->of.sample, path, sizeof(path)));
}

static void put_probe(struct buf *out, const struct probe *p)
{
	struct buf text = {0};

	if (!p->asked)
		return;
	probe_text(p, &text);
	if (p->done)
		buf_printf(&text, " (the run had %u%s)", p->run_readers,
			   p->own ? ", which could not tell what more would do; with "
				    "run.probe=false, there is no probe"
				  : "");
	if (p->why[0])
		buf_printf(&text, "; %s", p->why);
	put_row(out, "probe", "%s", text.data);
	buf_release(&text);
}

#define LITTLE_BYTES 100000000 /* the beginning of a run takes more than they do */

/* Each server: what it was asked in the timed part, and what that took. */
static void put_servers(struct buf *out, const struct result *r)
{
	struct server_counts timed = servers_sum(&r->servers, true);
	bool any = server_tries(&timed) > 0;
	double each = result_cpu_per_gb(r);

	for (uint32_t i = 0; i < r->servers.n; i++) {
		const struct server_use *u = &r->servers.use[i];
		const struct server_counts *n = any ? &u->timed : &u->whole;
		double answers = n->answers ? (double)n->answers : 1;
		char received[32], sent[32];
		struct buf b = {0};

		if (server_tries(&u->whole) == 0)
			continue;
		buf_printf(&b,
			   "%" PRIu64 " requests, %s received, %s sent; first byte after %.3g ms, "
			   "last after %.3g ms",
			   server_requests(n),
			   str_bytes((double)n->wire_received, received, sizeof(received)),
			   str_bytes((double)n->wire_sent, sent, sizeof(sent)),
			   (double)n->first_ns / answers / 1e6, (double)n->last_ns / answers / 1e6);
		if (server_repetitions(n))
			buf_printf(&b, "; %" PRIu64 " retries", server_repetitions(n));
		if (n->failed)
			buf_printf(&b, "; %" PRIu64 " failed", n->failed);
		put_row(out, i ? "" : "servers", "%s%s: %s", u->tls ? "https://" : "", u->address,
			b.data);
		buf_release(&b);
	}
	if (isfinite(each) && timed.wire_received >= LITTLE_BYTES)
		put_row(out, "", "%.3g s of processor time for each GB received", each);
}

static void put_generation(struct buf *out, const struct result *r)
{
	double s = (double)r->generation.wall_ns / 1e9;
	char bytes[32], rate[32], took[32];

	if (!r->generated)
		return;
	put_row(out, "generation", "%llu files written, %llu already present; %s in %s (%s/s)",
		(unsigned long long)r->generation.files, (unsigned long long)r->generation.skipped,
		str_bytes((double)r->generation.bytes, bytes, sizeof(bytes)),
		str_seconds(s, took, sizeof(took)),
		str_bytes(s > 0 ? (double)r->generation.bytes / s : 0, rate, sizeof(rate)));
}

/* All predictions, those that give most first. */
static void put_changes(struct buf *out, const struct outlook *o)
{
	uint32_t order[WHAT_IF_MAX];

	what_if_order(o, order);
	for (uint32_t i = 0; i < o->changes; i++) {
		const struct what_if *w = &o->change[order[i]];
		const char *title = i ? "" : "predictions";

		struct fact why = w->known ? (struct fact){0} : fact_of(w->why, 0, NULL);
		struct buf change = {0};
		char text[256];

		what_if_put(&change, w);
		if (w->known)
			put_row(out, title, "AU %.0f %% (%.0f to %.0f): %s", w->au, w->low, w->high,
				change.data);
		else
			put_row(out, title, "no figure for %s: %s", change.data,
				words_of(&why, WORDS_SHORT, text, sizeof(text)));
		buf_release(&change);
	}
}

static void put_fact(struct buf *out, const char *name, const struct fact *f)
{
	struct buf text = {0};

	words_put(&text, f, WORDS_LONG);
	put_row(out, name, "%s", text.data);
	buf_release(&text);
}

/* What limits the run, and what would change it, in whole sentences. */
static void put_limit(struct buf *out, const struct result *r, const struct paint *p)
{
	const struct judgement *j = &r->judged;
	struct buf text = {0};

	limit_put(&text, &j->limit);
	if (text.len) {
		buf_printf(out, "  %s%-*s%s", colored(p, TEXT_BOLD), INDENT - 2, "what limits it",
			   colored(p, TEXT_PLAIN));
		put_wrapped(out, text.data, INDENT);
	}
	buf_reset(&text);
	words_put_all(&text, &j->limit.remedy, 0, j->limit.remedy.count, WORDS_LONG);
	if (text.len)
		put_row(out, "to change it", "%s", text.data);
	buf_release(&text);
	if (workload_costs_in_part(r->workload)) {
		struct fact f = fact_with(FACT(COSTS_IN_PART), 0, r->workload->costs->name);

		put_fact(out, "framework", &f);
	}
	if (j->outlook.costs.said) {
		struct fact f = costs_effect_fact(&j->outlook.costs);

		put_fact(out, "framework", &f);
	}
}

void result_text(const struct result *r, const struct run_metrics *m, bool color, struct buf *out)
{
	const struct paint p = {color};
	struct buf measured = {0};
	char peak[32], bound[32];

	buf_putc(out, '\n');
	answer_head(r, m, color, out);
	buf_putc(out, '\n');
	if (r->judged.measured.facts.count) {
		buf_printf(out, "  %s%-*s%s", colored(&p, TEXT_BOLD), INDENT - 2, "measured",
			   colored(&p, TEXT_PLAIN));
		measured_put(&measured, &r->judged);
		measured.data[0] = (char)toupper((unsigned char)measured.data[0]);
		put_wrapped(out, measured.data, INDENT);
		buf_release(&measured);
	}
	put_limit(out, r, &p);
	put_changes(out, &r->judged.outlook);
	if (r->judged.measured.facts.count || r->judged.limit.cause != CAUSE_NONE)
		buf_putc(out, '\n');
	if (r->trained && !r->judged.outlook.known && r->judged.outlook.why.reason != REASON_NONE)
		put_fact(out, "no prediction", &r->judged.outlook.why);
	put_verdicts(out, r, &p);
	if (r->trained)
		put_training(out, r, m, &p);
	if (r->trained && r->rank && m->epochs) {
		put_time_spent(out, &r->judged.time, &p);
	}
	if (r->trained && r->usage)
		put_ledger(out, r, &p);
	put_evaluation(out, m);
	if (r->trained && r->rank)
		put_slowest_sample(out, r);
	if (r->trained && r->usage)
		put_page_cache(out, r);
	put_servers(out, r);
	put_probe(out, &r->probe);
	if (r->checkpointed && r->rank)
		put_checkpoints(out, r);
	put_generation(out, r);
	if (r->memory_bound_bytes)
		put_row(out, "memory", "peak %s; upper bound computed before the run: %s",
			str_bytes((double)r->peak_rss_bytes, peak, sizeof(peak)),
			str_bytes((double)r->memory_bound_bytes, bound, sizeof(bound)));
	answer_places(r, out);
}
