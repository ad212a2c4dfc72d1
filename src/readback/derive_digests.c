/* Digests: is every file of a run still there, as it was written? */
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "base/transfer.h"
#include "readback/derivation.h"
#include "result/seal.h"

#define RESULT_BYTES_MAX ((size_t)256 << 20)
#define SHORT 12 /* digits of a digest that a sentence shows */

/* A name within the folder: the text is a file's, and may be anything. */
static bool is_inside(const char *name)
{
	return name[0] != '/' && !strstr(name, "..") && name[0];
}

/* JSON that audits read: one that is cut cannot be parsed, and is found there. */
static bool is_parsed(const char *name)
{
	uint32_t rank;

	return seal_rank_file(name, &rank) || strcmp(name, "summary.json") == 0;
}

/* Traces are large, and deleted when they have been looked at. Copies leave out hidden folders, and
 * result.json repeats what this one holds. */
static bool is_left_out(const struct run_record *r, const char *name, const char *path)
{
	AUTO_FREE char *hydra = path_join(r->folder, ".hydra");

	return (str_starts(name, "trace") && file_there(path, NULL) == 0) ||
	       (str_starts(name, ".hydra/") && file_there(hydra, NULL) == 0);
}

/* True: the file is missing, cannot be read, or was cut. One that was changed is not damaged: that
 * is a finding like others. */
static bool check_file(struct derive *d, const struct run_record *r, const char *name,
		       const json_t *want)
{
	AUTO_FREE char *path = path_join(r->folder, name);
	const char *stated = derive_string(want, "sha256");
	double size = derive_number(want, "bytes");
	char hex[SHA256_HEX];
	struct err e = {0};
	uint64_t bytes;

	if (!is_inside(name) || !stated)
		return false;
	if (seal_file(path, &bytes, hex, &e) < 0) {
		if (e.code == -ENOENT || e.code == -ENOTDIR)
			derive_holds(d, false,
				     "'%.60s' is listed with a digest in result.json, but is "
				     "missing: it was deleted or renamed.",
				     name);
		else
			derive_holds(d, false,
				     "'%.60s' is listed with a digest in result.json, but cannot "
				     "be read: %.200s.",
				     name, e.text);
		return !is_left_out(r, name, path);
	}
	if (!is_parsed(name) && (double)bytes < size) {
		derive_holds(d, false,
			     "'%.60s' was cut or changed after the run: it has %llu bytes, but "
			     "result.json states %.0f.",
			     name, (unsigned long long)bytes, size);
		return true;
	}
	if (!hex[0]) {
		derive_holds(d, false,
			     "'%.60s' was changed after the run: it has %llu bytes, but "
			     "result.json has %.0f.",
			     name, (unsigned long long)bytes, size);
		return false;
	}
	derive_holds(d, strcmp(stated, hex) == 0,
		     "'%.60s' was changed after the run: its SHA-256 is %.*s... (%llu bytes), but "
		     "result.json has %.*s... (%.0f bytes).",
		     name, SHORT, hex, (unsigned long long)bytes, SHORT, stated, size);
	return false;
}

static void check_itself(struct derive *d, const struct run_record *r, const json_t *integrity)
{
	AUTO_FREE char *path = path_join(r->folder, "result.json");
	const char *stated = derive_string(integrity, SEAL_SELF);
	struct buf text = {0};
	char hex[SHA256_HEX];
	struct err e = {0};

	if (!stated) {
		derive_holds(d, false, "result.json lists digests, but its own was removed.");
		return;
	}
	if (file_read(path, RESULT_BYTES_MAX, &text, &e) < 0 || !text.data) {
		derive_unchecked(d, "%s", e.text);
	} else if (!seal_of_text(text.data, text.len, SEAL_SELF, stated, hex)) {
		derive_holds(d, false,
			     "result.json was written again after the run: its own "
			     "digest is not where the run put it.");
	} else {
		derive_holds(d, strcmp(stated, hex) == 0,
			     "result.json was changed after the run: its SHA-256 is %.*s..., but "
			     "it states %.*s...",
			     SHORT, hex, SHORT, stated);
	}
	buf_release(&text);
}

/* Files of ranks that the run did not write. */
static void check_others(struct derive *d, const struct run_record *r, const json_t *files,
			 const json_t *left_out)
{
	DIR *dir = WITH_MEMORY(folder_open(r->folder));
	int more = dir ? 1 : -errno;
	struct dirent *entry;
	uint32_t rank;

	if (more == -ENOMEM)
		out_of_memory(); /* not a folder without files */
	while (more > 0 && (more = folder_next(dir, &entry)) > 0)
		if (seal_rank_file(entry->d_name, &rank))
			derive_holds(d,
				     json_object_get(files, entry->d_name) ||
					     json_object_get(left_out, entry->d_name),
				     "'%.60s' has the name of a file of this run, but the run did "
				     "not write it: result.json has no digest of it.",
				     entry->d_name);
	if (dir)
		closedir(dir);
	if (more < 0)
		derive_unchecked(d, "the folder cannot be listed: %s", strerror(-more));
}

void derive_digests(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	json_t *integrity = json_object_get(r->result, field_key(F_RUN_INTEGRITY));
	json_t *files = json_object_get(integrity, field_key(F_INTEGRITY_FILES)), *one;
	json_t *left_out = json_object_get(integrity, field_key(F_INTEGRITY_LEFT_OUT));
	bool damage = false;
	struct derive d;
	const char *name;

	if (!r->ours)
		return;
	d = derive_begin(a, i, "digest", "digests",
			 "the SHA-256 of each file in result.json, and its own");
	if (!integrity) {
		/* runs have a number, and the file its second layout, since there are digests */
		if (figure_text(part_whole(r->result), F_RUN_ID) ||
		    figure(part_whole(r->result), F_RUN_SCHEMA) > 1)
			derive_holds(&d, false,
				     "result.json has no digests (integrity), which its version "
				     "writes: they were removed.");
		else
			derive_unchecked(&d, "result.json is of a version without digests");
		return;
	}
	json_object_foreach(files, name, one) damage = check_file(&d, r, name, one) || damage;
	check_others(&d, r, files, left_out);
	check_itself(&d, r, integrity);
	if (damage)
		a->finding[a->topic[d.topic].finding - 1].damage = true;
	if (json_object_size(left_out))
		derive_unchecked(
			&d, "%zu file%s the run did not digest (%.40s: %.100s)",
			json_object_size(left_out), json_object_size(left_out) == 1 ? "" : "s",
			json_object_iter_key(json_object_iter(left_out)),
			json_string_value(json_object_iter_value(json_object_iter(left_out)))
				? json_string_value(
					  json_object_iter_value(json_object_iter(left_out)))
				: "");
}
