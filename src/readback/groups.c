/* Grouping of runs. */
#include "readback/groups.h"
#include "readback/record_measures.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "readback/claim.h"
#include "readback/same_run.h"
#include "readback/sides.h"

static const double AU_POSSIBLE = 100.5; /* percent: what rounding of times allows */

const char *run_standing_name(enum run_standing s)
{
	static const char *const names[] = {
		[RUN_COUNTS] = "",
		[RUN_FAILED] = "check failed",
		[RUN_IMPOSSIBLE] = "impossible or unknown figures",
		[RUN_FROM_MEMORY] = "page cache or memory",
		[RUN_COPY] = "copy",
		[RUN_BROKEN] = "damaged or incomplete",
		[RUN_UNTRAINED] = "no training",
	};

	assert(s <= RUN_UNTRAINED);
	return names[s];
}

/* ---- which runs are one configuration ---- */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *joined(struct str_list *v)
{
	struct buf text = {0};

	if (v->n)
		qsort(v->v, v->n, sizeof(*v->v), by_text);
	for (size_t i = 0; i < v->n; i++)
		buf_printf(&text, "%s%s", i ? ", " : "", v->v[i]);
	return text.len ? buf_take(&text) : xstrdup("");
}

static bool has_factor(const struct str_list *v, const char *one)
{
	for (size_t i = 0; i < v->n; i++)
		if (strcmp(v->v[i], one) == 0)
			return true;
	return false;
}

/* Overrides that all runs of a model have: they set none of them apart. */
struct shared {
	const char *model;
	struct str_list factors;
};

struct all_shared {
	struct shared *v;
	size_t n;
};

static struct shared *shared_of(const struct all_shared *all, const char *model)
{
	for (size_t i = 0; i < all->n; i++)
		if (strcmp(all->v[i].model, model) == 0)
			return &all->v[i];
	return NULL;
}

static void keep_common(struct str_list *v, const struct str_list *other)
{
	size_t n = 0;

	for (size_t i = 0; i < v->n; i++)
		if (has_factor(other, v->v[i]))
			v->v[n++] = v->v[i];
		else
			free(v->v[i]);
	v->n = n;
}

static void find_shared(struct all_shared *all, const struct run_record *r, size_t n)
{
	*all = (struct all_shared){0};
	for (size_t i = 0; i < n; i++) {
		struct shared *x = shared_of(all, r[i].model);

		if (!r[i].trained)
			continue;
		if (x) {
			keep_common(&x->factors, &r[i].factors);
			continue;
		}
		all->v = xrealloc(all->v, (all->n + 1) * sizeof(*all->v));
		x = &all->v[all->n++];
		*x = (struct shared){.model = r[i].model};
		for (size_t k = 0; k < r[i].factors.n; k++)
			str_list_add(&x->factors, xstrdup(r[i].factors.v[k]));
	}
}

static void release_shared(struct all_shared *all)
{
	for (size_t i = 0; i < all->n; i++)
		str_list_release(&all->v[i].factors);
	free(all->v);
}

/* The keys that make a run no repetition of the group's first one become factors of it. */
static bool repeats(const struct run_groups *g, const struct run_group *x,
		    const struct run_record *r, struct str_list *factors)
{
	struct str_list unlike = {0};
	size_t n;

	unlike_keys(&g->record[x->record[0]], r, &unlike);
	for (size_t i = 0; i < unlike.n; i++) {
		bool has = false;

		n = strcspn(unlike.v[i], "=");
		for (size_t k = 0; k < factors->n; k++)
			has = has || (strncmp(factors->v[k], unlike.v[i], n) == 0 &&
				      strcspn(factors->v[k], "=") == n);
		if (!has)
			str_list_add(factors, xstrdup(unlike.v[i]));
	}
	n = unlike.n;
	str_list_release(&unlike);
	return n == 0;
}
static struct run_group *find_group(struct run_groups *g, const struct run_record *r,
				    const char *factors)
{
	for (size_t i = 0; i < g->groups; i++) {
		struct run_group *x = &g->group[i];

		if (x->ranks == r->ranks && strcmp(x->model, r->model) == 0 &&
		    strcmp(x->factors, factors) == 0)
			return x;
	}
	return NULL;
}

static struct run_group *add_group(struct run_groups *g, const struct run_record *r,
				   const struct str_list *factors, char *text)
{
	struct run_group *x;

	g->group = xrealloc(g->group, (g->groups + 1) * sizeof(*g->group));
	x = &g->group[g->groups++];
	*x = (struct run_group){.model = r->model,
				.factors = text,
				.factor = *factors,
				.ranks = r->ranks,
				.target = NAN};
	if (r->has_workload && r->workload.metric.au > 0)
		x->target = 100 * r->workload.metric.au;
	return x;
}

