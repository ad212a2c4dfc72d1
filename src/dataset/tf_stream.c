/* The order of tf.data's pipelines as arithmetic. */
#include "dataset/tf_stream.h"

#include <assert.h>

#define NOBODY UINT32_MAX

static bool shard_files(const struct stream_rules *r)
{
	return r->files >= r->ranks;
}

/* Numbers congruent to `rank` below n. */
static uint64_t share(uint64_t n, uint32_t ranks, uint32_t rank)
{
	return n / ranks + (n % ranks > rank);
}

static uint64_t files_of_rank(const struct stream_rules *r, uint32_t rank)
{
	return shard_files(r) ? share(r->files, r->ranks, rank) : r->files;
}

/* The i-th file of a rank. */
static uint64_t file_of_rank(const struct stream_rules *r, uint32_t rank, uint64_t i)
{
	uint64_t at = shard_files(r) ? i * r->ranks + rank : i;

	return r->shuffle_files ? perm_at(&r->perm, at) : at;
}

static uint64_t records_read(const struct stream_rules *r, uint32_t rank)
{
	return files_of_rank(r, rank) * r->samples_per_file;
}

uint64_t stream_records(const struct stream_rules *r, uint32_t rank)
{
	uint64_t read = records_read(r, rank);

	return shard_files(r) ? read : share(read, r->ranks, rank);
}

uint64_t stream_records_least(const struct stream_rules *r)
{
	return stream_records(r, r->ranks - 1);
}

/* Readers of files. */
static uint32_t workers_of(const struct stream_rules *r)
{
	return r->cycle ? r->cycle + r->ahead : 1;
}

static uint32_t places_of(const struct stream_rules *r)
{
	return r->cycle ? r->cycle : 1;
}

size_t stream_cycle_bytes(const struct stream_rules *r)
{
	size_t workers = workers_of(r), places = places_of(r);

	/* 8-byte parts first; the line holds every worker at most */
	return workers * sizeof(struct stream_worker) +
	       (workers + places + 1) / 2 * 2 * sizeof(uint32_t);
}

/* Gives the next file to a worker; false when there is none. */
static bool give_file(struct stream_cycle *c, uint32_t w)
{
	if (c->given == c->files)
		return false;
	c->worker[w].file = file_of_rank(c->rules, c->rank, c->given++);
	c->worker[w].next = 0;
	c->worker[w].left = c->rules->samples_per_file;
	if (c->assign)
		c->assign(c->arg, w, c->worker[w].file);
	return true;
}

static void line_up(struct stream_cycle *c, uint32_t w)
{
	c->line[(c->line_first + c->line_length++) % c->line_room] = w;
}

static uint32_t line_next(struct stream_cycle *c)
{
	uint32_t w = c->line[c->line_first];

	c->line_first = (c->line_first + 1) % c->line_room;
	c->line_length--;
	return w;
}

void stream_cycle_begin(struct stream_cycle *c, const struct stream_rules *r, uint32_t rank,
			void *memory, void (*assign)(void *arg, uint32_t worker, uint64_t file),
			void *arg)
{
	uint32_t workers = workers_of(r), places = places_of(r);

	*c = (struct stream_cycle){.rules = r, .rank = rank, .assign = assign, .arg = arg};
	c->files = files_of_rank(r, rank);
	c->worker = memory;
	c->place = (uint32_t *)(void *)(c->worker + workers);
	c->line = c->place + places;
	c->line_room = workers;
	for (uint32_t w = 0; w < workers && give_file(c, w); w++) {
		if (w < places)
			c->place[c->places++] = w;
		else
			line_up(c, w);
	}
}

static void pass_turn(struct stream_cycle *c, uint32_t place)
{
	c->turn = (place + 1) % c->places;
	c->in_block = 0;
}

/* The worker at a place has no record left. true when another has taken the place. */
static bool replace_worker(struct stream_cycle *c, uint32_t place)
{
	uint32_t w = c->place[place];

	c->place[place] = NOBODY;
	if (give_file(c, w))
		line_up(c, w);
	if (c->line_length == 0)
		return false;
	c->place[place] = line_next(c);
	pass_turn(c, place);
	return true;
}

bool stream_cycle_next(struct stream_cycle *c, uint32_t *worker, uint64_t *sample)
{
	uint32_t looked = 0;

	/* counted from the turn; a replacement moves the turn, and all are looked at again */
	while (looked < c->places) {
		uint32_t place = (c->turn + looked) % c->places, w = c->place[place];

		if (w == NOBODY) {
			looked++;
		} else if (c->worker[w].left > 0) {
			*worker = w;
			*sample = c->worker[w].file * c->rules->samples_per_file +
				  c->worker[w].next++;
			c->worker[w].left--;
			c->in_block = looked ? 1 : c->in_block + 1;
			c->turn = place;
			if (c->in_block >= c->rules->block)
				pass_turn(c, place);
			return true;
		} else {
			looked = replace_worker(c, place) ? 0 : looked + 1;
		}
	}
	return false;
}

uint64_t stream_shuffle_places(const struct stream_rules *r, uint32_t rank)
{
	uint64_t records = records_read(r, rank);

	return r->shuffle < records ? r->shuffle : records;
}

void stream_shuffle_begin(struct stream_shuffle *s, const struct stream_rules *r, uint32_t rank)
{
	*s = (struct stream_shuffle){.places = stream_shuffle_places(r, rank)};
	philox_init(&s->random, r->seed_low, r->seed_high);
}

uint64_t stream_shuffle_put(struct stream_shuffle *s)
{
	assert(s->end - s->begin < s->places);
	return s->end++ % s->places;
}

bool stream_shuffle_take(struct stream_shuffle *s, uint64_t *pick, uint64_t *front)
{
	if (s->begin == s->end)
		return false;
	*pick = (s->begin + philox_next(&s->random) % (s->end - s->begin)) % s->places;
	*front = s->begin++ % s->places;
	return true;
}

void stream_begin(struct stream *s, const struct stream_rules *r, uint32_t rank, void *memory)
{
	char *at = memory;

	*s = (struct stream){.by_record = !shard_files(r)};
	stream_cycle_begin(&s->cycle, r, rank, at, NULL, NULL);
	stream_shuffle_begin(&s->shuffle, r, rank);
	s->buffer = (uint64_t *)(void *)(at + stream_cycle_bytes(r));
}

static bool shuffled_next(struct stream *s, uint64_t *sample)
{
	uint64_t pick, front;
	uint32_t worker;

	if (s->shuffle.places == 0)
		return stream_cycle_next(&s->cycle, &worker, sample);
	while (!stream_shuffle_full(&s->shuffle) && stream_cycle_next(&s->cycle, &worker, sample))
		s->buffer[stream_shuffle_put(&s->shuffle)] = *sample;
	if (!stream_shuffle_take(&s->shuffle, &pick, &front))
		return false;
	*sample = s->buffer[pick];
	s->buffer[pick] = s->buffer[front];
	return true;
}

bool stream_next(struct stream *s, uint64_t *sample)
{
	uint32_t ranks = s->cycle.rules->ranks;

	while (shuffled_next(s, sample))
		if (!s->by_record || s->left++ % ranks == s->cycle.rank)
			return true;
	return false;
}
