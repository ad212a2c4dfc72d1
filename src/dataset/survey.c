/* The content of samples, chosen by the seed, and the extents of files. */
#include "dataset/survey.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/rng.h"
#include "dataset/each.h"
#include "format/blob_stream.h"
#include "store/page_cache.h"

#define THREADS 4 /* reading is waiting */
#define BLOCKS 16 /* at random, one in each of as many equal parts behind the first bytes */
#define RANGES (3 + BLOCKS)
#define TIME_LIMIT_NS (5 * NS_PER_S)
/* Files that hold less may agree by chance. */
#define TELLING_BYTES 64u
#define PIECE_BYTES (5u << 18) /* what reading past the page cache copies through, and a little */
static const double HOLE_SHARE = 0.01;
static const double SPARSE_SHARE =
	0.10; /* of a file without blocks, where only their number is known */

/* ---- a part of a file: what it holds, and what it is to hold ---- */

struct range {
	struct blob_part want; /* what it is to hold */
	size_t got;            /* bytes that were there to be read */
	unsigned char *actual;
};

struct content_worker {
	struct range range[RANGES];
	unsigned ranges;
	unsigned common; /* the first ones, at the same places in all files of one size */
	unsigned own;    /* the one where the sample begins; RANGES: the file ends before */
	unsigned char *memory;
};

#define RANGE_MEMORY                                                                               \
	(2 * (2 * (size_t)SURVEY_FRONT_BYTES + (RANGES - 2) * (size_t)SURVEY_BLOCK_BYTES))

static void range_add(struct content_worker *w, uint64_t offset, uint64_t bytes,
		      uint64_t file_bytes)
{
	struct range *r = &w->range[w->ranges];
	unsigned char *at = w->memory;

	if (offset >= file_bytes || bytes == 0)
		return;
	for (unsigned i = 0; i < w->ranges; i++)
		at += 2 * w->range[i].want.bytes;
	bytes = bytes < file_bytes - offset ? bytes : file_bytes - offset;
	*r = (struct range){
		.want = {.offset = offset, .bytes = (size_t)bytes, .made = at + (size_t)bytes},
		.actual = at};
	w->ranges++;
}

/* ---- which samples ---- */

struct content_job {
	const struct survey_job *job;
	struct survey *out;
	struct store *store;    /* to read from */
	pthread_mutex_t lock;   /* over `out`, `print` and `first_number` */
	pthread_mutex_t making; /* over `scratch`: one file is made at a time */
	void *scratch;
	uint64_t picks[DATASET_KINDS];   /* files */
	uint64_t samples[DATASET_KINDS]; /* of all of them */
	int64_t until_ns;
	uint64_t first_number;
	/* Of every file compared: a hash of how it begins, and whether it is as generated. */
	struct file_print {
		uint64_t hash;
		bool telling, same, zero, constant;
	} * print;
	uint64_t prints;
};

static uint64_t draw(const struct content_job *c, uint64_t number, uint64_t what, uint64_t below)
{
	return below ? rng_word(rng_key(c->job->seed, number, 0x5a3b1e), what) % below : 0;
}

/* Up to this size files are made to their end, sums and all. */
static uint64_t made_bytes(const struct content_job *c)
{
	return c->job->made_bytes ? c->job->made_bytes : SURVEY_MADE_BYTES;
}

/* One file out of each of n equal parts of a kind, which are in the order of its subfolders. */
static uint64_t pick_file(void *arg, enum dataset_kind kind, uint64_t n, uint64_t i)
{
	const struct content_job *c = arg;
	const struct dataset *d = c->job->dataset;
	double part = (double)d->files[kind] / (double)n;
	uint64_t from = (uint64_t)(part * (double)i), to = (uint64_t)(part * (double)(i + 1));

	to = i + 1 == n || to > d->files[kind] ? d->files[kind] : to;
	to = to > from ? to : from + 1;
	return each_by_folder(d, kind, from + draw(c, i, (uint64_t)kind + 1, to - from));
}

/* ---- reading and comparing one sample ---- */

