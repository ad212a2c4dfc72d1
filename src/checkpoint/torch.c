/* torch.save of nested maps of tensors, as DLIO calls it: an archive of data.pkl, one record a
 * storage in the order of their names, version. */
#include "checkpoint/torch.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/crc.h"
#include "codec/zip.h"

/* Layout as PyTorch 1.13 writes it; vectors of its bytes are in tests/unit/test_checkpoint_torch.c.
 * Each stream_put is one call that the library makes. */

#define MARK32 0xffffffffu
#define ALIGN 64u
#define FLAGS 0x0808u /* sizes in a descriptor, names in UTF-8 */

static unsigned char *le(unsigned char *p, uint64_t v, int bytes)
{
	for (int i = 0; i < bytes; i++)
		*p++ = (unsigned char)(v >> 8 * i);
	return p;
}

void torch_zip_begin(struct torch_zip *z, struct stream *s, struct buf *directory)
{
	/* offsets of the records are those of the archive, not of the file */
	*z = (struct torch_zip){.stream = s, .directory = directory, .begin = s->offset};
	buf_reset(directory);
}

/* The zip64 field of a record: sizes and offset, those that 32 bits cannot hold. Before the data
 * the library does not know their stored size yet and says 0. */
static size_t wide_extra(const struct torch_zip *z, uint64_t stored, unsigned char *out)
{
	bool sizes = z->bytes >= MARK32, offset = z->local >= MARK32;
	unsigned char *p = out;

	if (!sizes && !offset)
		return 0;
	p = le(p, 1, 2);
	p = le(p, (sizes ? 16u : 0u) + (offset ? 8u : 0u), 2);
	if (sizes) {
		p = le(p, z->bytes, 8);
		p = le(p, stored, 8);
	}
	if (offset)
		p = le(p, z->local, 8);
	return (size_t)(p - out);
}

void torch_zip_record(struct torch_zip *z, const char *name, uint64_t bytes)
{
	unsigned char header[30], extra[32], pad[4 + ALIGN], *p = header;
	size_t wide, name_bytes, padding;

	snprintf(z->name, sizeof(z->name), "archive/%s", name);
	name_bytes = strlen(z->name);
	assert(name_bytes < sizeof(z->name) - 1); /* none was cut */
	z->local = z->stream->offset - z->begin;
	z->bytes = bytes;
	wide = wide_extra(z, 0, extra);
	z->wide = wide > 0;
	padding = (size_t)(z->local + sizeof(header) + name_bytes + wide + 4) % ALIGN;
	padding = (ALIGN - padding) % ALIGN;
	p = le(p, 0x04034b50, 4);
	p = le(p, 0, 2);
	p = le(p, FLAGS, 2);
	memset(p, 0, 18); /* stored, no time; CRC and sizes follow the data */
	p = le(p + 18, name_bytes, 2);
	le(p, wide + 4 + padding, 2);
	stream_put(z->stream, header, sizeof(header));
	stream_put(z->stream, z->name, name_bytes);
	if (wide)
		stream_put(z->stream, extra, wide);
	memcpy(pad, "FB", 2);
	le(pad + 2, padding, 2);
	memset(pad + 4, 'Z', padding);
	stream_put(z->stream, pad, 4 + padding);
}

void torch_zip_record_end(struct torch_zip *z, uint32_t crc)
{
	unsigned char d[24], extra[32], header[46], *p = d;
	size_t wide = wide_extra(z, z->bytes, extra), name_bytes = strlen(z->name);

	p = le(p, 0x08074b50, 4);
	p = le(p, crc, 4);
	p = le(p, z->bytes, z->wide ? 8 : 4);
	p = le(p, z->bytes, z->wide ? 8 : 4);
	stream_put(z->stream, d, (size_t)(p - d));

	memset(header, 0, sizeof(header));
	le(header, 0x02014b50, 4);
	le(header + 8, FLAGS, 2);
	le(header + 16, crc, 4);
	le(header + 20, z->bytes < MARK32 ? z->bytes : MARK32, 4);
	le(header + 24, z->bytes < MARK32 ? z->bytes : MARK32, 4);
	le(header + 28, name_bytes, 2);
	le(header + 30, wide, 2);
	le(header + 42, z->local < MARK32 ? z->local : MARK32, 4);
	buf_append(z->directory, header, sizeof(header));
	buf_append(z->directory, z->name, name_bytes);
	if (wide)
		buf_append(z->directory, extra, wide);
	z->entries++;
}

