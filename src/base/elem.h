#pragma once
/* Array element types by their NumPy names. */
#include <stdint.h>

enum elem_class { ELEM_INT, ELEM_FLOAT, ELEM_BOOL, ELEM_COMPLEX };

struct elem_type {
	const char *name;  /* "uint8" */
	const char *descr; /* npy descriptor on a little-endian machine: "|u1", "<f4" */
	uint32_t bytes;
	enum elem_class class;
};

extern const struct elem_type elem_table[]; /* ends with name NULL */
/* The type of a NumPy dtype name or descriptor ("uint8", "u1", "<f4", "float"), or NULL. */
const struct elem_type *elem_find(const char *name);
