#pragma once
/* Running a study: data, runs, states. */
#include "study/study_plan.h"
#include "study/state.h"

enum study_event_kind {
	STUDY_GENERATE, /* a dataset is being generated */
	STUDY_RUN,      /* a run begins */
	STUDY_FOUND,    /* a run was already there, finished */
	STUDY_DONE,     /* a run ended well */
	STUDY_FAILED,   /* a run, or the generation for it, failed */
	STUDY_TICK,     /* ten times a second meanwhile */
};

struct study_event {
	enum study_event_kind kind;
	const struct experiment *experiment;
	const struct study_dataset *dataset; /* of STUDY_GENERATE */
	const char *reason;                  /* of STUDY_FAILED */
	double seconds;                      /* of the run, or since it began */
	size_t done, failed, pending; /* runs of the whole study; the present one is pending */
	double left_s;                /* estimate; NaN while nothing is known */
	const char *log;              /* of the present child */
};

typedef void (*study_event_fn)(void *arg, const struct study_event *event);

/* Carries out what is pending. Each run is a child process into "<folder>.partial", which becomes
 * its folder when it ended well; then the design and the state are saved. A failing run is recorded
 * and the next goes on. ERR_CANCELED once options.stop is set: the present child is ended, and the
 * study can be continued by the same call. The scratch folder is emptied of what was generated in
 * any case, unless keep_data. Another study in the same results folder is an error. *failed: rows
 * that failed. */
int study_run(struct study_plan *p, study_event_fn fn, void *arg, size_t *failed, struct err *e);
