/* Runs a fuzz target over every file of the folders named on the command line. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv)
{
	unsigned long files = 0;

	for (int i = 1; i < argc; i++) {
		DIR *d = opendir(argv[i]);
		struct dirent *entry;

		if (!d) {
			fprintf(stderr, "cannot open the corpus '%s'\n", argv[i]);
			return 1;
		}
		while ((entry = readdir(d))) {
			char path[4096];
			struct buf b = {0};

			if (entry->d_name[0] == '.')
				continue;
			snprintf(path, sizeof(path), "%s/%s", argv[i], entry->d_name);
			if (file_read(path, 1u << 26, &b, NULL) != 0)
				return 1;
			/* an exact-size copy, so that a sanitizer sees one byte too many */
			uint8_t *copy = malloc(b.len ? b.len : 1);
			memcpy(copy, b.data, b.len);
			LLVMFuzzerTestOneInput(copy, b.len);
			free(copy);
			buf_release(&b);
			files++;
		}
		closedir(d);
	}
	printf("%lu corpus files replayed\n", files);
	return files ? 0 : 1;
}
