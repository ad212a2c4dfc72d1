#pragma once
/* What a view of a trace keeps while its files are read. Private to this folder. */
#include "page/trace_view.h"

/* Counts a span of the window, and keeps it if it is among the longest; those of ranks go before
 * all others. */
void view_keep(struct view_window *win, const struct view_span *s);
/* By lane, by beginning, of those that begin together the longest first. No more is kept then. */
void view_sort(struct view_window *win);
/* The number of a span's name. */
uint8_t view_name(struct trace_view *v, const char *name);
/* Lists the files of all kept spans; their names are not known yet. */
void view_list_paths(struct trace_view *v);
/* NULL: no kept span is of it. */
struct view_path *view_find_path(const struct trace_view *v, uint64_t key);
