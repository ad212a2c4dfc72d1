/* Durations as DLIO configures them: a number, or a map that names a distribution. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "conf/opt.h"

struct shape {
	const char *name;
	enum time_kind kind;
	const char *a, *b;
};

static const struct shape shapes[] = {
	{"normal", TIME_NORMAL, "mean", "stdev"}, {"uniform", TIME_UNIFORM, "min", "max"},
	{"gamma", TIME_GAMMA, "shape", "scale"},  {"exponential", TIME_EXPONENTIAL, "scale", NULL},
	{"poisson", TIME_POISSON, "lam", NULL},   {"pareto", TIME_PARETO, "shape", "min"},
};

static const char *const field_names[] = {"type", "mean",  "stdev", "min",
					  "max",  "shape", "scale", "lam"};
#define FIELD_COUNT (sizeof(field_names) / sizeof(field_names[0]))
#define SHAPE_COUNT (sizeof(shapes) / sizeof(shapes[0]))

static int check_fields(const struct node *map, const char *key, struct err *e)
{
	for (size_t i = 0; i < map->n; i++) {
		size_t f = 0;

		while (f < FIELD_COUNT && strcmp(map->key[i], field_names[f]) != 0)
			f++;
		if (f == FIELD_COUNT)
			return node_refuse(
				map->child[i], key, e,
				"'%s' is not a field of a time distribution (type, mean, "
				"stdev, min, max, shape, scale, lam)",
				map->key[i]);
	}
	return 0;
}

/* A number of the distribution, or the only one, is a key of its own with the range of the row. */
static int dist_number(const struct node *v, const struct opt *row, const char *field, double *out,
		       struct err *e)
{
	AUTO_FREE char *key = field ? xasprintf("%s.%s", row->key, field) : xstrdup(row->key);
	bool pure = field && strcmp(field, "shape") == 0; /* no time */
	const struct opt number = {.key = key,
				   .type = OPT_F64,
				   .def = "0",
				   .min = row->min,
				   .max = row->max,
				   .unit = pure ? NULL : row->unit};

	return opt_set_node(&number, v, out, e);
}

static int field(const struct node *map, const struct opt *row, const char *name, double *out,
		 struct err *e)
{
	const struct node *v = node_get(map, name);

	*out = 0;
	if (!name)
		return 0;
	if (!v)
		return node_refuse(map, row->key, e, "the distribution has no '%s'", name);
	return dist_number(v, row, name, out, e);
}

static int set_shape(struct time_dist *d, const struct node *map, const struct shape *s,
		     const struct opt *row, struct err *e)
{
	struct time_dist t = {.kind = s->kind};
	int rc = field(map, row, s->a, &t.a, e);

	if (rc == 0 && s->b)
		rc = field(map, row, s->b, &t.b, e);
	if (rc == 0 && t.kind == TIME_PARETO && !(t.a > 1))
		return node_refuse(node_get(map, s->a), row->key, e,
				   "the shape of a Pareto distribution is %g; it must be above 1, "
				   "or there is no mean",
				   t.a);
	if (rc == 0)
		*d = t;
	return rc;
}

static int set_typed(struct time_dist *d, const struct node *map, const struct node *type,
		     const struct opt *row, struct err *e)
{
	char q[NODE_QUOTE_MAX];

	for (size_t i = 0; i < SHAPE_COUNT; i++) {
		if (type->kind == NODE_STR && strcasecmp(type->s, shapes[i].name) == 0)
			return set_shape(d, map, &shapes[i], row, e);
	}
	return node_refuse(
		type, row->key, e,
		"%s is not a distribution (normal, uniform, gamma, exponential, poisson, "
		"pareto)",
		node_quote(type, q, sizeof(q)));
}

static int set_map(struct time_dist *d, const struct node *map, const struct opt *row,
		   struct err *e)
{
	const struct node *type = node_get(map, "type");
	struct time_dist t = {.kind = TIME_CONSTANT};
	int rc = check_fields(map, row->key, e);

	if (rc != 0)
		return rc;
	if (map->n == 0) {
		*d = (struct time_dist){.kind = TIME_NONE};
		return 0;
	}
	if (type && type->kind != NODE_NULL)
		return set_typed(d, map, type, row, e);
	if (node_get(map, "stdev"))
		return set_shape(d, map, &shapes[0], row, e);
	rc = field(map, row, "mean", &t.a, e);
	if (rc == 0)
		*d = t;
	return rc;
}

int time_dist_set_node(struct time_dist *d, const struct node *v, const struct opt *row,
		       struct err *e)
{
	struct time_dist t = {.kind = TIME_CONSTANT};
	int rc;

	if (v->kind == NODE_NULL) {
		*d = (struct time_dist){.kind = TIME_NONE};
		return 0;
	}
	if (v->kind == NODE_MAP)
		return set_map(d, v, row, e);
	rc = dist_number(v, row, NULL, &t.a, e);
	if (rc == 0)
		*d = t;
	return rc;
}

void time_dist_set_stdev(struct time_dist *d, double stdev)
{
	if (d->kind != TIME_CONSTANT && d->kind != TIME_NORMAL)
		return;
	d->kind = TIME_NORMAL;
	d->b = stdev;
}

/* Whole numbers are configured without a point nearly always, and DLIO shows them as configured. */
static char *shown(double v, char *out, size_t out_size)
{
	if (v == floor(v) && fabs(v) < 1e15)
		snprintf(out, out_size, "%.0f", v);
	else
		node_float_text(v, out, out_size);
	return out;
}

char *time_dist_python(const struct time_dist *d)
{
	char a[NODE_FLOAT_TEXT_MAX], b[NODE_FLOAT_TEXT_MAX];

	shown(d->a, a, sizeof(a));
	shown(d->b, b, sizeof(b));
	if (d->kind == TIME_CONSTANT)
		return xasprintf("{'mean': %s}", a);
	if (d->kind == TIME_NORMAL)
		return xasprintf("{'mean': %s, 'stdev': %s}", a, b);
	for (size_t i = 1; i < SHAPE_COUNT; i++) {
		const struct shape *s = &shapes[i];

		if (s->kind != d->kind)
			continue;
		if (!s->b)
			return xasprintf("{'type': '%s', '%s': %s}", s->name, s->a, a);
		return xasprintf("{'type': '%s', '%s': %s, '%s': %s}", s->name, s->a, a, s->b, b);
	}
	return xstrdup("{}");
}

double time_dist_mean(const struct time_dist *d)
{
	switch (d->kind) {
	case TIME_NONE:
		return 0;
	case TIME_UNIFORM:
		return (d->a + d->b) / 2;
	case TIME_GAMMA:
		return d->a * d->b;
	case TIME_PARETO:
		return d->b * d->a / (d->a - 1);
	default:
		return d->a;
	}
}
