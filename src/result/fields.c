/* The table of fields at work. It is included once for the getters and once for the rows; the
 * names of both come from the same line, so they cannot differ. */
#include "result/fields.h"

#include <gnu/libc-version.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/program.h"
#include "result/fields_view.h"
#include "result/json_facts.h"
#include "result/json_basis.h"
#include "result/json_out.h"
#include "result/json_result.h"
#include "result/sink.h"

/* Raised when a key changes its meaning or goes away; new keys do not raise it. */
#define RESULT_SCHEMA 2

enum is { IS_NULL = -1, ABSENT, PRESENT };
#define OR_NULL(known) ((known) ? PRESENT : IS_NULL)
#define NO_LIST SIZE_MAX

/* Where a row is asked. */
struct at {
	const struct result *r;
	const struct run_metrics *m;
	const void *x;   /* what the object is of */
	size_t i;        /* its number in its list */
	char text[4096]; /* for texts that are made */
};

enum type {
	NUMBER,
	COUNT,
	FLAG,
	TEXT,
	TIME,
	JSON,
	OBJECT,
	LIST,
	OBJECT_OF_NAMES, /* objects */
	NUMBERS          /* by names */
};

struct value {
	enum is is;
	union {
		double number;
		uint64_t count;
		bool flag;
		const char *text;
		int64_t ns;
		json_t *json;
		size_t entries;
	};
};

/* The type of a condition tells: OR_NULL is an int; counts, pointers and characters only say
 * whether they are 0. */
static int presence_of(int v)
{
	return v < 0 ? IS_NULL : v > 0 ? PRESENT : ABSENT;
}
#define PRESENCE(when)                                                                             \
	_Generic((when), int                                                                       \
		 : presence_of((int)(intptr_t)(when)), default                                     \
		 : (when) ? PRESENT : ABSENT)

#define VALUE_NUMBER(v) .number = (v)
#define VALUE_COUNT(v) .count = (uint64_t)(v)
#define VALUE_FLAG(v) .flag = (v)
#define VALUE_TEXT(v) .text = (v)
#define VALUE_TIME(v) .ns = (v)
#define VALUE_JSON(v) .json = (v)

enum section {
#define SECTION(S, says) S_##S,
#include "result/fields_table.h"
	SECTIONS
};

static const char *const section_says[SECTIONS] = {
#define SECTION(S, says) [S_##S] = says,
#include "result/fields_table.h"
};

/* ---- what each row says ---- */

#define ASKED(S)                                                                                   \
	const struct result *r = a->r;                                                             \
	const struct run_metrics *m = a->m;                                                        \
	const AT_##S *x = a->x;                                                                    \
	(void)r, (void)m, (void)x
#define GET(S, ID, when, field)                                                                    \
	static struct value get_##S##_##ID(struct at *a) {                                         \
		ASKED(S);                                                                          \
		size_t i = a->i;                                                                   \
		int is = PRESENCE(when);                                                           \
		(void)i;                                                                           \
		return is == PRESENT ? (struct value){.is = is, field} : (struct value){.is = is}; \
	}
#define ITEM(S, ID, item)                                                                          \
	static const void *item_##S##_##ID(struct at *a, size_t i, void *room)                     \
	{                                                                                          \
		ASKED(S);                                                                          \
		(void)room, (void)i;                                                               \
		return item;                                                                       \
	}

#define FIGURE(S, ID, key, type, unit, when, value, says) GET(S, ID, when, VALUE_##type(value))
#define ONE(S, ID, key, child, when, item, says)                                                   \
	GET(S, ID, when, .entries = 1)                                                             \
	ITEM(S, ID, item)
#define MANY(S, ID, key, child, n, item, says)                                                     \
	GET(S, ID, (size_t)(n) != NO_LIST, .entries = (size_t)(n))                                 \
	ITEM(S, ID, item)
#define NAMED(S, ID, key, child, names, n, item, says) MANY(S, ID, key, child, n, item, says)
#define PARTS(S, ID, key, unit, names, n, value, says)                                             \
	GET(S, ID, true, .entries = (n))                                                           \
	static double part_##S##_##ID(struct at *a, size_t i)                                      \
	{                                                                                          \
		ASKED(S);                                                                          \
		return value;                                                                      \
	}
#include "result/fields_table.h"

struct row {
	enum section of, child;
	enum type type;
	const char *key, *unit, *says;
	const char *const *names;
	bool shown;  /* in tables of runs */
	size_t room; /* of what a child is of */
	struct value (*get)(struct at *a);
	const void *(*item)(struct at *a, size_t i, void *room);
	double (*number)(struct at *a, size_t i);
};

