/* The list of findings: summed up and printed. */
#include "readback/audit.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/say.h"
#include "base/map.h"
#include "readback/record_measures.h"
#include "result/json_out.h"

#define COLUMNS 100
#define INDENT 10
#define ROW_INDENT 6
#define EXAMPLE 240 /* characters of one in a summary */

static const char *level_name(enum audit_level level)
{
	static const char *const names[] = {"note", "warning", "FAIL"};

	assert(level <= AUDIT_FAIL);
	return names[level];
}

struct finding *audit_add(struct audit *a, size_t i, const char *check, enum audit_level level)
{
	struct finding *f;

	assert(i < a->records);
	if (a->findings == a->finding_room) {
		a->finding_room = a->finding_room ? 2 * a->finding_room : 4;
		a->finding = xrealloc(a->finding, a->finding_room * sizeof(*a->finding));
	}
	f = &a->finding[a->findings++];
	*f = (struct finding){
		.record = i, .level = level, .text = xstrdup(""), .advice = xstrdup("")};
	snprintf(f->check, sizeof(f->check), "%s", check);
	return f;
}

void finding_say(struct finding *f, const char *fmt, ...)
{
	AUTO_FREE char *before = f->text;
	AUTO_FREE char *more = NULL;
	va_list ap;

	va_start(ap, fmt);
	more = xvasprintf(fmt, ap);
	va_end(ap);
	f->text = xasprintf("%s%s", before, more);
	if (strlen(f->text) > FINDING_TEXT_MAX)
		f->text[FINDING_TEXT_MAX] = '\0';
}

void finding_advise(struct finding *f, const char *fmt, ...)
{
	va_list ap;

	free(f->advice);
	va_start(ap, fmt);
	f->advice = xvasprintf(fmt, ap);
	va_end(ap);
	if (strlen(f->advice) > FINDING_ADVICE_MAX)
		f->advice[FINDING_ADVICE_MAX] = '\0';
}

struct audit_topic *audit_add_topic(struct audit *a, size_t i)
{
	struct audit_topic *t;

	if (a->topics == a->topic_room) {
		a->topic_room = a->topic_room ? 2 * a->topic_room : 8;
		a->topic = xrealloc(a->topic, a->topic_room * sizeof(*a->topic));
	}
	t = &a->topic[a->topics++];
	*t = (struct audit_topic){.record = i};
	return t;
}

void audit_append(struct audit *a, struct audit *one, size_t i)
{
	for (size_t k = 0; k < one->findings; k++) {
		struct finding *f = audit_add(a, i, one->finding[k].check, one->finding[k].level);

		free(f->text);
		free(f->advice);
		*f = one->finding[k];
		f->record = i;
	}
	for (size_t k = 0; k < one->topics; k++) {
		struct audit_topic *t = audit_add_topic(a, i);

		*t = one->topic[k];
		t->record = i;
	}
	one->findings = one->topics = 0;
	audit_release(one);
}

void audit_release(struct audit *a)
{
	for (size_t i = 0; i < a->findings; i++) {
		free(a->finding[i].text);
		free(a->finding[i].advice);
	}
	for (size_t i = 0; i < a->topics; i++)
		free(a->topic[i].unchecked);
	free(a->finding);
	free(a->topic);
	free(a->first);
	free(a->first_topic);
	*a = (struct audit){0};
}

const struct finding *audit_of(const struct audit *a, size_t i, size_t *n)
{
	*n = a->first[i + 1] - a->first[i];
	return *n ? &a->finding[a->first[i]] : NULL;
}

static const struct audit_topic *audit_topics(const struct audit *a, size_t i, size_t *n)
{
	*n = a->first_topic[i + 1] - a->first_topic[i];
	return *n ? &a->topic[a->first_topic[i]] : NULL;
}

int audit_worst_of(const struct audit *a, size_t i)
{
	size_t n;
	const struct finding *f = audit_of(a, i, &n);

	return n ? (int)f->level : -1;
}

int audit_worst(const struct audit *a)
{
	int worst = -1;

	for (size_t i = 0; i < a->findings; i++)
		if ((int)a->finding[i].level > worst)
			worst = (int)a->finding[i].level;
	return worst;
}

const struct finding *audit_damage(const struct audit *a, size_t *records)
{
	const struct finding *first = NULL;
	size_t last = SIZE_MAX;

	*records = 0;
	for (size_t i = 0; i < a->findings; i++) {
		const struct finding *f = &a->finding[i];

		if (!f->damage)
			continue;
		first = first ? first : f;
		*records += f->record != last;
		last = f->record;
	}
	return first;
}

