/* npy: one NumPy array per file, samples along the last axis.
 *
 * FRAMEWORK is np.load(path) of NumPy 1.24: the Python file object reads its buffer once at offset
 * 0 (magic and header are served from it); then the descriptor is handed to C stdio, whose two
 * seeks to the data read from the start of the data's block up to the data, and that block again;
 * then fread: what stdio has buffered, one read of all whole blocks, one of the rest. Four to five
 * reads, and the whole array in memory, whichever sample is wanted.
 *
 * NATIVE is one read of header and data together when the file has at most 2 MiB, else one per 8
 * MiB. */
#include "format/numpy/npy.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "format/blob_stream.h"
#include "format/pyfile.h"
#include "format/reader.h"

/* Parsing and writing the header of an npy array. */

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

/* glibc gives a FILE a buffer of the file's preferred size, but at most BUFSIZ. */
#define STDIO_BUFFER_MAX 8192u

struct reader {
	struct reader_base base;
	unsigned char *python_buffer;
	size_t python_buffer_bytes;
	unsigned char *stdio_buffer;
	unsigned char *header;
	unsigned char *data; /* framework: the array; native: one piece */
	size_t data_bytes;
};

static int npy_check(const struct file_spec *f, struct err *e)
{
	struct npy_array a;

	return npy_array_of(f, &a, e);
}

static uint64_t npy_file_bytes(const struct file_spec *f)
{
	struct npy_array a;

	npy_array_of(f, &a, NULL);
	return a.header_bytes + a.data_bytes;
}

static int npy_put(struct blob_stream *s, const struct file_spec *f,
		   const struct content_source *content, void *scratch, struct err *e)
{
	unsigned char header[NPY_HEADER_WRITTEN_MAX];
	struct npy_array a;
	int rc = npy_array_of(f, &a, e);

	(void)scratch;
	if (rc == 0)
		rc = blob_stream_put(s, header, npy_header_write(header, a.elem, a.ndims, a.dims),
				     e);
	if (rc == 0)
		rc = blob_stream_payload(s, content, f->file_index, 0, a.data_bytes, e);
	return rc;
}

/* The reader's layout; with c->base NULL only its size. */
static void npy_lay_out(struct carver *c, const struct reader_config *config, const struct store *s,
			struct reader *r)
{
	uint64_t whole;

	reader_base_lay_out(c, config, s, &r->base);
	r->header = carve(c, NPY_HEADER_MAX);
	if (__builtin_add_overflow(config->max_file_bytes, 4095u, &whole)) {
		c->overflow = true;
		return;
	}
	whole &= ~(uint64_t)4095;
	if (config->access == ACCESS_FRAMEWORK) {
		r->python_buffer_bytes = reader_buffer_bytes(config);
		r->python_buffer = carve(c, r->python_buffer_bytes);
		r->stdio_buffer = carve(c, STDIO_BUFFER_MAX);
	} else if (whole > NATIVE_PIECE_MAX) {
		whole = NATIVE_PIECE_MAX;
	}
	if (whole < NPY_HEADER_MAX)
		whole = NPY_HEADER_MAX;
	r->data_bytes = (size_t)whole;
	r->data = carve(c, whole);
}

FORMAT_READER(npy, npy_lay_out, reader_start_nothing)

/* What np.load does with a Python file before the data. */
static int framework_header(struct reader *r, struct pybuffer *py, struct npy_array *a,
			    struct err *e)
{
	size_t total = 0;
	ssize_t got = pybuffer_read(py, r->header, NPY_MAGIC_BYTES, e);
	int before;

	if (got >= 0) {
		pybuffer_seek(py, 0);
		got = pybuffer_read(py, r->header, 8, e);
	}
	if (got < 0)
		return (int)got;
	before = npy_prefix_bytes(r->header, (size_t)got, 0, e);
	if (before < 0)
		return before;
	got = pybuffer_read(py, r->header + 8, (size_t)before - 8, e);
	if (got < 0)
		return (int)got;
	if (got == before - 8) {
		int rc = npy_header_length(r->header, 0, &total, e);

		if (rc < 0)
			return rc;
		got = pybuffer_read(py, r->header + before, total - (size_t)before, e);
		if (got < 0)
			return (int)got;
	}
	if (total == 0 || (size_t)got < total - (size_t)before)
		return err_set(e, ERR_DATA, "the file ends within its npy header");
	return npy_header_parse(r->header, total, 0, a, e);
}

