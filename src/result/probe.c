/* A probe's points. */
#include "result/probe.h"

#include <stdlib.h>

#include "base/str.h"

uint32_t probe_points(const struct probe *p)
{
	return p->count + p->sized_count;
}

const struct probe_point *probe_point_at(const struct probe *p, uint32_t i)
{
	return i < p->count ? &p->point[i] : &p->sized[i - p->count];
}

void probe_release(struct probe *p)
{
	for (uint32_t i = 0; i < probe_points(p); i++) {
		free(probe_point_at(p, i)->reads.seen);
		free(probe_point_at(p, i)->open_log.seen);
	}
	*p = (struct probe){0};
}

void probe_text(const struct probe *p, struct buf *out)
{
	if (!p->done)
		buf_puts(out, "not done");
	for (uint32_t i = 0; p->done && i < p->count; i++) {
		const struct probe_point *at = &p->point[i];
		double rate = at->seconds > 0 ? (double)at->samples / at->seconds : 0;

		buf_printf(out, "%s%s", i ? ", " : "", NUMBER(rate, 3));
		buf_printf(out, "%s with %u", i ? "" : " samples/s", at->readers);
		if (i == 0)
			buf_puts(out, at->readers == 1 ? " reader" : " readers");
	}
}
