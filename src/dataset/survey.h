#pragma once
/* What the files of a dataset really are, looked at before a run: the content of some samples,
 * compared with what generating them gives; where files lie on their device; names that stand for
 * one file. The page cache is left as it was (store/page_cache.h).
 * Numbers only: the sentences are the
 * verdict's. */
#include "base/thread.h"
#include "dataset/dataset.h"

struct survey {
	/* names whose file is known by its number, and the different files among them */
	uint64_t named, distinct;
	/* files whose extents the file system reported; of these: */
	uint64_t mapped, mapped_bytes;
	uint64_t hole_files, hole_bytes; /* more than 1 % of the file is holes; bytes of all */
	uint64_t compressed_files, inline_files;
	uint64_t twin_files;   /* with blocks that another of them has as well */
	uint64_t shared_files; /* with blocks of other files, of these or any, or of snapshots */
	/* files of which only the number of blocks is known, and those with fewer than they hold */
	uint64_t counted, sparse_files;
	/* content */
	uint64_t samples, files, bytes; /* that were read and compared */
	uint64_t places;                /* in the files, that were compared */
	uint64_t file_bytes;            /* that these files have */
	/* large ones with places whose content depends on too much before them to be made here */
	uint64_t unknown_files;
	uint64_t files_as_generated; /* all that was compared of them */
	/* Not as generated, each counted once: all zeros, one byte repeated, the same as another of
	 * these files, and anything else. */
	uint64_t zero_files, constant_files, copied_files, other_files;
	uint64_t failed_files; /* that could not be read: the run will say why */
	/* The content is known: a manifest says that we generated it, or some of it agreed. */
	bool derivable;
	bool out_of_time; /* fewer samples than asked for, because reading them took too long */
	char first[320];  /* the file with the lowest number that is not as generated, and where */
};

struct survey_job {
	struct dataset *dataset;      /* read only */
	struct store *store;          /* of the run; its shims are passed by */
	bool eval;                    /* the evaluation files are a part of it */
	bool generated;               /* by us: there is a manifest */
	uint64_t samples;             /* to compare; 0: nothing is done */
	uint64_t seed;                /* chooses them */
	int64_t limit_ns;             /* that comparing may take; 0: 5 s */
	uint64_t made_bytes;          /* of larger files no more is made; 0: SURVEY_MADE_BYTES */
	const struct stop_flag *stop; /* may be NULL */
	_Atomic uint64_t *done;       /* may be NULL: counts files, while it goes on */
};

/* Files whose extents are asked for. */
#define SURVEY_EXTENTS_MAX 256
/* Of a file and of a sample the first bytes, of a file blocks at random behind them, over its whole
 * length, and its end. */
#define SURVEY_FRONT_BYTES (256u << 10)
#define SURVEY_BLOCK_BYTES 16384u
/* Of a file larger than this no more is made to compare it with. */
#define SURVEY_MADE_BYTES (32u << 20)

/* The most memory it takes, all of which is free again when it returns. */
uint64_t survey_memory_bytes(const struct dataset *d, uint64_t samples);
/* Fills `out`, but for `named` and `distinct`, which are kept. Takes some seconds at most where the
 * storage answers at all. ERR_CANCELED when it was stopped; what cannot be read is counted. */
int dataset_survey(const struct survey_job *job, struct survey *out, struct err *e);
/* Adds what another host found out; names are left as they are. */
void survey_add(struct survey *to, const struct survey *from);
