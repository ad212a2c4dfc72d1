/* The rules of dataset.names: of files that others wrote nothing is known but what their own
 * indexes say. */
#include "workload/backend.h"
#include "workload/key.h"
#include "workload/validate.h"

int workload_check_listed(const struct workload *w, struct err *e)
{
	static const char key[] = "dataset.names";
	const struct format_facts *format = workload_format(w);
	const char *against = NULL;

	if (w->dataset.names != NAMES_LISTED) {
		if (w->dataset.num_samples_train > 0 || w->dataset.num_samples_eval > 0)
			return workload_key_error(
				w, ERR_USAGE, e,
				w->dataset.num_samples_train > 0 ? "dataset.num_samples_train"
								 : "dataset.num_samples_eval",
				"dataset.num_samples_train and num_samples_eval are for files of "
				"different lengths, which only dataset.names=listed has");
		return 0;
	}
	if (!(format->flags & FORMAT_LISTED))
		return workload_key_error(
			w, ERR_USAGE, e, key,
			"dataset.names listed does not go with dataset.format %s: "
			"files of this format that others wrote are not read",
			format->name);
	/* its iterator over row groups looks into the files; its other readers have one number */
	if (w->compat.dlio && !(workload_loader(w)->flags & LOADER_GROUPS))
		against = "compat.dlio=true and this loader: DLIO takes the number of samples in a "
			  "file from the workload";
	else if (w->workflow.generate_data)
		against = "workflow.generate_data: files that others wrote are not generated";
	else if (!w->dataset.keep_files)
		against = "dataset.keep_files=false: files that others wrote are not removed";
	else if (workload_is_recorded(w))
		against = "sizes, orders or requests of a recorded job";
	else if (w->reader.decode == 1)
		against = "reader.decode verify: what files that others wrote should hold is not "
			  "known";
	if (against)
		return workload_key_error(w, ERR_USAGE, e, key,
					  "dataset.names listed does not go with %s", against);
	if (!workload_files_differ(w))
		return 0;
	if (w->reader.order == ORDER_DLIO)
		against = "reader.order dlio";
	else if (workload_loader(w)->deal != DEAL_NONE ||
		 (format->flags & FORMAT_STREAM && workload_loader(w)->flags & LOADER_ITERATES))
		against = "the order of this reader.data_loader";
	if (against)
		return workload_key_error(w, ERR_USAGE, e, "reader.data_loader",
					  "the files have different numbers of samples, which %s "
					  "does not go with: use reader.data_loader=pytorch",
					  against);
	return 0;
}
