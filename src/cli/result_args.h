#pragma once
/* The arguments of commands that judge results: folders, --json, --check. */
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "cli/cli.h"
#include "cli/flags.h"

struct result_args {
	bool json, check, verbose, quick;
	double tolerance;    /* percent; negative: not given */
	const char **folder; /* of argc entries; the texts are borrowed from argv */
	size_t folders;
};

extern const struct flag flag_json;

struct records;
struct audit;
/* Prints on stderr which runs have left no result so far. */
void result_tell_running(const struct records *r);
/* What could not be read: a line on stderr for each result of several, and ERR_DATA with the
 * sentence, or with how many there are. 0: nothing. */
int result_damage(const struct records *r, const struct audit *a, struct err *e);

/* 1: the help was printed. Free a->folder in any case. */
int result_args_parse(struct result_args *a, const struct command *c, int argc, char **argv,
		      struct err *e);
