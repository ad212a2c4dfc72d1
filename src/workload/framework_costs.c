/* Profiles of costs: documents that have a law for each row of cost_rows.c. */
#include "workload/framework_costs.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/say.h"
#include "base/str.h"
#include "codec/digest.h"
#include "conf/opt.h"
#include "workload/builtin.h"
#include "workload/workload.h"

#define POINTS "points"
#define DIGITS 8

enum { TEXT_MAX = 512, PROFILE_MAX_BYTES = 256 << 10 };

static const char *const about_keys[COST_ABOUTS] = {
	[COST_ABOUT_FRAMEWORK] = "framework", [COST_ABOUT_VERSION] = "version",
	[COST_ABOUT_PYTHON] = "python",       [COST_ABOUT_LIBRARIES] = "libraries",
	[COST_ABOUT_PROCESSOR] = "processor", [COST_ABOUT_DATE] = "date",
	[COST_ABOUT_SOURCE] = "source"};

/* Above these a value is a mistake of its unit. */
#define SECONDS(field, k)                                                                          \
	{                                                                                          \
		.key = k, .type = OPT_F64, .offset = OPT_FIELD(struct cost_law, field, double),    \
		.def = "0", .min = 0, .max = 60, .unit = "s"                                       \
	}
static const struct opt law_rows[] = {
	SECONDS(fixed, "fixed"),
	SECONDS(per_sample, "per_sample"),
	{.key = "per_byte",
	 .type = OPT_F64,
	 .offset = OPT_FIELD(struct cost_law, per_byte, double),
	 .def = "0",
	 .min = 0,
	 .max = 1e-3,
	 .unit = "s"},
	SECONDS(after_wait, "after_wait"),
	SECONDS(after_each_wait, "after_each_wait"),
	SECONDS(first, "first"),
	SECONDS(before_data, "before_data"),
	SECONDS(after_data, "after_data"),
	SECONDS(import_s, "import"),
	{.key = "spread",
	 .type = OPT_F64,
	 .offset = OPT_FIELD(struct cost_law, spread, double),
	 .def = "0",
	 .min = 0,
	 .max = 10},
};
enum { PARAMETERS = sizeof(law_rows) / sizeof(law_rows[0]) };
static const unsigned parameter_bits[PARAMETERS] = {COST_HAS_FIXED,
						    COST_HAS_PER_SAMPLE,
						    COST_HAS_PER_BYTE,
						    COST_HAS_AFTER_WAIT,
						    COST_HAS_AFTER_EACH_WAIT,
						    COST_HAS_FIRST,
						    COST_HAS_DATA,
						    COST_HAS_DATA,
						    COST_HAS_IMPORT,
						    ~0u};

/* ---- laws ---- */

/* Where `bytes` lie among the points, at least two: from the one before them to the next. Above the
 * last, `part` is more than 1. */
static const struct cost_point *around(const struct cost_law *law, double bytes, double *part)
{
	const struct cost_point *from = law->point;

	while (from + 2 < law->point + law->points && from[1].bytes <= bytes)
		from++;
	*part = fmax(0, (bytes - from->bytes) / (from[1].bytes - from->bytes));
	return from;
}

double cost_after_wait_s(const struct cost_law *law, double bytes, double wait_s)
{
	double most = law->after_wait, part;

	if (law->points > 1) {
		const struct cost_point *from = around(law, bytes, &part);

		part = fmin(1, part);
		most = from->after_wait + part * (from[1].after_wait - from->after_wait);
	}
	return wait_s > 0 ? most * -expm1(-wait_s / COST_WAIT_S) : 0;
}

static double law_s(const struct cost_law *law, double samples, double bytes, bool alone)
{
	const struct cost_point *from;
	double part, s, to;

	if (law->points < 2)
		return law->fixed + law->per_sample * samples + law->per_byte * bytes;
	from = around(law, bytes, &part);
	s = alone ? from->alone_s : from->s;
	to = alone ? from[1].alone_s : from[1].s;
	return law->per_sample * samples +
	       (part > 1 ? to + (part - 1) * fmax(0, to - s) : s + part * (to - s));
}

double cost_law_s(const struct cost_law *law, double samples, double bytes)
{
	return law_s(law, samples, bytes, false);
}

double cost_load_s(const struct cost_law *law, double bytes, bool alone)
{
	return law_s(law, 1, bytes, alone);
}

