/* A machine for the opcodes of torch.save. Values are numbers of a table that only grows, so that
 * what a pickle can make this hold is bounded by its length and by `memory`. */
#include "checkpoint/pickle.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum kind { NOTHING, INTEGER, TEXT, SEQUENCE, MAP, GLOBAL, STORAGE, TENSOR, MARK };

#define NONE UINT32_MAX
#define NAME_MAX_BYTES 512

struct value {
	enum kind kind;
	uint32_t first, last; /* links of a SEQUENCE or MAP (key, value, key, ...) */
	uint32_t count;
	/* TEXT and GLOBAL: bytes of the pickle. STORAGE, TENSOR: the values they came from */
	union {
		int64_t integer;
		struct {
			uint32_t at, n;
		} text;
		uint32_t from;
	};
};

struct link {
	uint32_t value, next;
};

struct machine {
	const unsigned char *p;
	size_t n, pos, memory, used;
	struct value *v;
	struct link *l;
	uint32_t *stack, *memo;
	size_t values, value_cap, links, link_cap, depth, stack_cap, memo_cap;
	uint64_t visits;
	pickle_tensor_fn fn;
	void *arg;
	struct err *e;
};

static int bad(struct machine *m, const char *what)
{
	return err_set(m->e, ERR_DATA, "the pickle is invalid at byte %zu: %s", m->pos, what);
}

/* Room for element `index` of a growing array. */
static int grow(struct machine *m, void *array, size_t *cap, size_t index, size_t size)
{
	void **at = array;
	size_t want = *cap ? *cap : 64;
	void *p;

	if (index < *cap)
		return 0;
	while (want <= index)
		want *= 2;
	if (want > m->memory / size || m->used > m->memory - want * size)
		return err_set(m->e, ERR_DATA, "the pickle needs more than %zu bytes of memory",
			       m->memory);
	p = realloc(*at, want * size);
	if (!p)
		return err_set(m->e, ERR_DATA, "no memory for a pickle of %zu bytes", m->n);
	memset((char *)p + *cap * size, 0xff, (want - *cap) * size);
	*at = p;
	m->used += (want - *cap) * size;
	*cap = want;
	return 0;
}

static int push(struct machine *m, uint32_t value)
{
	int rc = grow(m, &m->stack, &m->stack_cap, m->depth, sizeof(*m->stack));

	if (rc == 0)
		m->stack[m->depth++] = value;
	return rc;
}

static int make(struct machine *m, enum kind kind, uint32_t *out)
{
	int rc = grow(m, &m->v, &m->value_cap, m->values, sizeof(*m->v));

	if (rc < 0)
		return rc;
	m->v[m->values] = (struct value){.kind = kind, .first = NONE, .last = NONE};
	*out = (uint32_t)m->values++;
	return 0;
}

static int push_new(struct machine *m, enum kind kind, uint32_t *out)
{
	int rc = make(m, kind, out);

	return rc < 0 ? rc : push(m, *out);
}

static int append(struct machine *m, uint32_t to, uint32_t value)
{
	int rc = grow(m, &m->l, &m->link_cap, m->links, sizeof(*m->l));
	struct value *v;

	if (rc < 0)
		return rc;
	v = &m->v[to];
	m->l[m->links] = (struct link){value, NONE};
	if (v->last == NONE)
		v->first = (uint32_t)m->links;
	else
		m->l[v->last].next = (uint32_t)m->links;
	v->last = (uint32_t)m->links++;
	v->count++;
	return 0;
}

static uint32_t item(const struct machine *m, uint32_t of, uint32_t index)
{
	uint32_t at = m->v[of].first;

	while (at != NONE && index--)
		at = m->l[at].next;
	return at == NONE ? NONE : m->l[at].value;
}

static bool is(const struct machine *m, uint32_t value, enum kind kind)
{
	return value != NONE && m->v[value].kind == kind;
}

static bool text_is(const struct machine *m, uint32_t value, const char *s)
{
	return (is(m, value, TEXT) || is(m, value, GLOBAL)) && m->v[value].text.n == strlen(s) &&
	       memcmp(m->p + m->v[value].text.at, s, m->v[value].text.n) == 0;
}

/* The next n bytes of the pickle. */
static const unsigned char *bytes(struct machine *m, uint64_t n)
{
	const unsigned char *at = m->p + m->pos;

	if (n > m->n - m->pos)
		return NULL;
	m->pos += (size_t)n;
	return at;
}

static int number(struct machine *m, int width, uint64_t *out)
{
	const unsigned char *b = bytes(m, (uint64_t)width);

	if (!b)
		return bad(m, "it ends inside a number");
	*out = 0;
	for (int i = 0; i < width; i++)
		*out |= (uint64_t)b[i] << 8 * i;
	return 0;
}

