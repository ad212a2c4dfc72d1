#pragma once
/* What the code of a framework does in a run beside reading, as the model takes it: the laws of a
 * profile (workload/framework_costs.h) for the batches of this run. Of what the run's own readers
 * did in the same place (decoding) only the rest is added, as a run that spends these costs does
 * (loader/framework.h). */
#include "predict/costs.h"
#include "workload/framework_costs.h"

/* What `f` says of the first `epochs` epochs of a run. dlio: as compat.dlio would run it, with
 * DLIO's own code, the files that it leaves out and the indices that its workers read first. False
 * where `f` has no law for the format that the run reads, it is not known what the run's own
 * readers took, or DLIO would make no step. */
bool own_work_of(const struct framework_costs *f, const struct result *r, uint32_t epochs,
		 const struct costs *c, bool dlio, struct own_work *out);
/* Adds it to a model of the run, `by` times. */
void own_work_add(const struct own_work *o, double by, struct model *m);
/* Takes what a run has spent of it out of one of its models. */
void own_work_remove(const struct costs *c, const struct variant *v, struct model *m);
/* Fills in the effect that `w` foretells for the run `out`: it is said if it matters, by either AU.
 * Of a run that has spent costs, only if it is also more than what is not known of it, `repeats`
 * points apart, by which any second run may differ. dlio_au: of the run, by
 * DLIO's definition. c->spent, c->dlio_au and c->loop_au are filled. */
void own_work_judge(const struct outlook *out, const struct what_if *w, double repeats,
		    double dlio_au, struct costs_effect *c);
