/* From measured sums to a model. */
#include "predict/costs.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "format/format.h"
#include "predict/read_fit.h"
#include "predict/slow_worker.h"

#define RANKS_SIMULATED 32
#define LISTS_MAX 64
#define COMPUTES_MAX 1024
#define PARTS_MAX 16
#define SIZES 512
#define BLOCK 8 /* batches */

static const uint64_t STEPS_LEAST = 4; /* of an epoch, for a model of another run than this one */
static const double BUSY = 0.1; /* share of processors or of a batch's time; less is ignored */
static const double BLOCKS_LEAST = 4; /* that tell how much they vary */
static const double SIZED_LEAST = 8;  /* requests of another size */
static const double SIZED_OFF = 1.5;  /* times what is said of one */
static const double POINT_OFF = 1.4;  /* times the time of a request at a point of a probe, */
static const double FULL_OFF = 1.12;  /* and where that is all a ceiling's doing */
static const double FAR_ABOVE = 2;    /* times the readers that reach it */
static const double PLATEAU = 1.15;   /* times the rate with twice the readers: there is no more */
static const double TAKEN = 0.5;      /* of the time without a processor, from run to run */
static const double HIST_OFF = 0.1;   /* of a time: what its histogram may be off */
static const double NOTABLE = 0.03;   /* of a batch's time: opens that take less just take it */
static const double FAR = 4;          /* times what is asked for: a ceiling that does not matter */
static const double AGREED = 1.25;    /* between ceilings that are the same */
static const size_t PLACES_LEAST = 8; /* reads of a place in a file */
static const size_t PLACES_COMPARED = 1024; /* reads: of more, some */
static const double PLACES_FEW = 0.5;       /* of the reads: the first ones of files, */
static const double PLACES_TAKE = 0.7;      /* and of their time, where those alone count */
static const double PLACES_APART = 0.9;     /* of the pairs: the first one takes longer */
static const double CALIBRATED_MIN = 0.25, CALIBRATED_MAX = 4; /* of what the parts sum to */

/* Of metadata requests that asked for no bytes, seconds: what their histogram has beyond those that
 * did, which are kept by size and half as fine. */
static double costs_stat_s(const struct io_stat *io)
{
	double sized = 0, all = (double)io->kind[IO_META].busy_ns / 1e9;

	for (int size = 0; size < IO_CLASSES; size++) {
		const struct io_latency *l = io_stat_sized(io, IO_META, (enum io_class)size);

		for (size_t b = 0; l->total > 0 && b + 1 < IO_CLASS_BUCKETS; b++)
			sized += l->count[b] / 2e9 *
				 (double)(io_latency_bucket_low(b) + io_latency_bucket_low(b + 1));
	}
	return all - sized > HIST_OFF * all ? all - sized : 0;
}

/* Requests of a kind that asked for bytes. */
static double asked_for(const struct io_stat *io, enum io_kind kind)
{
	double n = 0;

	for (int size = 0; size < IO_CLASSES; size++)
		n += (double)io_stat_sized(io, kind, (enum io_class)size)->total;
	return n;
}

/* The means of all requests, where the log has those that lie in its windows. */
static void set_means(const struct result *r, bool opens, struct read_law *law)
{
	double n = 0, s = 0, bytes = 0;

	for (uint32_t k = 0; k < r->ranks; k++) {
		const struct io_stat *io = &r->rank[k].train_io;

		s += ((double)io->kind[IO_META].busy_ns + (double)io->kind[IO_DATA].busy_ns) / 1e9 -
		     costs_stat_s(io);
		bytes += (double)io_stat_returned(io);
		n += asked_for(io, IO_META) + asked_for(io, IO_DATA);
	}
	if (opens || !(n > 0) || !(bytes > 0) || !(s > 0) || law->count == 0)
		return;
	law->mean_ns = 1e9 * s / n;
	law->mean_bytes = bytes / n;
	read_law_prefer(law, 0);
}

static bool is_slow(const struct read_seen *s, const struct read_places *p)
{
	return p->slow == READS_FIRST ? s->place == 0
				      : p->slow == READS_LARGE && s->bytes >= p->large;
}

/* How likely a slow read is to take longer than another one, whichever they are (Mann-Whitney); of
 * a sample of both. */
