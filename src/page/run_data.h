#pragma once
/* Runs and configurations as data of the page. */
#include <jansson.h>

#include "page/page.h"

/* Of record `i`. `trace`: an element for each record, or NULL. With `brief`, curves over time keep
 * few points, so that a page of hundreds of runs stays small. */
json_t *run_data(const struct run_groups *g, const struct page_trace *trace, size_t i, bool brief);
json_t *group_data(const struct run_groups *g, const struct run_group *x);
