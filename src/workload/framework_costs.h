#pragma once
/* What a framework's own code costs: processor time that it spends beside the requests to the
 * storage. A row is one place where it spends it; a law says how much:
 *
 *     s = fixed + per_sample * samples + per_byte * bytes
 *
 * Code whose time is no straight line of its bytes (memory that is new from some size on, caches
 * that are too small) has points instead: times measured at several sizes, with straight lines
 * between them.
 *
 * Code that runs again after its thread waited finds its memory caches empty: after_wait comes on
 * top, as much of it as the thread waited since it was last there. Code of a library that waits for
 * several requests, one after another, is cold again after each: after_each_wait comes on top for
 * each but the longest of these waits, with what the thread waited before them as one of them.
 *
 * Without workers the memory of batches is the process's own. Memory that it gave back it keeps for
 * the next samples, which a worker takes from the system anew: points of loading have a second
 * time.
 *
 * A profile has a law for each row that was measured, and says of what. Profiles are built in, or
 * files that `stoker calibrate` writes. The rows are the truth: profiles are checked against them,
 * and their documentation is written from them. */
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "conf/node.h"
#include "workload/backend.h"

/* Rows that do not depend on the format. */
enum cost_row {
	COST_SAMPLE,              /* worker: a sample, beside loading it */
	COST_INDEX,               /* worker: a sample, for each sample of the rank */
	COST_KEEP,                /* worker: memory of a sample, kept until its batch is made */
	COST_INLINE,              /* rank: a batch made without workers */
	COST_COLLATE,             /* worker: a batch made of its samples */
	COST_PACK,                /* worker: a batch handed to the rank */
	COST_HAND_OVER,           /* rank: a batch taken that lies ready */
	COST_STEP,                /* rank: the training loop's own code */
	COST_STEP_END,            /* rank: the same, behind the computation */
	COST_BLOCK,               /* rank: at the beginning of a block or an evaluation */
	COST_LOOP_END,            /* rank: after the last batch of an epoch or an evaluation */
	COST_PIN,                 /* pin thread: a batch */
	COST_START_WORKER,        /* rank: a worker started; one after another */
	COST_BEGIN_WORKER,        /* worker: before it takes its first task */
	COST_BEGIN_DLIO,          /* worker: the same, DLIO's own code */
	COST_RESUME_WORKER,       /* rank: a persistent worker told of an epoch */
	COST_END_WORKER,          /* rank: a worker ended */
	COST_ITERATOR,            /* rank: an iterator of tf.data made */
	COST_ITERATOR_MAP,        /* rank: the same, of a pipeline with a map */
	COST_ITERATOR_INTERLEAVE, /* and with interleave */
	COST_ITERATOR_END,        /* rank: an iterator at its end */
	COST_INTERLEAVE,          /* worker: a file's dataset made */
	COST_PARSE,               /* call of map: a batch */
	/* START_WORKER and BEGIN_WORKER of workers that are not forked; of a server with its start,
	 * the first time. */
	COST_START_SPAWN,
	COST_BEGIN_SPAWN,
	COST_START_FORKSERVER,
	COST_BEGIN_FORKSERVER,
	COST_IMPORT_DLIO, /* worker that is not forked: DLIO's modules */
	COST_ROWS,
};

/* How worker processes are started (reader.multiprocessing_context). */
enum start_method { START_FORK, START_SPAWN, START_FORKSERVER };

enum { COST_POINTS_MAX = 16 };

/* What was measured at one size. */
struct cost_point {
	double bytes, s; /* s: all but per_sample and what follows waits */
	double after_wait;
	double alone_s; /* of loading: s where there are no workers */
};

struct cost_law {
	double fixed;           /* s, each time; of loading: for each file opened */
	double per_sample;      /* s */
	double per_byte;        /* s */
	double after_wait;      /* s */
	double after_each_wait; /* s */
	double first;           /* s, on top the first time in a worker */
	/* Of loading: the parts of the law that are spent before the first request for a sample's
	 * data, and behind the last one. What is left lies between these requests, by their bytes.
	 * Without both, all is spent behind the last one. */
	double before_data, after_data;
	double import_s; /* of loading: a new worker of DLIO imports the format's library */
	/* In place of per_byte and after_wait, and of fixed as a part of a sum: of rising sizes.
	 * With fewer than two there are none. */
	struct cost_point point[COST_POINTS_MAX];
	size_t points;
	/* Of single times about the law: half of what lies between the quartiles, as a fraction of
	 * the law. */
	double spread;
	bool present; /* the profile has this row; without it all of the above are 0 */
};

enum { COST_FORMATS_MAX = 32 };

/* A request for so much is one for a sample's data, not for what describes it. */
#define COST_DATA_BYTES 20000

/* After so long, other programs and other work have taken two thirds of the caches. Measured:
 * pauses of 1, 10 and 50 ms add 25, 90 and 100 % of what the longest ones add. */
#define COST_WAIT_S 0.004
/* The same of a wait beside a longer one. Measured with four requests of 1 MiB of npz: waits of
 * 0.3, 1.2, 4 and 12 ms each add 160, 360, 560 and 880 us, of which after_wait has 130, 350, 490,
 * 490. */
#define COST_EACH_WAIT_S 0.012

