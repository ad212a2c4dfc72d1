#pragma once
/* MPI libraries, reached through their binary interfaces: no header of theirs is needed to build
 * the program, and no file beside it to run. What a library is, is told by what it offers (symbols,
 * its version text), never by the name of its file. */
#include "base/err.h"
#include "comm/meet.h"

struct mpi_library {
	/* A handle is a pointer here. Where it is an int, the callee looks at the lower half of the
	 * register, in which all platforms pass both. */
	int (*init_thread)(int *argc, char ***argv, int required, int *provided);
	int (*comm_rank)(void *comm, int *rank);
	int (*comm_size)(void *comm, int *size);
	int (*bcast)(void *p, int n, void *type, int root, void *comm);
	/* NULL: it has none. A request is as wide as a handle. */
	int (*ibarrier)(void *comm, void *request);
	int (*ibcast)(void *p, int n, void *type, int root, void *comm, void *request);
	int (*test)(void *request, int *flag, void *status);
	int (*finalize)(void);
	int (*abort_all)(void *comm, int status);
	int (*error_string)(int code, char *text, int *length); /* NULL: it has none */
	void *comm_world, *byte;
	int funneled, serialized; /* levels of threads for init_thread; higher ones allow more */
	bool serves;       /* once begun to be kept: barriers can be waited for in a thread */
	const char *abi;   /* "Open MPI's" */
	char version[128]; /* the first line of what it says of itself */
	char name[256];    /* its path, or the name by which the loader found it */
};

/* What one call could return in every library; MPI_SUCCESS is 0 in all. */
#define MPI_TEXT_MAX 16384

/* Finds and loads the library that job->library asks for, or that belongs to the launcher: a path
 * is taken as it is. Otherwise looked for are: one that is loaded already; in the folders of the
 * launcher (OPAL_PREFIX and the like, where its program lies); by the loader, which knows
 * LD_LIBRARY_PATH; in the usual folders. ERR_ABSENT with all that was tried. It stays loaded. */
int mpi_library_find(const struct meet_job *job, struct mpi_library *out, struct err *e);
