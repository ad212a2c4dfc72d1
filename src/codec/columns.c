/* Arrays of structs as self-describing bytes. */
#include "codec/columns.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/vector.h"

#define PATH_MOST 160
#define SIGNED_MOST ((int64_t)1 << 62)

/* ---- the members of a struct, with those of the structs in it ---- */

struct leaf {
	char path[PATH_MOST];
	size_t offset, each, elements;
	char type;
};
struct leaves {
	struct leaf *v;
	size_t n, room;
};

static void add_members(struct leaves *l, const struct shape *s, const char *before, size_t offset)
{
	for (size_t i = 0; i < s->members; i++) {
		const struct member *m = &s->member[i];
		size_t elements = m->size / m->each;
		struct leaf one = {.offset = offset + m->offset,
				   .each = m->each,
				   .elements = elements,
				   .type = m->type};

		for (size_t k = 0; m->type == 's' && k < elements; k++) {
			char path[PATH_MOST];

			snprintf(path, sizeof(path), elements > 1 ? "%s%s.%zu." : "%s%s.", before,
				 m->name, k);
			add_members(l, m->of, path, offset + m->offset + k * m->each);
		}
		if (m->type == 's')
			continue;
		snprintf(one.path, sizeof(one.path), "%s%s", before, m->name);
		VECTOR_PUSH(l->v, l->n, l->room, one);
	}
}

static struct leaves leaves_of(const struct shape *s)
{
	struct leaves l = {0};

	add_members(&l, s, "", 0);
	return l;
}

static uint64_t load(const struct leaf *l, const void *base, size_t element)
{
	const char *p = (const char *)base + l->offset + element * l->each;
	uint64_t v = 0;

	memcpy(&v, p, l->each);
	if (l->type == 'i' && l->each < 8 && v >> (8 * l->each - 1))
		v |= UINT64_MAX << (8 * l->each);
	return v;
}

static void store(const struct leaf *l, void *base, size_t element, uint64_t v)
{
	char *p = (char *)base + l->offset + element * l->each;

	if (l->type == 'b') {
		*p = v != 0;
		return;
	}
	if (l->type == 'i' && (int64_t)v > SIGNED_MOST)
		v = (uint64_t)SIGNED_MOST;
	if (l->type == 'i' && (int64_t)v < -SIGNED_MOST)
		v = (uint64_t)-SIGNED_MOST;
	memcpy(p, &v, l->each);
}

/* ---- writing ---- */

static void put_varint(struct buf *b, uint64_t v)
{
	unsigned char out[10];
	size_t n = 0;

	for (; v >= 128; v >>= 7)
		out[n++] = (unsigned char)(v | 128);
	out[n++] = (unsigned char)v;
	buf_append(b, out, n);
}

static void put_text(struct buf *b, const char *s, size_t n)
{
	put_varint(b, n);
	buf_append(b, s, n);
}

/* Values that are as before, not yet written. */
struct same {
	struct buf *to;
	uint64_t n;
};

static void put_same(struct same *s)
{
	if (s->n == 0)
		return;
	buf_putc(s->to, 0);
	put_varint(s->to, s->n - 1);
	s->n = 0;
}

static void put_values(struct buf *b, const struct leaf *l, const struct shape *shape,
		       const struct piece *piece, size_t pieces)
{
	bool apart = l->elements > 1;
	struct same same = {.to = b};
	uint64_t before = 0;

	for (size_t p = 0; p < pieces; p++)
		for (size_t i = 0; i < piece[p].n; i++) {
			const char *base = (const char *)piece[p].at + i * shape->size;

			if (l->type == 'c') {
				put_text(b, base + l->offset, strnlen(base + l->offset, l->each));
				continue;
			}
			for (size_t k = 0; k < l->elements; k++) {
				uint64_t v = load(l, base, k), step;

				step = l->type == 'd' ? v ^ before : v - before;
				before = apart ? 0 : v;
				if (step == 0) {
					same.n++;
					continue;
				}
				put_same(&same);
				if (l->type == 'd') {
					buf_putc(b, 1);
					buf_append(b, &step, sizeof(step));
				} else {
					put_varint(b, step << 1 ^ (0 - (step >> 63)));
				}
			}
		}
	put_same(&same);
}

/* Puts the head of a column, before its values; returns the offset for the length of the values. */
static size_t put_head(struct buf *b, const char *name, const struct leaves *l, uint64_t structs)
{
	uint64_t length = 0;

	put_text(b, name, strlen(name));
	put_varint(b, l->n);
	for (size_t i = 0; i < l->n; i++) {
		put_text(b, l->v[i].path, strlen(l->v[i].path));
		buf_putc(b, l->v[i].type);
		put_varint(b, l->v[i].elements);
	}
	put_varint(b, structs);
	buf_append(b, &length, sizeof(length));
	return b->len - sizeof(length);
}

