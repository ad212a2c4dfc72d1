#pragma once
/* The page cache around the epochs of a run: eviction as storage.page_cache asks, and looks that
 * prove it. Done by one rank while the others wait, outside every measured time. Private to run/.
 */
#include "run/state.h"

/* ERR_USAGE when the store or its file system cannot do what storage.page_cache asks. */
int run_page_cache_check(const struct run_state *s, struct err *e);
/* Before the measures of epoch `epoch` (from 1) begin. `progress_ns` tells the watchdog. */
int run_page_cache_begin(struct run_state *s, uint32_t epoch, _Atomic int64_t *progress_ns,
			 struct err *e);
/* After they have ended. */
int run_page_cache_end(struct run_state *s, uint32_t epoch, _Atomic int64_t *progress_ns,
		       struct err *e);
