#include "page/trace_keep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "page/trace_read.h"

static uint64_t weight(const struct view_span *s)
{
	uint64_t first = s->kind <= VIEW_STEP ? (uint64_t)1 << 62 : 0;

	return first + (uint64_t)s->dur_ns;
}

static void sink(struct view_span *heap, size_t n, size_t i)
{
	for (;;) {
		size_t least = i, child = 2 * i + 1;
		struct view_span t;

		for (size_t k = child; k < n && k < child + 2; k++)
			if (weight(&heap[k]) < weight(&heap[least]))
				least = k;
		if (least == i)
			return;
		t = heap[i];
		heap[i] = heap[least];
		heap[least] = t;
		i = least;
	}
}

void view_keep(struct view_window *win, const struct view_span *s)
{
	win->seen++;
	win->count[s->kind]++;
	win->time_ns[s->kind] += (uint64_t)s->dur_ns;
	if (win->spans < TRACE_VIEW_SPANS) {
		win->span[win->spans++] = *s;
		if (win->spans == TRACE_VIEW_SPANS)
			for (size_t i = TRACE_VIEW_SPANS / 2; i-- > 0;)
				sink(win->span, win->spans, i);
	} else if (weight(s) > weight(&win->span[0])) {
		win->span[0] = *s;
		sink(win->span, win->spans, 0);
	}
}

static int by_time(const void *a, const void *b)
{
	const struct view_span *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	if (x->dur_ns != y->dur_ns)
		return x->dur_ns > y->dur_ns ? -1 : 1;
	return x->kind < y->kind ? -1 : x->kind > y->kind;
}

void view_sort(struct view_window *win)
{
	qsort(win->span, win->spans, sizeof(*win->span), by_time);
}

uint8_t view_name(struct trace_view *v, const char *name)
{
	for (size_t i = 0; i < v->names; i++)
		if (strncmp(v->name[i], name, sizeof(v->name[i]) - 1) == 0)
			return (uint8_t)i;
	/* the last stands for all that have no place */
	if (v->names + 1 == VIEW_NAMES)
		name = "other";
	if (v->names == VIEW_NAMES)
		return VIEW_NAMES - 1;
	snprintf(v->name[v->names], sizeof(v->name[0]), "%.47s", name);
	return (uint8_t)v->names++;
}

static int by_key(const void *a, const void *b)
{
	const struct view_path *x = a, *y = b;

	return x->key < y->key ? -1 : x->key > y->key;
}

struct view_path *view_find_path(const struct trace_view *v, uint64_t key)
{
	struct view_path k = {.key = key};

	return v->paths ? bsearch(&k, v->path, v->paths, sizeof(k), by_key) : NULL;
}

const char *trace_view_path(const struct trace_view *v, uint64_t key)
{
	const struct view_path *p = view_find_path(v, key);

	return p ? p->path : NULL;
}

void view_list_paths(struct trace_view *v)
{
	size_t n = 0;

	v->path = xcalloc(TRACE_VIEW_WINDOWS * TRACE_VIEW_SPANS, sizeof(*v->path));
	for (size_t i = 0; i < v->windows; i++)
		for (size_t k = 0; k < v->window[i].spans; k++)
			if (v->window[i].span[k].file != TRACE_NONE)
				v->path[n++].key = v->window[i].span[k].file;
	qsort(v->path, n, sizeof(*v->path), by_key);
	for (size_t i = 0; i < n; i++)
		if (v->paths == 0 || v->path[v->paths - 1].key != v->path[i].key)
			v->path[v->paths++] = v->path[i];
}
