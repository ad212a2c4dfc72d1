#pragma once
/* The workload files compiled into the program: parallel arrays, sorted by name, NULL-terminated.
 */
extern const char *const builtin_names[];
extern const char *const builtin_texts[];