static const struct cost_law no_law;

const struct cost_law *costs_of(const struct framework_costs *c, enum cost_row row)
{
	assert(row < COST_ROWS);
	return c ? &c->of[row] : &no_law;
}

const struct cost_law *costs_in(const struct framework_costs *c, enum cost_row row, bool dlio)
{
	assert(row < COST_ROWS);
	if (cost_rows[row].where == (dlio ? COST_IN_OWN_LOOPS : COST_IN_DLIO))
		return &no_law;
	return costs_of(c, row);
}

const struct cost_law *costs_of_load(const struct framework_costs *c, const struct format_facts *f)
{
	for (size_t i = 0; c && format_facts_table[i] && i < COST_FORMATS_MAX; i++)
		if (format_facts_table[i] == f)
			return &c->load[i];
	return &no_law;
}

static enum cost_row row_or(const struct framework_costs *c, enum cost_row row,
			    enum cost_row otherwise)
{
	return costs_of(c, row)->present ? row : otherwise;
}

enum cost_row costs_start_row(const struct framework_costs *c, int method)
{
	static const enum cost_row rows[] = {[START_FORK] = COST_START_WORKER,
					     [START_SPAWN] = COST_START_SPAWN,
					     [START_FORKSERVER] = COST_START_FORKSERVER};

	return row_or(c, rows[method], COST_START_WORKER);
}

enum cost_row costs_begin_row(const struct framework_costs *c, int method)
{
	static const enum cost_row rows[] = {[START_FORK] = COST_BEGIN_WORKER,
					     [START_SPAWN] = COST_BEGIN_SPAWN,
					     [START_FORKSERVER] = COST_BEGIN_FORKSERVER};

	return row_or(c, rows[method], COST_BEGIN_WORKER);
}

/* The law called `name` and the facts of its row, or NULL. */
static struct cost_law *law_named(struct framework_costs *c, const char *name,
				  const struct cost_row_facts **facts)
{
	for (size_t i = 0; i < COST_ROWS; i++)
		if (strcmp(cost_rows[i].name, name) == 0) {
			*facts = &cost_rows[i];
			return &c->of[i];
		}
	*facts = &cost_load_row;
	for (size_t i = 0; str_starts(name, COST_LOAD) && format_facts_table[i]; i++) {
		assert(i < COST_FORMATS_MAX);
		if (strcmp(format_facts_table[i]->name, name + strlen(COST_LOAD)) == 0)
			return &c->load[i];
	}
	return NULL;
}

/* ---- from a document ---- */

struct reading {
	struct framework_costs *c;
	bool tolerant;
	struct err *e;
};

static int unknown(const struct reading *r, const struct node *map, size_t i, const char *section,
		   const struct str_list *known)
{
	const char *near = str_nearest(map->key[i], (const char *const *)known->v, known->n);
	struct buf list = {0};
	char where[256];
	int rc;

	if (r->tolerant)
		return 0;
	for (size_t k = 0; k < known->n; k++)
		buf_printf(&list, "%s%s", k ? ", " : "", known->v[k]);
	rc = err_set(r->e, ERR_USAGE, "%s%s%s%s: %.60s%s is none of %s",
		     near ? "did you mean " : "", near ? near : "", near ? "? " : "",
		     node_mark_text(map->key_mark[i], where, sizeof(where)), section, map->key[i],
		     list.data);
	buf_release(&list);
	return rc;
}

static int unknown_row(const struct reading *r, const struct node *laws, size_t i)
{
	struct str_list known = {0};
	int rc;

	for (size_t k = 0; k < COST_ROWS; k++)
		str_list_add(&known, xstrdup(cost_rows[k].name));
	for (size_t k = 0; format_facts_table[k]; k++)
		str_list_add(&known, xasprintf(COST_LOAD "%s", format_facts_table[k]->name));
	rc = unknown(r, laws, i, "laws.", &known);
	str_list_release(&known);
	return rc;
}

static int unknown_parameter(const struct reading *r, const struct node *law, size_t i,
			     const char *row, const struct cost_row_facts *facts)
{
	AUTO_FREE char *section = xasprintf("laws.%s.", row);
	struct str_list known = {0};
	int rc;

	for (size_t k = 0; k < PARAMETERS; k++)
		if (facts->parameters & parameter_bits[k])
			str_list_add(&known, xstrdup(law_rows[k].key));
	if (facts->parameters & COST_HAS_PER_BYTE)
		str_list_add(&known, xstrdup(POINTS));
	rc = unknown(r, law, i, section, &known);
	str_list_release(&known);
	return rc;
}

