#include "cli/data_folder.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/clock.h"
#include "base/say.h"
#include "base/str.h"
#include "conf/override.h"
#include "dataset/listed.h"
#include "dataset/listing.h"
#include "dataset/manifest.h"
#include "store/store.h"
#include "workload/key.h"

/* Of a manifest's keys those that are of a run, not of the files. */
static const char *const of_a_run[] = {"dataset.verify_samples", "dataset.generation_buffer_size",
				       "compat.dlio", NULL};

/* Fewer files of a format are not somebody's dataset. */
#define OWN_FILES_LEAST 10
/* Files whose indexes are read at once: latencies count. */
#define LOOK_THREADS 16
#define TELL_NS 1000000000 /* what takes no longer needs no line */

static void add(struct str_list *keys, const char *key, uint64_t value)
{
	override_put(keys, key, "%" PRIu64, value);
}

static bool is_of_a_run(const char *override)
{
	AUTO_FREE char *key = xstrndup(override + strlen("++workload."),
				       strcspn(override + strlen("++workload."), "="));
	const struct opt *row = workload_key_row(key);

	if (row && row->flags & OPT_UNUSED)
		return true;
	for (const char *const *k = of_a_run; *k; k++) {
		AUTO_FREE char *begin = xasprintf("++workload.%s=", *k);

		if (str_starts(override, begin))
			return true;
	}
	return false;
}

static int from_manifest(const char *folder, struct str_list *keys, struct err *e)
{
	struct str_list all = {0};
	struct store *s = NULL;
	struct io io = {0};
	/* the default is the store of folders */
	int rc = store_create(&s, workload_key_row("storage.store")->def, NULL, e);

	io.store = s;
	if (rc == 0)
		rc = manifest_keys(&io, folder, &all, e);
	store_destroy(s);
	for (size_t i = 0; rc == 0 && i < all.n; i++)
		if (!is_of_a_run(all.v[i]))
			str_list_add(keys, xstrdup(all.v[i]));
	str_list_release(&all);
	return rc;
}

/* Names say how many files there are and where; the size of a sample they do not say. */
static void from_names(const struct found *f, struct str_list *keys)
{
	override_put(keys, "dataset.format", "%s", f->format->name);
	override_put_text(keys, "dataset.file_prefix", f->kind[DATASET_TRAIN].prefix);
	add(keys, "dataset.num_files_train", f->kind[DATASET_TRAIN].files);
	add(keys, "dataset.num_files_eval", f->kind[DATASET_EVAL].files);
	add(keys, "dataset.num_subfolders_train", f->kind[DATASET_TRAIN].subfolders);
	add(keys, "dataset.num_subfolders_eval", f->kind[DATASET_EVAL].subfolders);
}

static void describe(const struct found *f, struct buf *out)
{
	char mean[32], stdev[32];

	buf_printf(out, "%" PRIu64 " %s files of %s on average", f->files, f->format->name,
		   str_bytes(f->mean_bytes, mean, sizeof(mean)));
	if (f->stdev_bytes > 0.01 * f->mean_bytes)
		buf_printf(out, " (standard deviation %s)",
			   str_bytes(f->stdev_bytes, stdev, sizeof(stdev)));
	if (f->folders > 1)
		buf_printf(out, " in %" PRIu64 " folders", f->folders);
}

static bool is_typed(const struct cli_args *a, const char *key)
{
	for (size_t i = 0; i < a->override.n; i++)
		if (strstr(a->override.v[i], key))
			return true;
	return false;
}

/* Files that others wrote, of a format whose files say how many samples they have. */
static bool is_listed(const struct cli_args *a, const struct found *f, bool generates)
{
	if (!f->format || !(f->format->flags & FORMAT_LISTED) || f->manifest || generates)
		return false;
	/* those of DLIO's names are read as DLIO does where that was asked for */
	return !found_is_dataset(f) ||
	       !(is_typed(a, "num_samples_per_file=") || is_typed(a, "compat.dlio=") ||
		 is_typed(a, "dataset.names="));
}

/* The loader of files that can only be read from their beginning. */
static const char *streaming_loader(void)
{
	for (size_t i = 0; loader_facts_table[i]; i++)
		if (loader_facts_table[i]->flags & LOADER_STREAMS &&
		    !(loader_facts_table[i]->flags & LOADER_GROUPS))
			return loader_facts_table[i]->name;
	return NULL;
}

