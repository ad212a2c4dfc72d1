/* Parsing and writing the header of an npy array. */
#include "format/numpy/npy_header.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ALIGN 64
/* NumPy leaves room for the first dimension to grow to this many digits. */
#define GROWTH_DIGITS 21

const unsigned char npy_magic[NPY_MAGIC_BYTES] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

/* The text being parsed. */
struct scan {
	const char *p, *end;
	const char *start;
	uint64_t offset; /* of `start` in the file */
};

int npy_prefix_bytes(const unsigned char *bytes, size_t n, uint64_t offset, struct err *e)
{
	if (n < 8 || memcmp(bytes, npy_magic, NPY_MAGIC_BYTES) != 0)
		return err_set(e, ERR_DATA,
			       "there is no npy array at offset %" PRIu64
			       ": it does not begin with \\x93NUMPY",
			       offset);
	if (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0)
		return err_set(e, ERR_DATA,
			       "the npy header at offset %" PRIu64
			       " is of version %d.%d; 1.0, 2.0 and 3.0 are supported",
			       offset, bytes[6], bytes[7]);
	return bytes[6] == 1 ? 10 : 12;
}

int npy_header_length(const unsigned char *prefix, uint64_t offset, size_t *total, struct err *e)
{
	uint64_t text = prefix[8] | (uint64_t)prefix[9] << 8;
	size_t before = 10;

	if (prefix[6] != 1) {
		text |= (uint64_t)prefix[10] << 16 | (uint64_t)prefix[11] << 24;
		before = 12;
	}
	if (before + text > NPY_HEADER_MAX)
		return err_set(e, ERR_DATA,
			       "the npy header at offset %" PRIu64 " declares %" PRIu64
			       " bytes of text; no array of samples needs more than %d",
			       offset, text, NPY_HEADER_MAX - 12);
	*total = before + (size_t)text;
	return 0;
}

static int syntax_error(const struct scan *s, const char *what, struct err *e)
{
	return err_set(e, ERR_DATA, "the npy header is damaged at offset %" PRIu64 ": %s",
		       s->offset + (uint64_t)(s->p - s->start), what);
}