static void put_length(struct buf *b, size_t at)
{
	uint64_t length = b->len - at - sizeof(length);

	memcpy(b->data + at, &length, sizeof(length));
}

void columns_put(struct buf *b, const char *name, const struct shape *shape,
		 const struct piece *piece, size_t pieces)
{
	struct leaves l = leaves_of(shape);
	uint64_t structs = 0;
	size_t at;

	for (size_t p = 0; p < pieces; p++)
		structs += piece[p].n;
	if (structs == 0) {
		free(l.v);
		return;
	}
	at = put_head(b, name, &l, structs);
	for (size_t i = 0; i < l.n; i++)
		put_values(b, &l.v[i], shape, piece, pieces);
	put_length(b, at);
	free(l.v);
}

void columns_put_texts(struct buf *b, const char *name, const char *const *text, size_t n)
{
	size_t at = put_head(b, name, &(struct leaves){0}, n);

	for (size_t i = 0; i < n; i++)
		put_text(b, text[i] ? text[i] : "", text[i] ? strlen(text[i]) : 0);
	put_length(b, at);
}

/* ---- reading ---- */

struct reader {
	const char *p, *end;
	bool bad;
};

static uint64_t get_varint(struct reader *r)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		unsigned char c;

		if (r->p == r->end)
			break;
		c = (unsigned char)*r->p++;
		v |= (uint64_t)(c & 127) << shift;
		if (c < 128)
			return v;
	}
	r->bad = true;
	return 0;
}

/* `n` bytes; NULL: there are fewer. */
static const char *get_bytes(struct reader *r, uint64_t n)
{
	const char *p = r->p;

	if (r->bad || n > (uint64_t)(r->end - r->p)) {
		r->bad = true;
		return NULL;
	}
	r->p += n;
	return p;
}

static const char *get_text(struct reader *r, uint64_t *n)
{
	*n = get_varint(r);
	return get_bytes(r, *n);
}

static bool is_text(const char *p, uint64_t n, const char *text)
{
	return p && n == strlen(text) && memcmp(p, text, n) == 0;
}

struct chunk {
	const char *name;
	uint64_t name_bytes, members, structs;
	struct reader layout, values;
};

/* false: there are no more, or r->bad. */
static bool next_chunk(struct reader *r, struct chunk *c)
{
	const char *length;
	uint64_t bytes, n;

	if (r->bad || r->p == r->end)
		return false;
	c->name = get_text(r, &c->name_bytes);
	c->members = get_varint(r);
	c->layout = (struct reader){.p = r->p};
	for (uint64_t i = 0; i < c->members && !r->bad; i++) {
		get_text(r, &n);
		get_bytes(r, 1);
		get_varint(r);
	}
	c->layout.end = r->p;
	c->structs = get_varint(r);
	length = get_bytes(r, sizeof(bytes));
	if (!length)
		return false;
	memcpy(&bytes, length, sizeof(bytes));
	c->values = (struct reader){.p = get_bytes(r, bytes)};
	c->values.end = r->p;
	return !r->bad;
}

static bool find_chunk(const struct columns_in *in, const char *name, struct chunk *c)
{
	struct reader r = {.p = in->data, .end = in->data + in->n};

	while (next_chunk(&r, c))
		if (is_text(c->name, c->name_bytes, name))
			return true;
	return false;
}

int columns_open(struct columns_in *in, const char *data, size_t n, const char *name, size_t room,
		 struct err *e)
{
	struct reader r = {.p = data, .end = data + n};
	struct chunk c;

	*in = (struct columns_in){.name = name, .data = data, .n = n, .room = room};
	while (next_chunk(&r, &c))
		continue;
	if (r.bad)
		return err_set(e, -EINVAL, "'%s' is damaged: it ends within a part", name);
	return 0;
}

size_t columns_count(const struct columns_in *in, const char *name)
{
	struct chunk c;

	return find_chunk(in, name, &c) ? (size_t)c.structs : 0;
}

void *columns_room(struct columns_in *in, size_t n, size_t size, struct err *e)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes) || bytes > in->room) {
		err_set(e, -EINVAL,
			"'%s' is damaged: it claims %zu entries, which would take more memory than "
			"a file of its size can fill",
			in->name, n);
		return NULL;
	}
	in->room -= bytes;
	return try_calloc(n ? n : 1, n ? size : 1, "measures", e);
}

/* Values of one member, one after another, as they were before they were written. */
struct values {
	struct reader *r;
	char type;
	bool apart;
	uint64_t before, same;
};

