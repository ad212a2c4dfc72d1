/* What the dataset is made of: format, files, samples and their sizes, requests of a sample. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/file.h"
#include "base/str.h"
#include "base/transfer.h"
#include "base/vector.h"
#include "trace/profile/profile_parts.h"
#include "workload/backend.h"

/* Of the deviation of a sample from a distribution with fitted parameters, at 5 % (Lilliefors):
 * 0.886 over the root of n. */
#define KS_FITTED 0.886

static double deviation(const struct values *s, double (*cdf)(double x, const double *p),
			const double *p)
{
	double most = 0, n = (double)s->n;

	for (size_t i = 0; i < s->n; i++) {
		double f = cdf(s->v[i], p);
		double low = fabs(f - (double)i / n), high = fabs(f - (double)(i + 1) / n);

		most = fmax(most, fmax(low, high));
	}
	return most;
}

static double cdf_normal(double x, const double *p)
{
	return 0.5 * erfc(-(x - p[0]) / (p[1] * M_SQRT2));
}

static double cdf_lognormal(double x, const double *p)
{
	return x > 0 ? cdf_normal(log(x), p) : 0;
}

static double cdf_uniform(double x, const double *p)
{
	return fmin(1, fmax(0, (x - p[0]) / (p[1] - p[0])));
}

/* Mean and deviation; no deviation of a single one. */
static void fit(const struct values *s, double *p)
{
	p[0] = values_mean(s);
	p[1] = fmax(0, values_stdev(s));
}

/* Sizes, at least one: the distribution that fits, in words. They are sorted. */
static void say_sizes(struct profile *a, struct values *s)
{
	const double *v = s->v;
	size_t n = s->n, at[] = {0, n / 4, n / 2, n - 1 - n / 4, n - 1};
	double normal[2], lognormal[2], uniform[2], d[3], limit = KS_FITTED / sqrt((double)n), edge;
	static const char *const names[] = {"normal", "lognormal", "uniform"};
	char text[5][64], fits[64] = "";
	struct values logs = {0};

	values_sort(s->v, n);
	for (size_t i = 0; i < n; i++)
		values_add(&logs, log(fmax(v[i], 1)));
	fit(s, normal);
	fit(&logs, lognormal);
	free(logs.v);
	profile_seen(a, PROFILE_SAMPLE_BYTES, normal[0])->stdev = normal[1];
	if (normal[1] < 1e-3 * normal[0]) {
		profile_inferred(a, PROFILE_SIZES, 0, FACT(JOB_DEVIATION_SMALL), n, n)->text =
			"all alike";
		return;
	}
	edge = (v[n - 1] - v[0]) / (double)(n + 1);
	uniform[0] = v[0] - edge;
	uniform[1] = v[n - 1] + edge;
	d[0] = deviation(s, cdf_normal, normal);
	d[1] = deviation(s, cdf_lognormal, lognormal);
	d[2] = deviation(s, cdf_uniform, uniform);
	for (int k = 0; k < 3; k++)
		if (n >= 8 && d[k] <= limit)
			str_append(fits, sizeof(fits), "%s%s", fits[0] ? " or " : "", names[k]);
	for (int k = 0; k < 5; k++)
		str_bytes(v[at[k]], text[k], sizeof(text[k]));
	profile_inferred(a, PROFILE_SIZES, 0, FACT(JOB_SIZES_FIT, d[0], d[1], d[2], limit), 0, 0)
		->text = profile_text(a, "%s; quantiles 0, 25, 50, 75, 100 %%: %s, %s, %s, %s, %s",
				      fits[0] ? fits : "none of normal, lognormal, uniform",
				      text[0], text[1], text[2], text[3], text[4]);
}

#define REQUESTS_MAX 1024 /* of a visit: more are not told apart */

/* Requests of samples that overlap read more than a sample (HDF5's buffer for small reads): then a
 * sample is as long as its distance to the next. The distance that most have; 0: requests do not
 * overlap, or distances differ. */
static int64_t sample_distance(const struct profile *a, uint64_t *agree, uint64_t *of)
{
	struct values v = {0};
	double best = 0;
	size_t overlap = 0;

	*agree = 0;
	for (size_t i = 0; a->container && i + 1 < a->samples; i++) {
		const struct job_sample *s = &a->sample[i], *next = s + 1;

		if (next->file != s->file || next->offset <= s->offset)
			continue;
		values_add(&v, (double)(next->offset - s->offset));
		overlap += s->bytes > next->offset - s->offset;
	}
	*of = v.n;
	values_sort(v.v, v.n);
	for (size_t i = 0, k; i < v.n; i = k) {
		for (k = i; k < v.n && v.v[k] <= v.v[i]; k++)
			;
		if (k - i > *agree) {
			*agree = k - i;
			best = v.v[i];
		}
	}
	free(v.v);
	return 2 * overlap > *of && 2 * *agree > *of ? (int64_t)best : 0;
}

/* The size of a sample: of a file that is one, its own where it is known. `most`: it is no longer
 * than that; 0: not known. */
