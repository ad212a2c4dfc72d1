/* Whole disks in /sys. */
#include "metric/block_device.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"

#define SECTOR_BYTES 512 /* of the counters, whatever the device's own is */

static bool nearest(const char *path, struct stat *st)
{
	AUTO_FREE char *at = path_absolute(path);

	while (stat(at, st) < 0) {
		char *parent;

		if (strcmp(at, "/") == 0)
			return false;
		parent = path_dirname(at);
		free(at);
		at = parent;
	}
	return true;
}

void block_device_of(struct block_device *d, const char *path)
{
	char link[64], real[PATH_MAX], probe[PATH_MAX + 16];
	struct stat st;
	char *slash;

	*d = (struct block_device){0};
	if (!nearest(path, &st))
		return;
	snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", major(st.st_dev), minor(st.st_dev));
	if (!realpath(link, real))
		return;
	snprintf(probe, sizeof(probe), "%s/partition", real);
	if (access(probe, F_OK) == 0) {
		slash = strrchr(real, '/');
		if (slash)
			*slash = '\0';
	}
	slash = strrchr(real, '/');
	if (!slash || strlen(real) + sizeof("/stat") > sizeof(d->stat))
		return;
	snprintf(d->name, sizeof(d->name), "%.60s", slash + 1);
	snprintf(d->stat, sizeof(d->stat), "%.500s/stat", real);
}

void block_device_sample(const struct block_device *d, struct block_counters *out)
{
	unsigned long long v[11] = {0};
	FILE *f;

	*out = (struct block_counters){0};
	if (!d->name[0])
		return;
	f = fopen(d->stat, "re");
	if (!f)
		return;
	out->known =
		fscanf(f, "%llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1],
		       &v[2], &v[3], &v[4], &v[5], &v[6], &v[7], &v[8], &v[9], &v[10]) == 11;
	fclose(f);
	out->reads = v[0];
	out->read_bytes = v[2] * SECTOR_BYTES;
	out->writes = v[4];
	out->written_bytes = v[6] * SECTOR_BYTES;
	out->busy_ms = v[9];
	out->queued_ms = v[10];
}
