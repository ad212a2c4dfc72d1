/* Grouping of runs. */
#include "readback/groups.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/map.h"
#include "readback/record_measures.h"
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
	struct texts model;
	struct shared *v; /* by the number of the model */
};

static struct shared *shared_of(const struct all_shared *all, const char *model)
{
	size_t i = texts_find(&all->model, model);

	return i == TEXT_NONE ? NULL : &all->v[i];
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
		texts_add(&all->model, r[i].model);
		all->v = xrealloc(all->v, all->model.n * sizeof(*all->v));
		x = &all->v[all->model.n - 1];
		*x = (struct shared){.model = r[i].model};
		for (size_t k = 0; k < r[i].factors.n; k++)
			str_list_add(&x->factors, xstrdup(r[i].factors.v[k]));
	}
}

static void release_shared(struct all_shared *all)
{
	for (size_t i = 0; i < all->model.n; i++)
		str_list_release(&all->v[i].factors);
	free(all->v);
	texts_release(&all->model);
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

/* What a group is found by. */
static char *group_key(const char *model, uint32_t ranks, const char *factors)
{
	return xasprintf("%u %s\n%s", ranks, model, factors);
}

/* Groups by what they are found by, while they are built; numbers are those of the groups. */
static struct run_group *find_group(struct run_groups *g, const struct texts *names,
				    const struct run_record *r, const char *factors)
{
	AUTO_FREE char *key = group_key(r->model, r->ranks, factors);
	size_t i = texts_find(names, key);

	return i == TEXT_NONE ? NULL : &g->group[i];
}

static struct run_group *add_group(struct run_groups *g, struct texts *names, size_t *room,
				   const struct run_record *r, const struct str_list *factors,
				   char *text)
{
	AUTO_FREE char *key = group_key(r->model, r->ranks, text);
	struct run_group *x;

	if (g->groups == *room) {
		*room = *room ? 2 * *room : 16;
		g->group = xrealloc(g->group, *room * sizeof(*g->group));
	}
	texts_add(names, key);
	x = &g->group[g->groups++];
	*x = (struct run_group){.model = r->model,
				.factors = text,
				.factor = *factors,
				.ranks = r->ranks,
				.target = r->facts.target};
	return x;
}

static struct run_group *group_of(struct run_groups *g, struct texts *names, size_t *room,
				  const struct run_record *r, const struct shared *shared)
{
	struct str_list factors = {0};

	for (size_t i = 0; i < r->factors.n; i++)
		if (!has_factor(&shared->factors, r->factors.v[i]))
			str_list_add(&factors, xstrdup(r->factors.v[i]));
	for (;;) {
		char *text = joined(&factors);
		struct run_group *x = find_group(g, names, r, text);
		size_t before = factors.n;

		if (!x) {
			x = add_group(g, names, room, r, &factors, text);
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
	const struct finding *f;
	size_t n;

	if (claim_storage(&g->record[record]))
		return claim_from_memory(&g->record[record]);
	f = audit_of(g->audit, record, &n);
	for (size_t i = 0; i < n; i++)
		if (about_memory(&f[i]))
			return true;
	return false;
}

static bool possible(const struct run_record *r)
{
	double au = record_whole_run_au(r), rate = record_whole_throughput(r);

	return au >= 0 && au <= AU_POSSIBLE && !(rate < 0);
}

static void judge_standing(struct run_groups *g)
{
	bool *memory = xcalloc(g->records + 1, sizeof(*memory));
	struct texts stored = {0};

	for (size_t i = 0; i < g->records; i++) {
		memory[i] = run_from_memory(g, i);
		if (g->standing[i] == RUN_COUNTS && !possible(&g->record[i]))
			g->standing[i] = RUN_IMPOSSIBLE;
	}
	for (size_t f = 0; f < g->audit->findings; f++) {
		const struct finding *x = &g->audit->finding[f];

		assert(x->record < g->records);
		if (x->level == AUDIT_FAIL && !x->copy &&
		    (g->standing[x->record] == RUN_COUNTS ||
		     g->standing[x->record] == RUN_IMPOSSIBLE))
			g->standing[x->record] = RUN_FAILED;
	}
	/* models of which a run counts that was not served from memory */
	for (size_t i = 0; i < g->records; i++)
		if (!memory[i] && g->standing[i] == RUN_COUNTS)
			texts_add(&stored, g->record[i].model);
	for (size_t i = 0; i < g->records; i++)
		if (memory[i] && g->standing[i] == RUN_COUNTS &&
		    texts_find(&stored, g->record[i].model) != TEXT_NONE)
			g->standing[i] = RUN_FROM_MEMORY;
	texts_release(&stored);
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
		double wait = r->facts.wait_share;

		if (isfinite(r->io.mean))
			io[ios++] = r->io.mean;
		if (!isfinite(wait))
			continue;
		x->wait_share += wait;
		x->other_share += r->facts.other_share;
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

void run_groups_build(struct run_groups *g, const struct run_record *r, size_t n,
		      const struct audit *audit)
{
	struct texts names = {0};
	struct runs_seen seen = {0};
	size_t room = 0;
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
		x = group_of(g, &names, &room, &r[i], shared_of(&all, r[i].model));
		if (runs_have(&seen, &r[i], (size_t)(x - g->group), NULL)) {
			x->copies++;
			g->standing[i] = RUN_COPY;
			g->of[i] = x->record[0];
			continue;
		}
		runs_add(&seen, &r[i], (size_t)(x - g->group));
		/* doubled at powers of two */
		if ((x->records & (x->records - 1)) == 0)
			x->record = xrealloc(x->record, (x->records ? 2 * x->records : 1) *
								sizeof(*x->record));
		x->record[x->records++] = i;
	}
	release_shared(&all);
	texts_release(&names);
	runs_release(&seen);
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

/* ---- colors of models ---- */

const struct palette_color palette[PALETTE_COLORS] = {
	{"#0f62b4", "#6ab0f3"}, /* blue */
	{"#c2500a", "#f0955a"}, /* orange */
	{"#0b7a5c", "#5fd0a5"}, /* green */
	{"#7d3fb2", "#c79bf0"}, /* purple */
	{"#b3174f", "#f57fa8"}, /* crimson */
	{"#00829b", "#5bcbe0"}, /* cyan */
	{"#6b4a2b", "#c9a27e"}, /* brown */
	{"#5b6470", "#a2abb6"}, /* gray */
};

size_t palette_place(const struct run_groups *g, const char *model)
{
	const char *last = NULL;
	size_t place = 0;

	/* groups are sorted by model */
	for (size_t i = 0; i < g->groups; i++) {
		const char *one = g->group[i].model;

		if (last && strcmp(last, one) == 0)
			continue;
		if (strcmp(one, model) == 0)
			return place;
		last = one;
		place++;
	}
	return 0;
}

const struct palette_color *palette_color_of(size_t place)
{
	return &palette[place % PALETTE_COLORS];
}

enum palette_mark palette_mark_of(size_t place)
{
	return (enum palette_mark)((place + place / PALETTE_COLORS) % PALETTE_MARKS);
}
