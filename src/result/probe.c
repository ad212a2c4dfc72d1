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

static void put_point(const struct probe_point *at, bool first, struct buf *out)
{
	double rate = probe_rate(at);

	buf_printf(out, "%s%s", first ? "" : ", ", NUMBER(rate, 3));
	buf_printf(out, "%s with %u", first ? " samples/s" : "", at->readers);
	if (first)
		buf_puts(out, at->readers == 1 ? " reader" : " readers");
}

void probe_text(const struct probe *p, struct buf *out)
{
	if (!p->done)
		buf_puts(out, "not done");
	for (uint32_t i = 0; p->done && i < p->count; i++)
		put_point(&p->point[i], i == 0, out);
}

void probe_own_text(const struct probe *p, struct buf *out)
{
	double took = p->evict_s;

	for (uint32_t i = 0; i < probe_points(p); i++)
		took += probe_point_at(p, i)->seconds;
	if (p->done) {
		put_point(&p->point[0], true, out);
		put_point(&p->point[p->count - 1], false, out);
	} else {
		buf_puts(out, "not done");
	}
	buf_printf(out, "; took %.1f s (run.probe=false: none)", took);
}
