/* What format a file is of by its first bytes: where its name does not tell, and the file is still
 * at hand. */
#include <string.h>
#include <unistd.h>

#include "base/file_in.h"
#include "jobtrace/account/account_parts.h"
#include "workload/backend.h"

#define LOOK_BYTES 264

struct magic {
	const char *name; /* of a format that is none of those here */
	uint16_t at, bytes;
	const char *begin;
};

static const struct magic table[] = {
	{"parquet", 0, 4, "PAR1"},
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
	n = pread(fd, out, size, 0);
	close(fd);
	return n;
}

static bool is_begin(const char *head, ssize_t n, size_t at, const char *begin, size_t bytes)
{
	return n >= 0 && (size_t)n >= at + bytes && memcmp(head + at, begin, bytes) == 0;
}

const char *account_format_now(const char *name)
{
	char head[LOOK_BYTES];
	ssize_t n = first_bytes(name, head, sizeof(head));

	for (size_t i = 0; format_facts_table[i]; i++) {
		const struct format_facts *f = format_facts_table[i];

		if (f->magic && is_begin(head, n, 0, f->magic, strlen(f->magic)))
			return f->name;
	}
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (is_begin(head, n, table[i].at, table[i].begin, table[i].bytes))
			return table[i].name;
	return NULL;
}