static int push_integer(struct machine *m, int64_t v)
{
	uint32_t at;
	int rc = push_new(m, INTEGER, &at);

	if (rc == 0)
		m->v[at].integer = v;
	return rc;
}

static int push_text(struct machine *m, enum kind kind, uint64_t n)
{
	size_t from = m->pos;
	uint32_t at;
	int rc;

	if (!bytes(m, n))
		return bad(m, "it ends inside a string");
	rc = push_new(m, kind, &at);
	if (rc == 0) {
		m->v[at].text.at = (uint32_t)from;
		m->v[at].text.n = (uint32_t)n;
	}
	return rc;
}

/* "module\nname\n" */
static int push_global(struct machine *m)
{
	size_t from = m->pos;
	const unsigned char *a = memchr(m->p + from, '\n', m->n - from), *b = NULL;

	if (a)
		b = memchr(a + 1, '\n', m->n - (size_t)(a + 1 - m->p));
	if (!b)
		return bad(m, "it ends inside the name of a global");
	return push_text(m, GLOBAL, (uint64_t)(b - m->p) + 1 - from);
}

/* The place of the topmost mark; what lies above it is taken off as a sequence in `out`. */
static int take_marked(struct machine *m, uint32_t *out)
{
	size_t at = m->depth;
	int rc;

	while (at > 0 && !is(m, m->stack[at - 1], MARK))
		at--;
	if (at == 0)
		return bad(m, "a mark is missing");
	rc = make(m, SEQUENCE, out);
	for (size_t i = at; i < m->depth && rc == 0; i++)
		rc = append(m, *out, m->stack[i]);
	m->depth = at - 1;
	return rc;
}

static int take_last(struct machine *m, unsigned count, uint32_t *out)
{
	int rc;

	if (m->depth < count)
		return bad(m, "stack underflow");
	rc = make(m, SEQUENCE, out);
	for (size_t i = m->depth - count; i < m->depth && rc == 0; i++)
		rc = append(m, *out, m->stack[i]);
	m->depth -= count;
	return rc;
}

/* Adds the items of a sequence to the container on the stack; what is no container ignores them. */
static int add_items(struct machine *m, uint32_t items, enum kind kind)
{
	uint32_t to;
	int rc = 0;

	if (m->depth == 0)
		return bad(m, "stack underflow");
	to = m->stack[m->depth - 1];
	if (kind == MAP && m->v[items].count % 2)
		return bad(m, "a key has no value");
	for (uint32_t at = m->v[items].first; at != NONE && rc == 0 && is(m, to, kind);
	     at = m->l[at].next)
		rc = append(m, to, m->l[at].value);
	return rc;
}

static int remember(struct machine *m, uint64_t place)
{
	int rc;

	if (m->depth == 0 || place > m->n)
		return bad(m, "an invalid memo index");
	rc = grow(m, &m->memo, &m->memo_cap, (size_t)place, sizeof(*m->memo));
	if (rc == 0)
		m->memo[place] = m->stack[m->depth - 1];
	return rc;
}

static int recall(struct machine *m, uint64_t place)
{
	if (place >= m->memo_cap || m->memo[place] == NONE)
		return bad(m, "an empty memo entry");
	return push(m, m->memo[place]);
}

static int persistent(struct machine *m)
{
	uint32_t id, out;
	int rc;

	if (m->depth == 0)
		return bad(m, "stack underflow");
	id = m->stack[--m->depth];
	if (!is(m, id, SEQUENCE) || m->v[id].count < 5 || !text_is(m, item(m, id, 0), "storage") ||
	    !is(m, item(m, id, 1), GLOBAL) || !is(m, item(m, id, 2), TEXT) ||
	    !is(m, item(m, id, 4), INTEGER))
		return bad(m, "a persistent id that does not name a storage");
	rc = push_new(m, STORAGE, &out);
	if (rc == 0)
		m->v[out].from = id;
	return rc;
}

