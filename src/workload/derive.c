/* What follows from other keys once they are typed. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/file.h"
#include "conf/opt.h"
#include "workload/backend.h"
#include "workload/framework_key.h"
#include "workload/key.h"
#include "workload/recorded_file.h"
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
	const struct loader_facts *const *own = loader_facts_table;
	char where[256];

	while (*own && !((*own)->default_of & 1u << w->framework))
		own++;
	assert(*own); /* every framework has a loader of its own */
	if (w->reader.data_loader && strcmp(w->reader.data_loader, "none") == 0)
		workload_warn(w, "%sreader.data_loader none is read as %s, the framework's own",
			      workload_where(w, "reader.data_loader", where, sizeof(where)),
			      (*own)->name);
	else if (w->reader.data_loader)
		return;
	set_string(&w->reader.data_loader, (*own)->name);
}

/* DLIO's PyTorch loader iterates over row groups wherever files have them. */
static void derive_groups(struct workload *w)
{
	size_t i = 0;

	if (!w->compat.dlio)
		return;
	while (loader_facts_table[i] && !(loader_facts_table[i]->flags & LOADER_GROUPS))
		i++;
	if (loader_facts_table[i] && workload_format(w)->flags & FORMAT_GROUPS &&
	    workload_loader(w)->default_of & 1u << FRAMEWORK_PYTORCH)
		set_string(&w->reader.data_loader, loader_facts_table[i]->name);
	/* it has an order of its own */
	if (workload_loader(w)->flags & LOADER_GROUPS && !workload_is_set(w, "reader.order"))
		w->reader.order = ORDER_SHUFFLED;
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
	if (workload_format(w)->flags & FORMAT_IMAGE && strcmp(w->elem->name, "uint8") != 0) {
		workload_warn(w,
			      "dataset.record_element_type %s is replaced by uint8, the only "
			      "element type of %s files",
			      w->elem->name, w->dataset.format);
		set_string(&w->dataset.record_element_type, "uint8");
		w->elem = elem_find("uint8");
	}
	w->dataset.record_element_bytes = w->elem->bytes;
	return 0;
}

/* Length of the part before the base store in a store expression: the shims, their plus signs and
 * blanks. */
static int shims_length(const char *expression)
{
	const char *plus = strrchr(expression, '+'), *base = plus ? plus + 1 : expression;

	return (int)(base - expression + strspn(base, " \t"));
}

/* The first store with all of `flags`, or NULL. */
static const struct store_facts *store_with(unsigned flags)
{
	for (size_t i = 0; store_facts_table[i]; i++)
		if ((store_facts_table[i]->flags & flags) == flags)
			return store_facts_table[i];
	return NULL;
}

static int derive_direct(struct workload *w, struct err *e)
{
	const struct store_facts *direct = store_with(STORE_HAS_FILES | STORE_IS_UNCACHED);
	unsigned base = workload_base_store(w)->flags;

	if (!workload_is_set(w, "reader.access"))
		w->reader.access = 1; /* native */
	if (base & STORE_IS_UNCACHED)
		return 0;
	if (!direct || !(base & STORE_IS_BUFFERED))
		return workload_key_error(w, ERR_USAGE, e, "reader.odirect",
					  "reader.odirect bypasses the page cache with the "
					  "store %s, but storage.store is '%s': remove one of "
					  "the two",
					  direct ? direct->name : "direct", w->storage.store);
	AUTO_FREE char *made =
		xasprintf("%.*s%s", shims_length(w->storage.store), w->storage.store, direct->name);

	set_string(&w->storage.store, made);
	return 0;
}

/* ---- objects ---- */

static struct node *map_at(struct node *map, const char *key)
{
	struct node *child = node_get(map, key);

	if (!child || child->kind != NODE_MAP) {
		child = node_new(NODE_MAP, (struct node_mark){0});
		node_set(map, key, child);
	}
	return child;
}

static struct node *text_node(const char *text);

#define LIBRARIES "s3dlio, s3torchconnector, minio"

