/* The page: data as JSON, and the parts put together. */
#include "page/page.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "page/timeline.h"
#include "page/trace_read.h"
#include "result/json_out.h"

#define ABSENT (-1)

/* Enough digits to draw, few enough to load. */
static double rounded(double v, double steps)
{
	return isfinite(v) ? floor(v * steps + 0.5) / steps : v;
}

/* ---- the timeline of a trace: columns of numbers, so that thousands of spans stay small ---- */

static json_t *count_or_absent(uint64_t v)
{
	return v == TRACE_NONE ? json_integer(ABSENT) : json_count(v);
}

/* Lanes that have a span, by rank and thread; place[] is where each is then. */
struct used_lane {
	const struct view_lane *lane;
};
struct lanes {
	const struct trace_view *v;
	size_t *place;
	struct used_lane *used;
	size_t n;
};

static int by_rank(const void *a, const void *b)
{
	const struct view_lane *x = ((const struct used_lane *)a)->lane;
	const struct view_lane *y = ((const struct used_lane *)b)->lane;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static void find_lanes(struct lanes *l, const struct trace_view *v)
{
	*l = (struct lanes){.v = v};
	l->place = xcalloc(v->lanes + 1, sizeof(*l->place));
	l->used = xcalloc(v->lanes + 1, sizeof(*l->used));
	for (size_t i = 0; i < v->windows; i++)
		for (size_t k = 0; k < v->window[i].spans; k++)
			l->place[v->window[i].span[k].lane] = 1;
	for (size_t i = 0; i < v->lanes; i++)
		if (l->place[i])
			l->used[l->n++].lane = &v->lane[i];
	qsort(l->used, l->n, sizeof(*l->used), by_rank);
	for (size_t i = 0; i < l->n; i++)
		l->place[l->used[i].lane - v->lane] = i;
}

static json_t *lanes_json(const struct lanes *l)
{
	json_t *out = json_array();

	for (size_t i = 0; i < l->n; i++) {
		json_t *o = json_object();

		json_put_int(o, "rank", l->used[i].lane->rank);
		json_put_text(o, "name", l->used[i].lane->name);
		json_array_append_new(out, o);
	}
	return out;
}

/* Length of the folder that all names have in common, with its last slash. */
static size_t common_folder(const struct trace_view *v)
{
	const char *first = NULL;
	size_t n = 0;

	for (size_t i = 0; i < v->paths; i++) {
		const char *p = v->path[i].path;
		size_t k = 0;

		if (!p)
			continue;
		if (!first) {
			first = p;
			n = strlen(p);
			continue;
		}
		while (k < n && p[k] == first[k])
			k++;
		n = k;
	}
	while (n > 0 && first[n - 1] != '/')
		n--;
	return n;
}

static void put_files(json_t *o, const struct trace_view *v)
{
	size_t common = common_folder(v);
	json_t *files = json_array();
	bool has_folder = false;

	for (size_t i = 0; i < v->paths; i++) {
		const char *p = v->path[i].path;

		if (p && !has_folder) {
			AUTO_FREE char *folder = xstrndup(p, common);

			json_put_text(o, "folder", folder);
			has_folder = true;
		}
		json_array_append_new(files, json_text(p ? p + common : ""));
	}
	json_put(o, "files", files);
}

static json_t *spans_json(const struct lanes *l, const struct view_window *w)
{
	static const char *const columns[] = {"lane",  "kind",  "name",   "begin", "dur",
					      "epoch", "step",  "sample", "file",  "offset",
					      "asked", "moved", "failed"};
	json_t *o = json_object(), *c[sizeof(columns) / sizeof(*columns)];

	for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++) {
		c[i] = json_array();
		json_put(o, columns[i], c[i]);
	}
	for (size_t i = 0; i < w->spans; i++) {
		const struct view_span *s = &w->span[i];

		assert(s->lane < l->v->lanes && s->kind < VIEW_KINDS);
		json_array_append_new(c[0], json_integer((json_int_t)l->place[s->lane]));
		json_array_append_new(c[1], json_integer(s->kind));
		json_array_append_new(c[2], json_integer(s->name));
		json_array_append_new(c[3], json_integer(s->begin_ns));
		json_array_append_new(c[4], json_integer(s->dur_ns));
		json_array_append_new(c[5], count_or_absent(s->epoch));
		json_array_append_new(c[6], count_or_absent(s->step));
		json_array_append_new(c[7], count_or_absent(s->sample));
		json_array_append_new(c[8], json_integer(trace_view_file(l->v, s->file)));
		json_array_append_new(c[9], count_or_absent(s->offset));
		json_array_append_new(c[10], count_or_absent(s->asked));
		json_array_append_new(c[11], count_or_absent(s->moved));
		json_array_append_new(c[12], json_integer(s->failed));
	}
	return o;
}

