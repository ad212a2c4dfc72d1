#pragma once
/* The options of a command as rows: what is typed, where it goes, and what the help says of it. The
 * help texts and the man page are written from the same rows. */
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "conf/opt.h"

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
	const char *bare;   /* the value where none follows but another option; NULL: one must */
	enum flag_kind kind;
	size_t offset; /* of its field in the command's arguments */
	int64_t min, max;
	const char *const *choices; /* NULL-terminated */
	const char *help;           /* text, without line breaks */
	/* Appends what the help says before that, where it is a list of rows; or NULL. */
	void (*put_rows)(struct buf *out);
};

/* A row: name, value's name (none for F_SET), field of FLAG_ARGS, what the value may be, help; then
 * .letter and .hidden. FLAG_ARGS, which the file defines, is the struct of the command's arguments;
 * a field of another type than the kind's does not compile. F() is a row inside a list of rows. */
#define FLAG_ROW(k, ctype, n, field, ...)                                                          \
	{                                                                                          \
		.name = n, .kind = k, .offset = OPT_FIELD(FLAG_ARGS, field, ctype), __VA_ARGS__    \
	}
#define F_OPERAND(n, text, ...)                                                                    \
	{                                                                                          \
		.name = n, .help = text, __VA_ARGS__                                               \
	}
#define F_SET(n, field, text, ...) FLAG_ROW(FLAG_SET, bool, n, field, .help = text, __VA_ARGS__)
#define F_TEXT(n, v, field, text, ...)                                                             \
	FLAG_ROW(FLAG_TEXT, const char *, n, field, .value = v, .help = text, __VA_ARGS__)
#define F_LIST(n, v, field, text, ...)                                                             \
	FLAG_ROW(FLAG_LIST, struct str_list, n, field, .value = v, .help = text, __VA_ARGS__)
#define F_COUNT(n, v, field, least, most, text, ...)                                               \
	FLAG_ROW(FLAG_COUNT, int64_t, n, field, .value = v, .min = least, .max = most,             \
		 .help = text, __VA_ARGS__)
#define F_REAL(n, v, field, least, most, text, ...)                                                \
	FLAG_ROW(FLAG_REAL, double, n, field, .value = v, .min = least, .max = most, .help = text, \
		 __VA_ARGS__)
#define F_CHOICE(n, v, field, values, text, ...)                                                   \
	FLAG_ROW(FLAG_CHOICE, int, n, field, .value = v, .choices = values, .help = text,          \
		 __VA_ARGS__)
#define F_SEED(n, v, field, text, ...)                                                             \
	FLAG_ROW(FLAG_SEED, struct flag_seed, n, field, .value = v, .help = text, __VA_ARGS__)
#define F(kind, ...) (&(const struct flag)F_##kind(__VA_ARGS__))

struct command;

/* Reads argv[1] on. Flags go into `args`, everything else to `operand`, in order; after "--" all
 * are operands. 1: the help was asked for, and is printed. ERR_USAGE names the nearest flag, and
 * which other command has one of that name. */
int flags_parse(const struct command *c, void *args, int argc, char **argv,
		int (*operand)(void *args, const char *word, struct err *e), struct err *e);
/* The command's flag that the `n` bytes name, --help among them, or NULL. */
const struct flag *flag_find(const struct command *c, const char *name, size_t n);
/* What sets the field of a flag as it is in `args`, "--name=value" each; nothing where it was not
 * given: NULL, NaN, false, or a count below its least. */
void flag_put_words(const struct flag *f, const void *args, struct str_list *out);
/* An `operand` for commands that have none. */
int flags_no_operand(void *args, const char *word, struct err *e);
/* One for commands whose arguments begin with a struct str_list, which gets each word. */
int flags_list_operand(void *args, const char *word, struct err *e);

/* The carry_out of a command that needs no more: reads the arguments, does the `work` unless the
 * help was asked for, and releases the lists among the arguments. Prints the error; the exit
 * status. */
int flags_carry_out(const struct command *c, void *args, int argc, char **argv,
		    int (*operand)(void *args, const char *word, struct err *e),
		    int (*work)(void *args, struct err *e));

/* "examples:" and two command lines; one that is too long for the narrowest terminal goes on in the
 * next line, behind a backslash, as a shell takes it. */
void flags_put_examples(struct buf *out, const char *const example[2]);
/* The same for the man page (roff). */
void examples_man(struct buf *out, const char *const example[2]);

/* Of all commands, for the man page (roff). */
void commands_man(struct buf *out);
