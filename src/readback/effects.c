/* Effects of factors. */
#include "readback/effects.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/map.h"
#include "conf/quantity.h"
#include "readback/compare.h"
#include "readback/sides.h"
#include "workload/key.h"

/* Without a test: of AU, and of a rate; of several values, and of so few that they show no error.
 */
static const double LEAST_POINTS[] = {1, 5};
static const double LEAST_SHARE[] = {0.02, 0.1};

struct effect effect_of(const struct run_group *base, const struct run_group *x,
			enum effect_measure m)
{
	bool au = m == EFFECT_WHOLE_AU;
	const struct sample_stat *a = au ? &base->whole_au : &base->whole_rate;
	const struct sample_stat *b = au ? &x->whole_au : &x->whole_rate;
	bool few = a->n < SPREAD_VALUES || b->n < SPREAD_VALUES;
	double share = LEAST_SHARE[few] * fmax(a->mean, b->mean);
	double least = au ? fmin(LEAST_POINTS[few], share) : share;
	struct effect e = {.change = b->mean - a->mean};

	e.tested = base->counted >= COMPARE_RUNS_NEEDED && x->counted >= COMPARE_RUNS_NEEDED &&
		   a->n >= COMPARE_RUNS_NEEDED && b->n >= COMPARE_RUNS_NEEDED;
	if (e.tested)
		e.test = welch_test(au ? base->whole_au_v : base->throughput_v, a->n,
				    au ? x->whole_au_v : x->throughput_v, b->n);
	e.differs = e.tested ? e.test.p < COMPARE_LEVEL
			     : (a->min > b->max || a->max < b->min) && fabs(e.change) > least;
	return e;
}

/* ---- one factor ---- */

static size_t key_length(const char *factor)
{
	return strcspn(factor, "=");
}

/* As the option table calls it, whichever alias was typed. */
static const char *canonical(const char *key)
{
	const struct opt *row = workload_key_row(key);

	return row ? row->key : key;
}

char *other_difference(const struct run_groups *g, const struct run_group *a,
		       const struct run_group *b, const char *key)
{
	const char *own = key ? canonical(key) : "";
	size_t n = strlen(own);
	struct str_list unlike = {0};
	char *found = NULL;

	unlike_keys(&g->record[a->record[0]], &g->record[b->record[0]], &unlike);
	for (size_t i = 0; i < unlike.n && !found; i++) {
		size_t length = key_length(unlike.v[i]);
		bool is_own = n && strncmp(unlike.v[i], own, n) == 0 &&
			      (length == n || unlike.v[i][n] == '.');

		if (!is_own)
			found = xstrndup(unlike.v[i], length);
	}
	str_list_release(&unlike);
	return found;
}

/* All factors of a group but one, as the groups' own text has them. */
static char *rest_of(const struct run_group *x, size_t without)
{
	struct buf text = {0};

	for (size_t i = 0; i < x->factor.n; i++)
		if (i != without)
			buf_printf(&text, "%s%s", text.len ? ", " : "", x->factor.v[i]);
	return text.len ? buf_take(&text) : xstrdup("");
}

static void add_member(struct family *f, const struct run_group *x)
{
	/* doubled at powers of two */
	if ((f->groups & (f->groups - 1)) == 0)
		f->group = xrealloc(f->group, (f->groups ? 2 * f->groups : 1) * sizeof(*f->group));
	f->group[f->groups++] = x;
}

/* `names`: what the families are found by. */
static struct family *family_of(struct families *f, struct texts *names, const struct run_group *x,
				const char *key, const char *rest)
{
	AUTO_FREE char *name = xasprintf("%u %s\n%s\n%s", x->ranks, x->model, key, rest);
	size_t known = names->n, i = texts_add(names, name);

	if (i < known)
		return &f->v[i];
	if ((f->n & (f->n - 1)) == 0)
		f->v = xrealloc(f->v, (f->n ? 2 * f->n : 1) * sizeof(*f->v));
	f->v[f->n] = (struct family){.key = xstrdup(key), .rest = xstrdup(rest)};
	return &f->v[f->n++];
}

static const char *override_of(const struct family *f, const struct run_group *x)
{
	size_t n = strlen(f->key);

	for (size_t i = 0; i < x->factor.n; i++)
		if (key_length(x->factor.v[i]) == n && strncmp(x->factor.v[i], f->key, n) == 0)
			return x->factor.v[i] + n + (x->factor.v[i][n] == '=');
	return NULL;
}

const char *family_value(const struct family *f, const struct run_group *x)
{
	const char *typed = override_of(f, x);

	return typed ? typed : f->value;
}

