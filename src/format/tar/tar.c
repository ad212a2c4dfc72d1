/* Header blocks of tar archives. */
#include "format/tar/tar.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Places of a header block. */
enum {
	NAME_AT = 0,
	NAME_BYTES = 100,
	MODE_AT = 100,
	UID_AT = 108,
	GID_AT = 116,
	SIZE_AT = 124,
	SIZE_BYTES = 12,
	TIME_AT = 136,
	SUM_AT = 148,
	SUM_BYTES = 8,
	TYPE_AT = 156,
	MAGIC_AT = 257,
	USER_AT = 265,
	GROUP_AT = 297,
	MAJOR_AT = 329,
	MINOR_AT = 337,
	PREFIX_AT = 345,
	PREFIX_BYTES = 155
};

/* Of all bytes, with spaces for the sum itself. Old writers took bytes as signed. A loop without
 * conditions, which compilers turn into one over vectors: it is half of what a header costs. */
static uint32_t sum_of(const unsigned char *block, int32_t *as_signed)
{
	uint32_t sum = 0, high = 0;

	for (unsigned i = 0; i < TAR_BLOCK; i++) {
		sum += block[i];
		high += block[i] >> 7;
	}
	for (unsigned i = SUM_AT; i < SUM_AT + SUM_BYTES; i++) {
		sum += ' ' - (uint32_t)block[i];
		high -= block[i] >> 7;
	}
	*as_signed = (int32_t)sum - 256 * (int32_t)high;
	return sum;
}

static void put_octal(unsigned char *out, size_t digits, uint64_t v)
{
	for (size_t i = digits; i-- > 0; v >>= 3)
		out[i] = (unsigned char)('0' + (v & 7));
	assert(v == 0);
}

void tar_put_header(unsigned char block[TAR_BLOCK], const char *name, uint64_t bytes)
{
	size_t n = strlen(name);
	int32_t as_signed;

	assert(n < NAME_BYTES && bytes <= TAR_SIZE_MAX);
	memset(block, 0, TAR_BLOCK);
	memcpy(block + NAME_AT, name, n);
	put_octal(block + MODE_AT, 7, 0444);
	put_octal(block + UID_AT, 7, 0);
	put_octal(block + GID_AT, 7, 0);
	put_octal(block + SIZE_AT, 11, bytes);
	put_octal(block + TIME_AT, 11, 0);
	block[TYPE_AT] = '0';
	memcpy(block + MAGIC_AT, "ustar\00000", 8);
	memcpy(block + USER_AT, "bigdata", 7);
	memcpy(block + GROUP_AT, "bigdata", 7);
	put_octal(block + MAJOR_AT, 7, 0);
	put_octal(block + MINOR_AT, 7, 0);
	put_octal(block + SUM_AT, 6, sum_of(block, &as_signed));
	block[SUM_AT + 7] = ' ';
}

void tar_change_name(unsigned char block[TAR_BLOCK], size_t at, const char *text, size_t n)
{
	uint32_t sum = 0;

	assert(at + n < NAME_BYTES);
	for (unsigned i = 0; i < 6; i++)
		sum = sum << 3 | (block[SUM_AT + i] - (uint32_t)'0');
	for (size_t i = 0; i < n; i++) {
		sum += (unsigned char)text[i] - (uint32_t)block[NAME_AT + at + i];
		block[NAME_AT + at + i] = (unsigned char)text[i];
	}
	put_octal(block + SUM_AT, 6, sum);
}

/* Octal digits between spaces, ended by a zero, or GNU's binary numbers. */
static bool get_number(const unsigned char *p, size_t n, uint64_t *out)
{
	uint64_t v = 0;
	size_t i = 0;

	if (p[0] == 0x80 || p[0] == 0xff) {
		for (i = 1; i < n; i++) {
			if (v >> 56)
				return false;
			v = v << 8 | p[i];
		}
		*out = v;
		return p[0] == 0x80;
	}
	while (i < n && p[i] == ' ')
		i++;
	for (; i < n && p[i] >= '0' && p[i] <= '7'; i++) {
		if (v >> 61)
			return false;
		v = v << 3 | (uint64_t)(p[i] - '0');
	}
	while (i < n && p[i] == ' ')
		i++;
	*out = v;
	return i == n || p[i] == '\0';
}

