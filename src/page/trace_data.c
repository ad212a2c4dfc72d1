#include "page/run_data.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "page/trace_read.h"
#include "result/json_out.h"

#define ABSENT (-1)

static json_t *count_or_absent(uint64_t v)
{
	return v == TRACE_NONE ? json_integer(ABSENT) : json_count(v);
}

/* Lanes that have a span, by rank and thread; place[] is where each is then. */
struct lanes {
	const struct trace_view *v;
	size_t *place;
	const struct view_lane **used;
	size_t n;
};

static int by_rank(const void *a, const void *b)
{
	const struct view_lane *x = *(const struct view_lane *const *)a;
	const struct view_lane *y = *(const struct view_lane *const *)b;

	return ORDER(x->rank, y->rank) ?: ORDER(x->pid, y->pid) ?: ORDER(x->tid, y->tid);
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
			l->used[l->n++] = &v->lane[i];
	qsort(l->used, l->n, sizeof(*l->used), by_rank);
	for (size_t i = 0; i < l->n; i++)
		l->place[l->used[i] - v->lane] = i;
}

static json_t *lanes_json(const struct lanes *l)
{
	json_t *out = json_array();

	for (size_t i = 0; i < l->n; i++) {
		json_t *o = json_object();

		json_put_int(o, "rank", l->used[i]->rank);
		json_put_text(o, "name", l->used[i]->name);
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

json_t *trace_data(const struct page_trace *t)
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