void finding_sentence(const struct audit *a, const struct finding *f, struct buf *out)
{
	const char *folder = a->record[f->record].folder;
	AUTO_FREE char *named = xasprintf("'%s", folder);
	size_t n = strlen(f->text);

	if (!strstr(f->text, named))
		buf_printf(out, "%s': ", named);
	buf_printf(out, "%.*s", (int)(n && f->text[n - 1] == '.' ? n - 1 : n), f->text);
}

/* ---- one record ---- */

static const char *const colors[] = {"\033[36m", "\033[33m", "\033[31;1m"};

/* "warning ", in its colour. */
static void put_level(enum audit_level level, bool color, struct buf *out)
{
	buf_puts(out, "  ");
	buf_puts(out, color ? colors[level] : "");
	buf_say(out, "%-8s", level_name(level));
	buf_puts(out, color ? "\033[0m" : "");
}

static const char *nothing(const struct run_record *r)
{
	return r->trained || r->checkpointed ? "no findings"
					     : "no training was run, so there is little to check";
}

static void put_finding(const struct finding *f, bool color, struct buf *out)
{
	size_t begin;

	put_level(f->level, color, out);
	begin = out->len;
	buf_say(out, "%s:", f->check);
	buf_wrap(out, f->text, INDENT + out->len - begin, INDENT, COLUMNS);
	if (!f->advice[0])
		return;
	buf_say(out, "%*s-> ", INDENT, "");
	buf_wrap(out, f->advice, INDENT + 3, INDENT + 3, COLUMNS);
}

/* "steps (96 figures), summary (14)", and what was not compared, with the reason. */
static void put_checked(const struct audit *a, size_t i, bool verbose, struct buf *out)
{
	struct buf line = {0};
	size_t n;
	const struct audit_topic *topics = audit_topics(a, i, &n);

	for (size_t k = 0; k < n; k++) {
		const struct audit_topic *t = &topics[k];

		if (t->compared == 0)
			continue;
		if (verbose) {
			buf_say(out, "  checked %s:", t->name);
			buf_say(&line, " %zu compared, %zu differ: %s.", t->compared, t->differ,
				t->what);
			buf_wrap(out, line.data + 1, 11 + strlen(t->name), INDENT, COLUMNS);
			buf_reset(&line);
		} else {
			buf_say(&line, "%s%s (%zu%s)", line.len ? ", " : "", t->name, t->compared,
				line.len ? "" : " compared");
		}
	}
	if (line.len) {
		buf_puts(out, "  checked ");
		buf_wrap(out, line.data, INDENT, INDENT, COLUMNS);
	}
	buf_reset(&line);
	for (size_t k = 0; k < n; k++) {
		const struct audit_topic *t = &topics[k];

		if (t->unchecked)
			buf_say(&line, "%s%s: %s", line.len ? "; " : "", t->name, t->unchecked);
		if (t->by_digest && verbose)
			buf_say(&line, "%s%s: known by a digest only: %s", line.len ? "; " : "",
				t->name, t->by_digest);
	}
	if (line.len) {
		buf_puts(out, "  unchecked ");
		buf_wrap(out, line.data, INDENT + 2, INDENT, COLUMNS);
	}
	buf_release(&line);
}

static void put_record(const struct audit *a, size_t i, bool color, bool verbose, struct buf *out)
{
	const struct run_record *r = &a->record[i];
	size_t n;
	const struct finding *f = audit_of(a, i, &n);

	if (r->broken)
		buf_say(out, "%s  (%s, not judged)\n", r->folder, r->ours ? "Stoker" : "DLIO");
	else
		buf_say(out, "%s  (%s, %u rank%s%s)\n", r->folder, r->ours ? "Stoker" : "DLIO",
			r->ranks, r->ranks == 1 ? "" : "s",
			r->trained        ? ""
			: r->checkpointed ? ", checkpoints"
					  : ", no training");
	for (size_t k = 0; k < n; k++)
		put_finding(&f[k], color, out);
	if (n == 0)
		buf_say(out, "  %s\n", nothing(r));
	put_checked(a, i, verbose, out);
}

/* ---- many records ---- */

/* A finding that several results have: the first is the example. */
struct kind {
	const struct finding *example;
	size_t results, last;
};

