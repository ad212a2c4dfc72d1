#pragma once
/* The page of a plan: one self-contained file, as the report's. */
#include <jansson.h>

#include "base/buf.h"

extern const char plan_html[], plan_js[];

/* Appends the whole page for a plan as JSON (docs/plan.md has the keys). */
void plan_page_render(const json_t *plan, struct buf *out);
