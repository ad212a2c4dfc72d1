/* What the dataset is made of: format, files, samples and their sizes, requests of a sample. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "jobtrace/account/account_parts.h"
#include "jobtrace/account/observations.h"
#include "workload/backend.h"

/* Of the deviation of a sample from a distribution with fitted parameters, at 5 % (Lilliefors):
 * 0.886 over the root of n. */
#define KS_FITTED 0.886

static double deviation(const double *v, size_t n, double (*cdf)(double x, const double *p),
			const double *p)
{
	double most = 0;

	for (size_t i = 0; i < n; i++) {
		double f = cdf(v[i], p);
		double low = fabs(f - (double)i / (double)n);
		double high = fabs(f - (double)(i + 1) / (double)n);

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

/* Sizes, sorted: the distribution that fits, in words. */
static void say_sizes(struct account *a, double *v, size_t n)
{
	double sum = 0, squares = 0, logs = 0, log_squares = 0;
	double normal[2], lognormal[2], uniform[2], d[3], limit = KS_FITTED / sqrt((double)n);
	static const char *const names[] = {"normal", "lognormal", "uniform"};
	char text[5][64], fits[64] = "";
	struct fact *f;

	qsort(v, n, sizeof(*v), values_compare);
	for (size_t i = 0; i < n; i++) {
		sum += v[i];
		logs += log(fmax(v[i], 1));
	}
	normal[0] = sum / (double)n;
	lognormal[0] = logs / (double)n;
	for (size_t i = 0; i < n; i++) {
		squares += (v[i] - normal[0]) * (v[i] - normal[0]);
		log_squares += pow(log(fmax(v[i], 1)) - lognormal[0], 2);
	}
	normal[1] = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
	lognormal[1] = n > 1 ? sqrt(log_squares / (double)(n - 1)) : 0;
	f = account_seen(a, ACCOUNT_SAMPLE_BYTES, normal[0]);
	f->stdev = normal[1];
	f->of = 0;
	if (normal[1] < 1e-3 * normal[0]) {
		account_inferred(a, ACCOUNT_SIZES, 0, "the deviation is below 0.1 %", n, n)->text =
			"all alike";
		return;
	}
	uniform[0] = v[0] - (v[n - 1] - v[0]) / (double)(n + 1);
	uniform[1] = v[n - 1] + (v[n - 1] - v[0]) / (double)(n + 1);
	d[0] = deviation(v, n, cdf_normal, normal);
	d[1] = deviation(v, n, cdf_lognormal, lognormal);
	d[2] = deviation(v, n, cdf_uniform, uniform);
	f = account_inferred(a, ACCOUNT_SIZES, 0,
			     account_text(a,
					  "Kolmogorov-Smirnov; deviation of normal (%.3f), "
					  "lognormal (%.3f), uniform (%.3f); %.3f is likely for a "
					  "fit",
					  d[0], d[1], d[2], limit),
			     0, 0);
	for (int k = 0; k < 3; k++)
		if (n >= 8 && d[k] <= limit)
			str_append(fits, sizeof(fits), "%s%s", fits[0] ? " or " : "", names[k]);
	f->text = account_text(a, "%s; quantiles 0, 25, 50, 75, 100 %%: %s, %s, %s, %s, %s",
			       fits[0] ? fits : "none of normal, lognormal, uniform",
			       str_bytes(v[0], text[0], sizeof(text[0])),
			       str_bytes(v[n / 4], text[1], sizeof(text[1])),
			       str_bytes(v[n / 2], text[2], sizeof(text[2])),
			       str_bytes(v[n - 1 - n / 4], text[3], sizeof(text[3])),
			       str_bytes(v[n - 1], text[4], sizeof(text[4])));
}

/* Requests of samples that overlap read more than a sample (HDF5's buffer for small reads): then a
 * sample is as long as its distance to the next. The distance that most have; 0: requests do not
 * overlap, or distances differ. */
static int64_t sample_distance(const struct account *a, uint64_t *agree, uint64_t *of)
{
	double *v = xcalloc(a->samples + 1, sizeof(*v)), best = 0;
	size_t n = 0, overlap = 0;

	*agree = 0;
	for (size_t i = 0; a->container && i + 1 < a->samples; i++) {
		const struct job_sample *s = &a->sample[i], *next = s + 1;

		if (next->file != s->file || next->offset <= s->offset)
			continue;
		v[n++] = (double)(next->offset - s->offset);
		overlap += s->bytes > next->offset - s->offset;
	}
	*of = n;
	qsort(v, n, sizeof(*v), values_compare);
	for (size_t i = 0, k; i < n; i = k) {
		for (k = i; k < n && v[k] <= v[i]; k++)
			;
		if (k - i > *agree) {
			*agree = k - i;
			best = v[i];
		}
	}
	free(v);
	return 2 * overlap > n && 2 * *agree > n ? (int64_t)best : 0;
}

/* The size of a sample: of a file that is one, its own where it is known. `most`: it is no longer
 * than that; 0: not known. */
static double size_of(const struct account *a, const struct job_sample *s, int64_t most)
{
	int64_t size = a->job->file[s->file].size;

	if (!a->container && a->companions == 0 && size > 0)
		return (double)size;
	return (double)(most > 0 && s->bytes > most ? most : s->bytes);
}

static void say_samples(struct account *a)
{
	double *size = xcalloc(a->samples + 1, sizeof(*size));
	size_t n = 0, files = 0, agree = 0, best = 0, in_file = 0;
	size_t *count = xcalloc(a->samples + 2, sizeof(*count));
	uint64_t requests = 0, visits = 0, same = 0;
	uint32_t last = JOB_NONE, mode = 0;
	uint32_t *often;
	uint64_t distances, alike;
	int64_t distance = sample_distance(a, &alike, &distances);

	for (size_t i = 0; i < a->samples; i++) {
		if (a->sample[i].evaluation)
			continue;
		size[n++] = size_of(a, &a->sample[i], distance);
		if (a->sample[i].file != last) {
			if (in_file)
				count[in_file]++;
			files++;
			in_file = 0;
		}
		last = a->sample[i].file;
		in_file++;
	}
	if (in_file)
		count[in_file]++;
	for (size_t i = 1; i <= a->samples; i++)
		if (count[i] > agree) {
			agree = count[i];
			best = i;
		}
	free(count);
	if (a->companions == 0) /* else those that account_dataset counted */
		account_seen(a, ACCOUNT_FILES, (double)files);
	if (a->stream) {
		const char *why = "the files are streams of samples, and reads do not show where "
				  "one ends";

		account_unknown(a, ACCOUNT_SAMPLES, why);
		account_unknown(a, ACCOUNT_SAMPLES_PER_FILE, why);
		account_unknown(a, ACCOUNT_SAMPLE_BYTES, why);
		free(size);
		return;
	}
	if (a->container) {
		account_inferred(a, ACCOUNT_SAMPLES, (double)n,
				 "different places of the files that were read by requests of data",
				 0, 0);
		account_inferred(a, ACCOUNT_SAMPLES_PER_FILE, (double)best, "places of a file",
				 agree, files);
	} else if (a->companions > 0) {
		account_inferred(a, ACCOUNT_SAMPLES, (double)n,
				 "files with the same name in other folders, or the same number, "
				 "are always read one after the other: they are one sample",
				 0, 0)
			->text = account_text(a, "of %u files each", a->companions);
		account_unknown(a, ACCOUNT_SAMPLES_PER_FILE, "a sample has several files");
	} else {
		account_inferred(a, ACCOUNT_SAMPLES, (double)n,
				 "a file is read as a whole each time: it is a sample", 0, 0);
		account_inferred(a, ACCOUNT_SAMPLES_PER_FILE, 1,
				 "a file is read as a whole each time", 0, 0);
	}
	if (n > 0)
		say_sizes(a, size, n);
	if (n > 0 && distance > 0) {
		double stdev = a->fact[ACCOUNT_SAMPLE_BYTES].stdev;

		account_inferred(a, ACCOUNT_SAMPLE_BYTES, a->fact[ACCOUNT_SAMPLE_BYTES].number,
				 "the distance of neighbours, as the requests for them overlap",
				 alike, distances)
			->stdev = stdev;
	}
	free(size);
	often = xcalloc(1025, sizeof(*often));
	for (size_t i = 0; i < a->visits; i++) {
		if (a->sample[a->visit[i].sample].evaluation)
			continue;
		visits++;
		requests += a->visit[i].requests;
		often[a->visit[i].requests < 1024 ? a->visit[i].requests : 1024]++;
	}
	for (uint32_t i = 0; i < 1024; i++)
		if (often[i] > same) {
			same = often[i];
			mode = i;
		}
	free(often);
	if (visits > 0 && 2 * same > visits) {
		account_seen(a, ACCOUNT_REQUESTS, mode);
		a->fact[ACCOUNT_REQUESTS].agree = same;
		a->fact[ACCOUNT_REQUESTS].of = visits;
	} else if (visits > 0) {
		account_seen(a, ACCOUNT_REQUESTS, (double)requests / (double)visits)->text =
			"in the mean";
	}
}

static const struct file_group *training_group(const struct account *a)
{
	for (size_t g = 0; g < a->groups; g++)
		if (a->group[g].role == FILE_DATASET)
			return &a->group[g];
	return NULL;
}

/* A file of the group: the first that the log names. */
static const char *file_of(const struct account *a, const struct file_group *g)
{
	for (size_t i = 0; i < a->job->files; i++)
		if (&a->group[a->group_of[i]] == g)
			return a->job->file[i].name;
	return "";
}

static void say_format(struct account *a, const struct file_group *g)
{
	const struct format_facts *f = account_format_of(g->extension);
	const char *now = f ? NULL : account_format_now(file_of(a, g));

	if (f)
		account_inferred(a, ACCOUNT_FORMAT, 0, "the extension of the files", 0, 0)->text =
			f->name;
	else if (now)
		account_inferred(a, ACCOUNT_FORMAT, 0,
				 account_text(a,
					      "the first bytes of a file, as it is now; the names "
					      "end in '%s'",
					      g->extension),
				 0, 0)
			->text = now;
	else if (g->extension[0])
		account_inferred(a, ACCOUNT_FORMAT, 0,
				 "the extension of the files; it is none of the formats here", 0, 0)
			->text = g->extension;
	else
		account_unknown(a, ACCOUNT_FORMAT, "the files have no extension");
}

void account_dataset(struct account *a)
{
	const struct file_group *g = training_group(a);
	double bytes = 0;
	size_t files = 0;

	if (!g)
		return;
	say_format(a, g);
	account_seen(a, ACCOUNT_FOLDER, 0)->text = g->folder;
	for (size_t i = 0; i < a->job->files; i++) {
		if (a->role[i] != FILE_DATASET)
			continue;
		files++;
		if (a->job->file[i].size > 0)
			bytes += (double)a->job->file[i].size;
	}
	account_seen(a, ACCOUNT_FILES, (double)files);
	if (bytes > 0)
		/* else only what was read of a file is known of its size */
		account_seen(a, ACCOUNT_DATA_BYTES, bytes)->at_least =
			!(a->job->sees & JOB_SEES_SIZES);
	if (a->visits > 0)
		say_samples(a);
}
