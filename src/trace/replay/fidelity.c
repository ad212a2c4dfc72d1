/* Two runs of requests compared. */
#include "trace/replay/fidelity.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/rng.h"
#include "base/str.h"
#include "trace/profile/profile.h"
#include "trace/profile/profile_parts.h"

/* Of fewer times than these no distance is printed: of one each it is 1 or 0. */
#define FEWEST 5
#define SAME_TIME 0.02 /* times that differ by less are the same */

/* ---- statistics ---- */

double fidelity_ks(double *a, size_t n, double *b, size_t m)
{
	size_t i = 0, j = 0;
	double most = 0;

	if (n == 0 || m == 0)
		return NAN;
	values_sort(a, n);
	values_sort(b, m);
	while (i < n && j < m) {
		double at = a[i] < b[j] ? a[i] : b[j], off;

		while (i < n && a[i] <= at)
			i++;
		while (j < m && b[j] <= at)
			j++;
		off = fabs((double)i / (double)n - (double)j / (double)m);
		most = off > most ? off : most;
	}
	return most;
}

/* Pairs in the wrong order, counted while the halves are merged. */
static double inversions(uint32_t *v, uint32_t *spare, size_t n)
{
	double count = 0;

	for (size_t width = 1; width < n; width *= 2) {
		for (size_t low = 0; low < n; low += 2 * width) {
			size_t middle = low + width < n ? low + width : n;
			size_t high = low + 2 * width < n ? low + 2 * width : n;
			size_t i = low, j = middle;

			for (size_t k = low; k < high; k++) {
				if (i < middle && (j >= high || v[i] <= v[j])) {
					spare[k] = v[i++];
				} else {
					count += (double)(middle - i);
					spare[k] = v[j++];
				}
			}
		}
		memcpy(v, spare, n * sizeof(*v));
	}
	return count;
}

double fidelity_tau(uint32_t *order, uint32_t *spare, size_t n)
{
	if (n < 2)
		return NAN;
	return 1 - 4 * inversions(order, spare, n) / ((double)n * (double)(n - 1));
}

/* NAN of none. */
static double known(const struct values *v, double value)
{
	return v->n ? value : NAN;
}

static void set_times(struct fidelity_times *t, struct values *log, struct values *run)
{
	t->log_n = log->n;
	t->run_n = run->n;
	t->mean =
		(struct fidelity_pair){known(log, values_mean(log)), known(run, values_mean(run))};
	t->median = (struct fidelity_pair){known(log, values_median(log)),
					   known(run, values_median(run))};
	t->ks = fidelity_ks(log->v, log->n, run->v, run->n);
}

/* ---- requests ---- */

struct request {         /* one of a run, in its order */
	uint64_t key;    /* file, kind and size */
	uint32_t reader; /* its thread; 0 where threads are not compared */
	uint32_t place;  /* within the run */
};

struct requests {
	struct request *v;
	size_t n;
};

/* What file numbers of a job stand for, the same in both jobs: the dataset's files by their place
 * in the order of names, all others by name. */
static uint64_t *name_files(const struct profile *a, bool by_place)
{
	AUTO_FREE uint32_t *data = xcalloc(a->job->files + 1, sizeof(*data));
	uint64_t *id = xcalloc(a->job->files + 1, sizeof(*id));
	size_t n = 0;

	for (size_t i = 0; i < a->job->files; i++) {
		id[i] = fnv1a_text(FNV_START, a->job->file[i].name);
		if (profile_is_data(a, (uint32_t)i))
			data[n++] = (uint32_t)i;
	}
	job_sort_by_number(a->job, data, n);
	for (size_t i = 0; by_place && i < n; i++)
		id[data[i]] = i;
	return id;
}

static bool is_transfer(const struct job_event *v)
{
	return v->kind == JOB_READ || v->kind == JOB_WRITE;
}

static bool is_request(const struct job_event *v)
{
	switch ((enum job_event_kind)v->kind) {
	case JOB_OPEN:
	case JOB_CLOSE:
	case JOB_READ:
	case JOB_WRITE:
	case JOB_SEEK:
	case JOB_STAT:
	case JOB_LIST:
	case JOB_SYNC:
	case JOB_RENAME:
	case JOB_LINK:
	case JOB_UNLINK:
	case JOB_MAKE_DIR:
	case JOB_TRUNCATE:
	case JOB_ACCESS:
		return true;
	default:
		return false;
	}
}

