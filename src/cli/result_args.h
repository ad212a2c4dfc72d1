#pragma once
/* The arguments of commands that judge results: folders, --json, --check. */
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "cli/cli.h"
#include "cli/flags.h"

struct result_args {
	struct str_list folder; /* first: the operands */
	bool json, check, verbose, quick;
	double tolerance; /* percent; negative: not given */
};

extern const struct flag flag_json;

struct records;
struct audit;
/* Prints on stderr which runs have left no result so far. */
void result_tell_running(const struct records *r);
/* What could not be read: a line on stderr for each result of several, and ERR_DATA with the
 * sentence, or with how many there are. 0: nothing. */
int result_damage(const struct records *r, const struct audit *a, struct err *e);
