/* What the machine does while a run trains. */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "run/state.h"

static uint64_t payload_so_far(void *arg)
{
	const struct run_state *s = arg;
	uint64_t sum = 0;

	for (uint32_t k = 0; k < s->locals; k++)
		sum += atomic_load_explicit(&s->rank[k].payload_bytes, memory_order_relaxed);
	return sum;
}

static int start_iostat(struct run_state *s, struct err *e)
{
	const struct str_list *devices = &s->w->profiling.iostat_devices;
	AUTO_FREE char *path = NULL;

	if (!s->w->workflow.profiling || s->w->profiling.profiler != PROFILER_IOSTAT ||
	    !run_leads(s))
		return 0;
	path = path_join(s->r->folder, "iostat.json");
	return iostat_start(&s->iostat, path, (const char *const *)devices->v, devices->n, e);
}

int run_sampling_begin(struct run_state *s, struct err *e)
{
	double interval = s->w->run.sample_interval;
	int rc = start_iostat(s, e);

	if (s->w->workflow.train && run_tells_host(s) && s->w->run.measure == MEASURE_ALL) {
		s->r->host_source = xcalloc(1, sizeof(*s->r->host_source));
		host_io_source_init(s->r->host_source, "", s->d->folder);
	}
	if (rc == 0 && interval > 0 && s->w->run.measure == MEASURE_ALL)
		rc = series_start(&s->r->series, s->d->folder, (int64_t)(interval * 1e9),
				  s->w->run.sample_gpus, payload_so_far, s, e);
	if (rc < 0)
		run_sampling_end(s);
	return rc;
}

void run_sampling_end(struct run_state *s)
{
	struct err e = {0};

	series_stop(s->r->series);
	if (iostat_stop(s->iostat, &e) < 0)
		log_warning("iostat.json was not written: %s", e.text);
	s->iostat = NULL;
}