static bool counts(const struct profile *a, const struct job_event *v, bool dataset_only)
{
	if (!is_request(v) || v->file == JOB_NONE)
		return false;
	/* a workload asks for objects, a replay does not */
	if (!job_is_stored(&a->job->file[v->file]) &&
	    (!dataset_only || a->job->file[v->file].kind != JOB_FILE_OBJECT))
		return false;
	/* what fails without looking at the storage */
	if (job_failed(v) && (is_transfer(v) || v->kind == JOB_CLOSE || v->kind == JOB_SEEK ||
			      v->kind == JOB_SYNC || v->kind == JOB_TRUNCATE))
		return false;
	/* a workload has what trains, and no scan of the files before */
	return !dataset_only || (is_transfer(v) && profile_is_data(a, v->file) &&
				 (v->kind != JOB_READ || !profile_is_apart(a, v)));
}

static void gather(const struct profile *a, const uint64_t *id, bool transfers, bool same,
		   bool dataset_only, struct requests *out)
{
	const struct job *job = a->job;
	size_t n = 0;

	for (size_t i = 0; i < job->events; i++)
		n += counts(a, &job->event[i], dataset_only) &&
		     is_transfer(&job->event[i]) == transfers;
	*out = (struct requests){.v = xcalloc(n + 1, sizeof(*out->v))};
	for (size_t i = 0; i < job->events; i++) {
		const struct job_event *v = &job->event[i];
		uint64_t size = transfers ? (uint64_t)v->result : 0;

		/* a read that got nothing is the end of a file, which others may not ask for */
		if (!counts(a, v, dataset_only) || is_transfer(v) != transfers ||
		    (transfers && dataset_only && v->result <= 0))
			continue;
		out->v[out->n] = (struct request){
			.key = rng_key(id[v->file], v->kind, size),
			.reader = same ? v->thread : 0,
			.place = (uint32_t)out->n,
		};
		out->n++;
	}
}

static int by_key(const void *a, const void *b)
{
	const struct request *x = a, *y = b;

	return ORDER(x->reader, y->reader) ?: ORDER(x->key, y->key) ?: ORDER(x->place, y->place);
}

static int by_reader(const void *a, const void *b)
{
	const struct request *x = a, *y = b;

	return ORDER(x->reader, y->reader) ?: ORDER(x->place, y->place);
}

/* Pairs partners: in `log`, what is left are those that have one, with the partner's place as key.
 */
static size_t pair_up(struct requests *log, struct requests *run)
{
	size_t i = 0, j = 0, n = 0;

	qsort(log->v, log->n, sizeof(*log->v), by_key);
	qsort(run->v, run->n, sizeof(*run->v), by_key);
	while (i < log->n && j < run->n) {
		const struct request *x = &log->v[i], *y = &run->v[j];

		if (x->reader == y->reader && x->key == y->key) {
			log->v[n] = (struct request){
				.key = y->place, .reader = x->reader, .place = x->place};
			n++;
			i++;
			j++;
		} else if (x->reader < y->reader || (x->reader == y->reader && x->key < y->key)) {
			i++;
		} else {
			j++;
		}
	}
	return n;
}

static double share(size_t pairs, size_t log, size_t run)
{
	return log + run ? 2 * (double)pairs / (double)(log + run) : NAN;
}

/* Over readers, each counted by its requests. */
static void set_order(struct fidelity *f, struct request *paired, size_t n)
{
	AUTO_FREE uint32_t *order = xcalloc(n + 1, sizeof(*order)),
			   *spare = xcalloc(n + 1, sizeof(*spare));
	double sum = 0, weight = 0;

	qsort(paired, n, sizeof(*paired), by_reader);
	for (size_t i = 0, k; i < n; i = k) {
		double tau;

		for (k = i; k < n && paired[k].reader == paired[i].reader; k++)
			order[k - i] = (uint32_t)paired[k].key;
		tau = fidelity_tau(order, spare, k - i);
		f->readers++;
		if (isnan(tau))
			continue;
		sum += tau * (double)(k - i);
		weight += (double)(k - i);
	}
	f->tau = weight > 0 ? sum / weight : NAN;
}

static void compare_requests(const struct profile *log, const struct profile *run, bool same,
			     bool dataset_only, struct fidelity *f)
{
	AUTO_FREE uint64_t *a = name_files(log, !same), *b = name_files(run, !same);

	for (int transfers = 1; transfers >= 0; transfers--) {
		struct requests x, y;
		size_t pairs;

		gather(log, a, transfers, same, dataset_only, &x);
		gather(run, b, transfers, same, dataset_only, &y);
		pairs = pair_up(&x, &y);
		if (transfers) {
			f->equal = share(pairs, x.n, y.n);
			set_order(f, x.v, pairs);
		} else {
			f->equal_others = share(pairs, x.n, y.n);
		}
		free(x.v);
		free(y.v);
	}
}