static double slow_is_longer(const struct read_seen *seen, size_t n, const struct read_places *p)
{
	size_t apart = 1 + n / PLACES_COMPARED, longer = 0, all = 0, slow = 0, other;

	for (size_t i = 0; i < n; i++) {
		if (!is_slow(&seen[i], p) || slow++ % apart)
			continue;
		other = 0;
		for (size_t k = 0; k < n; k++) {
			if (is_slow(&seen[k], p) || seen[k].bytes == 0 || other++ % apart)
				continue;
			longer += seen[i].end_ns - seen[i].begin_ns >
				  seen[k].end_ns - seen[k].begin_ns;
			all++;
		}
	}
	return all ? (double)longer / (double)all : 0;
}

/* Whether reads of p->slow are those that count. A log has long reads more often than short ones,
 * as they touch more windows: each weighs as little as it is likely to be there. */
static bool they_count(const struct read_set *set, struct read_places *p)
{
	double slow = 0, other = 0, slow_s = 0, other_s = 0;
	size_t n = 0, others = 0;

	for (size_t i = 0; i < set->n; i++) {
		const struct read_seen *s = &set->seen[i];
		double took = (double)(s->end_ns - s->begin_ns);
		double weight = read_log_weight(set->apart, set->wide, s);
		bool is = is_slow(s, p);

		if (p->slow == READS_FIRST && s->place == READ_PLACE_UNKNOWN)
			return false;
		/* it found the end of its file, which needs no storage */
		if (s->bytes == 0)
			continue;
		n += is;
		others += !is;
		slow += is ? weight : 0;
		slow_s += is ? weight * took : 0;
		other += is ? 0 : weight;
		other_s += is ? 0 : weight * took;
	}
	if (n < PLACES_LEAST || others < PLACES_LEAST)
		return false;
	p->slow_ns = slow_s / slow;
	p->other_ns = other_s / other;
	p->share = slow / (slow + other);
	return p->share <= PLACES_FEW && slow_s >= PLACES_TAKE * (slow_s + other_s) &&
	       slow_is_longer(set->seen, set->n, p) >= PLACES_APART;
}

static struct read_places places_of(const struct read_set *set, enum read_kind slow)
{
	struct read_places p = {.slow = slow};
	uint64_t most = 0;

	for (size_t i = 0; i < set->n; i++)
		most = set->seen[i].bytes > most ? set->seen[i].bytes : most;
	p.large = most / 2;
	return they_count(set, &p) ? p : (struct read_places){.slow = READS_ALIKE};
}

/* Slow reads alone, with the bytes of all. */
static void keep_slow(struct read_seen *seen, size_t *n, const struct read_places *p)
{
	double bytes = 0;
	size_t kept = 0;

	if (!p || p->slow == READS_ALIKE)
		return;
	for (size_t i = 0; i < *n; i++) {
		bytes += (double)seen[i].bytes;
		if (is_slow(&seen[i], p))
			seen[kept++] = seen[i];
	}
	for (size_t i = 0; i < kept; i++)
		seen[i].bytes = (uint64_t)(bytes / (double)kept + 0.5);
	*n = kept;
}

static struct read_seen *reads_as_seen(const struct result *r, bool opens, struct read_set *set,
				       double *times)
{
	const struct read_log **logs = xcalloc(r->ranks ? r->ranks : 1, sizeof(*logs));
	struct read_seen *seen;
	size_t count = 0;

	for (uint32_t k = 0; k < r->ranks; k++)
		if (result_rank_host(r, k) == result_rank_host(r, result_present_rank(r)))
			logs[count++] =
				opens ? &r->rank[k].train_io.opens : &r->rank[k].train_io.reads;
	seen = read_log_join(logs, count, &set->n, &set->apart, &set->wide);
	set->seen = seen;
	*times = count ? (double)r->ranks / (double)count : 1;
	free(logs);
	return seen;
}

struct read_seen *costs_reads(const struct result *r, bool opens, const struct read_places *places,
			      struct read_set *set, double *times)
{
	struct read_seen *seen = reads_as_seen(r, opens, set, times);

	if (seen && !opens)
		keep_slow(seen, &set->n, places);
	return seen;
}

/* Whether the probe met what training met, and as large a part of its readers is known. */
static bool probe_counts(const struct result *r, double times)
{
	const struct probe *p = &r->probe;
	double processes = p->processes ? p->processes : 1;

	return p->done && p->count >= 2 && fabs(processes - times) < 0.01;
}

/* How wrong it is about a point of a probe, by the time of a request, waits included, where so many
 * are under way. The ceiling is exact far above the readers that reach it only. */
