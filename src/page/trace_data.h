#pragma once
/* The timeline of a trace as data of the page: columns of numbers, so that thousands of spans stay
 * small. */
#include <jansson.h>

#include "page/page.h"

/* null where there is no trace; with only a note where it cannot be drawn. */
json_t *trace_data(const struct page_trace *t);
