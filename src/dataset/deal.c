/* How MosaicML Streaming and LitData deal out samples. */
#include "dataset/deal.h"

#include <string.h>

#include "base/rng.h"
#include "base/saturate.h"

static void set_entry(struct order_list *l, uint64_t i, uint64_t sample)
{
	if (l->narrow)
		l->narrow[i] = (uint32_t)sample;
	else
		l->wide[i] = sample;
}

void deal_rules(struct deal *d, const struct workload *w, uint64_t samples, uint32_t ranks,
		uint64_t batch, uint64_t seed, uint64_t epoch)
{
	int64_t per_file = w->dataset.num_samples_per_file, workers = w->reader.read_threads;
	bool changes = w->train.seed_change_epoch;

	*d = (struct deal){
		.of = workload_loader(w)->deal,
		.samples = samples,
		.samples_per_file = per_file > 0 ? (uint64_t)per_file : 1,
		.batch = batch,
		.ranks = ranks,
		.workers = workers > 0 ? (uint32_t)workers : 1,
		.nodes = w->reader.nodes > 0 ? (uint64_t)w->reader.nodes : 1,
		.canonical = (uint64_t)w->reader.canonical_nodes,
		.block = (uint64_t)w->reader.shuffle_block_size,
		.algorithm = w->reader.shuffle_algorithm,
		.shuffle = w->reader.sample_shuffle != SHUFFLE_OFF,
		.seed = seed,
	};
	if (ranks % d->nodes)
		d->nodes = 1;
	if (d->canonical == 0)
		d->canonical = d->nodes * workload_canonical_of(d->algorithm);
	if (d->block == 0) {
		d->block = 4000000 / d->canonical;
		if (d->block < 1u << 18)
			d->block = 1u << 18;
	}
	/* the one counts from 0, the other from 1 */
	d->epoch = (changes ? epoch : 1) - (d->of == DEAL_MDS);
}

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
	return a / b + (a % b != 0);
}

/* ---- MDS ---- */

/* A canonical node's samples, and those that pad them. */
struct rows {
	uint64_t each, padding, ratio;
	uint64_t per_node; /* samples of a physical node, before its ranks are made equal */
};

static bool rows_of(const struct deal *d, struct rows *r)
{
	if (d->ranks == 0 || d->batch == 0 ||
	    (d->samples <= d->canonical &&
	     !(d->samples == d->canonical && d->canonical >= d->nodes)))
		return false;
	*r = (struct rows){.each = ceil_div(d->samples, d->canonical), .ratio = 1};
	if (d->canonical < d->nodes) {
		r->ratio = d->nodes / d->canonical;
		r->padding = (r->ratio - r->each % r->ratio) % r->ratio;
	}
	r->per_node = (r->each + r->padding) * d->canonical / d->nodes;
	return true;
}

/* Where the samples of a canonical node begin. */
static uint64_t border(const struct deal *d, uint64_t row)
{
	uint64_t all;

	if (row == 0 || row == d->canonical)
		return row ? d->samples : 0;
	/* the long division takes four times as long */
	return __builtin_mul_overflow(row, d->samples, &all)
		       ? (uint64_t)((unsigned __int128)row * d->samples / d->canonical)
		       : all / d->canonical;
}

/* Place `at` of a canonical node: the number of a sample, before the shuffle. */
static uint64_t row_at(const struct deal *d, const struct rows *r, uint64_t row, uint64_t at)
{
	uint64_t begin = border(d, row), end = border(d, row + 1);
	uint64_t back = r->padding + r->ratio - 1;

	if (at >= r->each)
		at = at > back ? at - back : 0;
	/* a row that is one shorter repeats its last sample */
	return begin + at - (at + 1 == r->each && end - begin < r->each);
}

/* What is the same for all samples of a rank. */
struct takes {
	uint64_t each, node, first, missing;
};

static struct takes takes_of(const struct deal *d, const struct rows *r, uint32_t rank)
{
	uint64_t each = d->ranks / d->nodes;

	return (struct takes){
		.each = each,
		.node = rank / each,
		.first = rank % each,
		.missing = ceil_div(r->per_node, each) * each - r->per_node,
	};
}