static uint32_t wrong_at(const struct read_rates *r, double bytes, double each_s, double under_way)
{
	double alone = read_rates_alone(r, bytes) / 1e9;
	double full = under_way / read_rates_ceiling(r, bytes), expected = fmax(alone, full);
	double off = fmax(expected / each_s, each_s / expected);

	if (fmax(full, each_s) > FAR_ABOVE * alone && off > FULL_OFF)
		return 2;
	return off >= POINT_OFF;
}

/* Drops the explanations that a probe's numbers of readers contradict, unless it is all of them. */
static void drop_refuted(const struct probe *p, bool opens, bool by_file, struct read_law *law)
{
	uint32_t wrong[READ_LAWS_MAX] = {0}, least = UINT32_MAX, kept = 0;

	for (uint32_t i = 0; i < law->count; i++) {
		for (uint32_t k = 0; k < (by_file ? p->count : probe_points(p)); k++) {
			const struct probe_point *q = probe_point_at(p, k);
			double n = (double)(opens || by_file ? q->opens : q->requests);
			double s = opens ? q->open_s : q->read_s;
			double bytes = opens || n <= 0 ? 1 : (double)q->bytes / n;

			if (n >= 2 * q->readers && s > 0)
				wrong[i] += wrong_at(&law->one[i], bytes, s / n, s / q->seconds);
		}
		least = wrong[i] < least ? wrong[i] : least;
	}
	for (uint32_t i = 0; i < law->count; i++)
		if (wrong[i] <= least + 1)
			law->one[kept++] = law->one[i];
	law->count = kept;
	read_law_prefer(law, 0);
}

/* Whether one reader's requests of another size take what an explanation says: if not, what goes
 * with requests and what with their bytes is not as it says. */
static void doubt_sizes(const struct probe *p, struct read_law *law)
{
	const struct probe_point *q = &p->sized[0];
	double each, said, n = (double)q->requests;

	if (p->sized_count == 0 || n < SIZED_LEAST || !(q->read_s > 0))
		return;
	each = q->read_s / n;
	for (uint32_t i = 0; i < law->count; i++) {
		said = read_rates_alone(&law->one[i], (double)q->bytes / n) / 1e9;
		if (fmax(each, said) > SIZED_OFF * fmin(each, said))
			law->one[i].misplaced = 1;
	}
	read_law_prefer(law, 0);
}

/* Samples/s that more readers did not get beyond; 0: they still got more. */
static double plateau_of(const struct probe *p)
{
	const struct probe_point *last = &p->point[p->count - 1];
	double most = 0, before = 0;

	for (uint32_t k = 0; k < p->count; k++) {
		const struct probe_point *q = &p->point[k];

		most = fmax(most, probe_rate(q));
		if (2 * q->readers <= last->readers)
			before = fmax(before, probe_rate(q));
	}
	return before > 0 && probe_rate(last) <= PLATEAU * before ? most : 0;
}

/* Of an open alone, where the log has stats by name, too; ns. */
static double open_alone_ns(const struct read_seen *seen, size_t n)
{
	double took = 0, opens = 0;

	for (size_t i = 0; i < n; i++)
		if (seen[i].place == SEEN_OPEN) {
			took += (double)(seen[i].end_ns - seen[i].begin_ns);
			opens++;
		}
	return opens > 0 ? took / opens : 0;
}

/* By all requests, or (places) by those that count. */
static struct read_law fit_law(const struct result *r, bool opens, const struct read_places *places,
			       bool *probed)
{
	struct read_set set[1 + PROBE_POINTS_MAX + PROBE_SIZED_MAX] = {{0}};
	struct read_seen *own[1 + PROBE_POINTS_MAX] = {NULL};
	const struct probe *p = &r->probe;
	bool some = places->slow != READS_ALIKE;
	struct read_law law = {0};
	double times;
	size_t sets = 1;

	own[0] = costs_reads(r, opens, places, &set[0], &times);
	/* requests of another size are of no file's */
	for (uint32_t k = 0; k < (some ? p->count : probe_points(p)) && probe_counts(r, times);
	     k++) {
		const struct probe_point *q = probe_point_at(p, k);
		const struct probe_log *l = opens ? &q->open_log : &q->reads;

		if (l->n == 0)
			continue;
		set[sets] = (struct read_set){l->seen, l->n, l->apart, l->wide};
		if (some) {
			own[sets] = xmalloc(l->n * sizeof(*l->seen));
			memcpy(own[sets], l->seen, l->n * sizeof(*l->seen));
			keep_slow(own[sets], &set[sets].n, places);
			set[sets].seen = own[sets];
		}
		sets++;
	}
	if (own[0])
		law = read_fit(set, sets, times);
	if (!some)
		set_means(r, opens, &law);
	if (law.count > 1 && sets > 1)
		drop_refuted(p, opens, some, &law);
	if (law.count > 0 && sets > 1 && !opens && !some)
		doubt_sizes(p, &law);
	*probed = sets > 1;
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		free(own[i]);
	return law;
}

