/* Paths as texts. */
#include "base/path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

char *path_join(const char *dir, const char *name)
{
	size_t n = strlen(dir);

	if (name[0] == '/' || n == 0)
		return xstrdup(name);
	return xasprintf(dir[n - 1] == '/' ? "%s%s" : "%s/%s", dir, name);
}

char *path_dirname(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return xstrdup(".");
	return slash == path ? xstrdup("/") : xstrndup(path, (size_t)(slash - path));
}

const char *path_basename(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

char *path_absolute(const char *path)
{
	AUTO_FREE char *cwd = NULL;

	if (path[0] == '/')
		return xstrdup(path);
	cwd = getcwd(NULL, 0);
	if (!cwd && errno == ENOMEM)
		out_of_memory();
	return path_join(cwd ? cwd : ".", strncmp(path, "./", 2) == 0 ? path + 2 : path);
}

char *path_nearest(const char *path, struct stat *st)
{
	char *at = path_absolute(path);

	while (stat(at, st) < 0) {
		char *parent;

		if (strcmp(at, "/") == 0) {
			free(at);
			return NULL;
		}
		parent = path_dirname(at);
		free(at);
		at = parent;
	}
	return at;
}

char *path_of_program(struct err *e)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n > 0)
		return xstrndup(path, (size_t)n);
	err_set(e, -ENOENT, "cannot find the path of this program (/proc/self/exe)");
	return NULL;
}
