/* Keys that are set and have no effect, and what probably was meant: of a loader, of a format, of a
 * section that is switched off, of a store that is not in use. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "workload/backend.h"
#include "workload/key.h"
#include "workload/tables.h"
#include "workload/validate.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

/* ---- keys of loaders ---- */

static void warn_of_ignored_keys(struct workload *w)
{
	const struct loader_facts *loader = workload_loader(w);

	for (const char *const *key = loader->ignores; key && *key; key++)
		if (workload_is_set(w, *key))
			workload_warn(w, "%s has no effect with reader.data_loader %s: %s", *key,
				      loader->name, loader->ignores_why);
}

static const struct loader_key *find_key(const struct loader_facts *l, const char *key)
{
	for (const struct loader_key *k = l->keys; k && k->key; k++)
		if (strcmp(k->key, key) == 0)
			return k;
	return NULL;
}

/* "workers of reader.data_loader pytorch", "reader.data_loader A or B" */
static void users_of(const struct loader_key *key, struct buf *out)
{
	size_t users = 0;

	buf_puts(out, key->when == USED_BY_WORKERS ? "workers of "
		      : key->when == USED_BY_MAPS  ? "mapped files of "
						   : "");
	for (size_t i = 0; loader_facts_table[i]; i++)
		if (find_key(loader_facts_table[i], key->key))
			buf_printf(out, "%s%s", users++ ? " or " : "reader.data_loader ",
				   loader_facts_table[i]->name);
}

/* Warns of a key that some loaders use and this one does not, or not as it is set. */
static void warn_of_loader_key(struct workload *w, const struct loader_key *key)
{
	const struct loader_key *used = find_key(workload_loader(w), key->key);
	struct buf users = {0};

	if (!workload_is_set(w, key->key) ||
	    (used && (used->when != USED_BY_WORKERS || w->reader.read_threads > 0) &&
	     (used->when != USED_BY_MAPS || !w->reader.dont_use_mmap)))
		return;
	users_of(key, &users);
	workload_warn(w, "%s has no effect: it is for %s", key->key, users.data);
	buf_release(&users);
}

static bool is_first_user(size_t loader, const char *key)
{
	for (size_t i = 0; i < loader; i++)
		if (find_key(loader_facts_table[i], key))
			return false;
	return true;
}

/* Keys of ours that the loader does not look at. */
static void warn_of_other_loaders(struct workload *w)
{
	for (size_t i = 0; loader_facts_table[i]; i++) {
		const struct loader_key *k = loader_facts_table[i]->keys;

		for (; k && k->key; k++)
			if (is_first_user(i, k->key))
				warn_of_loader_key(w, k);
	}
	if (workload_is_set(w, "reader.drop_last") && w->reader.order != ORDER_DISTRIBUTED)
		workload_warn(w, "reader.drop_last has no effect: it is for reader.order "
				 "distributed");
	if (w->reader.queue_depth > 1 && workload_loader(w)->flags & LOADER_STREAMS &&
	    !(workload_loader(w)->flags & LOADER_GROUPS))
		workload_warn(w,
			      "reader.queue_depth %" PRId64
			      ": workers of reader.data_loader %s read "
			      "one sample after another, so only pieces of 1 MiB of large ones are "
			      "in flight together",
			      w->reader.queue_depth, w->reader.data_loader);
}

/* ---- keys of formats ---- */

static bool is_among(const char *const *keys, const char *key)
{
	for (; keys && *keys; keys++)
		if (strcmp(*keys, key) == 0)
			return true;
	return false;
}

static bool format_uses(const struct format_facts *f, const char *key)
{
	return is_among(f->keys, key) || is_among(f->reader_keys, key);
}

/* Warns of those of `keys` that are set, that the workload's format does not use, and that no
 * format before `first` has: their own warning names all. */
static void warn_of_format_keys(struct workload *w, const char *const *keys, size_t first)
{
	for (; keys && *keys; keys++) {
		struct buf users = {0};
		bool told = false;

		for (size_t i = 0; i < first && !told; i++)
			told = format_uses(format_facts_table[i], *keys);
		if (told || !workload_is_set(w, *keys) || format_uses(workload_format(w), *keys))
			continue;
		for (size_t i = first; format_facts_table[i]; i++)
			if (format_uses(format_facts_table[i], *keys))
				buf_printf(&users, "%s%s", users.len ? " or " : "",
					   format_facts_table[i]->name);
		workload_warn(w, "%s has no effect: it is for dataset.format %s", *keys,
			      users.data);
		buf_release(&users);
	}
}

static void warn_of_other_formats(struct workload *w)
{
	for (size_t i = 0; format_facts_table[i]; i++) {
		warn_of_format_keys(w, format_facts_table[i]->keys, i);
		if (workload_reads(w))
			warn_of_format_keys(w, format_facts_table[i]->reader_keys, i);
	}
}

/* ---- sections that are switched off ---- */

/* Keys that have no effect while a switch is off: those that begin with `keys`, or equal it, except
 * `except`. */
struct switched {
	const char *keys, *except;
	const char *of; /* the switch */
	bool files;     /* also if a file sets them: only in a section of its own */
};