/* Where the bytes of a sample lie, or about where. */
static void sample_place(const struct dataset *d, const struct file_spec *f, uint64_t sample,
			 uint64_t file_bytes, uint64_t *offset, uint64_t *bytes)
{
	const struct reader_config c = {.access = ACCESS_NATIVE,
					.decode = DECODE_NONE,
					.max_sample_bytes = d->max_sample_bytes,
					.max_file_bytes = d->max_file_bytes,
					.samples_per_file = d->samples_per_file,
					.files = dataset_file_index_end(d)};
	struct extent x;

	if (d->format->extent && d->format->extent(&c, f, sample, &x, NULL) == 0 && !x.whole) {
		*offset = x.offset;
		*bytes = x.bytes;
	} else if (d->format->extent && f->samples > 1) {
		*bytes = file_bytes / f->samples;
		*offset = *bytes * sample;
	} else {
		*offset = 0;
		*bytes = file_bytes;
	}
	if (*offset > file_bytes)
		*offset = file_bytes;
	if (*bytes > file_bytes - *offset)
		*bytes = file_bytes - *offset;
}

/* A block at random in every n-th of the equal parts behind the first bytes, from part `i` on. */
static void choose_blocks(struct content_worker *w, const struct content_job *c, uint64_t number,
			  unsigned i, unsigned n, uint64_t file_bytes)
{
	uint64_t span = file_bytes - SURVEY_FRONT_BYTES;

	for (; i < BLOCKS; i += n) {
		uint64_t from = span / BLOCKS * i, room = span / BLOCKS - SURVEY_BLOCK_BYTES;

		range_add(w, SURVEY_FRONT_BYTES + from + draw(c, number, 32 + i, room + 1),
			  SURVEY_BLOCK_BYTES, file_bytes);
	}
}

static void choose_ranges(struct content_worker *w, const struct content_job *c,
			  const struct file_spec *f, uint64_t number, uint64_t nth,
			  uint64_t file_bytes)
{
	const struct dataset *d = c->job->dataset;
	bool long_file = file_bytes > SURVEY_FRONT_BYTES + (BLOCKS + 1) * SURVEY_BLOCK_BYTES;
	uint64_t offset, bytes;

	sample_place(d, f, draw(c, number, 64 * nth + 8, f->samples ? f->samples : 1), file_bytes,
		     &offset, &bytes);
	w->ranges = 0;
	w->own = bytes == 0 ? RANGES : 0;
	if (nth > 0) {
		range_add(w, offset, bytes < SURVEY_FRONT_BYTES ? bytes : SURVEY_FRONT_BYTES,
			  file_bytes);
		return;
	}
	range_add(w, 0, SURVEY_FRONT_BYTES, file_bytes);
	/* in files of one size half of them at the same places: then copies show */
	if (long_file)
		choose_blocks(w, c, 0, 0, 2, file_bytes);
	else
		range_add(w, SURVEY_FRONT_BYTES, (BLOCKS + 1) * SURVEY_BLOCK_BYTES, file_bytes);
	w->common = w->ranges;
	if (!long_file) {
		/* that was all of it */
		w->own += offset >= SURVEY_FRONT_BYTES;
		return;
	}
	choose_blocks(w, c, number, 1, 2, file_bytes);
	range_add(w, file_bytes - SURVEY_BLOCK_BYTES, SURVEY_BLOCK_BYTES, file_bytes);
	if (offset >= SURVEY_FRONT_BYTES)
		w->own += w->ranges;
	/* what the front has already */
	if (offset < SURVEY_FRONT_BYTES) {
		uint64_t has = SURVEY_FRONT_BYTES - offset;

		has = has < bytes ? has : bytes;
		offset += has;
		bytes -= has;
	}
	range_add(w, offset, bytes < SURVEY_FRONT_BYTES ? bytes : SURVEY_FRONT_BYTES, file_bytes);
}

