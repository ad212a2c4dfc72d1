#pragma once
/* What may come next on a command line, for the completion of shells. */

/* The first word of such a command line: 'stoker __complete WORD...'. */
#define COMPLETE_COMMAND "__complete"

/* Prints what the last of the words, which may be empty, can become: a line each, with a tab and a
 * description. A line that begins with a tab says what else is expected there: "files" or
 * "folders", which the shell completes itself. Words are only compared: nothing is opened, expanded
 * or run, and words that nobody types (control characters) have no candidates. Always 0. */
int complete_main(int argc, char **argv);

/* The scripts of src/cli/completion, which the build compiles in. */
extern const char completion_bash[], completion_zsh[], completion_fish[];
