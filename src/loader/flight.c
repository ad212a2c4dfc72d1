/* Keeps requests of one worker in flight. */
#include "loader/flight.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "format/reader.h"
#include "loader/row_groups.h"
#include "loader/loader.h"
#include "store/async.h"

/* A record's head and numbers beyond the payload may differ by this much between files. */
#define ROOM_SLACK 64u

#define NONE UINT64_MAX

/* The files that are open: those of samples in flight, and with read_type memory those used last.
 */
struct flight_file {
	struct blob *blob;
	unsigned users;
	uint64_t serial; /* of its last use */
	uint64_t bytes;  /* EXTENT_TO_END: not asked yet */
	struct file_spec spec;
};

struct flight_files {
	const struct loader_config *config;
	const struct io *io;
	uint64_t *number; /* of the file at each place; UINT64_MAX: none */
	struct flight_file *file;
	unsigned count, last; /* last: the place used last */
	uint64_t serial;
	char path[DATASET_PATH_MAX];
};

/* A sample in flight. */
struct place {
	uint64_t sample, index;
	struct flight_file *file;
	uint64_t from, end; /* what is requested: the extent, widened to what the store wants */
	uint64_t next;      /* of the next request */
	uint64_t want;      /* where the extent ends */
	uint64_t have;      /* where what was read ends */
	unsigned out;       /* requests in flight */
	bool loaded;        /* by an earlier sample of its file */
	int64_t begun_ns;
	unsigned char *buffer; /* holds from .. from + room; NULL with DECODE_NONE */
};

struct flight {
	const struct loader_config *config;
	const struct reader_config *settings;
	const struct io *io;
	struct store_queue *queue;
	struct flight_files files;
	struct file_marks loaded;
	uint64_t piece; /* of a request, at most */
	uint64_t room;  /* of a place's buffer */
	uint32_t align;
	bool broken;

	struct store_request *request; /* depth */
	unsigned *free_request;
	unsigned depth, free_requests;
	struct place *place, **free_place, **ready;
	unsigned places, free_places, ready_count;
	struct place *splitting; /* has parts that were not requested yet */

	const struct place *oldest; /* that the watchdog was told of, and since when */
	int64_t oldest_ns;

	unsigned char *buffers; /* of requests, or of places */
	uint64_t buffer_bytes;  /* of one */
	struct store_request **reaped;

	/* What the format's reader sees. */
	struct store view;
	struct io view_io;
	struct place *current;
	char path[DATASET_PATH_MAX];
	uint64_t memory_bytes;
};

/* The least multiple of `to`, a power of two, that is not below n. */
static uint64_t round_up(uint64_t n, uint64_t to)
{
	assert(to && (to & (to - 1)) == 0);
	return n > UINT64_MAX - to ? UINT64_MAX : (n + to - 1) & ~(to - 1);
}

/* ---- open files ---- */

static void files_lay_out(struct carver *c, struct flight_files *f, const struct store *s,
			  unsigned count)
{
	unsigned char *blobs;
	size_t each = (store_blob_bytes(s) + 63) & ~(size_t)63;

	f->count = count;
	f->number = carve(c, count * sizeof(*f->number));
	f->file = carve(c, count * sizeof(*f->file));
	blobs = carve(c, count * each);
	for (unsigned i = 0; f->file && i < count; i++) {
		f->number[i] = NONE;
		f->file[i].blob = (struct blob *)(blobs + i * each);
		f->file[i].users = 0;
	}
}

static int close_place(struct flight_files *f, unsigned i, struct err *e)
{
	f->number[i] = NONE;
	return io_close(f->io, f->file[i].blob, e);
}

static unsigned file_find(const struct flight_files *f, uint64_t number)
{
	if (f->number[f->last] == number)
		return f->last;
	for (unsigned i = 0; i < f->count; i++)
		if (f->number[i] == number)
			return i;
	return f->count;
}

/* A place without a file, or the one unused for longest. */
static unsigned file_free_place(const struct flight_files *f)
{
	unsigned best = f->count;

	for (unsigned i = 0; i < f->count; i++) {
		if (f->number[i] == NONE)
			return i;
		if (f->file[i].users == 0 &&
		    (best == f->count || f->file[i].serial < f->file[best].serial))
			best = i;
	}
	return best;
}