static int by_frequency(const void *x, const void *y)
{
	const struct kind *a = x, *b = y;

	if (a->example->level != b->example->level)
		return a->example->level > b->example->level ? -1 : 1;
	if (a->results != b->results)
		return a->results > b->results ? -1 : 1;
	return strcmp(a->example->check, b->example->check);
}

static struct kind *kinds_of(const struct audit *a, size_t *n)
{
	struct kind *v = xcalloc(a->findings + 1, sizeof(*v));
	struct texts names = {0};

	*n = 0;
	for (size_t i = 0; i < a->findings; i++) {
		const struct finding *f = &a->finding[i];
		char name[sizeof(f->check) + 2];
		size_t k;

		snprintf(name, sizeof(name), "%c%s", 'a' + (char)f->level, f->check);
		k = texts_add(&names, name);
		if (k == *n)
			v[(*n)++] = (struct kind){.example = f, .last = SIZE_MAX};
		if (v[k].last == f->record)
			continue;
		v[k].last = f->record;
		v[k].results++;
	}
	texts_release(&names);
	qsort(v, *n, sizeof(*v), by_frequency);
	return v;
}

static void put_counts(const struct audit *a, struct buf *out)
{
	size_t ours = 0, level[4] = {0}, figures = 0, partly = 0;

	for (size_t i = 0; i < a->records; i++) {
		ours += a->record[i].ours;
		level[audit_worst_of(a, i) + 1]++;
	}
	for (size_t k = 0; k < a->topics; k++) {
		figures += a->topic[k].compared;
		partly += a->topic[k].unchecked != NULL;
	}
	buf_say(out,
		"%zu results (%zu of Stoker, %zu of DLIO): %zu FAIL, %zu with warnings, %zu with "
		"notes only, %zu without findings.\n"
		"%zu figures were derived from others and compared; %zu checks of results could "
		"not be made, or not in full.\n",
		a->records, ours, a->records - ours, level[3], level[2], level[1], level[0],
		figures, partly);
}

/* How much of the folders' names all results have in common, up to a slash. */
static size_t common_folder(const struct audit *a)
{
	const char *first = a->record[0].folder;
	size_t n = strlen(first);

	for (size_t i = 1; i < a->records; i++) {
		size_t same = 0;

		while (same < n && a->record[i].folder[same] == first[same])
			same++;
		n = same;
	}
	while (n > 0 && first[n - 1] != '/')
		n--;
	return n;
}

/* "warning: cache, steps" */
static void put_checks(const struct audit *a, size_t i, struct buf *out)
{
	size_t n;
	const struct finding *f = audit_of(a, i, &n);
	const char *last = "";

	if (n == 0 || f[0].level == AUDIT_NOTE) {
		buf_puts(out, n ? "notes only" : "no findings");
		return;
	}
	buf_say(out, "%s:", level_name(f[0].level));
	for (size_t k = 0; k < n && f[k].level == f[0].level; k++) {
		if (strcmp(f[k].check, last) != 0)
			buf_say(out, "%s %s", last[0] ? "," : "", f[k].check);
		last = f[k].check;
	}
}

/* Results of DLIO, a line each: what they claim, and how far it holds. */
static void put_lines(const struct audit *a, struct buf *out)
{
	size_t common = common_folder(a);
	struct buf line = {0};

	buf_putc(out, '\n');
	for (size_t i = 0; i < a->records; i++) {
		const struct run_record *r = &a->record[i];
		double whole = record_whole_run_au(r);

		if (r->ours)
			continue;
		if (!r->broken)
			buf_say(&line, "%u accelerator%s on %u host%s, ", r->ranks,
				r->ranks == 1 ? "" : "s", r->hosts, r->hosts == 1 ? "" : "s");
		if (r->trained && isfinite(r->au.mean))
			buf_say(&line, "AU %.1f %%", r->au.mean);
		if (r->trained && isfinite(r->au.mean) && isfinite(whole))
			buf_say(&line, " (whole run %.1f %%)", whole);
		if (r->trained && isfinite(r->au.mean))
			buf_say(&line, ", %.6g samples/s, %.0f MiB/s, ", r->throughput.mean,
				r->io.mean);
		if (isfinite(r->save_gib_per_s))
			buf_say(&line, "written at %.4g GiB/s, ", r->save_gib_per_s);
		if (isfinite(r->load_gib_per_s))
			buf_say(&line, "read at %.4g GiB/s, ", r->load_gib_per_s);
		put_checks(a, i, &line);
		/* a folder that leaves no room has a line of its own */
		buf_say(out, "  %s:", r->folder + common);
		if (strlen(r->folder + common) + strlen(line.data) + 4 > COLUMNS)
			buf_printf(out, "\n%*s", ROW_INDENT, "");
		else
			buf_putc(out, ' ');
		buf_wrap(out, line.data, ROW_INDENT, ROW_INDENT, COLUMNS);
		buf_reset(&line);
	}
	buf_release(&line);
}