/* Sample k of a rank. */
static uint64_t mds_at(const struct deal *d, const struct rows *r, const struct takes *t,
		       uint64_t k)
{
	uint64_t at = k * t->each + t->first;

	if (at >= r->per_node) {
		uint64_t more = at - r->per_node;

		at = t->each + t->missing - 1 <= r->per_node
			     ? r->per_node + 1 - t->each - t->missing + more
			     : more % r->per_node;
	}
	at = at * d->nodes + t->node;
	return d->canonical == 1 ? row_at(d, r, 0, at)
				 : row_at(d, r, at % d->canonical, at / d->canonical);
}

/* Numbers of samples, of 4 bytes while those will do. */
struct numbers {
	uint32_t *narrow;
	uint64_t *wide;
};

static inline uint64_t number_at(const struct numbers *x, uint64_t i)
{
	return x->narrow ? x->narrow[i] : x->wide[i];
}

static inline void set_number(struct numbers *x, uint64_t i, uint64_t value)
{
	if (x->narrow)
		x->narrow[i] = (uint32_t)value;
	else
		x->wide[i] = value;
}

static inline void swap_numbers(struct numbers *x, uint64_t i, uint64_t j)
{
	uint64_t was = number_at(x, i);

	set_number(x, i, number_at(x, j));
	set_number(x, j, was);
}

/* n numbers from `from` on, as numpy shuffles an array of them. */
static void shuffle_numbers(struct rng_pcg64 *r, struct numbers *x, uint64_t from, uint64_t n)
{
	if (!x->narrow) {
		rng_pcg64_shuffle_u64(r, x->wide + from, n);
		return;
	}
	for (uint64_t i = n; i-- > 1;)
		swap_numbers(x, from + i, from + rng_pcg64_masked(r, i));
}

/* A shard, or the part of one that belongs to a canonical node. */
struct shard_part {
	uint64_t begin, end;
};

struct mds_memory {
	struct shard_part *span, *old;
	uint64_t *first;    /* of each canonical node, and the end */
	uint64_t *staggers; /* of each */
	struct numbers id;  /* the shuffled sample of each number */
	struct numbers run; /* py2s: samples as they were shuffled for the run */
	/* py1e: places of the samples of a canonical node, and the samples; py1br: its blocks */
	double *place;
	struct numbers placed;
	uint64_t *window;      /* py1e: where each window begins in them */
	uint32_t *next, *stop; /* of the places of one window */
};

static uint64_t shards_of(const struct deal *d)
{
	return d->samples / d->samples_per_file;
}

/* What is sorted at once stays in the processor's cache. */
#define WINDOW 8192u

/* A measure where memory is NULL. Whole words, but for numbers, which come last. */
static uint64_t lay_out(const struct deal *d, struct mds_memory *m, void *memory)
{
	bool py1e = d->algorithm == SHUFFLE_PY1E, py1br = d->algorithm == SHUFFLE_PY1BR;
	uint64_t spans = u64_sum(shards_of(d), d->canonical), at = 0;
	uint64_t node = py1e || py1br ? d->samples / d->canonical + 1 : 0;
	uint64_t windows = py1e ? node / WINDOW + 2 : 0;
	struct {
		void *to;
		uint64_t bytes, n;
	} const part[] = {
		{&m->span, sizeof(*m->span), spans},
		{&m->old, sizeof(*m->old), spans},
		{&m->first, sizeof(*m->first), d->canonical + 1},
		{&m->staggers, sizeof(*m->staggers), d->canonical + 1},
		{&m->place, sizeof(*m->place), node},
		{&m->window, sizeof(*m->window), windows},
		{&m->next, sizeof(*m->next), py1e ? WINDOW : 0},
		{&m->stop, sizeof(*m->stop), py1e ? WINDOW : 0},
	};
	struct {
		struct numbers *to;
		uint64_t n;
	} const numbers[] = {{&m->placed, node},
			     {&m->id, d->samples},
			     {&m->run, d->algorithm == SHUFFLE_PY2S ? d->samples : 0}};
	bool narrow = d->samples <= UINT32_MAX;

	for (size_t i = 0; i < sizeof(part) / sizeof(part[0]); i++) {
		void *here = memory ? (char *)memory + at : NULL;

		memcpy(part[i].to, &here, sizeof(here));
		at = u64_sum(at, u64_product(part[i].bytes, part[i].n));
	}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		void *here = memory ? (char *)memory + at : NULL;

		*numbers[i].to = (struct numbers){.narrow = narrow ? here : NULL,
						  .wide = narrow ? NULL : here};
		at = u64_sum(at, u64_product(narrow ? 4 : 8, numbers[i].n));
	}
	return at;
}

