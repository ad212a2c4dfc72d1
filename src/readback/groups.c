/* Grouping of runs. */
#include "readback/groups.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "readback/same_run.h"

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *factors_of(const struct run_record *r)
{
	char **v = xcalloc(r->factors.n + 1, sizeof(*v));
	struct buf text = {0};

	for (size_t i = 0; i < r->factors.n; i++)
		v[i] = r->factors.v[i];
	qsort(v, r->factors.n, sizeof(*v), by_text);
	for (size_t i = 0; i < r->factors.n; i++)
		buf_printf(&text, "%s%s", i ? ", " : "", v[i]);
	free(v);
	return buf_take(&text);
}

static struct run_group *group_of(struct run_groups *g, const struct run_record *r)
{
	AUTO_FREE char *factors = factors_of(r);
	struct run_group *x;

	for (size_t i = 0; i < g->groups; i++) {
		x = &g->group[i];
		if (x->ranks == r->ranks && strcmp(x->model, r->model) == 0 &&
		    strcmp(x->factors, factors) == 0)
			return x;
	}
	g->group = xrealloc(g->group, (g->groups + 1) * sizeof(*g->group));
	x = &g->group[g->groups++];
	*x = (struct run_group){
		.model = r->model, .factors = xstrdup(factors), .ranks = r->ranks, .target = NAN};
	if (r->has_workload && r->workload.metric.au > 0)
		x->target = 100 * r->workload.metric.au;
	return x;
}

static double whole_throughput(const struct run_record *r, size_t epoch)
{
	double samples = 0, longest = 0;

	if (!r->has_workload)
		return NAN;
	for (uint32_t k = 0; k < r->ranks; k++) {
		const struct record_epoch *ep;

		if (r->rank[k].epochs <= epoch)
			return NAN;
		ep = &r->rank[k].epoch[epoch];
		for (size_t b = 0; b < ep->blocks; b++)
			samples += (double)ep->block[b].computes *
				   (double)r->workload.reader.batch_size;
		longest = ep->train_wall_s > longest ? ep->train_wall_s : longest;
	}
	return longest > 0 ? samples / longest : NAN;
}

/* Means of runs, or the epochs of a single one; *n of them on the heap. */
static double *group_values(const struct run_groups *g, const struct run_group *x,
			    record_measure of, size_t *n)
{
	return record_values(g->record, x->record, x->records, of, x->records == 1, n);
}

static struct sample_stat stat_of(const struct run_groups *g, const struct run_group *x,
				  record_measure of)
{
	size_t n;
	double *v = group_values(g, x, of, &n);
	struct sample_stat s = sample_stat_of(v, n);

	free(v);
	return s;
}

static void measure_group(const struct run_groups *g, struct run_group *x)
{
	double *io = xcalloc(x->records, sizeof(*io));
	size_t ios = 0, waits = 0;

	x->au = stat_of(g, x, record_au);
	x->throughput = stat_of(g, x, record_throughput);
	x->whole_au_v = group_values(g, x, record_whole_au, &x->whole_au_n);
	x->whole_au = sample_stat_of(x->whole_au_v, x->whole_au_n);
	x->throughput_v = group_values(g, x, whole_throughput, &x->throughput_n);
	for (size_t i = 0; i < x->records; i++) {
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
	x->io = sample_stat_of(io, ios);
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

static void mark_unsound(struct run_groups *g)
{
	for (size_t f = 0; f < g->audit->findings; f++) {
		assert(g->audit->finding[f].record < g->records);
		if (g->audit->finding[f].level != AUDIT_FAIL)
			continue;
		for (size_t i = 0; i < g->groups; i++)
			for (size_t k = 0; k < g->group[i].records; k++)
				if (g->group[i].record[k] == g->audit->finding[f].record)
					g->group[i].unsound = true;
	}
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
	*g = (struct run_groups){.record = r, .records = n, .audit = audit};
	for (size_t i = 0; i < n; i++) {
		struct run_group *x;

		if (!r[i].trained)
			continue;
		x = group_of(g, &r[i]);
		if (has_run(g, x, &r[i])) {
			x->copies++;
			continue;
		}
		x->record = xrealloc(x->record, (x->records + 1) * sizeof(*x->record));
		x->record[x->records++] = i;
	}
	for (size_t i = 0; i < g->groups; i++)
		measure_group(g, &g->group[i]);
	mark_unsound(g);
	if (g->groups)
		qsort(g->group, g->groups, sizeof(*g->group), by_name);
}

void run_groups_release(struct run_groups *g)
{
	for (size_t i = 0; i < g->groups; i++) {
		free(g->group[i].factors);
		free(g->group[i].record);
		free(g->group[i].whole_au_v);
		free(g->group[i].throughput_v);
	}
	free(g->group);
	*g = (struct run_groups){0};
}
