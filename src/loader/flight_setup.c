/* What a flight takes before the first sample, and what a format's reader sees of it. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "loader/flight_state.h"

/* A record's head and numbers beyond the payload may differ by this much between files. */
#define ROOM_SLACK 64u

bool flight_wanted(const struct loader_config *c)
{
	return c->workload->reader.queue_depth > 1 &&
	       !(c->dataset->format->is.flags & FORMAT_NO_IO);
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
			       "reader.queue_depth %lld: where the samples of a %s file lie is not "
			       "computed; a depth of 1 reads them one by one",
			       (long long)c->workload->reader.queue_depth, format->is.name);
	rc = format->extent(s, s->example, 0, &x, e);
	if (rc < 0) {
		if (e)
			err_wrap(e,
				 "reader.queue_depth %lld cannot be had, a depth of 1 reads "
				 "samples one by one",
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
static int plan(struct flight *f, const struct loader_config *c, const struct reader_config *s,
		struct err *e)
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
		f->piece = flight_round_up(room + 2 * (f->align - 1), 4096);
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
	f->room = flight_round_up(room + 2 * (f->align - 1), 4096);
	pieces = (f->room + f->piece - 1) / f->piece;
	f->places = (unsigned)((f->depth + pieces - 1) / pieces) + 1;
	f->buffer_bytes = f->room;
	return 0;
}

static void lay_out(struct carver *c, struct flight *f)
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
	flight_files_lay_out(c, &f->files, f->config->store,
			     f->places + (f->settings->keep_open ? FLIGHT_KEPT_OPEN : 0));
	f->loaded.bits = carve(c, file_marks_bytes(f->settings));
	f->loaded.files = f->settings->files;
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

	if (plan(&f, c, settings, e) < 0)
		return 0;
	lay_out(&carver, &f);
	bytes = carved(&carver);
	if (bytes == 0) {
		err_set(e, -ENOMEM,
			"keeping %u requests for samples of %llu bytes in flight takes more memory "
			"than a machine has",
			f.depth, (unsigned long long)settings->max_sample_bytes);
		return 0;
	}
	return bytes + store_queue_bytes(c->store, f.depth);
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
	return err_set(e, -ENOTSUP, "'%s' is opened while '%s' is read", path, viewed(s)->path);
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
	int rc = plan(&sizes, c, settings, e);

	if (rc < 0)
		return rc;
	lay_out(&measure, &sizes);
	bytes = carved(&measure);
	f = bytes ? buffer_alloc(bytes, "buffers of requests in flight", e) : NULL;
	if (!f)
		return -ENOMEM;
	memset(f, 0, bytes);
	*f = sizes;
	carver.base = (unsigned char *)f;
	lay_out(&carver, f);
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
	return flight_files_close(&f->files, e);
}

void flight_destroy(struct flight *f)
{
	if (!f)
		return;
	store_queue_destroy(f->queue);
	flight_files_close(&f->files, NULL);
	buffer_free(f, f->memory_bytes);
}