static void from_listed(const struct found *f, bool named, struct str_list *keys)
{
	const char *loader = streaming_loader();

	if (!named && loader && f->format->flags & FORMAT_STREAM &&
	    !(f->format->flags & FORMAT_GROUPS))
		override_put(keys, "reader.data_loader", "%s", loader);
	override_put(keys, "dataset.format", "%s", f->format->name);
	override_put(keys, "dataset.names", "listed");
}

/* Hydra's form. */
static bool names_workload(const struct cli_args *a)
{
	for (size_t i = 0; i < a->override.n; i++)
		if (str_starts(a->override.v[i], "workload="))
			return true;
	return false;
}

/* A word of a command, as a shell needs it. */
static void put_word(struct buf *out, const char *word)
{
	if (out->len)
		buf_putc(out, ' ');
	shell_put_word(out, word);
}

/* "stoker VERB WORKLOAD --data FOLDER", with what was typed of how the workload is found. */
static void put_command(const struct cli_args *a, const char *verb, const char *folder,
			struct buf *out)
{
	put_word(out, "stoker");
	put_word(out, verb);
	/* Hydra's form names it among the overrides */
	if (a->workload || !names_workload(a))
		put_word(out, a->workload ? a->workload : "default");
	if (a->config_dir) {
		put_word(out, "--config-dir");
		put_word(out, a->config_dir);
	}
	put_word(out, "--data");
	put_word(out, folder);
	for (size_t i = 0; i < a->override.n; i++)
		if (str_starts(a->override.v[i], "workload="))
			put_word(out, a->override.v[i]);
}

/* A folder of the same name beside it; in it where a file system is mounted there, as what is
 * beside it is another storage. */
static char *beside(const char *folder)
{
	AUTO_FREE char *above = xasprintf("%s/..", folder);
	size_t n = strlen(folder);
	struct stat here, there;

	while (n > 1 && folder[n - 1] == '/')
		n--;
	if (stat(folder, &here) == 0 && stat(above, &there) == 0 && here.st_dev != there.st_dev)
		return xasprintf("%.*s/stoker", (int)n, folder);
	return xasprintf("%.*s-stoker", (int)n, folder);
}

/* Commands to paste: files alike in a folder beside this one, and the run that was asked for. */
static int refuse_own_files(const struct cli_args *a, const struct found *f, struct err *e)
{
	const char *folder = a->data, *example = f->example + strlen(folder);
	AUTO_FREE char *twin = beside(folder);
	struct buf what = {0}, generate = {0}, run = {0};

	describe(f, &what);
	put_command(a, "generate", twin, &generate);
	buf_printf(&generate, " dataset.format=%s dataset.num_files_train=%" PRIu64,
		   f->format->name, f->files);
	if (f->folders > 1)
		buf_printf(&generate, " dataset.num_subfolders_train=%" PRIu64, f->folders);
	buf_printf(&generate, " dataset.file_bytes=%.0f", f->mean_bytes);
	put_command(a, "run", twin, &run);
	if (a->ranks_given)
		buf_printf(&run, " -n %" PRId64, a->ranks);
	for (size_t i = 0; i < a->override.n && run.len < 400; i++)
		if (!str_starts(a->override.v[i], "workload="))
			put_word(&run, a->override.v[i]);
	/* what was just generated is in the page cache */
	if (!is_typed(a, "page_cache"))
		buf_puts(&run, " storage.page_cache=cold_epochs");
	err_set(e, ERR_USAGE,
		"generate files like these in another folder and run on them: "
		"%s && %s%s (--data: '%.200s' holds %s, such as "
		"'%.160s'; of format %s %s)",
		generate.data, run.data,
		f->format->flags & FORMAT_IMAGE
			? ""
			: "; if a file has several samples, add dataset.num_samples_per_file=N to "
			  "both",
		folder, what.data, example + strspn(example, "/"), f->format->name,
		f->format->flags & FORMAT_LISTED
			? "'stoker run' without generating reads files as they lie, and nothing "
			  "else does"
			: "this program reads only files that 'stoker generate' or DLIO made");
	buf_release(&what);
	buf_release(&generate);
	buf_release(&run);
	return ERR_USAGE;
}

