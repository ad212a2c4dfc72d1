#pragma once
/* The one runner of many runs: the rows of a study, the points of a search, a truth table,
 * repetitions. A design is a function that gives the next row once it knows how those before it
 * ended, so that a list of rows and a search are the same thing.
 *
 * A row is a run of this program, a child process, into "FOLDER.partial". When it has ended well, a
 * mark is written there that says which run it is, and the folder gets its name: under its own name
 * a result is whole, and a design that is killed loses one run at most. A row that is there already
 * under the same key, whole, is not made again; one that only lacks its name gets it. What a failed
 * run left is in "FOLDER.failed", with its log. */
#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/folder_lock.h"
#include "base/thread.h"
#include "codec/digest.h"
#include "conf/opt.h"

/* ---- commands ---- */

/* What the user said of all runs. */
struct runner_base {
	const char *program;          /* path of the stoker to run */
	const char *workload;         /* NULL: none was named */
	const char *config_dir;       /* NULL */
	const char *const *overrides; /* in their order */
	size_t override_count;
};

/* Appends "PROGRAM VERB WORKLOAD -q PLACES --config-dir DIR OVERRIDES KEYS". `places`: where it
 * runs, such as "-n 8". */
void runner_command(const struct runner_base *b, const char *verb, const struct str_list *places,
		    const struct str_list *keys, struct str_list *out);
/* Of a command, whatever program it names, which may be a newer build. */
void runner_key(const struct str_list *command, char key[SHA256_HEX]);

struct beside;

/* ---- one child ---- */

struct runner_child {
	const char *log;  /* stdout and stderr are appended */
	const char *kept; /* where the log is when the command has failed */
	double limit_s;   /* after which it is ended; 0: none */
	const struct stop_flag *stop;
	void (*tick)(void *arg, double seconds); /* ten times a second; or NULL */
	void *arg;
};

/* Runs a command to its end; *seconds: how long it took. 0; ERR_CANCELED once the stop is set, the
 * child is ended; -ETIMEDOUT; -ENOMEM when it was killed (SIGKILL); else the code with which it
 * failed, if it is this program, or -EIO, and the sentence it left. Call from the main thread. */
int runner_child(const struct str_list *command, const struct runner_child *o, double *seconds,
		 struct err *e);

/* The same of a command beside the runs, which it releases: its log, `kept` there, is begun anew.
 */
int runner_help(struct str_list *command, struct runner_child *o, struct err *e);

/* ---- a design ---- */

enum row_end { ROW_FOUND, ROW_DONE, ROW_FAILED };

struct runner_row {
	/* What the design says. The runner releases it. */
	size_t index;            /* of the design's own */
	char *folder;            /* of its result; NULL: the design makes the row itself */
	struct str_list command; /* without "-o FOLDER.partial" */
	char key[SHA256_HEX];    /* of all that the run depends on: the same key, the same run */
	json_t *about;           /* more for the mark; or NULL */
	struct beside *beside;   /* what runs meanwhile (beside.h); heap */
	size_t besides;
	double expected_s; /* NaN */
	double limit_s;    /* 0: none */
	bool late_counts;  /* one that its limit ended counts; it is not found again */
	struct err why;    /* code != 0: it cannot be made. Then: of ROW_FAILED */
	/* How it went. */
	enum row_end end;
	bool late;
	double seconds; /* of the child; meanwhile, since it began */
};

enum runner_event { RUNNER_RUN, RUNNER_TICK };

struct runner {
	const struct stop_flag *stop;
	const char *mark, *log; /* their names in the folder of a row */
	/* 1: the next row; 0: there is none. Negative ends the design. */
	int (*next)(void *arg, struct runner_row *row, struct err *e);
	/* Whether a whole result with the row's key counts; NULL: always. */
	bool (*counts)(void *arg, const struct runner_row *row, const json_t *mark);
	/* Before a row that is to be made; NULL: nothing to prepare. A failure is the row's. */
	int (*prepare)(void *arg, struct runner_row *row, struct err *e);
	/* Makes a row without a folder, in this process. A failure is the row's. */
	int (*make)(void *arg, struct runner_row *row, struct err *e);
	/* A row has begun, goes on; or NULL. */
	void (*tell)(void *arg, enum runner_event event, const struct runner_row *row);
	/* A row has ended. Negative ends the design. */
	int (*take)(void *arg, const struct runner_row *row, struct err *e);
	void *arg;
};

/* All rows, one after the other. 0; what a function of the design returned; ERR_CANCELED once the
 * stop is set, without the row in which that happened. Call from the main thread. */
int runner_run(const struct runner *r, struct err *e);

/* Makes `folder` and locks it: one design at a time writes there. ERR_USAGE when another one does;
 * `who` ("study") and `option` ("--results") are for that sentence. */
int runner_lock(struct file_lock *lock, const char *folder, const char *name, const char *who,
		const char *option, struct err *e);