static void skip_space(struct scan *s)
{
	while (s->p < s->end &&
	       (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r' || *s->p == '\f'))
		s->p++;
}

static bool accept_char(struct scan *s, char c)
{
	skip_space(s);
	if (s->p < s->end && *s->p == c) {
		s->p++;
		return true;
	}
	return false;
}

static bool accept_word(struct scan *s, const char *word)
{
	size_t n = strlen(word);

	skip_space(s);
	if ((size_t)(s->end - s->p) < n || memcmp(s->p, word, n) != 0)
		return false;
	if (s->p + n < s->end && (isalnum((unsigned char)s->p[n]) || s->p[n] == '_'))
		return false;
	s->p += n;
	return true;
}

/* A Python string without escapes; a longer one is cut to fit. */
static int parse_string(struct scan *s, char *out, size_t out_size, struct err *e)
{
	size_t n = 0;
	char quote;

	skip_space(s);
	if (s->p == s->end || (*s->p != '\'' && *s->p != '"'))
		return syntax_error(
			s, "a quoted string is expected (structured arrays are not supported)", e);
	quote = *s->p++;
	while (s->p < s->end && *s->p != quote && *s->p != '\n' && *s->p != '\\') {
		if (n + 1 < out_size)
			out[n++] = *s->p;
		s->p++;
	}
	out[n] = '\0';
	if (s->p == s->end || *s->p != quote)
		return syntax_error(s, "a string is not terminated", e);
	s->p++;
	return 0;
}

static int parse_dim(struct scan *s, uint64_t *out, struct err *e)
{
	uint64_t v = 0;

	skip_space(s);
	if (s->p == s->end || !isdigit((unsigned char)*s->p))
		return syntax_error(s, "a dimension is expected, a non-negative integer", e);
	while (s->p < s->end && isdigit((unsigned char)*s->p)) {
		if (__builtin_mul_overflow(v, 10u, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*s->p - '0'), &v) || v > INT64_MAX)
			return syntax_error(s, "a dimension exceeds 64 bits", e);
		s->p++;
	}
	/* Python 2 wrote long integers so */
	if (s->p < s->end && *s->p == 'L')
		s->p++;
	*out = v;
	return 0;
}

static int parse_shape(struct scan *s, struct npy_array *out, struct err *e)
{
	bool comma = false;
	int rc;

	if (!accept_char(s, '('))
		return syntax_error(s, "the shape must be a tuple", e);
	out->ndims = 0;
	while (!accept_char(s, ')')) {
		if (out->ndims > 0 && !comma)
			return syntax_error(s, "a comma or ')' is expected in the shape", e);
		if (out->ndims == NPY_DIMS_MAX)
			return syntax_error(
				s, "the array has more dimensions than samples can have", e);
		rc = parse_dim(s, &out->dims[out->ndims], e);
		if (rc < 0)
			return rc;
		out->ndims++;
		comma = accept_char(s, ',');
	}
	if (out->ndims == 1 && !comma)
		return syntax_error(s, "the shape is a number, not a tuple", e);
	return 0;
}

enum { HAVE_DESCR = 1, HAVE_ORDER = 2, HAVE_SHAPE = 4 };

static int parse_pair(struct scan *s, struct npy_array *out, unsigned *have, struct err *e)
{
	unsigned which;
	char key[16];
	int rc = parse_string(s, key, sizeof(key), e);

	if (rc < 0)
		return rc;
	if (!accept_char(s, ':'))
		return syntax_error(s, "a colon is expected after a key", e);
	if (strcmp(key, "descr") == 0) {
		which = HAVE_DESCR;
		rc = parse_string(s, out->descr, sizeof(out->descr), e);
	} else if (strcmp(key, "fortran_order") == 0) {
		which = HAVE_ORDER;
		out->fortran_order = accept_word(s, "True");
		if (!out->fortran_order && !accept_word(s, "False"))
			rc = syntax_error(s, "fortran_order must be True or False", e);
	} else if (strcmp(key, "shape") == 0) {
		which = HAVE_SHAPE;
		rc = parse_shape(s, out, e);
	} else {
		return syntax_error(
			s,
			"the keys must be 'descr', 'fortran_order' and 'shape', each exactly once",
			e);
	}
	if (rc == 0 && (*have & which))
		return syntax_error(
			s,
			"the keys must be 'descr', 'fortran_order' and 'shape', each exactly once",
			e);
	*have |= which;
	return rc;
}

static bool array_bytes(const struct npy_array *a, uint64_t *out)
{
	uint64_t n = a->elem->bytes;

	for (uint32_t i = 0; i < a->ndims; i++) {
		if (a->dims[i] == 0) {
			*out = 0;
			return true;
		}
	}
	for (uint32_t i = 0; i < a->ndims; i++) {
		if (__builtin_mul_overflow(n, a->dims[i], &n))
			return false;
	}
	*out = n;
	/* offsets in files are signed; leave room for what surrounds the data */
	return n < (uint64_t)INT64_MAX / 2;
}

int npy_header_parse(const unsigned char *bytes, size_t n, uint64_t offset, struct npy_array *out,
		     struct err *e)
{
	int before = npy_prefix_bytes(bytes, n, offset, e);
	struct scan s;
	unsigned have = 0;
	bool comma = true;
	int rc;

	if (before < 0)
		return before;
	if (n < (size_t)before)
		return err_set(e, ERR_DATA, "the npy header at offset %" PRIu64 " is truncated",
			       offset);
	*out = (struct npy_array){.header_bytes = n};
	s.start = (const char *)bytes;
	s.p = s.start + before;
	s.end = s.start + n;
	s.offset = offset;
	if (!accept_char(&s, '{'))
		return syntax_error(&s, "a '{' is expected", e);
	while (!accept_char(&s, '}')) {
		if (!comma)
			return syntax_error(&s, "a comma or '}' is expected", e);
		rc = parse_pair(&s, out, &have, e);
		if (rc < 0)
			return rc;
		comma = accept_char(&s, ',');
	}
	skip_space(&s);
	if (s.p != s.end)
		return syntax_error(&s, "there is text after the '}'", e);
	if (have != (HAVE_DESCR | HAVE_ORDER | HAVE_SHAPE))
		return syntax_error(
			&s, "one of the keys 'descr', 'fortran_order' and 'shape' is missing", e);
	/* elem_find also knows names and aliases, which no header holds */
	if (out->descr[0] == '<' || out->descr[0] == '|' || out->descr[0] == '=')
		out->elem = elem_find(out->descr);
	if (out->elem && !array_bytes(out, &out->data_bytes))
		return syntax_error(&s, "the array has more bytes than a file can hold", e);
	return 0;
}

int npy_array_of(const struct file_spec *f, struct npy_array *out, struct err *e)
{
	unsigned char header[NPY_HEADER_WRITTEN_MAX];

	*out = (struct npy_array){.elem = f->elem, .ndims = f->ndims + 1};
	if (f->ndims > FORMAT_DIMS_MAX)
		return err_set(e, ERR_USAGE, "a sample has %u dimensions; at most %d are possible",
			       f->ndims, FORMAT_DIMS_MAX);
	for (uint32_t i = 0; i < f->ndims; i++)
		out->dims[i] = f->dims[i];
	out->dims[f->ndims] = f->samples;
	snprintf(out->descr, sizeof(out->descr), "%s", f->elem->descr);
	if (!array_bytes(out, &out->data_bytes))
		return err_set(e, ERR_USAGE,
			       "a file of %" PRIu64
			       " such samples has more bytes than a file can hold",
			       f->samples);
	out->header_bytes = npy_header_write(header, out->elem, out->ndims, out->dims);
	return 0;
}

/* "uint8 (32, 32, 1)". */
static void array_text(const struct npy_array *a, char *out, size_t out_size)
{
	size_t n = (size_t)snprintf(out, out_size, "%s (", a->elem ? a->elem->name : a->descr);

	for (uint32_t i = 0; i < a->ndims && n < out_size; i++)
		n += (size_t)snprintf(out + n, out_size - n, "%s%" PRIu64, i ? ", " : "",
				      a->dims[i]);
	if (n < out_size)
		snprintf(out + n, out_size - n, "%s)", a->ndims == 1 ? "," : "");
}

int npy_array_check(const struct npy_array *found, const struct file_spec *f, struct err *e)
{
	struct npy_array want;
	char have_text[256], want_text[256];
	int rc = npy_array_of(f, &want, e);

	if (rc < 0)
		return rc;
	if (found->elem == want.elem && found->ndims == want.ndims &&
	    memcmp(found->dims, want.dims, want.ndims * sizeof(want.dims[0])) == 0)
		return 0;
	array_text(found, have_text, sizeof(have_text));
	array_text(&want, want_text, sizeof(want_text));
	return err_set(
		e, ERR_DATA,
		"the file holds an array %s but the workload expects %s: the dataset was generated "
		"with another configuration; generate it again or correct the workload",
		have_text, want_text);
}

size_t npy_header_write(void *out, const struct elem_type *elem, uint32_t ndims,
			const uint64_t *dims)
{
	unsigned char *p = out;
	char text[NPY_HEADER_WRITTEN_MAX], first[24] = "";
	size_t n, pad;

	assert(ndims <= NPY_DIMS_MAX);
	n = (size_t)snprintf(text, sizeof(text),
			     "{'descr': '%s', 'fortran_order': False, 'shape': (", elem->descr);
	for (uint32_t i = 0; i < ndims; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%" PRIu64, i ? ", " : "",
				      dims[i]);
	n += (size_t)snprintf(text + n, sizeof(text) - n, "%s), }", ndims == 1 ? "," : "");
	if (ndims > 0)
		pad = GROWTH_DIGITS - (size_t)snprintf(first, sizeof(first), "%" PRIu64, dims[0]);
	else
		pad = 0;
	/* to a multiple of ALIGN with the newline; where it is one already, NumPy adds a whole one
	 */
	pad += ALIGN - (10 + n + pad + 1) % ALIGN;
	assert(10 + n + pad + 1 <= NPY_HEADER_WRITTEN_MAX);
	memcpy(p, npy_magic, NPY_MAGIC_BYTES);
	p[6] = 1;
	p[7] = 0;
	p[8] = (unsigned char)(n + pad + 1);
	p[9] = (unsigned char)((n + pad + 1) >> 8);
	memcpy(p + 10, text, n);
	memset(p + 10 + n, ' ', pad);
	p[10 + n + pad] = '\n';
	return 10 + n + pad + 1;
}