static int open_file(struct flight_files *f, uint64_t number, unsigned *out, struct err *e)
{
	const struct loader_config *c = f->config;
	unsigned i = file_free_place(f);
	struct flight_file *file = &f->file[i];
	int rc = 0;

	if (f->number[i] != NONE)
		rc = close_place(f, i, e);
	if (rc == 0)
		rc = dataset_path(c->dataset, c->kind, number, f->path, sizeof(f->path), e);
	if (f->io->trace)
		f->io->trace->file = number;
	if (rc == 0)
		rc = io_open(f->io, f->path, STORE_READ, file->blob, e);
	if (rc < 0)
		return rc;
	f->number[i] = number;
	file->bytes = EXTENT_TO_END;
	file->users = 0;
	dataset_file_spec(c->dataset, c->kind, number, &file->spec);
	*out = i;
	return 0;
}

static int file_get(struct flight_files *f, uint64_t number, struct flight_file **out,
		    struct err *e)
{
	unsigned i = file_find(f, number);

	if (i == f->count) {
		int rc = open_file(f, number, &i, e);

		if (rc < 0)
			return rc;
	}
	f->last = i;
	f->file[i].users++;
	f->file[i].serial = ++f->serial;
	*out = &f->file[i];
	return 0;
}

static int file_put(struct flight_files *f, struct flight_file *file, struct err *e)
{
	assert(file->users > 0);
	if (--file->users > 0 || f->config->workload->reader.read_type == READ_MEMORY)
		return 0;
	return close_place(f, (unsigned)(file - f->file), e);
}

static int file_bytes(struct flight_files *f, struct flight_file *file, uint64_t *out,
		      struct err *e)
{
	struct store_stat st;

	if (file->bytes == EXTENT_TO_END) {
		int rc = io_stat_blob(f->io, file->blob, &st, e);

		if (rc < 0)
			return rc;
		file->bytes = st.bytes;
	}
	*out = file->bytes;
	return 0;
}

static int files_close(struct flight_files *f, struct err *e)
{
	int rc = 0;

	for (unsigned i = 0; i < f->count; i++) {
		int closed = f->number[i] == NONE ? 0 : close_place(f, i, rc == 0 ? e : NULL);

		rc = rc == 0 ? closed : rc;
	}
	return rc;
}

bool flight_wanted(const struct loader_config *c)
{
	return c->workload->reader.queue_depth > 1 && !c->one_request &&
	       !(c->dataset->format->is.flags & FORMAT_NO_IO) && !groups_wanted(c);
}

/* ---- memory ---- */

/* The room that one sample's bytes need, EXTENT_TO_END when that is not known. */
static int sample_room(const struct loader_config *c, const struct reader_config *s, uint64_t *out,
		       struct err *e)
{
	const struct format_ops *format = c->dataset->format;
	struct extent x;
	int rc;

	if (!format->extent)
		return err_set(e, ERR_USAGE,
			       "reader.queue_depth %lld: not supported for %s files, because the "
			       "positions of their samples cannot be computed; use a depth of 1",
			       (long long)c->workload->reader.queue_depth, format->is.name);
	rc = format->extent(s, s->example, 0, &x, e);
	if (rc < 0) {
		if (e)
			err_wrap(e,
				 "reader.queue_depth %lld is not possible here; use a depth of 1",
				 (long long)c->workload->reader.queue_depth);
		return rc;
	}
	if (x.whole)
		*out = s->max_file_bytes;
	else if (__builtin_add_overflow(s->max_sample_bytes,
					x.bytes - file_spec_sample_bytes(s->example) + ROOM_SLACK,
					out))
		*out = EXTENT_TO_END;
	return 0;
}

/* A whole file of unknown size: about as large as the format thinks, and some more. */
static uint64_t likely_room(const struct loader_config *c, const struct reader_config *s)
{
	const struct format_ops *format = c->dataset->format;
	uint64_t bytes, payload;

	if (__builtin_mul_overflow(s->max_sample_bytes, s->samples_per_file, &payload))
		return EXTENT_TO_END;
	bytes = format->file_bytes_estimate ? format->file_bytes_estimate(s->example) : payload;
	if (bytes < payload && c->dataset->drawn)
		bytes = payload;
	return __builtin_add_overflow(bytes, bytes / 8 + FORMAT_BLOCK_MAX / 128, &bytes)
		       ? EXTENT_TO_END
		       : bytes;
}

