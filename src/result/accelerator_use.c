/* Computing time over the bins of a clock. */
#include "result/accelerator_use.h"

#include <string.h>

struct bins {
	int64_t begin_ns, bin_ns;
	size_t n;
	float *share;
};

static void add(const struct bins *b, int64_t from_ns, int64_t to_ns)
{
	int64_t at = from_ns > b->begin_ns ? from_ns - b->begin_ns : 0, end = to_ns - b->begin_ns;

	while (at < end) {
		size_t i = (size_t)(at / b->bin_ns);
		int64_t edge = ((int64_t)i + 1) * b->bin_ns;

		if (i >= b->n)
			return;
		edge = edge < end ? edge : end;
		b->share[i] += (float)((double)(edge - at) / (double)b->bin_ns);
		at = edge;
	}
}

static void add_phase(const struct bins *b, const struct phase *p)
{
	for (uint64_t i = 0; i < p->steps; i++)
		add(b, p->step[i].compute_begin_ns, p->step[i].compute_end_ns);
}

void accelerator_use(const struct result *r, int64_t begin_ns, int64_t bin_ns, size_t bins,
		     float *out)
{
	memset(out, 0, (size_t)r->ranks * bins * sizeof(*out));
	for (uint32_t k = 0; k < r->ranks; k++) {
		struct bins b = {begin_ns, bin_ns, bins, &out[(size_t)k * bins]};

		for (uint32_t e = 0; e < r->epochs_begun; e++) {
			const struct rank_epoch *ep = &r->rank[k].epoch[e];

			for (uint32_t i = 0; i < ep->blocks; i++)
				add_phase(&b, &ep->block[i]);
			if (ep->has_eval)
				add_phase(&b, &ep->eval);
		}
		/* sums of floats: a hair above */
		for (size_t i = 0; i < bins; i++)
			b.share[i] = b.share[i] < 1 ? b.share[i] : 1;
	}
}
