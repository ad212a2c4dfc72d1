/* Result folders read back and audited: any bytes in any of their files give findings or a
 * sentence, and the same ones as JSON. The first byte of the input chooses the file that gets the
 * rest; the others are small and sound. A result.json of the input gets the keys without which it
 * is damaged, unless that byte is large. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "readback/audit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ALWAYS                                                                                     \
	"\"schema\": 2, \"program\": \"stoker\", \"version\": \"0.1.0\", \"status\": "             \
	"\"complete\",\n"                                                                          \
	"\"workload\": \"default\", \"accelerators\": 1, \"start\": "                              \
	"\"2026-01-01T00:00:00.000000\",\n"                                                        \
	"\"end\": \"2026-01-01T00:00:09.000000\", \"wall_s\": 9.0, \"configuration\": {}"

static const struct {
	const char *name, *text;
} files[] = {
	{"summary.json",
	 "{\"num_accelerators\": 1, \"num_hosts\": 1, \"hostname\": \"h\", \"epochs\": 1,\n"
	 "\"start\": \"2026-01-01T00:00:00.000000\", \"end\": \"2026-01-01T00:00:09.000000\",\n"
	 "\"metric\": {\"train_au_percentage\": [50.0], \"train_au_mean_percentage\": 50.0,\n"
	 "\"train_throughput_samples_per_second\": [1.0]}}"},
	{"result.json",
	 "{\"run_id\": \"1\", \"training\": {\"epochs_done\": 1, \"epochs\": [{\"steps\": 2}]},\n"
	 "\"verdicts\": [], \"integrity\": {\"files\": {}, \"result_json_sha256\": \"0\"}," ALWAYS
	 "}"},
	{"0_output.json",
	 "{\"hostname\": \"h\", \"1\": {\"load\": {\"block1\": [1, 1]}, \"proc\": {\"block1\":\n"
	 "[2, 2]}, \"compute\": {\"block1\": [1, 1]}, \"au\": {\"block1\": 50.0},\n"
	 "\"throughput\": {\"block1\": 1.0}}}"},
	{"0_per_epoch_stats.json",
	 "{\"1\": {\"start\": \"2026-01-01T00:00:01.000000\", \"block1\": {\"start\":\n"
	 "\"2026-01-01T00:00:01.000000\", \"end\": \"2026-01-01T00:00:05.000000\", \"duration\":\n"
	 "\"4.00\"}, \"end\": \"2026-01-01T00:00:05.000000\", \"duration\": \"4.00\"}}"},
	{"dlio.log", "[OUTPUT] 1 Running DLIO [Training] with 1 process(es)\n"},
	{"config.yaml", "workload: {reader: {batch_size: 1}, train: {epochs: 1}}\n"},
};
enum { RESULT = 1 };
#define FILES (sizeof(files) / sizeof(files[0]))

static void put(const char *path, const void *bytes, size_t n)
{
	FILE *f = fopen(path, "wb");

	if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0)
		abort();
}

static void put_result(const char *path, const void *bytes, size_t n)
{
	json_t *root = json_loadb(bytes, n, 0, NULL), *always = json_loads("{" ALWAYS "}", 0, NULL);
	char *text = NULL;

	if (json_is_object(root) && json_object_update_missing(root, always) == 0)
		text = json_dumps(root, 0);
	put(path, text ? text : bytes, text ? strlen(text) : n);
	free(text);
	json_decref(root);
	json_decref(always);
}

static const char *path_of(const char *folder, size_t i, char path[128])
{
	snprintf(path, 128, "%s/%s%s", folder, i == FILES - 1 ? ".hydra/" : "", files[i].name);
	return path;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char folder[64], path[128];
	const char *folders[] = {folder};
	struct records all;
	struct audit a = {0};
	struct err e = {0};
	size_t chosen = size ? data[0] % FILES : 0;

	snprintf(folder, sizeof(folder), "/dev/shm/fuzz_record.%d", (int)getpid());
	mkdir(folder, 0700);
	snprintf(path, sizeof(path), "%s/.hydra", folder);
	mkdir(path, 0700);
	for (size_t i = 0; i < FILES; i++)
		if (i == chosen && i == RESULT && size && data[0] < 128)
			put_result(path_of(folder, i, path), data + 1, size - 1);
		else if (i == chosen && size)
			put(path_of(folder, i, path), data + 1, size - 1);
		else
			put(path_of(folder, i, path), files[i].text, strlen(files[i].text));
	if (records_load(&all, folders, 1, &e) == 0) {
		struct buf text = {0};
		json_t *tree = NULL;

		audit_run(&a, all.v, all.n);
		audit_text(&a, NULL, false, true, &text);
		if (!text.data)
			abort();
		buf_reset(&text);
		if (audit_json(&a, NULL, &text))
			tree = json_loadb(text.data, text.len, 0, NULL);
		if (!tree)
			abort();
		buf_release(&text);
		json_decref(tree);
		audit_release(&a);
	} else if (!e.text[0]) {
		abort();
	}
	records_release(&all);
	for (size_t i = 0; i < FILES; i++)
		unlink(path_of(folder, i, path));
	snprintf(path, sizeof(path), "%s/.hydra", folder);
	rmdir(path);
	rmdir(folder);
	return 0;
}
