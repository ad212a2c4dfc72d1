#pragma once
/* How the processes that a launcher started tell each other the first thing, before there are
 * connections: process 0 where it listens (struct net_invitation). Each way brings bytes of process
 * 0 to all others and is over before the run begins. A process has one meeting at most, made by one
 * thread.
 *
 * All functions return 0 or negative with a sentence. ERR_CANCELED: another process ended the
 * meeting and says why. -ECONNREFUSED: process 0 may not know of this failure, or be gone. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { MEET_TOKEN = 32 };

struct meet_job {
	const char *launcher;   /* "mpirun (Open MPI)" */
	const char *name;       /* the same in all processes of the job, and in no other job of this
				 * user on this host; NULL: not known */
	const char *library;    /* of MPI: "openmpi", "mpich", "standard", a path, or NULL: any */
	const char *rank;       /* the variable that says a process's number, as in its environment:
				 * "PMI_RANK=1"; NULL: none */
	const char *address;    /* of process 0, "HOST:PORT"; NULL: not known */
	char token[MEET_TOKEN]; /* with it: what only processes of the job can know */
	bool keeps; /* an MPI library serves on, in another thread than the one that begins it */
	int64_t process, processes; /* as the launcher says; -1 and 0: it does not */
	int64_t limit_ns;           /* for how long the others are waited for */
};

struct meet_place {
	uint32_t process, processes;
};

struct meet_way {
	/* Says who this process is. */
	int (*begin)(const struct meet_job *job, struct meet_place *place, struct err *e);
	/* The n bytes of process 0 to all; all know n. */
	int (*broadcast)(void *p, size_t n, struct err *e);
	void (*end)(void);
	/* In place of broadcast, in process 0: there will be none. May end this process. */
	void (*give_up)(void);
};

/* Over a local socket, for processes that are all on this host. Needs the numbers and the name of
 * the job. */
extern const struct meet_way meet_on_host;

/* Over connections to the address that the launcher gave to all: its port, or one of the seven
 * behind it where others have that. Needs the numbers, the address and the token, without which
 * nobody gets a byte. */
extern const struct meet_way meet_at_address;

/* Over the connection to the launcher that PMI_FD names, or, without it, one made to PMI_PORT:
 * version 1 of the process management interface as MPICH's and Intel's launchers, Flux and Slurm's
 * plugin pmi2 speak it. Needs the number of this process, and with PMI_FD how many there are. */
extern const struct meet_way meet_over_pmi;

/* Over the socket that this variable names, whose other end passes on what process 0 says to all
 * others ('stoker run --hosts'). Needs the numbers. */
#define MEET_AGENT_FD "STOKER_HOSTS_FD"
extern const struct meet_way meet_over_agent;

/* Over the MPI library of the launcher (comm/mpi_library.h). No time limit: a library may hang,
 * print and end the process. */
extern const struct meet_way meet_over_mpi;
/* The library's path or name; "" before it was found. Any thread. */
const char *meet_mpi_name(void);
/* The library itself, after begin and until end. */
struct mpi_library;
const struct mpi_library *meet_mpi_library(void);
