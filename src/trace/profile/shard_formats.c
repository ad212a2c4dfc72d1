/* Formats of groups of files: by extension, behind which a compressor's may stand, and, where many
 * formats have the extension, by the names of the files and of the index beside them. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/transfer.h"
#include "trace/profile/profile_parts.h"
#include "workload/backend.h"

/* Of archives that are compressed as a whole: "tar.gz", and its short form. */
static const struct {
	const char *extension, *archive, *compressor;
} compressed[] = {
	{"tar.gz", "tar", "gzip"},   {"tgz", "tar", "gzip"},  {"tar.zst", "tar", "zstd"},
	{"tar.bz2", "tar", "bzip2"}, {"tar.xz", "tar", "xz"}, {"tar.lz4", "tar", "lz4"},
};

#define COMPRESSED (sizeof(compressed) / sizeof(compressed[0]))

const char *profile_compressor_of(const char *extension)
{
	for (size_t i = 0; i < COMPRESSED; i++)
		if (strcmp(compressed[i].extension, extension) == 0)
			return compressed[i].compressor;
	return NULL;
}

const char *profile_double_extension(const char *base)
{
	size_t n = strlen(base);

	for (size_t i = 0; i < COMPRESSED; i++) {
		size_t k = strlen(compressed[i].extension);

		if (n > k + 1 && base[n - k - 1] == '.' &&
		    strcasecmp(base + n - k, compressed[i].extension) == 0)
			return base + n - k;
	}
	return NULL;
}

const struct format_facts *profile_format_of(const char *extension)
{
	for (size_t i = 0; i < COMPRESSED; i++)
		if (strcmp(compressed[i].extension, extension) == 0)
			extension = compressed[i].archive;
	if (!extension[0])
		return NULL;
	for (size_t i = 0; format_facts_table[i]; i++) {
		const struct format_facts *f = format_facts_table[i];

		/* an extension of many: profile_shard_formats */
		if (f->numbered && strcasecmp(f->extension, f->name) != 0)
			continue;
		if (strcasecmp(f->extension, extension) == 0)
			return f;
		for (const char *const *o = f->other_extensions; o && *o; o++)
			if (strcasecmp(*o, extension) == 0)
				return f;
	}
	return NULL;
}

/* Whether a name is the letters of the format's names, numbers with dashes, and its extension:
 * "chunk-3-12.bin". */
static bool is_numbered(const struct format_facts *f, const char *name)
{
	const char *base = path_basename(name);
	size_t letters = strcspn(f->numbered, "0123456789"), n = strlen(f->extension), all;
	bool digit = false;

	if (strncmp(base, f->numbered, letters) != 0)
		return false;
	base += letters;
	all = strspn(base, "0123456789-");
	for (size_t i = 0; i < all; i++)
		digit |= isdigit((unsigned char)base[i]) != 0;
	return digit && base[all] == '.' && strncasecmp(base + all + 1, f->extension, n) == 0 &&
	       base[all + 1 + n] == '\0';
}

static int by_name(const void *x, const void *y)
{
	return strcmp(*(const char *const *)x, *(const char *const *)y);
}

/* The paths of the indices that are there, or that the job looked at, sorted. */
static size_t find_indices(const struct profile *a, const char *index, const char ***out)
{
	const char **path = xcalloc(a->job->files + 1, sizeof(*path));
	size_t n = 0;

	for (size_t i = 0; i < a->job->files; i++)
		if (strcmp(path_basename(a->job->file[i].name), index) == 0 &&
		    job_has_data(&a->job->file[i]) && a->job->file[i].size != 0)
			path[n++] = a->job->file[i].name;
	qsort(path, n, sizeof(*path), by_name);
	*out = path;
	return n;
}

/* Whether one of n indices is that of the file's folder. */
static bool has_index(const char **indices, size_t n, const char *name, const char *index)
{
	AUTO_FREE char *folder = strchr(name, '/') ? path_dirname(name) : xstrdup("");
	AUTO_FREE char *path = xasprintf("%s%s%s", folder, folder[0] ? "/" : "", index);
	const char *wanted = path;

	return bsearch(&wanted, indices, n, sizeof(*indices), by_name) != NULL;
}

/* ---- by their first bytes: where the name does not tell, and the file is at hand ---- */

#define LOOK_BYTES 264