struct store_law costs_store_law(const struct result *r)
{
	static const struct read_places alike = {.slow = READS_ALIKE};
	struct store_law law = {0};
	struct read_places large;
	struct read_set set;
	double times;
	struct read_seen *seen = reads_as_seen(r, false, &set, &times);
	bool of_opens;

	law.places = places_of(&set, READS_FIRST);
	law.reads = fit_law(r, false, &law.places, &law.probed);
	large = places_of(&set, READS_LARGE);
	if (law.places.slow == READS_ALIKE && law.reads.best.burst && large.slow != READS_ALIKE) {
		law.places = large;
		law.reads = fit_law(r, false, &large, &law.probed);
	}
	free(seen);
	seen = reads_as_seen(r, true, &set, &times);
	if (seen)
		law.open_ns = open_alone_ns(seen, set.n);
	free(seen);
	law.opens = fit_law(r, true, &alike, &of_opens);
	for (uint32_t k = 0; k < r->ranks; k++)
		law.stat_s += costs_stat_s(&r->rank[k].train_io);
	if (law.probed) {
		law.plateau = plateau_of(&r->probe);
		law.probe = &r->probe;
	}
	return law;
}

bool costs_law_told(const struct read_law *law, double rate)
{
	double low, high;

	read_law_ceilings(law, &low, &high);
	return law->count == 0 || low >= FAR * rate || high <= AGREED * low;
}

static bool refuse(struct outlook *out, struct fact why)
{
	out->why = why;
	return false;
}

/* By the means of blocks of neighbours, which may be slow together; the lists are of factors. */
static double sure_of(const double *spread, uint32_t lists, uint32_t times)
{
	double n = 0, sum = 0, square = 0;

	for (uint32_t k = 0; k < lists; k++)
		for (uint32_t i = 0; i + BLOCK <= times; i += BLOCK) {
			double mean = 0;

			for (uint32_t b = 0; b < BLOCK; b++)
				mean += spread[(size_t)k * times + i + b] / BLOCK;
			n++;
			sum += mean;
			square += mean * mean;
		}
	if (n < BLOCKS_LEAST || !(sum > 0))
		return 0;
	return sqrt(fmax(0, square / n - sum / n * (sum / n)) / (n - 1)) / (sum / n);
}

/* The times of steps and batches, in their order. */
static bool fill_lists(struct variants *v, struct model *m, const struct result *r)
{
	uint32_t n = r->ranks < LISTS_MAX ? r->ranks : LISTS_MAX, steps = COMPUTES_MAX;
	uint32_t times = SERVICE_KEPT;
	double sum = 0;

	for (uint32_t k = 0; k < n; k++) {
		const struct rank_epoch *first = &r->rank[k].epoch[0];

		if (r->rank[k].lost || first->blocks == 0)
			return false;
		steps = first->block[0].steps < steps ? (uint32_t)first->block[0].steps : steps;
		times = r->rank[k].service.n < times ? r->rank[k].service.n : times;
	}
	if (steps == 0)
		return false;
	v->compute = xcalloc((size_t)n * steps, sizeof(double));
	v->spread = xcalloc((size_t)n * (times ? times : 1), sizeof(double));
	for (uint32_t k = 0; k < n; k++) {
		const struct step_times *t = r->rank[k].epoch[0].block[0].step;

		for (uint32_t i = 0; i < steps; i++)
			v->compute[(size_t)k * steps + i] = step_computed_s(&t[i]);
		for (uint32_t i = 0; i < times; i++)
			sum += (double)r->rank[k].service.ns[i] / ((double)n * times);
	}
	for (uint32_t k = 0; k < n && sum > 0; k++)
		for (uint32_t i = 0; i < times; i++)
			v->spread[(size_t)k * times + i] = (double)r->rank[k].service.ns[i] / sum;
	m->lists = n;
	m->compute = v->compute;
	m->computes = steps;
	m->spread = v->spread;
	m->spreads = sum > 0 ? times : 0;
	v->service_sure = sum > 0 ? sure_of(v->spread, n, times) : 0;
	m->spread_by = 1;
	return true;
}

