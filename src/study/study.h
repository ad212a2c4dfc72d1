#pragma once
/* A study: a whole experiment from its design (study/design.h). Its plan knows every run with its
 * name, folder, dataset and command before anything is written; the runner (study/runner.h) makes
 * what is pending; what a study remembers beside its CSV is in results/DESIGN.study.json, replaced
 * atomically after each run, and in the mark of each finished run. */
#include <jansson.h>

#include "base/buf.h"
#include "base/thread.h"
#include "codec/digest.h"
#include "run/foresee.h"
#include "study/design.h"

enum study_launcher { LAUNCH_LOCAL, LAUNCH_MPIRUN, LAUNCH_SRUN };
extern const char *const study_launcher_names[]; /* NULL-terminated, by enum */

struct study_options {
	const char *design;     /* path of the CSV */
	const char *results;    /* folder; default "results" */
	const char *scratch;    /* folder for datasets; default "scratch" */
	const char *config_dir; /* of workloads; NULL */
	const char *program;    /* path of the stoker to run */
	enum study_launcher launcher;
	struct str_list launcher_args, modules;
	/* Of every run, or "MODEL:key=value" of that model's; a row's own come later and win. */
	struct str_list overrides;
	/* "key=factor" or "MODEL:key=factor": multiplies a number, whoever set it. */
	struct str_list scales;
	int64_t repeat; /* of rows that do not say: at least 1 */
	bool shuffle;   /* the runs in random order, by shuffle_seed */
	uint64_t shuffle_seed;
	bool warm;      /* leave what generation left in the page cache */
	bool keep_data; /* leave the datasets in the scratch folder */
	bool retry;     /* failed rows too */
	bool small;     /* every run shrunk (small.h); the states in the design are not used */
	bool memory;    /* state the memory of each run, which takes some milliseconds */
	const struct stop_flag *stop;
};

/* One dataset that several runs share. */
struct study_dataset {
	char *model;
	char name[96]; /* folder below the scratch folder */
	char *folder;  /* absolute, but with `objects` */
	bool objects;  /* of an object store: the folder is a beginning of keys, and stays */
	/* The folder is the user's, by an override of dataset.data_folder: nothing in it is ever
	 * removed. */
	bool given;
	bool there; /* and it holds files, which are used as they are */
	uint64_t key;
	uint64_t bytes, files; /* UINT64_MAX bytes: depends on content */
	int64_t processes;     /* most of any run that uses it */
	size_t experiment;     /* whose overrides generate it */
};

struct experiment {
	size_t row;      /* of the design */
	uint32_t repeat; /* from 1 */
	const char *model;
	char model_folder[80]; /* the model as a folder's name */
	char name[200];        /* "4_batch_size_14" */
	char *folder;          /* results/MODEL/NAME/run-1 */
	int64_t processes;
	struct str_list overrides; /* as the child gets them, without folders */
	uint64_t config;           /* hash of the composed workload; 0: it cannot be composed */
	uint64_t key;              /* of all that the run depends on: the same key, the same run */
	/* The key of the run that versions before made of the same row: with the page cache cold
	 * before the first epoch only. 0: the same run. */
	uint64_t key_before;
	size_t dataset;   /* index, SIZE_MAX: needs none */
	bool generates;   /* its store keeps nothing between processes: it generates by itself */
	double compute_s; /* least time it can take */
	bool checkpoints;
	bool own_folder;         /* of checkpoints: an override of checkpoint.checkpoint_folder */
	char *checkpoint_folder; /* absolute; NULL without checkpoints */
	struct run_foresight foreseen;
	struct study_cache {
		int value;       /* enum page_cache */
		char why[160];   /* "the default of a study", "the design" */
		bool by_study;   /* the default of a study, the last of its overrides */
		bool impossible; /* kept because it cannot be evicted */
	} cache;
	char *unused_folder; /* dataset.data_folder of the workload's file, which is not used */
	struct str_list warnings; /* what loading the workload said */
	bool target_set;          /* metric.au is not the default */
	uint64_t files;           /* to train on; 0: none */
	struct err why;           /* code != 0: it cannot run */
	bool data_refused;        /* `why` is of dataset.data_folder */
	struct err memory_why;    /* code != 0: this host has too little memory for it */
};

