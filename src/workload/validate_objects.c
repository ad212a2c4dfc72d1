/* What the storage of objects goes with: formats, loaders, and keys of readers of whole objects. */
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "workload/backend.h"
#include "workload/key.h"
#include "workload/validate.h"

static bool fits_objects(const struct format_facts *f)
{
	return f->flags & FORMAT_IN_OBJECTS;
}

static int check_storage(const struct workload *w, struct err *e)
{
	bool object = w->storage.storage_type == STORAGE_AISTORE;
	struct buf formats = {0};

	if (!object || w->framework != FRAMEWORK_PYTORCH || fits_objects(workload_format(w)))
		return 0;
	format_list(fits_objects, "or", &formats);
	workload_key_error(w, ERR_USAGE, e, "storage.storage_type",
			   "storage.storage_type aistore with framework pytorch holds %s "
			   "files, not %s",
			   formats.data, w->dataset.format);
	buf_release(&formats);
	return ERR_USAGE;
}

static int refuse_object_loader(const struct workload *w, const char *key, struct err *e)
{
	struct buf users = {0};
	size_t n = 0;
	int rc;

	for (size_t i = 0; loader_facts_table[i]; i++)
		if (loader_facts_table[i]->flags & LOADER_TAKES_OBJECTS)
			buf_printf(&users, "%s%s", n++ ? " or " : "", loader_facts_table[i]->name);
	rc = workload_key_error(w, ERR_USAGE, e, key,
				"reader.access object is for reader.data_loader %s, not for %s: "
				"use another reader.access",
				users.data ? users.data : "none", w->reader.data_loader);
	buf_release(&users);
	return rc;
}

static int check_access(const struct workload *w, struct err *e)
{
	static const char key[] = "reader.access";

	if (w->reader.access != READ_OBJECTS)
		return 0;
	if (!(workload_base_store(w)->flags & STORE_HAS_OBJECTS) || strchr(w->storage.store, '+'))
		return workload_key_error(w, ERR_USAGE, e, key,
					  "reader.access object needs storage.store s3 (or "
					  "storage.storage_type s3), and no other one before it: "
					  "'%s' has no client of whole objects",
					  w->storage.store);
	if (!(workload_loader(w)->flags & LOADER_TAKES_OBJECTS))
		return refuse_object_loader(w, key, e);
	if (!(workload_format(w)->flags & FORMAT_WHOLE_OBJECTS))
		return workload_key_error(w, ERR_USAGE, e, key,
					  "reader.access object is not supported for the format "
					  "%s, whose files DLIO does not ask for whole",
					  w->dataset.format);
	if (w->reader.decode == 1)
		return workload_key_error(w, ERR_USAGE, e, "reader.decode",
					  "reader.decode verify needs reader.access framework or "
					  "native: of whole objects no byte is looked at");
	return 0;
}

int workload_check_objects(const struct workload *w, struct err *e)
{
	int rc = check_storage(w, e);

	return rc < 0 ? rc : check_access(w, e);
}

/* Of keys that a store or a library reads, of which there are no rows. */
static bool is_given(const struct workload *w, const char *key)
{
	AUTO_FREE char *path = xasprintf("workload.%s", key);
	const struct node *v = node_path(w->tree, path);

	return v && v->kind != NODE_NULL;
}

/* Options of the store, and those of DLIO that they follow, which only readers of whole objects
 * look at. */
void workload_warn_of_object_keys(struct workload *w)
{
	static const char *const keys[] = {"prefetch_window", "stagger_workers"};
	const struct store_facts *s = workload_base_store(w);

	if (w->reader.access == READ_OBJECTS || !(s->flags & STORE_HAS_OBJECTS))
		return;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		AUTO_FREE char *theirs = xasprintf("storage.storage_options.%s", keys[i]);
		AUTO_FREE char *ours = xasprintf("storage.%s.%s", s->name, keys[i]);
		bool dlio = is_given(w, theirs);

		if (dlio || is_given(w, ours))
			workload_warn(w, "%s has no effect: it is for reader.access object",
				      dlio ? theirs : ours);
	}
}