/* C stdio's view of the file after np.fromfile's seeks. */
struct stdio {
	size_t size;     /* of its buffer */
	size_t pos, end; /* what it holds */
	uint64_t raw;
};

/* fseeko(data, SEEK_SET), then fseeko(0, SEEK_CUR): glibc goes to the start of the block and reads
 * up to the wanted place; the second seek finds that nothing is buffered after it and reads the
 * block. */
static int stdio_seek(struct reader *r, struct stdio *f, uint64_t data, struct err *e)
{
	uint64_t block = data & ~(uint64_t)(f->size - 1);
	size_t delta = (size_t)(data - block);
	ssize_t got;

	*f = (struct stdio){.size = f->size, .raw = data};
	if (delta == 0)
		return 0;
	got = io_pread(r->base.io, IO_META, r->base.blob, r->stdio_buffer, delta, block, e);
	if (got < 0)
		return (int)got;
	got = io_pread(r->base.io, IO_META, r->base.blob, r->stdio_buffer, f->size, block, e);
	if (got < 0)
		return (int)got;
	if ((size_t)got < delta)
		return err_set(e, ERR_DATA, "the file shrank while it was read");
	f->pos = delta;
	f->end = (size_t)got;
	f->raw = block + (uint64_t)got;
	return 0;
}

/* fread of n bytes: what is buffered; then whole blocks directly, or a refill for less than one. */
static int stdio_read(struct reader *r, struct stdio *f, unsigned char *out, uint64_t n,
		      uint64_t *done, struct err *e)
{
	*done = 0;
	while (*done < n) {
		uint64_t want = n - *done;
		size_t have = f->end - f->pos;
		ssize_t got;

		if (have > want)
			have = (size_t)want;
		memcpy(out + *done, r->stdio_buffer + f->pos, have);
		f->pos += have;
		*done += have;
		want -= have;
		if (want == 0)
			break;
		if (want < f->size) {
			got = io_pread(r->base.io, IO_DATA, r->base.blob, r->stdio_buffer, f->size,
				       f->raw, e);
			f->pos = 0;
			f->end = got > 0 ? (size_t)got : 0;
		} else {
			f->pos = f->end = 0;
			got = io_pread(r->base.io, IO_DATA, r->base.blob, out + *done,
				       (size_t)(want - want % f->size), f->raw, e);
			if (got > 0)
				*done += (uint64_t)got;
		}
		if (got < 0)
			return (int)got;
		if (got == 0)
			break;
		f->raw += (uint64_t)got;
	}
	return 0;
}

static int array_cut_short(uint64_t have, const struct npy_array *a, struct err *e)
{
	return err_set(e, ERR_DATA,
		       "the file ends %" PRIu64 " bytes into its array, which has %" PRIu64
		       ": it is truncated",
		       have, a->data_bytes);
}

static int read_framework(struct reader *r, const struct file_spec *f, struct sample *out,
			  struct err *e)
{
	struct stdio stdio = {0};
	struct store_stat st;
	struct pybuffer py;
	struct npy_array a;
	uint64_t done = 0;
	size_t buffer = 0;
	int rc = io_stat_blob(r->base.io, r->base.blob, &st, e);

	if (rc == 0)
		rc = reader_buffer_of(&r->base.config, st.block_bytes, r->python_buffer_bytes,
				      &buffer, e);
	if (rc < 0)
		return rc;
	pybuffer_start(&py, r->base.io, r->base.blob, r->base.config.python, st.bytes,
		       r->python_buffer, buffer);
	rc = framework_header(r, &py, &a, e) ?: npy_array_check(&a, f, e);
	if (rc == 0 && a.data_bytes > r->data_bytes)
		rc = err_set(e, ERR_USAGE, "the array is larger than the reader's buffer");
	stdio.size = st.block_bytes < STDIO_BUFFER_MAX ? st.block_bytes : STDIO_BUFFER_MAX;
	if (rc == 0)
		rc = stdio_seek(r, &stdio, a.header_bytes, e);
	if (rc == 0)
		rc = stdio_read(r, &stdio, r->data, a.data_bytes, &done, e);
	if (rc < 0)
		return rc;
	if (done < a.data_bytes)
		return array_cut_short(done, &a, e);
	out->data = r->data;
	return expectation_check(&r->base.expect, f->file_index, 0, a.header_bytes, r->data,
				 (size_t)a.data_bytes, e);
}

