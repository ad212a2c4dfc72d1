/* The reader of recorded requests. A file is opened; then come the requests that the job made when
 * it had opened the file, then those of the sample, each at its place. With read_type memory the
 * file stays open, and its other samples take only their own requests; of more than
 * RECORDED_KEPT_OPEN files the one not used for longest is closed. A request beyond the end of the
 * dataset's largest file is made at that end. Nothing is decoded. */
#include "format/format.h"

#include "format/reader.h"
#include "workload/recorded_file.h"

/* Larger requests are made in pieces of this size, as the kernel makes them. */
#define PIECE_MAX (4u << 20)

struct open_file {
	struct blob *blob;
	uint64_t index; /* number of the file */
	uint64_t used;  /* 0: closed */
};

struct reader {
	struct reader_base base;
	struct open_file *file;
	uint32_t files;
	uint64_t clock;
	unsigned char *data;
	size_t data_bytes;
};

static size_t room_of(const struct reader_config *c)
{
	uint64_t most = c->max_file_bytes ? c->max_file_bytes : 1;

	return most < PIECE_MAX ? (size_t)most : PIECE_MAX;
}

static void lay_out(struct carver *c, const struct reader_config *config, const struct store *s,
		    struct reader *r)
{
	r->files = config->keep_open ? RECORDED_KEPT_OPEN : 1;
	if (r->files > config->files)
		r->files = config->files ? (uint32_t)config->files : 1;
	r->file = carve(c, r->files * sizeof(*r->file));
	for (uint32_t i = 0; i < r->files; i++) {
		struct blob *blob = carve(c, store_blob_bytes(s));

		if (r->file)
			r->file[i] = (struct open_file){.blob = blob};
	}
	r->data_bytes = room_of(config);
	r->data = carve(c, r->data_bytes);
}

static size_t recorded_reader_bytes(const struct reader_config *config, const struct store *s)
{
	struct reader r = {0};

	return reader_measure(&r, sizeof(r), lay_out, config, s);
}

static int recorded_reader_init(void *memory, const struct reader_config *config,
				const struct io *io, struct reader **out, struct err *e)
{
	if (!config->recorded)
		return err_set(e, ERR_USAGE, "there are no recorded requests");
	return reader_begin(memory, sizeof(struct reader), lay_out, config, io, out, e);
}

static int close_file(struct reader *r, struct open_file *f, struct err *e)
{
	f->used = 0;
	return io_close(r->base.io, f->blob, e);
}

/* The file's place, or a free one, or that of the file not used for longest. */
static struct open_file *place_of(struct reader *r, uint64_t index)
{
	struct open_file *best = &r->file[0];

	for (uint32_t i = 0; i < r->files; i++) {
		if (r->file[i].used && r->file[i].index == index)
			return &r->file[i];
		if (r->file[i].used < best->used)
			best = &r->file[i];
	}
	return best;
}

static int read_all(struct reader *r, struct open_file *f, enum io_kind kind, uint64_t at,
		    uint64_t n, uint64_t *got_all, struct err *e)
{
	while (n > 0) {
		size_t part = n < r->data_bytes ? (size_t)n : r->data_bytes;
		ssize_t got = io_pread(r->base.io, kind, f->blob, r->data, part, at, e);

		if (got <= 0)
			return (int)got;
		at += (uint64_t)got;
		n -= (uint64_t)got;
		*got_all += (uint64_t)got;
	}
	return 0;
}

static int ask(struct reader *r, struct open_file *f, const struct recorded_requests *l,
	       enum io_kind kind, uint64_t file_bytes, uint64_t *got, struct err *e)
{
	int rc = 0;

	for (uint32_t i = 0; i < l->n && rc == 0; i++) {
		uint64_t at;
		uint32_t n;

		recorded_request(l, i, &at, &n);
		if (n > file_bytes)
			n = (uint32_t)file_bytes;
		if (at > file_bytes - n)
			at = file_bytes - n;
		rc = read_all(r, f, kind, at, n, got, e);
	}
	return rc;
}

static int read_sample(struct reader *r, const char *path, const struct file_spec *f,
		       uint64_t index, struct sample *out, struct open_file **at, struct err *e)
{
	const struct recorded *all = r->base.config.recorded;
	bool evaluation = f->file_index >= all->part[RECORDED_TRAIN].files;
	const struct recorded_part *p = &all->part[evaluation ? RECORDED_EVAL : RECORDED_TRAIN];
	uint64_t number = f->file_index - (evaluation ? all->part[RECORDED_TRAIN].files : 0);
	uint64_t bytes = r->base.config.max_file_bytes, got = 0, before = 0;
	struct open_file *file = place_of(r, f->file_index);
	int rc = 0;

	if (bytes == 0 || bytes > INT64_MAX)
		bytes = INT64_MAX;
	if (number >= p->files || index >= p->samples_per_file)
		return err_set(e, ERR_USAGE, "the recorded job had no such sample");
	if (recorded_requests_of(p, number, 0)->n + recorded_requests_of(p, number, index + 1)->n ==
	    0) {
		/* it fills up a batch */
		out->data = NULL;
		reader_sample_done(f, out);
		out->payload_bytes = 0;
		return 0;
	}
	if (!file->used || file->index != f->file_index) {
		if (file->used)
			rc = close_file(r, file, e);
		if (rc == 0)
			rc = io_open(r->base.io, path, STORE_READ, file->blob, e);
		if (rc < 0)
			return rc;
		file->index = f->file_index;
		file->used = 1;
		*at = file;
		rc = ask(r, file, recorded_requests_of(p, number, 0), IO_META, bytes, &before, e);
	}
	*at = file;
	file->used = ++r->clock;
	if (rc == 0)
		rc = ask(r, file, recorded_requests_of(p, number, index + 1), IO_DATA, bytes, &got,
			 e);
	out->data = got ? r->data : NULL;
	reader_sample_done(f, out);
	if (got < out->payload_bytes)
		out->payload_bytes = got;
	return rc;
}

static int recorded_read_sample(struct reader *r, const char *path, const struct file_spec *f,
				uint64_t index, struct sample *out, struct err *e)
{
	struct open_file *file = NULL;
	int rc = reader_sample_begin(f, index, path, out, e), closed;

	if (rc < 0)
		return rc;
	rc = read_sample(r, path, f, index, out, &file, e);
	if (file && (rc < 0 || !r->base.config.keep_open)) {
		closed = close_file(r, file, rc == 0 ? e : NULL);
		rc = rc == 0 ? closed : rc;
	}
	return rc < 0 ? err_in_path(rc, path, e) : 0;
}

static int recorded_reader_close(struct reader *r, struct err *e)
{
	int rc = 0;

	for (uint32_t i = 0; i < r->files; i++) {
		int closed = r->file[i].used ? close_file(r, &r->file[i], rc == 0 ? e : NULL) : 0;

		rc = rc == 0 ? closed : rc;
	}
	return rc;
}

const struct format_ops recorded_requests_ops = {
	.reader_bytes = recorded_reader_bytes,
	.reader_init = recorded_reader_init,
	.read = recorded_read_sample,
	.reader_close = recorded_reader_close,
};