/* Sizes and numbers of everything but memory. */
static int plan_sizes(struct flight *f, const struct loader_config *c,
		      const struct reader_config *s, struct err *e)
{
	uint64_t room = 0, pieces;
	int rc = sample_room(c, s, &room, e);

	if (rc < 0)
		return rc;
	f->config = c;
	f->settings = s;
	f->depth = (unsigned)c->workload->reader.queue_depth;
	f->align = store_queue_align(c->store);
	f->piece = FLIGHT_PIECE;
	if (room < FLIGHT_PIECE)
		f->piece = round_up(room + 2 * (f->align - 1), 4096);
	if (f->piece > FLIGHT_PIECE)
		f->piece = FLIGHT_PIECE;
	if (s->decode == DECODE_NONE) {
		/* twice, so that those that were read and those that are being read have room */
		f->places = 2 * f->depth;
		f->buffer_bytes = f->piece;
		return 0;
	}
	if (room == EXTENT_TO_END)
		room = likely_room(c, s);
	if (room > UINT64_MAX / 4)
		room = UINT64_MAX / 4;
	f->room = round_up(room + 2 * (f->align - 1), 4096);
	pieces = (f->room + f->piece - 1) / f->piece;
	f->places = (unsigned)((f->depth + pieces - 1) / pieces) + 1;
	f->buffer_bytes = f->room;
	return 0;
}

static void carve_memory(struct carver *c, struct flight *f)
{
	unsigned buffers = f->settings->decode == DECODE_NONE ? f->depth : f->places;
	uint64_t bytes;

	carve(c, sizeof(*f));
	f->request = carve(c, f->depth * sizeof(*f->request));
	f->free_request = carve(c, f->depth * sizeof(*f->free_request));
	f->reaped = carve(c, f->depth * sizeof(*f->reaped));
	f->place = carve(c, f->places * sizeof(*f->place));
	f->free_place = carve(c, f->places * sizeof(*f->free_place));
	f->ready = carve(c, f->places * sizeof(*f->ready));
	files_lay_out(c, &f->files, f->config->store,
		      f->places + (f->settings->keep_open ? FLIGHT_KEPT_OPEN : 0));
	file_marks_lay_out(c, f->settings, &f->loaded);
	if (__builtin_mul_overflow(f->buffer_bytes, (uint64_t)buffers, &bytes))
		c->overflow = true;
	else
		f->buffers = carve(c, bytes);
}

uint64_t flight_bytes(const struct loader_config *c, const struct reader_config *settings,
		      struct err *e)
{
	struct carver carver = {0};
	struct flight f = {0};
	uint64_t bytes;

	if (plan_sizes(&f, c, settings, e) < 0)
		return 0;
	carve_memory(&carver, &f);
	bytes = carved(&carver);
	if (bytes == 0) {
		err_set(e, -ENOMEM,
			"%u requests in flight for samples of %llu bytes exceed the memory of any "
			"machine",
			f.depth, (unsigned long long)settings->max_sample_bytes);
		return 0;
	}
	return bytes + store_queue_bytes(c->store, f.depth, false);
}

/* ---- what the format's reader sees ---- */

static struct flight *viewed(struct store *s)
{
	return (struct flight *)((char *)s - offsetof(struct flight, view));
}

static int view_open(struct store *s, const char *path, unsigned how, struct blob *b, struct err *e)
{
	(void)b;
	if (how == STORE_READ && strcmp(path, viewed(s)->path) == 0)
		return 0;
	return err_set(e, -ENOTSUP, "'%s' was opened while '%s' was being read", path,
		       viewed(s)->path);
}

static int view_close(struct blob *b, struct err *e)
{
	(void)b;
	(void)e;
	return 0;
}

static ssize_t view_pread(struct blob *b, void *p, size_t n, uint64_t offset, struct err *e)
{
	struct flight *f = viewed(b->store);
	const struct place *at = f->current;
	size_t have = 0;
	ssize_t rest;

	if (offset >= at->from && offset < at->have) {
		have = at->have - offset < n ? (size_t)(at->have - offset) : n;
		memcpy(p, at->buffer + (offset - at->from), have);
	}
	if (have == n || (at->have < at->end && offset >= at->from))
		return (ssize_t)have;
	rest = io_pread(f->io, IO_DATA, at->file->blob, (char *)p + have, n - have, offset + have,
			e);
	return rest < 0 ? rest : (ssize_t)have + rest;
}

