/* Stragglers by name. */
#include "judge/stragglers.h"

static void insert_sample(struct stragglers *s, uint32_t rank, const struct slow_sample *one)
{
	uint32_t at = s->samples;

	while (at > 0 && s->sample[at - 1].of.ns < one->ns)
		at--;
	if (at == STRAGGLING_SAMPLES)
		return;
	if (s->samples < STRAGGLING_SAMPLES)
		s->samples++;
	for (uint32_t i = s->samples - 1; i > at; i--)
		s->sample[i] = s->sample[i - 1];
	s->sample[at] = (struct straggling_sample){rank, *one};
}

void stragglers_find(const struct result *r, struct stragglers *out)
{
	double sum = 0;
	uint32_t n = 0;

	*out = (struct stragglers){0};
	for (uint32_t k = 0; k < r->ranks_here; k++) {
		const struct rank_result *rank = &r->rank[k];

		if (rank->sample_ns > 0) {
			sum += (double)rank->sample_ns;
			n++;
		}
		for (uint32_t i = 0; i < rank->slow.n; i++)
			insert_sample(out, r->first_rank + k, &rank->slow.kept[i]);
	}
	out->mean_s = n ? sum / n / 1e9 : 0;
}
