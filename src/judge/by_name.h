#pragma once
/* Reads by their folder and file: some that are slow wherever and whenever they are read, or reads
 * of one folder or file that wait for each other while those of others do not. */
#include "metric/read_log.h"
#include "result/result.h"

/* Of reads by their beginning, all that touch windows of time; none where it cannot be seen. */
struct by_name by_name_find(const struct read_seen *seen, size_t n, uint64_t apart, uint64_t wide);
/* The same of the reads of training. */
struct by_name by_name_of(const struct result *r);