static int view_stat_blob(struct blob *b, struct store_stat *out, struct err *e)
{
	struct flight *f = viewed(b->store);

	return io_stat_blob(f->io, f->current->file->blob, out, e);
}

static int view_stat(struct store *s, const char *path, struct store_stat *out, struct err *e)
{
	return io_stat_path(viewed(s)->io, path, out, e);
}

static const struct store_ops view_ops = {
	.is.name = "flight",
	.blob_bytes = sizeof(struct blob),
	.open = view_open,
	.close = view_close,
	.pread = view_pread,
	.stat_blob = view_stat_blob,
	.stat = view_stat,
};

const struct io *flight_io(struct flight *f)
{
	return &f->view_io;
}

/* ---- making and ending ---- */

static void fill_lists(struct flight *f)
{
	bool none = f->settings->decode == DECODE_NONE;

	for (unsigned i = 0; i < f->depth; i++) {
		if (none)
			f->request[i].buffer = f->buffers + i * f->buffer_bytes;
		f->free_request[f->free_requests++] = f->depth - 1 - i;
	}
	for (unsigned i = 0; i < f->places; i++) {
		if (!none)
			f->place[i].buffer = f->buffers + i * f->buffer_bytes;
		f->free_place[f->free_places++] = &f->place[f->places - 1 - i];
	}
}

int flight_create(struct flight **out, const struct loader_config *c,
		  const struct reader_config *settings, const struct io *io, struct err *e)
{
	struct store_queue_config config = {0};
	struct carver measure = {0}, carver = {0};
	struct flight sizes = {0}, *f;
	size_t bytes;
	int rc = plan_sizes(&sizes, c, settings, e);

	if (rc < 0)
		return rc;
	carve_memory(&measure, &sizes);
	bytes = carved(&measure);
	f = bytes ? buffer_alloc(bytes, "buffers of requests in flight", e) : NULL;
	if (!f)
		return -ENOMEM;
	memset(f, 0, bytes);
	*f = sizes;
	carver.base = (unsigned char *)f;
	carve_memory(&carver, f);
	f->memory_bytes = bytes;
	f->io = io;
	f->files.config = c;
	f->files.io = io;
	f->view = (struct store){.ops = &view_ops};
	f->view_io = (struct io){.store = &f->view, .stop = io->stop};
	fill_lists(f);
	config.depth = f->depth;
	config.memory = f->buffers;
	config.memory_bytes = bytes - (size_t)(f->buffers - (unsigned char *)f);
	rc = store_queue_create(&f->queue, io, &config, e);
	if (rc < 0) {
		buffer_free(f, bytes);
		return rc;
	}
	*out = f;
	return 0;
}

int flight_close(struct flight *f, struct err *e)
{
	file_marks_clear(&f->loaded);
	return files_close(&f->files, e);
}

void flight_destroy(struct flight *f)
{
	if (!f)
		return;
	store_queue_destroy(f->queue);
	files_close(&f->files, NULL);
	buffer_free(f, f->memory_bytes);
}

/* ---- reading ---- */

/* The range of a sample, cut to what the place can hold. */
static int set_range(struct flight *f, struct place *p, struct err *e)
{
	struct extent x;
	int rc = f->config->dataset->format->extent(f->settings, &p->file->spec, p->index, &x, e);

	if (rc == 0 && x.bytes == EXTENT_TO_END) {
		rc = file_bytes(&f->files, p->file, &x.bytes, e);
		x.bytes = x.bytes > x.offset ? x.bytes - x.offset : 0;
	}
	if (rc < 0)
		return rc;
	p->from = p->next = x.offset & ~(uint64_t)(f->align - 1);
	p->want = x.offset + x.bytes;
	p->end = round_up(p->want, f->align);
	if (f->room && p->end - p->from > f->room)
		p->want = p->end = p->from + f->room;
	p->have = p->end;
	p->loaded = false;
	if (x.whole)
		file_marks_set(&f->loaded, p->file->spec.file_index);
	return 0;
}