/* Its first sentences, of about EXAMPLE characters; at least one. */
static size_t whole_sentences(const char *text)
{
	size_t n = 0;

	for (const char *at = strstr(text, ". "); at; at = strstr(at + 1, ". "))
		if (n == 0 || at + 1 - text <= EXAMPLE)
			n = (size_t)(at + 1 - text);
	return n == 0 || strlen(text) <= EXAMPLE ? strlen(text) : n;
}

static void put_summary(const struct audit *a, bool color, struct buf *out)
{
	size_t n;
	struct kind *v = kinds_of(a, &n);

	put_counts(a, out);
	for (size_t i = 0; i < a->records; i++)
		if (!a->record[i].ours) {
			put_lines(a, out);
			break;
		}
	for (size_t k = 0; k < n; k++) {
		const struct finding *f = v[k].example;
		struct buf text = {0};
		size_t head;

		if (!strstr(f->text, a->record[f->record].folder))
			buf_say(&text, "%s: ", a->record[f->record].folder);
		buf_say(&text, "%.*s", (int)whole_sentences(f->text), f->text);
		buf_putc(out, '\n');
		put_level(f->level, color, out);
		buf_say(out, "%s: %zu result%s", f->check, v[k].results,
			v[k].results == 1 ? "." : "s, for example");
		buf_puts(out, "\n");
		head = (size_t)INDENT;
		buf_say(out, "%*s", INDENT, "");
		buf_wrap(out, text.data, head, INDENT, COLUMNS);
		buf_release(&text);
	}
	free(v);
}

/* Files that sum up results: one that is sound takes a line. */
static void put_sums(const struct audit *a, bool color, bool verbose, struct buf *out)
{
	for (size_t i = 0; i < a->records; i++) {
		size_t n;
		const struct finding *f = audit_of(a, i, &n);

		if (out->len)
			buf_putc(out, '\n');
		buf_say(out, "%s\n", a->record[i].folder);
		for (size_t k = 0; k < n; k++)
			put_finding(&f[k], color, out);
		if (n == 0)
			buf_puts(out, "  no findings\n");
		if (verbose || n)
			put_checked(a, i, verbose, out);
	}
}

static void put_results(const struct audit *a, bool color, bool verbose, struct buf *out)
{
	if (a->records > 1) {
		put_summary(a, color, out);
		if (!verbose) {
			buf_puts(out, "\nThe findings of each result, and what was checked: -v\n");
			return;
		}
		buf_puts(out, "\n");
	}
	for (size_t i = 0; i < a->records; i++) {
		if (i)
			buf_puts(out, "\n");
		put_record(a, i, color, verbose, out);
	}
}

void audit_text(const struct audit *a, const struct audit *sums, bool color, bool verbose,
		struct buf *out)
{
	put_results(a, color, verbose, out);
	if (sums)
		put_sums(sums, color, verbose, out);
}

/* ---- for programs ---- */

json_t *finding_json(const struct finding *f)
{
	json_t *o = json_object();

	json_put_text(o, "check", f->check);
	json_put_text(o, "level", f->level == AUDIT_FAIL ? "fail" : level_name(f->level));
	json_put_text(o, "text", f->text);
	json_put_text(o, "advice", f->advice);
	return o;
}

static void put_topics(const struct audit *a, size_t i, json_t *one)
{
	json_t *checked = json_array(), *unchecked = json_array();
	size_t n;
	const struct audit_topic *topics = audit_topics(a, i, &n);

	for (size_t k = 0; k < n; k++) {
		const struct audit_topic *t = &topics[k];
		json_t *o;

		if (t->compared) {
			o = json_object();
			json_put_text(o, "name", t->name);
			json_put_text(o, "what", t->what);
			json_put_int(o, "compared", t->compared);
			json_put_int(o, "differ", t->differ);
			json_array_append_new(checked, o);
		}
		if (t->unchecked) {
			o = json_object();
			json_put_text(o, "name", t->name);
			json_put_text(o, "why", t->unchecked);
			json_array_append_new(unchecked, o);
		}
		if (t->by_digest) {
			AUTO_FREE char *why = xasprintf("known by a digest only: %s", t->by_digest);

			o = json_object();
			json_put_text(o, "name", t->name);
			json_put_text(o, "why", why);
			json_array_append_new(unchecked, o);
		}
	}
	json_put(one, "checked", checked);
	json_put(one, "unchecked", unchecked);
}

