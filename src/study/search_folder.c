/* What searches share: their folder, its lock, the rows of their runs, and hosts. */
#include "study/capacity.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/str.h"
#include "base/transfer.h"
#include "readback/result_folder.h"
#include "result/json_out.h"
#include "result/seal.h"

const char search_mark[] = "capacity_run.json", search_log[] = "capacity_run.log";

/* ---- the folder ---- */

static void settings_key(const struct capacity_options *o, const char *of, char key[SHA256_HEX])
{
	const char *texts[] = {of, o->base.workload, o->base.config_dir};
	struct sha256 h;

	sha256_begin(&h);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		sha256_add(&h, texts[i] ? texts[i] : "", strlen(texts[i] ? texts[i] : "") + 1);
	for (size_t i = 0; i < o->hosts; i++) {
		sha256_add(&h, o->host[i].name, strlen(o->host[i].name) + 1);
		sha256_add(&h, &o->host[i].processes, sizeof(o->host[i].processes));
	}
	for (size_t i = 0; i < o->base.override_count; i++)
		sha256_add(&h, o->base.overrides[i], strlen(o->base.overrides[i]) + 1);
	for (size_t k = 0; k < o->others; k++) {
		const struct capacity_other *x = &o->other[k];

		sha256_add(&h, x->base.workload, strlen(x->base.workload) + 1);
		sha256_add(&h, &x->accelerators, sizeof(x->accelerators));
		for (size_t i = 0; i < x->base.override_count; i++)
			sha256_add(&h, x->base.overrides[i], strlen(x->base.overrides[i]) + 1);
	}
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

static int check_folder(const struct search_folder *f, const char *folder, bool *begun,
			struct err *e)
{
	struct err why = {0};
	json_t *before = result_folder_json(folder, CAPACITY_NAME, &why);
	const char *key = json_string_value(json_object_get(before, "key"));
	bool other = before && (!key || strcmp(key, f->key) != 0);
	AUTO_FREE char *others = before ? NULL : find_others(folder);

	*begun = before != NULL;
	json_decref(before);
	if (why.code && why.code != -ENOENT && why.code != -ENOTDIR)
		return err_set(e, why.code,
			       "%s, and the search in it cannot be continued: choose "
			       "another folder with -o",
			       why.text);
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

int search_folder_save(const struct search_folder *f, const struct capacity_options *o,
		       json_t *answer, struct err *e)
{
	json_put_text(answer, "key", f->key);
	return seal_write(answer, o->folder, CAPACITY_NAME, e);
}

int search_folder_open(struct search_folder *f, const struct capacity_options *o, const char *of,
		       struct err *e)
{
	bool begun = false;
	json_t *nothing;
	int rc;

	f->lock.fd = -1;
	settings_key(o, of, f->key);
	rc = check_folder(f, o->folder, &begun, e);
	if (rc == 0)
		rc = runner_lock(&f->lock, o->folder, ".stoker_capacity.lock", "search", "-o", e);
	if (rc < 0 || begun)
		return rc;
	/* so that a search that is killed in its first run is known as one */
	nothing = json_object();
	json_put_mark(nothing);
	json_put_bool(nothing, "complete", false);
	return search_folder_save(f, o, nothing, e);
}

/* ---- rows ---- */

void search_command(const struct capacity_options *o, const struct runner_base *base,
		    uint32_t accelerators, const struct str_list *keys, struct str_list *command)
{
	struct str_list places = {0};

	if (o->hosts) {
		spread_put(o->host, o->hosts, accelerators, &places);
		str_list_copy(&places, o->ssh);
	} else {
		str_list_add(&places, xstrdup("-n"));
		str_list_add(&places, xasprintf("%u", accelerators));
	}
	runner_command(base, "run", &places, keys, command);
	str_list_release(&places);
}

void search_row(const struct capacity_options *o, uint32_t accelerators, unsigned repeat,
		uint64_t steps, const struct str_list *keys, struct runner_row *row)
{
	search_command(o, &o->base, accelerators, keys, &row->command);
	runner_key(&row->command, row->key);
	row->folder = xasprintf("%s/%u/%u", o->folder, accelerators, repeat);
	row->about = json_object();
	json_put_int(row->about, "accelerators", accelerators);
	json_put_int(row->about, "steps", steps);
	/* what sets its runs apart from those of other searches: not what the search varies */
	if (o->typed)
		json_put(row->about, "overrides", json_texts(o->typed));
}

bool search_lacks_resources(const struct err *why)
{
	return why->code == -ENOMEM || why->code == -EAGAIN || why->code == -EMFILE;
}
/* ---- hosts ---- */

uint32_t spread_processes(const struct spread_host *host, size_t hosts)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < hosts; i++)
		sum += host[i].processes;
	return sum;
}

static uint32_t divisor(uint32_t a, uint32_t b)
{
	while (b) {
		uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* What is left when every process has as many: one for each host, then one more for those with two
 * processes, ... */
static void deal(const struct spread_host *host, size_t hosts, uint32_t left, uint32_t *share)
{
	for (uint32_t turn = 1; left; turn++)
		for (size_t i = 0; i < hosts && left; i++)
			if (host[i].processes >= turn) {
				share[i]++;
				left--;
			}
}

/* As hosts_parse (launch/hosts.h) reads it. */
static void put_host(struct buf *list, const char *name, uint32_t processes)
{
	bool bare = processes > 1 && strchr(name, ':') && !strchr(name, ']');

	buf_printf(list, "%s%s%s%s", list->len ? "," : "", bare ? "[" : "", name, bare ? "]" : "");
	if (processes > 1)
		buf_printf(list, ":%u", processes);
}

void spread_put(const struct spread_host *host, size_t hosts, uint32_t accelerators,
		struct str_list *command)
{
	uint32_t all = spread_processes(host, hosts), each = all ? accelerators / all : 0,
		 common = 0;
	AUTO_FREE uint32_t *share = xcalloc(hosts, sizeof(*share));
	struct buf list = {0};

	assert(all > 0 && accelerators > 0);
	for (size_t i = 0; i < hosts; i++)
		share[i] = each * host[i].processes;
	deal(host, hosts, accelerators % all, share);
	if (accelerators % all == 0)
		common = each;
	for (size_t i = 0; accelerators % all && i < hosts; i++)
		common = divisor(common, share[i]);
	for (size_t i = 0; i < hosts; i++)
		if (share[i])
			put_host(&list, host[i].name, share[i] / common);
	str_list_add(command, xstrdup("--hosts"));
	str_list_add(command, buf_take(&list));
	str_list_add(command, xstrdup("-n"));
	str_list_add(command, xasprintf("%u", accelerators));
}