/* Takes a sample up. One that needs no request is ready. */
static int begin_sample(struct flight *f, uint64_t sample, struct err *e)
{
	const struct dataset *d = f->config->dataset;
	uint64_t file = sample / d->samples_per_file;
	struct place *p;
	int rc = 0;

	assert(f->free_places > 0 && !f->splitting);
	p = f->free_place[--f->free_places];

	p->sample = sample;
	p->index = sample - file * d->samples_per_file;
	p->file = NULL;
	p->out = 0;
	p->begun_ns = 0;
	p->next = p->end = 0;
	p->loaded = f->settings->keep_open &&
		    file_marks_get(&f->loaded, dataset_file_index(d, f->config->kind, file));
	if (!p->loaded) {
		rc = file_get(&f->files, file, &p->file, e);
		if (rc == 0)
			rc = set_range(f, p, e);
	}
	if (rc < 0) {
		if (p->file)
			file_put(&f->files, p->file, NULL);
		f->free_place[f->free_places++] = p;
		return rc;
	}
	if (p->next < p->end)
		f->splitting = p;
	else
		f->ready[f->ready_count++] = p;
	return 0;
}

static int send_request(struct flight *f, struct err *e)
{
	struct place *p = f->splitting;
	unsigned i = f->free_request[f->free_requests - 1];
	struct store_request *r = &f->request[i];
	uint64_t left = p->end - p->next;
	int rc;

	r->blob = p->file->blob;
	r->offset = p->next;
	r->n = (size_t)(left < f->piece ? left : f->piece);
	r->write = false;
	r->tag = (uint64_t)(p - f->place);
	if (p->buffer)
		r->buffer = p->buffer + (p->next - p->from);
	rc = store_queue_submit(f->queue, r, e);
	if (rc < 0)
		return rc;
	if (p->out++ == 0 && p->begun_ns == 0)
		p->begun_ns = r->submitted_ns;
	f->free_requests--;
	p->next += r->n;
	if (p->next == p->end)
		f->splitting = NULL;
	return 0;
}

/* Fails a sample with a sentence that names its file. */
static int in_file(struct flight *f, const struct place *p, int rc, struct err *e)
{
	const struct dataset *d = f->config->dataset;

	if (e && dataset_path(d, f->config->kind, p->sample / d->samples_per_file, f->path,
			      sizeof(f->path), NULL) == 0)
		err_wrap(e, "reading '%s'", f->path);
	return rc;
}

/* Takes one result. The place is ready once it was the last. */
static int receive_result(struct flight *f, struct store_request *r, struct err *e)
{
	struct place *p = &f->place[r->tag];
	uint64_t end = r->offset + (r->result > 0 ? (uint64_t)r->result : 0);

	assert(p->out > 0 && f->free_requests < f->depth);
	f->free_request[f->free_requests++] = (unsigned)(r - f->request);
	p->out--;
	if (end < p->have)
		p->have = end == r->offset + r->n ? p->have : end;
	if (p->out == 0 && p != f->splitting)
		f->ready[f->ready_count++] = p;
	if (r->result >= 0)
		return 0;
	if (e)
		*e = r->err;
	return in_file(f, p, (int)r->result, e);
}

/* What is to be done with the bytes that were read. */
static int decode_place(struct flight *f, struct reader *reader, struct place *p, uint64_t *payload,
			int64_t *now, struct err *e)
{
	const struct dataset *d = f->config->dataset;
	struct sample got = {0};
	int rc;

	*payload = 0;
	if (p->loaded)
		return 0;
	if (f->settings->decode == DECODE_NONE) {
		if (p->have >= p->want) {
			*payload = file_spec_sample_bytes(&p->file->spec);
			return 0;
		}
		dataset_path(d, f->config->kind, p->sample / d->samples_per_file, f->path,
			     sizeof(f->path), NULL);
		return io_report_short(p->file->blob, f->path,
				       p->have > p->from ? (size_t)(p->have - p->from) : 0,
				       (size_t)(p->want - p->from), p->from, e);
	}
	rc = dataset_path(d, f->config->kind, p->sample / d->samples_per_file, f->path,
			  sizeof(f->path), e);
	if (rc < 0)
		return rc;
	f->current = p;
	rc = d->format->read(reader, f->path, &p->file->spec, p->index, &got, e);
	f->current = NULL;
	*now = clock_now_ns();
	*payload = got.payload_bytes;
	return rc;
}