/* ---- sums, time ---- */

static void add_sums(const struct profile *a, bool dataset_only, bool of_log, struct fidelity *f)
{
	double reads = 0, writes = 0, others = 0, got = 0, put = 0, busy = 0;
	int64_t first = JOB_UNKNOWN, last = JOB_UNKNOWN;
	bool timed = a->job->sees & JOB_SEES_TIMES;

	for (size_t i = 0; i < a->job->events; i++) {
		const struct job_event *v = &a->job->event[i];
		double bytes = v->result > 0 ? (double)v->result : 0;

		if (!counts(a, v, dataset_only))
			continue;
		if (dataset_only && v->result <= 0)
			continue;
		reads += v->kind == JOB_READ;
		writes += v->kind == JOB_WRITE;
		others += !is_transfer(v);
		got += v->kind == JOB_READ ? bytes : 0;
		put += v->kind == JOB_WRITE ? bytes : 0;
		if (!timed || v->begin_ns == JOB_UNKNOWN || v->end_ns == JOB_UNKNOWN)
			continue;
		busy += (double)(v->end_ns - v->begin_ns);
		first = first == JOB_UNKNOWN ? v->begin_ns : first;
		last = v->end_ns > last ? v->end_ns : last;
	}
	if (first != JOB_UNKNOWN && last > first)
		busy /= (double)(last - first);
	else
		busy = NAN;
#define SET(field, value) *(of_log ? &f->field.log : &f->field.run) = (value)
	SET(reads, reads);
	SET(writes, writes);
	SET(others, others);
	SET(read_bytes, got);
	SET(written_bytes, put);
	SET(concurrency, busy);
	SET(wall_s, isnan(busy) ? NAN : (double)(last - first) / 1e9);
#undef SET
}

static void sample_times(const struct profile *a, struct values *out)
{
	for (size_t i = 0; i < a->visits; i++)
		if (a->visit[i].begin_ns != JOB_UNKNOWN && a->visit[i].requests > 0)
			values_add(out, (double)a->visit[i].read_ns / 1e9);
}

/* A trainer that reads itself: from the begin of one batch to that of the next. */
static void steps_by_visits(const struct profile *a, struct values *out)
{
	AUTO_FREE const struct visit **last = xcalloc(a->readers + 1, sizeof(*last));

	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[i], *before = last[v->reader];

		if (v->batch == JOB_NONE || v->begin_ns == JOB_UNKNOWN ||
		    a->reader[v->reader].worker || a->sample[v->sample].evaluation ||
		    (before && before->batch == v->batch && before->epoch == v->epoch))
			continue;
		if (before && before->epoch == v->epoch)
			values_add(out, (double)(v->begin_ns - before->begin_ns) / 1e9);
		last[v->reader] = v;
	}
}

/* From one batch of an epoch that a trainer took to the next; between epochs other things happen.
 */
static void step_times(const struct profile *a, struct values *out)
{
	if (a->steps == 0)
		steps_by_visits(a, out);
	for (size_t i = 1; i < a->steps; i++) {
		const struct step *s = &a->step[i], *before = s - 1;

		if (s->rank == before->rank && s->epoch == before->epoch && !s->evaluation &&
		    !before->evaluation && s->taken_ns != JOB_UNKNOWN &&
		    before->taken_ns != JOB_UNKNOWN)
			values_add(out, (double)(s->taken_ns - before->taken_ns) / 1e9);
	}
}

/* Training as a program's own clock would have it: from the begin of its first workers, or of the
 * first request to the dataset, to the end of the last step, whose computation is taken as long as
 * that of the others, or of the last request to the dataset or a checkpoint. */
static double training_s(const struct profile *a, double step_s)
{
	const struct job *job = a->job;
	int64_t begin = INT64_MAX, end = INT64_MIN;

	for (size_t i = 0; i < job->events; i++) {
		const struct job_event *v = &job->event[i];

		if (v->file == JOB_NONE || v->begin_ns == JOB_UNKNOWN || v->end_ns == JOB_UNKNOWN ||
		    !is_transfer(v))
			continue;
		if (profile_is_data(a, v->file))
			LOWER(begin, v->begin_ns);
		if (profile_is_data(a, v->file) || a->role[v->file] == FILE_CHECKPOINT)
			RAISE(end, v->end_ns);
	}
	for (size_t i = 0; i < a->readers; i++)
		if (a->reader[i].worker && !a->reader[i].left_out &&
		    a->reader[i].begin_ns != JOB_UNKNOWN)
			LOWER(begin, a->reader[i].begin_ns);
	for (size_t i = 0; i < a->steps && !isnan(step_s); i++)
		if (a->step[i].taken_ns != JOB_UNKNOWN)
			RAISE(end, a->step[i].taken_ns + (int64_t)(1e9 * step_s));
	return end > begin ? (double)(end - begin) / 1e9 : NAN;
}