/* The client that stands for a library that DLIO names. Without a name it is the one that DLIO
 * had before there was a choice; another name is refused, as DLIO does. */
static int give_client(struct node *own, const struct node *storage, struct err *e)
{
	static const char *const known[][2] = {{"s3dlio", "s3dlio-0.9"},
					       {"s3torchconnector", "s3torchconnector-1.5"},
					       {"minio", "minio"}};
	const char *key = "storage.storage_library", *name = NULL;
	const struct node *library = node_get(storage, "storage_library");
	const struct node *options = node_get(storage, "storage_options");
	char where[256] = "";

	if (options && options->kind != NODE_MAP)
		options = NULL;
	if ((!library || library->kind == NODE_NULL) && options) {
		key = "storage.storage_options.storage_library";
		library = node_get(options, "storage_library");
	}
	if (node_get(own, "client"))
		return 0;
	if (library && library->kind != NODE_NULL) {
		workload_place(&library->mark, where, sizeof(where));
		if (library->kind != NODE_STR)
			return err_set(e, ERR_USAGE, "%s%s is not a name: use one of " LIBRARIES,
				       where, key);
		name = library->s;
	}
	if (!name || !*name) {
		key = "the variable DLIO_STORAGE_LIBRARY";
		where[0] = '\0';
		name = getenv("DLIO_STORAGE_LIBRARY");
	}
	if ((!name || !*name) && options)
		name = "s3torchconnector";
	if (!name || !*name)
		return 0;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(name, known[i][0]) == 0) {
			node_set(own, "client", text_node(known[i][1]));
			return 0;
		}
	return err_set(e, ERR_USAGE, "%s%s '%.64s' is none of " LIBRARIES, where, key, name);
}

/* What DLIO's keys say, as options of the store, unless those are given. */
static void give_option(struct node *own, const char *key, const struct node *v)
{
	if (v && v->kind != NODE_NULL && !node_get(own, key))
		node_set(own, key, node_clone(v));
}

static bool is_true(const struct node *v)
{
	return v && ((v->kind == NODE_BOOL && v->b) ||
		     (v->kind == NODE_STR && strcasecmp(v->s, "true") == 0));
}

static struct node *text_node(const char *text)
{
	return node_new_str(text, (struct node_mark){0});
}

static int derive_object_options(struct workload *w, const struct store_facts *s, bool back,
				 struct err *e)
{
	struct node *storage = node_path(w->tree, "workload.storage"), *own;
	const struct node *given, *attempts, *endpoint;
	const char *bucket = w->storage.storage_root, *variable = getenv("DLIO_BUCKET");

	if (!storage || storage->kind != NODE_MAP)
		return 0;
	own = map_at(storage, s->name);
	given = node_get(storage, "storage_options");
	if (!workload_is_set(w, "storage.storage_root") && variable && *variable)
		set_string(&w->storage.storage_root, bucket = variable);
	if (!node_get(own, "bucket") && bucket && strcmp(bucket, "./") != 0)
		node_set(own, "bucket", text_node(bucket));
	if (w->storage.s3_force_path_style && !node_get(own, "addressing"))
		node_set(own, "addressing", text_node("path"));
	/* what was run is read back, whatever it was run with */
	if (give_client(own, storage, back ? NULL : e) < 0 && !back)
		return ERR_USAGE;
	if (!given || given->kind != NODE_MAP)
		return 0;
	give_option(own, "prefetch_window", node_get(given, "prefetch_window"));
	give_option(own, "stagger_workers", node_get(given, "stagger_workers"));
	endpoint = node_get(given, "endpoint_url");
	if (endpoint && endpoint->kind == NODE_STR && *endpoint->s &&
	    is_true(node_get(given, "secure")) && !strstr(endpoint->s, "://")) {
		AUTO_FREE char *secure = xasprintf("https://%s", endpoint->s);

		if (!node_get(own, "endpoints"))
			node_set(own, "endpoints", text_node(secure));
	} else if (endpoint && endpoint->kind == NODE_STR && *endpoint->s) {
		give_option(own, "endpoints", endpoint);
	}
	give_option(own, "region", node_get(given, "region"));
	give_option(own, "profile", node_get(given, "s3_profile"));
	if (is_true(node_get(given, "s3_force_path_style")) && !node_get(own, "addressing"))
		node_set(own, "addressing", text_node("path"));
	attempts = node_get(given, "s3_max_attempts");
	if (attempts && attempts->kind == NODE_INT && attempts->i > 0 &&
	    !node_get(own, "retries")) {
		struct node *v = node_new(NODE_INT, attempts->mark);

		v->i = attempts->i - 1;
		v->f = (double)v->i;
		node_set(own, "retries", v);
	}
	return 0;
}

