/* What the tf.data loader waits for, in words. Read by any thread while the loader runs. */
#include "loader/tensorflow.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/str.h"

/* Who has been busy longest: in a pipeline nobody behind it can go on without it for long. */
static const struct sample_reader *busiest(const struct tensorflow *l, uint32_t *idle)
{
	const struct sample_reader *oldest = NULL;
	uint32_t readers = l->threads ? l->threads : 1;
	int64_t since = INT64_MAX;

	*idle = 0;
	for (uint32_t i = 0; i < l->stats; i++) {
		const struct sample_reader *r =
			i < readers ? &l->reader[i].reader : &l->mapper[i - readers].reader;
		int64_t busy = sample_reader_busy_since(r);

		if (busy && busy < since) {
			since = busy;
			oldest = r;
		}
		*idle += i < readers && busy == 0;
	}
	return oldest;
}

void tensorflow_describe(const struct loader *base, char *out, size_t out_size)
{
	const struct tensorflow *l = tensorflow_of_const(base);
	uint64_t batch = atomic_load_explicit(&l->waiting, memory_order_acquire);
	int64_t waiting = atomic_load_explicit(&l->waiting_since, memory_order_relaxed);
	uint32_t stuck = atomic_load(&l->stuck), idle;
	const struct sample_reader *r = busiest(l, &idle);
	char state[160], who[DATASET_PATH_MAX + 128] = "no worker is busy", rest[64] = "", age[32];

	if (stuck)
		snprintf(state, sizeof(state), "gave up on %u hung thread%s", stuck,
			 stuck == 1 ? "" : "s");
	else if (batch > atomic_load(&l->last_step))
		snprintf(state, sizeof(state), "waits for the end of %s %llu for %s",
			 l->config.kind == DATASET_TRAIN ? "epoch" : "evaluation",
			 (unsigned long long)atomic_load(&l->epoch),
			 str_seconds((double)(clock_now_ns() - waiting) * 1e-9, age, sizeof(age)));
	else if (batch)
		snprintf(state, sizeof(state), "waits for batch %llu of %llu of %s %llu for %s",
			 (unsigned long long)batch, (unsigned long long)atomic_load(&l->last_step),
			 l->config.kind == DATASET_TRAIN ? "epoch" : "evaluation",
			 (unsigned long long)atomic_load(&l->epoch),
			 str_seconds((double)(clock_now_ns() - waiting) * 1e-9, age, sizeof(age)));
	else
		snprintf(state, sizeof(state), "does not wait for its loader");
	if (r)
		sample_reader_describe(r, who, sizeof(who));
	if (l->threads > 1)
		snprintf(rest, sizeof(rest), "; %u of %u workers idle", idle, l->threads);
	snprintf(out, out_size, "rank %u %s; %s%s", l->config.rank, state, who, rest);
}
