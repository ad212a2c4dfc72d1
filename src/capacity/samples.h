#pragma once
/* Where the samples of a search come from, and how many steps of a run they are enough for: a
 * dataset that is there, one that is generated for the search and grows with it, or one that each
 * run makes in its own memory. */
#include "base/str.h"
#include "capacity/capacity.h"

enum samples_kind {
	SAMPLES_GIVEN, /* files that are there */
	SAMPLES_OWN,   /* files generated for the search */
	SAMPLES_RUN,   /* of each run: its store keeps nothing, or there are no files */
};

struct samples {
	enum samples_kind kind;
	char *folder;   /* of the dataset */
	char *above;    /* the nearest folder above it, or itself, that was there before; NULL */
	uint64_t files; /* SAMPLES_OWN: that the next run has; SAMPLES_RUN: that it generates */
	uint64_t made;  /* SAMPLES_OWN: that an earlier or this search began to generate; 0: none */
	bool whole;     /* SAMPLES_OWN: it has generated them all */
	double given;   /* SAMPLES_GIVEN: samples */
	double file_bytes;
	uint64_t per_file, batch;
	uint32_t workers; /* of a rank */
	uint64_t ahead;   /* batches */
	bool evicts;      /* it is read cold unless the user says otherwise */
};

/* How a point is run: 0 steps: all of each epoch. */
struct samples_plan {
	uint64_t steps; /* of a rank, all epochs; as many as can be had, at most `want` */
	uint64_t epochs;
	uint64_t measured; /* of them, without those that each epoch's start leaves out */
	bool all;          /* more cannot be had */
};

/* ERR_USAGE when the workload cannot be searched: it does not train, or computes in no time. */
int samples_init(struct samples *s, const struct workload *w, struct err *e);
void samples_release(struct samples *s);
/* Plans `measured` steps of `accelerators`, beyond those that the start leaves out. `keys` gets
 * what the run has to be told. -ENODATA, with the sentence: there are too few files for this number
 * of accelerators, and no more can be had; -ENOMEM: this machine has too little memory; *most gets
 * how many it is enough for. Generates nothing: what is planned depends on the numbers asked for so
 * far alone. */
int samples_plan(struct samples *s, const struct capacity *c, uint32_t accelerators,
		 uint64_t measured, struct samples_plan *plan, struct str_list *keys,
		 uint32_t *most, struct err *e);
/* Generates the files that were planned, where they are not there. */
int samples_make(struct samples *s, const struct capacity *c, struct err *e);
/* Removes what was generated, unless it is to be kept. */
int samples_clean(const struct samples *s, const struct capacity *c, struct err *e);