void fidelity_of(const struct job *log, const struct job *run, bool same, bool dataset_only,
		 struct fidelity *out)
{
	struct values x[2] = {0}, y[2] = {0};
	struct profile a, b;

	*out = (struct fidelity){0};
	profile_make(&a, log);
	profile_make(&b, run);
	add_sums(&a, dataset_only, true, out);
	add_sums(&b, dataset_only, false, out);
	compare_requests(&a, &b, same, dataset_only, out);
	sample_times(&a, &x[0]);
	sample_times(&b, &y[0]);
	set_times(&out->sample, &x[0], &y[0]);
	step_times(&a, &x[1]);
	step_times(&b, &y[1]);
	set_times(&out->step, &x[1], &y[1]);
	if (dataset_only)
		out->wall_s = (struct fidelity_pair){training_s(&a, out->step.median.log),
						     training_s(&b, out->step.median.run)};
	for (int i = 0; i < 2; i++) {
		free(x[i].v);
		free(y[i].v);
	}
	profile_release(&a);
	profile_release(&b);
}

void fidelity_set_steps(struct fidelity *f, const struct job *log, const double *run_s, size_t n)
{
	struct values x = {0}, y = {0};
	struct profile a;

	profile_make(&a, log);
	step_times(&a, &x);
	for (size_t i = 0; i < n; i++)
		values_add(&y, run_s[i]);
	set_times(&f->step, &x, &y);
	profile_release(&a);
	free(x.v);
	free(y.v);
}

/* ---- printing ---- */

enum unit { REQUESTS, BYTES, IN_FLIGHT, SECONDS };

