#pragma once
/* Shared by the parts of the override parser: a position in the typed text and its errors. */
#include "base/err.h"
#include "conf/node.h"

struct override_text {
	const char *whole; /* as typed, for sentences */
	const char *at;
	size_t nodes;
	struct err *e;
};

/* ERR_USAGE: "command line: 'TEXT': column N: sentence", for the character at `t->at`. */
int override_fail(const struct override_text *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Reads a whole value up to the end of the text. */
int override_read_value(struct override_text *t, struct node **out);
/* The typed node of an unquoted word. */
struct node *override_scalar(const char *text, struct node_mark mark);
/* Turns `v` into what the cast function `name` makes of it, lists and maps item by item. */
int override_cast(const struct override_text *t, const char *name, struct node *v);
bool override_is_cast(const char *name);
