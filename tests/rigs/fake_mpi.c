/* An MPI library of two processes or more on one host for tests/mpi/test_libraries.py, which
 * compiles it with -DVERSION="text", one of -DSTANDARD, -DOPENMPI, -DMPICH (its binary interface;
 * none: an unknown one), and -DLACKS to leave out a function. It leaves with a sentence when a
 * handle is not the one of that interface. FAKE_MPI says what goes wrong; FAKE_MPI_FOLDER is where
 * bytes are passed on. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef OPENMPI
char ompi_mpi_comm_world[64], ompi_mpi_byte[64];
#endif
#if defined(STANDARD) || defined(OPENMPI)
int MPI_Abi_get_version(int *major, int *minor)
{
#ifdef STANDARD
	*major = 1, *minor = 0;
#else
	*major = *minor = -1;
#endif
	return 0;
}
#endif
#ifdef MPICH
typedef int handle;
#else
typedef void *handle;
#endif

static void check(handle comm, handle type)
{
#if defined(STANDARD)
	int right = (uintptr_t)comm == 0x101 && (!type || (uintptr_t)type == 0x247);
#elif defined(OPENMPI)
	int right = comm == ompi_mpi_comm_world && (!type || type == ompi_mpi_byte);
#elif defined(MPICH)
	int right = comm == 0x44000000 && (!type || type == 0x4c00010d);
#else
	int right = 0;
#endif
	if (!right) {
		fprintf(stderr, "fake MPI: a handle is wrong\n");
		_exit(9);
	}
}

static int is(const char *what)
{
	const char *said = getenv("FAKE_MPI");

	return said && strcmp(said, what) == 0;
}

static int number(const char *one, const char *other)
{
	const char *v = getenv(one) ? getenv(one) : getenv(other);

	return v ? (int)strtol(v, NULL, 10) : 0;
}

static int begun, over;

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
#ifdef STANDARD
	const int funneled = 1024; /* MPI_THREAD_FUNNELED */
#else
	const int funneled = 1;
#endif

	(void)argc, (void)argv;
	if (begun++ || over || required != funneled)
		_exit(9);
	printf("fake MPI prints this\n");
	if (is("hang"))
		pause();
	if (is("exit"))
		exit(0);
	*provided = required;
	return is("error") ? 15 : 0;
}

int MPI_Get_library_version(char *text, int *length)
{
	*length = snprintf(text, 8192, "%s", VERSION);
	return 0;
}

int MPI_Error_string(int code, char *text, int *length)
{
	*length = snprintf(text, 512, "fake error of code %d", code);
	return 0;
}

int MPI_Comm_rank(handle comm, int *rank)
{
	check(comm, 0);
	*rank = is("alone") ? 0 : number("OMPI_COMM_WORLD_RANK", "PMI_RANK");
	return 0;
}

int MPI_Comm_size(handle comm, int *size)
{
	check(comm, 0);
	*size = is("alone") ? 1 : number("OMPI_COMM_WORLD_SIZE", "PMI_SIZE");
	return 0;
}

#ifndef LACKS
int MPI_Bcast(void *p, int n, handle type, int root, handle comm)
{
	char name[4096], part[4096 + 8];
	FILE *f;

	check(comm, type);
	if (is("broadcast"))
		return 16;
	snprintf(name, sizeof(name), "%s/bytes", getenv("FAKE_MPI_FOLDER"));
	snprintf(part, sizeof(part), "%s.part", name);
	if (number("OMPI_COMM_WORLD_RANK", "PMI_RANK") == root) {
		f = fopen(part, "wb");
		if (!f || fwrite(p, 1, (size_t)n, f) != (size_t)n || fclose(f) != 0 ||
		    rename(part, name) != 0)
			return 16;
		return 0;
	}
	while (!(f = fopen(name, "rb")))
		usleep(1000);
	n = fread(p, 1, (size_t)n, f) == (size_t)n ? 0 : 16;
	fclose(f);
	return n;
}
#endif

int MPI_Finalize(void)
{
	over = 1;
	return 0;
}

int MPI_Abort(handle comm, int status)
{
	check(comm, 0);
	_exit(status);
}
