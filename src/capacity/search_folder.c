#include "capacity/search_folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "base/transfer.h"
#include "readback/result_folder.h"
#include "result/json_out.h"
#include "result/seal.h"

static void settings_key(const struct capacity_options *o, const char *of, char key[SHA256_HEX])
{
	const char *texts[] = {o->workload, o->config_dir};
	struct sha256 h;

	sha256_begin(&h);
	sha256_add(&h, of, strlen(of) + 1);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		sha256_add(&h, texts[i] ? texts[i] : "", strlen(texts[i] ? texts[i] : "") + 1);
	for (size_t i = 0; i < o->hosts; i++) {
		sha256_add(&h, o->host[i].name, strlen(o->host[i].name) + 1);
		sha256_add(&h, &o->host[i].processes, sizeof(o->host[i].processes));
	}
	for (size_t i = 0; i < o->override_count; i++)
		sha256_add(&h, o->overrides[i], strlen(o->overrides[i]) + 1);
	sha256_end(&h, key);
}

/* A folder of results, or a run of some number of accelerators or repetition that would be taken
 * for one of the search. */
static bool is_of_others(const char *name)
{
	static const char *const files[] = {"result.json", "summary.json", "repeat.json",
					    "dlio.log",    RUN_LOCK_NAME,  "study.json"};
	uint32_t rank;
	int64_t number;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (strcmp(name, files[i]) == 0)
			return true;
	return seal_rank_file(name, &rank) || str_to_i64(name, &number);
}

/* What is there of others; NULL: nothing. Heap. */
static char *find_others(const char *folder)
{
	DIR *d = WITH_MEMORY(folder_open(folder));
	struct dirent *entry;
	char *found = NULL;

	while (d && !found && folder_next(d, &entry) > 0)
		if (is_of_others(entry->d_name))
			found = xstrdup(entry->d_name);
	if (d)
		closedir(d);
	return found;
}

static int check(const struct search_folder *f, const char *folder, bool *begun, struct err *e)
{
	json_t *before = result_folder_json(folder, CAPACITY_NAME, NULL);
	const char *key = json_string_value(json_object_get(before, "key"));
	bool other = before && (!key || strcmp(key, f->key) != 0);
	AUTO_FREE char *others = before ? NULL : find_others(folder);

	*begun = before != NULL;
	json_decref(before);
	if (others)
		return err_set(e, ERR_USAGE,
			       "'%s' has results of something else ('%s'), which a search would "
			       "mix with its own: choose another folder with -o",
			       folder, others);
	return other ? err_set(e, ERR_USAGE,
			       "'%s' has a search with another workload or other keys: choose "
			       "another folder with -o, or repeat its command to continue it",
			       folder)
		     : 0;
}

/* So that a search that is killed in its first run is known as one. */
static int begin(const struct search_folder *f, const char *folder, struct err *e)
{
	json_t *root = json_object();

	json_put_mark(root);
	json_put_bool(root, "complete", false);
	json_put_text(root, "key", f->key);
	return json_write(root, folder, CAPACITY_NAME, e);
}

int search_folder_open(struct search_folder *f, const struct capacity_options *o, const char *of,
		       struct err *e)
{
	AUTO_FREE char *path = path_join(o->folder, ".stoker_capacity.lock");
	char who[FILE_LOCK_WHO_MAX];
	bool begun = false;
	int rc;

	f->lock.fd = -1;
	settings_key(o, of, f->key);
	rc = check(f, o->folder, &begun, e);
	if (rc == 0)
		rc = file_mkdirs(o->folder, e);
	if (rc == 0)
		rc = file_lock(&f->lock, path, who, e);
	if (rc == 0 && !begun)
		rc = begin(f, o->folder, e);
	return rc == -EBUSY ? err_set(e, ERR_USAGE,
				      "another search is writing to '%s'%s%s: wait until it has "
				      "ended, or choose another folder with -o",
				      o->folder, who[0] ? ": " : "", who)
			    : rc;
}

void search_folder_close(struct search_folder *f)
{
	file_unlock(&f->lock);
}
