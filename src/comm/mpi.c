/* The module over an MPI library: compiled by that library's own compiler, not part of the program.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "comm/mpi_module.h"

static int begin(int *process, int *processes, char *library, size_t library_size)
{
	char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
	int length = 0, provided, rc = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);

	if (rc == MPI_SUCCESS)
		rc = MPI_Comm_rank(MPI_COMM_WORLD, process);
	if (rc == MPI_SUCCESS)
		rc = MPI_Comm_size(MPI_COMM_WORLD, processes);
	if (rc == MPI_SUCCESS)
		MPI_Get_library_version(text, &length);
	text[strcspn(text, "\n,")] = '\0';
	for (char *p = text; *p; p++)
		*p = *p == '\t' ? ' ' : *p;
	snprintf(library, library_size, "%s", text);
	return rc;
}

static int broadcast(void *p, size_t n)
{
	return MPI_Bcast(p, (int)n, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static int end(void)
{
	return MPI_Finalize();
}

static void give_up(int status)
{
	MPI_Abort(MPI_COMM_WORLD, status);
}

extern const struct mpi_module stoker_mpi_module;
__attribute__((visibility("default"))) const struct mpi_module stoker_mpi_module = {
	.abi = MPI_MODULE_ABI,
	.begin = begin,
	.broadcast = broadcast,
	.end = end,
	.give_up = give_up,
};