static uint64_t mds_memory_bytes(const struct deal *d)
{
	struct mds_memory m;

	return d->shuffle ? lay_out(d, &m, NULL) : 0;
}

static void shuffle_spans(struct rng_pcg64 *r, struct shard_part *x, uint64_t n)
{
	for (uint64_t i = n; i-- > 1;) {
		uint64_t j = rng_pcg64_masked(r, i);
		struct shard_part was = x[i];

		x[i] = x[j];
		x[j] = was;
	}
}

/* Cuts the shards at the borders of canonical nodes. */
static void divide_spans(const struct deal *d, struct mds_memory *m)
{
	uint64_t n = shards_of(d), at = 0, out = 0, done = 0;

	memcpy(m->old, m->span, n * sizeof(*m->old));
	for (uint64_t part = 0; part < d->canonical; part++) {
		uint64_t end = border(d, part + 1);

		m->first[part] = out;
		for (; at < n; at++) {
			struct shard_part *s = &m->old[at];
			uint64_t room = end - done;

			if (s->end - s->begin > room) {
				if (room > 0) {
					m->span[out++] =
						(struct shard_part){s->begin, s->begin + room};
					s->begin += room;
					done += room;
				}
				break;
			}
			m->span[out++] = *s;
			done += s->end - s->begin;
		}
	}
	m->first[d->canonical] = out;
}

/* Draws the place of each of a canonical node's n samples, which lie at m->id[from...], span by
 * span: in [0, n), by chance within a block around its span. They are counted by windows, or else
 * put into them, and the beginnings of windows become their ends. */
static void draw_places(const struct deal *d, struct mds_memory *m, struct rng_pcg64 *r,
			uint64_t part, uint64_t from, uint64_t n, bool count)
{
	int64_t low = (int64_t)(0.75 * (double)d->block), high = (int64_t)(1.25 * (double)d->block);
	uint64_t at = 0;

	for (uint64_t i = m->first[part]; i < m->first[part + 1]; i++) {
		uint64_t size = m->span[i].end - m->span[i].begin;
		uint64_t drawn = rng_pcg64_interval(r, high > low ? (uint64_t)(high - low) - 1 : 0);
		double cutoff = ((double)low + (double)drawn - (double)size) / 2, least, most;

		cutoff = cutoff < 0 ? 0 : cutoff;
		least = -cutoff > -(double)at ? -cutoff : -(double)at;
		most = cutoff < (double)(n - at - size) ? cutoff : (double)(n - at - size);
		for (uint64_t k = 0; k < size; k++, at++) {
			double place = (double)at + (least + (most - least) * rng_pcg64_double(r));
			uint64_t *begin = &m->window[(uint64_t)place / WINDOW], to;

			if (count) {
				begin[1]++;
				continue;
			}
			to = (*begin)++;
			m->place[to] = place;
			set_number(&m->placed, to, number_at(&m->id, from + at));
		}
	}
}

static void swap_places(struct mds_memory *m, uint64_t i, uint64_t j)
{
	double was = m->place[i];

	m->place[i] = m->place[j];
	m->place[j] = was;
	swap_numbers(&m->placed, i, j);
}

static uint32_t within(const struct mds_memory *m, uint64_t i)
{
	return (uint64_t)m->place[i] % WINDOW;
}

/* Sorts the places [begin, end), all of one window: each goes to the others with its whole part,
 * and among those to its own place. There are a few of them as a rule. */