/* What profiles say of themselves, in this order; each a text. */
enum cost_about {
	COST_ABOUT_FRAMEWORK, /* "pytorch": as in the key framework */
	COST_ABOUT_VERSION,   /* "1.13.1" */
	COST_ABOUT_PYTHON,
	COST_ABOUT_LIBRARIES, /* "numpy 1.24.2, h5py 3.7.0" */
	COST_ABOUT_PROCESSOR,
	COST_ABOUT_DATE,
	COST_ABOUT_SOURCE, /* how it was measured */
	COST_ABOUTS,
};

struct framework_costs {
	char *name;               /* "torch-1.13" */
	char *about[COST_ABOUTS]; /* NULL: not said */
	char digest[9];           /* of the name and the laws */
	struct cost_law of[COST_ROWS];
	struct cost_law load[COST_FORMATS_MAX]; /* parallel to format_facts_table */
};

/* Which parameters a row's law has. */
enum {
	COST_HAS_FIXED = 1u << 0,
	COST_HAS_PER_SAMPLE = 1u << 1,
	COST_HAS_PER_BYTE = 1u << 2,
	COST_HAS_AFTER_WAIT = 1u << 3,
	COST_HAS_AFTER_EACH_WAIT = 1u << 4,
	COST_HAS_FIRST = 1u << 5,
	COST_HAS_DATA = 1u << 6, /* before_data, after_data; points have alone_s */
	COST_HAS_IMPORT = 1u << 7,
};

struct cost_row_facts {
	const char *name; /* as in a profile; of loading "load_" with the format's name behind it */
	const char *what; /* for the documentation; no full stop */
	const char *spent_by; /* "worker", "rank", "pin thread" */
	unsigned parameters;
	unsigned of; /* whose loader's alone, 1u << enum framework; 0: anyone's */
	const char *fixed_is, *bytes_are; /* "each batch"; "the batch"; NULL: no such parameter */
	enum { COST_ANYWHERE, COST_IN_DLIO, COST_IN_OWN_LOOPS } where; /* compat.dlio, or not */
	const char *measured; /* how `stoker calibrate` measures it; a sentence */
};

#define COST_LOAD "load_" /* and the format: rows of loading a sample */
extern const struct cost_row_facts cost_rows[COST_ROWS]; /* by enum cost_row */
extern const struct cost_row_facts cost_load_row;        /* of loading, for every format */

/* What a wait of so many s adds to work on so many bytes, in s: 1 - exp(-wait / COST_WAIT_S) of
 * after_wait. Pure. */
double cost_after_wait_s(const struct cost_law *law, double bytes, double wait_s);
/* The time of a law in s, but what follows waits. Below its points as at the first, above them on
 * the line through the last two, which never falls there. Pure. */
double cost_law_s(const struct cost_law *law, double samples, double bytes);
/* The same of loading a sample, by a rank without workers if `alone`. Pure. */
double cost_load_s(const struct cost_law *law, double bytes, bool alone);
/* The laws of a profile; never NULL. Without a profile (`c` NULL), or a format that has none, a law
 * of zeros. */
const struct cost_law *costs_of(const struct framework_costs *c, enum cost_row row);
/* The same; zeros, too, if the row is none of that program: DLIO (compat.dlio), or a user's own. */
const struct cost_law *costs_in(const struct framework_costs *c, enum cost_row row, bool dlio);
const struct cost_law *costs_of_load(const struct framework_costs *c, const struct format_facts *f);
/* The row of starting a worker in the rank, and of its begin: that of the start method (enum
 * start_method), or, where the profile does not have it, that of fork. */
enum cost_row costs_start_row(const struct framework_costs *c, int method);
enum cost_row costs_begin_row(const struct framework_costs *c, int method);

/* ---- profiles ---- */

/* The names of the profiles built in, sorted, NULL-terminated, and their text; a name without its
 * version is that of the newest: "torch". */
const char *const *costs_builtin_names(void);
const char *costs_builtin_text(const char *name);

/* Why a profile cannot have this name, which must be a word that can be typed and printed anywhere:
 * a clause. NULL: it can. */
const char *costs_name_refusal(const char *name);
/* A profile from a document. Errors are ERR_USAGE with file, line, key, and what is allowed.
 * `tolerant`, of documents that an earlier or later version wrote: rows and keys that are not known
 * are passed over. NULL after an error; release with costs_release. */
struct framework_costs *costs_from_node(const struct node *doc, bool tolerant, struct err *e);
/* The profile built in under this name, or the file with this path. */
struct framework_costs *costs_load(const char *name_or_path, struct err *e);
void costs_release(struct framework_costs *c);

/* The document of a profile: costs_from_node reads the same from it. The root of a new tree. */
struct node *costs_node(const struct framework_costs *c);
/* "torch-1.13@1a2b3c4d": the name and what tells it from others of that name. Heap string. */
char *costs_label(const struct framework_costs *c);

/* The name of row `i` of a profile into `name`; false behind the last one. */
bool costs_row_name(size_t i, char name[64]);

/* The rows as a Markdown table, and the laws of a profile as text for people. */
void costs_docs_markdown(struct buf *out);
void costs_print(const struct framework_costs *c, struct buf *out);
