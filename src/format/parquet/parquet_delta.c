/* Differences of numbers in blocks, lengths coded so, and texts that share their beginnings.
 *
 * (Reference: the Parquet format's Encodings.md.) */
#include "format/parquet/parquet_delta.h"

#include <inttypes.h>
#include <string.h>

#include "base/little_endian.h"
#include "format/parquet/parquet_layout.h"

/* Of the value before, so much is kept to begin the next one with. */
#define PREFIX_MAX PARQUET_SCRATCH_BYTES
#define AT_ONCE 512u

static int damaged(const char *what, struct err *e)
{
	return err_set(e, ERR_DATA, "a page is damaged: %s", what);
}

/* ---- numbers ---- */

struct delta {
	struct thrift_in in;
	uint64_t total, given;
	uint64_t minis, of_mini; /* in a block; values of each */
	uint64_t value, least;   /* the last one; of this block's differences */
	const unsigned char *width, *end_of_widths;
	const unsigned char *bits, *next; /* of this miniblock; behind it */
	unsigned bit;
	uint64_t left; /* of this miniblock */
};

static int number(struct delta *d, uint64_t *v, struct err *e)
{
	return thrift_varint(&d->in, v, NULL) < 0 ? damaged("its differences are cut off", e) : 0;
}

static uint64_t zigzag(uint64_t v)
{
	return v >> 1 ^ (0 - (v & 1));
}

static int delta_begin(struct delta *d, const unsigned char *in, size_t bytes, struct err *e)
{
	uint64_t block = 0, first = 0;
	int rc;

	*d = (struct delta){.in = {in, in, in + bytes}};
	rc = number(d, &block, e) ?: number(d, &d->minis, e) ?: number(d, &d->total, e)
									?: number(d, &first, e);
	if (rc < 0)
		return rc;
	if (d->minis == 0 || block % d->minis || block / d->minis == 0 || block / d->minis % 8 ||
	    block / d->minis > INT32_MAX)
		return damaged("its differences come in blocks of no allowed size", e);
	d->of_mini = block / d->minis;
	d->value = zigzag(first);
	d->next = d->in.at;
	return 0;
}

/* Turns to the next miniblock. */
static int next_mini(struct delta *d, struct err *e)
{
	uint64_t least = 0;
	unsigned width;
	int rc;

	d->in.at = d->next;
	if (d->width == d->end_of_widths) {
		rc = number(d, &least, e);
		if (rc < 0)
			return rc;
		d->least = zigzag(least);
		if (d->minis > (size_t)(d->in.end - d->in.at))
			return damaged("its differences are cut off", e);
		d->width = d->in.at;
		d->in.at = d->end_of_widths = d->width + d->minis;
	}
	width = *d->width++;
	if (width > 64)
		return damaged("a difference has more than 64 bits", e);
	if (d->of_mini / 8 * width > (size_t)(d->in.end - d->in.at))
		return damaged("its differences are cut off", e);
	d->bits = d->in.at;
	d->next = d->in.at + d->of_mini / 8 * width;
	d->bit = 0;
	d->left = d->of_mini;
	return 0;
}

/* `width` bits from bit d->bit of d->bits on. */
static uint64_t take_bits(struct delta *d, unsigned width)
{
	uint64_t v = 0;
	unsigned have = 0;

	while (have < width) {
		unsigned part = 8 - d->bit, want = width - have;

		part = part < want ? part : want;
		v |= (uint64_t)(*d->bits >> d->bit & ((1u << part) - 1)) << have;
		have += part;
		d->bit += part;
		if (d->bit == 8) {
			d->bit = 0;
			d->bits++;
		}
	}
	return v;
}

/* n more values, which there must be. */
static int delta_take(struct delta *d, uint64_t *out, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		if (d->given > 0) {
			int rc = d->left == 0 ? next_mini(d, e) : 0;

			if (rc < 0)
				return rc;
			d->value += d->least + take_bits(d, d->width[-1]);
			d->left--;
		}
		d->given++;
		if (out)
			out[i] = d->value;
	}
	return 0;
}

/* Where what follows the numbers begins. */
static int delta_end(struct delta d, const unsigned char **end, struct err *e)
{
	uint64_t left = d.total - d.given;
	int rc = 0;

	if (left > 0 && d.given == 0)
		left--;
	while (rc == 0 && left > d.left) {
		left -= d.left;
		rc = next_mini(&d, e);
	}
	*end = d.next;
	return rc;
}

static int numbers(struct parquet_decoder *d, struct delta *of, uint64_t n,
		   parquet_values_fn *values, void *arg, struct err *e)
{
	unsigned width = d->type == PARQUET_INT32 ? 4 : 8;
	uint64_t v[AT_ONCE];
	int rc = 0;

	for (uint64_t done = 0; rc == 0 && done < n;) {
		size_t part = n - done < AT_ONCE ? (size_t)(n - done) : AT_ONCE;
		unsigned char *p = d->scratch;

		rc = delta_take(of, v, part, e);
		for (size_t i = 0; rc == 0 && i < part; i++)
			p = le_put(p, v[i], width);
		if (rc == 0)
			rc = values(arg, d->scratch, part, part * width, e);
		done += part;
	}
	return rc;
}

