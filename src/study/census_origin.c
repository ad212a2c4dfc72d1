/* Whether memory of this machine below the file system stood in for the storage while a survey's
 * runs read: what `judge/` asks of one run, of the counters around all of them. */
#include "study/census.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "judge/origin.h"

const char *const census_source_keys[] = {[CENSUS_STORAGE] = "storage",
					  [CENSUS_CACHE_BELOW] = "cache_below",
					  [CENSUS_DEVICE_IN_MEMORY] = "device_in_memory",
					  [CENSUS_LOCAL_SERVER] = "local_server"};

struct census_watch {
	struct host_io_source source;
	struct host_io before;
};

struct census_watch *census_watch_new(const char *folder)
{
	struct census_watch *w = xcalloc(1, sizeof(*w));

	host_io_source_init(&w->source, "", folder);
	return w;
}

void census_watch_begin(struct census_watch *w)
{
	host_io_sample(&w->source, "", &w->before);
}

void census_watch_end(const struct census_watch *w, double returned, struct census_origin *to)
{
	struct host_io now;

	host_io_sample(&w->source, "", &now);
	host_io_sub(&now, &w->before);
	to->returned += returned;
	to->device += now.whole.known ? (double)now.whole.read_bytes : 0;
	to->disks += now.lower.known ? (double)now.lower.read_bytes : NAN;
	to->delivered += now.disks.known && now.net.known
				 ? (double)now.disks.read_bytes + (double)now.net.received_bytes +
					   (double)now.net.rdma_received_bytes
				 : NAN;
}

enum census_source census_source_of(const struct host_io_source *s, const struct census_origin *o,
				    double *below)
{
	double share;

	*below = NAN;
	if (s->tree.memory[0]) {
		*below = 1;
		return CENSUS_DEVICE_IN_MEMORY;
	}
	if (origin_is_cached_below(&s->tree, o->device, o->disks, &share)) {
		*below = 1 - share;
		return CENSUS_CACHE_BELOW;
	}
	if (origin_is_from_server(&s->client, o->returned, o->device, o->delivered)) {
		*below = 1 - o->delivered / o->returned;
		return CENSUS_LOCAL_SERVER;
	}
	return CENSUS_STORAGE;
}

void census_find_source(struct census *s, const struct census_watch *w)
{
	const struct host_io_source *from = &w->source;
	struct census_origin all = {0};

	for (size_t i = 0; i < s->patterns; i++) {
		struct census_pattern *p = &s->pattern[i];
		const struct census_origin *o = &p->origin;

		all.returned += o->returned;
		all.device += o->device;
		all.disks += o->disks;
		all.delivered += o->delivered;
		p->cold = p->cold && census_source_of(from, o, &p->below) == CENSUS_STORAGE;
	}
	s->source = census_source_of(from, &all, &s->below);
	if (s->source == CENSUS_LOCAL_SERVER)
		snprintf(s->below_what, sizeof(s->below_what), "a program of this machine, %s",
			 from->client.type);
	else
		snprintf(s->below_what, sizeof(s->below_what), "%s",
			 from->tree.memory[0] ? from->tree.memory : from->tree.cached);
}
