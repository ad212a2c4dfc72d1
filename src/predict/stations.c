/* The shares of the stations in a run's time. */
#include "predict/stations.h"

#include <math.h>
#include <stdio.h>

const char *const station_names[STATION_KINDS] = {"latency",  "stream",       "bandwidth", "queue",
						  "requests", "open_latency", "open_queue"};
const char *const station_units[STATION_KINDS] = {"",        "B/s", "B/s",    "reads/s",
						  "reads/s", "",    "opens/s"};

static const double SATURATED = 0.85; /* of the ceiling */

struct stations stations_of(const struct result *r, const struct read_law *law)
{
	const struct decomposition *d = &r->judged.time;
	struct stations s = {.saturated = -1};
	double io = d->work_s[WORK_OPEN] + d->work_s[WORK_META] + d->work_s[WORK_DATA];
	double requests = 0, opens = 0, bytes = 0, wall = d->wall_s, batches = (double)d->batches;
	double reads = d->work_s[WORK_META] + d->work_s[WORK_DATA];
	const struct read_rates *best = &law->best;

	if (law->reads == 0 || !(io > 0) || !(wall > 0) || d->batches == 0)
		return s;
	for (uint32_t k = 0; k < r->ranks_here; k++) {
		const struct io_stat *io_of = &r->rank[k].train_io;

		for (int c = 0; c < IO_CLASSES; c++)
			requests +=
				(double)(io_stat_sized(io_of, IO_META, (enum io_class)c)->total +
					 io_stat_sized(io_of, IO_DATA, (enum io_class)c)->total);
		bytes += (double)(io_of->kind[IO_META].returned_bytes +
				  io_of->kind[IO_DATA].returned_bytes);
		opens += (double)io_of->kind[IO_OPEN].requests / 2;
	}
	s.known = true;
	s.told = law->most.shared_ns_per_byte > 0 ? law->least.shared_ns_per_byte > 0 : true;
	if (!s.told)
		snprintf(s.untold, sizeof(s.untold),
			 "the number of concurrent readers never varied");
	s.reads_of_batch = requests / batches;
	s.opens_of_batch = opens / batches;
	s.batch_s = d->service_mean_s;
	s.read_s = requests > 0 ? reads / requests : 0;
	s.in_flight = reads / wall;
	s.most_seen = law->concurrency;
	s.of[STATION_LATENCY] = (struct station){.seen = best->latency_ns > 0,
						 .known = law->sizes_differ,
						 .share = law->latency_share * reads / io,
						 .each_s = best->latency_ns / 1e9};
	s.of[STATION_STREAM] = (struct station){.seen = law->stream_share > 0,
						.share = law->stream_share * reads / io};
	s.of[STATION_BANDWIDTH] = (struct station){.seen = law->shared_share > 0,
						   .known = law->least.shared_ns_per_byte > 0,
						   .share = law->shared_share * reads / io,
						   .used = bytes / wall};
	if (best->shared_ns_per_byte > 0)
		s.of[STATION_BANDWIDTH].ceiling = 1e9 / best->shared_ns_per_byte;
	if (law->most.shared_ns_per_byte > 0)
		s.of[STATION_BANDWIDTH].low = 1e9 / law->most.shared_ns_per_byte;
	s.of[STATION_BANDWIDTH].high =
		law->least.shared_ns_per_byte > 0 ? 1e9 / law->least.shared_ns_per_byte : INFINITY;
	s.of[STATION_OPEN_LATENCY] =
		(struct station){.seen = opens > 0,
				 .share = d->work_s[WORK_OPEN] / io,
				 .each_s = opens > 0 ? d->work_s[WORK_OPEN] / opens : 0};
	for (int k = 0; k < STATION_KINDS; k++) {
		struct station *t = &s.of[k];
		bool open = k >= STATION_OPEN_LATENCY;

		t->of_batch_s = t->each_s * (open ? s.opens_of_batch : s.reads_of_batch);
		t->utilization = t->ceiling > 0 ? fmin(1, t->used / t->ceiling) : 0;
		if (t->known && t->utilization >= SATURATED &&
		    (s.saturated < 0 || t->utilization > s.of[s.saturated].utilization))
			s.saturated = k;
	}
	return s;
}
