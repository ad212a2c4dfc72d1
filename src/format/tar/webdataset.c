/* webdataset: tar shards. A sample is the members "<key>.bin", its payload, and "<key>.cls", its
 * label as decimal digits, one behind the other; the key is "<file>_<sample>". All samples of a
 * file have one size in the archive, so sample i begins at i times it. Two blocks of zeros end the
 * archive, which is filled up to whole records of 10,240 bytes. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "format/blob_stream.h"
#include "format/pyfile.h"
#include "format/reader.h"
#include "format/tar/tar.h"
#include "format/tar/tar_source.h"
#include "format/tar/tar_walk.h"

#define PAYLOAD "bin"
#define LABEL "cls"
#define NAME_ROOM 64
#define END_BYTES (2 * TAR_BLOCK)

/* ---- the file ---- */

struct layout {
	uint64_t sample_bytes; /* payload */
	uint64_t stride;       /* of a sample in the archive */
	uint64_t file_bytes;
};

static int layout_of(const struct file_spec *f, struct layout *l, struct err *e)
{
	uint64_t bytes = file_spec_sample_bytes_checked(f), end;

	if (bytes > TAR_SIZE_MAX)
		return err_set(e, ERR_USAGE,
			       "a sample of these dimensions does not fit into a tar archive, "
			       "whose members have less than 8 GiB: make "
			       "dataset.record_length_bytes or record_dims smaller, or choose "
			       "another dataset.format");
	l->sample_bytes = bytes;
	l->stride = TAR_BLOCK + tar_padded(bytes) + 2 * TAR_BLOCK;
	if (__builtin_mul_overflow(l->stride, f->samples, &end) || end > INT64_MAX / 2)
		return err_set(e, ERR_USAGE,
			       "%" PRIu64 " samples of %" PRIu64
			       " bytes are more than a file can have",
			       f->samples, l->stride);
	end += END_BYTES;
	l->file_bytes = (end + TAR_RECORD - 1) / TAR_RECORD * TAR_RECORD;
	if (f->want_bytes > end)
		l->file_bytes = f->want_bytes;
	return 0;
}

static int webdataset_check(const struct file_spec *f, struct err *e)
{
	struct layout l;

	return layout_of(f, &l, e);
}

static uint64_t webdataset_file_bytes(const struct file_spec *f)
{
	struct layout l = {0};

	return layout_of(f, &l, NULL) < 0 ? UINT64_MAX : l.file_bytes;
}

static void put_name(char out[NAME_ROOM], const struct file_spec *f, uint64_t index,
		     const char *extension)
{
	snprintf(out, NAME_ROOM, "%06" PRIu64 "_%06" PRIu64 ".%s", f->file_index, index, extension);
}

#define DIGITS 6u /* of a sample's number in its name, at least */
#define NAMED_ALIKE 1000000u
#define LABEL_DIGITS 3u /* at most */

/* The header of the samples' members; made once, and then only its name is changed: with small
 * samples, headers are what a file costs. */
struct head {
	size_t digits_at; /* where the sample's number begins; 0: not made yet */
	unsigned char block[TAR_BLOCK];
};

static void put_digits(char *out, unsigned n, uint64_t v)
{
	for (; n-- > 0; v /= 10)
		out[n] = (char)('0' + v % 10);
}

static int put_header(struct blob_stream *s, struct head *h, const struct file_spec *f,
		      uint64_t index, const char *extension, uint64_t bytes, struct err *e)
{
	char name[NAME_ROOM], digits[DIGITS];

	if (h->digits_at == 0 || index >= NAMED_ALIKE) {
		put_name(name, f, index, extension);
		tar_put_header(h->block, name, bytes);
		h->digits_at = (size_t)(strchr(name, '_') - name) + 1;
	} else {
		put_digits(digits, DIGITS, index);
		tar_change_name(h->block, h->digits_at, digits, DIGITS);
	}
	return blob_stream_put(s, h->block, sizeof(h->block), e);
}