static void sort_window(struct mds_memory *m, uint64_t begin, uint64_t end)
{
	uint32_t sum = 0;

	memset(m->stop, 0, WINDOW * sizeof(*m->stop));
	for (uint64_t i = begin; i < end; i++)
		m->stop[within(m, i)]++;
	for (uint32_t k = 0; k < WINDOW; k++) {
		m->next[k] = sum;
		sum += m->stop[k];
		m->stop[k] = sum;
	}
	for (uint32_t k = 0; k < WINDOW; k++)
		while (m->next[k] < m->stop[k]) {
			uint64_t i = begin + m->next[k];
			uint32_t to = within(m, i);

			if (to != k)
				swap_places(m, i, begin + m->next[to]);
			m->next[to]++;
		}
	for (uint64_t i = begin + 1; i < end; i++) {
		double place = m->place[i];
		uint64_t sample = number_at(&m->placed, i), at = i;

		for (; at > begin &&
		       (place < m->place[at - 1] ||
			(place == m->place[at - 1] && sample < number_at(&m->placed, at - 1)));
		     at--) {
			m->place[at] = m->place[at - 1];
			set_number(&m->placed, at, number_at(&m->placed, at - 1));
		}
		m->place[at] = place;
		set_number(&m->placed, at, sample);
	}
}

/* py1e of one canonical node: its samples in the order of their places. They lie about as densely
 * everywhere. To compare 10^7 of them with each other takes seconds, and so does memory that is
 * used in an order of chance: so they come into windows first. */
static void spread(const struct deal *d, struct mds_memory *m, struct rng_pcg64 *r, uint64_t part,
		   uint64_t from)
{
	struct rng_pcg64 again = *r;
	uint64_t n = 0, windows, begin = 0;

	for (uint64_t i = m->first[part]; i < m->first[part + 1]; i++)
		n += m->span[i].end - m->span[i].begin;
	/* a place that was rounded up may be n itself */
	windows = n / WINDOW + 1;
	memset(m->window, 0, (windows + 1) * sizeof(*m->window));
	draw_places(d, m, &again, part, from, n, true);
	for (uint64_t i = 1; i <= windows; i++)
		m->window[i] += m->window[i - 1];
	draw_places(d, m, r, part, from, n, false);
	for (uint64_t i = 0; i < windows; begin = m->window[i++])
		sort_window(m, begin, m->window[i]);
	for (uint64_t i = 0; i < n; i++)
		set_number(&m->id, from + i, number_at(&m->placed, i));
}

/* The samples of a span, shuffled, at `at`. */
static void put_span(struct rng_pcg64 *r, const struct shard_part *s, struct numbers *x,
		     uint64_t at)
{
	for (uint64_t i = s->begin; i < s->end; i++)
		set_number(x, at + i - s->begin, i);
	shuffle_numbers(r, x, at, s->end - s->begin);
}

/* py1br of one canonical node, whose samples lie at m->id[from...to): shuffled block by block, of
 * sizes drawn before. The first block is shorter by `stagger`; later ones overlap by as much. */
static void shuffle_blocks(const struct deal *d, struct mds_memory *m, struct rng_pcg64 *r,
			   uint64_t from, uint64_t to, uint64_t stagger)
{
	uint64_t low = (uint64_t)(0.75 * (double)d->block), n = 0, end = from;
	uint64_t high = (uint64_t)(1.25 * (double)d->block);

	while (end < to) {
		uint64_t size = low + rng_pcg64_interval(r, high > low ? high - low - 1 : 0);
		uint64_t begin = end >= from + stagger ? end - stagger : from, stop;

		size = size > stagger ? size : stagger + 1;
		stop = to - end + stagger > size ? end + size - stagger : to;
		/* as many as there are samples at most: each makes way */
		m->place[n] = (double)begin;
		set_number(&m->placed, n++, stop);
		end += stop - begin;
	}
	for (uint64_t i = 0; i < n; i++) {
		uint64_t begin = (uint64_t)m->place[i];

		shuffle_numbers(r, &m->id, begin, number_at(&m->placed, i) - begin);
	}
}

