/* What the PyTorch loader waits for, in words. Read by any thread while the loader runs. */
#include "loader/pytorch.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/str.h"

/* The worker to blame: in order the one whose batch is due, else who has been busy longest. */
static const struct sample_reader *blamed(const struct pytorch *l, uint64_t batch)
{
	const struct sample_reader *oldest = NULL;
	int64_t since = INT64_MAX;

	if (l->workers == 0)
		return &l->inline_reader;
	if (l->in_order && batch)
		return &l->worker[(batch - 1) % l->workers].reader;
	for (uint32_t i = 0; i < l->workers; i++) {
		int64_t busy = sample_reader_busy_since(&l->worker[i].reader);

		if (busy && busy < since) {
			since = busy;
			oldest = &l->worker[i].reader;
		}
	}
	return oldest;
}

static uint32_t idle_workers(const struct pytorch *l)
{
	uint32_t idle = 0;

	for (uint32_t i = 0; i < l->workers; i++)
		idle += sample_reader_busy_since(&l->worker[i].reader) == 0;
	return idle;
}

static void describe_wait(const struct pytorch *l, uint64_t batch, char *out, size_t out_size)
{
	int64_t since = atomic_load_explicit(&l->waiting_since, memory_order_relaxed);
	char age[32];

	str_seconds((double)(clock_now_ns() - since) * 1e-9, age, sizeof(age));
	snprintf(out, out_size, "waits for batch %llu of %llu of %s %llu for %s",
		 (unsigned long long)batch, (unsigned long long)atomic_load(&l->last_step),
		 l->config.kind == DATASET_TRAIN ? "epoch" : "evaluation",
		 (unsigned long long)atomic_load(&l->epoch), age);
}

void pytorch_describe(const struct loader *base, char *out, size_t out_size)
{
	const struct pytorch *l = pytorch_of_const(base);
	uint64_t batch = atomic_load_explicit(&l->waiting, memory_order_acquire);
	uint32_t stuck = atomic_load(&l->stuck);
	const struct sample_reader *r = blamed(l, stuck ? 0 : batch);
	char state[160], who[DATASET_PATH_MAX + 128] = "no worker is busy", idle[64] = "";

	if (stuck)
		snprintf(state, sizeof(state), "gave up on %u hung worker%s", stuck,
			 stuck == 1 ? "" : "s");
	else if (batch)
		describe_wait(l, batch, state, sizeof(state));
	else
		snprintf(state, sizeof(state), "does not wait for its loader");
	if (r)
		sample_reader_describe(r, who, sizeof(who));
	if (l->workers > 1)
		snprintf(idle, sizeof(idle), "; %u of %u workers idle", idle_workers(l),
			 l->workers);
	snprintf(out, out_size, "rank %u %s; %s%s", l->config.rank, state, who, idle);
}