static const struct switched switched[] = {
	{"checkpoint.", NULL, "workflow.checkpoint", true},
	{"evaluation.", NULL, "workflow.evaluation", true},
	/* files may set these for users who turn the switch on */
	{"profiling.", NULL, "workflow.profiling", false},
	{"model.", "model.name", "workflow.checkpoint", false},
	{"reader.batch_size_eval", NULL, "workflow.evaluation", false},
	{"train.computation_time", NULL, "workflow.train", false},
	{"train.total_training_steps", NULL, "workflow.train", false},
};

static int source_of(const struct workload *w, const struct opt *row)
{
	return (int)w->origin[row - workload_rows].source;
}

static bool is_on(const struct workload *w, const char *key)
{
	const struct opt *row = opt_find(workload_rows, workload_row_count, key);

	assert(row && row->type == OPT_BOOL);
	return *(const bool *)((const char *)w + row->offset);
}

/* A switch that is off where its section is written, or nearer to the user, was turned off on
 * purpose: shipped workloads keep such sections. Else the section was meant to have an effect. */
static void warn_of_section(struct workload *w, const struct switched *s)
{
	const struct opt *of = opt_find(workload_rows, workload_row_count, s->of);
	struct buf meant = {0}, kept = {0};
	char where[256] = "";

	assert(of);
	for (size_t i = 0; i < workload_row_count; i++) {
		const struct opt *row = &workload_rows[i];
		int source = source_of(w, row);

		if (!str_starts(row->key, s->keys) || source == ORIGIN_DEFAULT ||
		    (s->except && strcmp(row->key, s->except) == 0) ||
		    (source == ORIGIN_FILE && !s->files))
			continue;
		if (source <= source_of(w, of)) {
			buf_printf(&kept, "%s%s", kept.len ? ", " : "", row->key);
			continue;
		}
		if (!meant.len)
			node_mark_text(w->origin[i].mark, where, sizeof(where));
		buf_printf(&meant, "%s%s", meant.len ? ", " : "", row->key);
	}
	/* several keys are named behind what is true of all of them */
	if (meant.len && strchr(meant.data, ','))
		workload_warn(w, "%s* has no effect without %s=true (%s: %s)", s->keys, s->of,
			      where, meant.data);
	else if (meant.len)
		workload_warn(w, "%s has no effect without %s=true (%s)", meant.data, s->of, where);
	if (kept.len)
		workload_note(w, "%s %s no effect because %s is false", kept.data,
			      strchr(kept.data, ',') ? "have" : "has", s->of);
	buf_release(&meant);
	buf_release(&kept);
}

static void warn_of_sections(struct workload *w)
{
	for (size_t i = 0; i < LENGTH(switched); i++)
		if (!is_on(w, switched[i].of))
			warn_of_section(w, &switched[i]);
}

static void warn_without_effect(struct workload *w)
{
	if (w->workflow.checkpoint && w->checkpoint.async && !w->workflow.train)
		workload_warn(w, "checkpoint.async has no effect: nothing is trained while "
				 "checkpoints are written");
	if (w->workflow.checkpoint && w->checkpoint.seconds_between_checkpoints > 0 &&
	    !w->workflow.train)
		workload_warn(w, "checkpoint.seconds_between_checkpoints has no effect: nothing is "
				 "trained (the pause between checkpoints alone is "
				 "checkpoint.time_between_checkpoints)");
	if (w->workflow.checkpoint && w->checkpoint.ksm)
		workload_warn(w, "checkpoint.ksm has no effect: no checkpoint is held in memory");
	if (w->workflow.profiling && w->profiling.profiler > PROFILER_IOSTAT)
		workload_warn(w, "workflow.profiling is on, but only profiling.profiler iostat is "
				 "supported: nothing is profiled");
	else if (w->workflow.profiling && !workload_reads(w) && !w->workflow.checkpoint)
		workload_warn(w, "workflow.profiling has no effect: nothing is trained, and no "
				 "checkpoint is written");
}

/* Options of a store that is not in use would be believed to have worked. */
static void warn_unused_stores(struct workload *w)
{
	const struct node *storage = node_path(w->tree, "workload.storage");

	for (size_t i = 0; storage && storage->kind == NODE_MAP && store_facts_table[i]; i++) {
		const struct store_facts *s = store_facts_table[i];
		bool shim = s->flags & STORE_IS_SHIM;

		if (node_get(storage, s->name) && !store_expression_has(w->storage.store, s->name))
			workload_warn(w,
				      "storage.%s has no effect: storage.store is '%s' (write "
				      "storage.store=%s%s%s to use it)",
				      s->name, w->storage.store, s->name, shim ? "+" : "",
				      shim ? w->storage.store : "");
	}
}

void workload_warn_of_unused_keys(struct workload *w)
{
	warn_of_sections(w);
	warn_unused_stores(w);
	warn_of_other_formats(w);
	if (workload_reads(w)) {
		warn_of_ignored_keys(w);
		warn_of_other_loaders(w);
	}
	warn_without_effect(w);
}
