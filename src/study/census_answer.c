/* What a survey says. */
#include "study/census.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/say.h"
#include "base/str.h"
#include "result/json_out.h"

#define KIND_FIRST "H100" /* that the first line speaks of, where a workload has it */
#define INDENT 16
static const double CACHED_MOST = 0.05; /* of the bytes, from the page cache */
static const double READERS_ALL = 0.9;  /* of the most: so many of them were reading */

const char *const census_limit_keys[] = {
	[CENSUS_UNKNOWN] = "unknown",   [CENSUS_BANDWIDTH] = "bandwidth",
	[CENSUS_REQUESTS] = "requests", [CENSUS_EITHER] = "bandwidth_or_requests",
	[CENSUS_OPENS] = "opens",       [CENSUS_LATENCY] = "latency",
	[CENSUS_HOST] = "host"};
const char *const census_limit_texts[] = {[CENSUS_UNKNOWN] = "not known",
					  [CENSUS_BANDWIDTH] = "bandwidth",
					  [CENSUS_REQUESTS] = "requests/s",
					  [CENSUS_EITHER] = "bandwidth or requests/s",
					  [CENSUS_OPENS] = "opens",
					  [CENSUS_LATENCY] = "latency: more readers get more",
					  [CENSUS_HOST] = "the processors of this host"};

/* Two digits below 1, tenths below 20, three digits of large ones. */
static const char *number(double v, char out[24])
{
	if (v >= 999.5) {
		snprintf(out, 24, "%.2e", v);
		snprintf(out, 24, "%.0f", strtod(out, NULL));
	} else {
		snprintf(out, 24, v < 0.995 ? "%.2g" : v < 19.95 ? "%.1f" : "%.0f", v);
	}
	return out;
}

static void put_range(const struct census_row *r, struct buf *out)
{
	char fed[24], low[24], high[24];

	if (!isfinite(r->fed))
		buf_puts(out, "not measured");
	else if (r->at_least)
		buf_say(out, "at least %s", number(r->low, low));
	else
		buf_say(out, "%s (%s to %s)", number(r->fed, fed), number(r->low, low),
			number(r->high, high));
}

static bool has_kind(const struct census *s, const char *model, const char *kind)
{
	for (size_t i = 0; i < s->rows; i++)
		if (strcmp(s->row[i].model, model) == 0 && strcmp(s->row[i].kind, kind) == 0)
			return true;
	return false;
}

static bool is_first_of(const struct census *s, size_t row)
{
	for (size_t i = 0; i < row; i++)
		if (strcmp(s->row[i].model, s->row[row].model) == 0)
			return false;
	return true;
}

/* Each model once: on H100 where a workload has it, else on the first kind that there is. */
static bool is_in_answer(const struct census *s, size_t row)
{
	const struct census_row *r = &s->row[row];

	return strcmp(r->kind, KIND_FIRST) == 0 ||
	       (!has_kind(s, r->model, KIND_FIRST) && is_first_of(s, row));
}

/* Those on one kind of accelerator. */
static void put_kind(const struct census *s, const char *kind, size_t before, struct buf *out)
{
	size_t first = out->len;

	for (size_t i = 0; i < s->rows; i++) {
		const struct census_row *r = &s->row[i];

		if (strcmp(r->kind, kind) != 0 || !is_in_answer(s, i))
			continue;
		buf_say(out, "%s%s ",
			out->len > first    ? ", "
			: out->len > before ? "; "
					    : "",
			r->model);
		put_range(r, out);
	}
	if (out->len > first)
		buf_say(out, " %s", kind[0] ? kind : "accelerators of an unnamed kind");
}

static double worst_cached(const struct census *s, bool *cold)
{
	double worst = NAN;

	*cold = true;
	for (size_t i = 0; i < s->patterns; i++) {
		worst = fmax(worst, s->pattern[i].cached);
		*cold = *cold && (s->pattern[i].runs == 0 || s->pattern[i].cold);
	}
	return worst;
}

