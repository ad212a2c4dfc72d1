#pragma once
/* Arrays of structs as bytes that say their own layout, so that other versions of the program read
 * them: members are known by their names. What the bytes lack is 0 in the struct, what the struct
 * lacks is passed by.
 *
 * A chunk is
 *
 *     name: text
 *     members: varint; each: name: text; type: a letter; elements: varint
 *     structs: varint
 *     bytes of what follows: 8 bytes, little-endian
 *     values: member by member, each of all structs one after another
 *
 * where a text is a varint length with its bytes, and a varint has 7 bits a byte, the lowest first.
 * Types: b (bool), u and i (integers of any size), d (double), c (text). Members of structs in
 * structs are listed with their path ("train_io.kind.0.requests").
 *
 * Integers are zigzag varints of the difference to the same member of the struct before, in arrays
 * the numbers themselves. Doubles are a byte 1 and 8 bytes, the difference (exclusive or) to the
 * one before. In both a 0 stands for "as before" (in arrays for 0), and a varint follows: for how
 * many more. Texts lie one after another. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct shape;
struct member {
	const char *name;
	size_t offset, size, each; /* each: one element of an array */
	char type;                 /* as above; 's': of the shape `of`, one or more */
	const struct shape *of;
};
struct shape {
	const char *name;
	size_t size;
	const struct member *member;
	size_t members;
};

/* For each type twice: an array decays to a pointer. No member that is listed is a pointer. */
#define COLUMN_TYPE(x)                                                                             \
	_Generic((x),                                                                              \
		bool: 'b',                                                                         \
		bool *: 'b',                                                                       \
		char *: 'c',                                                                       \
		double: 'd',                                                                       \
		double *: 'd',                                                                     \
		uint8_t: 'u',                                                                      \
		uint8_t *: 'u',                                                                    \
		uint16_t: 'u',                                                                     \
		uint16_t *: 'u',                                                                   \
		uint32_t: 'u',                                                                     \
		uint32_t *: 'u',                                                                   \
		uint64_t: 'u',                                                                     \
		uint64_t *: 'u',                                                                   \
		int: 'i',                                                                          \
		int64_t: 'i',                                                                      \
		int64_t *: 'i')
#define COLUMN_EACH(x)                                                                             \
	_Generic((x),                                                                              \
		bool *: sizeof(bool),                                                              \
		char *: sizeof(x),                                                                 \
		double *: sizeof(double),                                                          \
		uint8_t *: sizeof(uint8_t),                                                        \
		uint16_t *: sizeof(uint16_t),                                                      \
		uint32_t *: sizeof(uint32_t),                                                      \
		uint64_t *: sizeof(uint64_t),                                                      \
		int64_t *: sizeof(int64_t),                                                        \
		default: sizeof(x))
/* Members of a shape: a number, a text or an array of them, and structs of another shape. A shape
 * is
 *
 *     #define SHAPE struct name
 *     DEFINE_SHAPE(name, V(a number), S(a struct, its shape));
 *     #undef SHAPE
 */
#define V(m)                                                                                       \
	{                                                                                          \
		.name = #m, .offset = offsetof(SHAPE, m), .size = sizeof(((SHAPE *)0)->m),         \
		.each = COLUMN_EACH(((SHAPE *)0)->m), .type = COLUMN_TYPE(((SHAPE *)0)->m)         \
	}
#define S(m, shape)                                                                                \
	{                                                                                          \
		.name = #m, .offset = offsetof(SHAPE, m), .size = sizeof(((SHAPE *)0)->m),         \
		.each = shape_##shape##_size, .type = 's', .of = &shape_##shape                    \
	}
#define DEFINE_SHAPE(id, ...)                                                                      \
	static const struct member id##_members[] = {__VA_ARGS__};                                 \
	enum { shape_##id##_size = sizeof(SHAPE) };                                                \
	static const struct shape shape_##id = {#id, sizeof(SHAPE), id##_members,                  \
						sizeof(id##_members) / sizeof(id##_members[0])}

/* ---- writing ---- */

/* `n` structs, one after another. */
struct piece {
	const void *at;
	size_t n;
};
/* A chunk of the structs of all pieces; nothing where there are none. */
void columns_put(struct buf *b, const char *name, const struct shape *shape,
		 const struct piece *piece, size_t pieces);
/* A chunk of texts; NULL is "". */
void columns_put_texts(struct buf *b, const char *name, const char *const *text, size_t n);

/* ---- reading ---- */

struct columns_in {
	const char *name; /* borrowed: the file in sentences */
	const char *data;
	size_t n;
	size_t room; /* memory that may still be allocated */
};
/* Checks that `data` is a sequence of whole chunks. */
int columns_open(struct columns_in *in, const char *data, size_t n, const char *name, size_t room,
		 struct err *e);
/* How many structs (or texts) a chunk has; 0: it is not there. */
size_t columns_count(const struct columns_in *in, const char *name);
/* Reads a chunk into the structs of all pieces, which are zeroed and of which there are
 * columns_count. A chunk that is not there leaves them as they are. Integers beyond 2^60 of a
 * signed type are cut to that, so that sums of a few do not overflow; texts are cut to their
 * arrays. */
int columns_get(struct columns_in *in, const char *name, const struct shape *shape,
		const struct piece *piece, size_t pieces, struct err *e);
/* Memory for `n` zeroed structs, from in->room. NULL and a sentence when that is too much. n = 0
 * gives a byte. */
void *columns_room(struct columns_in *in, size_t n, size_t size, struct err *e);
/* Calls `take` for each text of a chunk, which need not be there. */
int columns_get_texts(struct columns_in *in, const char *name,
		      void (*take)(void *arg, const char *text), void *arg, struct err *e);
