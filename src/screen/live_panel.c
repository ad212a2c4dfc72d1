/* The panel: rows in the order of reading, chosen by weight where the terminal is low; each with
 * wordings from long to short, the first that fits. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/say.h"
#include "base/str.h"
#include "screen/live.h"
#include "screen/terminal.h"

#define ROWS_MAX 10
#define ROWS_WANTED 16
#define BAR_LEAST 8
#define BAR_MOST 60
#define LABEL 12
#define LABEL_FROM 48 /* columns from which labels stand in a column of their own */
#define RANK_CELL 38
#define RANK_CELLS_MAX 1024
#define SPARK_MOST 120
#define SPARK_FROM 50

struct row {
	int weight; /* the heaviest stay */
	struct buf text;
};

struct panel {
	const struct live *live;
	const struct run_progress *p;
	const struct live_figures *f;
	const struct live_style *style;
	int64_t now_ns;
	unsigned width;
	struct row row[ROWS_MAX];
	unsigned rows;
};

static const char *const plain_spark[] = {"_", ".", "-", "=", "+", "*", "#", "@"};
static const char *const block_spark[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

/* Whether it would be escaped (say.h). */
static bool is_shown(const char *c, size_t n)
{
	char seen[16];

	return say_escape(seen, sizeof(seen), c, n, SAY_LINE) == n && memcmp(seen, c, n) == 0;
}

/* Bytes of what sets a colour; 0: it is nothing of the kind. */
static size_t colour_length(const char *c)
{
	size_t n;

	if (c[0] != '\033' || c[1] != '[')
		return 0;
	n = 2 + strspn(c + 2, "0123456789;");
	return c[n] == 'm' ? n + 1 : 0;
}

/* As much of it as fits into `width` columns, with what colours it whole; bytes that are no
 * printable characters become '?'. */
static void put_cut(struct buf *out, const char *text, unsigned width)
{
	bool coloured = false;
	unsigned used = 0;

	for (const char *c = text; *c;) {
		size_t n = utf8_length(c), look = colour_length(c);

		if (look) {
			buf_append(out, c, look);
			coloured = true;
			c += look;
			continue;
		}
		if (used++ == width)
			break;
		if (n == 0 || !is_shown(c, n))
			buf_putc(out, '?');
		else
			buf_append(out, c, n);
		c += n ? n : 1;
	}
	if (coloured)
		buf_puts(out, "\033[0m");
}

static const char *colour(const struct panel *q, const char *code)
{
	return q->style->colour ? code : "";
}

static struct buf *new_row(struct panel *q, int weight)
{
	struct row *r = &q->row[q->rows++];

	*r = (struct row){.weight = weight};
	return &r->text;
}

/* "Label  text", with the first of the wordings that fits. */
static void add_line(struct panel *q, int weight, const char *label, const char *const *wording,
		     unsigned wordings)
{
	bool column = q->width >= LABEL_FROM;
	unsigned head = column ? LABEL : (unsigned)strlen(label) + 1, i = 0;
	struct buf line = {0};

	while (i + 1 < wordings &&
	       head + terminal_columns(wording[i], strlen(wording[i])) > q->width)
		i++;
	buf_printf(&line, "%s%-*s%s%s", colour(q, "\033[1m"), (int)head, label,
		   colour(q, "\033[0m"), wording[i]);
	put_cut(new_row(q, weight), line.data, q->width);
	buf_release(&line);
}

static const char *rate(double v, char *out, size_t n)
{
	char bytes[32];

	if (isnan(v))
		snprintf(out, n, "-");
	else
		snprintf(out, n, "%s/s", str_bytes(v, bytes, sizeof(bytes)));
	return out;
}

static const char *percent(double v, char *out, size_t n)
{
	if (isnan(v))
		snprintf(out, n, "-");
	else
		snprintf(out, n, "%.1f %%", v);
	return out;
}

static const char *count(double v, char *out, size_t n)
{
	if (isnan(v))
		snprintf(out, n, "-");
	else
		snprintf(out, n, v < 9.95 ? "%.2f" : v < 99.5 ? "%.1f" : "%.0f", v);
	return out;
}

/* ---- rows ---- */

static void add_title(struct panel *q)
{
	const struct run_progress *p = q->p;
	char title[161], long_text[320], ranks[80] = "", took[32];

	/* it may come from a file's name */
	say_escape(title, sizeof(title), q->style->title, strlen(q->style->title), SAY_LINE);
	if (p->ranks > p->ranks_here)
		snprintf(ranks, sizeof(ranks), ", ranks %u-%u of %u (others not shown)",
			 p->first_rank, p->first_rank + p->ranks_here - 1, p->ranks);
	else if (p->ranks)
		snprintf(ranks, sizeof(ranks), ", %u rank%s", p->ranks, p->ranks == 1 ? "" : "s");
	str_seconds((double)p->elapsed_ns / 1e9, took, sizeof(took));
	snprintf(long_text, sizeof(long_text), "%s%s, %s", title, ranks, took);
	const char *wording[] = {long_text, title};

	add_line(q, 3, "Workload", wording, 2);
}

static void phase_words(const struct run_progress *p, char *text, size_t n, char *brief,
			size_t brief_n)
{
	const char *word = live_phase_words[p->phase];
	unsigned long long done = p->done, total = p->total;
	unsigned long long here = p->epoch_done, of = p->epoch_total;

	if (p->training && p->phase == PROGRESS_FINISH) {
		snprintf(text, n, "finishing: proving the order, writing results");
		snprintf(brief, brief_n, "finishing");
	} else if (p->training && p->phase == PROGRESS_PROBE) {
		snprintf(text, n, "%s of the storage", word);
		snprintf(brief, brief_n, "probe");
		if (p->probe_total) {
			str_append(text, n, ", %u of %u numbers of readers", p->probe_done,
				   p->probe_total);
			str_append(brief, brief_n, " %u/%u", p->probe_done, p->probe_total);
		}
	} else if (p->training && p->phase == PROGRESS_EVAL) {
		snprintf(text, n, "%s, epoch %u/%u, step %llu/%llu (training: %llu/%llu)", word,
			 p->epoch, p->epochs, here, of, done, total);
		snprintf(brief, brief_n, "eval %u/%u %llu/%llu", p->epoch, p->epochs, here, of);
	} else if (p->training && p->phase == PROGRESS_CHECKPOINT) {
		char of_all[24];

		snprintf(of_all, sizeof(of_all), "/%llu", (unsigned long long)p->saves_total);
		snprintf(text, n, "%s %llu%s, epoch %u/%u, step %llu/%llu", word,
			 (unsigned long long)p->saves + 1, p->saves_by_time ? "" : of_all, p->epoch,
			 p->epochs, here, of);
		snprintf(brief, brief_n, "ckpt %u/%u %llu/%llu", p->epoch, p->epochs, here, of);
	} else if (p->training) {
		snprintf(text, n, "%s, epoch %u/%u, step %llu/%llu (total %llu/%llu)", word,
			 p->epoch, p->epochs, here, of, done, total);
		snprintf(brief, brief_n, "train %u/%u %llu/%llu", p->epoch, p->epochs, here, of);
	} else if (p->ranks) {
		snprintf(text, n, "%s, written %llu/%llu, read back %llu/%llu", word,
			 (unsigned long long)p->saves, (unsigned long long)p->saves_total,
			 (unsigned long long)p->loads, (unsigned long long)p->loads_total);
		snprintf(brief, brief_n, "ckpt %llu/%llu", done, total);
	} else if (p->phase == PROGRESS_VERIFY) {
		char a[32], b[32];

		snprintf(text, n, "%s, %s of %s", word, str_bytes((double)p->done, a, sizeof(a)),
			 str_bytes((double)p->total, b, sizeof(b)));
		snprintf(brief, brief_n, "verify");
	} else {
		snprintf(text, n, "%s, %llu/%llu files", word, done, total);
		snprintf(brief, brief_n, "%llu/%llu files", done, total);
	}
}

static void add_bar(struct panel *q)
{
	char text[160], brief[64], part[16];
	const char *choice[3] = {text, brief, ""};
	struct buf line = {0};
	unsigned bar = 0, used = 0, filled, i;

	phase_words(q->p, text, sizeof(text), brief, sizeof(brief));
	snprintf(part, sizeof(part), "%3.0f %%", floor(100 * q->f->part));
	for (i = 0; i < 3; i++) {
		used = (unsigned)(strlen(part) + 1 + strlen(choice[i]));
		if (used + BAR_LEAST + 3 <= q->width || (i == 1 && used <= q->width))
			break;
	}
	if (i == 3)
		used = (unsigned)strlen(part) + 1;
	if (q->width > used + 3)
		bar = q->width - used - 3;
	bar = bar > BAR_MOST ? BAR_MOST : bar < BAR_LEAST ? 0 : bar;
	filled = (unsigned)(q->f->part * bar);
	if (bar) {
		buf_printf(&line, "[%s", colour(q, "\033[32m"));
		for (unsigned c = 0; c < bar; c++) {
			if (c == filled)
				buf_puts(&line, colour(q, "\033[0m"));
			buf_putc(&line, c < filled ? '#' : '.');
		}
		buf_printf(&line, "%s] ", colour(q, "\033[0m"));
	}
	buf_printf(&line, "%s %s", part, i < 3 ? choice[i] : "");
	put_cut(new_row(q, 10), line.data, q->width);
	buf_release(&line);
}

static void add_au(struct panel *q)
{
	char now[32], last[32], target[48] = "", text[160], brief[96];

	percent(q->f->au, now, sizeof(now));
	percent(q->f->au_recent, last, sizeof(last));
	if (q->style->target > 0)
		snprintf(target, sizeof(target), "  (target %g %%)", q->style->target);
	snprintf(text, sizeof(text), "%s so far, recently %s%s", now, last, target);
	snprintf(brief, sizeof(brief), "%s, recently %s", now, last);
	if (q->f->filling) {
		snprintf(text, sizeof(text), "known when the first step ends%s", target);
		snprintf(brief, sizeof(brief), "not known yet");
	}
	const char *wording[] = {text, brief, now};

	add_line(q, 9, "AU", wording, 3);
}

static void add_throughput(struct panel *q)
{
	char s[32], b[48], s2[32], b2[48], text[240], middle[160], brief[128];

	count(q->f->samples_rate, s, sizeof(s));
	count(q->f->samples_recent, s2, sizeof(s2));
	rate(q->f->bytes_rate, b, sizeof(b));
	rate(q->f->bytes_recent, b2, sizeof(b2));
	snprintf(text, sizeof(text), "%s samples/s, %s decoded so far; recently %s samples/s, %s",
		 s, b, s2, b2);
	snprintf(middle, sizeof(middle), "%s samples/s, %s; recently %s", s, b, b2);
	snprintf(brief, sizeof(brief), "%s/s, %s", s, b);
	if (q->f->filling) {
		str_bytes((double)q->p->read_bytes, b, sizeof(b));
		rate(q->f->read_recent, b2, sizeof(b2));
		snprintf(text, sizeof(text), "workers read %llu samples, %s so far; recently %s",
			 (unsigned long long)q->p->read_samples, b, b2);
		snprintf(middle, sizeof(middle), "read: %llu samples, %s, %s",
			 (unsigned long long)q->p->read_samples, b, b2);
		snprintf(brief, sizeof(brief), "%llu samples, %s",
			 (unsigned long long)q->p->read_samples, b);
	}
	const char *wording[] = {text, middle, brief, b};

	if (q->p->training)
		add_line(q, 8, "Throughput", wording, 4);
	else if (q->p->phase != PROGRESS_CHECK)
		add_line(q, 8, "Throughput", wording + 3, 1);
}

static void add_wait(struct panel *q)
{
	char now[32], last[32], text[160], brief[96];

	percent(q->f->wait, now, sizeof(now));
	percent(q->f->wait_recent, last, sizeof(last));
	snprintf(text, sizeof(text),
		 "%s of the training time is spent waiting for batches, recently %s", now, last);
	snprintf(brief, sizeof(brief), "%s, recently %s", now, last);
	if (q->f->filling) {
		snprintf(text, sizeof(text), "for the first batches, which workers are reading");
		snprintf(brief, sizeof(brief), "for the first batches");
	}
	const char *wording[] = {text, brief, now};

	add_line(q, 6, "Wait", wording, 3);
}

static void add_device(struct panel *q)
{
	const struct live_figures *f = q->f;
	char in[48], out[48], text[240], brief[176];

	rate(f->device_read, in, sizeof(in));
	rate(f->device_write, out, sizeof(out));
	if (f->device == DEVICE_DISK) {
		snprintf(text, sizeof(text), "%s: reads %s, writes %s (whole disk)", f->device_name,
			 in, out);
		snprintf(brief, sizeof(brief), "%s: %s, %s", f->device_name, in, out);
	} else if (f->device == DEVICE_CALLS) {
		snprintf(text, sizeof(text), "unknown; read calls returned %s", in);
		snprintf(brief, sizeof(brief), "asked %s", in);
	} else {
		snprintf(text, sizeof(text), "not sampled");
		snprintf(brief, sizeof(brief), "-");
	}
	const char *wording[] = {text, brief};

	add_line(q, 5, "Device", wording, 2);
}

static void add_slowest(struct panel *q)
{
	const struct live_figures *f = q->f;
	char text[240], brief[128], tiny[64], s[32], share[32];

	if (!f->has_slowest)
		return;
	percent(f->slow_wait, share, sizeof(share));
	if (!isnan(f->standing_s)) {
		str_seconds(f->standing_s, s, sizeof(s));
		snprintf(text, sizeof(text), "no step for %s: rank %u %s", s, f->slow_rank,
			 f->slow_doing);
		snprintf(brief, sizeof(brief), "rank %u, %s", f->slow_rank, s);
	} else {
		str_seconds(f->slow_behind_s, s, sizeof(s));
		snprintf(text, sizeof(text),
			 "rank %u, %s slower than the mean rank; %s spent waiting", f->slow_rank, s,
			 share);
		snprintf(brief, sizeof(brief), "rank %u, +%s, waits %s", f->slow_rank, s, share);
	}
	snprintf(tiny, sizeof(tiny), "rank %u", f->slow_rank);
	const char *wording[] = {text, brief, tiny};

	add_line(q, 4, "Slowest", wording, 3);
}

static void add_left(struct panel *q)
{
	char s[32], text[200];

	if (q->p->phase == PROGRESS_FINISH)
		return;
	if (isnan(q->f->left_s)) {
		snprintf(s, sizeof(s), "not known yet");
		snprintf(text, sizeof(text), "%s", s);
	} else {
		str_seconds(q->f->left_s, s, sizeof(s));
		snprintf(text, sizeof(text), "%s (%s)", s, q->f->left_how);
	}
	const char *wording[] = {text, s};

	add_line(q, 7, "Left", wording, 2);
}

/* ---- what fills the room ---- */

static void spark_row(const struct panel *q, const char *label, const double *v, unsigned cells,
		      double top, const char *most, struct buf *out)
{
	const char *const *glyph = q->style->utf8 ? block_spark : plain_spark;
	struct buf line = {0};

	buf_printf(&line, "%s%-*s%s%s", colour(q, "\033[1m"), LABEL, label, colour(q, "\033[0m"),
		   colour(q, "\033[36m"));
	for (unsigned c = 0; c < cells; c++) {
		int level = isnan(v[c]) || !(top > 0) ? -1 : (int)(8 * v[c] / top);

		buf_puts(&line, level < 0 ? " " : glyph[level > 7 ? 7 : level]);
	}
	buf_printf(&line, "%s %s", colour(q, "\033[0m"), most);
	put_cut(out, line.data, q->width);
	buf_putc(out, '\n');
	buf_release(&line);
}

/* Curves of the last 60 s; of less on a narrow panel, where each column is a second. */
static unsigned sparks(const struct panel *q, unsigned room, struct buf *out)
{
	double bytes[SPARK_MOST], au[SPARK_MOST], top = 0;
	unsigned cells = q->width > LABEL + 20 ? q->width - LABEL - 20 : 0;
	double span = 60;
	char most[64], value[48];

	if (!q->p->training || room < 2 || q->width < SPARK_FROM)
		return 0;
	cells = cells > 60 ? (cells > SPARK_MOST ? SPARK_MOST : 60) : cells;
	if (cells < 60)
		span = cells;
	live_spark(q->live, q->now_ns, span, cells, bytes, au);
	for (unsigned c = 0; c < cells; c++)
		top = !isnan(bytes[c]) && bytes[c] > top ? bytes[c] : top;
	snprintf(most, sizeof(most), "to %s", rate(top, value, sizeof(value)));
	spark_row(q, "Reading", bytes, cells, top, most, out);
	snprintf(most, sizeof(most), "to 100 %%, %.0f s", span);
	spark_row(q, "AU", au, cells, 100, most, out);
	return 2;
}

static int64_t own_ns(const struct rank_progress *r)
{
	return r->compute_ns + r->wait_ns;
}

/* The `n` ranks with the most time of their own, the slowest first; or all, in order. */
static void choose_ranks(const struct run_progress *p, uint32_t *choice, unsigned n)
{
	unsigned have = 0;

	for (uint32_t i = 0; i < p->ranks_here; i++) {
		unsigned at = have;

		if (p->ranks_here <= n) {
			choice[have++] = i;
			continue;
		}
		if (have == n && own_ns(&p->rank[i]) <= own_ns(&p->rank[choice[n - 1]]))
			continue;
		at = have < n ? have++ : n - 1;
		while (at > 0 && own_ns(&p->rank[choice[at - 1]]) < own_ns(&p->rank[i])) {
			choice[at] = choice[at - 1];
			at--;
		}
		choice[at] = i;
	}
}

static void rank_cell(const struct panel *q, uint32_t i, unsigned width, struct buf *out)
{
	const struct rank_progress *r = &q->p->rank[i];
	double train = r->train_ns > 0 ? (double)r->train_ns : 1;
	double part[2] = {(double)r->compute_ns / train, (double)r->wait_ns / train};
	unsigned bar = width - 25, ends[2];
	char name[16], tail[24];

	snprintf(name, sizeof(name), "%5u", q->p->first_rank + i);
	snprintf(tail, sizeof(tail), "%3.0f %% AU, %3.0f %%", 100 * part[0], 100 * part[1]);
	ends[0] = (unsigned)(part[0] * bar + 0.5);
	ends[1] = (unsigned)((part[0] + part[1]) * bar + 0.5);
	buf_printf(out, "%s [%s", name, colour(q, "\033[32m"));
	for (unsigned c = 0; c < bar; c++) {
		if (c == ends[0])
			buf_puts(out, colour(q, "\033[31m"));
		if (c == ends[1])
			buf_puts(out, colour(q, "\033[33m"));
		buf_putc(out, c < ends[0] ? '#' : c < ends[1] ? 'w' : '.');
	}
	buf_printf(out, "%s] %-15s", colour(q, "\033[0m"), tail);
}

static void ranks(const struct panel *q, unsigned room, struct buf *out)
{
	const struct run_progress *p = q->p;
	unsigned across = (q->width + 1) / (RANK_CELL + 1), width, n, shown;
	struct buf line = {0};
	uint32_t *choice;

	if (!p->training || !p->rank || p->ranks_here < 2 || room < 2 || across == 0)
		return;
	n = across * (room - 1);
	n = n > RANK_CELLS_MAX ? RANK_CELLS_MAX : n;
	shown = n < p->ranks_here ? n : p->ranks_here;
	if (across > shown)
		across = shown;
	width = (q->width + 1) / across - 1;
	width = width > 2 * RANK_CELL ? 2 * RANK_CELL : width;
	choice = xcalloc(n, sizeof(*choice));
	choose_ranks(p, choice, n);
	buf_printf(&line, "%sRanks%s       # computes, w waits, . barrier and other; AU, wait%s",
		   colour(q, "\033[1m"), colour(q, "\033[0m"),
		   shown < p->ranks_here ? "; slowest first" : "");
	put_cut(out, line.data, q->width);
	buf_putc(out, '\n');
	for (unsigned i = 0; i < shown; i++) {
		rank_cell(q, choice[i], width, out);
		buf_putc(out, (i + 1) % across && i + 1 < shown ? ' ' : '\n');
	}
	free(choice);
	buf_release(&line);
}

static void drop_to(struct panel *q, unsigned rows)
{
	while (q->rows > rows) {
		unsigned least = 0;

		for (unsigned i = 1; i < q->rows; i++)
			if (q->row[i].weight < q->row[least].weight)
				least = i;
		buf_release(&q->row[least].text);
		memmove(&q->row[least], &q->row[least + 1],
			(q->rows - least - 1) * sizeof(q->row[0]));
		q->rows--;
	}
}

void live_panel(const struct live *l, const struct run_progress *p, const struct live_figures *f,
		int64_t now_ns, const struct live_style *style, struct buf *out)
{
	struct panel q = {.live = l, .p = p, .f = f, .style = style, .now_ns = now_ns};
	/* the cursor rests on the line below; on a high terminal a third is left to others */
	unsigned most = style->rows > 1 ? style->rows - 1 : 1, enough, room;

	enough = style->rows * 2 / 3;
	q.width = style->columns > 1 ? style->columns - 1 : 1;
	if (most > ROWS_WANTED)
		most = enough > ROWS_WANTED ? enough : ROWS_WANTED;
	add_title(&q);
	add_bar(&q);
	if (p->training)
		add_au(&q);
	add_throughput(&q);
	if (p->training)
		add_wait(&q);
	if (p->ranks)
		add_device(&q);
	add_slowest(&q);
	add_left(&q);
	drop_to(&q, most);
	for (unsigned i = 0; i < q.rows; i++) {
		buf_append(out, q.row[i].text.data, q.row[i].text.len);
		buf_putc(out, '\n');
		buf_release(&q.row[i].text);
	}
	room = most - q.rows;
	room -= sparks(&q, room, out);
	ranks(&q, room, out);
}
