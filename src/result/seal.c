/* Which files of a result folder are digested, and how. */
#include "result/seal.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "base/transfer.h"
#include "result/fields.h"
#include "result/json_out.h"

/* ---- names ---- */

bool seal_rank_file(const char *name, uint32_t *rank)
{
	size_t digits = strspn(name, "0123456789");

	if (digits == 0 || digits > 9 || (digits > 1 && name[0] == '0'))
		return false;
	*rank = (uint32_t)strtoul(name, NULL, 10);
	return strcmp(name + digits, "_output.json") == 0 ||
	       strcmp(name + digits, "_per_epoch_stats.json") == 0;
}

static bool left_before(const char *name, const char *log)
{
	return strcmp(name, "iostat.json") == 0 || str_starts(name, "trace.") ||
	       str_starts(name, "trace-") || (log && strcmp(name, log) == 0);
}

/* ---- digests ---- */

#define SEAL_PART ((size_t)1 << 16)

int seal_file(const char *path, uint64_t *bytes, char hex[SHA256_HEX], struct err *e)
{
	AUTO_FREE unsigned char *part = xmalloc(SEAL_PART);
	struct stat st;
	int fd = file_open(path, &st, e);
	struct sha256 h;
	ssize_t n = 0;

	if (fd < 0)
		return fd;
	*bytes = 0;
	sha256_begin(&h);
	/* a file that grows while it is read has an end, too */
	while ((uint64_t)st.st_size <= SEAL_FILE_BYTES && *bytes <= SEAL_FILE_BYTES &&
	       (n = read_fully(fd, part, SEAL_PART)) > 0) {
		sha256_add(&h, part, (size_t)n);
		*bytes += (uint64_t)n;
	}
	close(fd);
	sha256_end(&h, hex);
	if ((uint64_t)st.st_size > SEAL_FILE_BYTES)
		*bytes = (uint64_t)st.st_size;
	if (*bytes > SEAL_FILE_BYTES)
		hex[0] = '\0';
	return n < 0 ? err_sys(e, (int)-n, "cannot read '%s'", path) : 0;
}

/* Digests and reasons, as they are collected. */
struct seal_list {
	json_t *files, *left_out;
	uint64_t bytes;
};

struct seal_list *seal_list_new(void)
{
	struct seal_list *l = xcalloc(1, sizeof(*l));

	l->files = json_object();
	l->left_out = json_object();
	return l;
}

void seal_list_free(struct seal_list *l)
{
	json_decref(l->files);
	json_decref(l->left_out);
	free(l);
}

static bool has_room(struct seal_list *l, const char *name, uint64_t bytes)
{
	if (bytes > SEAL_FILE_BYTES || l->bytes + bytes > SEAL_ALL_BYTES) {
		json_put_text(l->left_out, name, "too large");
		return false;
	}
	l->bytes += bytes;
	return true;
}

static void put_digest(struct seal_list *l, const char *name, uint64_t bytes,
		       const char hex[SHA256_HEX])
{
	json_t *one = json_object();

	json_put_int(one, "bytes", bytes);
	json_put_text(one, "sha256", hex);
	json_put(l->files, name, one);
}

void seal_add(struct seal_list *l, const char *name, const char *text, size_t n)
{
	char hex[SHA256_HEX];
	struct sha256 h;

	if (!has_room(l, name, n))
		return;
	sha256_begin(&h);
	sha256_add(&h, text, n);
	sha256_end(&h, hex);
	put_digest(l, name, n, hex);
}

