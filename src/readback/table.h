#pragma once
/* A line for each run: model, processes, what was varied, AU and throughput with their spread. */
#include "readback/groups.h"

/* The columns that analyses of DLIO results use, then ours. */
void table_csv(const struct run_groups *g, struct buf *out);
