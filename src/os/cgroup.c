#include "os/cgroup.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static void walk_up(const char *root, const char *mount, const char *group, bool second,
		    cgroup_fn *each, void *arg)
{
	char folder[PATH_MAX];
	size_t stop;
	int n = snprintf(folder, sizeof(folder), "%s/%s", root, mount);

	if (n < 0 || (size_t)n >= sizeof(folder))
		return;
	stop = (size_t)n;
	n = snprintf(folder + stop, sizeof(folder) - stop, "%s", group);
	if (n < 0 || (size_t)n >= sizeof(folder) - stop)
		folder[stop] = '\0';
	for (;;) {
		each(arg, folder, second);
		if (strlen(folder) <= stop)
			return;
		*strrchr(folder, '/') = '\0';
		if (strlen(folder) < stop)
			return;
	}
}

static bool lists(char *controllers, const char *wanted)
{
	char *rest;

	for (char *c = strtok_r(controllers, ",", &rest); c; c = strtok_r(NULL, ",", &rest))
		if (strcmp(c, wanted) == 0)
			return true;
	return false;
}

void cgroup_walk(const char *list, const char *root, const char *controller, cgroup_fn *each,
		 void *arg)
{
	/* version 1 mounts the two controllers of processors together, under either name */
	const char *mounts[] = {"", "unified", controller, "cpu,cpuacct", "cpuacct,cpu"};
	size_t first_end = strcmp(controller, "cpu") == 0 ? 5 : 3;
	FILE *f = WITH_MEMORY(fopen(list, "re"));
	char *line = NULL;
	size_t cap = 0;

	if (!f)
		return;
	while (xgetline(&line, &cap, f) >= 0) {
		char *controllers = strchr(line, ':');
		char *group = controllers ? strchr(controllers + 1, ':') : NULL;
		bool second;

		if (!group)
			continue;
		*group++ = '\0';
		group[strcspn(group, "\n")] = '\0';
		second = controllers[1] == '\0';
		if (group[0] != '/' || (!second && !lists(controllers + 1, controller)))
			continue;
		for (size_t i = second ? 0 : 2; i < (second ? 2 : first_end); i++)
			walk_up(root, mounts[i], group, second, each, arg);
	}
	free(line);
	fclose(f);
}

bool cgroup_number(const char *folder, const char *name, uint64_t *out)
{
	char path[PATH_MAX + 64], text[64] = "", *end;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = WITH_MEMORY(fopen(path, "re"));
	if (!f)
		return false;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	*out = strtoull(text, &end, 10);
	return end != text;
}

bool cgroup_named_number(const char *path, const char *name, uint64_t *out)
{
	FILE *f = WITH_MEMORY(fopen(path, "re"));
	bool found = false;
	char line[256];
	size_t n = strlen(name);

	while (f && !found && fgets(line, sizeof(line), f))
		found = strncmp(line, name, n) == 0 && (line[n] == ' ' || line[n] == '\t') &&
			sscanf(line + n, "%" SCNu64, out) == 1;
	if (f)
		fclose(f);
	return found;
}
