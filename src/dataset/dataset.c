/* Layout of a dataset: from the keys of a workload to the name, shape and size of every file. */
#include "dataset/dataset.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/saturate.h"
#include "base/str.h"
#include "dataset/content.h"
#include "dataset/each.h"
#include "dataset/listed.h"
#include "format/format.h"
#include "workload/recorded_file.h"

/* DLIO draws the dimensions of all files from this seed, whatever the workload's. */
#define DLIO_DIMS_SEED 10
/* Every one is made and listed, whether it holds files or not. */
#define SUBFOLDERS_MAX 1000000
/* Rows and columns that are added to an image so that its file has a recorded size, and the files
 * of a dataset for which that is worth its time: about a tenth of a millisecond each. */
#define EXACT_SHAPES 48u
#define EXACT_FILES 200000u

const char *const dataset_kind_folder[DATASET_KINDS] = {"train", "valid"};

static int find_format(struct dataset *d, const struct workload *w, struct err *e)
{
	const char *names[64];
	const char *near;
	struct buf list = {0};
	size_t n = 0;

	d->format = format_find(w->dataset.format);
	if (d->format)
		return 0;
	for (; n < 64 && format_table[n]; n++) {
		names[n] = format_table[n]->is.name;
		buf_printf(&list, "%s%s", n ? ", " : "", names[n]);
	}
	near = str_nearest(w->dataset.format, names, n);
	err_set(e, ERR_ABSENT,
		"dataset.format '%.64s' is not supported%s%s%s; supported formats: "
		"%s",
		w->dataset.format, near ? "; did you mean " : "", near ? near : "", near ? "?" : "",
		list.data ? list.data : "none");
	buf_release(&list);
	return ERR_ABSENT;
}

static int check_count(const char *key, int64_t n, int64_t min, struct err *e)
{
	if (n >= min)
		return 0;
	return err_set(e, ERR_USAGE, "%s is %" PRId64 "; at least %" PRId64 " is needed", key, n,
		       min);
}

static int check_subfolders(const char *key, int64_t n, struct err *e)
{
	if (n <= SUBFOLDERS_MAX)
		return check_count(key, n, 0, e);
	return err_set(e, ERR_USAGE, "%s is %" PRId64 "; at most %d are allowed", key, n,
		       SUBFOLDERS_MAX);
}

static int set_counts(struct dataset *d, const struct workload *w, struct err *e)
{
	int rc = check_count("dataset.num_files_train", w->dataset.num_files_train, 0, e) ?:
		 check_count("dataset.num_files_eval", w->dataset.num_files_eval, 0, e) ?:
		 check_count("dataset.num_samples_per_file", w->dataset.num_samples_per_file, 1,
			     e) ?:
		 check_subfolders("dataset.num_subfolders_train", w->dataset.num_subfolders_train,
				  e) ?:
		 check_subfolders("dataset.num_subfolders_eval", w->dataset.num_subfolders_eval, e);

	if (rc < 0)
		return rc;
	d->files[DATASET_TRAIN] = (uint64_t)w->dataset.num_files_train;
	d->files[DATASET_EVAL] = (uint64_t)w->dataset.num_files_eval;
	d->samples_per_file = (uint64_t)w->dataset.num_samples_per_file;
	/* One subfolder is none: the files lie in the kind's own folder. */
	if (w->dataset.num_subfolders_train > 1)
		d->subfolders[DATASET_TRAIN] = (uint64_t)w->dataset.num_subfolders_train;
	if (w->dataset.num_subfolders_eval > 1)
		d->subfolders[DATASET_EVAL] = (uint64_t)w->dataset.num_subfolders_eval;
	for (int k = 0; k < DATASET_KINDS; k++) {
		uint64_t samples;

		d->name_total[k] = d->files[k];
		if (__builtin_mul_overflow(d->files[k], d->samples_per_file, &samples) ||
		    samples > INT64_MAX)
			return err_set(
				e, ERR_USAGE,
				"%" PRIu64 " files of %" PRIu64
				" samples exceed the number of samples that 64 bits can count",
				d->files[k], d->samples_per_file);
	}
	return 0;
}

static int set_fixed_dims(struct dataset *d, const struct i64_list *dims, struct err *e)
{
	if (dims->n > FORMAT_DIMS_MAX)
		return err_set(e, ERR_USAGE,
			       "dataset.record_dims has %zu dimensions; at most %d are allowed",
			       dims->n, FORMAT_DIMS_MAX);
	d->ndims = (uint32_t)dims->n;
	for (size_t i = 0; i < dims->n; i++) {
		if (dims->v[i] < 1)
			return err_set(e, ERR_USAGE,
				       "dataset.record_dims has the dimension %" PRId64
				       "; each must be at least 1",
				       dims->v[i]);
		d->dims[i] = (uint64_t)dims->v[i];
	}
	return 0;
}

