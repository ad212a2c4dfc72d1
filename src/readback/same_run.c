/* Copies of results: by their numbers, their times, and the times of their steps. Each of these is
 * a key: two results are of one run when they have a key in common. */
#include "readback/same_run.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"

#define KEYS 3

/* The keys of a result among those of the same `group`; *n of them, on the heap. */
static size_t keys_of(const struct run_record *r, size_t group, char *key[KEYS])
{
	const struct record_facts *f = &r->facts;
	size_t n = 0;

	if (f->run_id && f->run_id[0])
		key[n++] = xasprintf("%zu id %s", group, f->run_id);
	if (isfinite(r->begin_s) && isfinite(r->end_s) && r->end_s > r->begin_s)
		key[n++] = xasprintf("%zu times %a %a %u %s", group, r->begin_s, r->end_s, r->ranks,
				     r->hostname);
	if (f->waits[0])
		key[n++] = xasprintf("%zu waits %u %s", group, r->ranks, f->waits);
	return n;
}

bool runs_have(const struct texts *seen, const struct run_record *r, size_t group)
{
	char *key[KEYS];
	size_t n = keys_of(r, group, key);
	bool has = false;

	for (size_t i = 0; i < n; i++) {
		has = has || texts_find(seen, key[i]) != TEXT_NONE;
		free(key[i]);
	}
	return has;
}

void runs_add(struct texts *seen, const struct run_record *r, size_t group)
{
	char *key[KEYS];
	size_t n = keys_of(r, group, key);

	for (size_t i = 0; i < n; i++) {
		texts_add(seen, key[i]);
		free(key[i]);
	}
}

size_t *records_distinct(const struct run_record *r, size_t n, size_t *count)
{
	size_t *index = xcalloc(n + 1, sizeof(*index));
	struct texts seen = {0};

	*count = 0;
	for (size_t i = 0; i < n; i++) {
		if (runs_have(&seen, &r[i], 0))
			continue;
		runs_add(&seen, &r[i], 0);
		index[(*count)++] = i;
	}
	texts_release(&seen);
	return index;
}
