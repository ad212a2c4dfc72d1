/* Curves and histograms of a job. */
#include "page/job_curves.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/say.h"
#include "result/json_out.h"

enum series { OF_DATASET, OF_OTHERS, OF_PROGRAMS, WRITTEN, SERIES };
static const char *const series_names[SERIES] = {"read: dataset", "read: other files",
						 "read: programs", "written"};

#define BITS 48 /* sizes of requests up to 2^48 */
#define SAMPLE_BINS 32

/* ---- bytes over time ---- */

struct curves {
	double from, dt;
	double bytes[SERIES][JOB_BINS];
};

static void add_bytes(struct curves *c, enum series s, double from, double to, double bytes)
{
	double width = to - from;
	size_t first, last;

	if (!isfinite(from) || !isfinite(to) || width < 0)
		return;
	first = (size_t)fmin(fmax((from - c->from) / c->dt, 0), JOB_BINS - 1);
	last = (size_t)fmin(fmax((to - c->from) / c->dt, 0), JOB_BINS - 1);
	if (first == last) {
		c->bytes[s][first] += bytes;
		return;
	}
	for (size_t b = first; b <= last; b++) {
		double low = fmax(from, c->from + (double)b * c->dt);
		double high = fmin(to, c->from + (double)(b + 1) * c->dt);

		if (high > low)
			c->bytes[s][b] += bytes * (high - low) / width;
	}
}

/* What reading a file is. */
static enum series read_of(const struct profile *a, uint32_t file)
{
	if (profile_is_data(a, file))
		return OF_DATASET;
	return a->role[file] == FILE_CODE ? OF_PROGRAMS : OF_OTHERS;
}

/* false: pipes and the like, or no bytes */
static bool series_of(const struct profile *a, const struct job_event *v, enum series *s)
{
	if ((v->kind != JOB_READ && v->kind != JOB_WRITE) || v->file == JOB_NONE ||
	    v->result <= 0 || !job_has_data(&a->job->file[v->file]))
		return false;
	*s = v->kind == JOB_WRITE ? WRITTEN : read_of(a, v->file);
	return true;
}

static bool from_events(const struct profile *a, struct curves *c)
{
	const struct job *job = a->job;
	double begin = INFINITY, end = -INFINITY;
	enum series s;

	for (size_t i = 0; i < job->events; i++) {
		const struct job_event *v = &job->event[i];

		if (v->begin_ns == JOB_UNKNOWN || v->end_ns == JOB_UNKNOWN)
			continue;
		begin = fmin(begin, (double)v->begin_ns / 1e9);
		end = fmax(end, (double)v->end_ns / 1e9);
	}
	if (!(end > begin))
		return false;
	c->from = begin;
	c->dt = (end - begin) / JOB_BINS;
	for (size_t i = 0; i < job->events; i++) {
		const struct job_event *v = &job->event[i];

		if (v->begin_ns != JOB_UNKNOWN && v->end_ns != JOB_UNKNOWN && series_of(a, v, &s))
			add_bytes(c, s, (double)v->begin_ns / 1e9, (double)v->end_ns / 1e9,
				  (double)v->result);
	}
	return true;
}

/* The log has only sums over intervals, of all files together. */
static bool from_heat(const struct profile *a, struct curves *c)
{
	const struct job *job = a->job;
	double end = 0;

	for (size_t i = 0; i < job->heats; i++)
		end = fmax(end, job->heat[i].bin_s * (double)job->heat[i].bins);
	if (!(end > 0) || !isfinite(end))
		return false;
	c->dt = end / JOB_BINS;
	for (size_t i = 0; i < job->heats; i++)
		for (size_t b = 0; b < job->heat[i].bins; b++) {
			double at = job->heat[i].bin_s * (double)b;

			add_bytes(c, OF_OTHERS, at, at + job->heat[i].bin_s,
				  (double)job->heat[i].read[b]);
			add_bytes(c, WRITTEN, at, at + job->heat[i].bin_s,
				  (double)job->heat[i].written[b]);
		}
	return true;
}

struct mark {
	double from, to;
	bool used;
};

static void widen(struct mark *m, const struct visit *v)
{
	double from = (double)v->begin_ns / 1e9, to = (double)v->end_ns / 1e9;

	m->from = m->used ? fmin(m->from, from) : from;
	m->to = m->used ? fmax(m->to, to) : to;
	m->used = true;
}