static json_t *window_json(const struct lanes *l, const struct view_window *w)
{
	json_t *o = json_object(), *count = json_array(), *time = json_array();

	json_put_int(o, "epoch", w->epoch);
	json_put_int(o, "first", w->first_step);
	json_put_int(o, "last", w->last_step);
	json_put(o, "length", json_integer(w->end_ns - w->begin_ns));
	/* a text: a double does not hold nanoseconds since 1970 */
	AUTO_FREE char *begin = xasprintf("%lld", (long long)w->begin_ns);
	json_put_text(o, "begin_ns", begin);
	if (w->slowest) {
		json_t *slow = json_object();

		json_put_int(slow, "step", w->slow_step);
		json_put_int(slow, "rank", w->slow_rank);
		json_put(slow, "ns", json_integer(w->slow_ns));
		json_put(o, "slowest", slow);
	}
	for (size_t i = 0; i < VIEW_KINDS; i++) {
		json_array_append_new(count, json_count(w->count[i]));
		json_array_append_new(time, json_count(w->time_ns[i]));
	}
	json_put(o, "count", count);
	json_put(o, "time", time);
	json_put_int(o, "seen", w->seen);
	json_put(o, "spans", spans_json(l, w));
	return o;
}

static json_t *trace_of(const struct page_trace *t)
{
	const struct trace_view *v = &t->view;
	json_t *o, *kinds, *names, *windows;
	struct lanes l;

	if (!t->found)
		return json_null();
	o = json_object();
	json_put_text(o, "note", t->note[0] ? t->note : v->note);
	if (t->note[0])
		return o;
	kinds = json_array();
	names = json_array();
	windows = json_array();
	find_lanes(&l, v);
	for (size_t i = 0; i < VIEW_KINDS; i++)
		json_array_append_new(kinds, json_text(view_kind_names[i]));
	for (size_t i = 0; i < v->names; i++)
		json_array_append_new(names, json_text(v->name[i]));
	for (size_t i = 0; i < v->windows; i++)
		json_array_append_new(windows, window_json(&l, &v->window[i]));
	json_put(o, "kinds", kinds);
	json_put(o, "names", names);
	json_put(o, "windows", windows);
	json_put(o, "lanes", lanes_json(&l));
	put_files(o, v);
	json_put_int(o, "ranks", v->ranks);
	json_put_int(o, "ranks_left_out", v->ranks_left_out);
	json_put_int(o, "lanes_left_out", v->lanes_left_out);
	json_put_int(o, "dropped", v->dropped);
	free(l.place);
	free(l.used);
	return o;
}

/* ---- one run ---- */

static json_t *curve(const double *v, size_t n, double steps)
{
	json_t *out = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(out, json_real(rounded(v[i], steps)));
	return out;
}

static void put_mark(json_t *marks, const char *kind, double from, double to, const char *label)
{
	json_t *o;

	if (!isfinite(from) || !isfinite(to))
		return;
	o = json_object();
	json_put_text(o, "kind", kind);
	json_put_real(o, "from", rounded(from, 1000));
	json_put_real(o, "to", rounded(to, 1000));
	json_put_text(o, "label", label);
	json_array_append_new(marks, o);
}

/* Epochs, evaluations and checkpoints of rank 0. */
static json_t *marks_of(const struct run_record *r)
{
	json_t *marks = json_array();
	const struct record_rank *k = r->ranks ? &r->rank[0] : NULL;
	char label[64];

	for (size_t i = 0; k && i < k->epochs && i < 500; i++) {
		const struct record_epoch *ep = &k->epoch[i];

		snprintf(label, sizeof(label), "epoch %u", ep->number);
		put_mark(marks, "epoch", ep->begin_s, ep->end_s, label);
		if (ep->has_eval)
			put_mark(marks, "evaluation", ep->eval_begin_s,
				 ep->eval_begin_s + ep->eval.wall_s, "evaluation");
		for (size_t c = 0; c < ep->checkpoints && c < 100; c++)
			put_mark(marks, "checkpoint", ep->checkpoint[c].begin_s,
				 ep->checkpoint[c].begin_s + ep->checkpoint[c].seconds,
				 ep->checkpoint[c].name);
	}
	return marks;
}

static json_t *timeline_of(const struct run_record *r)
{
	const json_t *series = json_object_get(r->result, "series");
	struct timeline t;
	json_t *o;

	if (!timeline_build(&t, r))
		return json_null();
	o = json_object();
	json_put_real(o, "dt", t.dt_s);
	json_put(o, "busy", curve(t.busy, t.bins, 1000));
	json_put(o, "rate", curve(t.rate, t.bins, 10));
	json_put(o, "marks", marks_of(r));
	if (json_is_object(series))
		json_put(o, "series", json_deep_copy(series));
	timeline_release(&t);
	return o;
}