static bool has_library(const struct workload *w, const struct store_facts *s)
{
	AUTO_FREE char *path = xasprintf("workload.storage.%s.client", s->name);
	const struct node *client = node_path(w->tree, path);

	return client && client->kind == NODE_STR && strcmp(client->s, "native") != 0;
}

/* storage.storage_type s3 is the store that has objects, unless another one is asked for. */
static int derive_objects(struct workload *w, bool back, struct err *e)
{
	const struct store_facts *objects = store_with(STORE_HAS_OBJECTS);
	const char *variable = getenv("DLIO_STORAGE_TYPE");

	if (!workload_is_set(w, "storage.storage_type") && variable && strcmp(variable, "s3") == 0)
		w->storage.storage_type = STORAGE_S3;
	if (!objects || w->storage.storage_type != STORAGE_S3)
		return 0;
	if (!workload_is_set(w, "storage.store")) {
		AUTO_FREE char *made = xasprintf("%.*s%s", shims_length(w->storage.store),
						 w->storage.store, objects->name);

		set_string(&w->storage.store, made);
	}
	if (!(workload_base_store(w)->flags & STORE_HAS_OBJECTS))
		return 0;
	if (derive_object_options(w, objects, back, e) < 0)
		return ERR_USAGE;
	/* DLIO's readers of objects, where one of its libraries is named and nobody asks for more
	 * than they do */
	if (has_library(w, objects) && !workload_is_set(w, "reader.access") &&
	    w->reader.decode == 0 && workload_loader(w)->rule == RULE_PYTORCH &&
	    workload_loader(w)->flags & LOADER_TAKES_OBJECTS && w->reader.queue_depth == 1 &&
	    shims_length(w->storage.store) == 0 && workload_format(w)->flags & FORMAT_WHOLE_OBJECTS)
		w->reader.access = READ_OBJECTS;
	return 0;
}

static void derive_drop_behind(struct workload *w)
{
	const struct store_facts *shim = store_with(STORE_IS_SHIM | STORE_DROPS_BEHIND);

	assert(shim); /* storage.page_cache has that value because there is such a store */
	if (!shim || store_expression_has(w->storage.store, shim->name))
		return;
	AUTO_FREE char *made = xasprintf("%s+%s", shim->name, w->storage.store);

	set_string(&w->storage.store, made);
}

/* What switches DLIO's tracer on switches on the same files here. */
static void derive_trace(struct workload *w)
{
	const char *dftracer = getenv("DFTRACER_ENABLE");

	if (dftracer && strcmp(dftracer, "1") == 0 && !workload_is_set(w, "run.trace"))
		w->run.trace = TRACE_PFW;
}

/* A key of the dataset that gave way leaves the configuration that results keep, so that it says
 * what was run to whoever reads it back, without the order in which keys were set. */
static void forget(struct workload *w, const char *name)
{
	struct node *dataset = w->composed ? node_path(w->composed, "workload.dataset") : NULL;

	if (dataset && dataset->kind == NODE_MAP)
		node_unset(dataset, name);
}

static void keep_number(struct workload *w, const char *name, double value)
{
	struct node *dataset = node_path(w->composed, "workload.dataset");
	struct node *v = node_new(NODE_FLOAT, (struct node_mark){0});

	v->f = value;
	if (dataset && dataset->kind == NODE_MAP)
		node_set(dataset, name, v);
	else
		node_free(v);
}

/* What a workload file says of the size of samples gives way to an override of dataset.file_bytes,
 * and keeps its spread. */