void torch_zip_put(struct torch_zip *z, const char *name, const void *bytes, size_t n)
{
	torch_zip_record(z, name, n);
	stream_put(z->stream, bytes, n);
	torch_zip_record_end(z, crc32_update(0, bytes, n));
}

void torch_zip_end(struct torch_zip *z)
{
	const uint64_t at = z->stream->offset - z->begin, n = z->directory->len;
	unsigned char e[56], *p = e;

	stream_put(z->stream, z->directory->data, z->directory->len);
	p = le(p, 0x06064b50, 4);
	p = le(p, 44, 8);
	p = le(p, 0x031e, 2);
	p = le(p, 0x2d, 2);
	p = le(p, 0, 8);
	p = le(p, z->entries, 8);
	p = le(p, z->entries, 8);
	p = le(p, n, 8);
	le(p, at, 8);
	stream_put(z->stream, e, 56);
	p = le(e, 0x07064b50, 4);
	p = le(p, 0, 4);
	p = le(p, at + n, 8);
	le(p, 1, 4);
	stream_put(z->stream, e, 20);
	p = le(e, 0x06054b50, 4);
	p = le(p, 0, 4);
	p = le(p, z->entries < 0xffff ? z->entries : 0xffff, 2);
	p = le(p, z->entries < 0xffff ? z->entries : 0xffff, 2);
	p = le(p, n < MARK32 ? n : MARK32, 4);
	p = le(p, at < MARK32 ? at : MARK32, 4);
	le(p, 0, 2);
	stream_put(z->stream, e, 22);
}

extern const struct checkpoint_format_ops checkpoint_torch;

#define TAIL_STEP 4096u

struct map_writer {
	struct pickle_writer p;
	struct file_writer *w;
	struct checkpoint_tensor t; /* the next one */
	uint64_t next, end;
};

static void load_next(struct map_writer *m)
{
	if (m->next < m->end)
		checkpoint_tensor_at(m->w->common->plan, m->w->file, m->next, &m->t);
}

static void pickle_next_tensor(struct map_writer *m)
{
	char key[24];

	snprintf(key, sizeof(key), "%" PRIu64, m->t.index);
	pickle_tensor(&m->p, m->t.type, key, m->t.elements);
	m->next++;
	load_next(m);
}

/* Tensors from m->next on with the same outer key. */
static uint64_t inner_count(const struct map_writer *m)
{
	struct checkpoint_tensor t = m->t;
	uint64_t n = 1;

	for (; m->next + n < m->end; n++) {
		checkpoint_tensor_at(m->w->common->plan, m->w->file, m->next + n, &t);
		if (strcmp(t.outer, m->t.outer) != 0)
			break;
	}
	return n;
}

/* Items of the outermost map. */
static uint64_t outer_count(struct map_writer *m)
{
	const struct checkpoint_file *f = m->w->file;
	struct checkpoint_tensor t;
	char last[sizeof(t.outer)] = "";
	uint64_t n = 0;

	if (f->shared)
		return (uint64_t)(f->last_layer - f->first_layer + 1);
	if (!f->by_layer)
		return m->end;
	for (uint64_t i = 0; i < m->end; i++) {
		checkpoint_tensor_at(m->w->common->plan, f, i, &t);
		if (!t.outer[0] || strcmp(t.outer, last) != 0)
			n++;
		memcpy(last, t.outer, sizeof(last));
	}
	return n;
}

static int64_t inner_map(struct map_writer *m)
{
	uint64_t n = inner_count(m);
	int64_t place;

	pickle_op(&m->p, PICKLE_OP_EMPTY_DICT);
	place = pickle_put(&m->p);
	for (uint64_t i = 0; i < n; i++) {
		pickle_item(&m->p, i, n);
		pickle_key(&m->p, m->t.key);
		pickle_next_tensor(m);
	}
	pickle_item(&m->p, n, n);
	return place;
}

