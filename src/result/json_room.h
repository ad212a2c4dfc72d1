#pragma once
/* Where jansson's values lie. Alone, each is an allocation of its own (base/alloc.h). A thread that
 * makes the trees of one document after another and drops them all before the next, may have a
 * room: values that it makes while the room is in use lie side by side in one block, and cost
 * nothing to free. What has no place in the block lies outside of it, so that it stays small.
 *
 * Texts of json_dumps are such values, which free() cannot release: json_dump_text (json_out.h)
 * makes none. */
#include <stdbool.h>
#include <stddef.h>

/* For json_set_alloc_funcs. */
void *json_room_alloc(size_t size);
void json_room_free(void *p);

/* Of the calling thread: whether what it makes from now on may lie in its room. */
void json_room_use(bool use);
/* All that lies in it was freed: the next document begins. */
void json_room_clear(void);
/* Cleared, and gone. */
void json_room_release(void);