/* head: of the payload, and of labels of so many digits. */
static int put_sample(struct blob_stream *s, struct head head[LABEL_DIGITS + 1],
		      const struct file_spec *f, const struct layout *l,
		      const struct content_source *content, uint64_t index, struct err *e)
{
	uint64_t bytes = l->sample_bytes, label = file_spec_label(f, index);
	unsigned n = label < 10 ? 1 : label < 100 ? 2 : LABEL_DIGITS;
	unsigned char block[TAR_BLOCK] = {0};

	assert(label < 1000);
	put_digits((char *)block, n, label);
	return put_header(s, &head[0], f, index, PAYLOAD, bytes, e) ?:
	       blob_stream_payload(s, content, f->file_index, index * bytes, bytes, e) ?:
	       blob_stream_zeros(s, tar_padded(bytes) - bytes, e) ?:
	       put_header(s, &head[n], f, index, LABEL, n, e) ?:
	       blob_stream_put(s, block, sizeof(block), e);
}

static int webdataset_put(struct blob_stream *s, const struct file_spec *f,
			  const struct content_source *content, void *scratch, struct err *e)
{
	struct head head[LABEL_DIGITS + 1];
	struct layout l = {0};
	int rc = layout_of(f, &l, e);

	(void)scratch;
	for (unsigned i = 0; i <= LABEL_DIGITS; i++)
		head[i].digits_at = 0;
	for (uint64_t i = 0; i < f->samples && rc == 0; i++)
		rc = put_sample(s, head, f, &l, content, i, e);
	return rc < 0 ? rc : blob_stream_zeros(s, l.file_bytes - f->samples * l.stride, e);
}

static int not_computed(struct err *e)
{
	return err_set(e, ERR_USAGE,
		       "in shards that others wrote the place of a sample is known only from those "
		       "before it: they need reader.access=framework, and no reader.queue_depth");
}

static int webdataset_extent(const struct reader_config *c, const struct file_spec *f,
			     uint64_t index, struct extent *out, struct err *e)
{
	struct layout l;
	int rc = f->bytes ? not_computed(e) : layout_of(f, &l, e);

	if (rc < 0)
		return rc;
	*out = (struct extent){.offset = index * l.stride, .bytes = l.stride};
	if (c->keep_open)
		*out = (struct extent){.bytes = f->samples * l.stride, .whole = true};
	return 0;
}

/* ---- reading ---- */

/* Reading shards.
 *
 * FRAMEWORK is the WebDataset library over a local file: open(path, "rb"), whose buffer is that of
 * Python's law, under tarfile's mode "r|*". That asks the file for 512 bytes, to see what is in
 * front of it, and then for 10,240 at a time, just as far as it has to look: a sample is whole once
 * the first member of the next one was read, or the end was seen. There is no way to sample i but
 * through the samples before it, so a stream that stands at or before it is continued, and only a
 * sample behind it makes a file be opened and streamed anew. Without decoding the samples may have
 * any members: a sample is what has one key.
 *
 * NATIVE is one pread of all that belongs to a sample, whose place is known from its number;
 * without decoding one per 2 MiB of it. It needs the shards that are written here. */

#define PATH_ROOM 4096u
#define SLOTS 2 /* the sample that is delivered and the one that has begun behind it */

struct slot {
	bool has; /* a payload */
	uint64_t at, bytes;
	unsigned char *data;
};

struct stream {
	bool open;
	bool listed; /* others wrote it */
	uint64_t file_index;
	uint64_t next; /* sample it delivers next */
	struct pybuffer py;
	struct tar_source source;
	bool peeked;   /* the first piece was read */
	bool over;     /* the end was seen */
	unsigned slot; /* of the sample that has begun */
};

struct reader {
	struct reader_base base;
	struct stream stream;
	struct tar_walk *walk;
	struct slot slot[SLOTS];
	char *path;            /* of the open stream */
	unsigned char *buffer; /* Python's */
	size_t buffer_bytes;
	unsigned char *piece;          /* tarfile's */
	unsigned char *extra;          /* an extended header */
	unsigned char *plain, *memory; /* of an archive that is compressed */
	size_t slot_bytes;
	unsigned char *record; /* native: all of a sample, or a part of it */
	size_t record_bytes;
};