static void pickle_file(struct file_writer *w)
{
	const struct checkpoint_file *f = w->file;
	struct map_writer m = {.w = w, .end = f->tensors};
	int64_t shared = -1;
	uint64_t n;

	buf_reset(&w->meta);
	pickle_begin(&m.p, &w->meta);
	n = outer_count(&m);
	load_next(&m);
	pickle_op(&m.p, PICKLE_OP_EMPTY_DICT);
	pickle_put(&m.p);
	for (uint64_t i = 0; i < n; i++) {
		pickle_item(&m.p, i, n);
		if (f->shared && i > 0) {
			char key[24];

			snprintf(key, sizeof(key), "%" PRId64, f->first_layer + (int64_t)i);
			pickle_key(&m.p, key);
			pickle_get(&m.p, shared);
		} else if (m.t.outer[0]) {
			pickle_key(&m.p, m.t.outer);
			shared = inner_map(&m);
		} else {
			pickle_key(&m.p, m.t.key);
			pickle_next_tensor(&m);
		}
	}
	pickle_item(&m.p, n, n);
	pickle_end(&m.p);
}

static void pickle_single(struct file_writer *w, uint64_t index)
{
	struct checkpoint_tensor t;
	struct pickle_writer p;

	checkpoint_tensor_at(w->common->plan, w->file, index, &t);
	buf_reset(&w->meta);
	pickle_begin(&p, &w->meta);
	pickle_tensor(&p, t.type, "0", t.elements);
	pickle_end(&p);
}

static void write_storage(struct file_writer *w, struct torch_zip *z, uint64_t index, uint64_t name)
{
	const struct content_pool *pool;
	struct checkpoint_tensor t;
	uint64_t phase;
	char record[40];

	checkpoint_tensor_at(w->common->plan, w->file, index, &t);
	pool = pool_of(w->common, t.type);
	snprintf(record, sizeof(record), "data/%" PRIu64, name);
	torch_zip_record(z, record, t.bytes);
	phase = content_phase(pool, w->key, index, w->stream->offset);
	stream_payload(w->stream, pool, phase, t.bytes);
	torch_zip_record_end(z, w->stream->blob ? content_crc(pool, phase, t.bytes) : 0);
}

/* PyTorch 2 derives these digits from the names and CRCs of the records; nothing reads them. */
static void serialization_id(const struct torch_zip *z, char out[41])
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < z->directory->len; i++)
		h = (h ^ (unsigned char)z->directory->data[i]) * 0x100000001b3u;
	snprintf(out, 41, "%020" PRIu64 "%020" PRIu64, h, h * 0x9e3779b97f4a7c15u);
}

void torch_archive(struct file_writer *w, uint64_t first, uint64_t tensors, bool single)
{
	const bool newer = w->common->torch == TORCH_2;
	struct torch_zip z;

	if (single)
		pickle_single(w, first);
	else
		pickle_file(w);
	torch_zip_begin(&z, w->stream, &w->directory);
	torch_zip_put(&z, "data.pkl", w->meta.data, w->meta.len);
	if (newer) {
		torch_zip_put(&z, ".format_version", "1", 1);
		torch_zip_put(&z, ".storage_alignment", "64", 2);
		torch_zip_put(&z, "byteorder", "little", 6);
	}
	for (uint64_t i = 0; i < tensors; i = torch_next_name(i, tensors))
		write_storage(w, &z, first + i, i);
	torch_zip_put(&z, "version", "3\n", 2);
	if (newer) {
		char id[41];

		serialization_id(&z, id);
		torch_zip_put(&z, ".data/serialization_id", id, 40);
	}
	torch_zip_end(&z);
}

uint64_t torch_next_name(uint64_t x, uint64_t n)
{
	if (x > 0 && x * 10 < n)
		return x * 10;
	if (x == 0)
		return n > 1 ? 1 : n;
	while (x % 10 == 9 || x + 1 >= n) {
		x /= 10;
		if (x == 0)
			return n;
	}
	return x + 1;
}

/* ---- reading ----
 *
 * torch.load: find the directory from the end, read the record "version", data.pkl, then each
 * storage in the order in which the pickle names it. PyTorch 1.13 asks its file object for these
 * ranges; the object's buffer makes the requests of them (strace in tests/interop). */