/* One number of a point, as law_rows[k] says. */
static int read_number(const struct reading *r, const char *key, const struct opt *row,
		       const struct node *v, double *out)
{
	struct opt named = *row;

	named.key = key;
	named.offset = OPT_FIELD(struct cost_point, s, double);
	struct cost_point at = {0};
	int rc = opt_set_node(&named, v, &at, r->e);

	*out = at.s;
	return rc;
}

/* [[bytes, s, after_wait], ...] of rising bytes; of loading with alone_s behind them, which may be
 * left out. */
static int read_points(const struct reading *r, const char *key, const struct node *v,
		       const struct cost_row_facts *facts, struct cost_law *law)
{
	static const struct opt size = {
		.type = OPT_F64, .def = "0", .min = 0, .max = 1e15, .unit = "B"};

	if (v->kind != NODE_LIST || v->n < 2 || v->n > COST_POINTS_MAX)
		return node_refuse(v, key, r->e,
				   "2 to %d points are needed here, each [bytes, s, after_wait]",
				   COST_POINTS_MAX);
	for (size_t i = 0; i < v->n; i++) {
		const struct node *n = v->child[i];
		struct cost_point *p = &law->point[i];
		bool loads = facts->parameters & COST_HAS_DATA;
		int rc;

		if (n->kind != NODE_LIST || (n->n != 3 && !(loads && n->n == 4)))
			return node_refuse(n, key, r->e,
					   loads ? "a point is a list of three or four: [bytes, s, "
						   "after_wait, s without workers]"
						 : "a point is a list of three: [bytes, s, "
						   "after_wait]");
		rc = read_number(r, key, &size, n->child[0], &p->bytes) ?:
		     read_number(r, key, &law_rows[0], n->child[1], &p->s) ?:
		     read_number(r, key, &law_rows[0], n->child[2], &p->after_wait);
		p->alone_s = p->s;
		if (rc == 0 && n->n == 4)
			rc = read_number(r, key, &law_rows[0], n->child[3], &p->alone_s);
		if (rc < 0)
			return rc;
		if (i && !(p->bytes > p[-1].bytes))
			return node_refuse(n, key, r->e, "the bytes of points must rise");
	}
	law->points = v->n;
	return 0;
}