static void put_mark(json_t *list, const char *kind, size_t number, const struct mark *m)
{
	json_t *o = json_object();
	struct buf text = {0};

	buf_say(&text, "%s %zu", kind, number);
	json_put_text(o, "kind", kind);
	json_put_text(o, "label", text.data);
	json_put_real(o, "from", m->from);
	json_put_real(o, "to", m->to);
	json_array_append_new(list, o);
	buf_release(&text);
}

static void put_epochs(json_t *list, const struct profile *a)
{
	AUTO_FREE struct mark *mark = xcalloc((size_t)2 * JOB_MARKS, sizeof(*mark));

	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[i];
		bool evaluation = a->sample[v->sample].evaluation;

		if (v->epoch < JOB_MARKS && v->begin_ns != JOB_UNKNOWN && v->end_ns != JOB_UNKNOWN)
			widen(&mark[2 * v->epoch + evaluation], v);
	}
	for (size_t i = 0; i < (size_t)2 * JOB_MARKS; i++)
		if (mark[i].used)
			put_mark(list, i % 2 ? "evaluation" : "epoch", i / 2 + 1, &mark[i]);
}

/* Writes of checkpoints that follow each other at once are one. */
static void put_checkpoints(json_t *list, const struct profile *a, double near)
{
	struct mark m = {0};
	size_t n = 0;

	for (size_t i = 0; i < a->job->events; i++) {
		const struct job_event *v = &a->job->event[i];
		double from, to;

		if (v->kind != JOB_WRITE || v->file == JOB_NONE ||
		    a->role[v->file] != FILE_CHECKPOINT || v->begin_ns == JOB_UNKNOWN ||
		    v->end_ns == JOB_UNKNOWN)
			continue;
		from = (double)v->begin_ns / 1e9;
		to = (double)v->end_ns / 1e9;
		if (m.used && from > m.to + near) {
			put_mark(list, "checkpoint", ++n, &m);
			m.used = false;
			if (n >= JOB_MARKS)
				return;
		}
		if (!m.used)
			m = (struct mark){from, to, true};
		m.to = fmax(m.to, to);
	}
	if (m.used)
		put_mark(list, "checkpoint", ++n, &m);
}

json_t *job_bytes(const struct profile *a)
{
	const unsigned needed = JOB_SEES_REQUESTS | JOB_SEES_TIMES;
	AUTO_FREE struct curves *c = xcalloc(1, sizeof(*c));
	json_t *o = NULL, *series, *marks;
	bool requests = (a->job->sees & needed) == needed;

	if (requests ? from_events(a, c) : from_heat(a, c)) {
		o = json_object();
		series = json_array();
		marks = json_array();
		for (size_t s = 0; s < SERIES; s++) {
			json_t *one, *rate = json_array();
			double sum = 0;

			for (size_t b = 0; b < JOB_BINS; b++) {
				sum += c->bytes[s][b];
				json_array_append_new(rate, json_number(c->bytes[s][b] / c->dt));
			}
			if (!(sum > 0)) {
				json_decref(rate);
				continue;
			}
			one = json_object();
			json_put_int(one, "kind", s);
			json_put_text(one, "name",
				      requests || s == WRITTEN ? series_names[s] : "read");
			json_put_real(one, "bytes", sum);
			json_put(one, "rate", rate);
			json_array_append_new(series, one);
		}
		put_epochs(marks, a);
		put_checkpoints(marks, a, c->dt);
		json_put_real(o, "from", c->from);
		json_put_real(o, "dt", c->dt);
		json_put(o, "series", series);
		json_put(o, "marks", marks);
	}
	return o ? o : json_null();
}

/* ---- sizes ---- */

/* A histogram: its bars, a label each, and their counts in some series; NULL where there is none.
 */
static json_t *histogram(const char *title, const char *unit, json_t *labels, json_t *series)
{
	json_t *o = json_array_size(series) ? json_object() : NULL;

	if (!o) {
		json_decref(labels);
		json_decref(series);
		return NULL;
	}
	json_put_text(o, "title", title);
	json_put_text(o, "unit", unit);
	json_put(o, "labels", labels);
	json_put(o, "series", series);
	return o;
}

/* A series of bars, unless all are 0. */
static void put_series(json_t *list, enum series s, const char *name, const uint64_t *n,
		       size_t bars)
{
	json_t *o = json_object(), *counts = json_array();
	uint64_t sum = 0;

	for (size_t i = 0; i < bars; i++) {
		sum += n[i];
		json_array_append_new(counts, json_count(n[i]));
	}
	json_put_int(o, "kind", s);
	json_put_text(o, "name", name);
	json_put(o, "counts", counts);
	if (sum)
		json_array_append(list, o);
	json_decref(o);
}