static bool all_zeros(const unsigned char *block)
{
	for (unsigned i = 0; i < TAR_BLOCK; i++)
		if (block[i])
			return false;
	return true;
}

static size_t text_bytes(const unsigned char *p, size_t room)
{
	const unsigned char *end = memchr(p, '\0', room);

	return end ? (size_t)(end - p) : room;
}

static void get_name(const unsigned char *block, char *out)
{
	size_t prefix = text_bytes(block + PREFIX_AT, PREFIX_BYTES), at = 0;
	size_t name = text_bytes(block + NAME_AT, NAME_BYTES);

	/* GNU tar has times where ustar has the prefix */
	if (memcmp(block + MAGIC_AT, "ustar", 6) == 0 && prefix > 0) {
		memcpy(out, block + PREFIX_AT, prefix);
		at = prefix;
		out[at++] = '/';
	}
	memcpy(out + at, block + NAME_AT, name);
	out[at + name] = '\0';
}

static enum tar_kind kind_of(unsigned char type)
{
	switch (type) {
	case '\0':
	case '0':
	case '7':
		return TAR_FILE;
	case 'x':
	case 'X':
		return TAR_PAX;
	case 'g':
		return TAR_PAX_ALL;
	case 'L':
		return TAR_LONG_NAME;
	case 'K':
		return TAR_LONG_LINK;
	default:
		return TAR_OTHER;
	}
}

/* Kinds whose header may have a size but no data. */
static bool has_no_data(unsigned char type)
{
	return type >= '1' && type <= '6';
}

int tar_get_header(const unsigned char block[TAR_BLOCK], struct tar_header *out, struct err *e)
{
	int32_t as_signed;
	uint32_t sum;
	uint64_t said;

	out->bytes = 0;
	out->name[0] = '\0';
	out->kind = TAR_END;
	if (all_zeros(block))
		return 0;
	sum = sum_of(block, &as_signed);
	if (!get_number(block + SUM_AT, SUM_BYTES, &said) ||
	    (said != sum && (int64_t)said != (int64_t)as_signed))
		return err_set(e, ERR_DATA,
			       "this is not a tar header: its checksum does not match");
	if (block[TYPE_AT] == 'S')
		return err_set(e, ERR_DATA,
			       "it is the header of a sparse file, which is not supported");
	out->kind = kind_of(block[TYPE_AT]);
	get_name(block, out->name);
	if (!get_number(block + SIZE_AT, SIZE_BYTES, &out->bytes) || out->bytes > INT64_MAX / 2)
		return err_set(e, ERR_DATA,
			       "the size in the tar header of '%.120s' is not a number", out->name);
	if (has_no_data(block[TYPE_AT]))
		out->bytes = 0;
	/* an old archive's folder is a file whose name ends in a slash */
	if (block[TYPE_AT] == '\0' && out->name[0] && out->name[strlen(out->name) - 1] == '/')
		out->kind = TAR_OTHER;
	return 0;
}

/* ---- members ---- */

void tar_member_begin(struct tar_member *m)
{
	m->named = m->sized = m->is_file = false;
	m->bytes = 0;
	m->name[0] = '\0';
}

static int keep_name(struct tar_member *m, const unsigned char *name, size_t n, struct err *e)
{
	n = text_bytes(name, n);
	if (n >= TAR_NAME_MAX)
		return err_set(e, ERR_DATA, "the name of a member has %zu bytes; %u are allowed", n,
			       TAR_NAME_MAX - 1);
	memcpy(m->name, name, n);
	m->name[n] = '\0';
	m->named = true;
	return 0;
}

