#pragma once
/* Declarative option tables. One row says everything about a key: its place in the YAML, its C
 * field, type, default, range, choices, alias, unit and help. Parsing, range checks, `show config`,
 * the generated documentation and completion all walk the rows. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "conf/node.h"

enum opt_type {
	OPT_BOOL,     /* bool; YAML booleans, "true"/"false" in any case, 0 and 1 */
	OPT_I64,      /* int64_t; integers, and floats with no fraction */
	OPT_F64,      /* double; finite, or infinite where min or max is. Never NaN */
	OPT_STR,      /* char *, heap, owned by the struct; NULL when null */
	OPT_ENUM,     /* int: index into choices; any case; YAML's false and true mean "off" and
		       * "on", null means "none", where those are choices */
	OPT_I64_LIST, /* struct i64_list */
	OPT_STR_LIST, /* struct str_list; a plain string is a list of one */
	OPT_TIME,     /* struct time_dist: a number or DLIO's map {mean, stdev, type, ...} */
	OPT_MAP,      /* struct node *, owned clone; NULL when null: checked by its consumer */
	OPT_NODES,    /* the same, a list */
};

struct i64_list {
	int64_t *v;
	size_t n;
};

struct str_list {
	char **v;
	size_t n;
};

/* Appends a heap string, which is the list's from then on. */
void str_list_add(struct str_list *list, char *text);
/* Frees the strings; the list is empty afterwards. */
/* Copies of all texts of `from`. */
void str_list_copy(struct str_list *list, const struct str_list *from);
/* Puts copies of the other's elements, from its element `from` on, before the list's own. */
void str_list_put_first(struct str_list *list, const struct str_list *other, size_t from);
void str_list_release(struct str_list *list);

/* A duration distribution in seconds; the absolute value of a draw is waited. */
enum time_kind {
	TIME_NONE,        /* zero */
	TIME_CONSTANT,    /* a = value */
	TIME_NORMAL,      /* a = mean, b = stdev */
	TIME_UNIFORM,     /* a = min, b = max */
	TIME_GAMMA,       /* a = shape, b = scale */
	TIME_EXPONENTIAL, /* a = scale */
	TIME_POISSON,     /* a = lam */
	TIME_PARETO,      /* a = shape, b = min: P(> x) = (min / x)^shape; shape > 1 */
};

struct time_dist {
	enum time_kind kind;
	double a, b;
};

double time_dist_mean(const struct time_dist *d);
/* DLIO's log writes the configured value as a Python dict: "{'mean': 0.323}". Heap string. */
char *time_dist_python(const struct time_dist *d);
struct opt;
/* A number, DLIO's map or null; the row's key and the node's mark go into the sentence, and its
 * range holds for each number of the map. */
int time_dist_set_node(struct time_dist *d, const struct node *v, const struct opt *row,
		       struct err *e);
/* What DLIO's separate `X_stdev` keys do: a mean gets a spread, other distributions and the zero
 * distribution stay as they are. `stdev` is at least 0. */
void time_dist_set_stdev(struct time_dist *d, double stdev);

struct opt {
	const char *key; /* "reader.batch_size" */
	enum opt_type type;
	size_t offset;
	const char *def; /* default as text; lists, maps and distributions in the override
			  * grammar; NULL: null/zero/empty, and null is then accepted */
	double min, max; /* numbers, times and items of OPT_I64_LIST: inclusive range; both 0:
			  * unchecked; a max of 9e18 or more reads "or more" */
	const char *const *choices; /* OPT_ENUM: NULL-terminated */
	const char *alias;          /* another accepted spelling of the key, or NULL */
	const char *unit;           /* "bytes", "s", "steps", ... or NULL */
	const char *help;           /* one sentence for the documentation */
	unsigned flags;
};

enum {
	OPT_STOKER = 1u << 0, /* a key of ours that DLIO does not know */
	OPT_UNUSED =
		1u
		<< 1, /* accepted because DLIO accepts it; has no effect, and the help says why */
	OPT_LATER = 1u << 2, /* validated now; the feature is not in this version */
};

/* Compile-time check that the row's type fits the field's C type. */
#define OPT_FIELD(strct, field, ctype)                                                             \
	(offsetof(strct, field) + 0 * sizeof(char[_Generic(((strct *)0)->field, ctype : 1, default \
							   : -1)]))

struct opt_origin {
	enum { ORIGIN_DEFAULT, ORIGIN_FILE, ORIGIN_OVERRIDE } source;
	struct node_mark mark;
};

/* Fills the fields of `base` from the rows' defaults. The fields are zeroed or set before. */
int opt_set_defaults(const struct opt *rows, size_t n, void *base, struct err *e);
/* Converts one node into the row's field; range and choices checked. The sentence names file, line,
 * key, the value and what is allowed. On failure the field keeps its value. Null is accepted where
 * the default is null and for text, lists, maps and distributions. */
int opt_set_node(const struct opt *row, const struct node *v, void *base, struct err *e);
/* The current value of a field as text (as show config prints it), in the override grammar: setting
 * it again gives the same value. Heap string. */
char *opt_get_text(const struct opt *row, const void *base);
/* The row of a key or alias, or NULL. */
const struct opt *opt_find(const struct opt *rows, size_t n, const char *key);
/* The known key that a misspelt one most likely means: nearest spelling, the same name in another
 * section, or a name that begins alike. NULL when none is near. */
const char *opt_nearest_key(const struct opt *rows, size_t n, const char *key);
/* Frees what the fields own; the fields are null afterwards. */
void opt_release(const struct opt *rows, size_t n, void *base);
