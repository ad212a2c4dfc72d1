#pragma once
/* Commands. Only this folder prints for people and decides the exit status. */
#include <jansson.h>
#include <stdbool.h>

struct flag;

struct command {
	const char *name;     /* "run"; of a subcommand "study run" */
	const char *operands; /* as in the usage: "WORKLOAD [key=value ...]" */
	const char *help;     /* one sentence */
	const char *about;    /* more for --help: paragraphs, separated by line breaks; or NULL */
	const struct flag *const *flags; /* NULL-terminated; operands to be explained come first */
	/* Two command lines that run as they are printed, in this order, in a copy of the source:
	 * those of 'generate' and 'run' make what the others name. */
	const char *examples[2];
	const struct command *const
		*subcommand; /* NULL-terminated, in place of flags and carry_out */
	const char
		*link;  /* the program runs this command when it is called by that name; or NULL */
	bool generates; /* writes the dataset: its folder (--data) may be empty */
	bool several;   /* takes several workloads: "NAME:8", "NAME:?" */
	bool alone; /* of the processes that a launcher started only the first carries it out, the
		     * others leave at once */
	/* argv[0] is the command's last word. Returns the exit status. */
	int (*carry_out)(const struct command *c, int argc, char **argv);
	void (*list)(void); /* what the carry_out of lists prints (cmd_show.c) */
};

extern const struct command *const command_table[]; /* NULL-terminated, written by the build */

/* Runs a command, or the subcommand that argv[1] names. */
int command_main(const struct command *c, int argc, char **argv);

/* The examples of the program as a whole. */
extern const char *const program_examples[2];

struct buf;
/* Prints composed text on stdout, at once, and releases it. */
void cli_print(struct buf *text);
/* --json: from here on whatever is printed on stdout is left out, but for cli_put_json's. */
void cli_only_json(void);
/* Prints a document, and releases it. */
void cli_put_json(json_t *value);
struct err;
/* The same of a file that a command has written. */
int cli_put_json_file(const char *folder, const char *name, struct err *e);
/* Ends the process, in which threads hang that use what the command was given: what was printed is
 * written out, and pipes, sockets and terminals are closed, as a thread that the kernel cannot end
 * keeps them open and whoever reads them waiting. */
_Noreturn void cli_leave(int status);
/* Prints "stoker: <sentence>" on stderr and returns the exit status that the code stands for. */
int cli_fail(const struct err *e);
