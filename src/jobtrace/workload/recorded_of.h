#pragma once
/* The sizes and the order of a job's dataset, for the file beside a workload of it
 * (workload/recorded_file.h). */
#include <stdbool.h>

#include "jobtrace/account/account.h"

struct recorded_has {
	bool sizes;                      /* dataset.sizes can be recorded */
	bool order;                      /* reader.order can be */
	bool requests;                   /* reader.access can be */
	const char *no_sizes, *no_order; /* why not: a clause without a full stop; NULL */
};

/* What of them the log has. Sizes need all files' sizes; the order needs the visits of samples and,
 * where several workers of a rank read, their batches: then batch k of an epoch is the next of
 * worker k modulo workers, as PyTorch hands them out. Containers need as many samples in each file.
 */
void recorded_of_look(const struct account *a, struct recorded_has *has);
/* Whether the job ended within its last epoch. */
bool recorded_of_cut(const struct account *a);
/* Writes what there is to `path`; `requests`: those of samples, too. Numbers of files are by name.
 * `epochs`: that many of training at most are kept, 0 for all: the last one of a log may have been
 * cut. */
int recorded_of_write(const struct account *a, const char *path, uint64_t epochs, bool requests,
		      struct err *e);
