#pragma once
/* Thrift's compact protocol, as far as Parquet's metadata need it: a writer into memory of a fixed
 * size, and a reader that trusts no number it finds. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum thrift_type {
	THRIFT_TRUE = 1,
	THRIFT_FALSE,
	THRIFT_I8,
	THRIFT_I16,
	THRIFT_I32,
	THRIFT_I64,
	THRIFT_DOUBLE,
	THRIFT_BINARY,
	THRIFT_LIST,
	THRIFT_SET,
	THRIFT_MAP,
	THRIFT_STRUCT
};

#define THRIFT_DEPTH_MAX 16
#define THRIFT_VARINT_MAX 10

/* Bytes of v as a varint. */
size_t thrift_varint_bytes(uint64_t v);
size_t thrift_put_varint(unsigned char *out, uint64_t v);

struct thrift_out {
	unsigned char *bytes;
	size_t used, room;
	unsigned depth;
	int16_t last[THRIFT_DEPTH_MAX]; /* field id at each depth */
};

/* Begins a struct; what is put must fit into `room` (asserted). */
void thrift_begin(struct thrift_out *o, void *bytes, size_t room);
void thrift_put_int(struct thrift_out *o, int id, enum thrift_type type, int64_t v);
void thrift_put_bool(struct thrift_out *o, int id, bool v);
void thrift_put_bytes(struct thrift_out *o, int id, const void *bytes, size_t n);
void thrift_put_list(struct thrift_out *o, int id, enum thrift_type type, uint64_t n);
/* Members of a list. */
void thrift_item_int(struct thrift_out *o, int64_t v);
void thrift_item_bytes(struct thrift_out *o, const void *bytes, size_t n);
void thrift_item_struct(struct thrift_out *o);
void thrift_put_struct(struct thrift_out *o, int id);
/* Ends the innermost struct. */
void thrift_end(struct thrift_out *o);

struct thrift_in {
	const unsigned char *start, *at, *end;
};

struct thrift_field {
	int id;
	enum thrift_type type;
};

/* The next field of a struct, `f` being the last one ({0} before the first): 1, or 0 at its end. */
int thrift_field(struct thrift_in *in, struct thrift_field *f, struct err *e);
/* The value of a field: an integer of any width; bytes, which stay where they are. ERR_DATA for
 * another type. */
int thrift_int(struct thrift_in *in, const struct thrift_field *f, int64_t *v, struct err *e);
int thrift_bytes(struct thrift_in *in, const struct thrift_field *f, const unsigned char **bytes,
		 size_t *n, struct err *e);
/* The head of a list, whose length is at most the bytes that are left. */
int thrift_list(struct thrift_in *in, const struct thrift_field *f, enum thrift_type *type,
		uint64_t *n, struct err *e);
int thrift_struct(struct thrift_in *in, const struct thrift_field *f, struct err *e);
/* Steps over a value. */
int thrift_skip(struct thrift_in *in, enum thrift_type type, struct err *e);
int thrift_varint(struct thrift_in *in, uint64_t *v, struct err *e);
/* ERR_DATA: "<what>, at byte N of the metadata". */
int thrift_damaged(const struct thrift_in *in, const char *what, struct err *e);
