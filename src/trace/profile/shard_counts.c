/* How many samples files hold, by what they say of themselves where they are still as the job read
 * them: the members of a tar archive, the footer of a Parquet file. A stream does not show it by
 * its requests. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/file.h"
#include "base/transfer.h"
#include "format/parquet/parquet_footer.h"
#include "format/tar/tar.h"
#include "trace/profile/profile_parts.h"
#include "workload/backend.h"

#define HEADERS_MAX 400000     /* of all archives: more would take long */
#define FOOTER_MAX (64u << 20) /* of a Parquet file */
#define PARQUET_TAIL 8
#define HELD_MAX (UINT64_C(1) << 24) /* of a file: of larger ones it is not known */

struct looked {
	int fd;
	uint64_t bytes;
	uint64_t *headers; /* that may still be read */
};

/* Takes the data of an extended header; false: it is none, or the archive is damaged. */
static bool take_extra(const struct looked *f, uint64_t at, const struct tar_header *h,
		       struct tar_member *m)
{
	unsigned char extra[TAR_EXTRA_MAX];

	if (h->bytes > sizeof(extra) ||
	    pread_fully(f->fd, extra, (size_t)h->bytes, (off_t)at) != (ssize_t)h->bytes)
		return false;
	return tar_member_extra(m, h->kind, extra, (size_t)h->bytes, NULL) == 0;
}

/* Members of one key in succession are a sample, as WebDataset takes them. -1: not known. */
static int64_t samples_of_tar(const struct looked *f)
{
	AUTO_FREE char *last = xcalloc(TAR_NAME_MAX, 1);
	AUTO_FREE struct tar_member *m = xcalloc(1, sizeof(*m));
	int64_t samples = 0;
	uint64_t at = 0;

	tar_member_begin(m);
	while (at + TAR_BLOCK <= f->bytes) {
		unsigned char block[TAR_BLOCK];
		struct tar_header h;
		const char *extension;
		size_t key;

		if ((*f->headers)-- <= 1)
			return -1;
		if (pread_fully(f->fd, block, sizeof(block), (off_t)at) != sizeof(block) ||
		    tar_get_header(block, &h, NULL) < 0)
			return -1;
		if (h.kind == TAR_END)
			break;
		at += TAR_BLOCK;
		if (h.kind == TAR_PAX || h.kind == TAR_LONG_NAME) {
			if (!take_extra(f, at, &h, m))
				return -1;
		} else if (h.kind == TAR_FILE || h.kind == TAR_OTHER) {
			if (tar_member_end(m, &h, NULL) < 0)
				return -1;
			if (m->is_file && !tar_is_meta(m->name) &&
			    tar_sample_key(m->name, &key, &extension) &&
			    (samples == 0 || strlen(last) != key ||
			     memcmp(last, m->name, key) != 0)) {
				samples++;
				memcpy(last, m->name, key);
				last[key] = '\0';
			}
			h.bytes = m->is_file ? m->bytes : h.bytes;
			tar_member_begin(m);
		}
		if (h.bytes > f->bytes)
			return -1;
		at += tar_padded(h.bytes);
	}
	return samples;
}

static int64_t rows_of_parquet(const struct looked *f)
{
	unsigned char tail[PARQUET_TAIL];
	struct parquet_visitor v = {0};
	struct parquet_totals totals = {0};
	AUTO_FREE unsigned char *footer = NULL;
	uint32_t n;

	if (f->bytes < PARQUET_TAIL ||
	    pread_fully(f->fd, tail, sizeof(tail), (off_t)(f->bytes - sizeof(tail))) !=
		    sizeof(tail) ||
	    parquet_tail_parse(tail, f->bytes, &n, NULL) < 0 || n > FOOTER_MAX)
		return -1;
	footer = xcalloc(n + (size_t)1, 1);
	if (pread_fully(f->fd, footer, n, (off_t)(f->bytes - sizeof(tail) - n)) != (ssize_t)n ||
	    parquet_metadata_parse(footer, n, f->bytes - sizeof(tail) - n, &v, &totals, NULL) < 0 ||
	    totals.rows > HELD_MAX)
		return -1;
	return (int64_t)totals.rows;
}

