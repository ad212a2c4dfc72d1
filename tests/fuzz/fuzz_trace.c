/* Traces: any bytes give a view of bounded size or a sentence. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "page/trace_view.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("trace", MFD_CLOEXEC);
	char name[64], *names[] = {name};
	struct str_list files = {.v = names, .n = 1};
	struct trace_choice choice = {0};
	struct trace_view v;
	struct err e = {0};
	int rc;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	rc = trace_view_build(&v, &files, &choice, &e);
	if (rc < 0 && (rc != ERR_DATA || !strstr(e.text, ", line ")))
		abort();
	for (size_t i = 0; rc == 0 && i < v.windows; i++) {
		const struct view_window *w = &v.window[i];

		if (w->spans > TRACE_VIEW_SPANS || w->seen < w->spans)
			abort();
		for (size_t k = 0; k < w->spans; k++)
			if (w->span[k].kind >= VIEW_KINDS || w->span[k].name >= v.names ||
			    w->span[k].lane >= v.lanes || w->span[k].dur_ns < 0)
				abort();
	}
	trace_view_release(&v);
	close(fd);
	return 0;
}