static void derive_file_bytes(struct workload *w)
{
	bool image = workload_format(w)->flags & FORMAT_IMAGE;
	double old = w->dataset.record_length_bytes, sample = w->dataset.file_bytes;
	int of = workload_set_in(w, "dataset.file_bytes"),
	    length = workload_set_in(w, "dataset.record_length_bytes");

	if (!(w->dataset.file_bytes > 0))
		return;
	if (workload_set_in(w, "dataset.record_dims") < of) {
		w->dataset.record_dims.n = 0;
		forget(w, "record_dims");
	}
	w->file_bytes_decide = image && (w->dataset.record_dims.n || length >= of)
				       ? FILE_BYTES_CONTENT
				       : FILE_BYTES_SHAPE;
	if (w->file_bytes_decide == FILE_BYTES_CONTENT)
		return;
	if (!image)
		sample /= (double)w->dataset.num_samples_per_file;
	if (workload_set_in(w, "dataset.record_length_bytes_stdev") < of && old > 0 &&
	    w->dataset.record_length_bytes_stdev > 0) {
		w->dataset.record_length_bytes_stdev *= sample / old;
		forget(w, "record_length_stdev");
		keep_number(w, "record_length_bytes_stdev", w->dataset.record_length_bytes_stdev);
	}
	if (length < of) {
		forget(w, "record_length_bytes");
		forget(w, "record_length");
	}
	w->dataset.record_length_bytes = sample;
}

static void keep_string(struct workload *w, const char *name, const char *value)
{
	struct node *dataset = node_path(w->composed, "workload.dataset");

	if (dataset && dataset->kind == NODE_MAP)
		node_set(dataset, name, node_new_str(value, (struct node_mark){0}));
}

/* Beside the workload's file, where there is such a file, else from the current folder. */
static char *recorded_path(const struct workload *w)
{
	const struct node *v = node_path(w->tree, "workload.dataset.recorded_file");
	const char *name = w->dataset.recorded_file, *file = v ? v->mark.file : NULL;
	AUTO_FREE char *near = NULL;

	if (file && strchr(file, '/') && strcmp(file, NODE_COMMAND_LINE) != 0) {
		AUTO_FREE char *folder = path_dirname(file);

		near = path_join(folder, name);
	}
	/* one that cannot be looked at is to be named, too */
	return path_absolute(near && file_there(near, NULL) != 0 ? near : name);
}

static double mean_of(const uint64_t *v, uint64_t n)
{
	double sum = 0;

	for (uint64_t i = 0; i < n; i++)
		sum += (double)v[i];
	return n ? sum / (double)n : 0;
}

/* What the mean of recorded sizes says of a sample; of images, that of the file says nothing. */
static void derive_recorded_sizes(struct workload *w)
{
	const struct recorded_part *p = &w->recorded->part[RECORDED_TRAIN];
	double mean;

	if (w->dataset.sizes != SIZES_RECORDED || workload_format(w)->flags & FORMAT_IMAGE)
		return;
	if (p->files == 0)
		p = &w->recorded->part[RECORDED_EVAL];
	mean = p->bytes ? mean_of(p->bytes, p->files) / (double)p->samples_per_file : 0;
	if (mean < 1)
		return;
	w->dataset.record_length_bytes = mean;
	forget(w, "record_length");
	keep_number(w, "record_length_bytes", mean);
}

int64_t workload_samples(const struct workload *w, bool evaluation)
{
	int64_t all = evaluation ? w->dataset.num_samples_eval : w->dataset.num_samples_train;
	int64_t files = evaluation ? w->dataset.num_files_eval : w->dataset.num_files_train;

	if (w->dataset.names == NAMES_LISTED && all > 0)
		return all;
	return __builtin_mul_overflow(files, w->dataset.num_samples_per_file, &all) ? INT64_MAX
										    : all;
}

double workload_file_samples(const struct workload *w, bool evaluation)
{
	int64_t files = evaluation ? w->dataset.num_files_eval : w->dataset.num_files_train;

	if (!workload_files_differ(w) || files == 0)
		return (double)w->dataset.num_samples_per_file;
	return (double)workload_samples(w, evaluation) / (double)files;
}

