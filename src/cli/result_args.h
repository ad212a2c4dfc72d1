#pragma once
/* The arguments of commands that judge results: folders, --json, --check. */
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "cli/cli.h"

struct result_args {
	bool json, check;
	const char *const *folder; /* borrowed from argv */
	size_t folders;
};

/* 1: the help was asked for, and printed. ERR_USAGE for an option that the command does not have.
 */
int result_args_parse(struct result_args *a, const struct command *c, const char *help, int argc,
		      char **argv, struct err *e);