#define ROW(S, ID, key_, says_) .of = S_##S, .key = key_, .says = says_, .get = get_##S##_##ID
#define CHILD(S, ID, child_)                                                                       \
	.child = S_##child_, .room = sizeof(AT_##child_), .item = item_##S##_##ID
#define FIGURE(S, ID, key, type_, unit_, when, value, says)                                        \
	[F_##S##_##ID] = {ROW(S, ID, key, says), .type = type_, .unit = unit_},
#define SHOWN(S, ID, key, type_, unit_, when, value, says)                                         \
	[F_##S##_##ID] = {ROW(S, ID, key, says), .type = type_, .unit = unit_, .shown = true},
#define ONE(S, ID, key, child, when, item_, says)                                                  \
	[F_##S##_##ID] = {ROW(S, ID, key, says), CHILD(S, ID, child), .type = OBJECT},
#define MANY(S, ID, key, child, n, item_, says)                                                    \
	[F_##S##_##ID] = {ROW(S, ID, key, says), CHILD(S, ID, child), .type = LIST},
#define NAMED(S, ID, key, child, names_, n, item_, says)                                           \
	[F_##S##_##ID] = {ROW(S, ID, key, says), CHILD(S, ID, child), .type = OBJECT_OF_NAMES,     \
			  .names = names_},
#define PARTS(S, ID, key, unit_, names_, n, value, says)                                           \
	[F_##S##_##ID] = {ROW(S, ID, key, says), .type = NUMBERS, .unit = unit_, .names = names_,  \
			  .number = part_##S##_##ID},
static const struct row rows[FIELDS] = {
#include "result/fields_table.h"
};

/* ---- written ---- */

static json_t *write_section(enum section s, const struct at *at);

static json_t *child_of(const struct row *row, struct at *a, size_t i)
{
	AUTO_FREE void *room = xcalloc(1, row->room);
	struct at below = {.r = a->r, .m = a->m, .x = row->item(a, i, room), .i = i};

	return below.x ? write_section(row->child, &below) : NULL;
}

static json_t *children_of(const struct row *row, struct at *a, size_t n)
{
	json_t *out = row->names ? json_object() : json_array();

	for (size_t i = 0; i < n; i++) {
		json_t *one = child_of(row, a, i);

		if (one && row->names)
			json_put(out, row->names[i], one);
		else if (one)
			json_array_append_new(out, one);
	}
	return out;
}

static json_t *numbers_of(const struct row *row, struct at *a, size_t n)
{
	json_t *out = json_object();

	for (size_t i = 0; i < n; i++)
		json_put_real(out, row->names[i], row->number(a, i));
	return out;
}

static void put(json_t *o, const struct row *row, struct at *a)
{
	struct value v = row->get(a);
	json_t *one;

	if (v.is != PRESENT) {
		if (v.is == IS_NULL)
			json_put(o, row->key, json_null());
		return;
	}
	switch (row->type) {
	case NUMBER:
		json_put_real(o, row->key, v.number);
		return;
	case COUNT:
		json_put_int(o, row->key, v.count);
		return;
	case FLAG:
		json_put_bool(o, row->key, v.flag);
		return;
	case TEXT:
		json_put_text(o, row->key, v.text);
		return;
	case TIME:
		json_put_time(o, row->key, v.ns);
		return;
	case JSON:
		one = v.json;
		break;
	case OBJECT:
		one = child_of(row, a, 0);
		break;
	case NUMBERS:
		one = numbers_of(row, a, v.entries);
		break;
	default:
		one = children_of(row, a, v.entries);
	}
	if (one)
		json_put(o, row->key, one);
}

static json_t *write_section(enum section s, const struct at *at)
{
	json_t *o = json_object();
	struct at *a = xmalloc(sizeof(*a));

	*a = *at;
	for (size_t i = 0; i < FIELDS; i++)
		if (rows[i].of == s)
			put(o, &rows[i], a);
	free(a);
	return o;
}

json_t *result_tree(const struct result *r, const struct run_metrics *m)
{
	struct at *a = xcalloc(1, sizeof(*a));
	json_t *o;

	*a = (struct at){.r = r, .m = m, .x = r};
	o = write_section(S_RUN, a);
	free(a);
	return o;
}

/* ---- read back ---- */

/* Nothing but this file knows that a part is JSON. */
static const json_t *json_of(const struct part *p)
{
	return (const json_t *)p;
}

static const struct part *part_in(const json_t *v)
{
	return json_is_object(v) || json_is_array(v) ? (const struct part *)v : NULL;
}

static const json_t *value_of(const struct part *of, enum field id)
{
	return json_object_get(json_of(of), rows[id].key);
}

const struct part *part_whole(const json_t *result)
{
	return part_in(result);
}

const struct part *part(const struct part *of, enum field id)
{
	return part_in(value_of(of, id));
}

size_t part_count(const struct part *list)
{
	return json_array_size(json_of(list));
}

const struct part *part_at(const struct part *list, size_t i)
{
	return part_in(json_array_get(json_of(list), i));
}

const struct part *part_named(const struct part *of, enum field id, size_t i)
{
	return part_in(json_object_get(value_of(of, id), rows[id].names[i]));
}

static double number_of(const json_t *v)
{
	return json_is_number(v) ? json_number_value(v) : NAN;
}

double figure_named(const struct part *of, enum field id, size_t i)
{
	return number_of(json_object_get(value_of(of, id), rows[id].names[i]));
}

double figure(const struct part *of, enum field id)
{
	return number_of(value_of(of, id));
}

bool figure_flag(const struct part *of, enum field id)
{
	return json_is_true(value_of(of, id));
}

const char *figure_text(const struct part *of, enum field id)
{
	return json_string_value(value_of(of, id));
}

const json_t *figure_json(const struct part *of, enum field id)
{
	return value_of(of, id);
}

const char *field_key(enum field id)
{
	return rows[id].key;
}

/* ---- the figures of tables ---- */

size_t shown_count(void)
{
	return SHOWN_FIGURES;
}

static enum field shown_field(size_t i)
{
	size_t id = 0;

	while (!rows[id].shown || i-- > 0)
		id++;
	return (enum field)id;
}

/* The row of the object that a section is; NULL: of the whole file. */
static const struct row *row_of_section(enum section s)
{
	for (size_t i = 0; i < FIELDS && s != S_RUN; i++)
		if (rows[i].type == OBJECT && rows[i].child == s)
			return &rows[i];
	return NULL;
}

static const struct part *section_in(const struct part *whole, enum section s)
{
	const struct row *row = row_of_section(s);

	return row ? part(section_in(whole, row->of), (enum field)(row - rows)) : whole;
}

double shown_figure(const struct part *whole, size_t i)
{
	enum field id = shown_field(i);

	return figure(section_in(whole, rows[id].of), id);
}

const char *shown_unit(size_t i)
{
	const char *unit = rows[shown_field(i)].unit;

	return unit ? unit : "";
}

void shown_name(size_t i, char out[SHOWN_NAME_MAX])
{
	const struct row *row = &rows[shown_field(i)];
	AUTO_FREE char *name = xstrdup(row->key);

	while ((row = row_of_section(row->of))) {
		char *longer = xasprintf("%s.%s", row->key, name);

		free(name);
		name = longer;
	}
	snprintf(out, SHOWN_NAME_MAX, "%s", name);
}

/* ---- described ---- */

static const char *type_name(const struct row *row)
{
	static const char *const names[] = {[NUMBER] = "number",
					    [COUNT] = "count",
					    [FLAG] = "true or false",
					    [TEXT] = "text",
					    [TIME] = "time",
					    [JSON] = "JSON",
					    [OBJECT] = "object",
					    [LIST] = "list",
					    [OBJECT_OF_NAMES] = "objects by name",
					    [NUMBERS] = "numbers by name"};

	return names[row->type];
}

static void describe(struct buf *out, const struct row *row)
{
	buf_printf(out, "| `%s` | %s | %s | %s", row->key, type_name(row),
		   row->unit ? row->unit : "", row->says);
	if (row->item)
		buf_printf(out, ": see \"%s\"", section_says[row->child]);
	buf_puts(out, " |\n");
}

void fields_markdown(struct buf *out)
{
	buf_puts(out,
		 "# result.json\n\n"
		 "What each key of `result.json` is, object by object. A key is absent where its "
		 "figure does not exist for a run, and null where it exists but could not be "
		 "measured.\n\n"
		 "This file is generated by `make docs` (`stoker show result`) from the "
		 "table that also writes and reads `result.json`; do not edit it.\n");
	for (int s = 0; s < SECTIONS; s++) {
		buf_printf(out,
			   "\n## %s\n\n| key | type | unit | what it is |\n|---|---|---|---|\n",
			   section_says[s]);
		for (size_t i = 0; i < FIELDS; i++)
			if (rows[i].of == (enum section)s)
				describe(out, &rows[i]);
	}
}