static void draw_sizes(struct variants *v, struct model *m, const struct dataset *d)
{
	double sum = 0;

	m->samples = v->costs.samples;
	if (!d || d->max_sample_bytes == 0 || d->files[DATASET_TRAIN] == 0)
		return;
	v->size = xcalloc(SIZES, sizeof(double));
	for (uint64_t i = 0; i < SIZES; i++) {
		uint64_t file = rng_word(rng_key(SIZES, 0, 0), i) % d->files[DATASET_TRAIN];

		v->size[i] = (double)dataset_sample_bytes(d, DATASET_TRAIN, file);
		sum += v->size[i] / SIZES;
	}
	for (int i = 0; i < SIZES && sum > 0; i++)
		v->size[i] /= sum;
	m->size = v->size;
	m->sizes = sum > 0 ? SIZES : 0;
	v->costs.plain = sum * v->costs.samples;
}

/* What native access would ask for, of a sample. */
static double native_requests(const struct result *r)
{
	const struct dataset *d = r->dataset;
	const struct workload *w = r->workload;
	double pieces, samples;

	if (!d || d->files[DATASET_TRAIN] == 0)
		return 1;
	samples = (double)d->samples_per_file;
	pieces = ceil(dataset_sample_file_bytes(d, DATASET_TRAIN, NULL) / NATIVE_PIECE_MAX);
	pieces = fmax(1, pieces);
	if (!(d->format->is.flags & FORMAT_HEADED))
		return pieces;
	if (w->dataset.compression || w->dataset.hdf5.chunk_dims.n)
		return pieces + 1;
	if (w->reader.read_type == READ_MEMORY || (double)d->max_file_bytes <= NATIVE_WINDOW)
		return pieces;
	return pieces + (samples - 1) / samples;
}

/* Requests that asked for bytes, and what they got. */
static void count_reads(struct costs *c, const struct result *r, double batches)
{
	double requests = 0, bytes = 0, payload = 0, data = 0, data_bytes = 0;

	for (uint32_t k = 0; k < r->ranks; k++) {
		const struct io_stat *io = &r->rank[k].train_io;

		requests += asked_for(io, IO_META) + asked_for(io, IO_DATA);
		data += asked_for(io, IO_DATA);
		data_bytes += (double)io->kind[IO_DATA].returned_bytes;
		bytes += (double)io_stat_returned(io);
		for (uint32_t i = 0; i < r->epochs_begun; i++)
			payload += (double)r->rank[k].epoch[i].payload_bytes;
	}
	c->requests = requests / batches;
	c->bytes = bytes / batches;
	c->data_requests = data / batches;
	c->data_bytes = data_bytes / batches;
	/* of decoded samples, what they take in files */
	if (r->dataset && r->dataset->files[DATASET_TRAIN])
		payload *= dataset_sample_file_bytes(r->dataset, DATASET_TRAIN, NULL) /
			   dataset_mean_sample_bytes(r->dataset, DATASET_TRAIN);
	c->payload = payload > 0 && payload < bytes ? payload / batches : c->bytes;
	c->native = c->samples * native_requests(r);
}

/* Stats by name are among the metadata, and take as long as opens. Closes are among the opens. */
static void count_opens(struct costs *c, const struct result *r, double batches)
{
	double each = c->law.opens.mean_ns / 1e9, stats = 0, close;

	for (uint32_t k = 0; k < r->ranks; k++) {
		stats += costs_stat_s(&r->rank[k].train_io) / batches;
		c->files += (double)r->rank[k].train_io.kind[IO_OPEN].requests / 2 / batches;
	}
	if (!(each > 0))
		return;
	close = c->open - c->files * c->law.open_ns / 1e9;
	if (c->law.open_ns > 0 && close > NOTABLE * c->service) {
		c->close = close;
		c->open -= close;
	}
	if (stats > NOTABLE * c->reads) {
		stats = fmin(stats, c->reads);
		c->open += stats;
		c->reads -= stats;
	}
	c->opens = c->open / each;
}

