#pragma once
/* The report of one or many results as one self-contained page: no network, light and dark,
 * printable. Its parts are in page/ and compiled into the program. */
#include "readback/key_findings.h"
#include "page/trace_view.h"

extern const char page_html[], page_css[], base_js[], chart_js[], summary_js[], page_js[],
	timeline_js[];

/* Of a run that was traced. */
struct page_trace {
	bool found; /* it has a trace */
	struct trace_view view;
	char note[ERR_TEXT_MAX]; /* why it is not drawn; "" */
};

/* Appends the whole page. `title` is text, not HTML; NULL: made from the runs. `trace` has an
 * element for each record of `g`, or is NULL. */
void page_render(const struct run_groups *g, const struct key_findings *k,
		 const struct page_trace *trace, const char *title, struct buf *out);
