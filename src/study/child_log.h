#pragma once
/* What a child of the program said in its log. */
#include <stddef.h>

/* The sentence with which it ended: its last line "stoker: ..." without that word, else how it
 * ended (`outcome`, of child_outcome) and where the log is. */
void child_log_reason(const char *log, const char *outcome, char *out, size_t out_size);
