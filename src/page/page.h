#pragma once
#include <jansson.h>
/* The report of one or many results as one self-contained page: no network, light and dark,
 * printable. Its parts are in page/ and compiled into the program. */
#include "base/buf.h"
#include "page/trace_view.h"
#include "readback/groups.h"

extern const char page_html[], page_css[], base_js[], chart_js[], summary_js[], page_js[],
	timeline_js[], packed_js[];

/* Of a run that was traced. */
struct page_trace {
	bool found; /* it has a trace */
	struct trace_view view;
	char note[ERR_TEXT_MAX]; /* why it is not drawn; "" */
};

/* What the page says of each run, as JSON, made while its record is whole (record_visit). */
struct page_runs {
	char **run; /* heap, `n` of them */
	size_t n;
	char **host; /* of each; NULL where the host is there already */
	struct texts hosts;
	bool brief; /* curves over time keep few points, so that a page of many runs stays small */
	/* Of more runs than PAGE_PLAIN_RUNS `run` has what the tables need, and this the rest,
	 * which the page unpacks when somebody asks for a run (not curves and predictions); else
	 * NULL. */
	char **rest;
};
#define PAGE_PLAIN_RUNS 1000
/* The functions of a struct record_visit whose arg is a struct page_runs. */
void page_runs_begin(void *arg, size_t n);
void page_runs_look(void *arg, size_t i, struct run_record *r);
void page_runs_take(void *arg, size_t i, struct run_record *r);
void page_runs_release(struct page_runs *p);

/* Appends the whole page. `title` is text, not HTML; NULL: made from the runs. `runs` and `trace`
 * have an element for each record of `g`; `trace` may be NULL. */
void page_render(const struct run_groups *g, const struct key_findings *k,
		 const struct page_runs *runs, const struct page_trace *trace, const char *title,
		 struct buf *out);

/* ---- what all pages have in common ---- */

extern const char frame_html[];

/* What a page puts into the frame. */
struct page_parts {
	const char *title; /* text */
	const char *body;  /* HTML inside of <main> */
	const char *style; /* beside page.css; NULL: none */
	const struct buf *data;
	const char *const *scripts; /* NULL-terminated, in their order */
};

/* Appends the whole page. */
void page_put_frame(const struct page_parts *p, struct buf *out);
/* Writes `data`, which is released, with so many digits. A page without runs has empty lists "runs"
 * and "groups", which base.js looks for. */
void page_put_data(json_t *data, unsigned digits, struct buf *out);

/* ---- the page of a plan ---- */

extern const char plan_html[], plan_js[];

/* Appends the whole page for a plan as JSON (docs/plan.md has the keys). */
void plan_page_render(const json_t *plan, struct buf *out);

/* ---- the page of a survey ---- */

extern const char survey_html[], survey_js[];

/* Appends the whole page for a survey as JSON (docs/survey.md has the keys). */
void survey_page_render(const json_t *survey, struct buf *out);