static struct run_group *group_of(struct run_groups *g, const struct run_record *r,
				  const struct shared *shared)
{
	struct str_list factors = {0};

	for (size_t i = 0; i < r->factors.n; i++)
		if (!has_factor(&shared->factors, r->factors.v[i]))
			str_list_add(&factors, xstrdup(r->factors.v[i]));
	for (;;) {
		char *text = joined(&factors);
		struct run_group *x = find_group(g, r, text);
		size_t before = factors.n;

		if (!x) {
			x = add_group(g, r, &factors, text);
			x->shared = shared->factors.n > 0;
			return x;
		}
		free(text);
		/* without a new factor, a key with several values tells them apart: one group */
		if (repeats(g, x, r, &factors) || factors.n == before) {
			str_list_release(&factors);
			return x;
		}
	}
}

/* ---- which of them count ---- */

static bool about_memory(const struct finding *f)
{
	return f->about_cache && (f->level == AUDIT_WARN || f->level == AUDIT_FAIL);
}

bool run_from_memory(const struct run_groups *g, size_t record)
{
	if (claim_storage(&g->record[record]))
		return claim_from_memory(&g->record[record]);
	for (size_t i = 0; i < g->audit->findings; i++)
		if (g->audit->finding[i].record == record && about_memory(&g->audit->finding[i]))
			return true;
	return false;
}

static bool possible(const struct run_record *r)
{
	double au = record_whole_run_au(r), rate = record_whole_throughput(r);

	return au >= 0 && au <= AU_POSSIBLE && !(rate < 0);
}

static bool same_model(const struct run_groups *g, size_t i, size_t k)
{
	return strcmp(g->record[i].model, g->record[k].model) == 0;
}

static void judge_standing(struct run_groups *g)
{
	bool *memory = xcalloc(g->records + 1, sizeof(*memory));

	for (size_t i = 0; i < g->records; i++) {
		memory[i] = run_from_memory(g, i);
		if (g->standing[i] == RUN_COUNTS && !possible(&g->record[i]))
			g->standing[i] = RUN_IMPOSSIBLE;
	}
	for (size_t f = 0; f < g->audit->findings; f++) {
		const struct finding *x = &g->audit->finding[f];

		assert(x->record < g->records);
		if (x->level == AUDIT_FAIL && (g->standing[x->record] == RUN_COUNTS ||
					       g->standing[x->record] == RUN_IMPOSSIBLE))
			g->standing[x->record] = RUN_FAILED;
	}
	for (size_t i = 0; i < g->records; i++)
		for (size_t k = 0; memory[i] && g->standing[i] == RUN_COUNTS && k < g->records; k++)
			if (!memory[k] && g->standing[k] == RUN_COUNTS && same_model(g, i, k))
				g->standing[i] = RUN_FROM_MEMORY;
	free(memory);
}

/* Those that count first, in their order. */
static void count_group(const struct run_groups *g, struct run_group *x)
{
	size_t *sorted = xcalloc(x->records + 1, sizeof(*sorted)), n = 0;

	for (size_t i = 0; i < x->records; i++)
		if (g->standing[x->record[i]] == RUN_COUNTS)
			sorted[n++] = x->record[i];
	x->counted = n;
	x->unsound = n == 0;
	for (size_t i = 0; i < x->records; i++)
		if (g->standing[x->record[i]] != RUN_COUNTS)
			sorted[n++] = x->record[i];
	free(x->record);
	x->record = sorted;
}

/* ---- their figures ---- */

static size_t measured_runs(const struct run_group *x)
{
	return x->counted ? x->counted : x->records;
}

/* Means of runs, or the epochs of a single one; *n of them on the heap. */
static double *group_values(const struct run_groups *g, const struct run_group *x,
			    record_measure of, size_t *n)
{
	return record_values(g->record, x->record, measured_runs(x), of, measured_runs(x) == 1, n);
}

static struct sample_stat stat_of_values(const double *v, size_t n)
{
	struct sample_stat s = sample_stat_of(v, n);

	if (n < SPREAD_VALUES)
		s.stdev = NAN;
	return s;
}

static struct sample_stat stat_of(const struct run_groups *g, const struct run_group *x,
				  record_measure of)
{
	size_t n;
	double *v = group_values(g, x, of, &n);
	struct sample_stat s = stat_of_values(v, n);

	free(v);
	return s;
}

