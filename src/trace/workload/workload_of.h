#pragma once
/* A workload that does what a job did, of a profile of it. */
#include "base/buf.h"
#include "base/err.h"
#include "trace/profile/profile.h"
#include "workload/recorded_file.h"

/* Appends the workload as YAML. What is assumed is marked by comments; what is not identifiable is
 * left out, and a comment says how it is given on the command line. `recorded`: the name of the
 * file beside it that has sizes and orders; NULL: none. */
void workload_of(const struct profile *a, const char *recorded, struct buf *out);
/* Writes it to `path`, and sizes and orders to a file of this name and ".recorded" behind it, where
 * the log has them. `asked`: sentences, one a line, for what the user has to give. ERR_DATA where
 * the log shows no dataset. */
int workload_of_write(const struct profile *a, const char *path, struct buf *asked, struct err *e);

/* ---- the file beside it ---- */

/* The sizes and the order of a job's dataset, for the file beside a workload of it
 * (workload/recorded_file.h). */
struct recorded_has {
	bool sizes;                  /* dataset.sizes can be recorded */
	bool order;                  /* reader.order can be */
	bool requests;               /* reader.access can be */
	bool work;                   /* what readers did beside these is known */
	bool filled[RECORDED_PARTS]; /* the workload has a file more, of which nothing is read: its
					visits fill up batches and epochs that are short */
	bool exact;               /* samples of the workload are the ways in which files are read */
	double per_file;          /* samples of a file of the workload; 0: they differ */
	double file_bytes;        /* the largest file of training */
	double reads, read_bytes; /* that the workload makes, with the requests */
	const char *no_sizes, *no_order; /* why not: a clause without a full stop; NULL */
};

/* What of them the log has. Sizes need all files' sizes; the order needs the visits of samples and,
 * where several workers of a rank read, their batches: then batch k of an epoch is the next of
 * worker k modulo workers, as PyTorch hands them out. Containers need as many samples in each file.
 */
void recorded_of_look(const struct profile *a, struct recorded_has *has);
/* Whether the job ended within its last epoch. */
bool recorded_of_cut(const struct profile *a);
/* Writes what there is to `path`; `requests`: those of samples, too. Numbers of files are by name.
 * `epochs`: that many of training at most are kept, 0 for all: the last one of a log may have been
 * cut. */
int recorded_of_write(const struct profile *a, const char *path, uint64_t epochs, bool requests,
		      struct err *e);

/* Which requests read a sample of a job, and which followed the opening of its file: as lists of
 * the recorded file (workload/recorded_file.h). */
struct sample_requests {
	struct recorded_requests *sample;  /* of each sample of the profile */
	struct recorded_requests *opening; /* of each file of the job; where files stay open */
};
