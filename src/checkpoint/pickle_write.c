/* The order of opcodes and of the memo is that of CPython's C pickler (Modules/_pickle.c). */
#include "checkpoint/pickle.h"

#include <assert.h>
#include <string.h>

#include "checkpoint/checkpoint_plan.h"

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
		pickle_op(w, PICKLE_OP_MARK);
		pickle_op(w, PICKLE_OP_SETITEMS);
	}
}

void pickle_tensor(struct pickle_writer *w, unsigned type, const char *key, uint64_t elements)
{
	assert(type < CHECKPOINT_DATATYPES);
	pickle_global(w, &w->shared[PICKLE_REBUILD], "torch._utils", "_rebuild_tensor_v2");
	pickle_op(w, PICKLE_OP_MARK);
	pickle_op(w, PICKLE_OP_MARK);
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
	pickle_op(w, PICKLE_OP_EMPTY_TUPLE);
	pickle_op(w, PICKLE_OP_REDUCE);
	pickle_put(w);
	pickle_op(w, PICKLE_OP_TUPLE);
	pickle_put(w);
	pickle_op(w, PICKLE_OP_REDUCE);
	pickle_put(w);
}
