#include "metric/io_stat.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

#define KIB 1024u
#define MIB (1024u * 1024u)

const char *const io_kind_names[IO_KINDS] = {"open", "metadata", "data", "write", "sync"};

const char *const io_class_names[IO_CLASSES] = {"to_4_kib", "to_64_kib", "to_1_mib", "above_1_mib"};

void io_stat_init(struct io_stat *s)
{
	/* of thousands of ranks and workers, most kinds of requests are never made */
	if (!bytes_are_zero(s, sizeof(*s)))
		memset(s, 0, sizeof(*s));
}

static enum io_class class_of(uint64_t asked)
{
	if (asked <= 4 * KIB)
		return IO_TO_4_KIB;
	if (asked <= 64 * KIB)
		return IO_TO_64_KIB;
	return asked <= MIB ? IO_TO_1_MIB : IO_ABOVE_1_MIB;
}

static int sized_of(enum io_kind kind)
{
	return kind >= IO_META && kind <= IO_WRITE ? (int)(kind - IO_META) : -1;
}

static void latency_add(struct io_latency *l, uint64_t ns)
{
	uint32_t *c = &l->count[hist_bucket_of(ns) / 2];

	if (*c != UINT32_MAX)
		(*c)++;
	l->total++;
	if (ns > l->max_ns)
		l->max_ns = ns;
}

static void latency_merge(struct io_latency *into, const struct io_latency *from)
{
	if (from->total == 0)
		return;
	for (size_t i = 0; i < IO_CLASS_BUCKETS; i++) {
		uint32_t room = UINT32_MAX - into->count[i];

		if (from->count[i] == 0)
			continue;
		into->count[i] += from->count[i] < room ? from->count[i] : room;
	}
	into->total += from->total;
	if (from->max_ns > into->max_ns)
		into->max_ns = from->max_ns;
}

const struct io_latency *io_stat_sized(const struct io_stat *s, enum io_kind kind,
				       enum io_class size)
{
	int sized = sized_of(kind);

	assert(kind < IO_KINDS && size < IO_CLASSES);
	return sized < 0 ? NULL : &s->sized[sized][size];
}

uint64_t io_latency_bucket_low(size_t bucket)
{
	return hist_bucket_low(2 * bucket);
}

uint64_t io_latency_quantile(const struct io_latency *l, double fraction)
{
	/* a little less, as in hist_quantile */
	double want = fraction * (double)l->total * (1.0 - 0x1p-50);
	uint64_t seen = 0;

	for (size_t i = 0; l->total > 0 && i + 1 < IO_CLASS_BUCKETS; i++) {
		seen += l->count[i];
		if (l->count[i] && (double)seen >= want) {
			uint64_t high = io_latency_bucket_low(i + 1) - 1;

			return high < l->max_ns ? high : l->max_ns;
		}
	}
	return l->max_ns;
}

void io_stat_add(struct io_stat *s, enum io_kind kind, int64_t took_ns, uint64_t asked,
		 int64_t returned)
{
	/* the clocks of two threads differ by a little */
	took_ns = took_ns < 0 ? 0 : took_ns;
	s->kind[kind].requests++;
	s->kind[kind].asked_bytes += asked;
	/* one writer: a plain load and store, that others may read */
	if (returned > 0)
		__atomic_store_n(&s->kind[kind].returned_bytes,
				 s->kind[kind].returned_bytes + (uint64_t)returned,
				 __ATOMIC_RELAXED);
	/* a worker looks at it while the thread that reads ahead of it counts */
	__atomic_store_n(&s->kind[kind].busy_ns, s->kind[kind].busy_ns + took_ns, __ATOMIC_RELAXED);
	hist_add(&s->kind[kind].latency_ns, (uint64_t)took_ns);
	if (asked > 0 && sized_of(kind) >= 0)
		latency_add(&s->sized[sized_of(kind)][class_of(asked)], (uint64_t)took_ns);
}

uint64_t io_stat_read_so_far(const struct io_stat *s)
{
	return __atomic_load_n(&s->kind[IO_META].returned_bytes, __ATOMIC_RELAXED) +
	       __atomic_load_n(&s->kind[IO_DATA].returned_bytes, __ATOMIC_RELAXED);
}

void io_stat_merge(struct io_stat *into, const struct io_stat *from)
{
	for (int k = 0; k < IO_KINDS; k++) {
		into->kind[k].requests += from->kind[k].requests;
		into->kind[k].asked_bytes += from->kind[k].asked_bytes;
		into->kind[k].returned_bytes += from->kind[k].returned_bytes;
		into->kind[k].busy_ns += from->kind[k].busy_ns;
		hist_merge(&into->kind[k].latency_ns, &from->kind[k].latency_ns);
	}
	read_log_merge(&into->reads, &from->reads);
	read_log_merge(&into->opens, &from->opens);
	for (int k = 0; k < IO_SIZED_KINDS; k++)
		for (int c = 0; c < IO_CLASSES; c++)
			latency_merge(&into->sized[k][c], &from->sized[k][c]);
}