struct archive_record {
	char name[64]; /* without the archive's own name */
	uint64_t local, bytes;
	uint32_t crc;
};

struct archive {
	struct file_reader *r;
	uint64_t begin, end;
	struct pybuffer py;
	bool buffered; /* py is in use */
	struct archive_record *entry;
	size_t entries;
	torch_tensor_fn fn;
	void *arg;
};

/* A range of the archive. */
static int archive_read(struct archive *a, uint64_t at, void *out, size_t n, struct err *e)
{
	ssize_t got;

	if (at > a->end - a->begin || n > a->end - a->begin - at)
		return read_wrong(a->r, e,
				  "%zu bytes at offset %" PRIu64 " are outside the archive", n,
				  a->begin + at);
	if (!a->buffered)
		return read_meta(a->r, a->begin + at, out, n, e);
	pybuffer_seek(&a->py, a->begin + at);
	got = pybuffer_readinto(&a->py, out, n, e);
	if (got < 0)
		return err_name((int)got, e, "reading '%s'", a->r->path);
	if ((size_t)got < n)
		return read_wrong(a->r, e, "%zu bytes at offset %" PRIu64 " are missing", n,
				  a->begin + at);
	return 0;
}

static int find_directory(struct archive *a, struct zip_end *end, struct err *e)
{
	uint64_t size = a->end - a->begin, record, at64;
	size_t n = size < TAIL_STEP ? (size_t)size : TAIL_STEP;
	unsigned char tail[TAIL_STEP];
	int rc = archive_read(a, size - n, tail, n, e);

	if (rc == 0)
		rc = zip_parse_end(tail, n, size, end, &record, e);
	/* the library reads each record again, although the bytes are in its buffer */
	if (rc == 0)
		rc = archive_read(a, record, tail, ZIP_EOCD_BYTES, e);
	if (rc < 0 || record < ZIP64_LOCATOR_BYTES)
		return rc;
	rc = archive_read(a, record - ZIP64_LOCATOR_BYTES, tail, ZIP64_LOCATOR_BYTES, e);
	if (rc < 0 || !zip_parse_locator(tail, &at64))
		return rc < 0 || !end->needs_zip64 ? rc : zip_end_without_zip64(end, record, e);
	if (at64 > size - ZIP64_EOCD_BYTES)
		return read_wrong(a->r, e, "its zip64 record is outside the archive");
	rc = archive_read(a, at64, tail, ZIP64_EOCD_BYTES, e);
	return rc < 0 ? rc : zip_parse_end64(tail, ZIP64_EOCD_BYTES, size, end, e);
}

static int by_record_name(const void *a, const void *b)
{
	return strcmp(((const struct archive_record *)a)->name,
		      ((const struct archive_record *)b)->name);
}

static int read_directory(struct archive *a, struct err *e)
{
	struct zip_end end = {0};
	struct zip_entry z;
	size_t pos = 0;
	int rc = find_directory(a, &end, e);

	if (rc < 0)
		return rc;
	if (end.directory_bytes > TORCH_META_MAX)
		return read_wrong(a->r, e, "its directory of %" PRIu64 " bytes is too large",
				  end.directory_bytes);
	buf_reset(&a->r->meta);
	if (!buf_room(&a->r->meta, (size_t)end.directory_bytes))
		return read_wrong(a->r, e, "no memory for its directory");
	rc = archive_read(a, end.directory_offset, a->r->meta.data, (size_t)end.directory_bytes, e);
	a->entry = rc < 0 ? NULL : calloc(end.entries ? (size_t)end.entries : 1, sizeof(*a->entry));
	if (rc == 0 && !a->entry)
		return read_wrong(a->r, e, "no memory for its %" PRIu64 " records", end.entries);
	while (rc >= 0) {
		const char *slash;

		rc = zip_next_entry(a->r->meta.data, (size_t)end.directory_bytes, &pos,
				    end.directory_offset, &z, e);
		if (rc <= 0)
			break;
		slash = strchr(z.name, '/');
		if (a->entries == end.entries || z.method != ZIP_STORED)
			return read_wrong(
				a->r, e,
				a->entries == end.entries
					? "its directory has more members than declared"
					: "a member is compressed, which torch.save never does");
		snprintf(a->entry[a->entries].name, sizeof(a->entry->name), "%.63s",
			 slash ? slash + 1 : z.name);
		a->entry[a->entries].local = z.local_offset;
		a->entry[a->entries].crc = z.crc;
		a->entry[a->entries++].bytes = z.bytes;
	}
	if (rc == 0)
		qsort(a->entry, a->entries, sizeof(*a->entry), by_record_name);
	return rc;
}