static void fill_costs(struct costs *c, const struct result *r, uint32_t epochs,
		       const struct store_law *law)
{
	const struct decomposition *d = &r->judged.time;
	double batches = (double)d->batches, cpu = 0, all = 0, wall = 0;

	c->law = *law;
	c->open = d->work_s[WORK_OPEN] / batches;
	c->reads = (d->work_s[WORK_META] + d->work_s[WORK_DATA]) / batches;
	/* the framework's code competes for processors as decoding does */
	c->framework = d->work_s[WORK_FRAMEWORK] / batches;
	c->decode = d->work_s[WORK_DECODE] / batches + c->framework;
	c->preprocess = d->work_s[WORK_PREPROCESS] / batches;
	c->hosts = r->nodes ? r->nodes : 1;
	c->samples = (double)r->workload->reader.batch_size;
	c->service = d->service_mean_s + d->work_s[WORK_TRANSPORT] / batches;
	if (c->rule == RULE_EXTERNAL) {
		c->service = 0;
		for (int k = 0; k < WORK_KINDS; k++)
			c->service += d->work_s[k] / batches;
	}
	c->service_dev = d->service_dev_s;
	c->taken = d->wall_s > 0 ? 100 * TAKEN * d->mean_s[TIME_NO_CPU] / d->wall_s : 0;
	for (uint32_t i = 0; i < epochs; i++) {
		cpu += (double)r->usage[i].cpu_ns / 1e9;
		all += (double)r->usage[i].host_cpu_ns / 1e9;
		wall += (double)r->usage[i].wall_ns / 1e9;
	}
	c->cpu = cpu / batches;
	c->others = wall > 0 && all > cpu ? (all - cpu) / wall : 0;
	count_reads(c, r, batches);
	count_opens(c, r, batches);
	if (law->places.slow != READS_ALIKE) {
		c->requests = law->places.slow == READS_FIRST ? fmin(c->requests, c->files)
							      : c->requests * law->places.share;
		c->later = fmax(0, c->reads - c->requests * law->places.slow_ns / 1e9);
		c->reads -= c->later;
	}
}

static struct model_queue queue_of(const struct read_rates *r, double requests, double bytes)
{
	return (struct model_queue){.servers = r->servers,
				    .serve_s = requests * r->serve_ns / 1e9,
				    .serve_sized_s = bytes * r->serve_ns_per_byte / 1e9,
				    .burst = r->burst,
				    .requests = requests,
				    .pace_s = r->pace_ns / 1e9};
}

/* The model of one explanation, not yet made to agree with the run. */
static void variant_assemble(struct variant *v, const struct costs *c, const struct model *base)
{
	struct model *m = &v->m;
	double rest = c->service - c->open - c->reads - c->decode;
	bool opens = c->open > NOTABLE * c->service && c->opens > 0;
	const struct read_rates *r = &v->rates;

	*m = *base;
	v->open_latency = c->open;
	if (opens && (v->opens.servers || v->opens.burst)) {
		m->open = queue_of(&v->opens, c->opens, c->opens);
		v->open_latency = fmin(c->open, c->opens * v->opens.latency_ns / 1e9);
	}
	v->latency = fmin(c->reads, c->requests * r->latency_ns / 1e9);
	v->close = c->close;
	v->later = c->later;
	m->bytes = c->bytes;
	m->stream = r->stream_ns_per_byte > 0 ? 1e9 / r->stream_ns_per_byte : 0;
	m->shared = r->shared_ns_per_byte > 0 ? 1e9 / r->shared_ns_per_byte : 0;
	if (r->servers || r->burst)
		m->read = queue_of(r, c->requests, c->bytes);
	m->cpu_s = fmin(c->decode, c->cpu);
	v->decode = c->decode - m->cpu_s;
	v->preprocess = fmin(c->preprocess, fmax(0, rest));
	m->delay_s = v->open_latency + v->latency + v->decode + fmax(0, rest);
}

static void variant_scale(struct variant *v, double by)
{
	v->m.delay_s *= by;
	v->m.bytes *= by;
	v->m.cpu_s *= by;
	model_queue_slow(&v->m.open, by);
	model_queue_slow(&v->m.read, by);
	v->latency *= by;
	v->open_latency *= by;
	v->close *= by;
	v->later *= by;
	v->decode *= by;
	v->preprocess *= by;
	v->scale *= by;
}

/* Scales all parts by one factor, so that the modeled time of a batch is the measured one. */
static void agree_in_mean(struct variant *v, double service)
{
	double low = CALIBRATED_MIN, high = CALIBRATED_MAX;

	for (int i = 0; i < 12; i++) {
		double by = sqrt(low * high);
		struct variant t = *v;

		variant_scale(&t, by);
		if (model_run(&t.m).service_s > service)
			high = by;
		else
			low = by;
	}
	variant_scale(v, sqrt(low * high));
}

/* What others cause by sharing varies without the batch itself: the rest is its own. */
static void agree_in_spread(struct variant *v, double dev)
{
	double low = 0, high = 1;

	if (model_run(&v->m).service_dev_s <= dev)
		return;
	for (int i = 0; i < 6; i++) {
		v->m.spread_by = (low + high) / 2;
		if (model_run(&v->m).service_dev_s > dev)
			high = v->m.spread_by;
		else
			low = v->m.spread_by;
	}
}