static int call(struct machine *m)
{
	uint32_t function, args, out;
	int rc;

	if (m->depth < 2)
		return bad(m, "stack underflow");
	args = m->stack[--m->depth];
	function = m->stack[--m->depth];
	if (text_is(m, function, "collections\nOrderedDict\n"))
		return push_new(m, MAP, &out);
	if (text_is(m, function, "torch._utils\n_rebuild_parameter\n") && is(m, args, SEQUENCE) &&
	    item(m, args, 0) != NONE)
		return push(m, item(m, args, 0));
	if (!text_is(m, function, "torch._utils\n_rebuild_tensor_v2\n") &&
	    !text_is(m, function, "torch._utils\n_rebuild_tensor\n"))
		return push_new(m, NOTHING, &out);
	if (!is(m, args, SEQUENCE) || m->v[args].count < 4 || !is(m, item(m, args, 0), STORAGE) ||
	    !is(m, item(m, args, 1), INTEGER) || !is(m, item(m, args, 2), SEQUENCE) ||
	    !is(m, item(m, args, 3), SEQUENCE))
		return bad(m, "a tensor lacks its storage, offset, size or strides");
	rc = push_new(m, TENSOR, &out);
	if (rc == 0)
		m->v[out].from = args;
	return rc;
}

static int long_integer(struct machine *m)
{
	uint64_t n = 0, v = 0;
	int rc = number(m, 1, &n);

	if (rc < 0)
		return rc;
	if (n > 8)
		return bytes(m, n) ? push_integer(m, INT64_MAX) : bad(m, "it ends inside a number");
	rc = number(m, (int)n, &v);
	if (rc == 0 && n > 0 && n < 8 && v >> (8 * n - 1))
		v |= ~0ull << 8 * n;
	return rc < 0 ? rc : push_integer(m, (int64_t)v);
}

/* Opcodes that take n bytes of argument as an unsigned number. */
static int with_number(struct machine *m, unsigned char op)
{
	int width = op == 'X' || op == 'r' || op == 'j' || op == 'J' || op == 'B' ? 4
		    : op == 'M'                                                   ? 2
		    : op == 0x95 || op == 'G'                                     ? 8
										  : 1;
	uint64_t v = 0;
	int rc = number(m, width, &v);

	if (rc < 0)
		return rc;
	switch (op) {
	case 'X':
	case 'U':
	case 0x8c:
		return push_text(m, TEXT, v);
	case 'B':
	case 'C': {
		uint32_t out;

		return bytes(m, v) ? push_new(m, NOTHING, &out)
				   : bad(m, "it ends inside a byte string");
	}
	case 'q':
	case 'r':
		return remember(m, v);
	case 'h':
	case 'j':
		return recall(m, v);
	case 'J':
		return push_integer(m, (int32_t)(uint32_t)v);
	case 'K':
	case 'M':
		return push_integer(m, (int64_t)v);
	default: /* protocol, frame */
		return op == 'G' ? push_integer(m, 0) : 0;
	}
}

static int with_items(struct machine *m, unsigned char op)
{
	uint32_t items;
	int rc;

	switch (op) {
	case 's':
		rc = take_last(m, 2, &items);
		break;
	case 'a':
		rc = take_last(m, 1, &items);
		break;
	default:
		rc = take_marked(m, &items);
	}
	if (rc < 0 || op == 't')
		return rc < 0 ? rc : push(m, items);
	return add_items(m, items, op == 's' || op == 'u' ? MAP : SEQUENCE);
}

static int step(struct machine *m, unsigned char op)
{
	uint32_t out;
	int rc;

	switch (op) {
	case 0x80:
	case 0x8c:
	case 0x95:
	case 'B':
	case 'C':
	case 'G':
	case 'J':
	case 'K':
	case 'M':
	case 'U':
	case 'X':
	case 'h':
	case 'j':
	case 'q':
	case 'r':
		return with_number(m, op);
	case 0x94:
		return bad(m, "unsupported opcodes of protocol 4, which torch.save does not write");
	case 's':
	case 'u':
	case 'a':
	case 'e':
	case 't':
		return with_items(m, op);
	case 0x85:
	case 0x86:
	case 0x87:
		rc = take_last(m, op - 0x84u, &out);
		return rc < 0 ? rc : push(m, out);
	case 0x8a:
		return long_integer(m);
	case '(':
		return push_new(m, MARK, &out);
	case '}':
		return push_new(m, MAP, &out);
	case ']':
	case ')':
		return push_new(m, SEQUENCE, &out);
	case 'N':
	case 0x88:
	case 0x89:
		return push_new(m, NOTHING, &out);
	case 'c':
		return push_global(m);
	case 'Q':
		return persistent(m);
	case 'R':
	case 0x81:
		return call(m);
	case 'b': /* state of an object, of which none is needed */
	case '0':
		if (m->depth < 2)
			return bad(m, "stack underflow");
		m->depth--;
		return 0;
	default:
		return bad(m, "an unsupported opcode, which torch.save does not write");
	}
}

static void copy_text(const struct machine *m, uint32_t value, char *out, size_t size)
{
	size_t n = m->v[value].text.n < size - 1 ? m->v[value].text.n : size - 1;

	memcpy(out, m->p + m->v[value].text.at, n);
	out[n] = '\0';
}

