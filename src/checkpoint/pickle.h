#pragma once
/* Pickles, protocol 2: what CPython's C pickler writes for the objects of a checkpoint, byte for
 * byte, and a reader of that subset for files that anyone may have made. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* Opcodes, as CPython's pickletools names them; the numbers are the format's. */
enum pickle_opcode {
	PICKLE_OP_MARK = '(',
	PICKLE_OP_STOP = '.',
	PICKLE_OP_POP = '0',
	PICKLE_OP_BINBYTES = 'B',
	PICKLE_OP_SHORT_BINBYTES = 'C',
	PICKLE_OP_BINFLOAT = 'G',
	PICKLE_OP_BININT = 'J',
	PICKLE_OP_BININT1 = 'K',
	PICKLE_OP_BININT2 = 'M',
	PICKLE_OP_NONE = 'N',
	PICKLE_OP_BINPERSID = 'Q',
	PICKLE_OP_REDUCE = 'R',
	PICKLE_OP_SHORT_BINSTRING = 'U',
	PICKLE_OP_BINUNICODE = 'X',
	PICKLE_OP_EMPTY_LIST = ']',
	PICKLE_OP_APPEND = 'a',
	PICKLE_OP_BUILD = 'b',
	PICKLE_OP_GLOBAL = 'c',
	PICKLE_OP_APPENDS = 'e',
	PICKLE_OP_BINGET = 'h',
	PICKLE_OP_LONG_BINGET = 'j',
	PICKLE_OP_BINPUT = 'q',
	PICKLE_OP_LONG_BINPUT = 'r',
	PICKLE_OP_SETITEM = 's',
	PICKLE_OP_TUPLE = 't',
	PICKLE_OP_EMPTY_TUPLE = ')',
	PICKLE_OP_SETITEMS = 'u',
	PICKLE_OP_EMPTY_DICT = '}',
	PICKLE_OP_PROTO = 0x80,
	PICKLE_OP_NEWOBJ = 0x81,
	PICKLE_OP_TUPLE1 = 0x85,
	PICKLE_OP_TUPLE2 = 0x86,
	PICKLE_OP_TUPLE3 = 0x87,
	PICKLE_OP_NEWTRUE = 0x88,
	PICKLE_OP_NEWFALSE = 0x89,
	PICKLE_OP_LONG1 = 0x8a,
	PICKLE_OP_SHORT_BINUNICODE = 0x8c,
	PICKLE_OP_MEMOIZE = 0x94,
	PICKLE_OP_FRAME = 0x95,
};

/* Things that the pickler meets again as the same object, by the place in its memo; -1: not yet. */
enum pickle_shared {
	PICKLE_REBUILD, /* torch._utils._rebuild_tensor_v2 */
	PICKLE_STORAGE, /* the string 'storage' */
	PICKLE_CPU,
	PICKLE_ORDERED, /* collections.OrderedDict */
	PICKLE_TYPE,    /* and one for each type of storage */
	PICKLE_SHARED = PICKLE_TYPE + 8
};

struct pickle_writer {
	struct buf *out;
	int64_t memo; /* next place */
	int64_t shared[PICKLE_SHARED];
	int64_t character[128]; /* constants of one character, which are one object each */
};

/* Of the element types, in the order of enum checkpoint_datatype: "FloatStorage". */
extern const char *const pickle_storage_names[];

/* Appends to `out`, which is the caller's. */
void pickle_begin(struct pickle_writer *w, struct buf *out);
void pickle_end(struct pickle_writer *w); /* STOP */
void pickle_op(struct pickle_writer *w, unsigned char op);
#define pickle_ops(w, ...)                                                                         \
	buf_append((w)->out, (const unsigned char[]){__VA_ARGS__},                                 \
		   sizeof((const unsigned char[]){__VA_ARGS__}))
/* Puts what is on the stack into the memo; returns its place. */
int64_t pickle_put(struct pickle_writer *w);
void pickle_get(struct pickle_writer *w, int64_t place);
void pickle_int(struct pickle_writer *w, int64_t v);
/* A key of a map. A number is str(n) in DLIO, which is another object each time; a letter is a
 * constant of the program. */
void pickle_key(struct pickle_writer *w, const char *s);
/* A global, once, and then from the memo. `slot` NULL: written in full each time. */
void pickle_global(struct pickle_writer *w, int64_t *slot, const char *module, const char *name);
/* The items of a map of n come in batches: call this before item i and once more with i = n. */
void pickle_item(struct pickle_writer *w, uint64_t i, uint64_t n);
/* The tensor of torch.save: a one-dimensional view of a whole storage. */
void pickle_tensor(struct pickle_writer *w, unsigned type, const char *key, uint64_t elements);

/* ---- reading ---- */

#define PICKLE_DIMS 8
#define PICKLE_DEPTH 64

struct pickle_tensor {
	const char *name; /* keys joined by dots; for the call only */
	char storage[64]; /* key of the storage */
	char type[32];    /* "FloatStorage" */
	uint64_t storage_elements, offset;
	uint64_t dims[PICKLE_DIMS], strides[PICKLE_DIMS];
	unsigned rank;
};

typedef int (*pickle_tensor_fn)(void *arg, const struct pickle_tensor *t, struct err *e);

/* Walks a torch.save pickle and calls fn for each tensor in the order in which the pickle names
 * them. Executes nothing: globals are names, and a call that is not known gives an opaque value.
 * ERR_DATA with the offset for a damaged pickle, one that needs more than `memory` bytes, and
 * opcodes that torch.save does not write. */
int pickle_read_tensors(const void *bytes, size_t n, size_t memory, pickle_tensor_fn fn, void *arg,
			struct err *e);