static struct archive_record *find_record(const struct archive *a, const char *name)
{
	struct archive_record key;

	snprintf(key.name, sizeof(key.name), "%s", name);
	return a->entries ? bsearch(&key, a->entry, a->entries, sizeof(key), by_record_name) : NULL;
}

/* Reads the record's local header; *place gets where its data begin in the archive. */
static int locate_record(struct archive *a, const struct archive_record *x, uint64_t *place,
			 struct err *e)
{
	unsigned char header[ZIP_LOCAL_BYTES];
	uint32_t skip = 0;
	int rc = archive_read(a, x->local, header, sizeof(header), e);

	if (rc == 0)
		rc = zip_parse_local(header, sizeof(header), x->local, &skip, e);
	*place = x->local + ZIP_LOCAL_BYTES + skip;
	if (rc == 0 && (*place > a->end - a->begin || x->bytes > a->end - a->begin - *place))
		rc = read_wrong(a->r, e, "the record '%s' extends beyond the archive", x->name);
	return rc;
}

static int on_tensor(void *arg, const struct pickle_tensor *t, struct err *e)
{
	struct archive *a = arg;
	const struct archive_record *x;
	char name[80];
	uint64_t place;
	int rc;

	snprintf(name, sizeof(name), "data/%s", t->storage);
	x = find_record(a, name);
	if (!x)
		return read_wrong(a->r, e, "the tensor '%s' has no record '%s'", t->name, name);
	rc = locate_record(a, x, &place, e);
	if (rc == 0)
		rc = a->fn(a->arg, t, a->begin + place, x->bytes, a->buffered ? &a->py : NULL, e);
	return rc;
}

/* A record that says what the tensors are. PyTorch does not look at the CRC; who compares every
 * byte that was read back does: another name or type of a tensor is as bad as other elements. */
static int check_record(struct archive *a, const struct archive_record *x, const void *bytes,
			struct err *e)
{
	if (!a->r->verify || crc32_update(0, bytes, (size_t)x->bytes) == x->crc)
		return 0;
	return read_wrong(a->r, e,
			  "its record '%s' does not have the CRC that the directory says: it "
			  "differs from what was written",
			  x->name);
}

static int read_pickle(struct archive *a, struct err *e)
{
	const struct archive_record *version = find_record(a, "version"),
				    *x = find_record(a, "data.pkl");
	char text[64];
	uint64_t place;
	int rc;

	if (!x || !version)
		return read_wrong(
			a->r, e,
			"the record '%s' is missing: the file was not written by torch.save",
			x ? "version" : "data.pkl");
	if (version->bytes >= sizeof(text) || x->bytes > TORCH_META_MAX)
		return read_wrong(a->r, e, "its record '%s' is too large",
				  version->bytes >= sizeof(text) ? "version" : "data.pkl");
	rc = locate_record(a, version, &place, e) ?:
	     archive_read(a, place, text, (size_t)version->bytes, e) ?:
	     check_record(a, version, text, e) ?:
	     locate_record(a, x, &place, e);
	buf_reset(&a->r->meta);
	if (rc == 0 && !buf_room(&a->r->meta, (size_t)x->bytes))
		rc = read_wrong(a->r, e, "no memory for its pickle of %" PRIu64 " bytes", x->bytes);
	if (rc == 0)
		rc = archive_read(a, place, a->r->meta.data, (size_t)x->bytes, e) ?:
		     check_record(a, x, a->r->meta.data, e) ?:
		     pickle_read_tensors(a->r->meta.data, (size_t)x->bytes, TORCH_META_MAX * 4ull,
					 on_tensor, a, e);
	return rc;
}