/* d->form is set. */
static int set_dims_for_file(struct dataset *d, const struct workload *w, struct err *e)
{
	double want = w->dataset.file_bytes, length = w->dataset.record_length_bytes;
	double spread = w->dataset.record_length_bytes_stdev / length, side;
	int rc = file_size_shape(d->format, &d->form, want, d->dims, e);

	if (rc < 0)
		return rc;
	if (spread > 0) {
		side = sqrt((double)d->dims[0] * (double)d->dims[1]);
		/* room for headers, which do not grow with the image */
		if (d->format->is.flags & FORMAT_IMAGE)
			side = 1.03 * side + 2;
		d->dims[0] = d->dims[1] = (uint64_t)llround(side);
		/* fractions of an element are cut off */
		d->drawn_mean = side + 0.5;
		d->drawn_stdev = spread / 2 * side;
	}
	memcpy(d->form.dims, d->dims, sizeof(d->form.dims));
	return 0;
}

/* Noise in an image for each of its bytes, where its file should have a size. */
static int set_density(struct dataset *d, const struct workload *w, struct err *e)
{
	if (!(w->dataset.file_bytes > 0) || !(d->format->is.flags & FORMAT_IMAGE))
		return 0;
	d->file_bytes_per_pixel = w->dataset.file_bytes /
				  ((double)d->dims[0] * (double)(d->ndims > 1 ? d->dims[1] : 1));
	d->form.want_bytes = (uint64_t)llround(w->dataset.file_bytes);
	return format_check(d->format, &d->form, e);
}

/* Sizes that were recorded of a kind of files; NULL: none are wanted. */
static const uint64_t *recorded_bytes(const struct dataset *d, int kind)
{
	const struct workload *w = d->workload;

	return w->dataset.sizes == SIZES_RECORDED && w->recorded ? w->recorded->part[kind].bytes
								 : NULL;
}

static uint64_t off_by(const struct dataset *d, const struct file_spec *f, uint64_t want)
{
	struct file_spec made = *f;
	uint64_t bytes;

	if (d->format->is.flags & (FORMAT_IMAGE | FORMAT_FILLED))
		made.want_bytes = want;
	bytes = d->format->file_bytes(&made);
	/* an image is filled up to what it should have */
	if (bytes == UINT64_MAX && d->format->is.flags & FORMAT_IMAGE &&
	    d->format->file_bytes_estimate)
		bytes = d->format->file_bytes_estimate(&made);
	/* within 2 %, of what depends on content */
	if (bytes == UINT64_MAX)
		return want / 50 + 64;
	return bytes > want ? bytes - want : want - bytes;
}

/* Shapes somewhat larger than `f`, of which one has a file of exactly this size: how much of an
 * image is noise is no free number, but with the shape it is. Where the size depends on content
 * there is none. */
static void try_shapes(const struct dataset *d, struct file_spec *f, uint64_t want)
{
	struct file_spec tried = *f;

	for (uint64_t i = 0; i < EXACT_SHAPES * EXACT_SHAPES && off_by(d, f, want) > 0; i++) {
		tried.dims[0] = f->dims[0] + i % EXACT_SHAPES;
		tried.dims[1] = f->dims[1] + i / EXACT_SHAPES;
		if (off_by(d, &tried, want) > 0)
			continue;
		tried.want_bytes = want;
		if (format_check(d->format, &tried, NULL) == 0)
			memcpy(f->dims, tried.dims, sizeof(f->dims));
		tried.want_bytes = 0;
	}
}

/* One row, with which plain bytes come out exactly. Where a row is too long, or the size depends on
 * more than bytes, near a square. */
static int dims_of_size(struct dataset *d, struct file_spec *f, uint64_t want, struct err *e)
{
	uint64_t low = 1, high = UINT32_MAX;

	f->ndims = 2;
	f->dims[0] = f->dims[1] = 1;
	f->want_bytes = 0; /* an image of noise */
	if (d->format->is.flags & FORMAT_IMAGE || d->format->file_bytes(f) == UINT64_MAX) {
		int rc = file_size_shape(d->format, f, (double)want, f->dims, e);

		if (rc == 0 && d->format->file_bytes(f) != UINT64_MAX &&
		    d->files[DATASET_TRAIN] + d->files[DATASET_EVAL] <= EXACT_FILES)
			try_shapes(d, f, want);
		return rc;
	}
	while (low < high) {
		f->dims[1] = low + (high - low + 1) / 2;
		if (d->format->file_bytes(f) <= want)
			low = f->dims[1];
		else
			high = f->dims[1] - 1;
	}
	f->dims[1] = low;
	if (low == UINT32_MAX)
		return file_size_shape(d->format, f, (double)want, f->dims, e);
	if (off_by(d, f, want) > 0) {
		struct file_spec more = *f;

		more.dims[1]++;
		if (off_by(d, &more, want) < off_by(d, f, want))
			*f = more;
	}
	return 0;
}