/* -1: not known. */
static int64_t samples_of(const struct job_file *file, uint64_t *headers)
{
	struct looked f = {.headers = headers};
	unsigned char head[TAR_BLOCK];
	int64_t n = -1;
	struct stat st;
	struct err e = {0};

	if (file->name[0] != '/' || file->kind != JOB_FILE_REGULAR || *headers == 0)
		return -1;
	f.fd = file_open(file->name, NULL, &e);
	if (f.fd < 0)
		return -1;
	if (fstat(f.fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
	    (file->size < 0 || file->size == st.st_size) &&
	    pread_fully(f.fd, head, sizeof(head), 0) >= 4) {
		f.bytes = (uint64_t)st.st_size;
		if (memcmp(head, "PAR1", 4) == 0)
			n = rows_of_parquet(&f);
		else if (st.st_size >= TAR_BLOCK && memcmp(head + 257, "ustar", 5) == 0)
			n = samples_of_tar(&f);
	}
	close(f.fd);
	return n;
}

void profile_shard_counts(struct profile *a)
{
	uint64_t headers = HEADERS_MAX;

	a->held = xcalloc(a->job->files + 1, sizeof(*a->held));
	for (size_t i = 0; i < a->job->files; i++)
		a->held[i] = profile_is_data(a, (uint32_t)i)
				     ? samples_of(&a->job->file[i], &headers)
				     : -1;
}

/* ---- samples and batches ---- */

/* All files of training, or of evaluation, that were visited; false: one of them is not known. */
static bool sum_held(const struct profile *a, bool evaluation, double *sum, size_t *files)
{
	uint32_t last = JOB_NONE;

	*sum = 0;
	*files = 0;
	for (size_t i = 0; i < a->samples; i++) {
		const struct job_sample *s = &a->sample[i];

		if (s->evaluation != evaluation || s->file == last)
			continue;
		last = s->file;
		if (a->held[s->file] < 0)
			return false;
		*sum += (double)a->held[s->file];
		++*files;
	}
	return *files > 0;
}

bool profile_held_samples(struct profile *a)
{
	AUTO_FREE uint32_t *count = NULL;
	double sum, bytes = 0;
	uint64_t agree = 0, most = 0;
	int64_t mode = 0;
	uint32_t last = JOB_NONE;
	size_t files;

	if (!a->held || !sum_held(a, false, &sum, &files) || sum < 1)
		return false;
	for (size_t i = 0; i < a->samples; i++)
		if (!a->sample[i].evaluation)
			RAISE(most, (uint64_t)a->held[a->sample[i].file]);
	count = xcalloc(most + 1, sizeof(*count));
	for (size_t i = 0; i < a->samples; i++) {
		const struct job_sample *s = &a->sample[i];

		if (s->evaluation || s->file == last)
			continue;
		last = s->file;
		bytes += profile_file_bytes(&a->job->file[s->file]);
		count[a->held[s->file]]++;
		if (count[a->held[s->file]] > agree) {
			agree = count[a->held[s->file]];
			mode = a->held[s->file];
		}
	}
	profile_inferred(a, PROFILE_SAMPLES, sum, FACT(JOB_COUNTED_IN_FILES), 0, 0);
	if (agree == files)
		profile_inferred(a, PROFILE_SAMPLES_PER_FILE, (double)mode,
				 FACT(JOB_COUNTED_IN_FILES), agree, files);
	else
		profile_inferred(a, PROFILE_SAMPLES_PER_FILE, sum / (double)files,
				 FACT(JOB_COUNTED_IN_FILES), 0, 0)
			->text =
			profile_text(a, "in the mean; most %llu", (unsigned long long)most);
	profile_inferred(a, PROFILE_SAMPLE_BYTES, bytes / sum, FACT(JOB_COUNTED_IN_FILES), 0, 0)
		->text = "in the mean, with what the format adds";
	return true;
}

/* What a worker delivered in a pass: the samples of the files that it visited, in so many batches.
 */
struct delivered {
	double samples;
	uint64_t batches;
};

/* Sizes of batches that give exactly so many of so many samples: above `*low`, up to `*high`, with
 * the last one short; or, with `dropped`, without it. */
static void narrow(const struct delivered *d, bool dropped, double *low, double *high)
{
	double n = d->samples, s = (double)d->batches;

	if (dropped) {
		RAISE(*low, (double)(uint64_t)(n / (s + 1)) + 1);
		LOWER(*high, (double)(uint64_t)(n / s));
	} else {
		double least = (double)(uint64_t)((n + s - 1) / s);
		/* less than n / (s - 1) */
		double less = s > 1 ? (n / (s - 1)) : n + 1;
		double greatest = (double)(uint64_t)less;

		if (greatest >= less)
			greatest--;
		RAISE(*low, least);
		LOWER(*high, s > 1 ? greatest : (double)UINT32_MAX);
	}
}

static struct delivered *find_delivered(const struct profile *a, bool evaluation, size_t *n)
{
	uint32_t epochs = 1, workers = 1;
	AUTO_FREE uint32_t *seen = NULL;
	AUTO_FREE size_t *by = NULL; /* of each file: who visited it in that pass */
	struct delivered *d;

	for (size_t i = 0; i < a->visits; i++) {
		RAISE(epochs, a->visit[i].epoch + 1);
		RAISE(workers, a->reader[a->visit[i].reader].number + 1);
	}
	*n = 0;
	if ((double)epochs * workers * (double)a->trainers > 1e7)
		return NULL;
	*n = (size_t)epochs * workers * a->trainers;
	d = xcalloc(*n + 1, sizeof(*d));
	seen = xcalloc(a->job->files + 1, sizeof(*seen));
	by = xcalloc(a->job->files + 1, sizeof(*by));
	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[i];
		const struct job_reader *r = &a->reader[v->reader];
		size_t at = ((size_t)v->epoch * a->trainers + r->rank) * workers + r->number;

		uint32_t file = a->sample[v->sample].file;

		if (is_eval(a, v) != evaluation || !r->worker || r->left_out ||
		    r->rank >= a->trainers || a->held[file] < 0)
			continue;
		if (seen[file] == v->epoch + 1) {
			/* workers that share a file: how much each of them took is not seen */
			if (a->container && by[file] != at) {
				*n = 0;
				break;
			}
			continue; /* or another thread */
		}
		seen[file] = v->epoch + 1;
		by[file] = at;
		d[at].samples += (double)a->held[file];
	}
	for (size_t i = 0; *n > 0 && i < a->steps; i++) {
		const struct step *s = &a->step[i];

		if (s->evaluation == evaluation && s->epoch < epochs && s->rank < a->trainers)
			d[((size_t)s->epoch * a->trainers + s->rank) * workers + s->at % workers]
				.batches++;
	}
	return d;
}