struct study_plan {
	const struct study_options *options; /* borrowed */
	struct design design;
	struct experiment *experiment; /* in the order they will run, done ones too */
	size_t experiments, experiment_room;
	struct study_dataset *dataset;
	size_t datasets, dataset_room;
	struct buf shrunk; /* with options->small: what was changed, a line for each model */
};

/* The composed workload of a run with these overrides. `inspect`: only to look at. */
int study_load(const struct study_plan *p, const struct experiment *x,
	       const struct str_list *overrides, bool inspect, struct workload *w, struct err *e);

/* The same of its own overrides, for the values of keys alone: also of a workload that has too few
 * samples for a step. */
int study_load_values(const struct study_plan *p, const struct experiment *x, struct workload *w,
		      struct err *e);

/* Whether repetitions and searches evict its dataset before each epoch: it can be, and nobody says
 * anything else of the page cache. */
bool study_begins_cold(const struct workload *w);
/* Whether there is anything in a folder, which need not be there. Negative: -errno. */
int study_folder_holds(const char *folder, bool *any);

/* Whether the run is still to be made: its row is pending, or failed and to be tried again. */
bool study_is_pending(const struct study_plan *p, const struct experiment *x);

/* ---- the plan ---- */

/* Loads the design and every workload of it. A row that cannot run is an experiment with its
 * reason; only a design that cannot be read is an error. Release with study_plan_release. */
int study_plan_init(struct study_plan *p, const struct study_options *o, struct err *e);
void study_plan_release(struct study_plan *p);

/* Sets x->folder: results/MODEL/NAME/run-1, or beside it where that holds another run with this
 * name, of another design, with other overrides or of a workload that was another then. */
int study_place_run(const struct study_plan *p, struct experiment *x, struct err *e);

/* A text as the name of one folder: letters, digits and "._+-=", others become '_'; what was
 * changed or cut gets a hash, so that different texts keep different names. */
void study_folder_name(const char *text, char *out, size_t out_size);

/* ---- states ---- */

#define STUDY_RUN_NAME "study_run.json"

/* How a run stands. */
enum run_state { RUN_PENDING, RUN_DONE, RUN_BAD };

struct row_status {
	enum run_state state;
	double seconds; /* wall time; 0 when it was already complete */
	char reason[ERR_TEXT_MAX];
};

/* The path of a design's state file. Heap string. */
char *state_path(const struct study_plan *p);
int state_save(const struct study_plan *p, const struct row_status *status, struct err *e);

/* The mark of a finished run, in its folder (runner.h): its key, and what it says of the design. */
void run_mark_key_text(const struct experiment *x, char key[SHA256_HEX]);
json_t *run_mark_about(const struct study_plan *p, const struct experiment *x);
/* Whether the mark says that this design has noted the run. */
bool run_mark_is_noted(const struct study_plan *p, const json_t *mark);
/* To be called once the design has the row's state: writes into the mark that the run was noted.
 * Fine when there is no such mark. */
int run_mark_note(const struct study_plan *p, const struct experiment *x, struct err *e);
/* The key in the mark of `folder`; 0 when there is no mark. */
int run_mark_key(const char *folder, uint64_t *key, struct err *e);

/* How each run stands, and why it failed, by the design, the folders and the saved state. status:
 * of `experiments`. A run is done, whatever the design says, if its folder holds it, finished, and
 * the design has not noted it yet: the study was killed between the two. What was noted before is
 * an old result: its row is pending because somebody set it back. So is one whose result is not
 * whole, with the reason. */
int study_status(const struct study_plan *p, struct row_status *status, struct err *e);
/* ERR_DATA, with the first of them, when results of finished runs are damaged or incomplete. */
int study_check_done(const struct study_plan *p, const struct row_status *status, struct err *e);

/* ---- what will go wrong ---- */

/* Said before it begins: every problem of every pending row at once, those that are the same put
 * together. Steps, checkpoints and memory are what the run itself would plan (run/foresee.h), and
 * how many steps are enough is what the verdicts go by. */
enum forecast_kind {
	FORECAST_FAILS,   /* the run ends with an error */
	FORECAST_DOUBT,   /* it does not measure what it seems to */
	FORECAST_WARNING, /* what loading its workload says */
	FORECAST_NOTE,    /* worth knowing */
	FORECAST_KINDS
};

struct forecast_item {
	enum forecast_kind kind;
	char *text;   /* a sentence without its full stop */
	size_t *line; /* of the design, ascending; of none: it is the study's */
	size_t lines, room;
};

