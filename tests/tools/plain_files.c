/* The plain loop that a dataset of many files is compared with: open, write, close; or open, read,
 * close of the files in a folder, in the order of their names' numbers or, with a seed, in another.
 *
 *     plain_files write FOLDER FILES BYTES
 *     plain_files read FOLDER FILES PATTERN [SEED]     PATTERN: "img_%06lu_of_1000.npy" */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char buffer[1 << 20];

static int fail(const char *path)
{
	fprintf(stderr, "plain_files: %s: %s\n", path, strerror(errno));
	return 1;
}

static int write_one(const char *path, size_t bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0)
		return fail(path);
	for (size_t at = 0; at < bytes;) {
		size_t n = bytes - at < sizeof(buffer) ? bytes - at : sizeof(buffer);
		ssize_t w = write(fd, buffer, n);

		if (w <= 0)
			return fail(path);
		at += (size_t)w;
	}
	return close(fd) == 0 ? 0 : fail(path);
}

static int read_one(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return fail(path);
	while ((n = read(fd, buffer, sizeof(buffer))) == (ssize_t)sizeof(buffer))
		continue;
	if (n < 0)
		return fail(path);
	return close(fd) == 0 ? 0 : fail(path);
}

int main(int argc, char **argv)
{
	unsigned long files = argc > 3 ? strtoul(argv[3], NULL, 10) : 0, seed = 0, step = 1;
	char path[4096];

	if (argc < 5 || files == 0) {
		fputs("usage: plain_files write FOLDER FILES BYTES | read FOLDER FILES PATTERN "
		      "[SEED]\n",
		      stderr);
		return 2;
	}
	memset(buffer, 7, sizeof(buffer));
	if (argc > 5) {
		/* each file once, far apart: a step that has no factor in common with the number */
		seed = strtoul(argv[5], NULL, 10) % files;
		for (step = files * 5 / 8 | 1; files % step == 0 || step % 3 == 0 || step % 5 == 0;)
			step += 2;
	}
	if (strcmp(argv[1], "write") == 0) {
		if (mkdir(argv[2], 0755) != 0 && errno != EEXIST)
			return fail(argv[2]);
		for (unsigned long i = 0; i < files; i++) {
			snprintf(path, sizeof(path), "%s/img_%0*lu_of_%lu.npy", argv[2],
				 snprintf(NULL, 0, "%lu", files), i, files);
			if (write_one(path, strtoul(argv[4], NULL, 10)) != 0)
				return 1;
		}
		return 0;
	}
	for (unsigned long i = 0; i < files; i++) {
		int n = snprintf(path, sizeof(path), "%s/", argv[2]);

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(path + n, sizeof(path) - (size_t)n, argv[4],
			 (unsigned long)((seed + (unsigned __int128)i * step) % files));
#pragma GCC diagnostic pop
		if (read_one(path) != 0)
			return 1;
	}
	return 0;
}