/* The dimensions of every file into d->drawn, from its recorded size. */
static int take_sizes(struct dataset *d, const uint64_t total[DATASET_KINDS], uint32_t **out,
		      struct err *e)
{
	uint64_t files = total[0] + total[1], i = 0;
	struct file_spec f = d->form;
	int rc = 0;

	d->sizes_missed = d->sizes_missed_most = 0;
	for (int k = 0; k < DATASET_KINDS; k++)
		if (total[k] &&
		    (!recorded_bytes(d, k) || total[k] != d->workload->recorded->part[k].files))
			return err_set(e, ERR_USAGE,
				       "the dataset has %" PRIu64
				       " files of one kind, but dataset.recorded_file the sizes of "
				       "%" PRIu64,
				       total[k], d->workload->recorded->part[k].files);
	*out = try_calloc(files ? 2 * files : 1, sizeof(**out), "the dimensions of every file", e);
	if (!*out)
		return -ENOMEM;
	for (int k = 0; k < DATASET_KINDS && rc == 0; k++) {
		uint64_t last = UINT64_MAX, off = 0;

		for (uint64_t n = 0; n < total[k] && rc == 0; n++, i++) {
			uint64_t want = recorded_bytes(d, k)[n];

			if (want != last && !d->workload->dataset.record_dims.n) {
				rc = dims_of_size(d, &f, want, e);
				off = off_by(d, &f, want);
			}
			last = want;
			d->sizes_missed += off > 0;
			if (off > d->sizes_missed_most)
				d->sizes_missed_most = off;
			(*out)[2 * i] = (uint32_t)f.dims[0];
			(*out)[2 * i + 1] = (uint32_t)f.dims[1];
		}
	}
	if (rc < 0) {
		free(*out);
		*out = NULL;
	}
	return rc;
}

/* The shape of files of the mean size, which stands for all where none is drawn. */
static int set_recorded_dims(struct dataset *d, const struct workload *w, struct err *e)
{
	int k = d->files[DATASET_TRAIN] ? DATASET_TRAIN : DATASET_EVAL, rc;
	const uint64_t *bytes = recorded_bytes(d, k);
	double sum = 0;

	if (!bytes)
		return err_set(e, ERR_USAGE,
			       "dataset.sizes is recorded, but the file of dataset.recorded_file "
			       "is not at hand here");
	if (w->dataset.record_dims.n || d->files[k] == 0)
		return 0;
	for (uint64_t i = 0; i < w->recorded->part[k].files; i++)
		sum += (double)bytes[i];
	d->form.ndims = d->ndims = 2;
	rc = dims_of_size(d, &d->form, (uint64_t)(sum / (double)w->recorded->part[k].files), e);
	memcpy(d->dims, d->form.dims, sizeof(d->dims));
	if (d->format->is.flags & (FORMAT_IMAGE | FORMAT_FILLED))
		d->form.want_bytes = (uint64_t)(sum / (double)w->recorded->part[k].files);
	return rc;
}

static int set_square_dims(struct dataset *d, const struct workload *w, struct err *e)
{
	double per_elem = w->compat.dlio ? 1.0 : d->elem->bytes;
	double length = w->dataset.record_length_bytes / per_elem;
	double stdev = w->dataset.record_length_bytes_stdev / per_elem;

	if (!(length >= 1) || !(stdev >= 0) || !isfinite(length) || !isfinite(stdev))
		return err_set(e, ERR_USAGE,
			       "dataset.record_length_bytes is %g with a standard deviation of %g: "
			       "a sample needs at least one element of %u bytes",
			       w->dataset.record_length_bytes, w->dataset.record_length_bytes_stdev,
			       d->elem->bytes);
	if (sqrt(length) >= UINT32_MAX)
		return err_set(e, ERR_USAGE,
			       "dataset.record_length_bytes %g requires a square with sides of "
			       "more than 2^32 elements",
			       w->dataset.record_length_bytes);
	d->ndims = 2;
	d->dims[0] = d->dims[1] = (uint64_t)sqrt(length);
	d->drawn_stdev = stdev / 2.0 / sqrt(length);
	if (d->drawn_stdev > 0)
		d->drawn_mean = (double)d->dims[0];
	return 0;
}

/* Two normals a file over all files of both kinds, as one stream: file i's shape depends only on
 * how many files come before it. */
static int draw_dims(const struct dataset *d, const uint64_t total[DATASET_KINDS], uint32_t **out,
		     struct err *e)
{
	uint64_t files, count;
	struct rng_np rng;
	uint32_t *dims;

