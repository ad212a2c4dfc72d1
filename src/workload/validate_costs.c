/* Whether a profile of costs (framework.costs) is one for the run that spends them. */
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "workload/backend.h"
#include "workload/framework_costs.h"
#include "workload/key.h"
#include "workload/tables.h"
#include "workload/validate.h"

#define TENSORFLOW (1u << FRAMEWORK_TENSORFLOW)

/* Whether a run spends this row's time. */
static bool spends(const struct workload *w, enum cost_row row)
{
	const bool workers = w->reader.read_threads > 0, calls = w->reader.computation_threads != 0;
	const unsigned loader_of = workload_loader(w)->default_of;

	if (cost_rows[row].where == (w->compat.dlio ? COST_IN_OWN_LOOPS : COST_IN_DLIO))
		return false;
	if (cost_rows[row].of && !(cost_rows[row].of & loader_of))
		return false;
	switch (row) {
	case COST_ITERATOR_MAP:
		return calls;
	case COST_PARSE: /* DLIO's map does something else */
		return calls && !w->compat.dlio;
	case COST_INTERLEAVE:
	case COST_ITERATOR_INTERLEAVE:
		return w->reader.interleave != INTERLEAVE_READS;
	case COST_HAND_OVER:
		return workers || loader_of & TENSORFLOW;
	case COST_ITERATOR:
	case COST_ITERATOR_END:
	case COST_SAMPLE:
	case COST_INDEX:
	case COST_STEP:
	case COST_STEP_END:
	case COST_BLOCK:
	case COST_LOOP_END:
		return true;
	case COST_INLINE:
		return !workers;
	case COST_PIN: /* measured only where there is a GPU, and no rank waits for its thread */
	case COST_RESUME_WORKER:
		return false;
	case COST_START_WORKER: /* the place of the others, too, in profiles without them */
	case COST_BEGIN_WORKER:
		return workers && w->reader.multiprocessing_context == START_FORK;
	case COST_START_SPAWN:
	case COST_BEGIN_SPAWN:
		return workers && w->reader.multiprocessing_context == START_SPAWN;
	case COST_START_FORKSERVER:
	case COST_BEGIN_FORKSERVER:
		return workers && w->reader.multiprocessing_context == START_FORKSERVER;
	case COST_IMPORT_DLIO:
		return workers && w->reader.multiprocessing_context != START_FORK;
	default:
		return workers;
	}
}

/* Whether the loader has code of its own in profiles like this one: those of tf.data have a law for
 * its iterators. */
static bool has_costs(const struct workload *w)
{
	const struct loader_facts *loader = workload_loader(w);

	return loader->rule == RULE_PYTORCH ||
	       (loader->default_of & TENSORFLOW && costs_of(w->costs, COST_ITERATOR)->present);
}

/* 'stoker calibrate' leaves out what only a library that is missing could show. */
static void warn_of_missing_laws(struct workload *w)
{
	struct buf missing = {0};

	for (int row = 0; row < COST_ROWS; row++)
		if (spends(w, (enum cost_row)row) &&
		    !costs_of(w->costs, (enum cost_row)row)->present)
			buf_printf(&missing, "%s%s", missing.len ? ", " : "", cost_rows[row].name);
	if (missing.len)
		workload_warn(
			w,
			"framework.costs: the profile %s has no law for %s, so the run spends "
			"no time on it and AU is too high: measure it with 'stoker calibrate' "
			"where %s is installed",
			w->costs->name, missing.data,
			workload_loader(w)->default_of & TENSORFLOW ? "TensorFlow" : "PyTorch");
	buf_release(&missing);
}

bool workload_costs_in_part(const struct workload *w)
{
	const struct format_facts *format = workload_format(w);
	bool own = w->costs && has_costs(w);

	for (int row = 0; own && row < COST_ROWS; row++)
		if (spends(w, (enum cost_row)row) &&
		    !costs_of(w->costs, (enum cost_row)row)->present)
			return true;
	return w->costs && format && !(format->flags & FORMAT_NO_IO) &&
	       !costs_of_load(w->costs, format)->present;
}

void workload_warn_of_costs(struct workload *w)
{
	const char *of = w->costs ? w->costs->about[COST_ABOUT_FRAMEWORK] : NULL;
	const struct loader_facts *loader = workload_loader(w);
	const struct format_facts *format = workload_format(w);

	if (w->costs && format && !(format->flags & FORMAT_NO_IO) &&
	    !costs_of_load(w->costs, format)->present)
		workload_note(w,
			      "framework.costs: the profile %s has no law load_%s: loading samples "
			      "costs nothing beside Stoker's own reading",
			      w->costs->name, format->name);
	if (of && strcmp(of, workload_framework_names[w->framework]) != 0)
		workload_warn(w,
			      "framework.costs: the profile %s is of %.60s, but framework is %s: "
			      "its laws are used as they are",
			      w->costs->name, of, workload_framework_names[w->framework]);
	if (w->costs && !has_costs(w) && workload_is_set(w, "framework.costs"))
		workload_warn(
			w,
			"framework.costs: with reader.data_loader %s only the laws of loading "
			"samples (load_*, sample, index, keep) and of the loop (step) are "
			"used: the profile has none of this loader",
			loader->name);
	if (w->costs && has_costs(w))
		warn_of_missing_laws(w);
}
