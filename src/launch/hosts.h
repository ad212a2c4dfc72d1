#pragma once
/* 'stoker run --hosts': this program starts itself on other hosts over ssh, one agent a host, which
 * starts the processes there. No MPI and no other launcher takes part. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/* A host of the list. */
struct host_entry {
	char name[256];
	uint32_t processes, first; /* how many, and the number of the first one */
};

/* "h1,h2:4,user@h3": 4 processes on h2, one elsewhere. ERR_USAGE for empty names, names that begin
 * with '-' or hold what is no part of a host's name, and counts out of range. Frees with free(). */
int hosts_parse(const char *list, struct host_entry **out, size_t *count, struct err *e);

/* Lets this process have 3 descriptors for each of `n` beside its own: raises the limit as far as
 * it may. -EMFILE and a sentence about `what` when that is not enough. */
int hosts_descriptors(uint64_t n, const char *what, struct err *e);

/* The options that are for hosts_run alone. */
struct hosts_request {
	const char *hosts, *ssh; /* --hosts, --ssh; ssh NULL: not given */
	const struct str_list *ssh_args;
	bool copy_binary;
};

/* Carries out a command on all hosts of the request: its arguments (argv of this process without
 * those options) are those of every process. Prints what process 0 prints, and one sentence when a
 * host cannot be used; *status is the exit status, that of process 0. Negative: nothing was
 * started. */
int hosts_run(const struct hosts_request *a, int argc, char **argv, int *status, struct err *e);

/* The agent: what the program does with the only argument HOSTS_AGENT, and, if it was copied, its
 * folder, which is removed. Does not return before its processes have ended. */
#define HOSTS_AGENT "--hosts-agent"
int hosts_agent(int argc, char **argv);

/* ---- between the command and its agents; private to hosts*.c ---- */

/* Before its first message the agent says this: what a shell printed before it is skipped. The
 * number is that of the messages' layout. */
#define HOSTS_MARK "\nstoker agent 1\n"

enum hosts_message {
	HOSTS_JOB = 1, /* to the agent: struct hosts_job and its texts */
	HOSTS_SIGNAL,  /* to the agent: an int32_t, for all its processes */
	HOSTS_INVITE,  /* from process 0, and to all others */
	HOSTS_OUT,     /* from a process: of its standard output, or */
	HOSTS_ERR,     /* error output */
	HOSTS_END,     /* a process has ended: int32_t, its exit status */
	HOSTS_FAILED,  /* the agent could not start its processes: a sentence */
	HOSTS_MESSAGES
};

struct hosts_head {
	uint32_t magic, type, process, bytes; /* bytes that follow */
};
#define HOSTS_MAGIC 0x736b6831u
#define HOSTS_BYTES_MAX (16u << 20)

/* Followed by texts, each with its NUL: the folder to work in, the arguments, the variables. */
struct hosts_job {
	uint32_t first, count, processes, arguments, variables, zero;
};