/* Parses the header in the first `have` bytes. Returns 1 when it is longer; *total gets its length.
 */
static int native_header(struct reader *r, size_t have, struct npy_array *a, size_t *total,
			 struct err *e)
{
	int rc = npy_prefix_bytes(r->data, have, 0, e);

	*total = (size_t)(rc > 0 ? rc : 0);
	if (rc < 0 || have < *total)
		return rc < 0 ? rc : 1;
	rc = npy_header_length(r->data, 0, total, e);
	if (rc < 0 || have < *total)
		return rc < 0 ? rc : 1;
	return npy_header_parse(r->data, *total, 0, a, e);
}

/* Reads the first piece; *got gets its size. One request unless another program wrote a longer
 * header. */
static int native_begin(struct reader *r, const struct file_spec *f, struct npy_array *a,
			size_t *got, struct err *e)
{
	uint64_t want = npy_file_bytes(f);
	size_t total;
	int rc;

	for (;;) {
		size_t n = want < r->data_bytes ? (size_t)want : r->data_bytes;
		ssize_t back = io_pread(r->base.io, IO_DATA, r->base.blob, r->data, n, 0, e);

		if (back < 0)
			return (int)back;
		*got = (size_t)back;
		rc = native_header(r, *got, a, &total, e);
		if (rc <= 0)
			break;
		if (*got < n)
			return err_set(e, ERR_DATA, "the file ends within its npy header");
		want = NPY_HEADER_MAX;
	}
	return rc < 0 ? rc : npy_array_check(a, f, e);
}

static int read_native(struct reader *r, const struct file_spec *f, struct sample *out,
		       struct err *e)
{
	struct npy_array a;
	uint64_t done = 0; /* of the array */
	size_t have = 0, skip;
	int rc = native_begin(r, f, &a, &have, e);

	if (rc < 0)
		return rc;
	skip = (size_t)a.header_bytes;
	for (;;) {
		uint64_t left = a.data_bytes - done;
		size_t n = left < have - skip ? (size_t)left : have - skip;
		ssize_t got;

		rc = expectation_check(&r->base.expect, f->file_index, done, a.header_bytes,
				       r->data + skip, n, e);
		if (rc < 0)
			return rc;
		out->data = r->data + skip;
		done += n;
		left -= n;
		if (left == 0)
			return 0;
		n = left < r->data_bytes ? (size_t)left : r->data_bytes;
		got = io_pread(r->base.io, IO_DATA, r->base.blob, r->data, n, a.header_bytes + done,
			       e);
		if (got < 0)
			return (int)got;
		if (got == 0)
			return array_cut_short(done, &a, e);
		have = (size_t)got;
		skip = 0;
	}
}

static int read_array(struct reader *r, const struct file_spec *f, uint64_t index,
		      struct sample *out, struct err *e)
{
	(void)index;
	return r->base.config.access == ACCESS_FRAMEWORK ? read_framework(r, f, out, e)
							 : read_native(r, f, out, e);
}

FORMAT_READ(npy, read_array)

/* Every sample is spread over the whole array. */
static int npy_extent(const struct reader_config *c, const struct file_spec *f, uint64_t index,
		      struct extent *out, struct err *e)
{
	(void)c;
	(void)index;
	(void)e;
	*out = (struct extent){.bytes = npy_file_bytes(f), .whole = true};
	return 0;
}

const struct format_ops format_npy = {
	.is.name = "npy",
	.is.help = "NumPy arrays (np.save), samples along the last axis.",
	.is.extension = "npy",
	.is.magic = "\x93NUMPY",
	.is.flags = FORMAT_RAW_ARRAY | FORMAT_IN_OBJECTS | FORMAT_WHOLE_OBJECTS,
	.is.dlio_reader = "NPYReader",
	.is.dali = DALI_NPY,
	.check = npy_check,
	.file_bytes = npy_file_bytes,
	.put = npy_put,
	.reader_bytes = npy_reader_bytes,
	.reader_init = npy_reader_init,
	.read = npy_read,
	.reader_close = reader_close_nothing,
	.extent = npy_extent,
};
