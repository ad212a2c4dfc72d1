#include "checkpoint/pickle.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/checkpoint_plan.h"

/* A machine for the opcodes of torch.save. Values are numbers of a table that only grows, so that
 * what a pickle can make this hold is bounded by its length and by `memory`. */

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

static int pickle_bad(struct machine *m, const char *what)
{
	return err_set(m->e, ERR_DATA, "the pickle is invalid at byte %zu: %s", m->pos, what);
}

/* Room for element `index` of a growing array. */
static int grow_array(struct machine *m, void *array, size_t *cap, size_t index, size_t size)
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
	int rc = grow_array(m, &m->stack, &m->stack_cap, m->depth, sizeof(*m->stack));

	if (rc == 0)
		m->stack[m->depth++] = value;
	return rc;
}

static int new_value(struct machine *m, enum kind kind, uint32_t *out)
{
	int rc = grow_array(m, &m->v, &m->value_cap, m->values, sizeof(*m->v));

	if (rc < 0)
		return rc;
	m->v[m->values] = (struct value){.kind = kind, .first = NONE, .last = NONE};
	*out = (uint32_t)m->values++;
	return 0;
}

static int push_new(struct machine *m, enum kind kind, uint32_t *out)
{
	int rc = new_value(m, kind, out);

	return rc < 0 ? rc : push(m, *out);
}

