/* Results of one folder of data and one host, compared: did a run read another dataset than the
 * configured one? */
#include "readback/audit_checks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/str.h"
#include "base/map.h"
#include "readback/record_measures.h"
#include "readback/sides.h"

static const double SAME_RATE = 0.03; /* samples/s that are equal */
static const double OTHER_SIZE = 1.2; /* factor between records that are not equal */

static bool other_size(double x, double y)
{
	return x > 0 && y > 0 && (x / y > OTHER_SIZE || y / x > OTHER_SIZE);
}

static void time_text(double s, char *out, size_t out_size)
{
	time_t t = (time_t)s;
	struct tm tm;

	if (!isfinite(s) || !localtime_r(&t, &tm) ||
	    strftime(out, out_size, "%Y-%m-%d %H:%M:%S", &tm) == 0)
		snprintf(out, out_size, "an unknown time");
}

/* Results that may have read one dataset: indexes of records. */
struct place {
	size_t *generation; /* that wrote it, by their begin */
	size_t generations;
	size_t *shape; /* that trained there, by ranks, batch size, size of a sample, samples/s */
	size_t shapes;
};

struct places {
	const struct run_record *record;
	struct texts name;
	size_t *of; /* of each record; TEXT_NONE: it has no folder of data */
	struct place *v;
};

static int by_index(size_t a, size_t b)
{
	return a < b ? -1 : a > b;
}

static int by_begin(const void *x, const void *y, void *record)
{
	const struct run_record *r = record;
	size_t i = *(const size_t *)x, k = *(const size_t *)y;

	if (r[i].begin_s < r[k].begin_s || r[i].begin_s > r[k].begin_s)
		return r[i].begin_s < r[k].begin_s ? -1 : 1;
	return by_index(i, k);
}

static int by_numbers(const double *a, const double *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (a[i] < b[i] || a[i] > b[i])
			return a[i] < b[i] ? -1 : 1;
	return 0;
}

static int by_shape(const void *x, const void *y, void *record)
{
	size_t i = *(const size_t *)x, k = *(const size_t *)y;
	const struct run_record *r = record;
	const double a[] = {r[i].ranks, (double)r[i].facts.batch, r[i].facts.sample_bytes,
			    r[i].throughput.mean};
	const double b[] = {r[k].ranks, (double)r[k].facts.batch, r[k].facts.sample_bytes,
			    r[k].throughput.mean};
	int order = by_numbers(a, b, sizeof(a) / sizeof(a[0]));

	return order ? order : by_index(i, k);
}

static void add_index(size_t **v, size_t *n, size_t i)
{
	/* doubled at powers of two */
	if ((*n & (*n - 1)) == 0)
		*v = xrealloc(*v, (*n ? 2 * *n : 1) * sizeof(**v));
	(*v)[(*n)++] = i;
}

static void find_places(struct places *p, const struct run_record *record, size_t n)
{
	*p = (struct places){.record = record, .of = xcalloc(n + 1, sizeof(*p->of))};
	for (size_t i = 0; i < n; i++) {
		const struct run_record *r = &record[i];
		AUTO_FREE char *name = xasprintf("%s\n%s", r->facts.data_folder, r->hostname);

		p->of[i] = r->facts.data_folder && r->facts.data_folder[0]
				   ? texts_add(&p->name, name)
				   : TEXT_NONE;
	}
	p->v = xcalloc(p->name.n + 1, sizeof(*p->v));
	for (size_t i = 0; i < n; i++) {
		const struct run_record *r = &record[i];
		struct place *x = p->of[i] == TEXT_NONE ? NULL : &p->v[p->of[i]];

		if (x && r->facts.generates && !isnan(r->begin_s))
			add_index(&x->generation, &x->generations, i);
		if (x && r->trained && r->facts.sample_bytes > 0 && isfinite(r->throughput.mean))
			add_index(&x->shape, &x->shapes, i);
	}
	for (size_t i = 0; i < p->name.n; i++) {
		struct place *x = &p->v[i];

		if (x->generations)
			qsort_r(x->generation, x->generations, sizeof(*x->generation), by_begin,
				(void *)(uintptr_t)record);
		if (x->shapes)
			qsort_r(x->shape, x->shapes, sizeof(*x->shape), by_shape,
				(void *)(uintptr_t)record);
	}
}

static void release_places(struct places *p)
{
	for (size_t i = 0; i < p->name.n; i++) {
		free(p->v[i].generation);
		free(p->v[i].shape);
	}
	free(p->v);
	free(p->of);
	texts_release(&p->name);
}

/* The last result before this one that wrote the folder's dataset; of equal begins the first. */
static const struct run_record *last_generation(const struct places *p, const struct place *x,
						const struct run_record *r)
{
	const struct run_record *last = NULL;
	size_t low = 0, high = x->generations;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (p->record[x->generation[middle]].begin_s < r->begin_s)
			low = middle + 1;
		else
			high = middle;
	}
	while (low-- > 0) {
		const struct run_record *g = &p->record[x->generation[low]];

		if (last && g->begin_s < last->begin_s)
			break;
		last = g;
	}
	return last;
}

/* The first in the list from `from` on that is not before ranks, batch, size and rate of `key`. */
static size_t first_shape(const struct places *p, const struct place *x, size_t from,
			  const double key[4], size_t parts)
{
	size_t high = x->shapes;

	while (from < high) {
		size_t middle = (from + high) / 2;
		const struct run_record *r = &p->record[x->shape[middle]];
		const double its[] = {r->ranks, (double)r->facts.batch, r->facts.sample_bytes,
				      r->throughput.mean};

		if (by_numbers(its, key, parts) < 0)
			from = middle + 1;
		else
			high = middle;
	}
	return from;
}

