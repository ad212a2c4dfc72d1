#pragma once
/* Whole objects read ahead of a worker, as DLIO's readers of objects do it with the client that the
 * store emulates (store_objects): a thread of its own asks for the objects of the worker's batches
 * of an epoch, in their order, and the worker takes samples as their objects come, or in order by
 * the chunk. Nothing is decoded: bodies are counted and forgotten, and no object is ever held.
 *
 * Consecutive samples of one file are one object. */
#include <stdbool.h>
#include <stdint.h>

#include "loader/loader.h"

struct ahead;

/* Whether files are read as whole objects (reader.access object). */
bool ahead_wanted(const struct loader_config *c);
/* What the emulated client would hold of objects in memory for one worker, at most: they are on
 * their way, wait for the worker, or are in its batch. */
uint64_t ahead_client_bytes(const struct loader_config *c, const struct store_objects *client);
/* Memory that create takes; 0 and `e` where the store has no client of objects. */
uint64_t ahead_bytes(const struct loader_config *c, struct err *e);
/* `io` counts and is copied. */
int ahead_create(struct ahead **out, const struct loader_config *c, const struct io *io,
		 struct err *e);
/* Ends the thread and what is in flight. Accepts NULL. */
void ahead_destroy(struct ahead *a);

/* Begins an epoch: the batches first, first + every, ... below `end`, whose samples are at
 * positions of `order`, which stays where it is. Ends the one before. */
int ahead_begin(struct ahead *a, const struct order *order, uint64_t first, uint64_t every,
		uint64_t end, const char *name, struct err *e);
/* Asks for no more, and waits for the thread to leave what is in flight. */
void ahead_end(struct ahead *a);

struct ahead_sample {
	uint64_t sample;
	bool first; /* of its object */
	int64_t begun_ns, done_ns;
	uint64_t object_bytes; /* that came, with the first one */
};

/* The next sample; 1, or 0 when none came within timeout_ns; negative when an object failed, or
 * there is none left. */
int ahead_take(struct ahead *a, struct ahead_sample *out, int64_t timeout_ns, struct err *e);
/* Any sample of the object that has been under way for longest; false: there is none. The worker's.
 */
bool ahead_oldest(struct ahead *a, uint64_t *sample, int64_t *since_ns);

/* One object by itself, without the thread and outside of an epoch. */
int ahead_read(struct ahead *a, uint64_t file, int64_t *begun_ns, struct err *e);