static int keep_size(struct tar_member *m, const unsigned char *text, size_t n, struct err *e)
{
	uint64_t v = 0;

	if (n == 0 || n > 18)
		return err_set(e, ERR_DATA, "the size in an extended header is not a number");
	for (size_t i = 0; i < n; i++) {
		if (text[i] < '0' || text[i] > '9')
			return err_set(e, ERR_DATA,
				       "the size in an extended header is not a number");
		v = v * 10 + (uint64_t)(text[i] - '0');
	}
	m->bytes = v;
	m->sized = true;
	return 0;
}

static bool key_is(const unsigned char *key, size_t n, const char *name)
{
	return n == strlen(name) && memcmp(key, name, n) == 0;
}

static int broken_record(size_t at, struct err *e)
{
	return err_set(e, ERR_DATA, "the extended header is damaged at its byte %zu", at);
}

/* "27 path=a/long/name.jpg\n": the length is that of the whole record. */
static int get_records(struct tar_member *m, const unsigned char *p, size_t n, struct err *e)
{
	size_t at = 0;
	int rc = 0;

	while (rc == 0 && at < n && p[at] != '\0') {
		const unsigned char *record = p + at, *equals;
		size_t length = 0, i = 0, value;

		while (at + i < n && i < 7 && record[i] >= '0' && record[i] <= '9')
			length = length * 10 + (size_t)(record[i++] - '0');
		if (i == 0 || at + i >= n || record[i] != ' ' || length > n - at ||
		    length < i + 3 || record[length - 1] != '\n')
			return broken_record(at, e);
		i++;
		equals = memchr(record + i, '=', length - 1 - i);
		if (!equals)
			return broken_record(at, e);
		value = (size_t)(equals - record) + 1;
		if (key_is(record + i, value - 1 - i, "path"))
			rc = keep_name(m, equals + 1, length - 1 - value, e);
		else if (key_is(record + i, value - 1 - i, "size"))
			rc = keep_size(m, equals + 1, length - 1 - value, e);
		else if (value - 1 - i >= 11 && memcmp(record + i, "GNU.sparse.", 11) == 0)
			rc = err_set(e, ERR_DATA,
				     "the extended header is that of a sparse file, which is not "
				     "supported");
		at += length;
	}
	return rc;
}

int tar_member_extra(struct tar_member *m, enum tar_kind kind, const unsigned char *data, size_t n,
		     struct err *e)
{
	if (kind == TAR_PAX)
		return get_records(m, data, n, e);
	return kind == TAR_LONG_NAME ? keep_name(m, data, n, e) : 0;
}

int tar_member_end(struct tar_member *m, const struct tar_header *h, struct err *e)
{
	m->is_file = h->kind == TAR_FILE;
	if (!m->sized || !m->is_file)
		m->bytes = h->bytes;
	return m->named ? 0 : keep_name(m, (const unsigned char *)h->name, strlen(h->name) + 1, e);
}

/* "a/b/.c": with nothing in front of the dot the key is all that is before it, as the library's
 * pattern has it, unless the folder's name has a dot. */
static bool key_of_hidden(const char *name, const char *base)
{
	const char *p = base - 1;

	if (base == name)
		return false;
	while (p > name && p[-1] != '/') {
		p--;
		if (*p == '.')
			return false;
	}
	return true;
}

bool tar_sample_key(const char *name, size_t *key, const char **extension)
{
	const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
	const char *dot = strchr(base, '.');

	if (!dot || (dot == base && !key_of_hidden(name, base)))
		return false;
	*key = (size_t)(dot - name);
	*extension = dot + 1;
	return true;
}

bool tar_is_meta(const char *name)
{
	const char *end;

	if (name[0] != '_' || name[1] != '_')
		return false;
	end = strchr(name, '/');
	if (!end)
		end = name + strlen(name);
	return end - name >= 4 && end[-1] == '_' && end[-2] == '_';
}
