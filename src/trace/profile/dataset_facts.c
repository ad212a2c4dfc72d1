/* What the dataset is made of: format, files, samples and their sizes, requests of a sample. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/file.h"
#include "base/str.h"
#include "trace/profile/profile_parts.h"
#include "workload/backend.h"

static const char *profile_format_now(const char *name);

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
static void say_sizes(struct profile *a, double *v, size_t n)
{
	double sum = 0, squares = 0, logs = 0, log_squares = 0;
	double normal[2], lognormal[2], uniform[2], d[3], limit = KS_FITTED / sqrt((double)n);
	static const char *const names[] = {"normal", "lognormal", "uniform"};
	char text[5][64], fits[64] = "";
	struct profile_value *f;

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
	f = profile_seen(a, PROFILE_SAMPLE_BYTES, normal[0]);
	f->stdev = normal[1];
	f->of = 0;
	if (normal[1] < 1e-3 * normal[0]) {
		profile_inferred(a, PROFILE_SIZES, 0, FACT(JOB_DEVIATION_SMALL), n, n)->text =
			"all alike";
		return;
	}
	uniform[0] = v[0] - (v[n - 1] - v[0]) / (double)(n + 1);
	uniform[1] = v[n - 1] + (v[n - 1] - v[0]) / (double)(n + 1);
	d[0] = deviation(v, n, cdf_normal, normal);
	d[1] = deviation(v, n, cdf_lognormal, lognormal);
	d[2] = deviation(v, n, cdf_uniform, uniform);
	f = profile_inferred(a, PROFILE_SIZES, 0, FACT(JOB_SIZES_FIT, d[0], d[1], d[2], limit), 0,
			     0);
	for (int k = 0; k < 3; k++)
		if (n >= 8 && d[k] <= limit)
			str_append(fits, sizeof(fits), "%s%s", fits[0] ? " or " : "", names[k]);
	f->text = profile_text(a, "%s; quantiles 0, 25, 50, 75, 100 %%: %s, %s, %s, %s, %s",
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
static int64_t sample_distance(const struct profile *a, uint64_t *agree, uint64_t *of)
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
static double size_of(const struct profile *a, const struct job_sample *s, int64_t most)
{
	int64_t size = a->job->file[s->file].size;

	if (!a->container && a->companions == 0 && size > 0)
		return (double)size;
	return (double)(most > 0 && s->bytes > most ? most : s->bytes);
}

static void say_samples(struct profile *a)
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
	if (a->companions == 0) /* else those that profile_dataset counted */
		profile_seen(a, PROFILE_FILES, (double)files);
	if (a->stream) {
		struct fact why = FACT(JOB_STREAMS);

		profile_unknown(a, PROFILE_SAMPLES, why);
		profile_unknown(a, PROFILE_SAMPLES_PER_FILE, why);
		profile_unknown(a, PROFILE_SAMPLE_BYTES, why);
		free(size);
		return;
	}
	if (a->container) {
		profile_inferred(a, PROFILE_SAMPLES, (double)n, FACT(JOB_PLACES_OF_FILES), 0, 0);
		profile_inferred(a, PROFILE_SAMPLES_PER_FILE, (double)best,
				 FACT(JOB_PLACES_OF_A_FILE), agree, files);
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
		say_sizes(a, size, n);
	if (n > 0 && distance > 0) {
		double stdev = a->value[PROFILE_SAMPLE_BYTES].stdev;

		profile_inferred(a, PROFILE_SAMPLE_BYTES, a->value[PROFILE_SAMPLE_BYTES].number,
				 FACT(JOB_DISTANCE), alike, distances)
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
		profile_seen(a, PROFILE_REQUESTS, mode);
		a->value[PROFILE_REQUESTS].agree = same;
		a->value[PROFILE_REQUESTS].of = visits;
	} else if (visits > 0) {
		profile_seen(a, PROFILE_REQUESTS, (double)requests / (double)visits)->text =
			"in the mean";
	}
}

static const struct file_group *training_group(const struct profile *a)
{
	for (size_t g = 0; g < a->groups; g++)
		if (a->group[g].role == FILE_DATASET)
			return &a->group[g];
	return NULL;
}

/* A file of the group: the first that the log names. */
static const char *file_of(const struct profile *a, const struct file_group *g)
{
	for (size_t i = 0; i < a->job->files; i++)
		if (&a->group[a->group_of[i]] == g)
			return a->job->file[i].name;
	return "";
}

