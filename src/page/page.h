#pragma once
/* The report of one or many results as one self-contained page: no network, light and dark,
 * printable. Its parts lie in page/ and are compiled into the program. */
#include "readback/key_findings.h"
#include "page/trace_view.h"

extern const char page_html[], page_css[], page_js[], timeline_js[];

/* Of a run that was traced. */
struct page_trace {
	bool found; /* it has a trace */
	struct trace_view view;
	char note[ERR_TEXT_MAX]; /* why nothing of it is drawn; "" */
};

/* Appends the whole page. `title` is text, not HTML. `trace` has an element for each record of `g`,
 * or is NULL. */
void page_render(const struct run_groups *g, const struct key_findings *k,
		 const struct page_trace *trace, const char *title, struct buf *out);
/* The data that the page draws, as JSON. */
json_t *page_data(const struct run_groups *g, const struct key_findings *k,
		  const struct page_trace *trace, const char *title);
/* What it draws of a trace, its spans in columns; null when there is none. */
json_t *page_trace_data(const struct page_trace *t);

/* How busy a run's accelerators were over time, from its steps: `bins` shares from 0 to 1, mean
 * over the ranks, and samples a second. The time between the blocks of epochs counts as idle. false
 * when the files of no rank are there. The time of barriers is not in the files: within a block it
 * is spread evenly over the steps. */
struct timeline {
	double dt_s;
	size_t bins;
	double *busy, *rate;
};
#define TIMELINE_BINS 240
bool timeline_build(struct timeline *t, const struct run_record *r);
void timeline_release(struct timeline *t);
