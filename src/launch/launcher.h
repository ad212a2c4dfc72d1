#pragma once
/* What started this process, and if it is one of several, how it comes to know the others. */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "comm/meet.h"
#include "comm/net.h"

struct launcher {
	const char *name;       /* "mpirun (Open MPI)"; NULL: none */
	const char *mark;       /* the variable that says so */
	bool own;               /* this program, on its agents' hosts (launch/hosts.h) */
	bool no_library;        /* STOKER_MPI=none; launcher_way fills it in */
	bool manages;           /* it has a process management that MPI libraries use */
	bool mpich;             /* MPICH's own, or one that is made of it */
	int64_t processes;      /* 0: not said */
	int64_t process;        /* its number; -1: not said */
	struct net_where where; /* the others; its text is the environment's */
	struct meet_job job;
	const struct meet_way *way;                 /* how the processes meet; NULL: they cannot */
	char job_name[512], rank[64], address[320]; /* job's */
};

/* Reads the environment that launchers set, and STOKER_INTERFACES: other interfaces than those that
 * the launcher was told to use. */
void launcher_find(struct launcher *out);

/* 0, or -ECONNREFUSED with the variable that is missing, no number or contradicts another. */
int launcher_check(const struct launcher *l, struct err *e);

/* How the processes meet: fills `job` and `way`. Equal environments lead to the same way, because
 * all processes have to take it. STOKER_MPI asks for an MPI library: "openmpi", "mpich" or
 * "standard" instead of the launcher's kind, or the path of one; "none" for the ways without.
 * STOKER_START_LIMIT: for how many seconds the others are waited for. STOKER_TREE_FROM:
 * net_set_tree_from. ERR_USAGE for other values; -ECONNREFUSED for numbers that no launcher gives.
 */
int launcher_way(struct launcher *l, struct err *e);

/* STOKER_START_LIMIT, or its default. ERR_USAGE for what is none. */
int launcher_start_limit(int64_t *limit_ns, struct err *e);

/* Whether this process is the first of those that a launcher started, or there is no launcher. */
bool launcher_leads(void);

/* ERR_USAGE when a launcher started this command, which starts runs itself (`why` says so), in more
 * processes than one. */
int launcher_refuse(const char *command, const char *why, struct err *e);

/* How a process of several goes on: as a child of the one that was started, which stays behind to
 * hold its place with the launcher, passes signals on and ends as the child does. A launcher that
 * kills what it started when one of several dies therefore does not kill the child before that has
 * written down what was measured; nor are the MPI library's memory and threads in the process that
 * is measured. */
struct launch {
	int control; /* its end means that the process that was started is gone */
	uint32_t process, processes;
	struct net_invitation invitation;
	struct net_listener *listener; /* in process 0 */
	struct fabric *fabric;         /* the launcher's MPI library, as asked for; or NULL */
};

/* Whether the processes meet through the launcher's MPI library, which the process that was started
 * keeps to the end, for barriers. LAUNCH_MPI_TRIED: without a library that can be used they meet as
 * otherwise, and out->fabric says why; on all hosts or on none. */
enum launch_mpi { LAUNCH_MPI_NOT_KEPT, LAUNCH_MPI_KEPT, LAUNCH_MPI_TRIED };

/* Call before any thread is started. 0: this is the child, and `out` is filled. 1: this is the
 * process that was started, and all is over: leave with *status. Negative: `e` says why not; also
 * for a launcher and a library that do not match. -ECONNREFUSED: no other process may know. */
int launch(struct launcher *l, enum launch_mpi mpi, struct launch *out, int *status, struct err *e);