static int refuse_no_files(const struct cli_args *a, const struct found *f, struct err *e)
{
	const char *folder = a->data;
	struct buf names = {0};

	if (!f->exists || f->others == 0) {
		put_command(a, "generate", folder, &names);
		err_set(e, ERR_USAGE, "generate the dataset first: %s (--data: the folder %s)",
			names.data, f->exists ? "is empty" : "does not exist");
		buf_release(&names);
		return ERR_USAGE;
	}
	for (size_t i = 0; format_facts_table[i]; i++)
		if (format_facts_table[i]->extension && format_facts_table[i]->extension[0])
			buf_printf(&names, "%s%s", names.len ? ", " : "",
				   format_facts_table[i]->extension);
	err_set(e, ERR_USAGE,
		"name the folder of a dataset: none of the %" PRIu64
		" files in '%.200s' has the extension of a format (%s)",
		f->others, folder, names.data);
	buf_release(&names);
	return ERR_USAGE;
}

/* "FOLDER/train", with files like "img_0_of_8.npz". */
static bool is_kind_folder(const char *folder, const struct found *f)
{
	AUTO_FREE char *absolute = path_absolute(folder);
	size_t n = strlen(absolute);

	while (n > 1 && absolute[n - 1] == '/')
		absolute[--n] = '\0';
	for (int k = 0; k < DATASET_KINDS; k++)
		if (strcmp(path_basename(absolute), dataset_kind_folder[k]) == 0)
			return strstr(path_basename(f->example), "_of_") != NULL;
	return false;
}

static int keys_of(const struct cli_args *a, const struct found *f, bool generates, bool named,
		   struct str_list *keys, struct err *e)
{
	const char *folder = a->data;
	AUTO_FREE char *absolute = path_absolute(folder);
	int rc = 0;

	if (f->manifest)
		rc = from_manifest(folder, keys, e);
	else if (is_listed(a, f, generates))
		from_listed(f, named, keys);
	else if (f->format && found_is_dataset(f))
		from_names(f, keys);
	else if (f->format && is_kind_folder(folder, f))
		return err_set(
			e, ERR_USAGE,
			"name the folder above it: '%.200s' holds the files of one kind of a "
			"dataset (--data)",
			folder);
	else if (f->format && f->kind[DATASET_TRAIN].files == 0)
		return refuse_own_files(a, f, e);
	else if (!f->format && !(generates && (!f->exists || f->others == 0)))
		return refuse_no_files(a, f, e);
	/* a part of a dataset is judged with the workload, which knows the whole */
	if (rc == 0)
		override_put_text(keys, "dataset.data_folder", absolute);
	/* the workload of those who named none evaluates, whether or not there are files for it;
	 * of listed ones add_counts knows */
	if (rc == 0 && !named && f->exists && !is_listed(a, f, generates)) {
		bool eval = f->kind[DATASET_EVAL].files > 0;

		for (size_t i = 0; i < keys->n; i++)
			eval = eval ||
			       (str_starts(keys->v[i], "++workload.dataset.num_files_eval=") &&
				!str_ends(keys->v[i], "=0"));
		if (!eval)
			str_list_add(keys, xstrdup("++workload.workflow.evaluation=false"));
	}
	return rc;
}

/* What the row makes of the text of a key, or NULL. */
static char *value_text(const struct opt *row, const char *text)
{
	struct workload there = {0};
	struct node *v = override_parse_value(text, NULL);
	char *out = v && opt_set_node(row, v, &there, NULL) == 0 ? opt_get_text(row, &there) : NULL;

	node_free(v);
	opt_release(row, 1, &there);
	return out;
}

static struct workload_request request_of(const struct cli_args *a)
{
	return (struct workload_request){.workload = a->workload,
					 .overrides = (const char *const *)a->override.v,
					 .override_count = a->override.n,
					 .config_dir = a->config_dir,
					 .inspect = true};
}

/* Keys that the workload has as they are need not be set: the record of a run's overrides stays
 * short. */
