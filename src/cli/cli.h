#pragma once
/* Subcommands. Only this folder prints for people and decides the exit status. */
#include <stdbool.h>

struct command {
	const char *name;
	const char *usage; /* "run WORKLOAD [-n RANKS] [key=value ...]" */
	const char *help;  /* one sentence */
	bool alone; /* reads and prints: of several processes that a launcher started only the first
		     * carries it out, the others leave at once */
	/* argv[0] is the subcommand's name. Returns the exit status. */
	int (*main)(int argc, char **argv);
};

extern const struct command *const command_table[]; /* NULL-terminated, written by the build */

/* Prints "stoker: <sentence>" on stderr and returns the exit status that the code stands for. */
struct err;
int cli_fail(const struct err *e);