struct magic {
	const char *name; /* of a format that is none of those here */
	uint16_t at, bytes;
	const char *begin;
};

static const struct magic table[] = {
	{"arrow", 0, 6, "ARROW1"},
	{"zip", 0, 4, "PK\3\4"},
	{"gzip", 0, 2, "\x1f\x8b"},
	{"zstd", 0, 4, "\x28\xb5\x2f\xfd"},
	{"lz4", 0, 4, "\x04\x22\x4d\x18"},
	{"tiff", 0, 4, "II*\0"},
	{"tiff", 0, 4, "MM\0*"},
	{"gif", 0, 4, "GIF8"},
	{"webp", 8, 4, "WEBP"},
	{"wav", 8, 4, "WAVE"},
	{"flac", 0, 4, "fLaC"},
	{"sqlite", 0, 15, "SQLite format 3"},
	{"tar", 257, 5, "ustar"},
};

static ssize_t first_bytes(const char *name, char *out, size_t size)
{
	struct err e = {0};
	ssize_t n;
	int fd = name[0] == '/' ? file_open(name, NULL, &e) : -1;

	if (fd < 0)
		return -1;
	n = pread_fully(fd, out, size, 0);
	close(fd);
	return n;
}

static bool is_begin(const char *head, ssize_t n, size_t at, const char *begin, size_t bytes)
{
	return n >= 0 && (size_t)n >= at + bytes && memcmp(head + at, begin, bytes) == 0;
}

/* The name of the format of a file as it is now; NULL: not known. *is: which of ours it is. */
static const char *format_now(const char *name, const struct format_facts **is)
{
	char head[LOOK_BYTES];
	ssize_t n = first_bytes(name, head, sizeof(head));

	*is = NULL;
	for (size_t i = 0; format_facts_table[i]; i++) {
		const struct format_facts *f = format_facts_table[i];

		if (f->magic && is_begin(head, n, 0, f->magic, strlen(f->magic)))
			return (*is = f)->name;
	}
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (is_begin(head, n, table[i].at, table[i].begin, table[i].bytes)) {
			*is = profile_format_of(table[i].name);
			return *is ? (*is)->name : table[i].name;
		}
	return NULL;
}

/* A name may say what the content does not: then what the content says counts. Files that are gone,
 * or begin with nothing that is known, are what they are called. */
static void look_into(struct profile *a)
{
	AUTO_FREE uint32_t *one = job_numbers(a->groups);

	for (size_t i = a->job->files; i-- > 0;)
		one[a->group_of[i]] = (uint32_t)i;
	for (size_t g = 0; g < a->groups; g++) {
		struct file_group *v = &a->group[g];
		const struct format_facts *is = NULL;
		const char *now;

		if (v->role != FILE_DATASET || !v->regular || v->objects)
			continue;
		now = format_now(a->job->file[one[g]].name, &is);
		if (!now || is == v->format || (!is && profile_compressor_of(v->extension)))
			continue;
		/* an archive of the format: npz is zip */
		if (v->format && !is)
			continue;
		v->now = now;
		v->format = is;
	}
}

void profile_shard_formats(struct profile *a)
{
	for (size_t k = 0; format_facts_table[k]; k++) {
		const struct format_facts *f = format_facts_table[k];
		AUTO_FREE size_t *named = NULL;
		AUTO_FREE uint32_t *one = NULL;
		AUTO_FREE const char **indices = NULL;
		size_t n;

		if (!f->numbered || !f->folder_file || strcasecmp(f->extension, f->name) == 0)
			continue;
		named = xcalloc(a->groups + 1, sizeof(*named));
		one = job_numbers(a->groups);
		n = find_indices(a, f->folder_file, &indices);
		for (size_t i = 0; i < a->job->files; i++) {
			uint32_t g = a->group_of[i];

			if (job_has_data(&a->job->file[i]) &&
			    is_numbered(f, a->job->file[i].name)) {
				named[g]++;
				one[g] = (uint32_t)i;
			}
		}
		for (size_t g = 0; g < a->groups; g++)
			if (named[g] > 0 && named[g] == a->group[g].files && !a->group[g].format &&
			    has_index(indices, n, a->job->file[one[g]].name, f->folder_file))
				a->group[g].format = f;
	}
	look_into(a);
}
