#pragma once
/* Files that sum up several runs: repeat.json, truth_table.json, capacity.json of those below them,
 * plans of any. Each has a digest of itself (seal_put) and names its runs by folder, number and
 * digest. An audit makes it again from these runs and compares the two. */
#include "readback/derivation.h"

/* ---- the name of a run in such a file ---- */

struct run_name {
	char id[64];             /* "": not known */
	char digest[SHA256_HEX]; /* of its result.json; "" */
};
void run_name_of(struct run_name *name, const struct run_record *r);
/* Of the result in a folder. */
void run_name_read(struct run_name *name, const char *folder);
/* As a row of a file has it. */
void run_name_stated(struct run_name *name, const json_t *row);
void run_name_put(json_t *row, const struct run_name *name);

/* As such a file has it; NULL: the result does not say. */
const char *sums_workload(const struct run_record *r);

/* ---- how a file is made again ---- */

struct sums_ops {
	const char *file; /* its name; NULL: any */
	const char *of;   /* its key "of"; NULL: it has none */
	const char *list; /* the key of the list of its runs */
	bool numbered;    /* the folders of its runs are numbers, and it counts all of them */
	/* NULL: its runs are below its folder, and wrote the file. Else a key that tells it from
	 * others: it is made of runs anywhere, or of none, and has the build that made it. */
	const char *sign;
	/* Of those: keys that are not made again by another build, nor by an audit in haste;
	 * NULL-terminated. */
	const char *const *late;
	const char *told; /* what nothing but the digest vouches for */
	void *(*begin)(const json_t *stated, const char *folder);
	/* A row of the list; r: its run, NULL where that is not there, or the row has none. Then
	 * what is stated is taken. */
	void (*take)(void *of, const json_t *row, struct run_record *r, struct derive *d);
	/* The file again, as far as it follows from the runs; what does not is as stated. New
	 * reference; NULL: too many runs are missing. */
	json_t *(*made)(void *of, struct derive *d);
	void (*release)(void *of);
};
/* Whether an audit leaves out what is `late` of a file. */
bool sums_in_haste(const json_t *root, const struct audit *a);
extern const struct sums_ops sums_repeat, sums_truth_table, sums_capacity, sums_writers, sums_plan;

/* ---- all that were found ---- */

struct sums {
	struct run_record *file; /* of each nothing but `folder`, its path, is set */
	size_t files;
	struct audit audit; /* of `file` */
};
/* `ops`: of all kinds, NULL-terminated. `quick`: what takes long is not made again. Release in any
 * case. */
void sums_audit(struct sums *s, const struct sums_ops *const *ops, const struct str_list *paths,
		bool quick);
void sums_release(struct sums *s);