static uint64_t next_value(struct values *v)
{
	uint64_t step = 0;

	if (v->same) {
		v->same--;
	} else if (v->type == 'd') {
		const char *mark = get_bytes(v->r, 1), *bytes;

		if (mark && *mark == 1 && (bytes = get_bytes(v->r, sizeof(step))))
			memcpy(&step, bytes, sizeof(step));
		else if (mark && *mark == 0)
			v->same = get_varint(v->r);
		else
			v->r->bad = true;
	} else {
		uint64_t zigzag = get_varint(v->r);

		step = zigzag >> 1 ^ (0 - (zigzag & 1));
		if (zigzag == 0)
			v->same = get_varint(v->r);
	}
	step = v->type == 'd' ? step ^ v->before : step + v->before;
	v->before = v->apart ? 0 : step;
	return step;
}

/* Values that no struct has a place for. */
static void skip_values(struct values *v, uint64_t n)
{
	while (n && !v->r->bad) {
		uint64_t same;

		next_value(v);
		n--;
		same = v->same < n ? v->same : n;
		v->same -= same;
		n -= same;
	}
}

static void get_values(struct values *v, const struct leaf *l, uint64_t elements,
		       const struct shape *shape, const struct piece *piece, size_t pieces)
{
	for (size_t p = 0; p < pieces && !v->r->bad; p++)
		for (size_t i = 0; i < piece[p].n && !v->r->bad; i++) {
			char *base = (char *)(uintptr_t)piece[p].at + i * shape->size;

			for (size_t k = 0; k < l->elements && k < elements; k++)
				store(l, base, k, next_value(v));
			if (elements > l->elements)
				skip_values(v, elements - l->elements);
		}
}

static void get_texts(struct reader *r, const struct leaf *l, const struct shape *shape,
		      const struct piece *piece, size_t pieces)
{
	for (size_t p = 0; p < pieces && !r->bad; p++)
		for (size_t i = 0; i < piece[p].n && !r->bad; i++) {
			char *base = (char *)(uintptr_t)piece[p].at + i * shape->size;
			uint64_t n;
			const char *s = get_text(r, &n);

			if (s)
				memcpy(base + l->offset, s, n < l->each ? n : l->each - 1);
		}
}

/* The member of that name and type; NULL: there is none. */
static const struct leaf *leaf_of(const struct leaves *l, size_t from, const char *path, uint64_t n,
				  char type)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct leaf *one = &l->v[(from + i) % l->n];

		if (is_text(path, n, one->path) && one->type == type)
			return one;
	}
	return NULL;
}

int columns_get(struct columns_in *in, const char *name, const struct shape *shape,
		const struct piece *piece, size_t pieces, struct err *e)
{
	struct leaves l;
	uint64_t structs = 0;
	struct chunk c;
	bool bad;

	if (!find_chunk(in, name, &c))
		return 0;
	for (size_t p = 0; p < pieces; p++)
		structs += piece[p].n;
	if (structs != c.structs)
		return err_set(e, -EINVAL,
			       "'%s' is damaged: it has %" PRIu64 " entries in '%s', not %" PRIu64,
			       in->name, c.structs, name, structs);
	l = leaves_of(shape);
	for (uint64_t i = 0; i < c.members && !c.values.bad; i++) {
		uint64_t n, elements;
		const char *path = get_text(&c.layout, &n), *type = get_bytes(&c.layout, 1);
		const struct leaf *to;
		struct values v;

		elements = get_varint(&c.layout);
		if (c.layout.bad || !strchr("buidc", *type)) {
			c.values.bad = true;
			break;
		}
		to = leaf_of(&l, i, path, n, *type);
		v = (struct values){.r = &c.values, .type = *type, .apart = elements > 1};
		if (*type == 'c' && to)
			get_texts(&c.values, to, shape, piece, pieces);
		else if (*type == 'c')
			for (uint64_t k = 0; k < structs && !c.values.bad; k++)
				get_text(&c.values, &n);
		else if (to)
			get_values(&v, to, elements, shape, piece, pieces);
		else if (elements && structs <= UINT64_MAX / elements)
			skip_values(&v, structs * elements);
		else
			c.values.bad = elements != 0;
	}
	bad = c.values.bad;
	free(l.v);
	return bad ? err_set(e, -EINVAL, "'%s' is damaged in its part '%s'", in->name, name) : 0;
}

int columns_get_texts(struct columns_in *in, const char *name,
		      void (*take)(void *arg, const char *text), void *arg, struct err *e)
{
	struct chunk c;

	if (!find_chunk(in, name, &c))
		return 0;
	for (uint64_t i = 0; i < c.structs && !c.values.bad; i++) {
		uint64_t n;
		const char *s = get_text(&c.values, &n);

		if (s) {
			AUTO_FREE char *text = xstrndup(s, n);

			take(arg, text);
		}
	}
	return c.values.bad
		       ? err_set(e, -EINVAL, "'%s' is damaged in its part '%s'", in->name, name)
		       : 0;
}