static void add_file(struct seal_list *l, const char *folder, const char *name)
{
	AUTO_FREE char *path = path_join(folder, name);
	char hex[SHA256_HEX];
	struct err e = {0};
	struct stat st;
	uint64_t bytes;

	if (stat(path, &st) < 0) {
		if (errno == ENOENT)
			return;
		err_sys(&e, errno, "cannot read '%s'", path);
		json_put_text(l->left_out, name, e.text);
		return;
	}
	if (!S_ISREG(st.st_mode) || !has_room(l, name, (uint64_t)st.st_size))
		return;
	if (seal_file(path, &bytes, hex, &e) < 0)
		json_put_text(l->left_out, name, e.text);
	else
		put_digest(l, name, bytes, hex);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add_folder(struct seal_list *l, const char *folder, const char *log)
{
	struct str_list names = {0};
	DIR *d = folder_open(folder);
	struct err e = {0};
	struct dirent *entry;
	int more = d ? 0 : -errno;

	while (d && (more = folder_next(d, &entry)) > 0)
		if (left_before(entry->d_name, log))
			str_list_add(&names, xstrdup(entry->d_name));
	if (more == -ENOMEM)
		out_of_memory(); /* not a folder without files */
	if (more < 0) {
		err_sys(&e, -more, "cannot list the folder");
		json_put_text(l->left_out, "other files", e.text);
	}
	if (d)
		closedir(d);
	if (names.n)
		qsort(names.v, names.n, sizeof(*names.v), by_text);
	for (size_t i = 0; i < names.n; i++)
		add_file(l, folder, names.v[i]);
	str_list_release(&names);
}

json_t *seal_of_folder(const char *folder, const char *log, const struct seal_list *l)
{
	struct seal_list all = {json_object(), json_object(), l->bytes};
	json_t *o = json_object();

	json_object_update(all.files, l->files);
	json_object_update(all.left_out, l->left_out);
	add_folder(&all, folder, log);
	json_put_text(o, "algorithm", "SHA-256");
	json_put(o, field_key(F_INTEGRITY_FILES), all.files);
	if (json_object_size(all.left_out))
		json_put(o, field_key(F_INTEGRITY_LEFT_OUT), all.left_out);
	else
		json_decref(all.left_out);
	return o;
}

/* ---- a file itself ---- */

/* Where the value of the last one begins; NULL. A quotation mark within a text is written as \", so
 * that only a key reads like this. */
static const char *self_value(const char *text, size_t n, const char *key)
{
	AUTO_FREE char *key_text = xasprintf("\"%s\":", key);
	const char *at = NULL, *end = text + n, *hit = text;
	size_t length = strlen(key_text);

	while ((hit = memmem(hit, (size_t)(end - hit), key_text, length)))
		at = hit += length;
	while (at && at < end && *at == ' ')
		at++;
	return at && at < end && *at == '"' ? at + 1 : NULL;
}

bool seal_of_text(const char *text, size_t n, const char *key, const char *stated,
		  char hex[SHA256_HEX])
{
	const char *at = self_value(text, n, key);
	size_t length = strlen(stated), rest;
	struct sha256 h;

	if (!at)
		return false;
	rest = n - (size_t)(at - text);
	if (rest <= length || memcmp(at, stated, length) != 0 || at[length] != '"')
		return false;
	sha256_begin(&h);
	sha256_add(&h, text, (size_t)(at - text));
	sha256_add(&h, at + length, rest - length);
	sha256_end(&h, hex);
	return true;
}

bool seal_text(char **text, const char *key)
{
	size_t n = strlen(*text);
	char hex[SHA256_HEX], *whole;
	size_t at;

	if (!seal_of_text(*text, n, key, "", hex))
		return false;
	at = (size_t)(self_value(*text, n, key) - *text);
	whole = xmalloc(n + sizeof(hex));
	memcpy(whole, *text, at);
	memcpy(whole + at, hex, sizeof(hex) - 1);
	memcpy(whole + at + sizeof(hex) - 1, *text + at, n - at + 1);
	free(*text);
	*text = whole;
	return true;
}

void seal_put(json_t *object)
{
	json_t *seal = json_object();

	json_put_text(seal, "algorithm", "SHA-256");
	json_put_text(seal, SEAL_FILE, "");
	json_put(object, field_key(F_RUN_INTEGRITY), seal);
}

int seal_write(json_t *object, const char *folder, const char *name, struct err *e)
{
	AUTO_FREE char *path = path_join(folder, name);
	char *text;
	int rc;

	seal_put(object);
	text = json_file_text(object);
	json_decref(object);
	if (!text)
		return err_set(e, -ENOMEM, "no memory to write '%s'", path);
	seal_text(&text, SEAL_FILE);
	rc = file_write_ours(path, text, strlen(text), e);
	free(text);
	return rc;
}