static void shuffle_py1br(const struct deal *d, struct mds_memory *m, struct rng_pcg64 *r)
{
	uint64_t least = (uint64_t)(0.75 * (double)d->block), at = 0;
	uint64_t *stagger = m->staggers;

	for (uint64_t c = 0; c < d->canonical; c++)
		stagger[c] = rng_pcg64_interval(r, least ? least - 1 : 0);
	for (uint64_t c = 0; c < d->canonical; c++) {
		uint64_t from = at;

		for (uint64_t i = m->first[c]; i < m->first[c + 1]; i++)
			for (uint64_t s = m->span[i].begin; s < m->span[i].end; s++)
				set_number(&m->id, at++, s);
		shuffle_blocks(d, m, r, from, at, stagger[c]);
	}
}

/* py2s: samples of shards are shuffled once for the run, before shards are cut, and each epoch
 * again in the parts. Spans are places in that first list. */
static void shuffle_py2s(const struct deal *d, struct mds_memory *m, struct rng_pcg64 *run,
			 struct rng_pcg64 *epoch)
{
	uint64_t at = 0;

	for (uint64_t i = 0; i < shards_of(d); i++) {
		struct shard_part *s = &m->span[i];
		uint64_t n = s->end - s->begin;

		put_span(run, s, &m->run, at);
		*s = (struct shard_part){at, at + n};
		at += n;
	}
	divide_spans(d, m);
	at = 0;
	for (uint64_t c = 0; c < d->canonical; c++) {
		shuffle_spans(epoch, m->span + m->first[c], m->first[c + 1] - m->first[c]);
		for (uint64_t i = m->first[c]; i < m->first[c + 1]; i++) {
			uint64_t n = m->span[i].end - m->span[i].begin;

			for (uint64_t k = 0; k < n; k++)
				set_number(&m->id, at + k,
					   number_at(&m->run, m->span[i].begin + k));
			shuffle_numbers(epoch, &m->id, at, n);
			at += n;
		}
	}
}

static void mds_shuffle(const struct deal *d, struct mds_memory *m)
{
	struct rng_pcg64 run, epoch;
	uint64_t at = 0;

	rng_pcg64_seed(&epoch, d->seed + d->epoch);
	if (d->algorithm == SHUFFLE_NAIVE) {
		for (uint64_t i = 0; i < d->samples; i++)
			set_number(&m->id, i, i);
		shuffle_numbers(&epoch, &m->id, 0, d->samples);
		return;
	}
	for (uint64_t i = 0; i < shards_of(d); i++)
		m->span[i] =
			(struct shard_part){i * d->samples_per_file, (i + 1) * d->samples_per_file};
	rng_pcg64_seed(&run, d->seed);
	shuffle_spans(&run, m->span, shards_of(d));
	if (d->algorithm == SHUFFLE_PY2S) {
		shuffle_py2s(d, m, &run, &epoch);
		return;
	}
	divide_spans(d, m);
	for (uint64_t c = 0; c < d->canonical; c++)
		shuffle_spans(&epoch, m->span + m->first[c], m->first[c + 1] - m->first[c]);
	if (d->algorithm == SHUFFLE_PY1BR) {
		shuffle_py1br(d, m, &epoch);
		return;
	}
	for (uint64_t c = 0; c < d->canonical; c++) {
		uint64_t from = at;

		for (uint64_t i = m->first[c]; i < m->first[c + 1]; i++) {
			put_span(&epoch, &m->span[i], &m->id, at);
			at += m->span[i].end - m->span[i].begin;
		}
		if (d->algorithm == SHUFFLE_PY1E)
			spread(d, m, &epoch, c, from);
	}
}

static void mds_fill(const struct deal *d, struct order_list *l, void *memory)
{
	struct mds_memory m = {0};
	struct rows r;

	if (!rows_of(d, &r))
		return;
	if (d->shuffle) {
		lay_out(d, &m, memory);
		mds_shuffle(d, &m);
	}
	for (uint32_t rank = 0; rank < d->ranks; rank++) {
		struct takes t = takes_of(d, &r, rank);

		for (uint64_t i = rank, k = 0; i < l->n; i += d->ranks, k++) {
			uint64_t number = mds_at(d, &r, &t, k);

			set_entry(l, i, d->shuffle ? number_at(&m.id, number) : number);
		}
	}
}

/* ---- LitData ---- */