void profile_held_batches(struct profile *a)
{
	for (int evaluation = 0; evaluation < 2; evaluation++) {
		enum profile_key f = evaluation ? PROFILE_EVAL_BATCH : PROFILE_BATCH;
		double low[2] = {1, 1}, high[2] = {UINT32_MAX, UINT32_MAX}, sum;
		uint64_t seen = 0;
		size_t n = 0, files;
		AUTO_FREE struct delivered *d = NULL;

		if (!a->held || a->steps == 0 || !sum_held(a, evaluation, &sum, &files))
			continue;
		d = find_delivered(a, evaluation, &n);
		for (size_t i = 0; i < n; i++) {
			if (!(d[i].samples > 0) || d[i].batches == 0)
				continue;
			seen++;
			for (int dropped = 0; dropped < 2; dropped++)
				narrow(&d[i], dropped, &low[dropped], &high[dropped]);
		}
		for (int dropped = 0; dropped < 2 && seen > 0; dropped++) {
			/* one size; another one with the last batch left out, too: then it is
			 * assumed that none is, as loaders do */
			bool other =
				low[!dropped] <= high[!dropped] &&
				!(low[!dropped] <= low[dropped] && high[!dropped] >= low[dropped]);

			if (low[dropped] != high[dropped] || (dropped && other))
				continue;
			profile_inferred(a, f, low[dropped], FACT(JOB_BATCHES_OF_FILES), seen, seen)
				->how = other ? HOW_ASSUMED : HOW_INFERRED;
			break;
		}
	}
}