static void drop_equal(const struct cli_args *a, struct str_list *keys)
{
	struct workload_request req = request_of(a);
	struct workload w = {0};
	size_t kept = 0;

	/* errors are found again, with the keys */
	if (workload_load(&w, &req, NULL) == 0) {
		for (size_t i = 0; i < keys->n; i++) {
			const char *key = keys->v[i] + strlen("++workload.");
			size_t n = strcspn(key, "=");
			AUTO_FREE char *name = xstrndup(key, n);
			const struct opt *row = workload_key_row(name);
			AUTO_FREE char *says = row ? value_text(row, key + n + 1) : NULL;
			AUTO_FREE char *has = row ? opt_get_text(row, &w) : NULL;

			if (says && strcmp(says, has) == 0)
				free(keys->v[i]);
			else
				keys->v[kept++] = keys->v[i];
		}
		keys->n = kept;
	}
	workload_release(&w);
}

/* ---- the size of a sample, from that of a file ---- */

static uint64_t file_bytes_with(struct workload *w, double record_length)
{
	struct dataset d = {0};
	uint64_t bytes = UINT64_MAX;

	w->dataset.record_length_bytes = record_length;
	if (dataset_init(&d, w, NULL) == 0)
		bytes = dataset_file_bytes(&d, DATASET_TRAIN, 0);
	dataset_release(&d);
	return bytes;
}

/* Without a manifest the shapes are those of the workload, unless its files would be larger or
 * smaller than all of these are: then of squares the one that makes files of their size. */
static void add_record_length(struct cli_args *a, const struct found *f)
{
	struct workload_request req = request_of(a);
	uint64_t want = (uint64_t)(f->mean_bytes + 0.5), low = 1, high = want, bytes;
	struct workload w = {0};

	if (f->stdev_bytes > 1 || want == 0 || workload_load(&w, &req, NULL) < 0 ||
	    w.dataset.record_dims.n ||
	    workload_set_in(&w, "dataset.record_length_bytes") == ORIGIN_OVERRIDE) {
		workload_release(&w);
		return;
	}
	bytes = file_bytes_with(&w, w.dataset.record_length_bytes);
	if (bytes != want && bytes != UINT64_MAX) {
		while (low < high) {
			uint64_t middle = low + (high - low) / 2;

			if (file_bytes_with(&w, (double)middle) < want)
				low = middle + 1;
			else
				high = middle;
		}
		bytes = file_bytes_with(&w, (double)low);
		if (bytes != UINT64_MAX && bytes >= want && bytes - want <= want / 64)
			add(&a->data_keys, "dataset.record_length_bytes", low);
	}
	workload_release(&w);
}

/* ---- files that others wrote: what their indexes say ---- */

static void put_counts(const struct dataset *d, const struct workload *w, bool named,
		       struct str_list *keys)
{
	const struct listed_kind *train = &d->listed->kind[DATASET_TRAIN],
				 *eval = &d->listed->kind[DATASET_EVAL];

	add(keys, "dataset.num_files_train", train->files);
	add(keys, "dataset.num_files_eval", eval->files);
	add(keys, "dataset.num_subfolders_train", 0);
	add(keys, "dataset.num_subfolders_eval", 0);
	add(keys, "dataset.num_samples_per_file", d->listed->stride);
	add(keys, "dataset.num_samples_train", train->differ ? train->samples : 0);
	add(keys, "dataset.num_samples_eval", eval->differ ? eval->samples : 0);
	/* for what is said before a file is read: the mean size */
	if (w->dataset.record_dims.n)
		override_put(keys, "dataset.record_dims", "[]");
	override_put(keys, "dataset.file_bytes", "0");
	override_put(keys, "dataset.record_length_bytes_stdev", "0");
	add(keys, "dataset.record_length_bytes", d->dims[0] ? d->dims[0] : 1);
	/* who named no workload asked for no evaluation, whatever the files are called */
	if (!named)
		override_put(keys, "workflow.evaluation", "false");
}

