#pragma once
/* The workload files and the profiles of costs compiled into the program: parallel arrays, sorted
 * by name, NULL-terminated. */
extern const char *const builtin_names[];
extern const char *const builtin_texts[];
extern const char *const builtin_costs_names[];
extern const char *const builtin_costs_texts[];
