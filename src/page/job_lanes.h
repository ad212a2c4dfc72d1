#pragma once
/* How the time of a job's threads went, in columns that a page draws: of any number of requests the
 * same amount of data.
 *
 * Memory: JOB_LANES x JOB_COLUMNS x LANE_STATES x 8 bytes (3.7 MB) while one window is summed; 4
 * bytes a thread of the job. Time: the events are gone through once a window, and once more. */
#include <jansson.h>

#include "trace/profile/profile.h"

#define JOB_LANES 64     /* rows; of more threads, the busiest have rows and the rest share one */
#define JOB_COLUMNS 1000 /* of a window */
#define JOB_WINDOWS 4    /* the whole job, and parts of it that are much shorter */

enum lane_state {
	LANE_READ,     /* files but programs */
	LANE_WRITE,    /* and fsync */
	LANE_METADATA, /* open, stat, listings, seeks, rename ... */
	LANE_PROGRAM,  /* any request of code: programs, libraries, modules */
	LANE_WAIT,     /* pipes, sockets, processes, locks */
	LANE_COMPUTE,  /* marked by the application */
	LANE_STATES
};

/* {"states", "lanes", "windows", ...}: each lane of a window has a text a state, in which a
 * character is a column: 0 to 63 of 63 of its time as 0-9A-Za-z-_; `c{n}`: n columns of c. null
 * when the log has no requests with times. */
json_t *job_lanes(const struct profile *a);