static int read_ranges(const struct content_job *c, struct each_worker *w, struct content_worker *p,
		       struct err *e)
{
	struct blob *b = store_blob_new(c->store, e);
	int rc = b ? store_open(c->store, w->path, STORE_READ, b, e) : -ENOMEM;

	if (rc == 0) {
		for (unsigned i = 0; rc == 0 && i < p->ranges; i++) {
			struct range *r = &p->range[i];
			ssize_t got = store_pread(b, r->actual, r->want.bytes, r->want.offset, e);

			rc = got < 0 ? (int)got : 0;
			r->got = got > 0 ? (size_t)got : 0;
		}
		store_close(b, NULL);
	}
	free(b);
	return rc;
}

/* Makes what the ranges are to hold. What is not known of it stays what was read. */
static int make_ranges(struct content_job *c, struct each_worker *w, struct content_worker *p,
		       const struct file_spec *f, uint64_t file_bytes, struct err *e)
{
	const struct dataset *d = c->job->dataset;
	struct io io = {.store = c->store, .stop = c->job->stop};
	struct blob_part part[RANGES];
	uint64_t most = made_bytes(c);
	int rc;

	for (unsigned i = 0; i < p->ranges; i++) {
		part[i] = p->range[i].want;
		memcpy(part[i].made, p->range[i].actual, p->range[i].got);
	}
	pthread_mutex_lock(&c->making);
	rc = format_make_parts(d->format, &io, w->path, f, &d->content, part, p->ranges,
			       file_bytes > most ? most : 0, c->scratch, FORMAT_WRITE_SCRATCH, e);
	pthread_mutex_unlock(&c->making);
	for (unsigned i = 0; i < p->ranges; i++)
		p->range[i].want.known = part[i].known;
	return rc;
}

/* The offset of the first byte that is not as it should be; UINT64_MAX when none is known to be. */
static uint64_t first_wrong(const struct content_worker *p, bool *zeros)
{
	uint64_t wrong = UINT64_MAX;

	for (unsigned i = 0; i < p->ranges; i++) {
		const struct range *r = &p->range[i];
		size_t at = 0, k;

		while (at < r->got && r->actual[at] == r->want.made[at])
			at++;
		if (at == r->got || r->want.offset + at >= wrong)
			continue;
		wrong = r->want.offset + at;
		for (k = at; k < r->got && r->actual[k] == 0; k++)
			continue;
		*zeros = k == r->got && r->got - at >= TELLING_BYTES;
	}
	return wrong;
}

/* Whether all that was read is one byte again and again; *value gets it. */
static bool is_constant(const struct content_worker *p, unsigned char *value)
{
	bool any = false;

	for (unsigned i = 0; i < p->ranges; i++) {
		const struct range *r = &p->range[i];

		for (size_t k = 0; k < r->got; k++) {
			if (!any)
				*value = r->actual[k];
			any = true;
			if (r->actual[k] != *value)
				return false;
		}
	}
	return any;
}

/* FNV-1a over words, of what is read of every file of this size: files with other content have
 * other ones. */
static uint64_t print_of(const struct content_worker *p, uint64_t file_bytes)
{
	uint64_t h = 0xcbf29ce484222325u ^ file_bytes, word;

	for (unsigned i = 0; i < p->common; i++) {
		const struct range *r = &p->range[i];

		for (size_t k = 0; k < r->got; k += 8) {
			word = 0;
			memcpy(&word, r->actual + k, r->got - k < 8 ? r->got - k : 8);
			h = (h ^ word) * 0x100000001b3u;
			h ^= h >> 29;
		}
	}
	return h;
}

/* A format whose files depend on a library's version says itself whether one is right. */
static bool verified_otherwise(struct content_job *c, struct each_worker *w,
			       const struct file_spec *f, uint64_t file_bytes)
{
	const struct dataset *d = c->job->dataset;
	struct io io = {.store = c->store, .stop = c->job->stop};

	int rc;

	if (dataset_file_bytes(d, DATASET_TRAIN, 0) != UINT64_MAX || file_bytes > made_bytes(c))
		return false;
	pthread_mutex_lock(&c->making);
	rc = format_verify(d->format, &io, w->path, f, &d->content, c->scratch,
			   FORMAT_WRITE_SCRATCH, NULL);
	pthread_mutex_unlock(&c->making);
	return rc == 0;
}

