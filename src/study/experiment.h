#pragma once
/* The options of a study, its runs and their datasets, and what every part of a study asks of a
 * run. */
#include "base/buf.h"
#include "base/thread.h"
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
	char *folder;  /* absolute */
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
	size_t experiments;
	struct study_dataset *dataset;
	size_t datasets;
	struct buf shrunk; /* with options->small: what was changed, a line for each model */
};

/* The composed workload of a run with these overrides. `inspect`: only to look at. */
int study_load(const struct study_plan *p, const struct experiment *x,
	       const struct str_list *overrides, bool inspect, struct workload *w, struct err *e);

/* The same of its own overrides, for the values of keys alone: also of a workload that has too few
 * samples for a step. */
int study_load_values(const struct study_plan *p, const struct experiment *x, struct workload *w,
		      struct err *e);

/* Who set a key of the workload: enum origin_source. */
int study_source_of(const struct workload *w, const char *key);

/* Whether evicting the files in `folder` means nothing, and why. */
bool study_cannot_evict(const struct workload *w, const char *folder, char *why, size_t size);

/* Whether the run is still to be made: its row is pending, or failed and to be tried again. */
bool study_is_pending(const struct study_plan *p, const struct experiment *x);
