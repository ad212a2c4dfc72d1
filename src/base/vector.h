#pragma once
/* Arrays that grow: `v` of `n` elements with room for `room`, three variables or members that begin
 * as NULL, 0, 0 and end with free(v). They are any lvalues, each evaluated several times.
 *
 * Growing doubles. What is small ends the process when the system refuses it, as xrealloc does;
 * what a file or a workload sizes uses VECTOR_TRY. */
#include <stddef.h>
#include <string.h>

#include "base/err.h"

/* The array at *at, of elements of `size` bytes, with room for `more` behind its n, at least. */
void vector_grow(void *at, size_t *room, size_t n, size_t more, size_t size);
/* The same; -ENOMEM and `e`, which names `what`, when refused: then the array is as it was. */
int vector_try(void *at, size_t *room, size_t n, size_t more, size_t size, const char *what,
	       struct err *e);
/* Ends the process: a member that counts the room is too narrow for it. */
_Noreturn void vector_too_long(void);

/* Sets `room`, which may be of another type than size_t. */
#define VECTOR_SET_ROOM_(room, to)                                                                 \
	do {                                                                                       \
		(room) = (__typeof__(room))(to);                                                   \
		if ((size_t)(room) != (to))                                                        \
			vector_too_long();                                                         \
	} while (0)

/* Room for `more` elements behind the present ones. */
#define VECTOR_ROOM(v, n, room, more)                                                              \
	do {                                                                                       \
		size_t room_ = (size_t)(room), more_ = (more);                                     \
		if (room_ - (size_t)(n) < more_) {                                                 \
			vector_grow(&(v), &room_, (size_t)(n), more_, sizeof(*(v)));               \
			VECTOR_SET_ROOM_(room, room_);                                             \
		}                                                                                  \
	} while (0)

/* A zeroed element at the end: its address, which holds until the array grows again. */
#define VECTOR_ADD(v, n, room)                                                                     \
	({                                                                                         \
		VECTOR_ROOM(v, n, room, 1);                                                        \
		memset(&(v)[n], 0, sizeof(*(v)));                                                  \
		&(v)[(n)++];                                                                       \
	})

/* An element at the end: a value or, in braces, its members. It is evaluated before the array
 * grows. */
#define VECTOR_PUSH(v, n, room, ...)                                                               \
	do {                                                                                       \
		__typeof__(*(v)) one_ = __VA_ARGS__;                                               \
		VECTOR_ROOM(v, n, room, 1);                                                        \
		(v)[(n)++] = one_;                                                                 \
	} while (0)

/* VECTOR_ROOM that may fail: 0 or -ENOMEM and `e`. */
#define VECTOR_TRY(v, n, room, more, what, e)                                                      \
	({                                                                                         \
		size_t room_ = (size_t)(room), more_ = (more);                                     \
		int rc_ = 0;                                                                       \
		if (room_ - (size_t)(n) < more_) {                                                 \
			rc_ = vector_try(&(v), &room_, (size_t)(n), more_, sizeof(*(v)), what, e); \
			VECTOR_SET_ROOM_(room, room_);                                             \
		}                                                                                  \
		rc_;                                                                               \
	})
