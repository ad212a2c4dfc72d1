/* What follows from other keys once they are typed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "conf/opt.h"
#include "workload/validate.h"

static void strip_slashes(char *path)
{
	for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
		path[n - 1] = '\0';
}

static void set_string(char **field, const char *value)
{
	free(*field);
	*field = xstrdup(value);
}

static void derive_loader(struct workload *w)
{
	const char *own = w->framework == FRAMEWORK_PYTORCH ? "pytorch" : "tensorflow";
	char where[256];

	if (w->reader.data_loader && strcmp(w->reader.data_loader, "none") == 0) {
		workload_warn(w, "%sreader.data_loader none is read as %s, the framework's own",
			      workload_where(w, "reader.data_loader", where, sizeof(where)), own);
		set_string(&w->reader.data_loader, own);
	} else if (!w->reader.data_loader) {
		set_string(&w->reader.data_loader, own);
	}
}

static bool is_image(const char *format)
{
	return strcmp(format, "jpeg") == 0 || strcmp(format, "png") == 0;
}

static int derive_element(struct workload *w, struct err *e)
{
	const char *name = w->dataset.record_element_type;

	w->elem = elem_find(name);
	if (!w->elem)
		return workload_key_error(w, ERR_USAGE, e, "dataset.record_element_type",
					  "dataset.record_element_type '%s' is not a NumPy type "
					  "such as uint8, int32 or float32",
					  name);
	if (!elem_find(w->reader.transformed_record_element_type))
		return workload_key_error(w, ERR_USAGE, e, "reader.transformed_record_element_type",
					  "reader.transformed_record_element_type '%s' is not a "
					  "NumPy type such as uint8, int32 or float32",
					  w->reader.transformed_record_element_type);
	if (is_image(w->dataset.format) && strcmp(w->elem->name, "uint8") != 0) {
		workload_warn(w,
			      "dataset.record_element_type %s is replaced by uint8, the only "
			      "element of %s files",
			      w->elem->name, w->dataset.format);
		set_string(&w->dataset.record_element_type, "uint8");
		w->elem = elem_find("uint8");
	}
	w->dataset.record_element_bytes = w->elem->bytes;
	return 0;
}

int workload_derive(struct workload *w, struct err *e)
{
	if (workload_is_set(w, "reader.preprocess_time_stdev"))
		time_dist_set_stdev(&w->reader.preprocess_time, w->reader.preprocess_time_stdev);
	if (workload_is_set(w, "train.computation_time_stdev"))
		time_dist_set_stdev(&w->train.computation_time, w->train.computation_time_stdev);
	if (workload_is_set(w, "evaluation.eval_time_stdev"))
		time_dist_set_stdev(&w->evaluation.eval_time, w->evaluation.eval_time_stdev);
	strip_slashes(w->dataset.data_folder);
	strip_slashes(w->checkpoint.checkpoint_folder);
	if (w->compat.dlio && !workload_is_set(w, "reader.order"))
		w->reader.order = ORDER_DLIO;
	derive_loader(w);
	/* its readers have shards of their own, whatever was asked of the order */
	if (strcmp(w->reader.data_loader, "native_dali") == 0 &&
	    (w->compat.dlio || !workload_is_set(w, "reader.order")))
		w->reader.order = ORDER_SHARDED;
	return derive_element(w, e);
}
