#pragma once
/* The options of a command as rows: what is typed, where it goes, and what the help says of it. The
 * help texts and the man page are written from the same rows. */
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum flag_kind {
	FLAG_SET,    /* bool, without a value */
	FLAG_TEXT,   /* const char *, borrowed from argv */
	FLAG_LIST,   /* struct str_list: each time one more */
	FLAG_COUNT,  /* int64_t from `min` to `max` */
	FLAG_REAL,   /* double from `min` to `max`; a percent sign after it is taken, too, when the
		      * value's name is PERCENT */
	FLAG_CHOICE, /* int: the place of the value in `choices` */
	FLAG_SEED,   /* struct flag_seed: a number, which may be left out (--name or --name=N) */
};

struct flag_seed {
	bool set;
	uint64_t value;
};

struct flag {
	const char *name;   /* "--output"; of an operand, which is only explained, "WORKLOAD" */
	const char *letter; /* a short form, "-o"; or NULL */
	const char *hidden; /* a form that the help does not mention; or NULL */
	const char *value;  /* "FILE" */
	enum flag_kind kind;
	size_t offset; /* of its field in the command's arguments */
	int64_t min, max;
	const char *const *choices; /* NULL-terminated */
	const char *help;           /* text, without line breaks */
};

struct command;

/* Reads argv[1] on. Flags go into `args`, everything else to `operand`, in order; after "--" all
 * are operands. 1: the help was asked for, and is printed. ERR_USAGE names the nearest flag, and
 * which other command has one of that name. */
int flags_parse(const struct command *c, void *args, int argc, char **argv,
		int (*operand)(void *args, const char *word, struct err *e), struct err *e);
/* An `operand` for commands that have none. */
int flags_no_operand(void *args, const char *word, struct err *e);

/* "examples:" and two command lines; one that is too long for the narrowest terminal goes on in the
 * next line, behind a backslash, as a shell takes it. */
void flags_put_examples(struct buf *out, const char *const example[2]);
/* The same for the man page (roff). */
void examples_man(struct buf *out, const char *const example[2]);

/* Of all commands, for the man page (roff). */
void commands_man(struct buf *out);
