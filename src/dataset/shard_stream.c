/* WebDataset's order as arithmetic. */
#include "dataset/shard_stream.h"

#include <assert.h>

static uint32_t workers_of(const struct shard_rules *r)
{
	return r->workers ? r->workers : 1;
}

/* Numbers congruent to `which` below n. */
static uint64_t share(uint64_t n, uint32_t parts, uint32_t which)
{
	return n / parts + (n % parts > which);
}

static uint64_t files_of(const struct shard_rules *r, uint32_t rank, uint32_t worker)
{
	return share(share(r->files, r->ranks, rank), workers_of(r), worker);
}

/* The i-th shard of a worker: every `workers`-th of every `ranks`-th. */
static uint64_t file_at(const struct shard_rules *r, uint32_t rank, uint32_t worker, uint64_t i)
{
	return (i * workers_of(r) + worker) * r->ranks + rank;
}

static uint64_t file_of(const struct shard_stream *s, uint64_t i)
{
	return file_at(s->rules, s->rank, s->worker, i);
}

static uint64_t samples_of(const struct shard_rules *r, uint64_t file)
{
	return samples_in_file(r->counts, file, r->samples_per_file);
}

uint64_t shard_batches(const struct shard_rules *r, uint32_t rank, uint32_t worker)
{
	uint64_t files = files_of(r, rank, worker), samples = 0;

	if (!r->counts)
		return files * r->samples_per_file / r->batch;
	for (uint64_t i = 0; i < files; i++)
		samples += samples_of(r, file_at(r, rank, worker, i));
	return samples / r->batch;
}

uint64_t shard_steps(const struct shard_rules *r, uint32_t rank)
{
	uint64_t steps = 0;

	for (uint32_t w = 0; w < workers_of(r); w++)
		steps += shard_batches(r, rank, w);
	return steps;
}

uint64_t shard_steps_least(const struct shard_rules *r)
{
	uint64_t least = shard_steps(r, r->ranks - 1);

	for (uint32_t rank = 0; r->counts && rank + 1 < r->ranks; rank++) {
		uint64_t steps = shard_steps(r, rank);

		least = steps < least ? steps : least;
	}
	return least;
}

/* ---- the buffer ---- */

static uint64_t places(uint64_t size, uint64_t most)
{
	return size < 1 || most < 1 ? 1 : size < most ? size : most;
}

/* One that is larger than all that comes never fills: only its first places count. */
static void buffer_begin(struct shard_buffer *b, uint64_t *item, uint64_t size, uint64_t initial,
			 uint64_t seed)
{
	b->item = item;
	b->have = b->came = 0;
	b->size = size < 1 ? 1 : size;
	b->initial = initial < b->size ? initial : b->size;
	b->ended = false;
	rng_py_seed(&b->random, seed);
}

static bool buffer_wants(struct shard_buffer *b)
{
	while (!b->ended) {
		if (b->came == 0 || (b->came == 1 && b->have < b->size))
			return true;
		if (b->have >= b->initial)
			return false;
		b->came = 0;
	}
	return false;
}

static void buffer_add(struct shard_buffer *b, uint64_t item)
{
	b->item[b->have++] = item;
	b->came++;
}

/* There is no further one. It is noticed only by the first of the two that are asked for. */
static void buffer_dry(struct shard_buffer *b)
{
	if (b->came == 0)
		b->ended = true;
	b->came = 2;
}

static bool buffer_take(struct shard_buffer *b, uint64_t *item)
{
	uint64_t at;

	if (b->have == 0)
		return false;
	at = rng_py_below(&b->random, (uint32_t)b->have);
	*item = b->item[at];
	b->item[at] = b->item[--b->have];
	b->came = 0;
	return true;
}

/* ---- a worker ---- */

static uint64_t shard_places(const struct shard_rules *r)
{
	return places(r->file_buffer, files_of(r, 0, 0));
}

static uint64_t sample_places(const struct shard_rules *r)
{
	return places(r->buffer, files_of(r, 0, 0) * r->samples_per_file);
}

size_t shard_stream_bytes(const struct shard_rules *r)
{
	return (size_t)(shard_places(r) + sample_places(r)) * sizeof(uint64_t);
}

void shard_stream_begin(struct shard_stream *s, const struct shard_rules *r, uint32_t rank,
			uint32_t worker, void *memory)
{
	uint64_t *item = memory;

	s->rules = r;
	s->rank = rank;
	s->worker = worker;
	s->files = files_of(r, rank, worker);
	s->dealt = 0;
	s->open = false;
	buffer_begin(&s->shards, item, r->file_buffer, SHARD_INITIAL, r->seed);
	buffer_begin(&s->samples, item + shard_places(r), r->buffer, r->initial, r->seed);
}

static bool next_file(struct shard_stream *s)
{
	while (buffer_wants(&s->shards)) {
		if (s->dealt < s->files)
			buffer_add(&s->shards, file_of(s, s->dealt++));
		else
			buffer_dry(&s->shards);
	}
	s->in_file = 0;
	s->open = buffer_take(&s->shards, &s->file);
	return s->open;
}

bool shard_stream_wants(struct shard_stream *s, uint64_t *sample)
{
	while (buffer_wants(&s->samples)) {
		if (s->open && s->in_file < samples_of(s->rules, s->file)) {
			*sample = s->file * s->rules->samples_per_file + s->in_file;
			return true;
		}
		/* one without samples is passed over */
		if (next_file(s))
			continue;
		buffer_dry(&s->samples);
	}
	return false;
}

void shard_stream_add(struct shard_stream *s, uint64_t sample)
{
	assert(s->open && sample == s->file * s->rules->samples_per_file + s->in_file);
	s->in_file++;
	buffer_add(&s->samples, sample);
}

bool shard_stream_take(struct shard_stream *s, uint64_t *sample)
{
	return buffer_take(&s->samples, sample);
}

bool shard_stream_next_file(struct shard_stream *s, uint64_t *file)
{
	bool found = next_file(s);

	*file = s->file;
	return found;
}
