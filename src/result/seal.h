#pragma once
/* Digests of the files of a result folder, in result.json ("integrity"). They show that a file was
 * changed, exchanged or lost; there is no secret in them, so that who changes a file can write the
 * digests again. Format: docs/metrics.md. */
#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "codec/digest.h"

/* A larger file is listed and not digested: that would take longer than a second. */
#define SEAL_FILE_BYTES ((uint64_t)64 << 20)
/* Of all files together; those that come after are listed only. */
#define SEAL_ALL_BYTES ((uint64_t)1 << 30)

/* The name of a file of numbers that a run writes for a rank: "N_output.json" and
 * "N_per_epoch_stats.json"; *rank gets N. */
bool seal_rank_file(const char *name, uint32_t *rank);
/* Files of the folder that are still to be written: their digests. */
struct seal_list;
struct seal_list *seal_list_new(void);
void seal_list_free(struct seal_list *l);
void seal_add(struct seal_list *l, const char *name, const char *text, size_t n);
/* {"algorithm", "files": {name: {"bytes", "sha256"}}, "not_digested": {name: why}} of those of `l`,
 * and of the files of `folder` that a run leaves before: traces, iostat.json and the log, whose
 * name is `log`. New reference. */
json_t *seal_of_folder(const char *folder, const char *log, const struct seal_list *l);
/* The digest of a file and its size; negative when it cannot be read. Of a file of more than
 * SEAL_FILE_BYTES, which no run digests, hex is "". */
int seal_file(const char *path, uint64_t *bytes, char hex[SHA256_HEX], struct err *e);
/* The whole of a file as text with its own digest put in: `text` ends with an object "integrity"
 * whose last key is `key`, SEAL_SELF in result.json and SEAL_FILE in others, with an empty value.
 * False when it does not have that. */
#define SEAL_SELF "result_json_sha256"
#define SEAL_FILE "file_sha256"
bool seal_text(char **text, const char *key);
/* The digest that `text` (of `n` bytes) should have: of itself with the value of `key` empty. False
 * when it has no such key with `stated` as its value, as it was written. */
bool seal_of_text(const char *text, size_t n, const char *key, const char *stated,
		  char hex[SHA256_HEX]);
/* Puts "integrity" at its end, with that empty value. */
void seal_put(json_t *object);
/* As json_write, with "integrity" and its own digest in it; releases the object. */
int seal_write(json_t *object, const char *folder, const char *name, struct err *e);
