/* The shares of the stations in a run's time. */
#include "predict/stations.h"

#include <math.h>

const char *const station_names[STATION_KINDS] = {"latency",  "stream",       "bandwidth", "queue",
						  "requests", "open_latency", "open_queue"};
const char *const station_units[STATION_KINDS] = {"",        "B/s", "B/s",    "reads/s",
						  "reads/s", "",    "opens/s"};

static const double SATURATED = 0.85; /* of the ceiling */
static const double SAME = 1.25;      /* between ceilings of several explanations */

/* Requests and bytes of training, all ranks. */
struct counted {
	double reads, bytes, opens;
};

static struct counted count_requests(const struct result *r)
{
	struct counted n = {0};

	for (uint32_t k = 0; k < r->ranks_here; k++) {
		const struct io_stat *io = &r->rank[k].train_io;

		for (int c = 0; c < IO_CLASSES; c++)
			n.reads += (double)(io_stat_sized(io, IO_META, (enum io_class)c)->total +
					    io_stat_sized(io, IO_DATA, (enum io_class)c)->total);
		n.bytes += (double)(io->kind[IO_META].returned_bytes +
				    io->kind[IO_DATA].returned_bytes);
		/* each is closed again */
		n.opens += (double)io->kind[IO_OPEN].requests / 2;
	}
	return n;
}

/* Whether the best explanation has its ceiling there. */
static bool has_ceiling(enum station_kind k, const struct read_rates *r)
{
	if (k == STATION_BANDWIDTH)
		return r->shared_ns_per_byte > 0;
	if (k == STATION_QUEUE)
		return r->servers > 0;
	return r->burst > 0 || (k == STATION_OPEN_QUEUE && r->servers > 0);
}

/* The ends of what all explanations say, whatever each of them calls it; `unit` of the station's
 * unit are a read. */
static void set_ceiling(struct station *s, enum station_kind k, const struct read_law *law,
			double unit)
{
	if (!has_ceiling(k, &law->best))
		return;
	read_law_ceilings(law, &s->low, &s->high);
	s->low *= unit;
	s->high *= unit;
	s->seen = true;
	s->ceiling = read_rates_ceiling(&law->best, law->mean_bytes) * unit;
	s->known = isfinite(s->high) && s->high <= SAME * s->low;
	s->utilization = fmin(1, s->used / s->ceiling);
}

/* Whether reads took as long as if each had been alone, by all explanations: then a limit beyond
 * what was seen, if there is one, held nothing back. */
static bool nothing_waits(const struct read_law *law)
{
	double alone = read_rates_alone(&law->best, law->mean_bytes);

	for (uint32_t i = 0; i < law->count; i++)
		if (read_rates_alone(&law->one[i], law->mean_bytes) * SAME < alone)
			return false;
	return !law->best.servers && !law->best.burst;
}

/* Of the workers' time in reads: latency, stream, bandwidth and queue by the best explanation. */
static void set_reads(struct stations *s, const struct read_law *law, double part,
		      const struct counted *n, double wall)
{
	const struct read_rates *r = &law->best;
	struct station *t = s->of;
	double bytes = law->mean_bytes;

	t[STATION_LATENCY].share = law->latency_share * part;
	t[STATION_LATENCY].each_s = r->latency_ns / 1e9;
	t[STATION_STREAM].share = law->stream_share * part;
	t[STATION_STREAM].each_s = r->stream_ns_per_byte * bytes / 1e9;
	t[STATION_BANDWIDTH].share = law->shared_share * part;
	t[STATION_BANDWIDTH].each_s = r->shared_ns_per_byte * bytes / 1e9;
	t[STATION_BANDWIDTH].used = n->bytes / wall;
	t[STATION_QUEUE].used = t[STATION_REQUESTS].used = n->reads / wall;
	t[r->burst ? STATION_REQUESTS : STATION_QUEUE].share = law->queue_share * part;
	t[STATION_QUEUE].each_s = (r->serve_ns + r->serve_ns_per_byte * bytes) / 1e9;
	t[STATION_QUEUE].servers = read_law_servers(law);
	t[STATION_REQUESTS].each_s = r->pace_ns / 1e9;
	for (int k = STATION_BANDWIDTH; k <= STATION_REQUESTS; k++)
		set_ceiling(&t[k], (enum station_kind)k, law,
			    k == STATION_BANDWIDTH ? law->mean_bytes : 1);
	for (int k = STATION_LATENCY; k <= STATION_STREAM; k++) {
		t[k].seen = t[k].share > 0;
		t[k].known = law->sizes_differ && nothing_waits(law);
	}
}

static void set_opens(struct stations *s, const struct read_law *law, double part,
		      const struct counted *n, double wall)
{
	const struct read_rates *r = &law->best;
	struct station *t = s->of;

	t[STATION_OPEN_LATENCY].share = (1 - law->queue_share - law->shared_share) * part;
	t[STATION_OPEN_LATENCY].each_s = (r->latency_ns + r->stream_ns_per_byte) / 1e9;
	t[STATION_OPEN_LATENCY].seen = t[STATION_OPEN_LATENCY].share > 0;
	t[STATION_OPEN_LATENCY].known = s->opens_told;
	t[STATION_OPEN_QUEUE].share = (law->queue_share + law->shared_share) * part;
	t[STATION_OPEN_QUEUE].each_s = fmax(r->serve_ns + r->serve_ns_per_byte, r->pace_ns) / 1e9;
	t[STATION_OPEN_QUEUE].servers = read_law_servers(law);
	t[STATION_OPEN_QUEUE].used = n->opens / wall;
	set_ceiling(&t[STATION_OPEN_QUEUE], STATION_OPEN_QUEUE, law, 1);
}

struct stations stations_of(const struct result *r, const struct store_law *law)
{
	const struct decomposition *d = &r->judged.time;
	struct stations s = {.saturated = -1};
	double reads = fmax(0, d->work_s[WORK_META] - law->stat_s) + d->work_s[WORK_DATA],
	       opens = d->work_s[WORK_OPEN];
	struct counted n = count_requests(r);

	if (law->places.slow == READS_FIRST)
		n.reads = fmin(n.reads, n.opens);
	else if (law->places.slow == READS_LARGE)
		n.reads *= law->places.share;
	if (law->reads.reads == 0 || !(reads + opens > 0) || !(d->wall_s > 0) || d->batches == 0)
		return s;
	s.known = true;
	s.told = costs_law_told(&law->reads, n.reads / d->wall_s);
	s.opens_told = costs_law_told(&law->opens, n.opens / d->wall_s);
	s.reads_of_batch = n.reads / (double)d->batches;
	s.opens_of_batch = n.opens / (double)d->batches;
	s.batch_s = d->service_mean_s;
	s.read_s = n.reads > 0 ? reads / n.reads : 0;
	s.in_flight = reads / d->wall_s;
	s.most_seen = law->reads.most;
	s.waiting_share = law->reads.beside_share;
	set_reads(&s, &law->reads, reads / (reads + opens), &n, d->wall_s);
	set_opens(&s, &law->opens, opens / (reads + opens), &n, d->wall_s);
	for (int k = 0; k < STATION_KINDS; k++) {
		struct station *t = &s.of[k];

		t->of_batch_s = t->each_s *
				(k >= STATION_OPEN_LATENCY ? s.opens_of_batch : s.reads_of_batch);
		if (t->known && t->utilization >= SATURATED &&
		    (s.saturated < 0 || t->utilization > s.of[s.saturated].utilization))
			s.saturated = k;
	}
	return s;
}
