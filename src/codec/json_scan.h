#pragma once
/* JSON read from its beginning to its end, value by value, without a tree and without memory: for
 * texts that may be large and are asked for a few of their values. Whatever the text, a call ends
 * with what it found or with ERR_DATA and one sentence that names the offset. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define JSON_SCAN_DEPTH 32

struct json_scan {
	const char *text;
	size_t n, at;
	unsigned depth; /* of what was entered */
	bool first;     /* nothing of the innermost was read yet */
};

void json_scan_begin(struct json_scan *s, const char *text, size_t n);
/* Enters an object ('{') or a list ('['). */
int json_scan_enter(struct json_scan *s, char open, struct err *e);
/* Whether the innermost has a further member: 1; or 0, and it is left. */
int json_scan_more(struct json_scan *s, char close, struct err *e);
/* The key of a member of an object; its value comes next. A longer one is cut. */
int json_scan_key(struct json_scan *s, char *out, size_t room, struct err *e);
/* A string, with its end; one that has no room, or holds a zero, is refused. */
int json_scan_string(struct json_scan *s, char *out, size_t room, struct err *e);
/* A whole number that is not negative. */
int json_scan_u64(struct json_scan *s, uint64_t *out, struct err *e);
/* null: 1, with it behind; anything else: 0. */
int json_scan_null(struct json_scan *s);
/* Any value. */
int json_scan_skip(struct json_scan *s, struct err *e);
/* Nothing but spaces is left. */
int json_scan_end(struct json_scan *s, struct err *e);
