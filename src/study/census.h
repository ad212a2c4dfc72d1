#pragma once
/* How many accelerators of each built-in workload a storage feeds, from a few minutes of
 * measurement: docs/survey.md.
 *
 * Workloads whose requests are alike are one pattern. Of each pattern a small dataset is made and
 * read by runs of the program with run.probe: samples a second with 1, 2, 4, ... readers, and what
 * the loader itself gets. The number of accelerators is the largest whose readers are given what
 * these accelerators need at the target. */
#include <jansson.h>

#include "study/runner.h"
#include "workload/need.h"

#define CENSUS_FOLDER "stoker_survey" /* in the folder that is surveyed */
#define CENSUS_POINTS 12
#define CENSUS_RUNS 3 /* of a pattern, at most */

struct census_options {
	struct runner_base base; /* its workload is of no matter */
	const char *folder;      /* on the storage */
	const char *only;        /* part of the names of workloads; NULL: all */
	double time_s;           /* of the whole, about */
	bool checkpoint;
	const struct stop_flag *stop;
};

/* ---- a curve ---- */

/* So many readers at once; a second. `rate`: samples of the size that the workload has. */
struct census_point {
	double readers; /* that were reading, in the mean */
	double rate;
	double made_rate; /* samples of the size that was read */
	double bytes, requests, opens;
	double open_share; /* of the readers' time, in opens */
	double cpu;        /* share of the processors that this program may use */
};

struct census_curve {
	struct census_point point[CENSUS_POINTS]; /* by readers */
	size_t n;
};

/* The most readers that it has; 0: none. */
double census_readers(const struct census_curve *c);

/* Samples/s of `readers`, of the workload's size or of the made one. Between points both axes are
 * logarithmic; above the last point it is that one's. */
double census_supply(const struct census_curve *c, double readers, bool made);
/* By how many percent the rate grows there for each percent of readers. */
double census_slope(const struct census_curve *c, double readers);
/* The mean of the runs' curves, or the typical one of rates that differ much, whose points are of
 * the same numbers of readers; *spread gets half of the 95 % interval of its rates, relative, NaN
 * with one run. */
void census_mean(const struct census_curve *run, size_t runs, struct census_curve *out,
		 double *spread);
/* Whether more readers get much less than fewer ones: that was a stall, or is so with each run. */
bool census_doubtful(const struct census_curve *c);
/* The largest number of accelerators, each with `readers` and in need of `need` samples/s, that the
 * curve feeds; below 1 the part of one. *beyond: more than the curve has readers for. */
double census_feeds(const struct census_curve *c, double readers, double need, bool *beyond);

/* ---- what is surveyed ---- */

enum census_limit {
	CENSUS_UNKNOWN,
	CENSUS_BANDWIDTH,
	CENSUS_REQUESTS,
	CENSUS_EITHER, /* of the two, which one size of requests cannot tell */
	CENSUS_OPENS,
	CENSUS_LATENCY,
	CENSUS_HOST
};
extern const char *const census_limit_keys[], *const census_limit_texts[];

/* What was read while runs went on; NaN: not known. */
struct census_origin {
	double returned;  /* to the runs' requests */
	double device;    /* from the device of the file system; 0: it has none */
	double disks;     /* from the disks below it */
	double delivered; /* by all disks and the network, below a server of this machine */
};

/* What gave the bytes to this host. */
enum census_source {
	CENSUS_STORAGE, /* or nothing is known */
	CENSUS_CACHE_BELOW,
	CENSUS_DEVICE_IN_MEMORY,
	CENSUS_LOCAL_SERVER
};
extern const char *const census_source_keys[];

