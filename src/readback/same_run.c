/* Copies of results: by their numbers, their times, and the times of their steps. */
#include "readback/same_run.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

/* Waits that are not 0 from which on equal lists are no chance: they are written in microseconds or
 * finer. */
#define WAITS_ENOUGH 6u

static const char *run_id(const struct run_record *r)
{
	const char *id = json_string_value(json_object_get(r->result, "run_id"));

	return id && id[0] ? id : NULL;
}

/* Adds the waits that are neither 0 nor a repetition of the one before; false at the first that
 * differs. */
static bool same_waits(const struct record_phase *a, const struct record_phase *b, size_t *telling)
{
	if (a->loads != b->loads)
		return false;
	for (size_t i = 0; i < a->loads; i++) {
		if (a->load[i] != b->load[i])
			return false;
		*telling += a->load[i] != 0 && (i == 0 || a->load[i] != a->load[i - 1]);
	}
	return true;
}

static bool same_steps(const struct run_record *a, const struct run_record *b)
{
	size_t telling = 0;

	if (a->ranks != b->ranks)
		return false;
	for (uint32_t k = 0; k < a->ranks; k++) {
		const struct record_rank *x = &a->rank[k], *y = &b->rank[k];

		if (x->epochs != y->epochs)
			return false;
		for (size_t e = 0; e < x->epochs; e++) {
			if (x->epoch[e].blocks != y->epoch[e].blocks)
				return false;
			for (size_t i = 0; i < x->epoch[e].blocks; i++)
				if (!same_waits(&x->epoch[e].block[i], &y->epoch[e].block[i],
						&telling))
					return false;
		}
	}
	return telling >= WAITS_ENOUGH;
}

static bool same_times(const struct run_record *a, const struct run_record *b)
{
	return isfinite(a->begin_s) && isfinite(a->end_s) && a->end_s > a->begin_s &&
	       a->begin_s == b->begin_s && a->end_s == b->end_s && a->ranks == b->ranks &&
	       strcmp(a->hostname, b->hostname) == 0;
}

bool record_same_run(const struct run_record *a, const struct run_record *b)
{
	const char *x = run_id(a), *y = run_id(b);

	return (x && y && strcmp(x, y) == 0) || same_times(a, b) || same_steps(a, b);
}

size_t *records_distinct(const struct run_record *r, size_t n, size_t *count)
{
	size_t *index = xcalloc(n + 1, sizeof(*index));

	*count = 0;
	for (size_t i = 0; i < n; i++) {
		size_t k = 0;

		while (k < *count && !record_same_run(&r[index[k]], &r[i]))
			k++;
		if (k == *count)
			index[(*count)++] = i;
	}
	return index;
}