/* What was typed wins, also of these; the run compares. */
static int add_counts(struct cli_args *a, struct err *e)
{
	struct workload_request req = request_of(a);
	struct workload w = {0};
	struct dataset d = {0};
	struct store *s = NULL;
	struct err ignored = {0};
	size_t n = a->data_keys.n;
	int64_t begin = clock_now_ns();
	int rc;

	/* what is wrong with counts that are not known yet is told when they are */
	(void)workload_load(&w, &req, &ignored);
	if (w.dataset.names != NAMES_LISTED || !w.tree || !w.elem || !w.storage.store) {
		workload_release(&w);
		return 0;
	}
	rc = store_create(&s, w.storage.store, node_path(w.tree, "workload.storage"), e);
	if (rc == 0)
		rc = dataset_init_typical(&d, &w, e);
	if (rc == 0)
		rc = dataset_find(&d, s, LOOK_THREADS, NULL, NULL, e);
	if (rc == 0)
		put_counts(&d, &w, a->workload || names_workload(a), &a->data_keys);
	if (rc == 0 && !a->quiet && clock_now_ns() - begin > TELL_NS)
		log_msg(LOG_OUTPUT,
			"%" PRIu64 " files have %" PRIu64
			" samples: what they say of themselves was "
			"read in %.2f s, and is read again before training",
			d.files[0] + d.files[1],
			dataset_samples(&d, DATASET_TRAIN) + dataset_samples(&d, DATASET_EVAL),
			(double)(clock_now_ns() - begin) / 1e9);
	dataset_release(&d);
	store_destroy(s);
	workload_release(&w);
	if (rc == 0)
		str_list_put_first(&a->override, &a->data_keys, n);
	return rc;
}

int data_folder_apply(struct cli_args *a, bool generates, struct err *e)
{
	struct found f = {0};
	size_t n;
	int rc;

	if (!a->data)
		return is_typed(a, "dataset.names=listed") ? add_counts(a, e) : 0;
	if (!a->data[0])
		return err_set(e, ERR_USAGE, "--data needs the name of a folder");
	for (size_t i = 0; i < a->override.n; i++)
		generates = generates || strstr(a->override.v[i], "generate_data=true") ||
			    strstr(a->override.v[i], "generate_data=True");
	rc = found_look(a->data, &f, e);
	if (rc == 0)
		rc = keys_of(a, &f, generates, a->workload || names_workload(a), &a->data_keys, e);
	if (rc < 0)
		return rc;
	drop_equal(a, &a->data_keys);
	/* what was typed comes behind, and wins */
	str_list_put_first(&a->override, &a->data_keys, 0);
	if (is_typed(a, "dataset.names=listed"))
		return add_counts(a, e);
	n = a->data_keys.n;
	if (found_is_dataset(&f))
		add_record_length(a, &f);
	str_list_put_first(&a->override, &a->data_keys, n);
	return 0;
}

void data_folder_conflicts(const struct cli_args *a, struct workload *w)
{
	for (size_t i = 0; i < a->data_keys.n; i++) {
		const char *key = a->data_keys.v[i] + strlen("++workload.");
		size_t n = strcspn(key, "=");
		AUTO_FREE char *name = xstrndup(key, n);
		const struct opt *row = workload_key_row(name);

		if (!row || !str_starts(name, "dataset."))
			continue;
		AUTO_FREE char *says = value_text(row, key + n + 1);
		AUTO_FREE char *used = opt_get_text(row, w);

		if (!says || strcmp(says, used) == 0)
			continue;
		workload_note(w, "command line: %s=%s is used, not %s as in --data '%.200s'", name,
			      used, says, a->data ? a->data : w->dataset.data_folder);
		if (!a->quiet)
			log_warning("%s", w->notes.v[w->notes.n - 1]);
	}
}

int data_folder_refuse_mixing(const struct cli_args *a, const struct workload *w, struct err *e)
{
	AUTO_FREE char *twin = NULL;
	struct found f;
	struct buf what = {0};
	int rc;

	if (!a->small || !w->workflow.generate_data || a->data)
		return 0;
	rc = found_look(w->dataset.data_folder, &f, e);
	if (rc < 0 || f.manifest || !f.format || f.files < OWN_FILES_LEAST ||
	    f.kind[DATASET_TRAIN].files || f.kind[DATASET_EVAL].files)
		return rc;
	describe(&f, &what);
	twin = beside(w->dataset.data_folder);
	err_set(e, ERR_USAGE,
		"set dataset.data_folder=%.200s or another folder for the files to generate: "
		"'%.200s' holds %s that are not a dataset of this program or DLIO (--small)",
		twin, w->dataset.data_folder, what.data);
	buf_release(&what);
	return ERR_USAGE;
}