	if (__builtin_add_overflow(total[0], total[1], &files) ||
	    __builtin_mul_overflow(files, (uint64_t)2, &count))
		return err_set(e, ERR_USAGE, "the number of files exceeds what 64 bits can count");
	dims = try_calloc(count ? count : 1, sizeof(*dims), "the drawn dimensions of every file",
			  e);
	if (!dims)
		return -ENOMEM;
	rng_np_seed(&rng, DLIO_DIMS_SEED);
	for (uint64_t i = 0; i < count; i++) {
		double v = trunc(rng_np_normal(&rng, d->drawn_mean, d->drawn_stdev));

		if (v > UINT32_MAX) {
			free(dims);
			return err_set(
				e, ERR_USAGE,
				"dataset.record_length_bytes_stdev is too large: file %" PRIu64
				" would have a side of %.0f elements; at most 2^32 - 1 are allowed",
				i / 2, v);
		}
		dims[i] = v < 1 ? 1 : (uint32_t)v;
	}
	*out = dims;
	return 0;
}

static const char *compression_name(const struct workload *w)
{
	const struct opt *row = opt_find(workload_rows, workload_row_count, "dataset.compression");
	int i = 0;

	/* DLIO stores them uncompressed whatever the setting */
	if (w->compat.dlio && workload_format(w)->flags & FORMAT_DLIO_PLAIN)
		return "none";
	while (row && row->choices[i] && i < w->dataset.compression)
		i++;
	return row && row->choices[i] ? row->choices[i] : "none";
}

/* DLIO names compressed text like plain text, and cannot read it then. */
static const char *extension_of(const struct dataset *d, const struct workload *w)
{
	if (!d->format)
		return "";
	if (!d->format->compressed_extension || w->compat.dlio)
		return d->format->is.extension;
	return d->format->compressed_extension(d->compression);
}

static uint64_t bits_of(double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return bits;
}

/* The counts stay out, so that a part of a larger dataset is known as one of its family. The shape
 * goes in as what it came to, since several record lengths make the same one. */
static uint64_t hash_of(const struct dataset *d, const struct workload *w)
{
	struct workload rest = *w;
	uint64_t h;

	rest.dataset.num_files_train = 0;
	rest.dataset.num_files_eval = 0;
	rest.dataset.record_dims.n = 0;
	rest.dataset.record_length_bytes = 0;
	rest.dataset.record_length_bytes_stdev = 0;
	h = rng_key(workload_dataset_hash(&rest), bits_of(d->drawn_mean), bits_of(d->drawn_stdev));
	for (int k = 0; k < DATASET_KINDS; k++)
		for (uint64_t i = 0; recorded_bytes(d, k) && i < w->recorded->part[k].files; i++)
			h = rng_key(h, (uint64_t)k, recorded_bytes(d, k)[i]);
	for (uint32_t i = 0; i < d->ndims; i++)
		h = rng_key(h, d->ndims, d->dims[i]);
	return h;
}

/* The spec of a file must be one that the format can hold. */
static int check_spec(const struct dataset *d, const struct file_spec *f, uint64_t *file_bytes,
		      struct err *e)
{
	uint64_t sample = d->elem->bytes, payload;
	struct file_spec shape;
	int rc;

	for (uint32_t i = 0; i < f->ndims; i++)
		if (__builtin_mul_overflow(sample, f->dims[i], &sample))
			sample = UINT64_MAX;
	if (__builtin_mul_overflow(sample, f->samples, &payload) || payload > INT64_MAX)
		return err_set(e, ERR_USAGE,
			       "%" PRIu64
			       " samples of these dimensions do not fit in one file (at most 2^63 "
			       "- 1 bytes): reduce dataset.num_samples_per_file, record_dims or "
			       "record_length_bytes",
			       f->samples);
	if (d->drawn && f->want_bytes && d->workload->dataset.sizes != SIZES_RECORDED) {
		/* of drawn ones the mean can have its size, which set_density checked */
		shape = *f;
		shape.want_bytes = 0;
		rc = format_check(d->format, &shape, e);
	} else {
		rc = format_check(d->format, f, e);
	}
	if (rc < 0)
		return rc;
	*file_bytes = d->format->file_bytes(f);
	if (*file_bytes != UINT64_MAX && *file_bytes > INT64_MAX)
		return err_set(e, ERR_USAGE,
			       "a %s file of these dimensions would exceed the maximum file size "
			       "(2^63 - 1 bytes)",
			       d->format->is.name);
	return 0;
}

uint64_t sidecar_bytes(const struct dataset *d, const struct file_spec *f)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < d->format->sidecars; i++)
		if (__builtin_add_overflow(sum, d->format->sidecar_bytes(f, i), &sum))
			return UINT64_MAX;
	return sum;
}

/* Size on the store of the file with its companions, or an estimate of it. */
static uint64_t likely_bytes(const struct dataset *d, const struct file_spec *f,
			     uint64_t file_bytes)
{
	if (file_bytes == UINT64_MAX)
		file_bytes = d->format->file_bytes_estimate
				     ? d->format->file_bytes_estimate(f)
				     : file_spec_sample_bytes(f) * f->samples;
	return __builtin_add_overflow(file_bytes, sidecar_bytes(d, f), &file_bytes) ? UINT64_MAX
										    : file_bytes;
}

