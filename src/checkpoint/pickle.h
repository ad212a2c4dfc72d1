#pragma once
/* Pickles, protocol 2: what CPython's C pickler writes for the objects of a checkpoint, byte for
 * byte, and a reader of that subset for files that anyone may have made. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

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
	int64_t character[128]; /* strings of one character are one object each in CPython */
};

/* Appends to `out`, which is the caller's. */
void pickle_begin(struct pickle_writer *w, struct buf *out);
void pickle_end(struct pickle_writer *w); /* STOP */
void pickle_op(struct pickle_writer *w, unsigned char op);
/* Puts what is on the stack into the memo; returns its place. */
int64_t pickle_put(struct pickle_writer *w);
void pickle_get(struct pickle_writer *w, int64_t place);
void pickle_int(struct pickle_writer *w, int64_t v);
/* A string that is nowhere else. */
void pickle_text(struct pickle_writer *w, const char *s);
/* A key of a map: equal ones of one character are the same object. */
void pickle_key(struct pickle_writer *w, const char *s);
/* A global, once, and then from the memo. `slot` NULL: always anew. */
void pickle_global(struct pickle_writer *w, int64_t *slot, const char *module, const char *name);
void pickle_shared_text(struct pickle_writer *w, int64_t *slot, const char *s);
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
