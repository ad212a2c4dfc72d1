#include "capacity/search_folder.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "readback/result_folder.h"

static void settings_key(const struct capacity_options *o, const char *of, char key[SHA256_HEX])
{
	const char *texts[] = {o->workload, o->config_dir, o->hosts};
	struct sha256 h;

	sha256_begin(&h);
	sha256_add(&h, of, strlen(of) + 1);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		sha256_add(&h, texts[i] ? texts[i] : "", strlen(texts[i] ? texts[i] : "") + 1);
	for (size_t i = 0; i < o->override_count; i++)
		sha256_add(&h, o->overrides[i], strlen(o->overrides[i]) + 1);
	sha256_end(&h, key);
}

static int check(const struct search_folder *f, const char *folder, struct err *e)
{
	json_t *before = result_folder_json(folder, CAPACITY_NAME, NULL);
	const char *key = json_string_value(json_object_get(before, "key"));
	bool other = before && (!key || strcmp(key, f->key) != 0);

	json_decref(before);
	return other ? err_set(e, ERR_USAGE,
			       "'%s' has a search with another workload or other keys: choose "
			       "another folder with -o, or repeat its command to continue it",
			       folder)
		     : 0;
}

int search_folder_open(struct search_folder *f, const struct capacity_options *o, const char *of,
		       struct err *e)
{
	AUTO_FREE char *path = path_join(o->folder, ".stoker_capacity.lock");
	char who[FILE_LOCK_WHO_MAX];
	int rc;

	f->lock.fd = -1;
	settings_key(o, of, f->key);
	rc = check(f, o->folder, e);
	if (rc == 0)
		rc = file_mkdirs(o->folder, e);
	if (rc == 0)
		rc = file_lock(&f->lock, path, who, e);
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