static void lay_out_framework(struct carver *c, const struct reader_config *config,
			      struct reader *r)
{
	r->path = carve(c, PATH_ROOM);
	r->walk = carve(c, sizeof(*r->walk));
	r->extra = carve(c, TAR_EXTRA_MAX);
	r->plain = carve(c, TAR_PLAIN_BYTES);
	r->memory = carve(c, INFLATER_MEMORY);
	r->piece = carve(c, TAR_RECORD);
	r->buffer_bytes = reader_buffer_bytes(config);
	r->buffer = carve(c, r->buffer_bytes);
	r->slot_bytes = config->decode == DECODE_NONE ? 0 : (size_t)config->max_sample_bytes;
	for (unsigned i = 0; i < SLOTS; i++)
		r->slot[i].data = carve(c, r->slot_bytes);
}

static void webdataset_lay_out(struct carver *c, const struct reader_config *config,
			       const struct store *s, struct reader *r)
{
	uint64_t record;

	reader_base_lay_out(c, config, s, &r->base);
	if (config->access == ACCESS_FRAMEWORK) {
		lay_out_framework(c, config, r);
		return;
	}
	if (__builtin_add_overflow(config->max_sample_bytes, 4 * TAR_BLOCK, &record)) {
		c->overflow = true;
		return;
	}
	if (config->decode == DECODE_NONE && record > NATIVE_PIECE_MAX)
		record = NATIVE_PIECE_MAX;
	r->record_bytes = (size_t)record;
	r->record = carve(c, record);
}

FORMAT_READER(webdataset, webdataset_lay_out, reader_start_nothing)

/* ---- as Python's tarfile ---- */

static ssize_t next_piece(void *reader, const unsigned char **piece, struct err *e)
{
	struct reader *r = reader;
	ssize_t got = pybuffer_read(&r->stream.py, r->piece,
				    r->stream.peeked ? TAR_RECORD : TAR_BLOCK, e);

	if (got > 0)
		r->stream.peeked = true;
	*piece = r->piece;
	return got;
}

/* Whether a member has the name of one that is written here, into this file. */
static bool is_own(const char *name, uint64_t file_index)
{
	uint64_t v = 0;
	size_t i = 0;

	for (; name[i] >= '0' && name[i] <= '9' && i < 18; i++)
		v = v * 10 + (uint64_t)(name[i] - '0');
	return i >= 6 && name[i] == '_' && v == file_index;
}

/* The data of a member of the sample that has begun. Who decodes nothing takes members of any
 * extension and size, as the library does, but for payloads that this program named. */
static int member_data(struct reader *r, const char *extension, uint64_t sample_bytes,
		       struct err *e)
{
	const struct tar_member *m = &r->walk->member;
	struct slot *slot = &r->slot[r->stream.slot];
	unsigned char *to = NULL;

	if (!r->stream.listed && strcmp(extension, PAYLOAD) == 0 &&
	    (r->base.config.decode != DECODE_NONE || is_own(m->name, r->stream.file_index))) {
		if (m->bytes != sample_bytes)
			return err_set(e, ERR_DATA,
				       "the member '%.120s' has %" PRIu64
				       " bytes, and a sample of the workload has %" PRIu64
				       ": it is damaged, or belongs to another dataset",
				       m->name, m->bytes, sample_bytes);
		*slot = (struct slot){
			.has = true, .at = r->walk->offset, .bytes = m->bytes, .data = slot->data};
		if (m->bytes <= r->slot_bytes)
			to = slot->data;
	}
	return tar_walk_data(r->walk, to, e);
}

/* Reads members until one begins another sample, whose data is read too, or the end: then the one
 * that had begun is whole. *whole gets its slot; NULL: there was none. */
static int stream_sample(struct reader *r, uint64_t sample_bytes, struct slot **whole,
			 struct err *e)
{
	struct stream *s = &r->stream;

