#include "study/child_log.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/str.h"

#define LOG_BYTES_MAX (16u << 20)

void child_log_reason(const char *log, const char *outcome, char *out, size_t out_size)
{
	struct buf text = {0};
	const char *best = NULL;

	if (file_read(log, LOG_BYTES_MAX, &text, NULL) == 0 && text.data) {
		for (char *line = text.data, *next; line; line = next) {
			next = line + strcspn(line, "\r\n");
			if (*next)
				*next++ = '\0';
			else
				next = NULL;
			if (str_starts(line, "stoker: ") && !str_starts(line, "stoker: warning"))
				best = line + 8;
		}
	}
	if (best)
		snprintf(out, out_size, "%.900s", best);
	else
		snprintf(out, out_size, "the command %s; see %s", outcome, log);
	buf_release(&text);
}
