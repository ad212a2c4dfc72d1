/* safetensors (github.com/huggingface/safetensors, format of 0.3 and later): the length of a JSON
 * header, the header padded with blanks to 8 bytes, the tensors without gaps. Its writer sorts by
 * size of element, largest first, then by name; a file here has one type of element. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/formats.h"

extern const struct checkpoint_format_ops checkpoint_safetensors;

#define HEADER_MAX 100000000u /* what the library accepts */
#define BUFFER (1u << 20)

static const char *const type_names[CHECKPOINT_DATATYPES] = {"F16", "BF16", "F32",
							     "F64", "I8",   "U8"};

struct named {
	char name[56];
	uint64_t index;
};

static void name_of_tensor(const struct checkpoint_tensor *t, char out[56])
{
	snprintf(out, 56, "%s%s%s", t->outer, t->outer[0] ? "." : "", t->key);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

/* The file's tensors in the order of their names, in w->directory. */
static const struct named *tensors_by_name(struct file_writer *w)
{
	const struct checkpoint_file *f = w->file;

	buf_reset(&w->directory);
	for (uint64_t i = 0; i < f->tensors; i++) {
		struct checkpoint_tensor t;
		struct named n = {.index = i};

		checkpoint_tensor_at(w->common->plan, f, i, &t);
		name_of_tensor(&t, n.name);
		buf_append(&w->directory, &n, sizeof(n));
	}
	if (f->tensors)
		qsort(w->directory.data, (size_t)f->tensors, sizeof(struct named), by_name);
	return (const struct named *)(const void *)w->directory.data;
}

static void safetensors_write(struct file_writer *w, unsigned part)
{
	const struct named *order = tensors_by_name(w);
	uint64_t at = 0;
	unsigned char length[8];

	(void)part;
	buf_reset(&w->meta);
	buf_puts(&w->meta, "{\"__metadata__\":{\"format\":\"pt\"}");
	for (uint64_t i = 0; i < w->file->tensors; i++) {
		struct checkpoint_tensor t;

		checkpoint_tensor_at(w->common->plan, w->file, order[i].index, &t);
		buf_printf(&w->meta,
			   ",\"%s\":{\"dtype\":\"%s\",\"shape\":[%" PRIu64
			   "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}",
			   order[i].name, type_names[t.type], t.elements, at, at + t.bytes);
		at += t.bytes;
	}
	buf_putc(&w->meta, '}');
	while (w->meta.len % 8)
		buf_putc(&w->meta, ' ');
	for (int i = 0; i < 8; i++)
		length[i] = (unsigned char)((uint64_t)w->meta.len >> 8 * i);
	stream_put(w->stream, length, 8);
	stream_put(w->stream, w->meta.data, w->meta.len);
	for (uint64_t i = 0; i < w->file->tensors; i++) {
		const struct content_pool *pool;
		struct checkpoint_tensor t;

		checkpoint_tensor_at(w->common->plan, w->file, order[i].index, &t);
		pool = pool_of(w->common, t.type);
		stream_payload(w->stream, pool,
			       content_phase(pool, w->key, t.index, w->stream->offset), t.bytes);
	}
}

static int header_read(struct file_reader *r, uint64_t at, void *out, size_t n, struct err *e)
{
	if (at > r->file_bytes || n > r->file_bytes - at)
		return read_wrong(r, e,
				  "has %" PRIu64 " bytes, but %zu are expected at offset %" PRIu64,
				  r->file_bytes, n, at);
	if (r->way == READ_MAPPED)
		return io_map_copy(r->io, IO_META, &r->map, at, out, n, e);
	return read_meta(r, at, out, n, e);
}

/* What the header says of one tensor. */
static int check_tensor(struct file_reader *r, const json_t *header, uint64_t data,
			const struct checkpoint_tensor *t, uint64_t *begin, struct err *e)
{
	char name[56];
	const json_t *x, *shape, *offsets;
	const char *type;
	json_int_t from, to;

	name_of_tensor(t, name);
	x = json_object_get(header, name);
	shape = json_object_get(x, "shape");
	offsets = json_object_get(x, "data_offsets");
	type = json_string_value(json_object_get(x, "dtype"));
	if (!json_is_object(x) || !type || json_array_size(shape) != 1 ||
	    json_array_size(offsets) != 2)
		return read_wrong(r, e, "its header has no one-dimensional tensor '%s'", name);
	from = json_integer_value(json_array_get(offsets, 0));
	to = json_integer_value(json_array_get(offsets, 1));
	if (strcmp(type, type_names[t->type]) != 0 ||
	    json_integer_value(json_array_get(shape, 0)) != (json_int_t)t->elements)
		return read_wrong(r, e,
				  "the tensor '%s' does not have the expected %" PRIu64
				  " elements of %s",
				  name, t->elements, type_names[t->type]);
	if (from < 0 || to < from || (uint64_t)(to - from) != t->bytes ||
	    (uint64_t)to > r->file_bytes - data)
		return read_wrong(r, e,
				  "the offsets of the tensor '%s', %" PRId64 " to %" PRId64
				  ", are invalid for its size or for %" PRIu64 " bytes of data",
				  name, (int64_t)from, (int64_t)to, r->file_bytes - data);
	*begin = data + (uint64_t)from;
	return 0;
}

/* What the library refuses beside tensors: others than those expected, facts that are no texts, and
 * data that belong to none. */
static int check_rest(struct file_reader *r, const json_t *header, uint64_t data, uint64_t bytes,
		      struct err *e)
{
	json_t *facts = json_object_get(header, "__metadata__"), *fact;
	const char *key;

	json_object_foreach(facts, key, fact) if (!json_is_string(fact)) return read_wrong(
		r, e, "'%s' in its __metadata__ is not a text", key);
	if (facts && !json_is_object(facts))
		return read_wrong(r, e, "its __metadata__ is not an object");
	if (json_object_size(header) != r->file->tensors + (facts != NULL))
		return read_wrong(r, e, "its header has %zu tensors, not %" PRIu64,
				  json_object_size(header) - (facts != NULL), r->file->tensors);
	if (r->file_bytes - data != bytes)
		return read_wrong(r, e,
				  "has %" PRIu64 " bytes of data, but its tensors take %" PRIu64,
				  r->file_bytes - data, bytes);
	return 0;
}

static int read_tensors(struct file_reader *r, const json_t *header, uint64_t data, struct err *e)
{
	const struct named *order;
	uint64_t bytes = 0;
	int rc = 0;

	/* tensors are read in the order in which the writer laid them down */
	r->measure->file = r->file;
	order = tensors_by_name(r->measure);
	for (uint64_t i = 0; i < r->file->tensors && rc == 0; i++) {
		struct checkpoint_tensor t;
		uint64_t begin = 0;

		checkpoint_tensor_at(r->common->plan, r->file, order[i].index, &t);
		rc = check_tensor(r, header, data, &t, &begin, e);
		if (rc == 0)
			rc = read_payload(r, NULL, &t, begin, t.bytes, e);
		bytes += t.bytes;
	}
	return rc < 0 ? rc : check_rest(r, header, data, bytes, e);
}

static int safetensors_read(struct file_reader *r, unsigned part, struct err *e)
{
	unsigned char length[8];
	uint64_t n = 0;
	json_error_t why;
	json_t *header;
	int rc = header_read(r, 0, length, 8, e);

	(void)part;
	if (rc < 0)
		return rc;
	for (int i = 0; i < 8; i++)
		n |= (uint64_t)length[i] << 8 * i;
	if (n < 2 || n > HEADER_MAX || n > r->file_bytes - 8)
		return read_wrong(r, e,
				  "invalid header size of %" PRIu64
				  " bytes: at most %u are allowed, and the file has %" PRIu64,
				  n, HEADER_MAX, r->file_bytes);
	buf_reset(&r->meta);
	if (!buf_room(&r->meta, (size_t)n))
		return read_wrong(r, e, "no memory for its header of %" PRIu64 " bytes", n);
	rc = header_read(r, 8, r->meta.data, (size_t)n, e);
	if (rc < 0)
		return rc;
	header = json_loadb(r->meta.data, (size_t)n, JSON_REJECT_DUPLICATES, &why);
	if (!json_is_object(header)) {
		json_decref(header);
		return read_wrong(r, e, "its header is not a JSON object (byte %d: %s)",
				  why.position + 8, header ? "a different value" : why.text);
	}
	rc = read_tensors(r, header, 8 + n, e);
	json_decref(header);
	return rc;
}

const struct checkpoint_format_ops checkpoint_safetensors = {
	.is.name = "safetensors",
	.is.help = "Hugging Face's safetensors: a JSON header and the tensors; read through a "
		   "memory mapping",
	.part_suffix = {".safetensors"},
	.law = STREAM_RUST,
	.limit = BUFFER,
	.maps = true,
	.write = safetensors_write,
	.read = safetensors_read,
};