static json_t *rank_aus(const struct run_record *r)
{
	json_t *out = json_array();

	for (uint32_t k = 0; k < r->ranks && k < 1024; k++) {
		double compute = 0, wall = 0;

		for (size_t i = 0; i < r->rank[k].epochs; i++) {
			const struct record_epoch *ep = &r->rank[k].epoch[i];

			for (size_t b = 0; b < ep->blocks; b++)
				for (size_t s = 0; s < ep->block[b].computes; s++)
					compute += ep->block[b].compute[s];
			wall += ep->train_wall_s;
		}
		json_array_append_new(
			out, json_number(wall > 0 ? rounded(100 * compute / wall, 100) : NAN));
	}
	return out;
}

static json_t *findings_of(const struct audit *a, size_t i)
{
	json_t *out = json_array();

	for (size_t k = 0; k < a->findings; k++)
		if (a->finding[k].record == i)
			json_array_append_new(out, finding_json(&a->finding[k]));
	return out;
}

static json_t *run_of(const struct run_groups *g, const struct page_trace *trace, size_t i)
{
	const struct run_record *r = &g->record[i];
	json_t *o = json_object();

	json_put_text(o, "name", r->name);
	json_put_text(o, "folder", r->folder);
	json_put_text(o, "model", r->model);
	json_put(o, "factors", json_texts(&r->factors));
	json_put_int(o, "ranks", r->ranks);
	json_put_int(o, "hosts", r->hosts);
	json_put_text(o, "host", r->hostname);
	json_put_text(o, "tool", r->ours ? "Stoker" : "DLIO");
	json_put_bool(o, "trained", r->trained);
	if (isfinite(r->begin_s)) {
		time_t begin = (time_t)r->begin_s;
		struct tm tm;
		char when[32];

		if (localtime_r(&begin, &tm) &&
		    strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm))
			json_put_text(o, "start", when);
	}
	json_put_real(o, "wall", r->end_s - r->begin_s);
	json_put_real(o, "au", r->au.mean);
	json_put_real(o, "au_stdev", r->au.stdev);
	json_put_real(o, "whole_au", record_whole_au_mean(r));
	json_put_real(o, "throughput", r->throughput.mean);
	json_put_real(o, "whole_throughput", record_whole_throughput(r));
	json_put_real(o, "io", r->io.mean);
	json_put_real(o, "io_stdev", r->io.stdev);
	json_put_real(o, "wait", record_wait_share(r));
	json_put_real(o, "other", record_other_share(r));
	json_put_int(o, "steps", record_steps(r));
	json_put(o, "rank_au", rank_aus(r));
	json_put(o, "timeline", timeline_of(r));
	if (json_is_array(json_object_get(r->result, "ledger")))
		json_put(o, "ledger", json_deep_copy(json_object_get(r->result, "ledger")));
	json_put(o, "findings", findings_of(g->audit, i));
	if (trace && trace[i].found)
		json_put(o, "trace", trace_of(&trace[i]));
	return o;
}

static json_t *group_json(const struct run_group *x)
{
	struct sample_stat rate = sample_stat_of(x->throughput_v, x->throughput_n);
	json_t *o = json_object(), *runs = json_array();

	json_put_text(o, "model", x->model);
	json_put_text(o, "factors", x->factors);
	json_put_int(o, "ranks", x->ranks);
	json_put(o, "au", json_stat(&x->au));
	json_put(o, "whole_au", json_stat(&x->whole_au));
	json_put(o, "throughput", json_stat(&x->throughput));
	json_put(o, "whole_throughput", json_stat(&rate));
	json_put(o, "io", json_stat(&x->io));
	json_put_real(o, "wait", x->wait_share);
	json_put_real(o, "other", x->other_share);
	json_put_real(o, "target", x->target);
	json_put_bool(o, "unsound", x->unsound);
	for (size_t i = 0; i < x->records; i++)
		json_array_append_new(runs, json_integer((json_int_t)x->record[i]));
	json_put(o, "runs", runs);
	return o;
}

/* ---- machines ---- */

static void put_pair(json_t *list, const char *name, const char *value)
{
	json_t *o;

	if (!value || !value[0])
		return;
	o = json_array();
	json_array_append_new(o, json_text(name));
	json_array_append_new(o, json_text(value));
	json_array_append_new(list, o);
}

static const char *cpu_name(const json_t *cpuinfo)
{
	static const char *const keys[] = {"model name", "Model", "cpu", "CPU part", NULL};

	for (size_t i = 0; keys[i]; i++) {
		const char *s = json_string_value(json_object_get(cpuinfo, keys[i]));

		if (s)
			return s;
	}
	return NULL;
}

