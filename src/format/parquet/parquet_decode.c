/* Decoding pages of Parquet files. */
#include "format/parquet/parquet_decode.h"

#include <string.h>

#include "format/parquet/parquet_layout.h"
#include "format/parquet/parquet_codec.h"
#include "format/parquet/parquet_delta.h"

struct window {
	const unsigned char *at, *end;
};

static int damaged(const char *what, struct err *e)
{
	return err_set(e, ERR_DATA, "a page is damaged: %s", what);
}

static size_t left(const struct window *s)
{
	return (size_t)(s->end - s->at);
}

static uint32_t load32(const unsigned char *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static unsigned width_of_type(const struct parquet_decoder *d)
{
	static const unsigned char width[] = {1, 4, 8, 12, 4, 8, 0};

	return d->type == PARQUET_FIXED ? d->width : width[d->type];
}

void parquet_decoder_begin(struct parquet_decoder *d, int type, int type_length, int codec,
			   unsigned definition_max, unsigned repetition_max)
{
	d->type = type;
	d->width = type == PARQUET_FIXED ? (uint32_t)type_length : 0;
	d->codec = codec;
	d->definition_max = definition_max;
	d->repetition_max = repetition_max;
	d->entries = 0;
	d->levels = 0;
}

/* ---- the hybrid of runs and packed bits ---- */

struct hybrid {
	struct window in;
	unsigned bits;
	uint64_t run, packed; /* left of either */
	uint32_t value;
	uint64_t have;
	unsigned have_bits;
};

static int hybrid_next_run(struct hybrid *h, struct err *e)
{
	struct thrift_in in = {h->in.at, h->in.at, h->in.end};
	unsigned bytes = (h->bits + 7) / 8;
	uint64_t head = 0;

	if (thrift_varint(&in, &head, NULL) < 0)
		return damaged("its levels or indices are cut off", e);
	h->in.at = in.at;
	if (head & 1) {
		h->packed = head >> 1;
		if (h->packed > left(&h->in) || h->packed * h->bits > left(&h->in))
			return damaged("its levels or indices are cut off", e);
		h->packed *= 8;
		h->have_bits = 0;
		h->have = 0;
		return 0;
	}
	if (bytes > left(&h->in))
		return damaged("its levels or indices are cut off", e);
	h->run = head >> 1;
	h->value = 0;
	for (unsigned i = 0; i < bytes; i++)
		h->value |= (uint32_t)h->in.at[i] << (8 * i);
	h->in.at += bytes;
	return 0;
}

static uint32_t hybrid_packed(struct hybrid *h)
{
	uint32_t v;

	while (h->have_bits < h->bits) {
		h->have |= (uint64_t)*h->in.at++ << h->have_bits;
		h->have_bits += 8;
	}
	v = (uint32_t)(h->have & (((uint64_t)1 << h->bits) - 1));
	h->have >>= h->bits;
	h->have_bits -= h->bits;
	return v;
}

/* Up to n of them; fewer only with an error. */
static int hybrid_take(struct hybrid *h, uint32_t *out, size_t n, struct err *e)
{
	for (size_t i = 0; i < n;) {
		if (h->run == 0 && h->packed == 0) {
			/* an empty run, of which there may be many, takes input */
			int rc = hybrid_next_run(h, e);

			if (rc < 0)
				return rc;
		}
		for (; h->run > 0 && i < n; h->run--)
			out[i++] = h->value;
		for (; h->packed > 0 && i < n; h->packed--)
			out[i++] = hybrid_packed(h);
	}
	return 0;
}

static unsigned bits_of(unsigned max)
{
	unsigned bits = 0;

	while (max >> bits)
		bits++;
	return bits;
}

#define AT_ONCE 512u

/* How many of n levels are `max`. */
static int count_levels(struct window in, unsigned max, uint64_t n, uint64_t *out, struct err *e)
{
	struct hybrid h = {.in = in, .bits = bits_of(max)};

	*out = 0;
	while (n > 0) {
		int rc = h.run || h.packed ? 0 : hybrid_next_run(&h, e);
		uint64_t part = h.run < n ? h.run : n;

		if (rc < 0)
			return rc;
		/* a run at once */
		if (h.value == max)
			*out += part;
		h.run -= part;
		n -= part;
		for (; h.packed > 0 && n > 0; h.packed--, n--)
			*out += hybrid_packed(&h) == max;
	}
	return 0;
}

/* ---- values ---- */

/* n values of byte arrays: their bytes with the lengths. */
static int byte_arrays(struct window *in, uint64_t n, size_t *bytes, struct err *e)
{
	const unsigned char *from = in->at;

	for (uint64_t i = 0; i < n; i++) {
		if (left(in) < 4 || load32(in->at) > left(in) - 4)
			return damaged("a text is cut off", e);
		in->at += 4 + (size_t)load32(in->at);
	}
	*bytes = (size_t)(in->at - from);
	return 0;
}

static int plain(struct parquet_decoder *d, struct window in, uint64_t n, parquet_values_fn *values,
		 void *arg, struct err *e)
{
	unsigned width = width_of_type(d);
	size_t bytes = 0;
	int rc = 0;

	if (d->type == PARQUET_BOOLEAN) {
		if ((n + 7) / 8 > left(&in))
			return damaged("values are cut off", e);
		for (uint64_t done = 0; rc == 0 && done < n;) {
			size_t part = n - done < PARQUET_SCRATCH_BYTES ? (size_t)(n - done)
								       : PARQUET_SCRATCH_BYTES;

			for (size_t i = 0; i < part; i++)
				d->scratch[i] = in.at[(done + i) / 8] >> (done + i) % 8 & 1;
			rc = values(arg, d->scratch, part, part, e);
			done += part;
		}
		return rc;
	}
	if (d->type == PARQUET_BYTE_ARRAY) {
		const unsigned char *from = in.at;

		rc = byte_arrays(&in, n, &bytes, e);
		return rc < 0 ? rc : values(arg, from, n, bytes, e);
	}
	if (n > left(&in) / width)
		return damaged("values are cut off", e);
	return values(arg, in.at, n, n * width, e);
}

static int split(struct parquet_decoder *d, struct window in, uint64_t n, parquet_values_fn *values,
		 void *arg, struct err *e)
{
	unsigned width = width_of_type(d);
	int rc = 0;

	if (width == 0 || width > PARQUET_SCRATCH_BYTES || d->type == PARQUET_BOOLEAN ||
	    n > left(&in) / width)
		return damaged("its split streams are cut off", e);
	for (uint64_t done = 0; rc == 0 && done < n;) {
		size_t most = PARQUET_SCRATCH_BYTES / width;
		size_t part = n - done < most ? (size_t)(n - done) : most;

		for (size_t i = 0; i < part; i++)
			for (unsigned k = 0; k < width; k++)
				d->scratch[i * width + k] = in.at[k * n + done + i];
		rc = values(arg, d->scratch, part, part * width, e);
		done += part;
	}
	return rc;
}

static int keep_dictionary(struct parquet_decoder *d, struct window in, uint32_t n, struct err *e)
{
	unsigned width = width_of_type(d);
	size_t bytes = left(&in), at = 0;

	if (bytes > d->dictionary_room || n > d->dictionary_room / 4 || d->type == PARQUET_BOOLEAN)
		return err_set(e, ERR_DATA,
			       "a dictionary of %zu bytes is larger than the reader's room of %zu",
			       bytes, d->dictionary_room);
	memcpy(d->dictionary, in.at, bytes);
	for (uint32_t i = 0; i < n; i++) {
		if (d->type == PARQUET_BYTE_ARRAY) {
			if (bytes - at < 4 || load32(in.at + at) > bytes - at - 4)
				return damaged("a text of the dictionary is cut off", e);
			d->place[i] = (uint32_t)at;
			at += 4 + (size_t)load32(in.at + at);
		} else {
			if (bytes - at < width)
				return damaged("a value of the dictionary is cut off", e);
			d->place[i] = (uint32_t)at;
			at += width;
		}
	}
	d->place[n] = (uint32_t)at;
	d->entries = n;
	return 0;
}

static int look_up(struct parquet_decoder *d, struct window in, uint64_t n,
		   parquet_values_fn *values, void *arg, struct err *e)
{
	struct hybrid h = {.in = in};
	uint32_t index[AT_ONCE];
	int rc = 0;

	if (n == 0)
		return 0;
	if (left(&in) < 1 || in.at[0] > 32)
		return damaged("its indices have no width", e);
	h.bits = *h.in.at++;
	for (uint64_t done = 0; rc == 0 && done < n;) {
		size_t part = n - done < AT_ONCE ? (size_t)(n - done) : AT_ONCE, used = 0, from = 0;

		rc = hybrid_take(&h, index, part, e);
		for (size_t i = 0; rc == 0 && i < part; i++) {
			const unsigned char *value;
			size_t bytes;

			if (index[i] >= d->entries)
				return damaged("an index lies outside of the dictionary", e);
			value = d->dictionary + d->place[index[i]];
			bytes = d->place[index[i] + 1] - d->place[index[i]];
			if (bytes > PARQUET_SCRATCH_BYTES - used && used > 0) {
				rc = values(arg, d->scratch, i - from, used, e);
				from = i;
				used = 0;
			}
			if (rc == 0 && bytes > PARQUET_SCRATCH_BYTES) {
				rc = values(arg, value, 1, bytes, e);
				from = i + 1;
			} else if (rc == 0) {
				memcpy(d->scratch + used, value, bytes);
				used += bytes;
			}
		}
		if (rc == 0 && part > from)
			rc = values(arg, d->scratch, part - from, used, e);
		done += part;
	}
	return rc;
}

static int run_of_bools(struct parquet_decoder *d, struct window in, uint64_t n,
			parquet_values_fn *values, void *arg, struct err *e)
{
	struct hybrid h = {.in = in, .bits = 1};
	uint32_t v[AT_ONCE];
	int rc = 0;

	if (d->type != PARQUET_BOOLEAN || left(&in) < 4)
		return damaged("only booleans are coded as runs", e);
	h.in.at += 4;
	for (uint64_t done = 0; rc == 0 && done < n;) {
		size_t part = n - done < AT_ONCE ? (size_t)(n - done) : AT_ONCE;

		rc = hybrid_take(&h, v, part, e);
		for (size_t i = 0; i < part && rc == 0; i++)
			d->scratch[i] = (unsigned char)v[i];
		if (rc == 0)
			rc = values(arg, d->scratch, part, part, e);
		done += part;
	}
	return rc;
}

static int decode_values(struct parquet_decoder *d, int encoding, struct window in, uint64_t n,
			 parquet_values_fn *values, void *arg, struct err *e)
{
	switch (encoding) {
	case PARQUET_PLAIN:
		return plain(d, in, n, values, arg, e);
	case PARQUET_PLAIN_DICTIONARY:
	case PARQUET_RLE_DICTIONARY:
		return look_up(d, in, n, values, arg, e);
	case PARQUET_RLE:
		return run_of_bools(d, in, n, values, arg, e);
	case PARQUET_BYTE_STREAM_SPLIT:
		return split(d, in, n, values, arg, e);
	case PARQUET_DELTA_BINARY_PACKED:
	case PARQUET_DELTA_LENGTH_BYTE_ARRAY:
	case PARQUET_DELTA_BYTE_ARRAY:
		return parquet_delta(d, encoding, in.at, left(&in), n, values, arg, e);
	default:
		return err_set(e, ERR_ABSENT,
			       "the values of a page are encoded as %s (%d), which is not decoded: "
			       "reader.decode none needs no decoding",
			       encoding == 4 ? "BIT_PACKED" : "something unknown", encoding);
	}
}

/* Levels of a data page V1 in front of its values. */
static int levels_v1(struct window *in, unsigned max, uint64_t n, uint64_t *most, struct err *e)
{
	struct window levels;
	uint64_t ignored;
	int rc;

	if (max == 0)
		return 0;
	if (left(in) < 4 || load32(in->at) > left(in) - 4)
		return damaged("its levels are cut off", e);
	levels = (struct window){in->at + 4, in->at + 4 + load32(in->at)};
	in->at = levels.end;
	rc = count_levels(levels, max, n, most ? most : &ignored, e);
	return rc;
}

int parquet_decode_page(struct parquet_decoder *d, const struct parquet_page_head *h,
			const unsigned char *payload, parquet_values_fn *values, void *arg,
			struct err *e)
{
	bool v2 = h->type == PARQUET_DATA_PAGE_V2;
	uint64_t levels = v2 ? (uint64_t)h->definition_bytes + h->repetition_bytes : 0;
	uint64_t present = h->values;
	struct window in;
	int rc = 0;

	if (levels > h->stored || levels > h->raw)
		return damaged("its levels are longer than the page", e);
	in = (struct window){payload + levels, payload + h->stored};
	if (d->codec != PARQUET_PLAIN_BYTES && !(v2 && h->plain)) {
		size_t raw = h->raw - (size_t)levels;

		if (raw > d->raw_room)
			return err_set(e, ERR_DATA,
				       "a page of %zu bytes is larger than the reader's room of "
				       "%zu",
				       raw, d->raw_room);
		/* a V2 page without values has nothing that was compressed */
		if (raw > 0 || left(&in) > 0)
			rc = parquet_decompress(d->codec, in.at, left(&in), d->raw, raw,
						&d->inflater, e);
		in = (struct window){d->raw, d->raw + raw};
	} else if (h->raw != h->stored) {
		return damaged("its two lengths differ", e);
	}
	if (rc < 0)
		return rc;
	if (h->type == PARQUET_DICTIONARY_PAGE)
		return keep_dictionary(d, in, h->values, e);
	if (h->type != PARQUET_DATA_PAGE && !v2)
		return 0;
	if (v2 && d->definition_max)
		rc = count_levels((struct window){payload + h->repetition_bytes, payload + levels},
				  d->definition_max, h->values, &present, e);
	if (!v2)
		rc = levels_v1(&in, d->repetition_max, h->values, NULL, e)
			     ?: levels_v1(&in, d->definition_max, h->values, &present, e);
	if (rc < 0)
		return rc;
	d->levels += h->values;
	return decode_values(d, h->encoding, in, present, values, arg, e);
}
