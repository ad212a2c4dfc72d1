#pragma once
/* What a child of the program said in its log. */
#include <stddef.h>

/* The sentence with which it ended: the last line "stoker: ..." of `log` without that word, else
 * how it ended (`outcome`, of child_outcome), the last line "who: what" of the log (its first line
 * without one), and where the log is kept
 * (`kept`). `out` may be `outcome`. */
void child_log_reason(const char *log, const char *outcome, const char *kept, char *out,
		      size_t out_size);