	*whole = NULL;
	while (!*whole && !s->over) {
		bool had = r->walk->begun, bad;
		const char *extension;
		enum tar_belongs to;
		int rc = tar_walk_next(r->walk, e);

		if (rc < 0)
			return rc;
		if (rc == 0) {
			*whole = had && !r->walk->bad ? &r->slot[s->slot] : NULL;
			s->over = true;
			break;
		}
		rc = tar_walk_group(r->walk, &to, &extension, &bad, e);
		if (rc < 0)
			return rc;
		if (to == TAR_TO_META)
			continue;
		if (to == TAR_TO_NEXT) {
			if (had && !bad)
				*whole = &r->slot[s->slot];
			s->slot = !s->slot;
			r->slot[s->slot].has = false;
		}
		rc = to == TAR_TO_NOTHING ? tar_walk_data(r->walk, NULL, e)
					  : member_data(r, extension, sample_bytes, e);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int deliver(struct reader *r, const struct file_spec *f, const struct slot *slot,
		   uint64_t index, struct sample *out, struct err *e)
{
	uint64_t from = index * file_spec_sample_bytes(f);

	out->data = r->slot_bytes ? slot->data : r->piece;
	if (r->base.config.decode == DECODE_NONE || r->stream.listed)
		return 0;
	if (!slot->has)
		return err_set(e, ERR_DATA,
			       "sample %" PRIu64 " of the archive has no member with the extension "
			       "'" PAYLOAD "': only those are decoded; reader.decode none reads "
			       "any",
			       index);
	return expectation_check(&r->base.expect, f->file_index, from, slot->at - from, slot->data,
				 (size_t)slot->bytes, e);
}

/* The stream's next sample. */
static int next_sample(struct reader *r, const struct file_spec *f, bool wanted, struct sample *out,
		       struct err *e)
{
	struct stream *s = &r->stream;
	struct slot *slot;
	int rc = stream_sample(r, file_spec_sample_bytes(f), &slot, e);

	if (rc < 0)
		return rc;
	if (!slot)
		return err_set(e, ERR_DATA,
			       "the archive ends after %" PRIu64
			       " samples and should have %" PRIu64,
			       s->next, f->samples);
	rc = wanted ? deliver(r, f, slot, s->next, out, e) : 0;
	s->next++;
	if (rc == 0 && s->next == f->samples && !s->over)
		rc = err_set(e, ERR_DATA,
			     "the archive continues after its %" PRIu64
			     " samples: it belongs to another dataset",
			     f->samples);
	return rc;
}

static int stream_close(struct reader *r, int rc, struct err *e)
{
	int closed;

	if (!r->stream.open)
		return rc;
	r->stream.open = false;
	closed = io_close(r->base.io, r->base.blob, rc == 0 ? e : NULL);
	return rc == 0 ? closed : rc;
}

static int stream_open(struct reader *r, const char *path, const struct file_spec *f, struct err *e)
{
	struct stream *s = &r->stream;
	size_t n = strlen(path) + 1, buffer = 0;
	struct store_stat st;
	int rc = io_open(r->base.io, path, STORE_READ | STORE_STREAM, r->base.blob, e);

	if (rc < 0)
		return rc;
	*s = (struct stream){.open = true, .listed = f->bytes > 0, .file_index = f->file_index};
	tar_source_begin(&s->source, next_piece, r, r->plain, r->memory);
	tar_walk_begin(r->walk, tar_source_take, &s->source, r->extra);
	rc = io_stat_blob(r->base.io, r->base.blob, &st, e);
	if (rc == 0)
		rc = reader_buffer_of(&r->base.config, st.block_bytes, r->buffer_bytes, &buffer, e);
	if (rc < 0)
		return rc;
	pybuffer_start(&s->py, r->base.io, r->base.blob, r->base.config.python, st.bytes, r->buffer,
		       buffer);
	s->py.kind = IO_DATA;
	/* a path that cannot be kept is never known again */
	if (n > PATH_ROOM)
		n = 0;
	memcpy(r->path, path, n);
	if (n == 0)
		r->path[0] = '\0';
	return 0;
}

static int read_framework(struct reader *r, const char *path, const struct file_spec *f,
			  uint64_t index, struct sample *out, struct err *e)
{
	struct stream *s = &r->stream;
	bool all = r->base.config.keep_open;
	bool here = s->open && s->file_index == f->file_index && s->next <= index &&
		    strcmp(r->path, path) == 0;
	uint64_t end = all ? f->samples : index + 1;
	int rc = 0;

	if (!here) {
		rc = stream_close(r, 0, e);
		if (rc == 0)
			rc = stream_open(r, path, f, e);
	}
	while (rc == 0 && s->next < end)
		rc = next_sample(r, f, all || s->next == index, out, e);
	if (rc == 0 && end == f->samples)
		rc = stream_close(r, rc, e);
	return rc < 0 ? err_in_path(stream_close(r, rc, e), path, e) : 0;
}

/* ---- by the place of a sample ---- */

static int sample_cut_short(uint64_t index, const struct layout *l, uint64_t got, struct err *e)
{
	return err_set(e, ERR_DATA,
		       "sample %" PRIu64 ", at offset %" PRIu64 ", is cut short: %" PRIu64
		       " of %" PRIu64 " bytes are present",
		       index, index * l->stride, got, l->stride);
}

static int check_header(const unsigned char *block, const struct file_spec *f, uint64_t index,
			const struct layout *l, struct err *e)
{
	unsigned char want[TAR_BLOCK];
	char name[NAME_ROOM];

	put_name(name, f, index, PAYLOAD);
	tar_put_header(want, name, l->sample_bytes);
	if (memcmp(block, want, TAR_BLOCK) == 0)
		return 0;
	return err_set(e, ERR_DATA,
		       "the tar header at offset %" PRIu64 " is not that of '%s' with %" PRIu64
		       " bytes: it is damaged, belongs to another dataset, or was written by "
		       "another program, whose shards reader.access framework reads",
		       index * l->stride, name, l->sample_bytes);
}

/* In one piece, or, when nothing but its header matters, in pieces at the same place. */
static int native_sample(struct reader *r, const void *layout, const struct file_spec *f,
			 uint64_t index, struct sample *out, struct err *e)
{
	const struct layout *l = layout;
	uint64_t done = 0, at = index * l->stride, from = index * l->sample_bytes;
	int rc;

	while (done < l->stride) {
		uint64_t left = l->stride - done;
		size_t part = left < r->record_bytes ? (size_t)left : r->record_bytes;
		ssize_t got =
			io_pread(r->base.io, IO_DATA, r->base.blob, r->record, part, at + done, e);

		if (got < 0)
			return (int)got;
		if ((size_t)got < part)
			return sample_cut_short(index, l, done + (uint64_t)got, e);
		rc = done == 0 ? check_header(r->record, f, index, l, e) : 0;
		if (rc < 0)
			return rc;
		done += part;
	}
	out->data = r->record;
	if (r->base.config.decode == DECODE_NONE)
		return 0;
	out->data = r->record + TAR_BLOCK;
	return expectation_check(&r->base.expect, f->file_index, from, at + TAR_BLOCK - from,
				 out->data, (size_t)l->sample_bytes, e);
}

static int read_native(struct reader *r, const char *path, const struct file_spec *f,
		       uint64_t index, struct sample *out, struct err *e)
{
	struct layout l = {0};
	int rc = f->bytes ? not_computed(e) : layout_of(f, &l, e);

	if (rc == 0 && r->base.config.decode != DECODE_NONE && l.stride > r->record_bytes)
		rc = err_set(e, ERR_USAGE, "a sample is larger than the reader's buffer");
	return rc < 0 ? rc : reader_items(r, path, f, index, native_sample, &l, out, e);
}

FORMAT_READ_STREAM(webdataset, read_framework, read_native)

/* ---- what shards of others hold ---- */

/* A tar archive has no index: its headers are read, each with what lies behind it, and the data of
 * large members are passed over. One that is compressed is read whole. */
#define LOOK_NEAR 4096u   /* behind a header that was gone to */
#define LOOK_FAR 65536u   /* where members follow closely */
#define LOOK_CLOSE 16384u /* members of fewer bytes follow closely */

struct shard_look {
	const struct io *io;
	struct blob *blob;
	uint64_t at, bytes; /* next byte of the file; of the file */
	uint64_t from;      /* of what is in `window` */
	size_t have;
	unsigned char *window; /* LOOK_FAR */
	uint64_t passed;       /* bytes of the last member that was passed over */
	struct tar_source source;
	struct tar_walk walk;
	unsigned char extra[TAR_EXTRA_MAX], plain[TAR_PLAIN_BYTES], memory[INFLATER_MEMORY];
	unsigned char room[LOOK_FAR];
};

static ssize_t look_window(struct shard_look *l, size_t n, struct err *e)
{
	ssize_t got;

	if (n > l->bytes - l->at)
		n = (size_t)(l->bytes - l->at);
	got = n ? io_pread(l->io, IO_META, l->blob, l->window, n, l->at, e) : 0;
	l->from = l->at;
	l->have = got > 0 ? (size_t)got : 0;
	return got;
}

static ssize_t look_piece(void *look, const unsigned char **piece, struct err *e)
{
	struct shard_look *l = look;
	ssize_t got = look_window(l, LOOK_FAR, e);

	if (got > 0)
		l->at += (uint64_t)got;
	*piece = l->window;
	return got;
}

/* tar_take_fn: what nobody wants is not read. */
static ssize_t look_take(void *look, unsigned char *out, uint64_t n, struct err *e)
{
	struct shard_look *l = look;
	uint64_t done = 0;

	if (!out) {
		uint64_t left = l->bytes - l->at;

		if (n > 0)
			l->passed = n;
		n = n < left ? n : left;
		l->at += n;
		return (ssize_t)n;
	}
	while (done < n) {
		uint64_t in = l->at - l->from;
		size_t part;

		if (l->at < l->from || in >= l->have) {
			ssize_t got =
				look_window(l, l->passed < LOOK_CLOSE ? LOOK_FAR : LOOK_NEAR, e);

			if (got < 0)
				return got;
			if (got == 0)
				break;
			continue;
		}
		part = l->have - (size_t)in;
		if (part > n - done)
			part = (size_t)(n - done);
		memcpy(out + done, l->window + in, part);
		l->at += part;
		done += part;
	}
	return (ssize_t)done;
}

static int look_through(struct shard_look *l, struct tar_counts *counts, struct err *e)
{
	ssize_t got = look_window(l, LOOK_NEAR, e);

	if (got < 0)
		return (int)got;
	if (got > 0 && (l->window[0] == 0x1f || l->window[0] == 'B' || l->window[0] == 0xfd ||
			l->window[0] == 0x28)) {
		tar_source_begin(&l->source, look_piece, l, l->plain, l->memory);
		tar_walk_begin(&l->walk, tar_source_take, &l->source, l->extra);
	} else {
		tar_walk_begin(&l->walk, look_take, l, l->extra);
	}
	return tar_walk_count(&l->walk, counts, e);
}

static int webdataset_look(const struct io *io, const char *path, uint64_t bytes,
			   const struct file_spec *form, struct file_look *out, struct err *e)
{
	struct shard_look *l = try_calloc(1, sizeof(*l), "what is looked at of a shard", e);
	struct tar_counts counts;
	int rc, closed;

	(void)form;
	*out = (struct file_look){0};
	if (!l)
		return -ENOMEM;
	l->io = io;
	l->bytes = bytes;
	l->window = l->room;
	l->blob = store_blob_new(io->store, e);
	rc = l->blob ? io_open(io, path, STORE_READ, l->blob, e) : -ENOMEM;
	if (rc == 0) {
		rc = look_through(l, &counts, e);
		closed = io_close(io, l->blob, rc == 0 ? e : NULL);
		rc = rc == 0 ? closed : rc;
	}
	if (rc == 0)
		*out = (struct file_look){
			.samples = counts.samples,
			.sample_bytes = counts.samples ? counts.bytes / counts.samples : 0,
			.most_bytes = counts.most_bytes};
	if (l->blob)
		free(l->blob);
	free(l);
	return rc;
}

static int webdataset_reader_close(struct reader *r, struct err *e)
{
	return stream_close(r, 0, e);
}

static const char *const other_extensions[] = {"tgz", "tar.gz", NULL};

const struct format_ops format_webdataset = {
	.is.name = "webdataset",
	.is.help = "WebDataset's shards: tar archives with a payload and a label for each sample.",
	.is.extension = "tar",
	.is.other_extensions = other_extensions,
	.is.flags = FORMAT_STREAM | FORMAT_FILLED | FORMAT_LISTED,
	.check = webdataset_check,
	.file_bytes = webdataset_file_bytes,
	.put = webdataset_put,
	.reader_bytes = webdataset_reader_bytes,
	.reader_init = webdataset_reader_init,
	.read = webdataset_read,
	.reader_close = webdataset_reader_close,
	.extent = webdataset_extent,
	.look = webdataset_look,
};