static void put_known(json_t *o, const char *key, double v)
{
	if (isfinite(v))
		json_put_real(o, key, v);
}

/* What DLIO's files state, and what they have to be by the rules of MLPerf Storage. */
static json_t *facts_json(const struct run_record *r)
{
	double file = r->data_bytes / r->files, batch = (double)r->facts.batch * r->ranks;
	json_t *o = json_object();

	json_put_int(o, "accelerators", r->ranks);
	json_put_int(o, "hosts", r->hosts);
	put_known(o, "seconds", r->end_s - r->begin_s);
	put_known(o, "memory_bytes", r->memory_bytes);
	if (r->trained) {
		put_known(o, "files", r->files);
		put_known(o, "dataset_bytes", r->data_bytes);
		put_known(o, "files_needed_by_memory", ceil(5 * r->memory_bytes / file));
		if (batch > 0)
			put_known(o, "files_needed_by_steps",
				  ceil(500 * batch / r->samples_per_file));
		if (r->facts.steps)
			json_put_int(o, "steps", r->facts.steps);
		put_known(o, "au", r->au.mean);
		put_known(o, "whole_au", record_whole_run_au(r));
		put_known(o, "samples_per_s", r->throughput.mean);
		put_known(o, "whole_samples_per_s", record_whole_throughput(r));
		put_known(o, "read_mib_per_s", r->io.mean);
	}
	if (r->checkpointed) {
		put_known(o, "checkpoint_gib", r->checkpoint_gib);
		put_known(o, "checkpoint_over_3x_memory",
			  r->checkpoint_gib * 0x1p30 / (3 * r->memory_bytes));
		put_known(o, "write_gib_per_s", r->save_gib_per_s);
		put_known(o, "load_gib_per_s", r->load_gib_per_s);
	}
	return o;
}

static json_t *record_json(const struct audit *a, size_t i, bool sums)
{
	const struct run_record *r = &a->record[i];
	json_t *one = json_object(), *findings = json_array();
	size_t n;
	const struct finding *f = audit_of(a, i, &n);

	json_put_text(one, sums ? "file" : "folder", r->folder);
	if (!sums) {
		json_put_text(one, "name", r->name);
		json_put_text(one, "tool", r->ours ? "stoker" : "dlio");
		json_put_bool(one, "trained", r->trained);
	}
	if (!sums && !r->ours && !r->broken)
		json_put(one, "facts", facts_json(r));
	for (size_t k = 0; k < n; k++)
		json_array_append_new(findings, finding_json(&f[k]));
	json_put(one, "findings", findings);
	put_topics(a, i, one);
	return one;
}

/* One result after another: the tree of all of them would take ten times the text. */
static bool put_list(const struct audit *a, bool sums, struct buf *out)
{
	static const char margin[] = "        ";

	buf_puts(out, "[");
	for (size_t i = 0; i < a->records; i++) {
		json_t *one = record_json(a, i, sums);
		struct buf text = {0};
		const char *at;

		json_put_dump(&text, one, JSON_INDENT(4), JSON_EXACT);
		json_decref(one);
		if (text.len == 0)
			return false;
		at = text.data;
		/* line ends within texts are escaped */
		for (buf_puts(out, i ? ",\n" : "\n"); *at;) {
			size_t n = strcspn(at, "\n");

			buf_puts(out, margin);
			n += at[n] == '\n';
			buf_append(out, at, n);
			at += n;
		}
		buf_release(&text);
	}
	buf_puts(out, a->records ? "\n    ]" : "]");
	return true;
}

bool audit_json(const struct audit *a, const struct audit *sums, struct buf *out)
{
	buf_puts(out, "{\n    \"results\": ");
	if (!put_list(a, false, out))
		return false;
	if (sums) {
		buf_puts(out, ",\n    \"sums\": ");
		if (!put_list(sums, true, out))
			return false;
	}
	buf_puts(out, "\n}");
	return true;
}
