/* The order of opcodes and of the memo is that of CPython's C pickler (Modules/_pickle.c). */
#include "checkpoint/pickle.h"

#include <string.h>

#include "checkpoint/checkpoint_plan.h"

#define BATCH 1000

static const char *const storage_names[] = {
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
	pickle_op(w, '.');
}

int64_t pickle_put(struct pickle_writer *w)
{
	int64_t place = w->memo++;

	pickle_op(w, place < 256 ? 'q' : 'r');
	put_le(w, (uint64_t)place, place < 256 ? 1 : 4);
	return place;
}

void pickle_get(struct pickle_writer *w, int64_t place)
{
	pickle_op(w, place < 256 ? 'h' : 'j');
	put_le(w, (uint64_t)place, place < 256 ? 1 : 4);
}

void pickle_int(struct pickle_writer *w, int64_t v)
{
	if (v >= 0 && v < 256) {
		pickle_op(w, 'K');
		put_le(w, (uint64_t)v, 1);
	} else if (v >= 0 && v < 65536) {
		pickle_op(w, 'M');
		put_le(w, (uint64_t)v, 2);
	} else if (v >= INT32_MIN && v <= INT32_MAX) {
		pickle_op(w, 'J');
		put_le(w, (uint64_t)v, 4);
	} else {
		int bytes = 8;

		/* LONG1: the fewest bytes of two's complement */
		while (bytes > 1 && v == (int64_t)((uint64_t)v << (64 - 8 * (bytes - 1))) >>
						    (64 - 8 * (bytes - 1)))
			bytes--;
		pickle_op(w, 0x8a);
		put_le(w, (uint64_t)bytes, 1);
		put_le(w, (uint64_t)v, bytes);
	}
}

static void put_text(struct pickle_writer *w, const char *s)
{
	size_t n = strlen(s);

	pickle_op(w, 'X');
	put_le(w, n, 4);
	buf_append(w->out, s, n);
}

void pickle_text(struct pickle_writer *w, const char *s)
{
	put_text(w, s);
	pickle_put(w);
}

void pickle_shared_text(struct pickle_writer *w, int64_t *slot, const char *s)
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
	if (s[0] && !s[1] && (unsigned char)s[0] < 128)
		pickle_shared_text(w, &w->character[(unsigned char)s[0]], s);
	else
		pickle_text(w, s);
}

void pickle_global(struct pickle_writer *w, int64_t *slot, const char *module, const char *name)
{
	int64_t place;

	if (slot && *slot >= 0) {
		pickle_get(w, *slot);
		return;
	}
	pickle_op(w, 'c');
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
			pickle_op(w, 's');
		return;
	}
	if (n == 0)
		return;
	if (i > 0 && (i == n || i % BATCH == 0))
		pickle_op(w, 'u');
	if (i < n && i % BATCH == 0)
		pickle_op(w, '(');
	/* after whole batches the pickler finds out with an empty one */
	if (i == n && i % BATCH == 0) {
		pickle_op(w, '(');
		pickle_op(w, 'u');
	}
}

void pickle_tensor(struct pickle_writer *w, unsigned type, const char *key, uint64_t elements)
{
	pickle_global(w, &w->shared[PICKLE_REBUILD], "torch._utils", "_rebuild_tensor_v2");
	pickle_op(w, '(');
	pickle_op(w, '(');
	pickle_shared_text(w, &w->shared[PICKLE_STORAGE], "storage");
	pickle_global(w, &w->shared[PICKLE_TYPE + type], "torch", storage_names[type]);
	pickle_text(w, key);
	pickle_shared_text(w, &w->shared[PICKLE_CPU], "cpu");
	pickle_int(w, (int64_t)elements);
	pickle_op(w, 't');
	pickle_put(w);
	pickle_op(w, 'Q');
	pickle_int(w, 0);
	pickle_int(w, (int64_t)elements);
	pickle_op(w, 0x85);
	pickle_put(w);
	pickle_int(w, 1);
	pickle_op(w, 0x85);
	pickle_put(w);
	pickle_op(w, 0x89);
	pickle_global(w, &w->shared[PICKLE_ORDERED], "collections", "OrderedDict");
	pickle_op(w, ')');
	pickle_op(w, 'R');
	pickle_put(w);
	pickle_op(w, 't');
	pickle_put(w);
	pickle_op(w, 'R');
	pickle_put(w);
}