static void put_bytes(struct buf *out, double v)
{
	static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	size_t u = 0;

	for (; v >= 1024 && u < 4; u++)
		v /= 1024;
	buf_say(out, v < 10 && v != floor(v) ? "%.1f %s" : "%.0f %s", v, unit[u]);
}

static void label(json_t *list, double v)
{
	struct buf text = {0};

	put_bytes(&text, v);
	json_array_append_new(list, json_text(text.data));
	buf_release(&text);
}

/* Requests by their size, each up to a power of two. */
static json_t *request_sizes(const struct profile *a)
{
	static uint64_t n[SERIES][BITS];
	size_t low = BITS, high = 0;
	json_t *labels, *list;
	enum series s;

	memset(n, 0, sizeof(n));
	for (size_t i = 0; i < a->job->events; i++) {
		const struct job_event *v = &a->job->event[i];
		size_t bit = 0;

		if (!series_of(a, v, &s))
			continue;
		while (bit < BITS - 1 && (INT64_C(1) << bit) < v->result)
			bit++;
		n[s][bit]++;
		LOWER(low, bit);
		RAISE(high, bit + 1);
	}
	if (low >= high)
		return NULL;
	labels = json_array();
	list = json_array();
	for (size_t i = low; i < high; i++)
		label(labels, ldexp(1, (int)i));
	for (size_t k = 0; k < SERIES; k++)
		put_series(list, (enum series)k, series_names[k], &n[k][low], high - low);
	return histogram("Requests by size", "requests up to a size", labels, list);
}

/* The same of a log that has only the counts of its own buckets. */
static json_t *counted_sizes(const struct profile *a)
{
	static const char *const upto[JOB_SIZES] = {"100 B", "1 KiB", "10 KiB", "100 KiB",
						    "1 MiB", "4 MiB", "10 MiB", "100 MiB",
						    "1 GiB", "more"};
	uint64_t n[SERIES][JOB_SIZES] = {{0}};
	json_t *labels = json_array(), *list = json_array();

	for (size_t f = 0; f < a->job->files; f++) {
		const struct job_counts *c = &a->job->file[f].counts;
		enum series s = read_of(a, (uint32_t)f);

		for (size_t i = 0; i < JOB_SIZES; i++) {
			if (c->read_size[i] > 0)
				n[s][i] += (uint64_t)c->read_size[i];
			if (c->write_size[i] > 0)
				n[WRITTEN][i] += (uint64_t)c->write_size[i];
		}
	}
	for (size_t i = 0; i < JOB_SIZES; i++)
		json_array_append_new(labels, json_text(upto[i]));
	for (size_t k = 0; k < SERIES; k++)
		put_series(list, (enum series)k, series_names[k], n[k], JOB_SIZES);
	return histogram("Requests by size", "requests up to a size", labels, list);
}

static json_t *sample_sizes(const struct profile *a)
{
	int64_t least = INT64_MAX, most = 0;
	uint64_t n[SAMPLE_BINS] = {0};
	json_t *labels, *list;
	size_t bins = SAMPLE_BINS;
	double width;

	for (size_t i = 0; i < a->samples; i++) {
		if (a->sample[i].evaluation || a->sample[i].bytes <= 0)
			continue;
		LOWER(least, a->sample[i].bytes);
		RAISE(most, a->sample[i].bytes);
	}
	if (most == 0)
		return NULL;
	if (most - least < SAMPLE_BINS)
		bins = 1;
	width = (double)(most - least) / (double)bins;
	for (size_t i = 0; i < a->samples; i++)
		if (!a->sample[i].evaluation && a->sample[i].bytes > 0) {
			size_t b = width > 0
					   ? (size_t)((double)(a->sample[i].bytes - least) / width)
					   : 0;

			n[b < bins ? b : bins - 1]++;
		}
	labels = json_array();
	list = json_array();
	for (size_t i = 0; i < bins; i++)
		label(labels, (double)least + width * (double)(i + 1));
	put_series(list, OF_DATASET, "samples", n, bins);
	return histogram("Samples by bytes read", "samples up to a size", labels, list);
}

json_t *job_sizes(const struct profile *a)
{
	json_t *list = json_array(), *samples = sample_sizes(a);
	json_t *requests = a->job->sees & JOB_SEES_REQUESTS ? request_sizes(a) : counted_sizes(a);

	if (samples)
		json_array_append_new(list, samples);
	if (requests)
		json_array_append_new(list, requests);
	return list;
}