/* What a "system" object of a result holds, as lines: strings, numbers, lists of them. */
static void put_system(json_t *list, const json_t *system)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)(uintptr_t)system, key, v)
	{
		char *dump = json_is_string(v) ? NULL : json_dumps(v, JSON_ENCODE_ANY);

		put_pair(list, key, dump ? dump : json_string_value(v));
		free(dump);
	}
}

static json_t *host_of(const struct run_record *r)
{
	const json_t *env = json_object_get(r->result, "environment");
	const json_t *cpuinfo = json_object_get(r->summary, "host_cpuinfo");
	const json_t *system = json_object_get(r->result, "system");
	const json_t *cpus = json_array_get(json_object_get(r->summary, "host_cpu_count"), 0);
	json_t *o = json_object(), *list = json_array();
	char text[64];

	json_put_text(o, "name", r->hostname);
	put_pair(list, "kernel", json_string_value(json_object_get(env, "kernel")));
	put_pair(list, "CPU", cpu_name(cpuinfo));
	if (json_is_integer(cpus)) {
		snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(cpus));
		put_pair(list, "processors", text);
	}
	if (r->host_memory_bytes > 0) {
		snprintf(text, sizeof(text), "%.1f GiB", r->host_memory_bytes / 0x1p30);
		put_pair(list, "memory", text);
	}
	if (json_is_object(system))
		put_system(list, system);
	json_put(o, "facts", list);
	return o;
}

static json_t *hosts_of(const struct run_groups *g)
{
	json_t *out = json_array();

	for (size_t i = 0; i < g->records; i++) {
		bool seen = false;

		for (size_t k = 0; k < i && !seen; k++)
			seen = strcmp(g->record[k].hostname, g->record[i].hostname) == 0;
		if (!seen)
			json_array_append_new(out, host_of(&g->record[i]));
	}
	return out;
}

/* ---- the whole ---- */

static json_t *page_data(const struct run_groups *g, const struct key_findings *k,
			 const struct page_trace *trace, const char *title)
{
	json_t *root = json_object(), *runs = json_array(), *groups = json_array();
	json_t *findings = json_array();

	for (size_t i = 0; i < g->records; i++)
		json_array_append_new(runs, run_of(g, trace, i));
	for (size_t i = 0; i < g->groups; i++)
		json_array_append_new(groups, group_json(&g->group[i]));
	for (size_t i = 0; i < k->n; i++) {
		json_t *o = json_object();

		json_put_text(o, "topic", k->v[i].topic);
		json_put_text(o, "text", k->v[i].text.data);
		json_array_append_new(findings, o);
	}
	json_put_text(root, "title", title);
	json_put_text(root, "version", STOKER_VERSION);
	json_put(root, "findings", findings);
	json_put(root, "groups", groups);
	json_put(root, "runs", runs);
	json_put(root, "hosts", hosts_of(g));
	return root;
}

static void put_text(struct buf *out, const char *s)
{
	for (; *s; s++) {
		if (*s == '<')
			buf_puts(out, "&lt;");
		else if (*s == '>')
			buf_puts(out, "&gt;");
		else if (*s == '&')
			buf_puts(out, "&amp;");
		else
			buf_putc(out, *s);
	}
}

void page_render(const struct run_groups *g, const struct key_findings *k,
		 const struct page_trace *trace, const char *title, struct buf *out)
{
	json_t *data = page_data(g, k, trace, title);
	/* an escaped slash, so that no text ends the script element */
	char *dump = json_dumps(data, JSON_COMPACT | JSON_ESCAPE_SLASH | JSON_REAL_PRECISION(7));
	const char *at = page_html;

	json_decref(data);
	for (;;) {
		const char *mark = strchr(at, '@');

		if (!mark)
			break;
		buf_append(out, at, (size_t)(mark - at));
		if (strncmp(mark, "@TITLE@", 7) == 0) {
			put_text(out, title);
			at = mark + 7;
		} else if (strncmp(mark, "@STYLE@", 7) == 0) {
			buf_puts(out, page_css);
			at = mark + 7;
		} else if (strncmp(mark, "@DATA@", 6) == 0) {
			buf_puts(out, dump ? dump : "{}");
			at = mark + 6;
		} else if (strncmp(mark, "@SCRIPT@", 8) == 0) {
			buf_puts(out, page_js);
			at = mark + 8;
		} else if (strncmp(mark, "@TIMELINE@", 10) == 0) {
			buf_puts(out, timeline_js);
			at = mark + 10;
		} else {
			buf_putc(out, '@');
			at = mark + 1;
		}
	}
	buf_puts(out, at);
	free(dump);
}
