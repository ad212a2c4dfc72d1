#include "base/mount.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"

#define MOUNTS_MAX (16u << 20)

/* One line: "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw". */
static bool split_mount_line(char *line, uint64_t st_dev, struct mount *out)
{
	char *save = NULL, *field[6];
	unsigned a, b;

	for (int i = 0; i < 6; i++) {
		field[i] = strtok_r(i ? NULL : line, " ", &save);
		if (!field[i])
			return false;
	}
	if (sscanf(field[2], "%u:%u", &a, &b) != 2 || makedev(a, b) != st_dev)
		return false;
	out->place = field[4];
	out->options = field[5];
	for (char *f = strtok_r(NULL, " ", &save); f; f = strtok_r(NULL, " ", &save))
		if (strcmp(f, "-") == 0)
			break;
	out->type = strtok_r(NULL, " ", &save);
	out->source = strtok_r(NULL, " ", &save);
	out->super = strtok_r(NULL, " ", &save);
	return out->type && out->source && out->super;
}

bool mount_find(const char *root, uint64_t st_dev, struct mount *out)
{
	AUTO_FREE char *path = xasprintf("%s/proc/self/mountinfo", root);
	struct buf all = {0};
	char *save = NULL;

	*out = (struct mount){0};
	if (file_read(path, MOUNTS_MAX, &all, NULL) < 0) {
		buf_release(&all);
		return false;
	}
	out->text = buf_take(&all);
	for (char *line = strtok_r(out->text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		if (split_mount_line(line, st_dev, out))
			return true;
	mount_release(out);
	return false;
}

void mount_release(struct mount *m)
{
	free(m->text);
	*m = (struct mount){0};
}
