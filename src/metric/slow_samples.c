/* A few places for the longest of many. */
#include "metric/slow_samples.h"

void slow_samples_add(struct slow_samples *s, uint64_t sample, int64_t begin_ns, int64_t ns)
{
	uint32_t at = 0;

	if (s->n < SLOW_SAMPLES_KEPT) {
		at = s->n++;
	} else {
		for (uint32_t i = 1; i < SLOW_SAMPLES_KEPT; i++)
			at = s->kept[i].ns < s->kept[at].ns ? i : at;
		if (ns <= s->kept[at].ns)
			return;
	}
	s->kept[at] = (struct slow_sample){sample, begin_ns, ns};
	if (s->n < SLOW_SAMPLES_KEPT)
		return;
	s->least_ns = s->kept[0].ns;
	for (uint32_t i = 1; i < SLOW_SAMPLES_KEPT; i++)
		s->least_ns = s->kept[i].ns < s->least_ns ? s->kept[i].ns : s->least_ns;
}

void slow_samples_merge(struct slow_samples *into, const struct slow_samples *from)
{
	for (uint32_t i = 0; i < from->n; i++)
		slow_samples_add(into, from->kept[i].sample, from->kept[i].begin_ns,
				 from->kept[i].ns);
}
