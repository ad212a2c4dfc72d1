/* Finds and loads the module of an MPI library. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "comm/mpi_module.h"

static char *program_folder(void)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n <= 0)
		return xstrdup(".");
	path[n] = '\0';
	return path_dirname(path);
}

static char *module_path(const char *library)
{
	static const char *const places[] = {"%s/stoker_mpi_%s.so",
					     "%s/../lib/stoker/stoker_mpi_%s.so",
					     "%s/../lib64/stoker/stoker_mpi_%s.so"};
	AUTO_FREE char *folder = program_folder();

	if (strchr(library, '/'))
		return xstrdup(library);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		char path[PATH_MAX + 64];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(path, sizeof(path), places[i], folder, library);
#pragma GCC diagnostic pop
		if (access(path, R_OK) == 0)
			return xstrdup(path);
	}
	return NULL;
}

int mpi_load(const char *library, const char *launcher, const struct mpi_module **out,
	     struct err *e)
{
	AUTO_FREE char *path = module_path(library);
	const struct mpi_module *m;
	void *handle;

	if (!path)
		return err_set(
			e, ERR_ABSENT,
			"this process was started by %s, but there is no module for its MPI "
			"library (stoker_mpi_%s.so next to the program or in ../lib/stoker): build "
			"with mpicc of that library installed, or use another launcher",
			launcher, library);
	/* its own plugins look for the library's symbols */
	handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	if (!handle)
		return err_set(e, ERR_ABSENT,
			       "this process was started by %s, but the module for its MPI library "
			       "cannot be loaded: %s",
			       launcher, dlerror());
	m = dlsym(handle, MPI_MODULE_SYMBOL);
	if (!m || m->abi != MPI_MODULE_ABI)
		return err_set(e, ERR_ABSENT,
			       "'%s' belongs to another version of the program: build and install "
			       "both together",
			       path);
	*out = m;
	return 0;
}