static void say_format(struct profile *a, const struct file_group *g)
{
	const struct format_facts *f = profile_format_of(g->extension);
	const char *now = f ? NULL : profile_format_now(file_of(a, g));

	if (f)
		profile_inferred(a, PROFILE_FORMAT, 0, FACT(JOB_EXTENSION), 0, 0)->text = f->name;
	else if (now)
		profile_inferred(a, PROFILE_FORMAT, 0,
				 fact_with(FACT(JOB_FIRST_BYTES), 0, g->extension), 0, 0)
			->text = now;
	else if (g->extension[0])
		profile_inferred(a, PROFILE_FORMAT, 0, FACT(JOB_EXTENSION_OTHER), 0, 0)->text =
			g->extension;
	else
		profile_unknown(a, PROFILE_FORMAT, FACT(JOB_NO_EXTENSION));
}

void profile_dataset(struct profile *a)
{
	const struct file_group *g = training_group(a);
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

/* ---- formats by their first bytes ---- */

/* What format a file is of by its first bytes: where its name does not tell, and the file is still
 * at hand. */

#define LOOK_BYTES 264

struct magic {
	const char *name; /* of a format that is none of those here */
	uint16_t at, bytes;
	const char *begin;
};

static const struct magic table[] = {
	{"parquet", 0, 4, "PAR1"},
	{"arrow", 0, 6, "ARROW1"},
	{"zip", 0, 4, "PK\3\4"},
	{"gzip", 0, 2, "\x1f\x8b"},
	{"zstd", 0, 4, "\x28\xb5\x2f\xfd"},
	{"lz4", 0, 4, "\x04\x22\x4d\x18"},
	{"tiff", 0, 4, "II*\0"},
	{"tiff", 0, 4, "MM\0*"},
	{"gif", 0, 4, "GIF8"},
	{"webp", 8, 4, "WEBP"},
	{"wav", 8, 4, "WAVE"},
	{"flac", 0, 4, "fLaC"},
	{"sqlite", 0, 15, "SQLite format 3"},
	{"tar", 257, 5, "ustar"},
};

static ssize_t first_bytes(const char *name, char *out, size_t size)
{
	struct err e = {0};
	ssize_t n;
	int fd = name[0] == '/' ? file_open(name, NULL, &e) : -1;

	if (fd < 0)
		return -1;
	n = pread(fd, out, size, 0);
	close(fd);
	return n;
}

static bool is_begin(const char *head, ssize_t n, size_t at, const char *begin, size_t bytes)
{
	return n >= 0 && (size_t)n >= at + bytes && memcmp(head + at, begin, bytes) == 0;
}

static const char *profile_format_now(const char *name)
{
	char head[LOOK_BYTES];
	ssize_t n = first_bytes(name, head, sizeof(head));

	for (size_t i = 0; format_facts_table[i]; i++) {
		const struct format_facts *f = format_facts_table[i];

		if (f->magic && is_begin(head, n, 0, f->magic, strlen(f->magic)))
			return f->name;
	}
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (is_begin(head, n, table[i].at, table[i].begin, table[i].bytes))
			return table[i].name;
	return NULL;
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

static void add(struct uses *u, struct use use)
{
	if (u->n == u->room) {
		u->room = u->room ? 2 * u->room : 1024;
		u->v = xrealloc(u->v, u->room * sizeof(*u->v));
	}
	u->v[u->n++] = use;
}

static int by_file(const void *a, const void *b)
{
	const struct use *x = a, *y = b;

	if (x->process != y->process)
		return ORDER(x->process, y->process);
	if (x->file != y->file)
		return ORDER(x->file, y->file);
	if (x->at_ns != y->at_ns)
		return ORDER(x->at_ns, y->at_ns);
	return (int)x->what - (int)y->what; /* a visit begins with the open that it needs */
}

static int by_time(const void *a, const void *b)
{
	const struct use *x = a, *y = b;

	if (x->process != y->process)
		return ORDER(x->process, y->process);
	if (x->at_ns != y->at_ns)
		return ORDER(x->at_ns, y->at_ns);
	return (int)y->what - (int)x->what;
}

static void gather(const struct profile *a, struct uses *u)
{
	bool *reads = xcalloc(a->job->processes + 1, sizeof(*reads));

	for (size_t i = 0; i < a->readers; i++)
		reads[a->reader[i].process] = true;
	for (size_t i = 0; i < a->job->events; i++) {
		const struct job_event *v = &a->job->event[i];
		uint32_t process = a->job->thread[v->thread].process;

		if ((v->kind != JOB_OPEN && v->kind != JOB_CLOSE) || v->file == JOB_NONE ||
		    (v->result < 0 && v->result != JOB_UNKNOWN) || !reads[process] ||
		    a->role[v->file] != FILE_DATASET || v->begin_ns == JOB_UNKNOWN)
			continue;
		add(u, (struct use){process, v->file, v->begin_ns,
				    v->kind == JOB_OPEN ? USE_OPEN : USE_CLOSE});
	}
	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[i];

		if (v->begin_ns != JOB_UNKNOWN && !a->reader[v->reader].left_out)
			add(u, (struct use){a->reader[v->reader].process, a->sample[v->sample].file,
					    v->begin_ns, USE_VISIT});
	}
	free(reads);
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
