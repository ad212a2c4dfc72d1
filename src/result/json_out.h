#pragma once
/* Small helpers over jansson that the JSON renderings share. Private to this folder. */
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/stats.h"
#include "os/sysinfo.h"
#include "conf/opt.h"

/* Each sets `key` of the object. A number that is not finite is left out: JSON has none. */
void json_put(json_t *object, const char *key, json_t *value); /* takes ownership */
void json_put_real(json_t *object, const char *key, double v);
void json_put_int(json_t *object, const char *key, uint64_t v);
void json_put_bool(json_t *object, const char *key, bool v);
/* NULL is null. Bytes that are not UTF-8 become \xff (the text). */
void json_put_text(json_t *object, const char *key, const char *s);
/* "program": that this program wrote the file (base/program.h). */
void json_put_mark(json_t *object);
/* Local time, ISO with microseconds. */
void json_put_time(json_t *object, const char *key, int64_t wall_ns);
json_t *json_pairs(const struct sysinfo_pair *pairs, size_t n);

json_t *json_text(const char *s);
/* A number, or null when it is not finite. */
json_t *json_number(double v);
/* A count; values above 2^63-1 become a real. */
json_t *json_count(uint64_t v);

json_t *json_texts(const struct str_list *list);
/* {"values", "mean", "stdev", "min", "max"}; of no values only their number. */
json_t *json_stat(const struct sample_stat *s);

/* json_dumps, in a text of its own wherever values lie (result/json_room.h); heap (free). */
char *json_dump_text(const json_t *value, size_t flags);

/* The text of a file, as json_write writes it; heap (free), NULL without memory. */
char *json_file_text(const json_t *object);
/* The same document for result.json: lines of at most 160 bytes where that can be, numbers with 12
 * digits, below a key `exact` as the same doubles; heap (free), NULL without memory. */
char *json_short_lines(const json_t *object, const char *exact);
/* Writes "<folder>/<name>" with 4-space indentation and releases the object. */
int json_write(json_t *object, const char *folder, const char *name, struct err *e);

enum json_shape {
	JSON_EXACT, /* the same document */
	JSON_SHOWN, /* texts read as say.h shows them: for a page */
};
/* Appends the document, with the flags of json_dumps but JSON_ENSURE_ASCII and JSON_ESCAPE_SLASH,
 * so that it holds no character that commands a terminal or misleads a reader; JSON_SHOWN also
 * stands in an element `script` of HTML. Nothing is appended without memory. */
void json_put_dump(struct buf *out, const json_t *value, size_t flags, enum json_shape shape);
/* The same with lines of their own, and a line end; releases the value. */
void json_put_document(struct buf *out, json_t *value);