/* Behind this offset nothing more can be known of the file; UINT64_MAX: of all of it something. */
static uint64_t known_end(const struct content_worker *p)
{
	uint64_t known = 0, end = UINT64_MAX;

	for (unsigned i = 0; i < p->ranges; i++)
		if (p->range[i].want.known && p->range[i].want.offset > known)
			known = p->range[i].want.offset;
	for (unsigned i = 0; i < p->ranges; i++)
		if (p->range[i].want.offset > known && p->range[i].want.offset < end)
			end = p->range[i].want.offset;
	return end;
}

struct finding {
	uint64_t samples, bytes, places, wrong; /* wrong: UINT64_MAX for none */
	bool constant, failed;
	bool unknown; /* places whose content is not known */
	bool zeros;   /* from the first wrong byte on */
	unsigned char value;
	uint64_t hash;
	size_t hashed;
};

/* Of the file with this number among those that are picked. */
static uint64_t samples_of(const struct content_job *c, enum dataset_kind kind, uint64_t number)
{
	uint64_t i = number - (kind == DATASET_EVAL ? c->picks[DATASET_TRAIN] : 0);
	uint64_t most = c->job->dataset->samples_per_file;
	uint64_t n = c->samples[kind] / c->picks[kind] + (i < c->samples[kind] % c->picks[kind]);

	return n < most ? n : most ? most : 1;
}

/* ERR_CANCELED when it was stopped; other failures are found. */
static int compare_samples(struct content_job *c, enum dataset_kind kind, uint64_t index,
			   struct each_worker *w, struct content_worker *p, uint64_t file_bytes,
			   struct finding *out, struct err *e)
{
	uint64_t end = UINT64_MAX;
	struct file_spec f;
	int rc;

	dataset_file_spec(c->job->dataset, kind, index, &f);
	for (uint64_t nth = 0; nth < samples_of(c, kind, w->number); nth++) {
		unsigned char value;
		uint64_t wrong, places = 0, known;
		bool zeros = false;

		if (nth > 0 && clock_now_ns() >= c->until_ns)
			return 0;
		choose_ranges(p, c, &f, w->number, nth, file_bytes);
		if (p->ranges == 0 || p->range[0].want.offset >= end)
			continue; /* the file, or what can be known of it, ends before */
		rc = read_ranges(c, w, p, e) ?: make_ranges(c, w, p, &f, file_bytes, e);
		if (rc == ERR_CANCELED)
			return err_set(e, rc, "stopped on request");
		out->failed = rc < 0;
		if (rc < 0)
			return 0;
		known = known_end(p);
		end = known < end ? known : end;
		for (unsigned i = 0; i < p->ranges; i++) {
			places += p->range[i].want.known > 0;
			out->bytes += p->range[i].want.known;
		}
		out->unknown = out->unknown || places < p->ranges;
		wrong = first_wrong(p, &zeros);
		if (wrong != UINT64_MAX && verified_otherwise(c, w, &f, file_bytes))
			wrong = UINT64_MAX;
		if (nth == 0) {
			out->hash = print_of(p, file_bytes);
			out->hashed = p->range[0].got;
			out->constant = is_constant(p, &out->value);
		} else {
			out->constant =
				out->constant && is_constant(p, &value) && value == out->value;
		}
		out->samples += p->own < p->ranges && p->range[p->own].want.known > 0;
		out->places += places;
		if (wrong < out->wrong) {
			out->wrong = wrong;
			out->zeros = zeros;
		}
	}
	return 0;
}

static int compare_file(void *arg, enum dataset_kind kind, uint64_t index, struct each_worker *w,
			struct err *e)
{
	struct content_job *c = arg;
	struct content_worker p = {.ranges = 0};
	struct finding found = {.wrong = UINT64_MAX};
	struct store_stat st;
	bool late = clock_now_ns() >= c->until_ns;
	int rc = 0;