/* The first run of the same shape whose records have another size and that was as fast in samples:
 * for each size, only those of about the rate are looked at. */
static const struct run_record *equally_fast(const struct places *p, const struct place *x,
					     const struct run_record *r)
{
	double rate = r->throughput.mean, low = rate * (1 - 2 * SAME_RATE);
	double key[] = {r->ranks, (double)r->facts.batch, -INFINITY, 0};
	size_t best = SIZE_MAX, i;

	if (!isfinite(rate) || !(r->facts.sample_bytes > 0))
		return NULL;
	if (low > rate)
		low = rate * (1 + 2 * SAME_RATE);
	for (i = first_shape(p, x, 0, key, 3); i < x->shapes;) {
		const struct run_record *o = &p->record[x->shape[i]];

		if (o->ranks != r->ranks || o->facts.batch != r->facts.batch)
			break;
		key[2] = o->facts.sample_bytes;
		key[3] = low;
		if (other_size(key[2], r->facts.sample_bytes))
			i = first_shape(p, x, i, key, 4);
		for (; other_size(key[2], r->facts.sample_bytes) && i < x->shapes; i++) {
			double its;

			o = &p->record[x->shape[i]];
			its = o->throughput.mean;
			if (by_numbers(&o->facts.sample_bytes, &key[2], 1) != 0 ||
			    o->facts.batch != r->facts.batch || o->ranks != r->ranks ||
			    its > rate + 2 * SAME_RATE * fabs(rate))
				break;
			if (fabs(its / rate - 1) < SAME_RATE && x->shape[i] < best)
				best = x->shape[i];
		}
		key[3] = INFINITY;
		i = first_shape(p, x, i, key, 4);
	}
	return best == SIZE_MAX ? NULL : &p->record[best];
}

static void check_dataset(struct audit *a, size_t i, const struct places *p)
{
	const struct run_record *r = &a->record[i], *g, *o;
	const struct place *x;
	char when[40], b1[32], b2[32];
	struct finding *f;

	/* ours compares the files with the manifest before it reads */
	if (r->ours || !r->trained || p->of[i] == TEXT_NONE || r->facts.generates)
		return;
	x = &p->v[p->of[i]];
	g = last_generation(p, x, r);
	o = equally_fast(p, x, r);
	if (g && !other_size(g->facts.sample_bytes, r->facts.sample_bytes) &&
	    g->facts.train_files >= r->facts.train_files)
		return;
	if (!g && !o)
		return;
	f = audit_add(a, i, "dataset", g ? AUDIT_FAIL : AUDIT_WARN);
	finding_say(f, "The files in '%s' probably do not match this configuration.",
		    r->facts.data_folder);
	if (g) {
		time_text(g->begin_s, when, sizeof(when));
		finding_say(f,
			    " Among these results, the last one to generate data there, at %s "
			    "('%s'), wrote %lld files with records of %s; this run was configured "
			    "for %lld files with records of %s but generated none.",
			    when, g->name, (long long)g->facts.train_files,
			    str_bytes(g->facts.sample_bytes, b1, sizeof(b1)),
			    (long long)r->facts.train_files,
			    str_bytes(r->facts.sample_bytes, b2, sizeof(b2)));
	}
	if (o)
		finding_say(
			f,
			" '%s' is configured for records of %s instead of %s, but the two runs "
			"reached %.1f and %.1f samples/s: equal rates with record sizes that "
			"differ by a factor of %.2f mean that both read the same files. MB/s is "
			"wrong by that factor.",
			o->name, str_bytes(o->facts.sample_bytes, b1, sizeof(b1)),
			str_bytes(r->facts.sample_bytes, b2, sizeof(b2)), o->throughput.mean,
			r->throughput.mean,
			fmax(o->facts.sample_bytes / r->facts.sample_bytes,
			     r->facts.sample_bytes / o->facts.sample_bytes));
	finding_advise(f,
		       "Whenever the format, record size or number of files changes, generate the "
		       "dataset again in a separate folder; check it with stoker verify.");
}

void audit_datasets(struct audit *a)
{
	struct places p;

	find_places(&p, a->record, a->records);
	for (size_t i = 0; i < a->records; i++)
		if (!a->record[i].broken)
			check_dataset(a, i, &p);
	release_places(&p);
}

static void report_copy(struct audit *a, size_t i, const struct run_record *other, const char *why)
{
	struct finding *f = audit_add(a, i, "identity", AUDIT_FAIL);

	f->copy = true;
	finding_say(f, "This is the run of '%.200s': %s. One of the two is a copy of the other.",
		    other->folder, why);
	finding_advise(f, "Leave out one of them: they are no independent runs.");
}

/* Which of the two is the copy cannot be told. */
void audit_copies(struct audit *a)
{
	struct runs_seen seen = {0};
	bool *told = xcalloc(a->records + 1, sizeof(*told));

	for (size_t i = 0; i < a->records; i++) {
		const struct run_record *r = &a->record[i], *first;
		const char *why;
		size_t at;

		if (r->broken)
			continue;
		first = runs_have(&seen, r, 0, &why);
		if (!first) {
			runs_add(&seen, r, 0);
			continue;
		}
		at = (size_t)(first - a->record);
		if (!told[at])
			report_copy(a, at, r, why);
		told[at] = true;
		report_copy(a, i, first, why);
	}
	free(told);
	runs_release(&seen);
}
