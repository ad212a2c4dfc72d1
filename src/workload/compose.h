#pragma once
/* From a name to one document: finding workload files and merging what their defaults lists name.
 */
#include "base/err.h"
#include "conf/node.h"

/* What marks of values of built-in workloads begin with: "built-in/NAME.yaml". */
#define WORKLOAD_BUILTIN_PREFIX "built-in/"

/* Merges the workload `name` into `root` (a map that holds the key "workload"). `name` is found in
 * config_dir/workload, config_dir and the built-in workloads, in this order; with a slash, or when
 * a file "NAME.yaml" is given that exists, it is a path. ERR_USAGE lists what is available. */
int workload_compose(struct node *root, const char *name, const char *config_dir, struct err *e);