static int read_dims(struct machine *m, uint32_t of, uint64_t *out, unsigned *rank)
{
	unsigned n = 0;

	for (uint32_t at = m->v[of].first; at != NONE; at = m->l[at].next) {
		const struct value *v = &m->v[m->l[at].value];

		if (n == PICKLE_DIMS || v->kind != INTEGER || v->integer < 0)
			return bad(m, "a tensor has an invalid size");
		out[n++] = (uint64_t)v->integer;
	}
	*rank = n;
	return 0;
}

static int give_tensor(struct machine *m, uint32_t value, const char *name)
{
	uint32_t args = m->v[value].from, id = m->v[item(m, args, 0)].from;
	uint32_t type = item(m, id, 1);
	int64_t elements = m->v[item(m, id, 4)].integer, offset = m->v[item(m, args, 1)].integer;
	struct pickle_tensor t = {.name = name};
	const char *colon;
	unsigned strides;
	char global[128];
	int rc;

	if (elements < 0 || offset < 0)
		return bad(m, "a storage has a negative size");
	if (m->v[item(m, id, 2)].text.n >= sizeof(t.storage))
		return bad(m, "the name of a storage is too long");
	copy_text(m, item(m, id, 2), t.storage, sizeof(t.storage));
	copy_text(m, type, global, sizeof(global));
	colon = strchr(global, '\n');
	snprintf(t.type, sizeof(t.type), "%.*s", colon ? (int)strcspn(colon + 1, "\n") : 0,
		 colon ? colon + 1 : "");
	t.storage_elements = (uint64_t)elements;
	t.offset = (uint64_t)offset;
	rc = read_dims(m, item(m, args, 2), t.dims, &t.rank);
	if (rc == 0)
		rc = read_dims(m, item(m, args, 3), t.strides, &strides);
	if (rc == 0 && strides != t.rank)
		rc = bad(m, "a tensor has different numbers of sizes and strides");
	return rc < 0 ? rc : m->fn(m->arg, &t, m->e);
}

/* Maps and sequences below `value`. A pickle may name one thing many times: the visits are counted.
 */
static int walk(struct machine *m, uint32_t value, char *name, size_t len, unsigned depth)
{
	const struct value *v = &m->v[value];
	uint64_t index = 0;
	int rc = 0;

	if (depth > PICKLE_DEPTH)
		return bad(m, "maps are nested too deeply");
	if (++m->visits > 1000000 + (uint64_t)m->n)
		return bad(m, "too many tensors for the size of the pickle");
	if (v->kind == TENSOR)
		return give_tensor(m, value, name);
	if (v->kind != MAP && v->kind != SEQUENCE)
		return 0;
	for (uint32_t at = v->first; at != NONE && rc == 0; at = m->l[at].next, index++) {
		uint32_t child = m->l[at].value;
		char key[128];
		int n;

		if (v->kind == MAP) {
			if (is(m, child, TEXT))
				copy_text(m, child, key, sizeof(key));
			else
				snprintf(key, sizeof(key), "%" PRId64,
					 is(m, child, INTEGER) ? m->v[child].integer : 0);
			at = m->l[at].next;
			child = m->l[at].value;
		} else {
			snprintf(key, sizeof(key), "%" PRIu64, index);
		}
		n = snprintf(name + len, NAME_MAX_BYTES - len, "%s%s", len ? "." : "", key);
		if (n < 0 || (size_t)n >= NAME_MAX_BYTES - len)
			return bad(m, "the name of a tensor is too long");
		rc = walk(m, child, name, len + (size_t)n, depth + 1);
		name[len] = '\0';
	}
	return rc;
}

int pickle_read_tensors(const void *pickle, size_t n, size_t memory, pickle_tensor_fn fn, void *arg,
			struct err *e)
{
	struct machine m = {.p = pickle, .n = n, .memory = memory, .fn = fn, .arg = arg, .e = e};
	char name[NAME_MAX_BYTES] = "";
	bool stopped = false;
	int rc = n > INT32_MAX ? bad(&m, "it is larger than 2 GiB") : 0;

	while (rc == 0 && !stopped) {
		if (m.pos == n)
			rc = bad(&m, "the STOP opcode is missing");
		else if (m.p[m.pos] == '.')
			stopped = true;
		else
			rc = step(&m, m.p[m.pos++]);
	}
	if (rc == 0 && m.depth == 0)
		rc = bad(&m, "it is empty");
	if (rc == 0)
		rc = walk(&m, m.stack[m.depth - 1], name, 0, 0);
	free(m.v);
	free(m.l);
	free(m.stack);
	free(m.memo);
	return rc;
}
