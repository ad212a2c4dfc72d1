#pragma once
/* Many samples in few files, which readers keep open: what would be left of a run's opens. */
#include "predict/costs.h"
#include "result/result.h"

/* When readers open their files: all at the beginning of an epoch, now and then, or in an epoch
 * before. */
enum packing_opens { OPENS_FIRST, OPENS_SPREAD, OPENS_BEFORE };

/* False where it would not help or cannot be foretold: opens and metadata are no main part of
 * reading, formats load whole files for a sample, or the sizes of files differ. */
bool packing_of(const struct variants *v, const struct result *r, struct packing *out);
void packing_apply(const struct packing *p, const struct variant *v, enum packing_opens when,
		   struct model *m);
/* The keys and values that make it, and what it is. */
void packing_keys(const struct packing *p, char *out, size_t size);
struct fact packing_fact(const struct packing *p);