bool workload_files_differ(const struct workload *w)
{
	return w->dataset.names == NAMES_LISTED &&
	       (w->dataset.num_samples_train > 0 || w->dataset.num_samples_eval > 0);
}

bool workload_is_recorded(const struct workload *w)
{
	return w->dataset.sizes == SIZES_RECORDED || w->reader.order == ORDER_RECORDED ||
	       w->reader.access == READ_AS_RECORDED;
}

static int derive_recorded(struct workload *w, bool back, struct err *e)
{
	bool sizes = w->dataset.sizes == SIZES_RECORDED, order = w->reader.order == ORDER_RECORDED;
	const char *key = sizes ? "dataset.sizes" : order ? "reader.order" : "reader.access";
	AUTO_FREE char *path = NULL;

	/* who reads a result back takes the copy in its folder */
	if (back || !workload_is_recorded(w))
		return 0;
	if (!w->dataset.recorded_file || !w->dataset.recorded_file[0])
		return workload_key_error(w, ERR_USAGE, e, key,
					  "%s recorded needs dataset.recorded_file: the file that "
					  "'stoker explain LOG -o job.yaml' writes beside the YAML",
					  key);
	path = recorded_path(w);
	w->recorded = recorded_read(path, e);
	if (!w->recorded) {
		struct err why = *e;

		return workload_key_error(w, why.code == -ENOMEM ? -ENOMEM : ERR_USAGE, e,
					  "dataset.recorded_file", "dataset.recorded_file: %s",
					  why.text);
	}
	set_string(&w->dataset.recorded_file, path);
	keep_string(w, "recorded_file", path);
	derive_recorded_sizes(w);
	return 0;
}

int workload_derive(struct workload *w, bool back, struct err *e)
{
	int rc;

	if (workload_is_set(w, "reader.preprocess_time_stdev"))
		time_dist_set_stdev(&w->reader.preprocess_time, w->reader.preprocess_time_stdev);
	if (workload_is_set(w, "train.computation_time_stdev"))
		time_dist_set_stdev(&w->train.computation_time, w->train.computation_time_stdev);
	if (workload_is_set(w, "evaluation.eval_time_stdev"))
		time_dist_set_stdev(&w->evaluation.eval_time, w->evaluation.eval_time_stdev);
	derive_file_bytes(w);
	rc = derive_recorded(w, back, e);
	if (rc < 0)
		return rc;
	strip_slashes(w->dataset.data_folder);
	strip_slashes(w->checkpoint.checkpoint_folder);
	if (w->compat.dlio && !workload_is_set(w, "reader.order"))
		w->reader.order = ORDER_DLIO;
	if (w->compat.dlio && !w->costs && !back && !workload_is_set(w, FRAMEWORK_COSTS) &&
	    (rc = framework_default_costs(w, e)) < 0)
		return rc;
	derive_loader(w);
	derive_groups(w);
	/* DLIO compares the text with a member of an enum: they never match, so never on_demand */
	if (w->compat.dlio && workload_is_set(w, "reader.read_type") &&
	    !(workload_loader(w)->flags & LOADER_ITERATES))
		w->reader.read_type = READ_MEMORY;
	derive_trace(w);
	/* its readers have shards of their own, whatever was asked of the order */
	if (workload_loader(w)->flags & LOADER_SHARDS &&
	    (w->compat.dlio || !workload_is_set(w, "reader.order")))
		w->reader.order = ORDER_SHARDED;
	rc = derive_objects(w, back, e);
	if (rc < 0)
		return rc;
	if (w->storage.storage_type == STORAGE_DIRECT_FS && !workload_is_set(w, "reader.odirect"))
		w->reader.odirect = true;
	if (w->reader.odirect && (rc = derive_direct(w, e)) < 0)
		return rc;
	if (w->storage.page_cache == PAGE_CACHE_DROP)
		derive_drop_behind(w);
	return derive_element(w, e);
}
