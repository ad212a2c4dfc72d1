/* A probe's points. */
#include "result/probe.h"

#include <stdlib.h>

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

double probe_request_rate(const struct probe_point *p)
{
	return p->seconds > 0 ? (double)p->requests / p->seconds : 0;
}

double probe_request_s(const struct probe_point *p)
{
	return p->requests ? p->read_s / (double)p->requests : 0;
}