static int append_value(struct machine *m, uint32_t to, uint32_t value)
{
	int rc = grow_array(m, &m->l, &m->link_cap, m->links, sizeof(*m->l));
	struct value *v;

	if (rc < 0)
		return rc;
	assert(to < m->values && value < m->values);
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

static uint32_t item_at(const struct machine *m, uint32_t of, uint32_t index)
{
	uint32_t at = m->v[of].first;

	while (at != NONE && index--)
		at = m->l[at].next;
	return at == NONE ? NONE : m->l[at].value;
}

static bool is_kind(const struct machine *m, uint32_t value, enum kind kind)
{
	return value != NONE && m->v[value].kind == kind;
}

static bool text_is(const struct machine *m, uint32_t value, const char *s)
{
	return (is_kind(m, value, TEXT) || is_kind(m, value, GLOBAL)) &&
	       m->v[value].text.n == strlen(s) &&
	       memcmp(m->p + m->v[value].text.at, s, m->v[value].text.n) == 0;
}

/* The next n bytes of the pickle. */
static const unsigned char *take_bytes(struct machine *m, uint64_t n)
{
	const unsigned char *at = m->p + m->pos;

	if (n > m->n - m->pos)
		return NULL;
	m->pos += (size_t)n;
	return at;
}

static int take_number(struct machine *m, int width, uint64_t *out)
{
	const unsigned char *b = take_bytes(m, (uint64_t)width);

	if (!b)
		return pickle_bad(m, "it ends inside a number");
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

	if (!take_bytes(m, n))
		return pickle_bad(m, "it ends inside a string");
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
		return pickle_bad(m, "it ends inside the name of a global");
	return push_text(m, GLOBAL, (uint64_t)(b - m->p) + 1 - from);
}

/* The place of the topmost mark; what lies above it is taken off as a sequence in `out`. */
static int take_marked(struct machine *m, uint32_t *out)
{
	size_t at = m->depth;
	int rc;

	while (at > 0 && !is_kind(m, m->stack[at - 1], MARK))
		at--;
	if (at == 0)
		return pickle_bad(m, "a mark is missing");
	rc = new_value(m, SEQUENCE, out);
	for (size_t i = at; i < m->depth && rc == 0; i++)
		rc = append_value(m, *out, m->stack[i]);
	m->depth = at - 1;
	return rc;
}

static int take_last(struct machine *m, unsigned count, uint32_t *out)
{
	int rc;

	if (m->depth < count)
		return pickle_bad(m, "stack underflow");
	rc = new_value(m, SEQUENCE, out);
	for (size_t i = m->depth - count; i < m->depth && rc == 0; i++)
		rc = append_value(m, *out, m->stack[i]);
	m->depth -= count;
	return rc;
}

/* Adds the items of a sequence to the container on the stack; what is no container ignores them. */
static int add_items(struct machine *m, uint32_t items, enum kind kind)
{
	uint32_t to;
	int rc = 0;

	if (m->depth == 0)
		return pickle_bad(m, "stack underflow");
	to = m->stack[m->depth - 1];
	if (kind == MAP && m->v[items].count % 2)
		return pickle_bad(m, "a key has no value");
	for (uint32_t at = m->v[items].first; at != NONE && rc == 0 && is_kind(m, to, kind);
	     at = m->l[at].next)
		rc = append_value(m, to, m->l[at].value);
	return rc;
}

static int memo_put(struct machine *m, uint64_t place)
{
	int rc;

	if (m->depth == 0 || place > m->n)
		return pickle_bad(m, "an invalid memo index");
	rc = grow_array(m, &m->memo, &m->memo_cap, (size_t)place, sizeof(*m->memo));
	if (rc == 0)
		m->memo[place] = m->stack[m->depth - 1];
	return rc;
}

static int memo_get(struct machine *m, uint64_t place)
{
	if (place >= m->memo_cap || m->memo[place] == NONE)
		return pickle_bad(m, "an empty memo entry");
	return push(m, m->memo[place]);
}

static int persistent_id(struct machine *m)
{
	uint32_t id, out;
	int rc;

	if (m->depth == 0)
		return pickle_bad(m, "stack underflow");
	id = m->stack[--m->depth];
	if (!is_kind(m, id, SEQUENCE) || m->v[id].count < 5 ||
	    !text_is(m, item_at(m, id, 0), "storage") || !is_kind(m, item_at(m, id, 1), GLOBAL) ||
	    !is_kind(m, item_at(m, id, 2), TEXT) || !is_kind(m, item_at(m, id, 4), INTEGER))
		return pickle_bad(m, "a persistent id that does not name a storage");
	rc = push_new(m, STORAGE, &out);
	if (rc == 0)
		m->v[out].from = id;
	return rc;
}

static int call_function(struct machine *m)
{
	uint32_t function, args, out;
	int rc;

	if (m->depth < 2)
		return pickle_bad(m, "stack underflow");
	args = m->stack[--m->depth];
	function = m->stack[--m->depth];
	if (text_is(m, function, "collections\nOrderedDict\n"))
		return push_new(m, MAP, &out);
	if (text_is(m, function, "torch._utils\n_rebuild_parameter\n") &&
	    is_kind(m, args, SEQUENCE) && item_at(m, args, 0) != NONE)
		return push(m, item_at(m, args, 0));
	if (!text_is(m, function, "torch._utils\n_rebuild_tensor_v2\n") &&
	    !text_is(m, function, "torch._utils\n_rebuild_tensor\n"))
		return push_new(m, NOTHING, &out);
	if (!is_kind(m, args, SEQUENCE) || m->v[args].count < 4 ||
	    !is_kind(m, item_at(m, args, 0), STORAGE) ||
	    !is_kind(m, item_at(m, args, 1), INTEGER) ||
	    !is_kind(m, item_at(m, args, 2), SEQUENCE) ||
	    !is_kind(m, item_at(m, args, 3), SEQUENCE))
		return pickle_bad(m, "a tensor lacks its storage, offset, size or strides");
	rc = push_new(m, TENSOR, &out);
	if (rc == 0)
		m->v[out].from = args;
	return rc;
}

static int long_integer(struct machine *m)
{
	uint64_t n = 0, v = 0;
	int rc = take_number(m, 1, &n);

	if (rc < 0)
		return rc;
	if (n > 8)
		return take_bytes(m, n) ? push_integer(m, INT64_MAX)
					: pickle_bad(m, "it ends inside a number");
	rc = take_number(m, (int)n, &v);
	if (rc == 0 && n > 0 && n < 8 && v >> (8 * n - 1))
		v |= ~0ull << 8 * n;
	return rc < 0 ? rc : push_integer(m, (int64_t)v);
}

static int argument_bytes(unsigned char op)
{
	switch (op) {
	case PICKLE_OP_FRAME:
	case PICKLE_OP_BINFLOAT:
		return 8;
	case PICKLE_OP_BINUNICODE:
	case PICKLE_OP_LONG_BINPUT:
	case PICKLE_OP_LONG_BINGET:
	case PICKLE_OP_BININT:
	case PICKLE_OP_BINBYTES:
		return 4;
	case PICKLE_OP_BININT2:
		return 2;
	default:
		return 1;
	}
}

/* Opcodes whose argument begins with an unsigned number. */
static int with_number(struct machine *m, unsigned char op)
{
	uint64_t v = 0;
	int rc = take_number(m, argument_bytes(op), &v);

	if (rc < 0)
		return rc;
	switch (op) {
	case PICKLE_OP_BINUNICODE:
	case PICKLE_OP_SHORT_BINSTRING:
	case PICKLE_OP_SHORT_BINUNICODE:
		return push_text(m, TEXT, v);
	case PICKLE_OP_BINBYTES:
	case PICKLE_OP_SHORT_BINBYTES: {
		uint32_t out;

		return take_bytes(m, v) ? push_new(m, NOTHING, &out)
					: pickle_bad(m, "it ends inside a byte string");
	}
	case PICKLE_OP_BINPUT:
	case PICKLE_OP_LONG_BINPUT:
		return memo_put(m, v);
	case PICKLE_OP_BINGET:
	case PICKLE_OP_LONG_BINGET:
		return memo_get(m, v);
	case PICKLE_OP_BININT:
		return push_integer(m, (int32_t)(uint32_t)v);
	case PICKLE_OP_BININT1:
	case PICKLE_OP_BININT2:
		return push_integer(m, (int64_t)v);
	default: /* protocol, frame */
		return op == PICKLE_OP_BINFLOAT ? push_integer(m, 0) : 0;
	}
}

static int with_items(struct machine *m, unsigned char op)
{
	uint32_t items;
	int rc;

	switch (op) {
	case PICKLE_OP_SETITEM:
		rc = take_last(m, 2, &items);
		break;
	case PICKLE_OP_APPEND:
		rc = take_last(m, 1, &items);
		break;
	default:
		rc = take_marked(m, &items);
	}
	if (rc < 0 || op == PICKLE_OP_TUPLE)
		return rc < 0 ? rc : push(m, items);
	return add_items(m, items,
			 op == PICKLE_OP_SETITEM || op == PICKLE_OP_SETITEMS ? MAP : SEQUENCE);
}

static int run_opcode(struct machine *m, unsigned char op)
{
	uint32_t out;
	int rc;

	switch (op) {
	case PICKLE_OP_PROTO:
	case PICKLE_OP_SHORT_BINUNICODE:
	case PICKLE_OP_FRAME:
	case PICKLE_OP_BINBYTES:
	case PICKLE_OP_SHORT_BINBYTES:
	case PICKLE_OP_BINFLOAT:
	case PICKLE_OP_BININT:
	case PICKLE_OP_BININT1:
	case PICKLE_OP_BININT2:
	case PICKLE_OP_SHORT_BINSTRING:
	case PICKLE_OP_BINUNICODE:
	case PICKLE_OP_BINGET:
	case PICKLE_OP_LONG_BINGET:
	case PICKLE_OP_BINPUT:
	case PICKLE_OP_LONG_BINPUT:
		return with_number(m, op);
	case PICKLE_OP_MEMOIZE:
		return pickle_bad(
			m, "unsupported opcodes of protocol 4, which torch.save does not write");
	case PICKLE_OP_SETITEM:
	case PICKLE_OP_SETITEMS:
	case PICKLE_OP_APPEND:
	case PICKLE_OP_APPENDS:
	case PICKLE_OP_TUPLE:
		return with_items(m, op);
	case PICKLE_OP_TUPLE1:
	case PICKLE_OP_TUPLE2:
	case PICKLE_OP_TUPLE3:
		rc = take_last(m, op - PICKLE_OP_TUPLE1 + 1u, &out);
		return rc < 0 ? rc : push(m, out);
	case PICKLE_OP_LONG1:
		return long_integer(m);
	case PICKLE_OP_MARK:
		return push_new(m, MARK, &out);
	case PICKLE_OP_EMPTY_DICT:
		return push_new(m, MAP, &out);
	case PICKLE_OP_EMPTY_LIST:
	case PICKLE_OP_EMPTY_TUPLE:
		return push_new(m, SEQUENCE, &out);
	case PICKLE_OP_NONE:
	case PICKLE_OP_NEWTRUE:
	case PICKLE_OP_NEWFALSE:
		return push_new(m, NOTHING, &out);
	case PICKLE_OP_GLOBAL:
		return push_global(m);
	case PICKLE_OP_BINPERSID:
		return persistent_id(m);
	case PICKLE_OP_REDUCE:
	case PICKLE_OP_NEWOBJ:
		return call_function(m);
	case PICKLE_OP_BUILD: /* state of an object, of which none is needed */
	case PICKLE_OP_POP:
		if (m->depth < 2)
			return pickle_bad(m, "stack underflow");
		m->depth--;
		return 0;
	default:
		return pickle_bad(m, "an unsupported opcode, which torch.save does not write");
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
			return pickle_bad(m, "a tensor has an invalid size");
		out[n++] = (uint64_t)v->integer;
	}
	*rank = n;
	return 0;
}

static int give_tensor(struct machine *m, uint32_t value, const char *name)
{
	uint32_t args = m->v[value].from, id = m->v[item_at(m, args, 0)].from;
	uint32_t type = item_at(m, id, 1);
	int64_t elements = m->v[item_at(m, id, 4)].integer,
		offset = m->v[item_at(m, args, 1)].integer;
	struct pickle_tensor t = {.name = name};
	const char *colon;
	unsigned strides = 0;
	char global[128];
	int rc;

	if (elements < 0 || offset < 0)
		return pickle_bad(m, "a storage has a negative size");
	if (m->v[item_at(m, id, 2)].text.n >= sizeof(t.storage))
		return pickle_bad(m, "the name of a storage is too long");
	copy_text(m, item_at(m, id, 2), t.storage, sizeof(t.storage));
	copy_text(m, type, global, sizeof(global));
	colon = strchr(global, '\n');
	snprintf(t.type, sizeof(t.type), "%.*s", colon ? (int)strcspn(colon + 1, "\n") : 0,
		 colon ? colon + 1 : "");
	t.storage_elements = (uint64_t)elements;
	t.offset = (uint64_t)offset;
	rc = read_dims(m, item_at(m, args, 2), t.dims, &t.rank);
	if (rc == 0)
		rc = read_dims(m, item_at(m, args, 3), t.strides, &strides);
	if (rc == 0 && strides != t.rank)
		rc = pickle_bad(m, "a tensor has different numbers of sizes and strides");
	return rc < 0 ? rc : m->fn(m->arg, &t, m->e);
}

/* Maps and sequences below `value`. A pickle may name one thing many times: the visits are counted.
 */
static int visit_value(struct machine *m, uint32_t value, char *name, size_t len, unsigned depth)
{
	const struct value *v = &m->v[value];
	uint64_t index = 0;
	int rc = 0;

	if (depth > PICKLE_DEPTH)
		return pickle_bad(m, "maps are nested too deeply");
	if (++m->visits > 1000000 + (uint64_t)m->n)
		return pickle_bad(m, "too many tensors for the size of the pickle");
	if (v->kind == TENSOR)
		return give_tensor(m, value, name);
	if (v->kind != MAP && v->kind != SEQUENCE)
		return 0;
	for (uint32_t at = v->first; at != NONE && rc == 0; at = m->l[at].next, index++) {
		uint32_t child = m->l[at].value;
		char key[128];
		int n;

		if (v->kind == MAP) {
			if (is_kind(m, child, TEXT))
				copy_text(m, child, key, sizeof(key));
			else
				snprintf(key, sizeof(key), "%" PRId64,
					 is_kind(m, child, INTEGER) ? m->v[child].integer : 0);
			at = m->l[at].next;
			child = m->l[at].value;
		} else {
			snprintf(key, sizeof(key), "%" PRIu64, index);
		}
		n = snprintf(name + len, NAME_MAX_BYTES - len, "%s%s", len ? "." : "", key);
		if (n < 0 || (size_t)n >= NAME_MAX_BYTES - len)
			return pickle_bad(m, "the name of a tensor is too long");
		rc = visit_value(m, child, name, len + (size_t)n, depth + 1);
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
	int rc = n > INT32_MAX ? pickle_bad(&m, "it is larger than 2 GiB") : 0;

	while (rc == 0 && !stopped) {
		if (m.pos == n)
			rc = pickle_bad(&m, "the STOP opcode is missing");
		else if (m.p[m.pos] == PICKLE_OP_STOP)
			stopped = true;
		else
			rc = run_opcode(&m, m.p[m.pos++]);
	}
	if (rc == 0 && m.depth == 0)
		rc = pickle_bad(&m, "it is empty");
	if (rc == 0)
		rc = visit_value(&m, m.stack[m.depth - 1], name, 0, 0);
	free(m.v);
	free(m.l);
	free(m.stack);
	free(m.memo);
	return rc;
}

/* The order of opcodes and of the memo is that of CPython's C pickler (Modules/_pickle.c). */

#define BATCH 1000

const char *const pickle_storage_names[] = {
	"HalfStorage",   "BFloat16Storage", "FloatStorage",
	"DoubleStorage", "CharStorage",     "ByteStorage",
};

void pickle_op(struct pickle_writer *w, unsigned char op)
{
	buf_putc(w->out, (char)op);
}

static void put_le(struct pickle_writer *w, uint64_t v, int bytes)
{
	for (int i = 0; i < bytes; i++)
		pickle_op(w, (unsigned char)(v >> 8 * i));
}

void pickle_begin(struct pickle_writer *w, struct buf *out)
{
	w->out = out;
	w->memo = 0;
	memset(w->shared, -1, sizeof(w->shared));
	memset(w->character, -1, sizeof(w->character));
	buf_append(out, "\x80\x02", 2);
}

void pickle_end(struct pickle_writer *w)
{
	pickle_op(w, PICKLE_OP_STOP);
}

int64_t pickle_put(struct pickle_writer *w)
{
	int64_t place = w->memo++;

	pickle_op(w, place < 256 ? PICKLE_OP_BINPUT : PICKLE_OP_LONG_BINPUT);
	put_le(w, (uint64_t)place, place < 256 ? 1 : 4);
	return place;
}

void pickle_get(struct pickle_writer *w, int64_t place)
{
	assert(place >= 0 && place < w->memo);
	pickle_op(w, place < 256 ? PICKLE_OP_BINGET : PICKLE_OP_LONG_BINGET);
	put_le(w, (uint64_t)place, place < 256 ? 1 : 4);
}

void pickle_int(struct pickle_writer *w, int64_t v)
{
	if (v >= 0 && v < 256) {
		pickle_op(w, PICKLE_OP_BININT1);
		put_le(w, (uint64_t)v, 1);
	} else if (v >= 0 && v < 65536) {
		pickle_op(w, PICKLE_OP_BININT2);
		put_le(w, (uint64_t)v, 2);
	} else if (v >= INT32_MIN && v <= INT32_MAX) {
		pickle_op(w, PICKLE_OP_BININT);
		put_le(w, (uint64_t)v, 4);
	} else {
		int bytes = 8;

		/* LONG1: the fewest bytes of two's complement */
		while (bytes > 1 && v == (int64_t)((uint64_t)v << (64 - 8 * (bytes - 1))) >>
						    (64 - 8 * (bytes - 1)))
			bytes--;
		pickle_op(w, PICKLE_OP_LONG1);
		put_le(w, (uint64_t)bytes, 1);
		put_le(w, (uint64_t)v, bytes);
	}
}

static void put_text(struct pickle_writer *w, const char *s)
{
	size_t n = strlen(s);

	pickle_op(w, PICKLE_OP_BINUNICODE);
	put_le(w, n, 4);
	buf_append(w->out, s, n);
}

/* A string that is nowhere else. */
static void put_new_text(struct pickle_writer *w, const char *s)
{
	put_text(w, s);
	pickle_put(w);
}

/* A string that may come again: from the memo then. */
static void put_shared_text(struct pickle_writer *w, int64_t *slot, const char *s)
{
	if (*slot >= 0) {
		pickle_get(w, *slot);
		return;
	}
	put_text(w, s);
	*slot = pickle_put(w);
}

void pickle_key(struct pickle_writer *w, const char *s)
{
	bool digit = s[0] >= '0' && s[0] <= '9';

	if (!digit && s[0] && !s[1] && (unsigned char)s[0] < 128)
		put_shared_text(w, &w->character[(unsigned char)s[0]], s);
	else
		put_new_text(w, s);
}

void pickle_global(struct pickle_writer *w, int64_t *slot, const char *module, const char *name)
{
	int64_t place;

	if (slot && *slot >= 0) {
		pickle_get(w, *slot);
		return;
	}
	pickle_op(w, PICKLE_OP_GLOBAL);
	buf_puts(w->out, module);
	buf_putc(w->out, '\n');
	buf_puts(w->out, name);
	buf_putc(w->out, '\n');
	place = pickle_put(w);
	if (slot)
		*slot = place;
}

void pickle_item(struct pickle_writer *w, uint64_t i, uint64_t n)
{
	if (n == 1) {
		if (i == 1)
			pickle_op(w, PICKLE_OP_SETITEM);
		return;
	}
	if (n == 0)
		return;
	if (i > 0 && (i == n || i % BATCH == 0))
		pickle_op(w, PICKLE_OP_SETITEMS);
	if (i < n && i % BATCH == 0)
		pickle_op(w, PICKLE_OP_MARK);
	/* after whole batches the pickler finds out with an empty one */
	if (i == n && i % BATCH == 0) {
		pickle_ops(w, PICKLE_OP_MARK, PICKLE_OP_SETITEMS);
	}
}

void pickle_tensor(struct pickle_writer *w, unsigned type, const char *key, uint64_t elements)
{
	assert(type < CHECKPOINT_DATATYPES);
	pickle_global(w, &w->shared[PICKLE_REBUILD], "torch._utils", "_rebuild_tensor_v2");
	pickle_ops(w, PICKLE_OP_MARK, PICKLE_OP_MARK);
	put_shared_text(w, &w->shared[PICKLE_STORAGE], "storage");
	pickle_global(w, &w->shared[PICKLE_TYPE + type], "torch", pickle_storage_names[type]);
	put_new_text(w, key);
	put_shared_text(w, &w->shared[PICKLE_CPU], "cpu");
	pickle_int(w, (int64_t)elements);
	pickle_op(w, PICKLE_OP_TUPLE);
	pickle_put(w);
	pickle_op(w, PICKLE_OP_BINPERSID);
	pickle_int(w, 0);
	pickle_int(w, (int64_t)elements);
	pickle_op(w, PICKLE_OP_TUPLE1);
	pickle_put(w);
	pickle_int(w, 1);
	pickle_op(w, PICKLE_OP_TUPLE1);
	pickle_put(w);
	pickle_op(w, PICKLE_OP_NEWFALSE);
	pickle_global(w, &w->shared[PICKLE_ORDERED], "collections", "OrderedDict");
	pickle_ops(w, PICKLE_OP_EMPTY_TUPLE, PICKLE_OP_REDUCE);
	pickle_put(w);
	pickle_op(w, PICKLE_OP_TUPLE);
	pickle_put(w);
	pickle_op(w, PICKLE_OP_REDUCE);
	pickle_put(w);
}
