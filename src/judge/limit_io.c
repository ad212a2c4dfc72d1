/* The limit that a control group sets to reads of the dataset's device. */
#include "judge/limit_io.h"

#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/str.h"

/* Of the limit: the run was at it. The kernel gives a little more than the limit, a run that reads
 * with pauses a little less. */
static const double REACHED_SHARE = 0.85;

bool io_group_text(const struct result *r, bool *reached, char *out, size_t size)
{
	const struct io_limit *l = r->host_source ? &r->host_source->limit : NULL;
	double bytes = 0, reads = 0, wall = 0, most = 0;

	if (!l || !(l->bytes_per_s > 0 || l->reads_per_s > 0) || r->nodes > 1)
		return false;
	for (uint32_t i = 0; i < r->epochs_done; i++) {
		const struct epoch_usage *u = &r->usage[i];
		double s = clock_seconds(u->wall_ns);

		wall += s;
		bytes += (double)u->train.read_bytes;
		reads += (double)u->host_train.whole.reads;
		/* an epoch in memory is not at the limit, the one before it was */
		if (s > 0 && l->bytes_per_s > 0)
			most = fmax(most, (double)u->train.read_bytes / s / l->bytes_per_s);
		if (s > 0 && l->reads_per_s > 0)
			most = fmax(most, (double)u->host_train.whole.reads / s / l->reads_per_s);
	}
	if (reached)
		*reached = most >= REACHED_SHARE;
	out[0] = '\0';
	str_append(out, size, "the control group limits reads of this device (%s) to ", l->device);
	if (l->bytes_per_s > 0)
		str_append(out, size, "%.4g MB/s", l->bytes_per_s / 1e6);
	if (l->reads_per_s > 0)
		str_append(out, size, "%s%.6g requests/s", l->bytes_per_s > 0 ? " and " : "",
			   l->reads_per_s);
	if (wall > 0 && r->usage[0].train.known)
		str_append(out, size, "; the run read %.4g MB/s", bytes / wall / 1e6);
	if (wall > 0 && l->reads_per_s > 0 && r->usage[0].host_train.whole.known)
		str_append(out, size, " in %.4g requests/s", reads / wall);
	return true;
}

bool limit_io_group(const struct result *r, char *out, size_t size)
{
	char text[256];
	bool reached;

	if (!io_group_text(r, &reached, text, sizeof(text)) || !reached)
		return false;
	out[0] = '\0';
	str_append(out, size,
		   "limited by a control group, not by the storage: %s; raise the limit.", text);
	return true;
}
