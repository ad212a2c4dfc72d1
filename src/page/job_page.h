#pragma once
/* The page of a real job (stoker explain -o page.html): one self-contained file, as the report's.
 */
#include "trace/profile/profile.h"

extern const char job_html[], job_css[], job_js[];

/* Appends the whole page. Its size has a bound: job_lanes.h, job_curves.h, JOB_PAGE_ROWS. */
void job_page_render(const struct profile *a, struct buf *out);
#define JOB_PAGE_ROWS 400 /* of processes and of groups of files */
#define JOB_PAGE_TEXT 400 /* bytes of a command or folder that are shown */
