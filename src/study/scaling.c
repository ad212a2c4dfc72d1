/* Scaling numbers of a workload. */
#include "study/scaling.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"

/* "KEY=FACTOR" taken apart. A key of a store's own is in the store's rows. */
struct scale {
	const struct opt *row;
	const struct store_facts *store; /* whose row it is; NULL: a key of the workload */
	double factor;
};

const char *scaling_for_model(const char *text, const char *model)
{
	size_t n = strcspn(text, ":=");

	if (text[n] != ':')
		return text;
	return strlen(model) == n && strncmp(text, model, n) == 0 ? text + n + 1 : NULL;
}

/* ---- reading ---- */

static const struct opt *store_row(const char *key, const struct store_facts **store)
{
	for (size_t i = 0; store_facts_table[i]; i++) {
		const struct store_facts *s = store_facts_table[i];
		AUTO_FREE char *section = xasprintf("storage.%s.", s->name);
		const struct opt *row;

		if (!str_starts(key, section))
			continue;
		row = opt_find(s->options, s->option_count, key + strlen(section));
		*store = row ? s : NULL;
		return row;
	}
	return NULL;
}

static bool is_number(const struct opt *row)
{
	return row->type == OPT_I64 || row->type == OPT_F64 || row->type == OPT_TIME ||
	       row->type == OPT_I64_LIST;
}

static const struct opt *find_row(const char *key, const struct store_facts **store)
{
	const struct opt *row = opt_find(workload_rows, workload_row_count, key);

	*store = NULL;
	return row ? row : store_row(key, store);
}

static int parse_scale(const char *text, struct scale *out, struct err *e)
{
	const char *equal = strchr(text, '=');
	const char *bare = text + strspn(text, "+");
	AUTO_FREE char *key = NULL;
	const char *near;

	if (str_starts(bare, "workload."))
		bare += strlen("workload.");
	if (!equal || equal <= bare)
		return err_set(e, ERR_USAGE,
			       "--scale: '%s' is not a key and a factor "
			       "(dataset.num_files_train=0.1)",
			       text);
	key = xstrndup(bare, (size_t)(equal - bare));
	out->row = find_row(key, &out->store);
	if (!out->row) {
		near = opt_nearest_key(workload_rows, workload_row_count, key);
		return err_set(e, ERR_USAGE, "--scale: '%s': there is no key '%s'%s%s%s", text, key,
			       near ? "; did you mean " : " ('stoker show config' lists the keys)",
			       near ? near : "", near ? "?" : "");
	}
	if (!is_number(out->row))
		return err_set(e, ERR_USAGE, "--scale: '%s': %s is not a number", text, key);
	if (!str_to_f64(equal + 1, &out->factor) || !(out->factor > 0) || !isfinite(out->factor))
		return err_set(e, ERR_USAGE,
			       "--scale: '%s': the factor '%s' is not a number above 0", text,
			       equal + 1);
	return 0;
}

int scaling_check(const struct str_list *texts, struct err *e)
{
	struct scale s;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < texts->n; i++) {
		const char *text = texts->v[i];
		size_t model = strcspn(text, ":=");

		rc = parse_scale(text[model] == ':' ? text + model + 1 : text, &s, e);
	}
	return rc;
}

/* ---- multiplying ---- */

/* A count of 1 or more stays one. */
static double whole(double v, double factor)
{
	double scaled = floor(v * factor);

	return scaled < 1 ? 1 : scaled;
}

static void put_time(const struct time_dist *t, double factor, struct buf *out)
{
	double a = t->a * factor, b = t->b * factor;

	switch (t->kind) {
	case TIME_NONE:
		buf_puts(out, "0");
		break;
	case TIME_CONSTANT:
		buf_printf(out, "%.15g", a);
		break;
	case TIME_NORMAL:
		buf_printf(out, "{mean: %.15g, stdev: %.15g}", a, b);
		break;
	case TIME_UNIFORM:
		buf_printf(out, "{type: uniform, min: %.15g, max: %.15g}", a, b);
		break;
	case TIME_GAMMA: /* its shape has no unit */
		buf_printf(out, "{type: gamma, shape: %.15g, scale: %.15g}", t->a, b);
		break;
	case TIME_EXPONENTIAL:
		buf_printf(out, "{type: exponential, scale: %.15g}", a);
		break;
	case TIME_POISSON:
		buf_printf(out, "{type: poisson, lam: %.15g}", a);
		break;
	case TIME_PARETO: /* nor has its */
		buf_printf(out, "{type: pareto, shape: %.15g, min: %.15g}", t->a, b);
		break;
	}
}

/* False: the value stays as it is. */
static bool put_scaled(const struct opt *row, const void *field, double factor, struct buf *out)
{
	const struct i64_list *list = field;
	double v;

	switch (row->type) {
	case OPT_TIME:
		put_time(field, factor, out);
		return ((const struct time_dist *)field)->kind != TIME_NONE;
	case OPT_I64_LIST:
		buf_putc(out, '[');
		for (size_t i = 0; i < list->n; i++)
			buf_printf(out, "%s%.0f", i ? "," : "",
				   list->v[i] > 0 ? whole((double)list->v[i], factor)
						  : (double)list->v[i]);
		buf_putc(out, ']');
		return list->n > 0;
	case OPT_I64:
		v = (double)*(const int64_t *)field;
		if (v > 0)
			buf_printf(out, "%.0f", whole(v, factor));
		return v > 0;
	default:
		assert(row->type == OPT_F64);
		v = *(const double *)field;
		if (v > 0 && row->unit && str_starts(row->unit, "byte") && v >= 1)
			buf_printf(out, "%.15g", whole(v, factor));
		else if (v > 0)
			buf_printf(out, "%.15g", v * factor);
		return v > 0;
	}
}

static void scale_row(const void *base, const char *prefix, const struct opt *row, double factor,
		      struct str_list *overrides)
{
	struct buf text = {0};

	if (put_scaled(row, (const char *)base + row->offset, factor, &text))
		str_list_add(overrides,
			     xasprintf("++workload.%s%s=%s", prefix, row->key, text.data));
	buf_release(&text);
}

static void scale_workload(const struct workload *w, const struct opt *row, double factor,
			   struct str_list *overrides)
{
	AUTO_FREE char *key = xasprintf("%s_stdev", row->key);
	const struct opt *stdev = opt_find(workload_rows, workload_row_count, key);

	scale_row(w, "", row, factor, overrides);
	if (stdev)
		scale_row(w, "", stdev, factor, overrides);
}

void scaling_key(const struct workload *w, const char *key, double factor,
		 struct str_list *overrides)
{
	const struct opt *row = opt_find(workload_rows, workload_row_count, key);

	assert(row && is_number(row));
	scale_workload(w, row, factor, overrides);
}

int scaling_apply(const struct workload *w, const char *text, struct str_list *overrides,
		  struct err *e)
{
	struct scale s;
	int rc = parse_scale(text, &s, e);

	if (rc < 0)
		return rc;
	if (s.store) {
		AUTO_FREE char *prefix = xasprintf("storage.%s.", s.store->name);
		void *config = workload_store_config(w, s.store, e);

		if (!config)
			return ERR_USAGE;
		scale_row(config, prefix, s.row, s.factor, overrides);
		opt_release(s.store->options, s.store->option_count, config);
		free(config);
		return 0;
	}
	scale_workload(w, s.row, s.factor, overrides);
	return 0;
}
