/* Windows of time over reads. */
#include "metric/read_log.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/map.h"

#define FIRST_WINDOWS 16 /* that a log is divided into when it is full for the first time */
#define JOINED_MAX 8192
#define MIX UINT64_C(0x9e3779b97f4a7c15)

int64_t read_log_window(uint64_t apart, uint64_t wide, int64_t ns)
{
	assert((apart & (apart - 1)) == 0 && wide <= apart);
	if (apart == 0)
		return 0;
	return ((uint64_t)ns & (apart - 1)) < wide ? (int64_t)((uint64_t)ns / apart) : -1;
}

bool read_log_touches(uint64_t apart, uint64_t wide, const struct read_seen *seen)
{
	uint64_t from = (uint64_t)seen->begin_ns & (apart - 1);

	return apart == 0 || from < wide ||
	       (uint64_t)(seen->end_ns - seen->begin_ns) + from >= apart;
}

uint32_t read_name(const char *path)
{
	const char *file = strrchr(path, '/');
	size_t n = file ? (size_t)(file - path) : 0;
	uint64_t folder = fnv1a(FNV_START, path, n), all = fnv1a_text(folder, path + n);
	uint32_t name;

	/* names that differ in a digit have hashes that differ in few bits */
	name = (uint32_t)(folder * MIX >> 32) & ~(UINT32_MAX >> READ_NAME_FOLDER_BITS);
	name |= (uint32_t)(all * MIX >> 32) >> READ_NAME_FOLDER_BITS;
	return name ? name : 1;
}

static void drop_outside(struct read_log *l)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < l->n; i++)
		if (read_log_touches(l->apart, l->wide, &l->seen[i]))
			l->seen[kept++] = l->seen[i];
	l->n = kept;
}

static uint64_t power_below(uint64_t v)
{
	return v < 2 ? 1 : UINT64_C(1) << (63 - __builtin_clzll(v));
}

/* From the first beginning to the last end. */
static int64_t reads_span_ns(const struct read_seen *seen, size_t n)
{
	int64_t first = INT64_MAX, last = INT64_MIN;

	for (size_t i = 0; i < n; i++) {
		first = seen[i].begin_ns < first ? seen[i].begin_ns : first;
		last = seen[i].end_ns > last ? seen[i].end_ns : last;
	}
	return n ? last - first : 0;
}

/* Fewer windows while there are several, else shorter ones. */
static void narrow_windows(uint64_t *apart, uint64_t *wide, const struct read_seen *seen, size_t n)
{
	uint64_t all = (uint64_t)reads_span_ns(seen, n);

	if (*apart > UINT64_MAX / 16) {
		*wide = 0; /* no window */
	} else if (*apart == 0) {
		*wide = power_below(all / FIRST_WINDOWS);
		*apart = 2 * *wide;
	} else if (all / *apart >= 4 || *wide == 1) {
		*apart *= 2;
	} else {
		*wide /= 2;
	}
}

void read_log_add(struct read_log *l, int64_t begin_ns, int64_t end_ns, uint64_t bytes,
		  uint32_t place, uint32_t name)
{
	/* one that ended before it began, by two threads' clocks, would touch every window */
	const struct read_seen seen = {begin_ns, end_ns > begin_ns ? end_ns : begin_ns, bytes,
				       place, name};

	if (!read_log_touches(l->apart, l->wide, &seen))
		return;
	while (l->n == READ_LOG_KEPT) {
		narrow_windows(&l->apart, &l->wide, l->seen, l->n);
		drop_outside(l);
	}
	if (read_log_touches(l->apart, l->wide, &seen))
		l->seen[l->n++] = seen;
}

static void common_windows(uint64_t *apart, uint64_t *wide, const struct read_log *l)
{
	if (l->apart == 0)
		return;
	*wide = *apart == 0 || l->wide < *wide ? l->wide : *wide;
	*apart = l->apart > *apart ? l->apart : *apart;
}

void read_log_merge(struct read_log *into, const struct read_log *from)
{
	uint32_t more;

	if (from->n == 0)
		return;
	common_windows(&into->apart, &into->wide, from);
	drop_outside(into);
	for (;;) {
		more = 0;
		for (uint32_t i = 0; i < from->n; i++)
			more += read_log_touches(into->apart, into->wide, &from->seen[i]);
		if (into->n + more <= READ_LOG_KEPT)
			break;
		narrow_windows(&into->apart, &into->wide, from->seen, from->n);
		drop_outside(into);
	}
	for (uint32_t i = 0; i < from->n; i++)
		if (read_log_touches(into->apart, into->wide, &from->seen[i]))
			into->seen[into->n++] = from->seen[i];
}

static int by_begin(const void *x, const void *y)
{
	const struct read_seen *a = x, *b = y;

	return (a->begin_ns > b->begin_ns) - (a->begin_ns < b->begin_ns);
}

static size_t keep_in_windows(struct read_seen *seen, size_t n, uint64_t apart, uint64_t wide)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (read_log_touches(apart, wide, &seen[i]))
			seen[kept++] = seen[i];
	return kept;
}

struct read_seen *read_log_join(const struct read_log *const *logs, size_t count, size_t *n,
				uint64_t *apart, uint64_t *wide)
{
	struct read_seen *all;
	size_t sum = 0;

	*n = 0;
	*apart = *wide = 0;
	for (size_t i = 0; i < count; i++) {
		common_windows(apart, wide, logs[i]);
		sum += logs[i]->n;
	}
	if (sum == 0)
		return NULL;
	all = xmalloc(sum * sizeof(*all));
	for (size_t i = 0; i < count; i++)
		for (uint32_t k = 0; k < logs[i]->n; k++)
			if (read_log_touches(*apart, *wide, &logs[i]->seen[k]))
				all[(*n)++] = logs[i]->seen[k];
	while (*n > JOINED_MAX) {
		narrow_windows(apart, wide, all, *n);
		*n = keep_in_windows(all, *n, *apart, *wide);
	}
	qsort(all, *n, sizeof(*all), by_begin);
	return all;
}