/* What is compared of both as a whole, in the order in which it is printed. */
static const struct row {
	const char *key, *label;
	size_t at; /* of the pair */
	enum unit unit;
} rows[] = {
	{"reads", "reads", offsetof(struct fidelity, reads), REQUESTS},
	{"bytes_read", "bytes read", offsetof(struct fidelity, read_bytes), BYTES},
	{"writes", "writes", offsetof(struct fidelity, writes), REQUESTS},
	{"bytes_written", "bytes written", offsetof(struct fidelity, written_bytes), BYTES},
	{"other_requests", "other requests", offsetof(struct fidelity, others), REQUESTS},
	{"requests_in_flight", "requests in flight", offsetof(struct fidelity, concurrency),
	 IN_FLIGHT},
	{"run_s", "run time", offsetof(struct fidelity, wall_s), SECONDS},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static struct fidelity_pair *pair_of(const struct fidelity *f, size_t row)
{
	return (void *)((uintptr_t)f + rows[row].at);
}

void fidelity_forget_requests(struct fidelity *f)
{
	for (size_t i = 0; i < ROWS; i++)
		pair_of(f, i)->run = NAN;
	f->equal = f->equal_others = f->tau = NAN;
}

/* One number in the unit that suits `of`. */
static const char *number(double v, double of, enum unit unit, char *text, size_t size)
{
	if (isnan(v))
		return "-";
	if (unit == BYTES)
		return str_bytes(v, text, size);
	if (unit == SECONDS)
		snprintf(text, size, "%.3f %-2s",
			 v * (of >= 1      ? 1
			      : of >= 1e-3 ? 1e3
					   : 1e6),
			 of >= 1      ? "s"
			 : of >= 1e-3 ? "ms"
				      : "us");
	else
		snprintf(text, size, "%.*f", unit == IN_FLIGHT ? 3 : 0, v);
	return text;
}

static void put_pair(struct buf *out, const char *label, enum unit unit, struct fidelity_pair p)
{
	bool known = !isnan(p.log) && !isnan(p.run);
	char log[32], run[32];

	if ((unit <= BYTES && p.log == 0 && p.run == 0) || (unit == IN_FLIGHT && !known))
		return;
	if (unit == SECONDS && !known) {
		buf_printf(out, "  %-22s not known\n", label);
		return;
	}
	buf_printf(out, "  %-22s %14s %14s  ", label, number(p.log, p.log, unit, log, sizeof(log)),
		   number(p.run, p.log, unit, run, sizeof(run)));
	if (unit == IN_FLIGHT)
		buf_puts(out, "in the mean");
	else if (!known)
		buf_puts(out, "not known");
	else if (p.log == p.run)
		buf_puts(out, "equal");
	else if (p.log > 0)
		buf_printf(out, "%+.2f %%", 100 * (p.run - p.log) / p.log);
	else
		buf_puts(out, "-");
	buf_putc(out, '\n');
}

static void put_times(struct buf *out, const char *label, const struct fidelity_times *t)
{
	put_pair(out, label, SECONDS, t->median);
	if (isnan(t->ks))
		return;
	put_pair(out, "  mean", SECONDS, t->mean);
	buf_printf(out, "  %-22s %14zu %14zu  ", "  of", t->log_n, t->run_n);
	if (t->log_n < FEWEST || t->run_n < FEWEST)
		buf_puts(out, "too few for a distance\n");
	else
		buf_printf(out, "distance %.3f\n", t->ks);
}

void fidelity_print(const struct fidelity *f, struct buf *out)
{
	buf_printf(out, "  %-22s %14s %14s\n", "", "log", "here");
	for (size_t i = 0; rows[i].unit <= BYTES; i++)
		put_pair(out, rows[i].label, rows[i].unit, *pair_of(f, i));
	if (!isnan(f->equal))
		buf_printf(out,
			   "  %-22s %.2f %% of reads and writes have one of the same file and "
			   "size\n",
			   "requests equal", 100 * f->equal);
	if (!isnan(f->equal_others))
		buf_printf(out,
			   "  %-22s %.2f %% of the others have one of the same file and kind\n", "",
			   100 * f->equal_others);
	if (!isnan(f->tau))
		buf_printf(out, "  %-22s Kendall's tau %.4f (%zu reader%s)\n", "order", f->tau,
			   f->readers, f->readers == 1 ? "" : "s");
	put_pair(out, "requests in flight", IN_FLIGHT, f->concurrency);
	put_times(out, "reading a sample, median", &f->sample);
	put_times(out, "step, median", &f->step);
	put_pair(out, "run time", SECONDS, f->wall_s);
}

void fidelity_say_time(const struct fidelity *f, bool think, struct buf *out)
{
	double log = f->wall_s.log, run = f->wall_s.run;
	char here[32], there[32];

	if (isnan(log) || isnan(run))
		return;
	str_seconds(run, here, sizeof(here));
	str_seconds(log, there, sizeof(there));
	if (!think)
		buf_printf(out,
			   "The requests take %s here; the job took %s with its own thinking.\n",
			   here, there);
	else if (strcmp(here, there) == 0 || fabs(run - log) < SAME_TIME * log)
		buf_printf(out, "Your job takes as long here: %s.\n", here);
	else
		buf_printf(out, "Your job takes %s here instead of %s.\n", here, there);
}

/* `"name": value`, and what follows. */
static void json_number(struct buf *out, const char *name, double v, const char *after)
{
	char text[32] = "null";

	if (isfinite(v))
		snprintf(text, sizeof(text), "%.9g", v);
	buf_printf(out, "\"%s\": %s%s", name, text, after);
}

static void json_times(struct buf *out, const char *name, const struct fidelity_times *t)
{
	buf_printf(out, "  \"%s\": {\"log_n\": %zu, \"here_n\": %zu, ", name, t->log_n, t->run_n);
	json_number(out, "log_median_s", t->median.log, ", ");
	json_number(out, "here_median_s", t->median.run, ", ");
	json_number(out, "log_mean_s", t->mean.log, ", ");
	json_number(out, "here_mean_s", t->mean.run, ", ");
	json_number(out, "ks", t->ks, "},\n");
}

void fidelity_json(const struct fidelity *f, struct buf *out)
{
	buf_puts(out, "{\n");
	for (size_t i = 0; i < ROWS; i++) {
		buf_printf(out, "  \"%s\": {", rows[i].key);
		json_number(out, "log", pair_of(f, i)->log, ", ");
		json_number(out, "here", pair_of(f, i)->run, "},\n");
	}
	json_times(out, "sample_read", &f->sample);
	json_times(out, "step", &f->step);
	buf_puts(out, "  ");
	json_number(out, "requests_equal", f->equal, ",\n  ");
	json_number(out, "other_requests_equal", f->equal_others, ",\n  ");
	json_number(out, "order_tau", f->tau, ",\n");
	buf_printf(out, "  \"readers\": %zu\n}\n", f->readers);
}
