#pragma once
/* The arguments of commands that judge results: folders, --json, --check. */
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "cli/cli.h"
#include "cli/flags.h"

struct result_args {
	bool json, check, verbose;
	double tolerance;    /* percent; negative: not given */
	const char **folder; /* of argc entries; the texts are borrowed from argv */
	size_t folders;
};

extern const struct flag flag_json;

/* 1: the help was printed. Free a->folder in any case. */
int result_args_parse(struct result_args *a, const struct command *c, int argc, char **argv,
		      struct err *e);