static int give_up(struct flight *f, struct place *p, struct err *e)
{
	int rc = p->file ? file_put(&f->files, p->file, e) : 0;

	f->free_place[f->free_places++] = p;
	return rc;
}

/* Decodes all samples that are ready; after a failure, only releases them. */
static int finish_ready(struct flight *f, struct reader *reader, struct flight_run *run, int rc,
			int64_t *now, struct err *e)
{
	while (f->ready_count > 0) {
		struct place *p = f->ready[--f->ready_count];
		uint64_t payload = 0;
		int closed;

		if (rc == 0) {
			run->failed = p->sample;
			rc = decode_place(f, reader, p, &payload, now, e);
			closed = give_up(f, p, rc == 0 ? e : NULL);
			rc = rc == 0 ? closed : rc;
			run->begun_ns = p->begun_ns ? p->begun_ns : *now;
			if (rc == 0)
				run->done(run, p->sample, payload, now);
			if (run->lingers)
				f->oldest = NULL; /* the watchdog was told of the wait */
		} else {
			give_up(f, p, NULL);
		}
	}
	return rc;
}

/* Sends requests as long as there is room. */
static int send_requests(struct flight *f, struct flight_run *run, bool *more, struct err *e)
{
	int rc = 0;

	while (rc == 0 && f->free_requests > 0) {
		uint64_t sample;

		if (f->splitting) {
			run->failed = f->splitting->sample;
			rc = send_request(f, e);
			continue;
		}
		if (!*more || f->free_places == 0)
			break;
		*more = run->next(run, &sample);
		if (!*more)
			break;
		run->failed = sample;
		rc = begin_sample(f, sample, e);
	}
	return rc;
}

/* Tells the watchdog of the oldest sample in flight, when that is another than before. */
static void tell_oldest(struct flight *f, struct flight_run *run)
{
	const struct place *oldest = f->oldest;

	if (oldest && oldest->out > 0 && oldest->begun_ns == f->oldest_ns)
		return;
	oldest = NULL;
	for (unsigned i = 0; i < f->places; i++) {
		const struct place *p = &f->place[i];

		if (p->out > 0 && (!oldest || p->begun_ns < oldest->begun_ns))
			oldest = p;
	}
	if (!oldest)
		return;
	f->oldest = oldest;
	f->oldest_ns = oldest->begun_ns;
	run->doing(run, oldest->sample, oldest->begun_ns);
}

/* Waits for results. The first failure of a request is the run's. */
static int collect_results(struct flight *f, struct flight_run *run, int rc, int64_t *now,
			   struct err *e)
{
	int n = store_queue_reap(f->queue, f->reaped, f->depth, rc == 0 ? e : NULL);

	if (n < 0) {
		f->broken = true;
		return rc < 0 ? rc : n;
	}
	for (int i = 0; i < n; i++) {
		struct store_request *r = f->reaped[i];
		uint64_t sample = f->place[r->tag].sample;
		int code = receive_result(f, r, rc == 0 ? e : NULL);

		*now = r->done_ns;
		if (code < 0 && rc == 0) {
			rc = code;
			run->failed = sample;
		}
	}
	return rc;
}

int flight_read(struct flight *f, struct reader *reader, struct flight_run *run, struct err *e)
{
	bool more = true, slow = run->lingers || f->settings->decode != DECODE_NONE;
	int64_t now = clock_now_ns();
	int rc = 0;

	f->oldest = NULL;
	if (f->broken)
		return err_set(e, -EIO, "requests can no longer be kept in flight");
	while (!f->broken) {
		if (rc == 0)
			rc = send_requests(f, run, &more, e);
		if (rc == 0 && slow)
			rc = store_queue_flush(f->queue, e);
		rc = finish_ready(f, reader, run, rc, &now, e);
		if (f->queue->in_flight > 0) {
			tell_oldest(f, run);
			rc = collect_results(f, run, rc, &now, e);
		} else if (rc < 0 || (!more && f->ready_count == 0)) {
			break;
		}
	}
	if (rc < 0 && f->splitting) {
		give_up(f, f->splitting, NULL);
		f->splitting = NULL;
	}
	return rc;
}
