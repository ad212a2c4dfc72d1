#pragma once
/* The design of a study: a CSV of models, process counts and overrides.
 *
 *     model,epochs,processes,overrides,run
 *     # comments and empty lines stay where they are
 *     unet3d_h100,5,4,++workload.reader.batch_size=4,N
 *
 * Columns are found by the names of the first line. model and processes are needed; epochs,
 * overrides, repeat and run may be missing or empty; others are kept and mean nothing. Fields may
 * be quoted as in RFC 4180, within one line. `run` is N (pending), Y (done) or F (failed). */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "conf/opt.h"

enum design_state { DESIGN_PENDING, DESIGN_DONE, DESIGN_FAILED };

struct design_row {
	size_t line; /* of the file, from 1 */
	char *model;
	int64_t epochs;            /* 0: as the workload says */
	int64_t processes, repeat; /* repeat 0: not given */
	char *typed;               /* the text of the overrides */
	struct str_list overrides; /* those before the first that cannot be read */
	struct err why; /* code != 0: what the row says cannot be read, so that it cannot run;
			 * numbers that are wrong are then 0 */
	enum design_state state;
};

struct design {
	char *path;
	struct design_row *row;
	size_t rows, room;
	struct str_list lines;  /* of the file as they are, with their line ends */
	size_t header;          /* index of the line that names the columns */
	int column_run;         /* its place, -1: the file has none and gets it when saved */
	struct str_list unread; /* names of columns that mean nothing here, but are those of keys */
	struct buf known;       /* the file as it was read, or saved the last time */
	bool edited;            /* somebody has changed the file since */
};

#define DESIGN_PROCESSES_MAX 65536
/* Reads at most 16 MiB and 100,000 rows. Errors are ERR_USAGE with file, line and column; what is
 * wrong with the values of one row is that row's `why` and no error. Release with design_release
 * in any case. */
int design_load(struct design *d, const char *path, struct err *e);
void design_release(struct design *d);
/* Sets a row's state in memory. */
void design_set_state(struct design *d, size_t row, enum design_state state);
/* Whether the states can be saved: ERR_USAGE for what is no regular file, such as a pipe. */
int design_check_saving(const struct design *d, struct err *e);
/* Replaces the file by one with the present states; all else of it stays byte for byte. At any
 * moment the file is the old or the new one. What somebody has changed in it since it was read
 * stays, too: the states are saved in the rows that are still there; rows that are new are not
 * run. ERR_USAGE: it can no longer be read. */
int design_save(struct design *d, struct err *e);

/* Splits the text of overrides at blanks outside quotes and brackets. Each must be an override by
 * its form (key=value, ~key): nothing else, such as an option, gets through. */
int design_split_overrides(const char *text, struct str_list *out, struct err *e);
