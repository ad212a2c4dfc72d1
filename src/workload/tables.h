#pragma once
/* Limits and spellings shared by the rows, the loader and the checks of workloads. */

/* Far above any dataset, low enough that a count times a small number cannot overflow 63 bits. */
#define WORKLOAD_COUNT_MAX 1e15
#define WORKLOAD_BYTES_MAX 1e15
#define WORKLOAD_SECONDS_MAX 1e6
/* The largest integer below 2^63 that a double holds. */
#define WORKLOAD_INT_MAX 9223372036854774784.0
#define WORKLOAD_DIMS_MAX 8

struct workload_alias {
	const char *alias, *key;
};
extern const struct workload_alias workload_aliases[]; /* ends with alias NULL */
