#include "base/child_log.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/str.h"

#define LOG_BYTES_MAX (16u << 20)

/* Launchers put rules and empty lines around what they say. */
static bool says_something(const char *line)
{
	for (const char *p = line; *p; p++)
		if (isalpha((unsigned char)*p))
			return true;
	return false;
}

void child_log_reason(const char *log, const char *outcome, const char *kept, char *out,
		      size_t out_size)
{
	AUTO_FREE char *how = xstrdup(outcome);
	struct buf text = {0};
	const char *best = NULL, *last = NULL;

	if (file_read(log, LOG_BYTES_MAX, &text, NULL) == 0 && text.data) {
		for (char *line = text.data, *next; line; line = next) {
			next = line + strcspn(line, "\r\n");
			if (*next)
				*next++ = '\0';
			else
				next = NULL;
			if (str_starts(line, "stoker: ") && !str_starts(line, "stoker: warning"))
				best = line + 8;
			if (says_something(line) && (!last || strstr(line, ": ")))
				last = line;
		}
	}
	if (best)
		snprintf(out, out_size, "%.900s", best);
	else
		snprintf(out, out_size, "the command %s%s%.400s; see %s", how, last ? ": " : "",
			 last ? last : "", kept);
	buf_release(&text);
}
