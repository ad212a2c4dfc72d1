/* PyTorch's permutations and recorded orders, held in memory. */
#include "dataset/order_list.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "workload/recorded_file.h"

bool order_list_wanted(const struct workload *w)
{
	if (w->reader.order == ORDER_RECORDED)
		return w->recorded != NULL;
	return (w->reader.order == ORDER_DISTRIBUTED || w->reader.order == ORDER_RANDOM) &&
	       w->reader.sample_shuffle != SHUFFLE_OFF;
}

static bool is_wide(uint64_t n)
{
	return n > UINT32_MAX;
}

uint64_t order_list_bytes(uint64_t n)
{
	return n * (is_wide(n) ? sizeof(uint64_t) : sizeof(uint32_t));
}

uint64_t order_list_entries(const struct workload *w, bool evaluation, uint64_t samples)
{
	if (!order_list_wanted(w))
		return 0;
	return w->reader.order == ORDER_RECORDED
		       ? recorded_visits_most(w->recorded,
					      evaluation ? RECORDED_EVAL : RECORDED_TRAIN)
		       : samples;
}

int order_list_init(struct order_list *l, uint64_t n, struct err *e)
{
	*l = (struct order_list){.n = n};
	if (is_wide(n))
		l->wide = try_calloc(n, sizeof(*l->wide), "the permutation of the samples", e);
	else
		l->narrow = try_calloc(n ? n : 1, sizeof(*l->narrow),
				       "the permutation of the samples", e);
	return l->wide || l->narrow ? 0 : -ENOMEM;
}

void order_list_release(struct order_list *l)
{
	free(l->wide);
	free(l->narrow);
	*l = (struct order_list){0};
}

/* Tensor.random_() of an int64. */
static uint64_t draw_int64(struct rng_np *r)
{
	return rng_np_u64(r) & INT64_MAX;
}

static uint64_t random_sampler_seed(const struct workload *w, uint64_t seed, uint64_t epoch)
{
	bool persistent = w->reader.persistent_workers && w->reader.read_threads > 0;
	uint64_t value = 0;
	struct rng_np rng;

	rng_np_seed(&rng, (uint32_t)seed);
	for (uint64_t i = 0; i < epoch; i++) {
		if (i == 0 || !persistent)
			draw_int64(&rng);
		value = draw_int64(&rng);
	}
	return value;
}

void order_list_fill(struct order_list *l, const struct workload *w, bool evaluation, uint64_t seed,
		     uint64_t epoch)
{
	struct rng_np rng;

	assert(epoch > 0 && (l->narrow || l->wide || l->n == 0));
	if (w->reader.order == ORDER_RECORDED) {
		recorded_sequence(w->recorded, evaluation ? RECORDED_EVAL : RECORDED_TRAIN, epoch,
				  l->narrow);
		return;
	}
	if (w->reader.order == ORDER_RANDOM)
		seed = random_sampler_seed(w, seed, epoch);
	else if (w->train.seed_change_epoch)
		seed += epoch - 1;
	/* the engine takes the low 32 bits */
	rng_np_seed(&rng, (uint32_t)seed);
	if (l->narrow)
		rng_torch_randperm_u32(&rng, l->narrow, l->n);
	else
		rng_torch_randperm(&rng, l->wide, l->n);
}
