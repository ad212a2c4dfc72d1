#pragma once
/* Who and what was slow: the rank and the host that come last to the barrier, the samples that took
 * longest to read, with their files. */
#include <jansson.h>

#include "base/buf.h"
#include "judge/decompose.h"

#define STRAGGLING_SAMPLES 10

struct stragglers {
	uint32_t samples;
	struct straggling_sample {
		uint32_t rank;
		struct slow_sample of;
	} sample[STRAGGLING_SAMPLES]; /* the longest first */
	double mean_s;                /* to read a sample, over ranks that say so; 0: not known */
};

/* Over the whole training. Pure. */
void stragglers_find(const struct result *r, struct stragglers *out);
/* For result.json: "slowest_rank" and "slowest_host" when one is, and "slowest_samples". */
json_t *json_stragglers(const struct result *r, const struct decomposition *d);
/* A line for the table at the end of a run: the slowest sample when it stands out. "" otherwise. */
void stragglers_text(const struct result *r, struct buf *out);