/* What the figures are of, where that is not the storage. */
static void put_what(const struct census *s, struct buf *out)
{
	bool cold;
	double cached = worst_cached(s, &cold);

	if (s->emulated)
		buf_puts(out, "emulated store: ");
	else if (s->source != CENSUS_STORAGE)
		buf_say(out, "NOT the storage, memory below the file system served %.0f %%: ",
			100 * s->below);
	else if (!cold || cached > CACHED_MOST)
		buf_say(out, "NOT COLD, the page cache served up to %.0f %%: ",
			isfinite(cached) ? 100 * cached : 100.0);
}

/* "3D-UNet 1.2 (1.1 to 1.3), ResNet-50 9.5 (9.1 to 9.9) H100; RetinaNet 17.1 (16 to 18) B200". */
static void put_answer(const struct census *s, struct buf *out)
{
	size_t before;
	char bytes[32];

	put_what(s, out);
	before = out->len;
	put_kind(s, KIND_FIRST, before, out);
	for (size_t i = 0; i < s->rows; i++) {
		const char *kind = s->row[i].kind;
		bool told = strcmp(kind, KIND_FIRST) == 0 || !kind[0] || !is_in_answer(s, i);

		for (size_t k = 0; k < i; k++)
			told = told || (is_in_answer(s, k) && strcmp(s->row[k].kind, kind) == 0);
		if (!told)
			put_kind(s, kind, before, out);
	}
	put_kind(s, "", before, out);
	if (s->saves)
		buf_say(out, "; a checkpoint of %s in %s", s->save[0].name,
			str_seconds(s->save[0].seconds, bytes, sizeof(bytes)));
}

static size_t runs_of(const struct census *s)
{
	size_t most = 0;

	for (size_t i = 0; i < s->patterns; i++)
		most = s->pattern[i].runs > most ? s->pattern[i].runs : most;
	return most;
}

