#pragma once
/* Whether the readers of a run asked the system for its dataset as the format's library is
 * documented to: the requests of a log (struct job) against those that this program's reader of the
 * format makes on the same files. The files must be where the run read them.
 *
 * A visit is what one thread asked of one file from its open to its close. Each must be the
 * requests of whole samples, in the order of the library: offsets, sizes asked for and bytes
 * returned. Looks at a file that read nothing are no visits. Memory: 32 bytes a request of the
 * files looked at last (CONFIRM_REQUESTS at most), and the reader's. */
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "trace/job_log.h"
#include "workload/workload.h"

#define CONFIRM_REQUESTS (UINT32_C(1) << 22)
#define CONFIRM_SAMPLES 65536 /* a file; beyond, they are not looked at */

struct confirmation {
	uint64_t files, of_files;           /* that the log read, of those of the dataset */
	uint64_t visits, samples, requests; /* that are equal */
	uint64_t bytes;                     /* returned by them */
	uint64_t differ;                    /* visits that are not */
	uint64_t others;       /* requests for the dataset by threads that are no readers */
	uint64_t bare;         /* requests whose size asked for is not in the log */
	char difference[2048]; /* the first, a sentence; "": equal */
	const char *format, *access;
};

/* `ours`: the run was one of this program, whose threads tell by their names whether they are
 * readers; else DLIO's readers are what is expected. ERR_USAGE where nothing can be confirmed. */
int confirm(const struct workload *w, bool ours, const struct job *job, struct confirmation *out,
	    struct err *e);
/* For people. */
void confirm_print(const struct confirmation *c, struct buf *out);
