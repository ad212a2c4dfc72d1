#pragma once
/* What a module over an MPI library offers. A module is a shared object, built against one MPI
 * library and loaded when its launcher started this process, so that the program itself needs none.
 * MPI serves to introduce the processes to each other, and is over before the run begins. */
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define MPI_MODULE_ABI 1u
#define MPI_MODULE_SYMBOL "stoker_mpi_module"

struct mpi_module {
	uint32_t abi; /* MPI_MODULE_ABI of its build; the first member in every version */
	/* Begins MPI and says what it knows; `library` gets its name and version. All return 0, or
	 * the library's error code. Called from one thread. */
	int (*begin)(int *process, int *processes, char *library, size_t library_size);
	int (*broadcast)(void *p, size_t n); /* from process 0 to all */
	int (*end)(void);
	void (*give_up)(int status); /* ends all processes; may not return */
};

/* Loads the module for `library` ("openmpi", "mpich", or the path of a module), which lies beside
 * the program or in ../lib/stoker. ERR_ABSENT with a sentence when there is none or it does not
 * load; `launcher` is for that. It stays loaded. */
int mpi_load(const char *library, const char *launcher, const struct mpi_module **out,
	     struct err *e);