/* Takes `n` equal files of `bytes` from `index` on into the totals. */
static int add_files(struct dataset *d, enum dataset_kind kind, uint64_t index, uint64_t n,
		     struct err *e)
{
	uint64_t bytes = 0, all, sample;
	struct file_spec f;
	int rc;

	dataset_file_spec(d, kind, index, &f);
	rc = check_spec(d, &f, &bytes, e);
	if (rc < 0)
		return rc;
	sample = file_spec_sample_bytes(&f);
	if (sample > d->max_sample_bytes)
		d->max_sample_bytes = sample;
	if (bytes > d->max_file_bytes)
		d->max_file_bytes = bytes;
	if (__builtin_mul_overflow(likely_bytes(d, &f, bytes), n, &all) ||
	    __builtin_add_overflow(d->likely_bytes, all, &d->likely_bytes) ||
	    d->likely_bytes > INT64_MAX)
		return err_set(e, ERR_USAGE,
			       "%" PRIu64 " + %" PRIu64 " files of up to %" PRIu64
			       " bytes make a dataset of more than 2^63 bytes",
			       d->files[DATASET_TRAIN], d->files[DATASET_EVAL], d->max_file_bytes);
	d->kind_bytes[kind] += all;
	if (bytes == UINT64_MAX || d->total_bytes == UINT64_MAX)
		d->total_bytes = UINT64_MAX;
	else
		d->total_bytes = d->likely_bytes;
	return 0;
}

/* Files of one shape differ in size at most by the digits of their number, which the synthetic
 * format writes into them: one file stands for all with as many digits. */
static int measure_fixed(struct dataset *d, enum dataset_kind kind, struct err *e)
{
	uint64_t begin = dataset_file_index(d, kind, 0), at = 0, ten = 1;
	int rc = 0;

	while (rc == 0 && at < d->files[kind]) {
		uint64_t end = d->files[kind];

		while (ten <= begin + at && ten <= UINT64_MAX / 10)
			ten *= 10;
		if (ten > begin + at && ten - begin < end)
			end = ten - begin;
		rc = add_files(d, kind, at, end - at, e);
		at = end;
	}
	return rc;
}

static int measure(struct dataset *d, struct err *e)
{
	int rc = 0;

	d->total_bytes = d->likely_bytes = d->max_sample_bytes = d->max_file_bytes = 0;
	memset(d->kind_bytes, 0, sizeof(d->kind_bytes));
	for (int k = 0; k < DATASET_KINDS && rc == 0; k++) {
		if (!d->drawn)
			rc = measure_fixed(d, (enum dataset_kind)k, e);
		for (uint64_t i = 0; d->drawn && i < d->files[k] && rc == 0; i++)
			rc = add_files(d, (enum dataset_kind)k, i, 1, e);
	}
	return rc;
}

static int check_names(const struct dataset *d, struct err *e)
{
	/* Longest: the last file, and room for ".", ".part" around its name while it is written. */
	char path[DATASET_PATH_MAX - 8];
	int rc = 0;

	for (int k = 0; k < DATASET_KINDS && rc == 0; k++)
		if (d->files[k])
			rc = dataset_path(d, (enum dataset_kind)k, d->files[k] - 1, path,
					  sizeof(path), e);
	return rc;
}

static int copy_dims(const char *key, const struct i64_list *from, uint32_t room, uint64_t *to,
		     uint32_t *n, struct err *e)
{
	if (from->n > room)
		return err_set(e, ERR_USAGE, "%s has %zu dimensions; at most %u are allowed", key,
			       from->n, room);
	*n = (uint32_t)from->n;
	for (size_t i = 0; i < from->n; i++) {
		if (from->v[i] < 1)
			return check_count(key, from->v[i], 1, e);
		to[i] = (uint64_t)from->v[i];
	}
	return 0;
}

/* What the specs of all files have in common. */
static int set_form(struct dataset *d, const struct workload *w, struct err *e)
{
	struct file_spec *f = &d->form;
	int rc;

	f->elem = d->elem;
	f->ndims = d->ndims;
	f->samples = d->samples_per_file;
	f->compression = d->compression;
	f->compression_level = (uint32_t)w->dataset.compression_level;
	f->datasets = (uint32_t)w->dataset.hdf5.num_dset_per_record;
	memcpy(f->dims, d->dims, sizeof(f->dims));
	rc = copy_dims("dataset.hdf5.chunk_dims", &w->dataset.hdf5.chunk_dims, FORMAT_DIMS_MAX + 1,
		       f->chunk, &f->chunk_ndims, e);
	if (rc == 0)
		rc = copy_dims("dataset.hdf5.max_shape", &w->dataset.hdf5.max_shape,
			       FORMAT_DIMS_MAX, f->max_dims, &f->max_ndims, e);
	return rc;
}

