/* A probe's points. */
#include "result/probe.h"

#include <stdlib.h>

void probe_release(struct probe *p)
{
	for (uint32_t i = 0; i < p->count; i++) {
		free(p->point[i].reads.seen);
		free(p->point[i].open_log.seen);
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