/* Files that stand for those of workloads whose requests are alike. */
struct census_pattern {
	char key[160];        /* what makes workloads alike */
	const char *workload; /* that it is measured with */
	double sample_bytes;  /* in files, of the workload */
	bool streams;         /* a file is read from its beginning to its end */
	uint64_t per_file;    /* samples, of the workload */
	/* made */
	double made_bytes; /* of a sample, in files */
	uint64_t files, made_per_file, batch, bytes;
	uint32_t ranks; /* of its runs */
	/* measured */
	struct census_curve run[CENSUS_RUNS], curve;
	size_t runs;
	double spread;  /* NaN: one run */
	double readers; /* of its runs' ranks */
	/* requests of another size, with the most readers: bytes and requests a second, at most */
	double other_bytes, other_requests;
	double checked[CENSUS_RUNS]; /* samples/s that the loaders got, of the made size; NaN */
	double client_rate; /* where this machine was the limit of all such runs; 0: of none */
	double agrees;      /* that by what the curve says; NaN */
	double busy;        /* part of a loader's readers that read at a time */
	bool cold;
	double cached; /* of the bytes of its runs, from the page cache, at most; NaN */
	struct census_origin origin;
	double below;  /* part of them that memory below the file system served; NaN */
	char why[512]; /* why it has no curve; "" */
};

/* A workload. */
struct census_row {
	const char *name;
	char model[40], kind[16]; /* "3D-UNet", "H100"; kind "": none is named */
	size_t pattern;
	struct need need;
	double target;  /* of AU, 0 to 1 */
	double readers; /* of one accelerator */
	/* the answer; NaN: none */
	double fed, low, high;
	bool at_least;
	enum census_limit limit;
	double at_readers;   /* for that many accelerators; at most those of the curve */
	double supply_bytes; /* bytes/s for them */
};

struct census_save {
	const char *name; /* "8B" */
	double bytes, seconds;
};
#define CENSUS_SAVES 4

struct census {
	const struct census_options *o;
	struct census_pattern *pattern;
	size_t patterns, pattern_room;
	struct census_row *row;
	size_t rows, row_room;
	char *own; /* folder of all that it makes */
	double seconds;
	double written;               /* bytes, in all */
	double most;                  /* bytes on the storage at a time, at most */
	double write_rate, read_rate; /* of a first look; bytes/s */
	char file_system[56];
	bool emulated; /* a store of this program, or one without files */
	/* of the bytes of all runs; not of an emulated store */
	enum census_source source;
	double below;         /* part that memory below the file system served; NaN */
	char below_what[320]; /* "loop0 is the file /srv/x.img" */
	double host_cpus;
	/* --checkpoint */
	double save_rate; /* bytes/s; 0: none */
	uint32_t writers;
	double save_each[8];
	size_t saves_made;
	struct census_save save[CENSUS_SAVES];
	size_t saves;
	void (*tell)(void *arg, const char *text, bool ends); /* progress; or NULL */
	void *arg;
};

/* Finds workloads and patterns. ERR_USAGE: none has `only` in its name, or a key is wrong. */
int census_list(struct census *s, struct err *e);
/* How a pattern is made from so many bytes. */
void census_shape(struct census_pattern *p, uint64_t bytes);
/* The keys of its runs. */
void census_put_shape(const struct census_pattern *p, struct str_list *keys);

/* ---- where the bytes came from ---- */

struct host_io_source;
struct census_watch; /* the kernel's counters below a folder; free() ends it */
struct census_watch *census_watch_new(const char *folder);
void census_watch_begin(struct census_watch *w);
/* Adds what was read since. */
void census_watch_end(const struct census_watch *w, double returned, struct census_origin *to);
/* Of these bytes; *below: the part that memory served instead of a storage, NaN: none. Pure. */
enum census_source census_source_of(const struct host_io_source *s, const struct census_origin *o,
				    double *below);
/* Sets the source of the survey, and whether its patterns were cold. */
void census_find_source(struct census *s, const struct census_watch *w);

/* Measures all. s->own is gone at the end, whatever happens. ERR_CANCELED once the stop is set.
 * Release in any case. */
int census_make(struct census *s, const struct census_options *o, struct err *e);
void census_release(struct census *s);
/* ERR_DATA and why when a workload was not measured; what was stays said. */
int census_check(const struct census *s, struct err *e);

/* For a terminal of so many columns. */
void census_text(const struct census *s, size_t columns, struct buf *out);
json_t *census_json(const struct census *s);
