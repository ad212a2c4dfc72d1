#pragma once
/* The steps of workload_load after the document is composed. */
#include <stdbool.h>

#include "base/err.h"
#include "workload/workload.h"

/* type.c: the fields of `w` from w->tree by the rows, with origins; unknown keys, aliases and keys
 * without effect become warnings (unknown ones errors where `req` asks it). All errors are kept in
 * w->errors, and the first is returned. */
int workload_type(struct workload *w, const struct workload_request *req, struct err *e);

/* Whether this value of compat.dlio asks for DLIO's way; NULL: it is not given. */
bool workload_wants_dlio(const struct node *value);

/* derive.c: what follows from other keys: data loader, element type, stdevs, compat.dlio.
 * `back`: of a configuration that a run left behind, which has what it was run with. */
int workload_derive(struct workload *w, bool back, struct err *e);
/* validate.c: the rules across keys. `ranks` >= 1. Errors as those of workload_type. */
int workload_validate(struct workload *w, int64_t ranks, struct err *e);
/* validate_costs.c: says what a profile of costs lacks for this run, or that it is another
 * framework's. */
void workload_warn_of_costs(struct workload *w);
/* unused_keys.c: says which keys that are set have no effect in a workload that is valid, and what
 * they are for. */
void workload_warn_of_unused_keys(struct workload *w);
/* validate_listed.c: what dataset.names listed goes with. */
int workload_check_listed(const struct workload *w, struct err *e);
/* validate_objects.c: what storage of objects, and reader.access object, go with; says which of
 * their keys have no effect. */
int workload_check_objects(const struct workload *w, struct err *e);
void workload_warn_of_object_keys(struct workload *w);
