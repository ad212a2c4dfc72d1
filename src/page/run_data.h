#pragma once
/* Runs and configurations as data of the page. */
#include <jansson.h>

#include "page/page.h"
#include "readback/curves.h"

/* Of a whole record, without findings and trace. With `brief`, curves over time keep few points. */
json_t *run_data(const struct run_record *r, bool brief);
/* Takes out of it what only the details of a run show. */
json_t *run_details(json_t *run);
/* Findings of record `i`. */
json_t *run_findings(const struct audit *a, size_t i);
/* A curve of AU over the number of accelerators (readback/curves.h). */
json_t *curve_data(const struct curve *c);
json_t *group_data(const struct run_groups *g, const struct run_group *x);

/* The timeline of a trace as data of the page: columns of numbers, so that thousands of spans stay
 * small. */

/* null where there is no trace; with only a note where it cannot be drawn. */
json_t *trace_data(const struct page_trace *t);