/* Whether it is a zip file at all is asked first, a byte at a time, then the size. */
static int begin_buffered(struct archive *a, size_t buffer, struct err *e)
{
	unsigned char magic[8];
	size_t n = a->end - a->begin < 8 ? (size_t)(a->end - a->begin) : 8;
	int rc;

	pybuffer_start(&a->py, a->r->io, a->r->blob, a->r->common->python, a->r->file_bytes,
		       a->r->buffer, buffer);
	a->buffered = true;
	rc = archive_read(a, 0, magic, n < 4 ? n : 4, e);
	pybuffer_seek_end(&a->py, 0);
	return rc < 0 ? rc : archive_read(a, 0, magic, n, e);
}

int torch_read_archive(struct file_reader *r, uint64_t begin, uint64_t end, size_t buffer,
		       torch_tensor_fn fn, void *arg, struct err *e)
{
	struct archive a = {.r = r, .begin = begin, .end = end, .fn = fn, .arg = arg};
	int rc = 0;

	if (r->way == READ_FRAMEWORK)
		rc = begin_buffered(&a, buffer, e);
	if (rc == 0)
		rc = read_directory(&a, e) ?: read_pickle(&a, e);
	free(a.entry);
	return rc;
}

int torch_expect(struct file_reader *r, const struct pickle_tensor *t,
		 const struct checkpoint_tensor *want, uint64_t bytes, struct err *e)
{
	if (strcmp(t->type, pickle_storage_names[want->type]) != 0 || t->rank != 1 ||
	    t->dims[0] != want->elements || t->offset != 0 || t->storage_elements != want->elements)
		return read_wrong(r, e,
				  "the tensor '%s' has %" PRIu64
				  " elements of %s instead of the expected %" PRIu64 " of %s",
				  t->name, t->rank == 1 ? t->dims[0] : t->storage_elements, t->type,
				  want->elements, pickle_storage_names[want->type]);
	if (bytes != want->bytes)
		return read_wrong(
			r, e, "the record of the tensor '%s' has %" PRIu64 " bytes, not %" PRIu64,
			t->name, bytes, want->bytes);
	return 0;
}

struct expected {
	struct file_reader *r;
	uint64_t next;
};

static int read_expected(void *arg, const struct pickle_tensor *t, uint64_t place, uint64_t bytes,
			 struct pybuffer *py, struct err *e)
{
	struct expected *x = arg;
	const struct checkpoint_file *f = x->r->file;
	struct checkpoint_tensor want;
	char name[64];
	int rc;

	/* layers that are one object are read once */
	if (f->shared && x->next >= f->tensors) {
		x->next++;
		return 0;
	}
	if (x->next == f->tensors)
		return read_wrong(x->r, e, "it has more tensors than the expected %" PRIu64,
				  f->tensors);
	checkpoint_tensor_at(x->r->common->plan, f, x->next++, &want);
	snprintf(name, sizeof(name), "%s%s%s", want.outer, want.outer[0] ? "." : "", want.key);
	if (strcmp(name, t->name) != 0)
		return read_wrong(x->r, e, "found the tensor '%s' where '%s' is expected", t->name,
				  name);
	rc = torch_expect(x->r, t, &want, bytes, e);
	return rc < 0 ? rc : read_payload(x->r, py, &want, place, bytes, e);
}

static int read_file(struct file_reader *r, unsigned part, struct err *e)
{
	struct expected x = {.r = r};
	int rc;

	(void)part;
	rc = torch_read_archive(r, 0, r->file_bytes, r->buffer_bytes, read_expected, &x, e);

	if (rc == 0 && x.next < r->file->tensors)
		rc = read_wrong(r, e, "%" PRIu64 " of %" PRIu64 " tensors are missing",
				r->file->tensors - x.next, r->file->tensors);
	return rc;
}

/* ---- the format ---- */

static void torch_write(struct file_writer *w, unsigned part)
{
	(void)part;
	torch_archive(w, 0, w->file->tensors, false);
}

const struct checkpoint_format_ops checkpoint_torch = {
	.is.name = "torch",
	.is.help = "torch.save: a zip archive with a pickle and one record per tensor",
	.is.default_of = 1u << FRAMEWORK_PYTORCH,
	.part_suffix = {".pt"},
	.law = STREAM_PYTHON,
	.write = torch_write,
	.read = read_file,
};