/* Of whole runs, or of the epochs of a single one; their mean is that of whole runs. */
static double *whole_values(const struct run_groups *g, const struct run_group *x,
			    record_measure of_epoch, record_run_measure of_run, size_t *n,
			    struct sample_stat *s)
{
	size_t runs = measured_runs(x);
	double mean, *v = record_whole_values(g->record, x->record, runs, of_epoch, of_run,
					      runs == 1, n, &mean);

	*s = stat_of_values(v, *n);
	if (*n)
		s->mean = mean;
	return v;
}

static void measure_group(const struct run_groups *g, struct run_group *x)
{
	double *io = xcalloc(x->records, sizeof(*io));
	size_t ios = 0, waits = 0;

	x->au = stat_of(g, x, record_au);
	x->throughput = stat_of(g, x, record_throughput);
	x->whole_au_v = whole_values(g, x, record_whole_au, record_whole_run_au, &x->whole_au_n,
				     &x->whole_au);
	x->throughput_v = whole_values(g, x, record_whole_rate, record_whole_throughput,
				       &x->throughput_n, &x->whole_rate);
	for (size_t i = 0; i < measured_runs(x); i++) {
		const struct run_record *r = &g->record[x->record[i]];
		double wait = record_wait_share(r);

		if (isfinite(r->io.mean))
			io[ios++] = r->io.mean;
		if (!isfinite(wait))
			continue;
		x->wait_share += wait;
		x->other_share += record_other_share(r);
		waits++;
	}
	x->io = stat_of_values(io, ios);
	x->wait_share = waits ? x->wait_share / (double)waits : NAN;
	x->other_share = waits ? x->other_share / (double)waits : NAN;
	free(io);
}

static int by_name(const void *a, const void *b)
{
	const struct run_group *x = a, *y = b;
	int c = strcmp(x->model, y->model);

	if (c == 0)
		c = strcmp(x->factors, y->factors);
	return c ? c : x->ranks < y->ranks ? -1 : x->ranks > y->ranks;
}

static bool has_run(const struct run_groups *g, const struct run_group *x,
		    const struct run_record *r)
{
	for (size_t i = 0; i < x->records; i++)
		if (record_same_run(&g->record[x->record[i]], r))
			return true;
	return false;
}

void run_groups_build(struct run_groups *g, const struct run_record *r, size_t n,
		      const struct audit *audit)
{
	struct all_shared all;

	*g = (struct run_groups){.record = r, .records = n, .audit = audit};
	find_shared(&all, r, n);
	g->standing = xcalloc(n + 1, sizeof(*g->standing));
	g->of = xcalloc(n + 1, sizeof(*g->of));
	for (size_t i = 0; i < n; i++) {
		struct run_group *x;

		g->standing[i] = r[i].broken    ? RUN_BROKEN
				 : r[i].trained ? RUN_COUNTS
						: RUN_UNTRAINED;
		if (!r[i].trained)
			continue;
		x = group_of(g, &r[i], shared_of(&all, r[i].model));
		if (has_run(g, x, &r[i])) {
			x->copies++;
			g->standing[i] = RUN_COPY;
			g->of[i] = x->record[0];
			continue;
		}
		x->record = xrealloc(x->record, (x->records + 1) * sizeof(*x->record));
		x->record[x->records++] = i;
	}
	release_shared(&all);
	judge_standing(g);
	for (size_t i = 0; i < g->groups; i++) {
		count_group(g, &g->group[i]);
		measure_group(g, &g->group[i]);
	}
	if (g->groups)
		qsort(g->group, g->groups, sizeof(*g->group), by_name);
	for (size_t i = 0; i < g->groups; i++)
		for (size_t k = 0; k < g->group[i].records; k++)
			g->of[g->group[i].record[k]] = i;
	for (size_t i = 0; i < n; i++)
		if (g->standing[i] == RUN_COPY) /* so far a run of the same group */
			g->of[i] = g->of[g->of[i]];
		else if (!r[i].trained)
			g->of[i] = SIZE_MAX;
}

void run_groups_release(struct run_groups *g)
{
	for (size_t i = 0; i < g->groups; i++) {
		free(g->group[i].factors);
		str_list_release(&g->group[i].factor);
		free(g->group[i].record);
		free(g->group[i].whole_au_v);
		free(g->group[i].throughput_v);
	}
	free(g->group);
	free(g->standing);
	free(g->of);
	*g = (struct run_groups){0};
}
