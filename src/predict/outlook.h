#pragma once
/* Feeds the model with what a run measured, and asks it for changes. */
#include "predict/costs.h"
#include "result/result.h"
#include "workload/framework_costs.h"

#define OUTLOOK_GOAL 90.0 /* percent: AU that a change is to reach */
#define OUTLOOK_WORTH 4.0 /* points: what more workers bring is said */

/* Over the first `epochs` epochs, whose decomposition is r->judged.time and whose reads go by
 * `law`. What the framework's own code costs is that of `f`: the profile that the run has spent, or
 * one that it has not; NULL: nothing is said of it. dlio_au: of the run by DLIO's definition; NAN:
 * not known. Fills *out, and *basis, where it is not NULL, with what the run tells of larger ones.
 */
void outlook_compute(const struct result *r, uint32_t epochs, const struct store_law *law,
		     const struct framework_costs *f, double dlio_au, struct outlook *out,
		     struct basis *basis);

/* Adds what more workers would do, where each of `have` reads: a promise with its interval, or that
 * it cannot be told and why; nothing where there is no prediction. */
void outlook_tell_workers(const struct outlook *o, uint32_t have, struct fact_list *to);
/* That a probe could tell, with the keys that it needs. */
struct fact outlook_probe_would(const struct outlook *o);
/* The settings of the loader that help most, or the storage that would where none do, with what
 * they give; or why it is not known. `crowded`: never more workers. `brief`: a longer run would not
 * be like this one. Nothing where there is no prediction. */
void outlook_tell_best(const struct outlook *o, uint32_t have, bool crowded, bool brief,
		       struct fact_list *to);
/* The same of a window of so many batches, and of batches handed out as they come. */
void outlook_tell_window(const struct outlook *o, uint64_t window, struct fact_list *to);