/* Samples that worker w of a rank goes through. With more than one rank the library leaves out what
 * makes no whole batches (drop_last). */
static uint64_t budget(const struct deal *d, uint32_t worker)
{
	uint64_t batches = d->samples / d->batch / d->ranks;
	uint64_t rest = batches % d->workers;
	uint64_t n = (batches / d->workers + (worker < rest)) * d->batch;

	if (d->ranks == 1 && worker == rest)
		n += d->samples - batches * d->batch;
	return n;
}

/* Numbers of the chunks, and of the samples in a part of one. */
static uint64_t litdata_memory_bytes(const struct deal *d)
{
	return u64_product(sizeof(uint64_t), u64_sum(shards_of(d), d->samples_per_file));
}

static void seed_of(struct rng_np *r, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint32_t n)
{
	const uint32_t word[4] = {(uint32_t)a, (uint32_t)b, (uint32_t)c, (uint32_t)d};

	rng_np_seed_words(r, word, n);
}

/* What a worker delivers beyond the whole steps of its rank comes last. */
static void litdata_put(const struct deal *d, struct order_list *l, uint32_t rank, uint32_t worker,
			uint64_t i, uint64_t sample, uint64_t *rest)
{
	uint64_t batch = i / d->batch * d->workers + worker;

	if (batch < deal_steps(d))
		set_entry(l, (batch * d->batch + i % d->batch) * d->ranks + rank, sample);
	else
		set_entry(l, (*rest)++, sample);
}

static void litdata_fill(const struct deal *d, struct order_list *l, void *memory)
{
	uint64_t *chunk = memory, *part = chunk + shards_of(d), per = d->samples_per_file;
	uint64_t at = 0, rest = deal_steps(d) * d->batch * d->ranks; /* at: of all chunks in turn */
	struct rng_np r;

	if (d->batch == 0 || d->ranks == 0 || l->n == 0)
		return;
	for (uint64_t i = 0; i < shards_of(d); i++)
		chunk[i] = i;
	if (d->shuffle) {
		seed_of(&r, d->seed, d->epoch, 0, 0, 2);
		rng_np_shuffle_u64(&r, chunk, shards_of(d));
	}
	for (uint64_t g = 0; g < (uint64_t)d->ranks * d->workers; g++) {
		uint32_t worker = (uint32_t)(g % d->workers);
		uint64_t left = budget(d, worker), done = 0, number = 0;
		uint64_t parts = left ? (at + left - 1) / per - at / per + 1 : 0;

		for (; left > 0; number++) {
			uint64_t in = at % per, n = per - in < left ? per - in : left;

			for (uint64_t i = 0; i < n; i++)
				part[i] = chunk[at / per] * per + in + i;
			if (d->shuffle) {
				seed_of(&r, d->seed, parts, d->epoch, number, 4);
				rng_np_shuffle_u64(&r, part, n);
			}
			for (uint64_t i = 0; i < n; i++)
				litdata_put(d, l, (uint32_t)(g / d->workers), worker, done++,
					    part[i], &rest);
			at += n;
			left -= n;
		}
	}
	for (; at < d->samples; at++)
		set_entry(l, rest++, chunk[at / per] * per + at % per);
}

/* ---- both ---- */

uint64_t deal_entries(const struct deal *d)
{
	struct rows r;

	if (d->of == DEAL_LITDATA)
		return d->samples;
	if (!rows_of(d, &r))
		return 0;
	return ceil_div(r.per_node, d->ranks / d->nodes) * d->ranks;
}

uint64_t deal_steps(const struct deal *d)
{
	if (d->batch == 0 || d->ranks == 0)
		return 0;
	if (d->of == DEAL_LITDATA)
		return d->samples / d->batch / d->ranks;
	return deal_entries(d) / d->ranks / d->batch;
}

uint64_t deal_memory(const struct deal *d)
{
	return d->of == DEAL_LITDATA ? litdata_memory_bytes(d) : mds_memory_bytes(d);
}

void deal_fill(const struct deal *d, struct order_list *l, void *memory)
{
	(d->of == DEAL_LITDATA ? litdata_fill : mds_fill)(d, l, memory);
}
