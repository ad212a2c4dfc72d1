/* Which version of DLIO wrote a result, by what is left of it. */
#include "readback/dlio_version.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "base/transfer.h"

#define LOG_BEGINNING 4096

struct votes {
	unsigned of[DLIO_NEWER + 1];
};

static enum dlio_version agreed(const struct votes *v)
{
	if (v->of[DLIO_2_0] && v->of[DLIO_NEWER])
		return DLIO_UNKNOWN;
	return v->of[DLIO_2_0] ? DLIO_2_0 : v->of[DLIO_NEWER] ? DLIO_NEWER : DLIO_UNKNOWN;
}

/* Its lines for people begin with a level of its own. */
static bool log_is_newer(const char *folder)
{
	AUTO_FREE char *path = path_join(folder, "dlio.log");
	char text[LOG_BEGINNING + 1];
	struct err ignored = {0};
	struct stat st;
	int fd = file_open(path, &st, &ignored);
	ssize_t n = fd < 0 ? -1 : read(fd, text, LOG_BEGINNING);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	return strstr(text, "[OUTPUT] 20") != NULL;
}

/* Names that DLIO and the harness of MLPerf Storage give. */
static void look_at_files(const char *folder, struct votes *v)
{
	static const struct {
		const char *name;
		enum dlio_version of;
	} names[] = {
		{"per_epoch_stats.json", DLIO_2_0},
		{"configs", DLIO_2_0},
		{"dlp.log", DLIO_2_0},
		{"dlio_config", DLIO_NEWER},
	};
	DIR *dir = WITH_MEMORY(folder_open(folder));
	struct dirent *entry;

	while (dir && folder_next(dir, &entry) > 0) {
		const char *name = entry->d_name;

		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			v->of[names[i].of] += strcmp(name, names[i].name) == 0;
		v->of[DLIO_NEWER] += str_ends(name, "_per_epoch_stats.json");
	}
	if (dir)
		closedir(dir);
	v->of[DLIO_NEWER] += log_is_newer(folder);
}

/* What a user writes, by the documentation of either. */
static void look_at_keys(const struct node *sections, const struct str_list *overrides,
			 struct votes *v)
{
	static const struct {
		const char *key;
		enum dlio_version of;
	} keys[] = {
		{"dataset.record_length", DLIO_2_0},
		{"dataset.record_length_stdev", DLIO_2_0},
		{"dataset.record_length_resize", DLIO_2_0},
		{"checkpoint.model_size", DLIO_2_0},
		{"dataset.record_length_bytes", DLIO_NEWER},
		{"dataset.record_length_bytes_stdev", DLIO_NEWER},
		{"dataset.record_length_bytes_resize", DLIO_NEWER},
		{"model.name", DLIO_NEWER},
		{"model.model_size_bytes", DLIO_NEWER},
		{"checkpoint.mode", DLIO_NEWER},
	};
	const struct node *model = node_get(sections, "model");

	v->of[DLIO_2_0] += model && model->kind == NODE_STR;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		size_t n = strlen(keys[i].key);

		v->of[keys[i].of] += node_path(sections, keys[i].key) != NULL;
		for (size_t k = 0; k < overrides->n; k++) {
			const char *text = overrides->v[k] + strspn(overrides->v[k], "+");

			text += str_starts(text, "workload.") ? 9 : 0;
			v->of[keys[i].of] += strncmp(text, keys[i].key, n) == 0 && text[n] == '=';
		}
	}
}

enum dlio_version dlio_version_of(const char *folder, bool checkpointed,
				  const struct node *sections, const struct str_list *overrides)
{
	struct votes files = {.of = {[DLIO_NEWER] = checkpointed}}, keys = {0};

	look_at_files(folder, &files);
	if (files.of[DLIO_2_0] || files.of[DLIO_NEWER])
		return agreed(&files);
	look_at_keys(sections, overrides, &keys);
	return agreed(&keys);
}
