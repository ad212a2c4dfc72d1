#pragma once
/* How much of a dataset is in this machine's page cache, and its eviction. The store's names must
 * be paths (STORE_HAS_FILES). Companion files are evicted too, but not counted. */
#include <stdatomic.h>

#include "base/thread.h"
#include "dataset/dataset.h"

struct residency {
	bool known;
	char why[256];                /* when it is not */
	bool memory;                  /* its file system is memory itself: eviction is impossible */
	char file_system[56];         /* "ext4"; empty when the system does not say */
	bool mincore;                 /* asked with mincore(2), not with cachestat(2) */
	uint64_t files, looked;       /* of the dataset; of them looked at */
	uint64_t bytes, cached_bytes; /* of those looked at */
	uint64_t reclaimed_bytes;     /* by the kernel; as in store/page_cache.h */
	/* After residency_join: of how many hosts, cached on all of them together, and which
	 * process looked at the numbers above. */
	uint32_t hosts, process;
	uint64_t hosts_cached_bytes;
};

struct residency_job {
	const struct dataset *dataset;
	struct store *store;
	bool eval;                    /* the evaluation files are a part of it */
	bool no_train;                /* the training files are not */
	uint64_t files;               /* of each kind, evenly spread, to check; 0: none */
	const struct stop_flag *stop; /* may be NULL */
	_Atomic int64_t *progress_ns; /* set to the time after each file; may be NULL */
};

/* Looks. What cannot be found out is said in out->why and is no failure: only a stop is
 * (ERR_CANCELED). */
int residency_look(const struct residency_job *job, struct residency *out, struct err *e);
/* Adds what process `process` on another host saw: *to keeps the host with the larger share. Not
 * known when one is not. */
void residency_join(struct residency *to, const struct residency *from, uint32_t process);
/* Cached bytes of all hosts that were joined. */
uint64_t residency_cached(const struct residency *c);
/* Evicts every file, over threads; up to 1,024 files of which pages stayed again, for a sixth of a
 * second. ERR_CANCELED when it was stopped. */
int residency_evict(const struct residency_job *job, struct err *e);
/* The same of the files that residency_look looks at. */
int residency_evict_some(const struct residency_job *job, struct err *e);