/* Keys of the format's own may decide what a sample is. */
static int set_own(struct dataset *d, const struct workload *w, struct err *e)
{
	int rc = d->format->own ? d->format->own(w, &d->form, &d->own, e) : 0;

	d->elem = d->form.elem;
	d->ndims = d->form.ndims;
	memcpy(d->dims, d->form.dims, sizeof(d->dims));
	return rc;
}

static int init_layout(struct dataset *d, const struct workload *w, bool draws, struct err *e)
{
	/* of objects it is the bucket, which no key begins with */
	bool objects = workload_base_store(w)->flags & STORE_HAS_OBJECTS;
	const char *root = w->storage.storage_root && !objects ? w->storage.storage_root : "";
	const char *folder = w->dataset.data_folder ? w->dataset.data_folder : "";
	int rc = find_format(d, w, e);

	d->elem = w->elem;
	d->folder = folder[0] ? path_join(root, folder) : xstrdup(root[0] ? root : ".");
	d->prefix = xstrdup(w->dataset.file_prefix ? w->dataset.file_prefix : "img");
	d->compression = compression_name(w);
	d->extension = extension_of(d, w);
	if (rc == 0)
		rc = set_counts(d, w, e);
	if (rc < 0)
		return rc;
	if (w->dataset.record_dims.n && w->dataset.record_length_bytes_stdev > 0)
		return err_set(e, ERR_USAGE,
			       "dataset.record_dims and dataset.record_length_bytes_stdev cannot "
			       "be combined: samples have either a fixed shape or varying sizes");
	d->ndims = 2;
	if (w->dataset.record_dims.n)
		rc = set_fixed_dims(d, &w->dataset.record_dims, e);
	else if (w->file_bytes_decide != FILE_BYTES_SHAPE && w->dataset.sizes != SIZES_RECORDED)
		rc = set_square_dims(d, w, e);
	if (rc == 0)
		rc = set_form(d, w, e);
	if (rc == 0)
		rc = set_own(d, w, e);
	if (rc == 0 && w->file_bytes_decide == FILE_BYTES_SHAPE)
		rc = set_dims_for_file(d, w, e);
	if (rc == 0 && w->dataset.sizes == SIZES_RECORDED)
		rc = set_recorded_dims(d, w, e);
	if (rc == 0)
		rc = set_density(d, w, e);
	if (rc == 0 && draws && w->dataset.sizes == SIZES_RECORDED)
		rc = take_sizes(d, d->name_total, &d->drawn, e);
	else if (rc == 0 && draws && d->drawn_stdev > 0)
		rc = draw_dims(d, d->name_total, &d->drawn, e);
	if (rc == 0)
		rc = measure(d, e) ?: check_names(d, e);
	content_init(&d->content, (uint64_t)w->dataset.seed, d->elem);
	d->config_hash = hash_of(d, w);
	return rc;
}

static int init(struct dataset *d, const struct workload *w, bool draws, struct err *e)
{
	int rc;

	memset(d, 0, sizeof(*d));
	d->workload = w;
	rc = init_layout(d, w, draws, e);
	if (rc < 0)
		dataset_release(d);
	return rc;
}

int dataset_init(struct dataset *d, const struct workload *w, struct err *e)
{
	return init(d, w, true, e);
}

int dataset_init_typical(struct dataset *d, const struct workload *w, struct err *e)
{
	return init(d, w, false, e);
}

void dataset_release(struct dataset *d)
{
	listed_release(d->listed);
	free(d->folder);
	free(d->prefix);
	free(d->drawn);
	free(d->own);
	memset(d, 0, sizeof(*d));
}

int dataset_set_name_total(struct dataset *d, const uint64_t total[DATASET_KINDS], struct err *e)
{
	struct dataset next = *d;
	int rc = 0;

	memcpy(next.name_total, total, sizeof(next.name_total));
	if (next.drawn) {
		rc = d->workload->dataset.sizes == SIZES_RECORDED
			     ? take_sizes(&next, total, &next.drawn, e)
			     : draw_dims(d, total, &next.drawn, e);
		if (rc < 0)
			return rc;
	}
	rc = measure(&next, e) ?: check_names(&next, e);
	if (next.drawn)
		free(rc == 0 ? d->drawn : next.drawn);
	if (rc == 0)
		*d = next;
	return rc;
}

/* NULL: the dataset has no such files, or nothing is known of single ones (dataset_recall). */
static const struct listed_file *listed_file(const struct dataset *d, enum dataset_kind kind,
					     uint64_t index)
{
	return d->listed && d->listed->kind[kind].file ? &d->listed->kind[kind].file[index] : NULL;
}

static const char *listed_path(const struct dataset *d, enum dataset_kind kind, uint64_t index)
{
	const struct listed_file *f = listed_file(d, kind, index);

	if (f)
		return f->path;
	for (size_t i = 0; kind == DATASET_TRAIN && i < d->listed->names; i++)
		if (d->listed->name[i].file == index)
			return d->listed->name[i].path;
	return "";
}

