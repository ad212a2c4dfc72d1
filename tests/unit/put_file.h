#pragma once
/* Files made by hand, in place of those of the kernel. Include after <cmocka.h>. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Writes `text` to the file `name` below the folder `root`, whose subfolders are made. */
static inline void put_file(const char *root, const char *name, const char *text)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(path, 0777);
		*p = '/';
	}
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}