	if (!late) {
		p.memory = try_calloc(1, RANGE_MEMORY, "samples to compare", e);
		if (!p.memory)
			return -ENOMEM;
		if (store_stat_path(c->store, w->path, &st, NULL) < 0 || st.is_dir)
			found.failed = true;
		else if (st.bytes > 0)
			rc = compare_samples(c, kind, index, w, &p, st.bytes, &found, e);
		free(p.memory);
	}
	if (rc < 0)
		return rc;
	pthread_mutex_lock(&c->lock);
	c->out->out_of_time = c->out->out_of_time || late || clock_now_ns() >= c->until_ns;
	c->out->failed_files += found.failed;
	if (found.places && !found.failed) {
		struct file_print *print = &c->print[c->prints++];

		c->out->samples += found.samples;
		c->out->files++;
		/* samples may overlap what was compared before */
		c->out->bytes += found.bytes < st.bytes ? found.bytes : st.bytes;
		c->out->places += found.places;
		c->out->file_bytes += st.bytes;
		c->out->unknown_files += found.unknown;
		*print = (struct file_print){.hash = found.hash,
					     .telling = found.hashed >= TELLING_BYTES,
					     .same = found.wrong == UINT64_MAX,
					     .zero = found.constant && found.value == 0,
					     .constant = found.constant};
		if (!print->same && w->number < c->first_number) {
			c->first_number = w->number;
			snprintf(c->out->first, sizeof(c->out->first),
				 "'%.250s' %s from byte %" PRIu64 " on", w->path,
				 found.zeros ? "holds zeros" : "differs", found.wrong);
		}
	}
	pthread_mutex_unlock(&c->lock);
	if (c->job->done)
		atomic_fetch_add_explicit(c->job->done, 1, memory_order_relaxed);
	return 0;
}

static int by_hash(const void *a, const void *b)
{
	const struct file_print *x = a, *y = b;

	return (x->hash > y->hash) - (x->hash < y->hash);
}

/* What the files that are not as generated are instead. */
static void sort_out(struct content_job *c)
{
	struct survey *out = c->out;

	qsort(c->print, c->prints, sizeof(*c->print), by_hash);
	for (uint64_t i = 0; i < c->prints; i++) {
		const struct file_print *p = &c->print[i];
		bool twin = (i > 0 && p[-1].hash == p->hash) ||
			    (i + 1 < c->prints && p[1].hash == p->hash);

		if (p->same)
			out->files_as_generated++;
		else if (p->zero && p->telling)
			out->zero_files++;
		else if (p->constant && p->telling)
			out->constant_files++;
		else if (twin && p->telling)
			out->copied_files++;
		else
			out->other_files++;
	}
	out->derivable = c->job->generated || out->files_as_generated > 0;
}

/* Evaluation gets a quarter of the samples, if it has files. */
static void share_out(struct content_job *c)
{
	const struct dataset *d = c->job->dataset;
	uint64_t n[DATASET_KINDS] = {c->job->samples, 0};

	if (c->job->eval && d->files[DATASET_EVAL]) {
		n[DATASET_EVAL] = n[DATASET_TRAIN] / 4;
		n[DATASET_TRAIN] -= n[DATASET_EVAL];
	}
	for (int k = 0; k < DATASET_KINDS; k++) {
		c->samples[k] = n[k];
		c->picks[k] = n[k] < d->files[k] ? n[k] : d->files[k];
	}
}

static int compare_content(const struct survey_job *job, struct store *store, struct survey *out,
			   struct err *e)
{
	struct content_job c = {.job = job,
				.out = out,
				.store = store,
				.until_ns = clock_now_ns() +
					    (job->limit_ns ? job->limit_ns : TIME_LIMIT_NS),
				.first_number = UINT64_MAX};
	struct each_job each = {.dataset = job->dataset,
				.store = store,
				.threads = THREADS,
				.stop = job->stop,
				.picks = c.picks,
				.pick = pick_file,
				.file = compare_file,
				.arg = &c};
	int rc;