uint64_t dataset_file_index(const struct dataset *d, enum dataset_kind kind, uint64_t index)
{
	return (kind == DATASET_EVAL ? d->name_total[DATASET_TRAIN] : 0) + index;
}

uint64_t dataset_file_index_end(const struct dataset *d)
{
	return d->name_total[DATASET_TRAIN] + d->name_total[DATASET_EVAL];
}

void dataset_file_spec(const struct dataset *d, enum dataset_kind kind, uint64_t index,
		       struct file_spec *out)
{
	const struct listed_file *listed = listed_file(d, kind, index);

	*out = d->form;
	out->file_index = dataset_file_index(d, kind, index);
	if (listed) {
		out->samples = listed->look.samples;
		out->dims[0] = listed->look.sample_bytes;
		out->index = listed->look.index;
		out->bytes = listed->bytes;
		memset(out->room, 0, sizeof(out->room));
		return;
	}
	/* the drawn ones are of all files of both kinds, training's first */
	assert(!d->drawn || out->file_index < d->name_total[0] + d->name_total[1]);
	if (d->drawn) {
		out->dims[0] = d->drawn[2 * out->file_index];
		out->dims[1] = d->drawn[2 * out->file_index + 1];
		if (recorded_bytes(d, kind) && d->format->is.flags & (FORMAT_IMAGE | FORMAT_FILLED))
			out->want_bytes = recorded_bytes(d, kind)[index];
		else if (out->want_bytes)
			out->want_bytes =
				(uint64_t)llround(d->file_bytes_per_pixel * (double)out->dims[0] *
						  (double)out->dims[1]);
	}
}

uint64_t dataset_file_bytes(const struct dataset *d, enum dataset_kind kind, uint64_t index)
{
	struct file_spec f;

	if (listed_file(d, kind, index))
		return listed_file(d, kind, index)->bytes;
	if (d->listed)
		return d->files[kind] ? d->kind_bytes[kind] / d->files[kind] : 0;
	dataset_file_spec(d, kind, index, &f);
	return d->format->file_bytes(&f);
}

static int digits_of(uint64_t n)
{
	int digits = 1;

	for (; n >= 10; n /= 10)
		digits++;
	return digits;
}

static int fitted(int n, size_t out_size, const struct dataset *d, struct err *e)
{
	if (n >= 0 && (size_t)n < out_size)
		return 0;
	return err_set(e, -ENAMETOOLONG,
		       "paths under '%.200s' would exceed %zu characters: shorten "
		       "dataset.data_folder or dataset.file_prefix",
		       d->folder, out_size - 1);
}

int dataset_folder(const struct dataset *d, enum dataset_kind kind, uint64_t sub, char *out,
		   size_t out_size, struct err *e)
{
	uint64_t subs = d->subfolders[kind];
	int n;

	if (subs)
		n = snprintf(out, out_size, "%s/%s/%0*" PRIu64, d->folder,
			     dataset_kind_folder[kind], digits_of(subs), sub);
	else
		n = snprintf(out, out_size, "%s/%s", d->folder, dataset_kind_folder[kind]);
	return fitted(n, out_size, d, e);
}

/* "img_003_of_168.npz", or as the format numbers its files. */
static int file_name(const struct dataset *d, enum dataset_kind kind, uint64_t index, char *out,
		     size_t out_size, struct err *e)
{
	uint64_t total = d->name_total[kind];

	assert(index < total);
	if (d->format && d->format->is.numbered)
		return fitted(snprintf(out, out_size, "%s%0*" PRIu64 ".%s", d->format->is.numbered,
				       d->format->is.digits, index, d->extension),
			      out_size, d, e);
	return fitted(snprintf(out, out_size, "%s_%0*" PRIu64 "_of_%" PRIu64 ".%s", d->prefix,
			       digits_of(total), index, total, d->extension),
		      out_size, d, e);
}

int dataset_path(const struct dataset *d, enum dataset_kind kind, uint64_t index, char *out,
		 size_t out_size, struct err *e)
{
	uint64_t subs = d->subfolders[kind];
	size_t n;
	int rc;

	if (d->listed)
		return fitted(
			snprintf(out, out_size, "%s/%s", d->folder, listed_path(d, kind, index)),
			out_size, d, e);
	rc = dataset_folder(d, kind, subs ? index % subs : 0, out, out_size, e);
	if (rc < 0)
		return rc;
	n = strlen(out);
	if (n + 1 >= out_size)
		return fitted(-1, out_size, d, e);
	out[n++] = '/';
	return file_name(d, kind, index, out + n, out_size - n, e);
}

uint64_t dataset_samples(const struct dataset *d, enum dataset_kind kind)
{
	if (d->listed)
		return d->listed->kind[kind].samples;
	if (d->workload && d->workload->dataset.names == NAMES_LISTED)
		return (uint64_t)workload_samples(d->workload, kind == DATASET_EVAL);
	return d->files[kind] * d->samples_per_file;
}

