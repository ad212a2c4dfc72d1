#pragma once
/* The keys framework and framework.costs. DLIO has a text at `framework`, so the costs stand beside
 * it: in a document that was mended, the map of sections has a text at "framework" and the costs
 * at the key "framework.costs", dot included. */
#include "base/err.h"
#include "conf/override.h"
#include "workload/workload.h"

#define FRAMEWORK_COSTS "framework.costs"

/* `framework: {name: pytorch, costs: torch-1.13}` becomes the two keys. `sections` may be NULL or
 * no map. */
void framework_mend(struct node *sections);
/* Refuses a document that says one of these keys twice, in both spellings. Before framework_mend.
 */
int framework_said_once(const struct node *sections, struct err *e);
/* Applies an override of workload.framework.costs, by the rules of override_apply. `root` holds
 * the map "workload". */
int framework_override_costs(struct node *root, const struct override *o, struct err *e);
/* Whether the override is one. */
bool framework_overrides_costs(const struct override *o);

/* Reads the profile that w->tree names or holds into w->costs. Its document takes its place in both
 * trees, so that results hold what was spent. A relative path is of the folder of the file that has
 * the key, if it is there, else of the working directory. `back`: of a configuration that a run
 * left behind: nothing is opened. */
int framework_take_costs(struct workload *w, bool back, struct err *e);
/* The name of the profile built in for a framework (enum framework), or NULL. */
const char *framework_profile(int framework);
/* The default of compat.dlio: the profile of the framework that the workload names. */
int framework_default_costs(struct workload *w, struct err *e);