	share_out(&c);
	c.print =
		try_calloc(c.picks[0] + c.picks[1] + 1, sizeof(*c.print), "samples to compare", e);
	/* not touched before it is needed: a page, for small files */
	c.scratch = c.print ? try_calloc(1, FORMAT_WRITE_SCRATCH, "samples to compare", e) : NULL;
	if (!c.scratch) {
		free(c.print);
		return -ENOMEM;
	}
	pthread_mutex_init(&c.lock, NULL);
	pthread_mutex_init(&c.making, NULL);
	rc = each_file(&each, e);
	pthread_mutex_destroy(&c.making);
	pthread_mutex_destroy(&c.lock);
	if (rc == 0)
		sort_out(&c);
	free(c.scratch);
	free(c.print);
	return rc;
}

/* ---- extents ---- */

struct place_of_file {
	struct extent_place place;
	uint64_t number; /* of the file */
};

struct extents_job {
	const struct survey_job *job;
	struct survey *out;
	pthread_mutex_t lock; /* over `out` and what follows */
	bool none;            /* this file system reports none */
	struct place_of_file *place;
	uint64_t places;
};

static int look_at_file(void *arg, enum dataset_kind kind, uint64_t index, struct each_worker *w,
			struct err *e)
{
	struct extents_job *x = arg;
	struct survey *out = x->out;
	struct file_extents f;
	struct stat st;
	bool none;
	int rc;

	(void)kind;
	(void)index;
	(void)e;
	pthread_mutex_lock(&x->lock);
	none = x->none;
	pthread_mutex_unlock(&x->lock);
	rc = none ? -EOPNOTSUPP : extents_look(w->path, &f, NULL);
	if (rc == -EOPNOTSUPP && (stat(w->path, &st) != 0 || !S_ISREG(st.st_mode)))
		return 0;
	pthread_mutex_lock(&x->lock);
	x->none = x->none || rc == -EOPNOTSUPP;
	if (rc == -EOPNOTSUPP && st.st_blocks > 0) {
		/* not every server counts blocks */
		out->counted++;
		out->sparse_files +=
			(double)st.st_blocks * 512 < (1 - SPARSE_SHARE) * (double)st.st_size;
	}
	if (rc == 0) {
		out->mapped++;
		out->mapped_bytes += f.file_bytes;
		out->hole_bytes += f.hole_bytes;
		out->hole_files += (double)f.hole_bytes > HOLE_SHARE * (double)f.file_bytes;
		out->compressed_files += f.compressed_bytes > 0;
		out->inline_files += f.inline_bytes > 0;
		out->shared_files += f.shared;
		for (uint32_t i = 0; i < f.places; i++)
			x->place[x->places++] =
				(struct place_of_file){.place = f.place[i], .number = w->number};
	}
	pthread_mutex_unlock(&x->lock);
	if (x->job->done)
		atomic_fetch_add_explicit(x->job->done, 1, memory_order_relaxed);
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const struct place_of_file *x = a, *y = b;

	if (x->place.device != y->place.device)
		return x->place.device > y->place.device ? 1 : -1;
	return (x->place.at > y->place.at) - (x->place.at < y->place.at);
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Files with a place that reaches into one of another file. */
static int count_twins(struct extents_job *x, struct err *e)
{
	uint64_t *twin = try_calloc(2 * x->places + 1, sizeof(*twin), "extents", e), n = 0;
	uint64_t end = 0, holder = 0;

	if (!twin)
		return -ENOMEM;
	qsort(x->place, x->places, sizeof(*x->place), by_place);
	for (uint64_t i = 0; i < x->places; i++) {
		const struct place_of_file *p = &x->place[i];

		if (i > 0 && p[-1].place.device == p->place.device && p->place.at < end &&
		    p->number != holder) {
			twin[n++] = holder;
			twin[n++] = p->number;
		}
		if (i == 0 || p[-1].place.device != p->place.device ||
		    p->place.at + p->place.bytes > end) {
			end = p->place.at + p->place.bytes;
			holder = p->number;
		}
	}
	qsort(twin, n, sizeof(*twin), by_number);
	for (uint64_t i = 0; i < n; i++)
		x->out->twin_files += i == 0 || twin[i] != twin[i - 1];
	free(twin);
	return 0;
}

static int look_at_extents(const struct survey_job *job, struct store *store, struct survey *out,
			   struct err *e)
{
	uint64_t eval = job->eval ? SURVEY_EXTENTS_MAX / 4 : 0;
	const uint64_t picks[DATASET_KINDS] = {SURVEY_EXTENTS_MAX - eval, eval};
	struct extents_job x = {.job = job, .out = out};
	struct each_job each = {.dataset = job->dataset,
				.store = store,
				.threads = THREADS,
				.stop = job->stop,
				.picks = picks,
				.file = look_at_file,
				.arg = &x};
	int rc;