uint64_t dataset_sample_bytes(const struct dataset *d, enum dataset_kind kind, uint64_t file)
{
	struct file_spec f;

	dataset_file_spec(d, kind, file, &f);
	return file_spec_sample_bytes(&f);
}

/* Decoded bytes of the sample of each file, added up. */
static double sum_of_samples(const struct dataset *d, enum dataset_kind kind)
{
	double sum = 0;

	if (!d->drawn)
		return (double)dataset_sample_bytes(d, kind, 0) * (double)d->files[kind];
	for (uint64_t i = 0; i < d->files[kind]; i++)
		sum += (double)dataset_sample_bytes(d, kind, i);
	return sum;
}

double dataset_mean_sample_bytes(const struct dataset *d, enum dataset_kind kind)
{
	const struct listed_kind *listed = d->listed ? &d->listed->kind[kind] : NULL;

	if (d->files[kind] == 0)
		return NAN;
	if (!listed)
		return sum_of_samples(d, kind) / (double)d->files[kind];
	return listed->samples ? (double)listed->payload / (double)listed->samples : NAN;
}

static enum dataset_sizes sizes_known(const struct dataset *d, enum dataset_kind kind)
{
	if (d->files[kind] == 0)
		return SIZES_UNKNOWN;
	return d->total_bytes != UINT64_MAX ? SIZES_EXACT
	       : d->seen_files[kind]        ? SIZES_SEEN
					    : SIZES_LIKELY;
}

double dataset_mean_file_bytes(const struct dataset *d, enum dataset_kind kind,
			       enum dataset_sizes *how)
{
	enum dataset_sizes h = sizes_known(d, kind);
	double sum = 0;

	if (how)
		*how = h;
	switch (h) {
	case SIZES_UNKNOWN:
		return NAN;
	case SIZES_SEEN:
		return (double)d->seen_bytes[kind] / (double)d->seen_files[kind];
	case SIZES_LIKELY:
		return (double)d->kind_bytes[kind] / (double)d->files[kind];
	case SIZES_EXACT:
		break;
	}
	if (d->listed)
		return (double)d->kind_bytes[kind] / (double)d->files[kind];
	if (!d->drawn)
		return (double)dataset_file_bytes(d, kind, 0);
	for (uint64_t i = 0; i < d->files[kind]; i++)
		sum += (double)dataset_file_bytes(d, kind, i);
	return sum / (double)d->files[kind];
}

double dataset_sample_file_bytes(const struct dataset *d, enum dataset_kind kind,
				 enum dataset_sizes *how)
{
	/* an image is read whole for each of its samples */
	double samples = d->format->is.flags & FORMAT_IMAGE ? 1
			 : d->files[kind]
				 ? (double)dataset_samples(d, kind) / (double)d->files[kind]
				 : 1;
	enum dataset_sizes h = sizes_known(d, kind);
	double bytes = NAN; /* of a file */

	if (h != SIZES_UNKNOWN) {
		bytes = h == SIZES_SEEN ? (double)d->seen_bytes[kind] / (double)d->seen_files[kind]
					: (double)d->kind_bytes[kind] / (double)d->files[kind];
	}
	if (how)
		*how = h;
	return bytes / samples;
}

double dataset_bytes_of_sample(const struct workload *w, enum dataset_kind kind,
			       enum dataset_sizes *how)
{
	double bytes = w->dataset.record_length_bytes;
	struct err why = {0};
	struct dataset d;
	int rc = dataset_init_typical(&d, w, &why);

	*how = SIZES_LIKELY;
	if (rc == -ENOMEM)
		out_of_memory();
	if (rc == 0) {
		bytes = dataset_sample_file_bytes(&d, kind, how);
		if (d.format->is.flags & FORMAT_NO_IO)
			bytes = 0;
		dataset_release(&d);
	}
	return bytes;
}

double dataset_file_share(const struct dataset *d, enum dataset_kind kind)
{
	double samples;

	if (!d || d->files[kind] == 0)
		return 1;
	samples = dataset_mean_sample_bytes(d, kind) * (double)dataset_samples(d, kind) /
		  (double)d->files[kind];
	return samples > 0 ? dataset_mean_file_bytes(d, kind, NULL) / samples : 1;
}

char *dataset_shape_text(const struct dataset *d, char *out, size_t out_size)
{
	size_t n = 0;

	if (d->drawn && d->workload->dataset.sizes == SIZES_RECORDED) {
		snprintf(out, out_size, "as recorded");
		return out;
	}
	if (d->drawn) {
		snprintf(out, out_size, "%.0f +- %.3f square", d->drawn_mean, d->drawn_stdev);
		return out;
	}
	out[0] = '\0';
	for (uint32_t i = 0; i < d->ndims && n < out_size; i++) {
		int w = snprintf(out + n, out_size - n, "%s%" PRIu64, i ? " x " : "", d->dims[i]);

		n += w > 0 ? (size_t)w : 0;
	}
	return out;
}
