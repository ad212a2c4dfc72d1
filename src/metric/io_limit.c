#include "metric/io_limit.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "os/sysinfo.h"

/* One device, looked for in the files of the groups. */
struct sought {
	struct io_limit *out;
	const char *name;
	char number[32]; /* "254:0" */
};

static void take_less(const struct sought *s, double *least, const char *text)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || !(v > 0) || (*least > 0 && v >= *least))
		return;
	*least = v;
	snprintf(s->out->device, sizeof(s->out->device), "%.63s", s->name);
}

/* What follows the device's number in a file; false where it has no line. */
static bool line_of(const struct sought *s, const char *folder, const char *file, char *out,
		    size_t size)
{
	AUTO_FREE char *path = xasprintf("%s/%s", folder, file);
	FILE *f = WITH_MEMORY(fopen(path, "re"));
	size_t n = strlen(s->number);
	bool found = false;

	while (f && !found && fgets(out, (int)size, f))
		found = strncmp(out, s->number, n) == 0 && out[n] == ' ';
	if (f)
		fclose(f);
	if (found)
		memmove(out, out + n + 1, strlen(out + n + 1) + 1);
	return found;
}

static void look(void *arg, const char *folder, bool second)
{
	const struct sought *s = arg;
	char line[256], *at;

	if (!second) {
		if (line_of(s, folder, "blkio.throttle.read_bps_device", line, sizeof(line)))
			take_less(s, &s->out->bytes_per_s, line);
		if (line_of(s, folder, "blkio.throttle.read_iops_device", line, sizeof(line)))
			take_less(s, &s->out->reads_per_s, line);
		return;
	}
	if (!line_of(s, folder, "io.max", line, sizeof(line)))
		return;
	at = strstr(line, "rbps=");
	if (at)
		take_less(s, &s->out->bytes_per_s, at + strlen("rbps="));
	at = strstr(line, "riops=");
	if (at)
		take_less(s, &s->out->reads_per_s, at + strlen("riops="));
}

static void look_at_list(struct io_limit *out, const char *root, const struct block_list *l)
{
	AUTO_FREE char *list = xasprintf("%s/proc/self/cgroup", root);
	AUTO_FREE char *groups = xasprintf("%s/sys/fs/cgroup", root);

	for (uint32_t i = 0; i < l->n && i < BLOCK_DEVICES_MAX; i++) {
		struct sought s = {.out = out, .name = l->device[i].name};
		AUTO_FREE char *path = xasprintf("%s/dev", l->device[i].path);
		FILE *f = WITH_MEMORY(fopen(path, "re"));

		if (f && fgets(s.number, sizeof(s.number), f))
			s.number[strcspn(s.number, "\n")] = '\0';
		if (f)
			fclose(f);
		if (s.number[0])
			cgroup_walk(list, groups, "blkio", look, &s);
	}
}

void io_limit_of(struct io_limit *out, const char *root, const struct block_tree *tree)
{
	*out = (struct io_limit){0};
	look_at_list(out, root, &tree->whole);
	look_at_list(out, root, &tree->lower);
}