/* A line with a name, wrapped. */
static void put_line(struct buf *out, size_t columns, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void put_line(struct buf *out, size_t columns, const char *name, const char *fmt, ...)
{
	struct buf text = {0};
	va_list ap;

	va_start(ap, fmt);
	buf_vsay(&text, fmt, ap);
	va_end(ap);
	buf_say(out, "  %-13s ", name);
	buf_wrap(out, text.data, INDENT, INDENT, columns);
	buf_release(&text);
}

static const char *model_at(const struct census *s, size_t pattern)
{
	for (size_t i = 0; i < s->rows; i++)
		if (s->row[i].pattern == pattern)
			return s->row[i].model;
	return s->pattern[pattern].workload;
}

/* "1 to 64 readers (ResNet-50 22)": in the mean of the time, of each pattern at most. */
static void put_readers(const struct census *s, struct buf *out)
{
	double most = 0, own;
	size_t before;

	for (size_t i = 0; i < s->patterns; i++)
		most = fmax(most, census_readers(&s->pattern[i].curve));
	if (!(most > 0))
		return;
	buf_printf(out, "; 1 to %.0f readers", most);
	before = out->len;
	for (size_t i = 0; i < s->patterns; i++) {
		own = census_readers(&s->pattern[i].curve);
		if (own > 0 && own < READERS_ALL * most)
			buf_say(out, "%s%s %.0f", out->len > before ? ", " : " (", model_at(s, i),
				own);
	}
	if (out->len > before)
		buf_putc(out, ')');
	buf_printf(out, ", %zu time%s", runs_of(s), runs_of(s) == 1 ? "" : "s");
}

/* Why the bytes are not the storage's, and what to do. */
static void put_source(const struct census *s, size_t columns, struct buf *out)
{
	const char *what = s->below_what;
	double below = 100 * s->below;

	if (s->source == CENSUS_DEVICE_IN_MEMORY)
		put_line(out, columns, "NOT STORAGE",
			 "%s: no disk was measured. Survey a folder of a file system on a disk",
			 what);
	else if (s->source == CENSUS_CACHE_BELOW)
		put_line(out, columns, "NOT COLD",
			 "%s, and memory below the file system, this host's page cache of that "
			 "file, served %.0f %% of what the device delivered: the storage gives "
			 "less. Read past that cache ('losetup --direct-io=on /dev/%.*s'), and "
			 "survey again",
			 what, below, (int)strcspn(what, " "), what);
	else
		put_line(out, columns, "NOT STORAGE",
			 "%s, serves this file system, and %.0f %% of what it served came from no "
			 "disk and no network: it has it in memory. Survey the folder that it "
			 "serves, or search with 'capacity' in more data than this host has memory",
			 what, below);
}

static void put_cold(const struct census *s, size_t columns, struct buf *out)
{
	bool cold;
	double cached = worst_cached(s, &cold);
	char each[32];

	if (s->emulated)
		put_line(out, columns, "emulated",
			 "the storage is a store of this program: the figures say nothing of a "
			 "storage");
	else if (s->source != CENSUS_STORAGE)
		put_source(s, columns, out);
	else if (!cold || cached > CACHED_MOST)
		put_line(out, columns, "NOT COLD",
			 "the page cache of this host served up to %.0f %% of the bytes: the "
			 "storage gives less",
			 isfinite(cached) ? 100 * cached : 100.0);
	else
		put_line(out, columns, "cold",
			 "%s%.0f %% of the bytes came from the page cache of this host; a cache "
			 "in the storage of more than %s would not be seen",
			 isfinite(cached) ? "" : "evicted before each run; at most ",
			 isfinite(cached) ? 100 * cached : 0.0,
			 str_bytes((double)s->pattern[0].bytes, each, sizeof(each)));
}

static void put_how(const struct census *s, size_t columns, struct buf *out)
{
	char took[32], written[32], most[32];
	struct buf readers = {0};

	put_line(out, columns, "storage", "%s%s%s", s->o->folder, s->file_system[0] ? ", " : "",
		 s->file_system);
	put_readers(s, &readers);
	put_line(out, columns, "measured", "in %s with %s, %s at a time, made and removed%s",
		 str_seconds(s->seconds, took, sizeof(took)),
		 str_bytes(s->written, written, sizeof(written)),
		 str_bytes(s->most, most, sizeof(most)), readers.data ? readers.data : "");
	buf_release(&readers);
	put_cold(s, columns, out);
}

/* "2.66 GiB/s at 90 %". */
static void put_need(const struct census_row *r, struct buf *out)
{
	char need[40];

	buf_say(out, "%s at %.4g %%", need_rate_text(r->need.bytes * r->target, need, sizeof(need)),
		100 * r->target);
}

static void put_rows(const struct census *s, size_t columns, struct buf *out)
{
	buf_say(out, "\n  %-10s %-5s %-22s %-19s %s\n", "workload", "", "feeds (95 %)",
		"one needs at its AU", "what limits it");
	for (size_t i = 0; i < s->rows; i++) {
		const struct census_row *r = &s->row[i];
		struct buf range = {0}, need = {0}, limit = {0};
		char supply[40];
		size_t at = out->len;

		put_range(r, &range);
		put_need(r, &need);
		if (isfinite(r->fed))
			buf_say(&limit, "%s; %.0f reader%s %s", census_limit_texts[r->limit],
				r->at_readers, round(r->at_readers) == 1 ? " gets" : "s get",
				need_rate_text(r->supply_bytes, supply, sizeof(supply)));
		else
			buf_say(&limit, "%s", s->pattern[r->pattern].why);
		buf_say(out, "  %-10s %-5s %-22s %-19s ", r->model, r->kind[0] ? r->kind : "-",
			range.data, need.data);
		buf_wrap(out, limit.data, out->len - at, INDENT, columns);
		buf_release(&range);
		buf_release(&need);
		buf_release(&limit);
	}
}

static void put_checks(const struct census *s, size_t columns, struct buf *out)
{
	for (size_t i = 0; i < s->patterns; i++) {
		const struct census_pattern *p = &s->pattern[i];
		double off = fabs(log(p->agrees));
		char rate[24];

		if (p->runs && !isfinite(p->agrees) && p->client_rate > 0)
			put_line(out, columns, "note",
				 "%s: the processors of this host, not the storage, limited its "
				 "loader to %s samples/s of the files made: 'capacity' would "
				 "find fewer here",
				 p->workload, number(p->client_rate, rate));
		if (!isfinite(p->agrees) || off < 0.1)
			continue;
		if (p->busy < 1)
			put_line(out, columns, "note",
				 "%s: the loader keeps %.0f %% of its readers busy, as a run "
				 "shows: counted",
				 p->workload, 100 * p->busy);
		else if (off > fmax(0.03, p->spread))
			put_line(out, columns, "note",
				 "%s: a run got %.0f %% of what readers alone get: the interval "
				 "includes it",
				 p->workload, 100 * p->agrees);
	}
}

static void put_saves(const struct census *s, size_t columns, struct buf *out)
{
	char rate[40], bytes[32], took[32];
	struct buf text = {0};

	if (!s->saves)
		return;
	buf_say(&text, "%s at most, synced, with %u writer%s of this host:",
		need_rate_text(s->save_rate, rate, sizeof(rate)), s->writers,
		s->writers == 1 ? "" : "s");
	for (size_t i = 0; i < s->saves; i++)
		buf_say(&text, "%s %s (%s) %s", i ? "," : "", s->save[i].name,
			str_bytes(s->save[i].bytes, bytes, sizeof(bytes)),
			str_seconds(s->save[i].seconds, took, sizeof(took)));
	buf_putc(out, '\n');
	put_line(out, columns, "checkpoints", "%s", text.data);
	buf_release(&text);
}

void census_text(const struct census *s, size_t columns, struct buf *out)
{
	struct buf answer = {0};

	put_answer(s, &answer);
	buf_wrap(out, answer.data, 0, 0, columns);
	buf_release(&answer);
	put_how(s, columns, out);
	put_rows(s, columns, out);
	put_saves(s, columns, out);
	put_checks(s, columns, out);
}

/* ---- JSON ---- */

static json_t *points_json(const struct census_curve *c)
{
	json_t *list = json_array();

	for (size_t i = 0; i < c->n; i++) {
		const struct census_point *p = &c->point[i];
		json_t *one = json_object();

		json_put_real(one, "readers", p->readers);
		json_put_real(one, "samples_per_s", p->rate);
		json_put_real(one, "measured_samples_per_s", p->made_rate);
		json_put_real(one, "bytes_per_s", p->bytes);
		json_put_real(one, "requests_per_s", p->requests);
		json_put_real(one, "opens_per_s", p->opens);
		json_put_real(one, "open_percent", 100 * p->open_share);
		json_put_real(one, "processors_percent", 100 * p->cpu);
		json_array_append_new(list, one);
	}
	return list;
}

static json_t *pattern_json(const struct census_pattern *p)
{
	json_t *one = json_object(), *runs = json_array();

	json_put_text(one, "workload", p->workload);
	json_put_text(one, "why", p->why[0] ? p->why : NULL);
	json_put_real(one, "sample_bytes", p->sample_bytes);
	json_put_real(one, "measured_sample_bytes", p->made_bytes);
	json_put_int(one, "files", p->files);
	json_put_int(one, "samples_per_file", p->made_per_file);
	json_put_int(one, "bytes", p->bytes);
	json_put_bool(one, "cold", p->cold);
	json_put_real(one, "page_cache_percent", 100 * p->cached);
	json_put_real(one, "memory_below_percent", 100 * p->below);
	json_put_real(one, "half_interval_percent", 100 * p->spread);
	json_put_int(one, "run_accelerators", p->ranks);
	json_put_real(one, "run_readers", p->readers);
	json_put_real(one, "run_by_curve", p->agrees);
	json_put_real(one, "host_limited_samples_per_s", p->client_rate > 0 ? p->client_rate : NAN);
	json_put_real(one, "busy_readers_percent", 100 * p->busy);
	json_put(one, "points", points_json(&p->curve));
	for (size_t i = 0; i < p->runs; i++) {
		json_t *run = json_object();

		json_put_real(run, "loader_samples_per_s", p->checked[i]);
		json_put(run, "points", points_json(&p->run[i]));
		json_array_append_new(runs, run);
	}
	json_put(one, "runs", runs);
	return one;
}

static json_t *row_json(const struct census *s, const struct census_row *r)
{
	json_t *one = json_object();

	json_put_text(one, "workload", r->name);
	json_put_text(one, "model", r->model);
	json_put_text(one, "accelerator", r->kind[0] ? r->kind : NULL);
	json_put_text(one, "measured_as", s->pattern[r->pattern].workload);
	json_put_int(one, "pattern", r->pattern);
	json_put_real(one, "accelerators", r->fed);
	json_put_real(one, "low_95", r->low);
	json_put_real(one, "high_95", r->high);
	json_put_bool(one, "at_least", r->at_least);
	json_put_text(one, "limit", census_limit_keys[r->limit]);
	json_put_text(one, "limit_text", census_limit_texts[r->limit]);
	json_put_real(one, "target_percent", 100 * r->target);
	json_put_real(one, "need_samples_per_s", r->need.samples * r->target);
	json_put_real(one, "need_bytes_per_s", r->need.bytes * r->target);
	json_put_real(one, "readers_of_one", r->readers);
	json_put_real(one, "readers", r->at_readers);
	json_put_real(one, "supply_bytes_per_s", r->supply_bytes);
	return one;
}

static json_t *saves_json(const struct census *s)
{
	json_t *o = json_object(), *list = json_array(), *each = json_array();

	json_put_real(o, "write_bytes_per_s", s->save_rate);
	json_put_int(o, "writers", s->writers);
	for (size_t i = 0; i < s->saves_made; i++)
		json_array_append_new(each, json_number(s->save_each[i]));
	json_put(o, "measured_bytes_per_s", each);
	for (size_t i = 0; i < s->saves; i++) {
		json_t *one = json_object();

		json_put_text(one, "parameters", s->save[i].name);
		json_put_real(one, "bytes", s->save[i].bytes);
		json_put_real(one, "seconds", s->save[i].seconds);
		json_array_append_new(list, one);
	}
	json_put(o, "sizes", list);
	return o;
}

json_t *census_json(const struct census *s)
{
	json_t *root = json_object(), *rows = json_array(), *patterns = json_array();
	struct buf text = {0};
	bool cold;
	double cached = worst_cached(s, &cold);

	json_put_mark(root);
	put_answer(s, &text);
	json_put_text(root, "answer", text.data);
	buf_release(&text);
	json_put_text(root, "folder", s->o->folder);
	json_put_text(root, "file_system", s->file_system);
	json_put_bool(root, "emulated", s->emulated);
	json_put_real(root, "seconds", s->seconds);
	json_put_real(root, "written_bytes", s->written);
	json_put_real(root, "most_bytes", s->most);
	json_put_bool(root, "cold", cold);
	json_put_text(root, "source", s->emulated ? "emulated" : census_source_keys[s->source]);
	json_put_text(root, "below", s->source != CENSUS_STORAGE ? s->below_what : NULL);
	json_put_real(root, "memory_below_percent", 100 * s->below);
	json_put_real(root, "page_cache_percent", 100 * cached);
	for (size_t i = 0; i < s->rows; i++)
		json_array_append_new(rows, row_json(s, &s->row[i]));
	json_put(root, "workloads", rows);
	for (size_t i = 0; i < s->patterns; i++)
		json_array_append_new(patterns, pattern_json(&s->pattern[i]));
	json_put(root, "patterns", patterns);
	if (s->saves)
		json_put(root, "checkpoints", saves_json(s));
	return root;
}