	x.place = try_calloc((uint64_t)SURVEY_EXTENTS_MAX * EXTENTS_KEPT, sizeof(*x.place),
			     "extents", e);
	if (!x.place)
		return -ENOMEM;
	pthread_mutex_init(&x.lock, NULL);
	rc = each_file(&each, e);
	pthread_mutex_destroy(&x.lock);
	if (rc == 0)
		rc = count_twins(&x, e);
	free(x.place);
	return rc;
}

uint64_t survey_memory_bytes(const struct dataset *d, uint64_t samples)
{
	uint64_t file = d->max_file_bytes, made = FORMAT_WRITE_SCRATCH, range = RANGE_MEMORY;

	if (samples == 0 || d->format->is.flags & FORMAT_NO_IO)
		return 0;
	/* of a small file no more is touched than it holds */
	made = file < made ? file : made;
	range = file < range / 2 ? 2 * file : range;
	return made + THREADS * (range + PIECE_BYTES) +
	       SURVEY_EXTENTS_MAX * EXTENTS_KEPT * sizeof(struct place_of_file);
}

int dataset_survey(const struct survey_job *job, struct survey *out, struct err *e)
{
	struct store *base = job->store;
	struct aside_store aside;
	uint64_t named = out->named, distinct = out->distinct;
	bool files;
	int rc = 0;

	*out = (struct survey){.named = named, .distinct = distinct};
	while (base->ops->is.flags & STORE_IS_SHIM)
		base = base->lower;
	if (job->samples == 0 || base->ops->is.flags & STORE_KEEPS_NOTHING ||
	    job->dataset->format->is.flags & FORMAT_NO_IO)
		return 0;
	files = base->ops->is.flags & STORE_HAS_FILES;
	if (files) {
		aside_init(&aside);
		base = &aside.base;
		rc = look_at_extents(job, base, out, e);
	}
	return rc < 0 ? rc : compare_content(job, base, out, e);
}

void survey_add(struct survey *to, const struct survey *from)
{
	to->mapped += from->mapped;
	to->mapped_bytes += from->mapped_bytes;
	to->hole_files += from->hole_files;
	to->hole_bytes += from->hole_bytes;
	to->compressed_files += from->compressed_files;
	to->inline_files += from->inline_files;
	to->twin_files += from->twin_files;
	to->shared_files += from->shared_files;
	to->counted += from->counted;
	to->sparse_files += from->sparse_files;
	to->samples += from->samples;
	to->files += from->files;
	to->bytes += from->bytes;
	to->places += from->places;
	to->file_bytes += from->file_bytes;
	to->unknown_files += from->unknown_files;
	to->files_as_generated += from->files_as_generated;
	to->zero_files += from->zero_files;
	to->constant_files += from->constant_files;
	to->copied_files += from->copied_files;
	to->other_files += from->other_files;
	to->failed_files += from->failed_files;
	to->derivable = to->derivable || from->derivable;
	to->out_of_time = to->out_of_time || from->out_of_time;
	if (!to->first[0])
		memcpy(to->first, from->first, sizeof(to->first));
}