static int read_law(const struct reading *r, const char *row, const struct node *v)
{
	const struct cost_row_facts *facts;
	struct cost_law *law = law_named(r->c, row, &facts);
	AUTO_FREE char *where = xasprintf("laws.%s", row);

	if (v->kind != NODE_MAP)
		return node_refuse(v, where, r->e,
				   "a law is a map such as {fixed: 0.001, spread: 0.1}, not %s",
				   node_kind_name(v->kind));
	law->present = true;
	for (size_t i = 0; i < v->n; i++) {
		size_t k = 0;
		int rc;

		while (k < PARAMETERS && (strcmp(law_rows[k].key, v->key[i]) != 0 ||
					  !(facts->parameters & parameter_bits[k])))
			k++;
		if (facts->parameters & COST_HAS_PER_BYTE && strcmp(POINTS, v->key[i]) == 0) {
			AUTO_FREE char *key = xasprintf("%s." POINTS, where);

			/* results of schema 1 have null for the list */
			rc = v->child[i]->kind == NODE_NULL
				     ? 0
				     : read_points(r, key, v->child[i], facts, law);
		} else if (k == PARAMETERS) {
			rc = unknown_parameter(r, v, i, row, facts);
		} else {
			AUTO_FREE char *key = xasprintf("%s.%s", where, law_rows[k].key);
			struct opt named = law_rows[k];

			named.key = key;
			rc = opt_set_node(&named, v->child[i], law, r->e);
		}
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int read_laws(const struct reading *r, const struct node *laws)
{
	const struct cost_row_facts *facts;

	if (laws->kind != NODE_MAP)
		return node_refuse(laws, "laws", r->e, "a map of laws is needed, not %s",
				   node_kind_name(laws->kind));
	for (size_t i = 0; i < laws->n; i++) {
		int rc = law_named(r->c, laws->key[i], &facts)
				 ? read_law(r, laws->key[i], laws->child[i])
				 : unknown_row(r, laws, i);

		if (rc < 0)
			return rc;
	}
	return 0;
}

static int read_text(const struct reading *r, const char *key, const struct node *v, char **out)
{
	const char *text = v->kind == NODE_LIST || v->kind == NODE_MAP ? NULL : v->s;

	if (v->kind == NODE_NULL)
		return 0;
	if (!text)
		return node_refuse(v, key, r->e, "text is needed here, not %s",
				   node_kind_name(v->kind));
	if (strlen(text) > TEXT_MAX)
		return node_refuse(v, key, r->e, "this text is longer than %d bytes", TEXT_MAX);
	*out = xstrdup(text);
	return 0;
}

const char *costs_name_refusal(const char *s)
{
	size_t n = 0;

	while (s[n] && (isalnum((unsigned char)s[n]) || (n && strchr("._+-", s[n]))))
		n++;
	if (s[n] || n == 0 || n > 64)
		return "the name of a profile is 1 to 64 letters, digits and . _ + -";
	return strcmp(s, "none") == 0 ? "'none' means no costs: choose another name" : NULL;
}

static int read_name(const struct reading *r, const struct node *v)
{
	const char *s = v->kind == NODE_LIST || v->kind == NODE_MAP ? NULL : v->s;
	const char *refusal = costs_name_refusal(s ? s : "");

	if (refusal)
		return node_refuse(v, "name", r->e, "%s", refusal);
	r->c->name = xstrdup(s);
	return 0;
}

static int unknown_key(const struct reading *r, const struct node *doc, size_t i)
{
	struct str_list known = {0};
	int rc;

	str_list_add(&known, xstrdup("name"));
	for (size_t k = 0; k < COST_ABOUTS; k++)
		str_list_add(&known, xstrdup(about_keys[k]));
	str_list_add(&known, xstrdup("laws"));
	rc = unknown(r, doc, i, "", &known);
	str_list_release(&known);
	return rc;
}

static int read_document(const struct reading *r, const struct node *doc)
{
	char where[256];

	if (doc->kind != NODE_MAP)
		return node_refuse(doc, "framework.costs", r->e,
				   "a profile is a map with the keys name and laws, not %s",
				   node_kind_name(doc->kind));
	if (!node_get(doc, "name") || !node_get(doc, "laws"))
		return err_set(r->e, ERR_USAGE,
			       "%s: a profile of costs has the keys name and laws: %s is missing",
			       node_mark_text(doc->mark, where, sizeof(where)),
			       node_get(doc, "name") ? "laws" : "name");
	for (size_t i = 0; i < doc->n; i++) {
		const struct node *v = doc->child[i];
		size_t k = 0;
		int rc;

		while (k < COST_ABOUTS && strcmp(about_keys[k], doc->key[i]) != 0)
			k++;
		if (k < COST_ABOUTS)
			rc = read_text(r, about_keys[k], v, &r->c->about[k]);
		else if (strcmp(doc->key[i], "name") == 0)
			rc = read_name(r, v);
		else if (strcmp(doc->key[i], "laws") == 0)
			rc = read_laws(r, v);
		else
			rc = unknown_key(r, doc, i);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* The law at position `i` of all rows, and its name into `name`; NULL behind the last one. */
static const struct cost_law *law_at(const struct framework_costs *c, size_t i, char name[64],
				     const struct cost_row_facts **facts)
{
	size_t formats = 0;

	while (format_facts_table[formats])
		formats++;
	if (i >= formats + COST_ROWS)
		return NULL;
	if (i < formats) {
		snprintf(name, 64, COST_LOAD "%s", format_facts_table[i]->name);
		*facts = &cost_load_row;
		return &c->load[i];
	}
	snprintf(name, 64, "%s", cost_rows[i - formats].name);
	*facts = &cost_rows[i - formats];
	return &c->of[i - formats];
}

bool costs_row_name(size_t i, char name[64])
{
	const struct cost_row_facts *facts;
	static const struct framework_costs nothing;

	return law_at(&nothing, i, name, &facts) != NULL;
}

static void put_point(struct buf *text, const struct cost_point *p)
{
	buf_printf(text, "%.17g %.17g %.17g\n", p->bytes, p->s, p->after_wait);
	if (p->alone_s < p->s || p->alone_s > p->s)
		buf_printf(text, "alone %.17g\n", p->alone_s);
}

static void set_digest(struct framework_costs *c)
{
	const struct cost_row_facts *facts;
	const struct cost_law *law;
	char hex[SHA256_HEX], name[64];
	struct buf text = {0};
	struct sha256 h;

	buf_printf(&text, "%s\n", c->name);
	for (size_t i = 0; (law = law_at(c, i, name, &facts)); i++) {
		if (law->present)
			buf_printf(&text, "%s %.17g %.17g %.17g %.17g %.17g\n", name, law->fixed,
				   law->per_sample, law->per_byte, law->after_wait, law->spread);
		if (law->after_each_wait > 0)
			buf_printf(&text, "each %.17g\n", law->after_each_wait);
		if (law->first > 0)
			buf_printf(&text, "first %.17g\n", law->first);
		if (law->before_data > 0 || law->after_data > 0)
			buf_printf(&text, "data %.17g %.17g\n", law->before_data, law->after_data);
		if (law->import_s > 0)
			buf_printf(&text, "import %.17g\n", law->import_s);
		for (size_t k = 0; k < law->points; k++)
			put_point(&text, &law->point[k]);
	}
	sha256_begin(&h);
	sha256_add(&h, text.data, text.len);
	sha256_end(&h, hex);
	buf_release(&text);
	snprintf(c->digest, sizeof(c->digest), "%.*s", DIGITS, hex);
}

struct framework_costs *costs_from_node(const struct node *doc, bool tolerant, struct err *e)
{
	struct framework_costs *c = xcalloc(1, sizeof(*c));
	const struct reading r = {c, tolerant, e};

	if (read_document(&r, doc) < 0) {
		costs_release(c);
		return NULL;
	}
	set_digest(c);
	return c;
}

void costs_release(struct framework_costs *c)
{
	if (!c)
		return;
	free(c->name);
	for (size_t i = 0; i < COST_ABOUTS; i++)
		free(c->about[i]);
	free(c);
}

/* ---- found ---- */

const char *const *costs_builtin_names(void)
{
	return builtin_costs_names;
}

const char *costs_builtin_text(const char *name)
{
	const char *text = NULL;
	size_t n = strlen(name);

	for (size_t i = 0; builtin_costs_names[i]; i++) {
		if (strcmp(builtin_costs_names[i], name) == 0)
			return builtin_costs_texts[i];
		/* sorted: the newest one is the last */
		if (str_starts(builtin_costs_names[i], name) && builtin_costs_names[i][n] == '-')
			text = builtin_costs_texts[i];
	}
	return text;
}

static struct framework_costs *from_text(const char *text, size_t n, const char *label,
					 struct err *e)
{
	struct node *doc = yaml_parse(text, n, label, e);
	struct framework_costs *c = doc ? costs_from_node(doc, false, e) : NULL;

	node_free(doc);
	return c;
}

static bool is_path(const char *s)
{
	return strchr(s, '/') || str_ends(s, ".yaml") || str_ends(s, ".yml");
}

static struct framework_costs *not_found(const char *name, struct err *e)
{
	struct buf list = {0};
	size_t n = 0;

	for (; builtin_costs_names[n]; n++)
		buf_printf(&list, ", %s", builtin_costs_names[n]);
	const char *near = str_nearest(name, builtin_costs_names, n);

	err_set(e, ERR_USAGE,
		"%s%s%sthere are no costs '%.64s': allowed are none%s and the path of a profile, "
		"which 'stoker calibrate' writes",
		near ? "did you mean " : "", near ? near : "", near ? "? " : "", name,
		list.data ? list.data : "");
	buf_release(&list);
	return NULL;
}

/* "NAME@DIGEST" of a profile built in. */
static struct framework_costs *labelled(const char *label, struct err *e)
{
	const char *at = strrchr(label, '@');
	AUTO_FREE char *name = xstrndup(label, (size_t)(at - label));
	const char *text = costs_builtin_text(name);
	struct framework_costs *c = text ? from_text(text, strlen(text), name, e) : NULL;

	if (c && strcmp(c->digest, at + 1) != 0) {
		err_set(e, ERR_USAGE,
			"the costs '%.80s' are not those of this version, which has %s@%s: write "
			"%s, or the path of a file that has them",
			label, name, c->digest, name);
		costs_release(c);
		return NULL;
	}
	return c ? c : not_found(label, e);
}

struct framework_costs *costs_load(const char *name_or_path, struct err *e)
{
	const char *builtin = costs_builtin_text(name_or_path);
	struct framework_costs *c;
	struct buf text = {0};
	int rc;

	if (builtin) {
		AUTO_FREE char *label = xasprintf("built-in/%s.yaml", name_or_path);

		return from_text(builtin, strlen(builtin), label, e);
	}
	rc = is_path(name_or_path) ? 1 : file_there(name_or_path, e);
	if (rc == 0 && strchr(name_or_path, '@'))
		return labelled(name_or_path, e);
	if (rc == 0)
		return not_found(name_or_path, e);
	if (rc > 0)
		rc = file_read(name_or_path, PROFILE_MAX_BYTES, &text, e);
	if (rc < 0) {
		if (e)
			e->code = ERR_USAGE;
		return NULL;
	}
	c = from_text(text.data ? text.data : "", text.len, name_or_path, e);
	buf_release(&text);
	return c;
}

/* ---- to a document, and to text ---- */

static struct node *text_node(const char *text)
{
	struct node *n = node_new_str(text, (struct node_mark){0});

	n->literal = true;
	return n;
}

static struct node *number_node(double v)
{
	struct node *n = node_new(NODE_FLOAT, (struct node_mark){0});

	n->f = v;
	return n;
}

static void put(struct node *map, const char *key, struct node *v)
{
	node_add(map, key, (struct node_mark){0}, v);
}

static double parameter(const struct cost_law *law, size_t k)
{
	return *(const double *)((const char *)law + law_rows[k].offset);
}

static struct node *points_node(const struct cost_law *law, const struct cost_row_facts *facts)
{
	struct node *list = node_new(NODE_LIST, (struct node_mark){0});

	for (size_t i = 0; i < law->points; i++) {
		const struct cost_point *p = &law->point[i];
		struct node *n = node_new(NODE_LIST, (struct node_mark){0});

		node_append(n, number_node(p->bytes));
		node_append(n, number_node(p->s));
		node_append(n, number_node(p->after_wait));
		if (facts->parameters & COST_HAS_DATA)
			node_append(n, number_node(p->alone_s));
		node_append(list, n);
	}
	return list;
}

struct node *costs_node(const struct framework_costs *c)
{
	struct node *doc = node_new(NODE_MAP, (struct node_mark){0}),
		    *laws = node_new(NODE_MAP, (struct node_mark){0});
	const struct cost_row_facts *facts;
	const struct cost_law *law;
	char name[64];

	put(doc, "name", text_node(c->name));
	for (size_t i = 0; i < COST_ABOUTS; i++)
		if (c->about[i])
			put(doc, about_keys[i], text_node(c->about[i]));
	for (size_t i = 0; (law = law_at(c, i, name, &facts)); i++) {
		struct node *map;

		if (!law->present)
			continue;
		map = node_new(NODE_MAP, (struct node_mark){0});
		for (size_t k = 0; k < PARAMETERS; k++)
			if (facts->parameters & parameter_bits[k])
				put(map, law_rows[k].key, number_node(parameter(law, k)));
		if (law->points)
			put(map, POINTS, points_node(law, facts));
		put(laws, name, map);
	}
	put(doc, "laws", laws);
	return doc;
}

char *costs_label(const struct framework_costs *c)
{
	return xasprintf("%s@%s", c->name, c->digest);
}

void costs_print(const struct framework_costs *c, struct buf *out)
{
	const struct cost_row_facts *facts;
	const struct cost_law *law;
	char name[64];

	buf_say(out, "%s@%s\n", c->name, c->digest);
	for (size_t i = 0; i < COST_ABOUTS; i++)
		if (c->about[i])
			buf_say(out, "%-12s %s\n", about_keys[i], c->about[i]);
	buf_say(out, "\n%-26s %10s %13s %10s %15s %9s %8s  %s\n", "law", "fixed, us",
		"a sample, us", "a MiB, us", "after wait, us", "each, us", "spread", "spent by");
	for (size_t i = 0; (law = law_at(c, i, name, &facts)); i++)
		if (law->present)
			buf_say(out, "%-26s %10.1f %13.1f %10.1f %15.1f %9.1f %6.0f %%  %s\n", name,
				law->fixed * 1e6, law->per_sample * 1e6, law->per_byte * 1048576e6,
				law->after_wait * 1e6, law->after_each_wait * 1e6,
				law->spread * 100, facts->spent_by);
}
