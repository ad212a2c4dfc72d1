#pragma once
/* 'stoker run --hosts': this program starts itself on other hosts over ssh, one agent a host, which
 * starts the processes there. No MPI and no other launcher takes part. */
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

struct cli_args;

/* A host of the list. */
struct host_entry {
	char name[256];
	uint32_t processes, first; /* how many, and the number of the first one */
};

/* "h1,h2:4,user@h3": 4 processes on h2, one elsewhere. ERR_USAGE for empty names, names that begin
 * with '-' or hold what is no part of a host's name, and counts out of range. Frees with free(). */
int hosts_parse(const char *list, struct host_entry **out, size_t *count, struct err *e);

/* The command for the shell of the remote host: runs `program` as the agent there; or, with
 * `bytes`, the program that comes first over the connection. */
void hosts_put_command(struct buf *out, const char *program, uint64_t bytes);

/* Lets this process have 3 descriptors for each of `n` beside its own: raises the limit as far as
 * it may. -EMFILE and a sentence about `what` when that is not enough. */
int hosts_descriptors(uint64_t n, const char *what, struct err *e);

/* Carries out a command on all hosts of a->hosts: its arguments (argv of this process, with the
 * options that are for this function alone) are those of every process. Prints what process 0
 * prints, and one sentence when a host cannot be used. Returns the exit status: that of process 0.
 */
int hosts_run(const struct cli_args *a, int argc, char **argv);

/* The agent: what the program does with the only argument HOSTS_AGENT, and, if it was copied, its
 * folder, which is removed. Does not return before its processes have ended. */
#define HOSTS_AGENT "--hosts-agent"
int hosts_agent(int argc, char **argv);