static bool add_variant(struct variants *v, const struct model *base,
			const struct read_rates *rates, const struct read_rates *opens,
			bool split_only)
{
	struct variant *one = &v->one[v->count];
	double service = v->costs.service / fmax(1, base->runs);

	assert(v->count < VARIANTS_MAX);
	*one = (struct variant){
		.rates = *rates, .opens = *opens, .split_only = split_only, .scale = 1};
	variant_assemble(one, &v->costs, base);
	/* a pace is a rate, which the log has exactly */
	if (!rates->burst)
		agree_in_mean(one, service);
	if (v->costs.rule != RULE_EXTERNAL)
		agree_in_spread(one, v->costs.service_dev);
	if (!rates->burst)
		agree_in_mean(one, service);
	one->reproduced = model_run(&one->m);
	if (v->costs.law.probe)
		probe_curve_of(&one->curve, v->costs.law.probe, &one->m,
			       one->open_latency + one->latency + one->close + one->later);
	v->count++;
	return !isnan(one->reproduced.au);
}

/* Of a byte: what is shared by opens under way is a queue of one. */
static struct read_rates as_queue(struct read_rates r)
{
	r.latency_ns += r.stream_ns_per_byte;
	if (r.shared_ns_per_byte > 0) {
		r.servers = 1;
		r.serve_ns += r.shared_ns_per_byte;
	}
	r.serve_ns += r.serve_ns_per_byte;
	r.stream_ns_per_byte = r.shared_ns_per_byte = r.serve_ns_per_byte = 0;
	return r;
}

/* The same where what went with requests goes with their bytes; false: nothing did. */
static bool split_otherwise(const struct costs *c, struct read_rates *r)
{
	double each = c->bytes > 0 ? c->requests / c->bytes : 0;

	if (c->law.reads.sizes_differ || !(each > 0))
		return false;
	if (r->servers && r->serve_ns > 0) {
		r->serve_ns_per_byte += r->serve_ns * each;
		r->serve_ns = 0;
	} else if (!r->servers && !r->burst && !(r->shared_ns_per_byte > 0)) {
		*r = (struct read_rates){.stream_ns_per_byte = 1e9 * c->reads / c->bytes};
	} else {
		return false;
	}
	return true;
}

/* All explanations of the reads with the best one of the opens, and the other way round. */
static bool add_variants(struct variants *v, const struct model *m)
{
	const struct read_law *reads = &v->costs.law.reads, *opens = &v->costs.law.opens;
	struct read_rates open = as_queue(opens->best), other;
	bool fits = true;

	fits = add_variant(v, m, &reads->best, &open, false);
	for (uint32_t i = 1; i < reads->count && fits; i++)
		fits = add_variant(v, m, &reads->one[i], &open, false);
	for (uint32_t i = 1; i < opens->count && fits; i++) {
		other = as_queue(opens->one[i]);
		if (v->costs.open > NOTABLE * v->costs.service)
			fits = add_variant(v, m, &reads->best, &other, false);
	}
	for (uint32_t i = 0; i < reads->count && fits; i++) {
		other = reads->one[i];
		if (split_otherwise(&v->costs, &other))
			return add_variant(v, m, &other, &open, true);
	}
	return fits;
}

bool variants_table(struct variants *v)
{
	const struct read_law *reads = &v->costs.law.reads, *opens = &v->costs.law.opens;

	if (reads->table.misfit.count < 2 && opens->table.misfit.count < 2)
		return false;
	v->count = 0;
	if (!add_variant(v, &v->base, &reads->table, &opens->table, false))
		return false;
	v->one[0].tabled = true;
	return true;
}

bool variants_plain(struct variants *v)
{
	const struct costs *c = &v->costs;
	struct variant *one = &v->one[0];

	v->count = 0;
	if (v->base.ranks == 0)
		return false;
	*one = (struct variant){.scale = 1, .m = v->base};
	one->m.bytes = 0;
	one->m.cpu_s = fmin(c->decode, c->cpu);
	one->m.delay_s = fmax(0, c->service / fmax(1, v->base.runs) - one->m.cpu_s);
	one->preprocess = c->preprocess;
	one->reproduced = model_run(&one->m);
	v->count = 1;
	return !isnan(one->reproduced.au);
}

