#pragma once
/* How the levels of verdicts look on a terminal, in both forms of a result (answer.h, text.h). */
#include "result/judgement.h"

#define TEXT_BOLD "\033[1m"
#define TEXT_PLAIN "\033[0m"

struct level_look {
	enum verdict_level level;
	const char *word;  /* "FAIL" */
	const char *color; /* the escape sequence that begins it */
};

#define LEVEL_LOOKS 4
#define LEVEL_LOOKS_BAD 2 /* the first ones are failures and warnings */
/* Each level once, the worst first. */
extern const struct level_look level_looks[LEVEL_LOOKS];
