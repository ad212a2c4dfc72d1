#pragma once
/* Hydra's override grammar (Hydra 1.3.2): key=value, +key=value, ++key=value, ~key, ~key=value. */
#include "base/err.h"
#include "conf/node.h"

struct str_list;

enum override_op { OVERRIDE_SET, OVERRIDE_ADD, OVERRIDE_FORCE, OVERRIDE_DELETE };

struct override {
	enum override_op op;
	char *key;          /* dotted path, or group[/sub][@package] */
	struct node *value; /* NULL for "~key" */
	char *text;         /* as typed */
	const char *meant;  /* borrowed: the key that errors name as the one meant, or NULL */
};

/* Where the overrides come from that are read from now on in this thread, for sentences: "command
 * line" until something else is set. A constant. */
void override_place_set(const char *place);
const char *override_place(void);

/* Parses one override. Errors are ERR_USAGE sentences that quote the text and point at the column.
 */
int override_parse(const char *text, struct override *out, struct err *e);
void override_release(struct override *o);
/* Parses a value alone by the same grammar. NULL: error. */
struct node *override_parse_value(const char *text, struct err *e);
/* Applies it to a tree (the root holds "workload:"). ERR_USAGE with Hydra's reason and a way out.
 */
int override_apply(struct node *root, const struct override *o, struct err *e);
/* Resolves ${a.b.c}, ${oc.env:VAR[,default]}, ${oc.select:KEY[,default]}, ${hydra:KEY} and
 * ${now:FMT} in every string of the tree. A string that is one interpolation becomes a copy of what
 * it names; the environment's text is typed as plain YAML. ERR_USAGE names file, line and key. */
int node_interpolate(struct node *root, int64_t start_wall_ns, struct err *e);

/* Appends "++workload.KEY=VALUE": the value as it is, or in quotes and escaped (quotes, the
 * backslashes before them, and "${") so that it reads back as that text. */
void override_put(struct str_list *list, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void override_put_text(struct str_list *list, const char *key, const char *value);