/* RULE_NONE where the loader cannot be simulated, or not as the workload uses it. */
static enum loader_rule rule_of(const struct workload *w)
{
	enum loader_rule rule = workload_loader(w)->rule;

	if (rule == RULE_GENERATORS && order_tf_records(w))
		return RULE_NONE;
	if (rule == RULE_EXTERNAL && w->reader.read_threads == 0)
		return RULE_NONE;
	/* what a batch costs is whether its shards are there, which no rule tells */
	if (w->reader.cache_folder && w->reader.cache_folder[0])
		return RULE_NONE;
	return rule;
}

void rule_workers(const struct variants *v, uint32_t workers, struct model *m)
{
	m->workers = workers;
	model_rule(m, v->costs.rule, workers && v->prefetch == 0 ? 2 : (double)v->prefetch);
}

void rule_window(const struct variants *v, double by, struct model *m)
{
	model_rule(m, v->costs.rule, (double)v->prefetch * by);
}

bool variants_make(struct variants *v, const struct result *r, uint32_t epochs,
		   const struct store_law *law, struct outlook *out)
{
	const struct decomposition *d = &r->judged.time;
	const struct workload *w = r->workload;
	double steps = (double)d->steps / r->ranks;
	struct costs *c = &v->costs;
	struct model m = {0};

	*v = (struct variants){.w = w};
	c->rule = rule_of(w);
	if (c->rule == RULE_NONE)
		return refuse(out, FACT(NO_MODEL_LOADER));
	if (r->ranks == 0 || epochs == 0 || steps / epochs < 1 || d->batches < 1)
		return refuse(out, FACT(NO_MODEL_STEPS));
	v->few_steps = steps / epochs < STEPS_LEAST || d->batches < STEPS_LEAST;
	if (!(d->mean_s[TIME_COMPUTE] > 0))
		return refuse(out, FACT(NO_MODEL_COMPUTE));
	if (!fill_lists(v, &m, r))
		return refuse(out, FACT(NO_MODEL_STEPS));
	fill_costs(c, r, epochs, law);
	draw_sizes(v, &m, r->dataset);
	if (!(c->service > 0))
		return refuse(out, FACT(NO_MODEL_BATCH));
	for (uint32_t k = 0; k < r->ranks && !v->slow_worker; k++)
		v->slow_worker = slow_worker_of(r, epochs, k, &(struct slow_worker){0});
	m.ranks = r->ranks;
	m.in_order = w->reader.in_order || c->rule != RULE_PYTORCH;
	m.steps = (uint64_t)(steps / epochs + 0.5);
	v->prefetch = result_window(r);
	if (c->rule == RULE_GENERATORS)
		v->prefetch = w->reader.prefetch_size < 0 ? 2 : (uint64_t)w->reader.prefetch_size;
	else if (c->rule == RULE_PYTORCH)
		v->prefetch = result_workers(r) ? v->prefetch / result_workers(r) : 0;
	rule_workers(v, result_workers(r), &m);
	m.parts = (uint32_t)fmin(PARTS_MAX, fmax(1, c->samples / m.runs));
	m.cpus = result_usable_cpus(&r->host);
	m.start_s = d->mean_s[TIME_WAIT + WAIT_START] / epochs;
	if (m.workers)
		m.fork_s = d->framework_start_s / epochs / m.workers;
	m.take_s = d->framework_step_s / steps;
	m.hand_s = d->delivery_mean_s;
	m.step_s = (d->mean_s[TIME_OTHER] + d->mean_s[TIME_COLLECTIVE] + d->late_compute_s +
		    d->late_barrier_s) /
		   steps;
	m.step_s = m.step_s > 0 ? m.step_s : 0;
	cadence_of(r, epochs, m.steps, d->wall_s, &v->cadence);
	cadence_now(&v->cadence, &m);
	v->base = m;
	/* the simulation of many readers would take longer than many a run */
	if (r->ranks > RANKS_SIMULATED)
		return refuse(out, FACT(NO_MODEL_RANKS));
	if (!add_variants(v, &m))
		return refuse(out, FACT(NO_MODEL_SIZE));
	if (c->others > BUSY * m.cpus && fmin(c->decode, c->cpu) > BUSY * c->service) {
		/* other programs may keep what they had, or give way */
		m.cpus = fmax(1, m.cpus - c->others);
		return add_variant(v, &m, &v->one[0].rates, &v->one[0].opens, false) ||
		       refuse(out, FACT(NO_MODEL_SIZE));
	}
	return true;
}

void variants_release(struct variants *v)
{
	free(v->compute);
	free(v->spread);
	free(v->size);
}
