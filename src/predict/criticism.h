#pragma once
/* Criticism of explanations before they promise anything: what each is off by beside fewer or more
 * requests under way (predict/misfit.h) is put right in what it says of a change, and one that what
 * was measured contradicts is refuted. */
#include "predict/costs.h"

/* Batches a second that all ranks ask for at such an AU. */
double model_batches(const struct model *m, double au);
/* What a model says, which reproduces a run at `reproduced`, moved towards what was measured, as
 * far as there is still something to wait for; percent. */
double au_corrected(double measured, double reproduced, double au);
/* The same of a variant. */
double variant_corrected(const struct outlook *out, const struct variant *v, double au);
/* What `one`, of which m is a changed copy that came to `made` and `au` (corrected), says once what
 * its laws are off by is put right. *off: points that this may be wrong by; left alone where the
 * laws are off by nothing. */
double criticism_put_right(const struct outlook *out, const struct variants *v,
			   const struct variant *one, const struct model *m, double au,
			   const struct modeled *made, double *off);
/* Points that a second run of it may differ by, as the store's times are drawn anew. `au`: what m
 * comes to. */
double criticism_varies(const struct outlook *out, const struct variants *v,
			const struct variant *one, const struct model *m, double au);
/* Whether requests that take a good part of a batch do not go by its laws, or it no longer says
 * what was measured once it is put right. */
bool criticism_refutes(const struct outlook *out, const struct variants *v,
		       const struct variant *one);
