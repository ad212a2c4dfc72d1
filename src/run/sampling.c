/* What the machine does while a run trains. */
#include <stdatomic.h>

#include "base/clock.h"
#include "run/state.h"

static uint64_t payload_so_far(void *arg)
{
	const struct run_state *s = arg;
	uint64_t sum = 0;

	for (uint32_t k = 0; k < s->locals; k++)
		sum += atomic_load_explicit(&s->rank[k].payload_bytes, memory_order_relaxed);
	return sum;
}

int run_series_begin(struct run_state *s, struct err *e)
{
	double interval = s->w->run.sample_interval;

	if (interval <= 0)
		return 0;
	return series_start(&s->r->series, s->d->folder, (int64_t)(interval * 1e9),
			    s->w->run.sample_gpus, payload_so_far, s, e);
}
