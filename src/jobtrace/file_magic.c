/* What format a file is of by its first bytes: where its name does not tell, and the file is still
 * at hand. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobtrace/account_parts.h"

#define LOOK_BYTES 264

struct magic {
	const char *name; /* of a format here, or for people */
	uint16_t at, bytes;
	const char *begin;
};

static const struct magic table[] = {
	{"png", 0, 8, "\x89PNG\r\n\x1a\n"},
	{"jpeg", 0, 3, "\xff\xd8\xff"},
	{"npy", 0, 6, "\x93NUMPY"},
	{"hdf5", 0, 8, "\x89HDF\r\n\x1a\n"},
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

/* The first bytes of a regular file; nothing else is opened, since that may wait or have effects.
 */
static ssize_t first_bytes(const char *name, char *out, size_t size)
{
	struct stat st;
	ssize_t n = -1;
	int fd;

	if (name[0] != '/' || stat(name, &st) != 0 || !S_ISREG(st.st_mode))
		return -1;
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		n = pread(fd, out, size, 0);
	close(fd);
	return n;
}

const char *account_format_now(const char *name)
{
	char head[LOOK_BYTES];
	ssize_t n = first_bytes(name, head, sizeof(head));

	for (size_t i = 0; n > 0 && i < sizeof(table) / sizeof(table[0]); i++) {
		const struct magic *m = &table[i];

		if (n >= m->at + m->bytes && memcmp(head + m->at, m->begin, m->bytes) == 0)
			return m->name;
	}
	return NULL;
}