/* A file system on which a study keeps datasets or checkpoints. */
struct forecast_place {
	uint64_t device;
	char *path; /* the first folder on it */
	char file_system[56];
	double free_bytes; /* INFINITY: not known */
	double kept_bytes; /* by now: what stays until the study ends */
	double most_bytes; /* at a time */
};

struct forecast {
	struct forecast_item *item; /* by kind, then by line */
	size_t items, item_room;
	struct forecast_place *place;
	size_t places, place_room;
	size_t pending;      /* rows */
	double memory_bytes; /* the largest bound of a run */
	double available_bytes;
	double read_bytes, generate_bytes; /* of all runs */
};

/* Looks at every pending row of a plan made with options.memory. Release in any case. */
void study_forecast(const struct study_plan *p, struct forecast *out);
void forecast_release(struct forecast *f);
/* The problems of the kinds up to `last`, a line each, at most `most` (0: all) of them. */
void forecast_text(const struct forecast *f, enum forecast_kind last, size_t most, struct buf *out);
/* Disks and memory against what there is. */
void forecast_needs_text(const struct forecast *f, struct buf *out);
/* ERR_USAGE when the launcher of the options cannot be found, so that no run could start. With
 * --module it may come from there. */
int forecast_launcher(const struct study_options *o, struct err *e);

/* ---- commands ---- */

/* The commands of a study's children, as words that no shell reads. */
void study_generate_command(const struct study_plan *p, const struct study_dataset *d,
			    struct str_list *out);
void study_run_command(const struct study_plan *p, const struct experiment *x,
		       struct str_list *out);
/* What shows whether the launcher and the modules work at all: the version of the program, printed
 * by as many processes as the run has. Nothing without launcher and modules. */
void study_trial_command(const struct study_plan *p, const struct experiment *x,
			 struct str_list *out);
/* How many runs are pending, and the least time of all; and every dataset and command of them. */
void study_plan_text(const struct study_plan *p, struct buf *out, struct buf *commands);

struct sbatch_options {
	const char *partition; /* NULL: the site's default */
	const char *account;   /* NULL */
	int64_t nodes, tasks;  /* tasks 0: the largest process count of the design */
	const char *time;      /* "04:00:00"; NULL: the site's default */
	const char *gres;      /* "gpu:4"; NULL */
	bool exclusive;        /* no other job on the nodes */
	struct str_list lines; /* further directives, without "#SBATCH ": "--constraint=x" */
};

/* Writes a script that continues the study with srun: submitted again, it goes on where it ended.
 * Values with characters that could end a line or a word are ERR_USAGE. */
int study_sbatch(const struct study_plan *p, const struct sbatch_options *o, struct buf *out,
		 struct err *e);

/* ---- running ---- */

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
};

typedef void (*study_event_fn)(void *arg, const struct study_event *event);

/* Carries out what is pending. Each run is a child process into "<folder>.partial", which becomes
 * its folder when it ended well; then the design and the state are saved. A failing run is recorded
 * and the next goes on. ERR_CANCELED once options.stop is set: the present child is ended, and the
 * study can be continued by the same call. The scratch folder is emptied of what was generated in
 * any case, unless keep_data. Another study in the same results folder is an error. *failed: rows
 * that failed. */
int study_run(struct study_plan *p, study_event_fn fn, void *arg, size_t *failed, struct err *e);

/* ---- what is seen ---- */

/* The design as a matrix: a line for each model and set of overrides, a column for each number of
 * processes, a state in each cell. For a terminal of `width` columns, with colours or plain
 * letters; texts and columns that do not fit go on below. */
void study_matrix_text(const struct study_plan *p, const struct row_status *status, bool color,
		       int width, struct buf *out);
/* {"done", "failed", "pending", "rows"}: each run with its folder, and why it failed. */
json_t *study_status_json(const struct study_plan *p, const struct row_status *status);
/* As a picture (SVG). */
void study_matrix_svg(const struct study_plan *p, const struct row_status *status, struct buf *out);

/* The charts for papers, drawn by gnuplot: each as NAME.png (150 dpi), NAME.svg and NAME.pdf.
 * Writes whole_au, au (DLIO's definition), throughput (samples/s) and one chart for each varied
 * parameter into `folder`, with NAME.gp and NAME.dat they are made of. ERR_ABSENT when there is no
 * gnuplot. */
struct run_groups;
int plots_write(const struct run_groups *g, const char *folder, struct err *e);
