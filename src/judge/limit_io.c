/* The limit that a control group sets to reads of the dataset's device. */
#include "judge/limit_io.h"

#include <math.h>

#include "base/clock.h"

/* Of the limit: the run was at it. The kernel gives a little more than the limit, a run that reads
 * with pauses a little less. */
static const double REACHED_SHARE = 0.85;

bool io_group_fact(const struct result *r, bool *reached, struct fact *out)
{
	const struct io_limit *l = r->host_source ? &r->host_source->limit : NULL;
	double bytes = 0, reads = 0, most = 0, wall = 0;

	if (!l || !(l->bytes_per_s > 0 || l->reads_per_s > 0) || r->nodes > 1)
		return false;
	for (uint32_t i = 0; i < r->epochs_done; i++) {
		const struct epoch_usage *u = &r->usage[i];
		double s = clock_seconds(u->wall_ns);

		double share = 0;

		if (s > 0 && l->bytes_per_s > 0)
			share = (double)u->train.read_bytes / s / l->bytes_per_s;
		if (s > 0 && l->reads_per_s > 0)
			share = fmax(share, (double)u->host_train.whole.reads / s / l->reads_per_s);
		/* an epoch in memory is not at the limit, the one before it was */
		if (wall > 0 && share <= most)
			continue;
		most = share;
		wall = s;
		bytes = (double)u->train.read_bytes;
		reads = (double)u->host_train.whole.reads;
	}
	if (reached)
		*reached = most >= REACHED_SHARE;
	*out = FACT(IO_GROUP, l->bytes_per_s > 0 ? l->bytes_per_s : NAN,
		    l->reads_per_s > 0 ? l->reads_per_s : NAN,
		    wall > 0 && r->usage[0].train.known ? bytes / wall : NAN,
		    wall > 0 && l->reads_per_s > 0 && r->usage[0].host_train.whole.known
			    ? reads / wall
			    : NAN);
	*out = fact_with(*out, 0, l->device);
	return true;
}