/* ---- texts ---- */

static int begin_of(struct delta *d, const unsigned char *in, size_t bytes, uint64_t n,
		    struct err *e)
{
	int rc = delta_begin(d, in, bytes, e);

	if (rc == 0 && d->total != n)
		return damaged("it has another number of differences than of values", e);
	return rc;
}

static int length_of(struct delta *d, size_t most, size_t *out, struct err *e)
{
	uint64_t v = 0;
	int rc = delta_take(d, &v, 1, e);

	/* they have 32 bits */
	v = (uint32_t)v;
	if (rc == 0 && v > most)
		return damaged("a text is cut off", e);
	*out = (size_t)v;
	return rc;
}

/* A value in parts: of several, the last counts. */
static int put_length(size_t length, parquet_values_fn *values, void *arg, struct err *e)
{
	unsigned char b[4];

	le_put(b, length, 4);
	return values(arg, b, 0, 4, e);
}

static int texts(const struct delta *begun, const unsigned char *end, uint64_t n,
		 parquet_values_fn *values, void *arg, struct err *e)
{
	struct delta lengths = *begun;
	const unsigned char *at = NULL;
	int rc = delta_end(lengths, &at, e);

	for (uint64_t i = 0; rc == 0 && i < n; i++) {
		size_t length = 0;

		rc = length_of(&lengths, (size_t)(end - at), &length, e);
		if (rc == 0)
			rc = put_length(length, values, arg, e) ?: values(arg, at, 1, length, e);
		at += length;
	}
	return rc;
}

static int put_shared(struct parquet_decoder *d, const unsigned char *suffix, size_t shared,
		      size_t length, parquet_values_fn *values, void *arg, struct err *e)
{
	int rc = 0;

	if (d->type == PARQUET_FIXED && shared + length != d->width)
		return damaged("a value has another length than its column", e);
	if (d->type != PARQUET_FIXED)
		rc = put_length(shared + length, values, arg, e);
	if (rc == 0 && shared > 0)
		rc = values(arg, d->scratch, 0, shared, e);
	return rc < 0 ? rc : values(arg, suffix, 1, length, e);
}

/* Each value begins as the one before. */
static int sharing_texts(struct parquet_decoder *d, struct delta *prefixes,
			 const unsigned char *end, uint64_t n, parquet_values_fn *values, void *arg,
			 struct err *e)
{
	const unsigned char *at = NULL;
	struct delta lengths;
	uint64_t before = 0; /* bytes of the value before */
	int rc = delta_end(*prefixes, &at, e);

	if (rc == 0)
		rc = begin_of(&lengths, at, (size_t)(end - at), n, e);
	if (rc == 0)
		rc = delta_end(lengths, &at, e);
	for (uint64_t i = 0; rc == 0 && i < n; i++) {
		size_t shared = 0, length = 0, kept;

		rc = length_of(prefixes, before < UINT32_MAX ? (size_t)before : UINT32_MAX, &shared,
			       e)
			     ?: length_of(&lengths, (size_t)(end - at), &length, e);
		if (rc == 0 && shared > PREFIX_MAX)
			return err_set(e, ERR_ABSENT,
				       "a text begins with %zu bytes of the one before "
				       "(DELTA_BYTE_ARRAY): at most %u are decoded",
				       shared, PREFIX_MAX);
		if (rc == 0 && shared + length > UINT32_MAX)
			return damaged("a text is longer than a text can be", e);
		if (rc == 0)
			rc = put_shared(d, at, shared, length, values, arg, e);
		if (rc < 0)
			break;
		kept = length < PREFIX_MAX - shared ? length : PREFIX_MAX - shared;
		memcpy(d->scratch + shared, at, kept);
		before = shared + length;
		at += length;
	}
	return rc;
}

int parquet_delta(struct parquet_decoder *d, int encoding, const unsigned char *in, size_t bytes,
		  uint64_t n, parquet_values_fn *values, void *arg, struct err *e)
{
	bool number = d->type == PARQUET_INT32 || d->type == PARQUET_INT64;
	bool text = d->type == PARQUET_BYTE_ARRAY;
	struct delta of;
	int rc;

	if (encoding == PARQUET_DELTA_BINARY_PACKED       ? !number
	    : encoding == PARQUET_DELTA_LENGTH_BYTE_ARRAY ? !text
							  : !text && d->type != PARQUET_FIXED)
		return damaged("its values are of a type that is not encoded so", e);
	if (n == 0)
		return 0;
	rc = begin_of(&of, in, bytes, n, e);
	if (rc < 0)
		return rc;
	switch (encoding) {
	case PARQUET_DELTA_BINARY_PACKED:
		return numbers(d, &of, n, values, arg, e);
	case PARQUET_DELTA_LENGTH_BYTE_ARRAY:
		return texts(&of, in + bytes, n, values, arg, e);
	default:
		return sharing_texts(d, &of, in + bytes, n, values, arg, e);
	}
}