static double size_of(const struct profile *a, const struct job_sample *s, int64_t most)
{
	int64_t size = a->job->file[s->file].size;

	if (!a->container && a->companions == 0 && size > 0)
		return (double)size;
	return (double)(most > 0 && s->bytes > most ? most : s->bytes);
}

/* As many as most visits have, or the mean. */
static void say_requests(struct profile *a)
{
	AUTO_FREE uint32_t *often = xcalloc(REQUESTS_MAX + 1, sizeof(*often));
	uint64_t requests = 0, visits = 0, same;
	struct profile_value *f;
	uint32_t mode;

	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[i];

		if (is_eval(a, v))
			continue;
		visits++;
		requests += v->requests;
		often[v->requests < REQUESTS_MAX ? v->requests : REQUESTS_MAX]++;
	}
	mode = mode_of(often, 0, REQUESTS_MAX, &same);
	if (visits == 0)
		return;
	if (2 * same > visits) {
		f = profile_seen(a, PROFILE_REQUESTS, mode);
		f->agree = same;
		f->of = visits;
	} else {
		profile_seen(a, PROFILE_REQUESTS, (double)requests / (double)visits)->text =
			"in the mean";
	}
}

static void say_samples(struct profile *a)
{
	struct values size = {0};
	/* samples of each file, and how many files have so many */
	AUTO_FREE uint32_t *in_file = xcalloc(a->job->files + 1, sizeof(*in_file)),
			   *count = xcalloc(a->samples + 1, sizeof(*count));
	uint64_t distances, alike, agree;
	int64_t distance = sample_distance(a, &alike, &distances);
	uint32_t each;
	size_t files = 0, n;

	for (size_t i = 0; i < a->samples; i++)
		if (!a->sample[i].evaluation) {
			values_add(&size, size_of(a, &a->sample[i], distance));
			files += in_file[a->sample[i].file]++ == 0;
		}
	for (size_t i = 0; i < a->job->files; i++)
		count[in_file[i]]++;
	each = mode_of(count, 1, a->samples + 1, &agree);
	n = size.n;
	if (a->companions == 0) /* else those that profile_dataset counted */
		profile_seen(a, PROFILE_FILES, (double)files);
	if (a->stream) {
		struct fact why = FACT(JOB_STREAMS);

		profile_shard_counts(a);
		free(size.v);
		if (profile_held_samples(a))
			return;

		profile_unknown(a, PROFILE_SAMPLES, why);
		profile_unknown(a, PROFILE_SAMPLES_PER_FILE, why);
		profile_unknown(a, PROFILE_SAMPLE_BYTES, why);
		return;
	}
	if (a->container) {
		profile_inferred(a, PROFILE_SAMPLES, (double)n, FACT(JOB_PLACES_OF_FILES), 0, 0);
		profile_inferred(a, PROFILE_SAMPLES_PER_FILE, each, FACT(JOB_PLACES_OF_A_FILE),
				 agree, files);
	} else if (a->companions > 0) {
		profile_inferred(a, PROFILE_SAMPLES, (double)n, FACT(JOB_COMPANIONS), 0, 0)->text =
			profile_text(a, "of %u files each", a->companions);
		profile_unknown(a, PROFILE_SAMPLES_PER_FILE, FACT(JOB_SEVERAL_FILES));
	} else {
		profile_inferred(a, PROFILE_SAMPLES, (double)n, FACT(JOB_WHOLE_FILE_IS_SAMPLE), 0,
				 0);
		profile_inferred(a, PROFILE_SAMPLES_PER_FILE, 1, FACT(JOB_WHOLE_FILE), 0, 0);
	}
	if (n > 0)
		say_sizes(a, &size);
	free(size.v);
	if (n > 0 && distance > 0) {
		double stdev = a->value[PROFILE_SAMPLE_BYTES].stdev;

		profile_inferred(a, PROFILE_SAMPLE_BYTES, a->value[PROFILE_SAMPLE_BYTES].number,
				 FACT(JOB_DISTANCE), alike, distances)
			->stdev = stdev;
	}
	say_requests(a);
}

static void say_format(struct profile *a, const struct file_group *g)
{
	const struct format_facts *f = g->format;

	if (g->now)
		profile_inferred(a, PROFILE_FORMAT, 0,
				 fact_with(FACT(JOB_FIRST_BYTES), 0, g->extension), 0, 0)
			->text = g->now;
	else if (f && f->numbered && !profile_format_of(g->extension))
		profile_inferred(a, PROFILE_FORMAT, 0, FACT(JOB_NAMES_AND_INDEX), 0, 0)->text =
			f->name;
	else if (f && profile_compressor_of(g->extension))
		profile_inferred(a, PROFILE_FORMAT, 0,
				 fact_with(FACT(JOB_EXTENSION_COMPRESSED), 0,
					   profile_compressor_of(g->extension)),
				 0, 0)
			->text = f->name;
	else if (f)
		profile_inferred(a, PROFILE_FORMAT, 0, FACT(JOB_EXTENSION), 0, 0)->text = f->name;
	else if (g->extension[0])
		profile_inferred(a, PROFILE_FORMAT, 0, FACT(JOB_EXTENSION_OTHER), 0, 0)->text =
			g->extension;
	else
		profile_unknown(a, PROFILE_FORMAT, FACT(JOB_NO_EXTENSION));
}