bool key_number(const char *key, const char *value, double *out)
{
	const struct opt *row = workload_key_row(key);

	return quantity_number(value, row ? row->unit : "bytes", out);
}

/* Numbers by their values, before texts. */
static int by_value(const char *key, const char *a, const char *b)
{
	double x, y;
	bool is_x = key_number(key, a, &x), is_y = key_number(key, b, &y);

	if (is_x && is_y && (x < y || x > y))
		return x < y ? -1 : 1;
	if (is_x && is_y)
		return 0;
	return is_x != is_y ? is_y - is_x : strcmp(a, b);
}

/* Members are in the order of the groups. */
static int by_override(const void *a, const void *b, void *family)
{
	const struct run_group *const *x = a, *const *y = b;
	const struct family *f = family;
	int order = by_value(f->key, override_of(f, *x), override_of(f, *y));

	return order ? order : *x < *y ? -1 : *x > *y;
}

static void sort_members(struct family *f)
{
	if (f->groups)
		qsort_r(f->group, f->groups, sizeof(*f->group), by_override, f);
}

/* Groups that count, by what they are found by: the first of each name. */
static char *base_name(const struct run_group *x, const char *factors)
{
	return xasprintf("%u %s\n%s", x->ranks, x->model, factors);
}

static void find_base(struct family *f, const struct run_groups *g, const struct texts *names,
		      const size_t *group)
{
	AUTO_FREE char *name = base_name(f->group[0], f->rest);
	size_t i = texts_find(names, name);
	const struct run_group *x;

	if (i == TEXT_NONE)
		return;
	x = &g->group[group[i]];
	if (override_of(f, x))
		return;
	add_member(f, x);
	memmove(f->group + 1, f->group, (f->groups - 1) * sizeof(*f->group));
	f->group[0] = x;
	f->base = true;
}

/* The value that took effect without an override. */
static void find_value(struct family *f, const struct run_groups *g)
{
	const char *typed = override_of(f, f->group[0]);

	f->value = typed ? xstrdup(typed)
			 : key_value(&g->record[f->group[0]->record[0]], canonical(f->key));
	if (!f->value)
		f->value = xstrdup("");
}

static void drop_unlike(struct family *f, const struct run_groups *g)
{
	size_t n = 1;

	for (size_t i = 1; i < f->groups; i++) {
		AUTO_FREE char *other = other_difference(g, f->group[0], f->group[i], f->key);

		if (other)
			str_list_add(&f->unlike, xasprintf("%s (%s differs, too)",
							   override_of(f, f->group[i]), other));
		else if (f->base && f->value[0] &&
			 !by_value(f->key, override_of(f, f->group[i]), f->value))
			str_list_add(&f->unlike,
				     xasprintf("%s (it is the value without an override)",
					       override_of(f, f->group[i])));
		else
			f->group[n++] = f->group[i];
	}
	f->groups = n;
}

static void release_family(struct family *f)
{
	free(f->group);
	free(f->key);
	free(f->rest);
	free(f->value);
	str_list_release(&f->unlike);
}

void families_find(struct families *f, const struct run_groups *g)
{
	struct texts names = {0}, bases = {0};
	size_t *group = xcalloc(g->groups + 1, sizeof(*group)), n = 0;

	*f = (struct families){0};
	for (size_t i = 0; i < g->groups; i++) {
		const struct run_group *x = &g->group[i];
		AUTO_FREE char *base = base_name(x, x->factors);
		size_t known = bases.n;

		for (size_t k = 0; x->counted && k < x->factor.n; k++) {
			const char *text = x->factor.v[k];
			AUTO_FREE char *key = xstrndup(text, key_length(text));
			AUTO_FREE char *rest = rest_of(x, k);

			add_member(family_of(f, &names, x, key, rest), x);
		}
		if (x->counted && texts_add(&bases, base) == known)
			group[known] = i;
	}
	for (size_t i = 0; i < f->n; i++) {
		struct family *x = &f->v[i];

		sort_members(x);
		find_base(x, g, &bases, group);
		find_value(x, g);
		drop_unlike(x, g);
		if (x->groups < 2 && x->unlike.n == 0)
			release_family(x);
		else
			f->v[n++] = *x;
	}
	f->n = n;
	texts_release(&names);
	texts_release(&bases);
	free(group);
}

void families_release(struct families *f)
{
	for (size_t i = 0; i < f->n; i++)
		release_family(&f->v[i]);
	free(f->v);
	*f = (struct families){0};
}
