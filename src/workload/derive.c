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

/* The last part of a store expression, without blanks: the store below all shims. */
static const char *base_of(const char *expression)
{
	const char *plus = strrchr(expression, '+');

	return (plus ? plus + 1 : expression) + strspn(plus ? plus + 1 : expression, " \t");
}

static int derive_store(struct workload *w, struct err *e)
{
	const char *base = base_of(w->storage.store);
	char *made;

	if (w->reader.odirect && !workload_is_set(w, "reader.access"))
		w->reader.access = 1; /* native */
	if (w->reader.odirect && str_starts(base, "posix")) {
		made = xasprintf("%.*sdirect", (int)(base - w->storage.store), w->storage.store);
		free(w->storage.store);
		w->storage.store = made;
	} else if (w->reader.odirect && !str_starts(base, "direct")) {
		return workload_key_error(w, ERR_USAGE, e, "reader.odirect",
					  "reader.odirect reads past the page cache with the store "
					  "direct, but storage.store is '%s': leave one of the two "
					  "out",
					  w->storage.store);
	}
	if (w->storage.page_cache == PAGE_CACHE_DROP && !strstr(w->storage.store, "drop_behind")) {
		made = xasprintf("drop_behind+%s", w->storage.store);
		free(w->storage.store);
		w->storage.store = made;
	}
	return 0;
}

/* What switches DLIO's tracer on switches on the same files here. */
static void derive_trace(struct workload *w)
{
	const char *dftracer = getenv("DFTRACER_ENABLE");

	if (dftracer && strcmp(dftracer, "1") == 0 && !workload_is_set(w, "run.trace"))
		w->run.trace = TRACE_PFW;
}

int workload_derive(struct workload *w, struct err *e)
{
	int rc;

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
	derive_trace(w);
	/* its readers have shards of their own, whatever was asked of the order */
	if (strcmp(w->reader.data_loader, "native_dali") == 0 &&
	    (w->compat.dlio || !workload_is_set(w, "reader.order")))
		w->reader.order = ORDER_SHARDED;
	rc = derive_store(w, e);
	return rc < 0 ? rc : derive_element(w, e);
}