void profile_dataset(struct profile *a)
{
	const struct file_group *g = profile_main_group(a);
	double bytes = 0;
	size_t files = 0;

	if (!g)
		return;
	say_format(a, g);
	profile_seen(a, PROFILE_FOLDER, 0)->text = g->folder;
	for (size_t i = 0; i < a->job->files; i++) {
		if (a->role[i] != FILE_DATASET)
			continue;
		files++;
		if (a->job->file[i].size > 0)
			bytes += (double)a->job->file[i].size;
	}
	profile_seen(a, PROFILE_FILES, (double)files);
	if (bytes > 0)
		/* else only what was read of a file is known of its size */
		profile_seen(a, PROFILE_DATA_BYTES, bytes)->at_least =
			!(a->job->sees & JOB_SEES_SIZES);
	if (a->visits > 0)
		say_samples(a);
}

/* ---- files that stay open ---- */

/* Whether readers keep files open: a reader that comes to a file again did not open it for that. */

#define AGAIN_MIN 4 /* visits of a file that its reader had visited before; fewer tell nothing */
#define AGREE 0.9

/* An open, close or visit of a file of the dataset by a process. */
struct use {
	uint32_t process, file;
	int64_t at_ns;
	enum { USE_OPEN, USE_CLOSE, USE_VISIT } what;
};

struct uses {
	struct use *v;
	size_t n, room;
};

static int by_file(const void *a, const void *b)
{
	const struct use *x = a, *y = b;

	/* a visit begins with the open that it needs */
	return ORDER(x->process, y->process) ?: ORDER(x->file, y->file) ?:
	       ORDER(x->at_ns, y->at_ns) ?: ORDER(x->what, y->what);
}

static int by_time(const void *a, const void *b)
{
	const struct use *x = a, *y = b;

	return ORDER(x->process, y->process) ?: ORDER(x->at_ns, y->at_ns) ?:
	       ORDER(y->what, x->what);
}

static void gather(const struct profile *a, struct uses *u)
{
	AUTO_FREE bool *reads = xcalloc(a->job->processes + 1, sizeof(*reads));

	for (size_t i = 0; i < a->readers; i++)
		reads[a->reader[i].process] = true;
	for (size_t i = 0; i < a->job->events; i++) {
		const struct job_event *v = &a->job->event[i];
		uint32_t process = a->job->thread[v->thread].process;

		if ((v->kind != JOB_OPEN && v->kind != JOB_CLOSE) || v->file == JOB_NONE ||
		    job_failed(v) || !reads[process] || a->role[v->file] != FILE_DATASET ||
		    v->begin_ns == JOB_UNKNOWN)
			continue;
		VECTOR_PUSH(u->v, u->n, u->room,
			    {process, v->file, v->begin_ns,
			     v->kind == JOB_OPEN ? USE_OPEN : USE_CLOSE});
	}
	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[i];

		if (v->begin_ns != JOB_UNKNOWN && !a->reader[v->reader].left_out)
			VECTOR_PUSH(u->v, u->n, u->room,
				    {a->reader[v->reader].process, a->sample[v->sample].file,
				     v->begin_ns, USE_VISIT});
	}
}

/* The most files that a process has open at a time. */
static double most_open(struct uses *u)
{
	int64_t now = 0, most = 0;

	qsort(u->v, u->n, sizeof(*u->v), by_time);
	for (size_t i = 0; i < u->n; i++) {
		if (i == 0 || u->v[i].process != u->v[i - 1].process)
			now = 0;
		now += u->v[i].what == USE_OPEN;
		now -= u->v[i].what == USE_CLOSE && now > 0;
		most = now > most ? now : most;
	}
	return (double)most;
}

void profile_kept_open(struct profile *a)
{
	struct uses u = {0};
	uint64_t again = 0, kept = 0;
	bool visited = false, opened = false;

	if (a->stream || a->visits == 0 || !(a->job->sees & JOB_SEES_OPENS) ||
	    !(a->job->sees & JOB_SEES_TIMES))
		return;
	gather(a, &u);
	qsort(u.v, u.n, sizeof(*u.v), by_file);
	for (size_t i = 0; i < u.n; i++) {
		if (i == 0 || u.v[i].process != u.v[i - 1].process ||
		    u.v[i].file != u.v[i - 1].file)
			visited = opened = false;
		opened |= u.v[i].what == USE_OPEN;
		if (u.v[i].what != USE_VISIT)
			continue;
		again += visited;
		kept += visited && !opened;
		visited = true;
		opened = false;
	}
	if (again >= AGAIN_MIN && (double)kept >= AGREE * (double)again)
		profile_inferred(a, PROFILE_KEPT_OPEN, most_open(&u), FACT(JOB_NOT_OPENED_AGAIN),
				 kept, again);
	free(u.v);
}
