#pragma once
/* The typed configuration of one run: DLIO's keys and ours, where each value came from, and the
 * rules across keys. Built once before any work and read-only afterwards. */
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/elem.h"
#include "base/err.h"
#include "conf/node.h"
#include "conf/opt.h"
#include "workload/backend.h"

enum framework { FRAMEWORK_TENSORFLOW, FRAMEWORK_PYTORCH };
enum storage_type {
	STORAGE_LOCAL_FS,
	STORAGE_PARALLEL_FS,
	STORAGE_DIRECT_FS,
	STORAGE_S3,
	STORAGE_AISTORE
};
enum shuffle { SHUFFLE_OFF, SHUFFLE_SEED, SHUFFLE_RANDOM };
enum read_type { READ_ON_DEMAND, READ_MEMORY };
#define READ_AS_RECORDED 2 /* reader.access: as many as ACCESS_RECORDED */
#define READ_OBJECTS 3     /* ACCESS_OBJECT */
enum page_cache { PAGE_CACHE_KEEP, PAGE_CACHE_COLD, PAGE_CACHE_COLD_EPOCHS, PAGE_CACHE_DROP };
/* reader.data_loader_sampler */
enum sampler { SAMPLER_DERIVE, SAMPLER_ITERATIVE, SAMPLER_INDEX, SAMPLER_NONE };
enum profiler { PROFILER_NONE, PROFILER_IOSTAT, PROFILER_DARSHAN, PROFILER_TENSORBOARD };
enum barrier_choice { BARRIER_OVER_SOCKETS, BARRIER_OVER_MPI, BARRIER_OVER_FASTER };
enum measuring { MEASURE_ALL, MEASURE_NONE };
enum probe_when { PROBE_AUTO, PROBE_ALWAYS, PROBE_NEVER };
enum trace_files { TRACE_OFF, TRACE_PFW, TRACE_CHROME, TRACE_BOTH };
/* reader.interleave: "reads", "calls", "one" */
enum interleave { INTERLEAVE_READS, INTERLEAVE_CALLS, INTERLEAVE_ONE };
enum transport { TRANSPORT_NONE, TRANSPORT_SHARED_MEMORY };
enum sample_order {
	ORDER_SHUFFLED,
	ORDER_DLIO,
	ORDER_DISTRIBUTED,
	ORDER_RANDOM,
	ORDER_SHARDED,
	ORDER_RECORDED
}; /* reader.order: "stoker", "dlio", "distributed", "random", "sharded", "recorded" */
enum file_sizes { SIZES_COMPUTED, SIZES_RECORDED };
enum file_names { NAMES_NUMBERED, NAMES_LISTED };

struct framework_costs;
struct recorded;

/* MosaicML Streaming's shuffle_algo. */
enum shuffle_algorithm { SHUFFLE_PY1E, SHUFFLE_PY1S, SHUFFLE_NAIVE, SHUFFLE_PY1BR, SHUFFLE_PY2S };
/* Canonical nodes of each node where reader.canonical_nodes is 0. */
static inline int64_t workload_canonical_of(int algorithm)
{
	return algorithm == SHUFFLE_PY1S || algorithm == SHUFFLE_PY2S ? 64 : 1;
}

struct workload {
	/* framework: enum framework */
	int framework;
	char *framework_costs; /* framework.costs: "none", or the label of a profile */
	struct {
		int storage_type; /* enum storage_type */
		char *storage_root, *storage_library;
		struct node *storage_options;
		bool s3_force_path_style;
		char *store;    /* store expression: "posix", "throttle+memory"; with what
				 * reader.odirect and storage.page_cache make of it */
		int page_cache; /* enum page_cache */
		int64_t page_cache_files;
	} storage;
	struct {
		double record_length_bytes, record_length_bytes_stdev, record_length_bytes_resize;
		double file_bytes;   /* ours; 0: not asked for */
		int sizes;           /* enum file_sizes */
		char *recorded_file; /* NULL, or once it was read an absolute path */
		int64_t num_files_train, num_files_eval, num_samples_per_file;
		int names;                                   /* enum file_names */
		int64_t num_samples_train, num_samples_eval; /* 0: the product of the others */
		int64_t generation_buffer_size;
		char *data_folder;
		int64_t num_subfolders_train, num_subfolders_eval;
		bool enable_chunking;
		int64_t chunk_size;
		int compression; /* none, gzip, lzf, bz2, zip, xz, snappy, zstd, lz4_raw */
		int64_t compression_level;
		char *file_prefix;
		char *format;
		bool keep_files;
		char *record_element_type;
		int64_t record_element_bytes;
		struct i64_list record_dims;
		struct {
			int64_t num_dset_per_record;
			struct i64_list chunk_dims, max_shape;
		} hdf5;
		struct {
			struct node *columns;
			int64_t row_group_size, generation_batch_size;
			int writer; /* s3dlio, pyarrow: the values of enum parquet_writer */
			char *partition_by, *read_mode;
			bool use_s3dlio_gen;
		} parquet;
		struct {
			int64_t batch_rows;
		} arrow;
		bool skip_listing;
		int64_t listing_validation_interval, total_disk_bytes;
		int64_t seed; /* of the content; ours */
		int64_t verify_samples;
	} dataset;
	struct {
		char *data_loader; /* after workload_finish never NULL */
		char *data_loader_classname, *reader_classname;
		int data_loader_sampler;     /* derive, iterative, index, none */
		int multiprocessing_context; /* enum start_method */
		int64_t read_threads, computation_threads, batch_size, batch_size_eval,
			prefetch_size;
		int file_shuffle, sample_shuffle; /* enum shuffle */
		int64_t shuffle_size;
		int read_type; /* enum read_type */
		int file_access;
		int64_t transfer_size;
		bool dont_use_mmap, odirect;
		bool recorded_work;
		struct time_dist preprocess_time; /* per sample; preprocess_time_stdev is in it */
		double preprocess_time_stdev;
		bool pin_memory;
		struct i64_list transformed_record_dims;
		char *transformed_record_element_type;
		/* ours */
		int access;          /* the values of enum read_access (format/format.h) */
		int decode;          /* full, verify, none: the values of enum read_decode */
		int64_t queue_depth; /* requests of a worker in flight */
		int parquet_requests, parquet_columns;      /* derive, ...; all, marked */
		int order;                                  /* enum sample_order */
		bool drop_last;                             /* of the distributed order */
		bool stick_to_shard, pad_last_batch;        /* of the sharded one */
		bool read_ahead;                            /* native_dali */
		int interleave;                             /* enum interleave; tf.data */
		int64_t block_length;                       /* records in turn */
		int64_t file_shuffle_size, shuffle_initial; /* of streams */
		int shuffle_algorithm;                      /* enum shuffle_algorithm; mds */
		int64_t shuffle_block_size, canonical_nodes, nodes;
		char *cache_folder; /* NULL or "": shards are read where they lie */
		int64_t cache_limit, predownload, max_pre_download; /* 0: the library's default */
		int transport;                                      /* enum transport */
		bool pin_thread;
		double worker_start_time, worker_init_time, worker_resume_time;
		bool in_order;
		bool persistent_workers;
		int64_t buffer_size; /* bytes; 0: the file system's preferred size */
		int python;          /* "py311", "py314" */
		int numpy;           /* "np124", "np23" */
	} reader;
	struct {
		int64_t epochs, total_training_steps;
		bool seed_change_epoch;
		struct time_dist computation_time;
		double computation_time_stdev; /* is in computation_time */
		int64_t seed;
	} train;
	struct {
		struct time_dist eval_time;
		double eval_time_stdev; /* is in eval_time */
		int64_t eval_after_epoch, epochs_between_evals;
	} evaluation;
	struct {
		char *checkpoint_folder;
		int64_t checkpoint_after_epoch, epochs_between_checkpoints,
			steps_between_checkpoints;
		double seconds_between_checkpoints; /* 0: not by time */
		int type, mode;
		char *checkpoint_mechanism_classname;
		bool fsync;
		double time_between_checkpoints;
		int64_t num_checkpoints_write, num_checkpoints_read;
		bool recovery_rank_shift, rank_sync, randomize_tensor;
		struct node *ksm;
		/* ours */
		char *format; /* "auto": by framework */
		int access;   /* framework, native */
		int64_t block_bytes;
		bool mmap, verify;
		int restore; /* broadcast, all */
		int torch;   /* "torch1", "torch2" */
		int64_t seed, pool_bytes, keep_last;
		bool async;
		double stage_rate; /* bytes/s; 0: no time */
	} checkpoint;
	struct {
		char *name, *type;
		int64_t model_size_bytes;
		struct i64_list optimization_groups;
		int64_t num_layers;
		struct i64_list layer_parameters;
		int model_datatype, optimizer_datatype;
		struct {
			int64_t tensor, pipeline, data, zero_stage;
		} parallelism;
		struct {
			int64_t vocab_size, hidden_size, ffn_hidden_size, num_attention_heads,
				num_kv_heads;
		} transformer;
	} model;
	struct {
		char *folder, *log_file;
		struct {
			int64_t exclude_start_steps, exclude_end_steps;
		} metric;
	} output;
	struct {
		bool generate_data, train, evaluation, checkpoint, profiling, debug;
		char *query;
	} workflow;
	struct {
		int profiler;
		struct str_list iostat_devices;
	} profiling;
	struct {
		double au;
	} metric;
	struct {
		bool dlio;
	} compat;
	struct {
		int barrier;    /* enum barrier_choice */
		double silence; /* s; 0: by the start */
	} comm;
	struct {
		double watchdog; /* seconds without any progress before the run is ended; 0: never
				  */
		double sample_interval; /* seconds between samples of the machine; 0: none */
		bool sample_gpus;
		char *note;           /* NULL: none */
		int measure;          /* enum measuring */
		int trace;            /* enum trace_files */
		int64_t trace_events; /* spans kept of each reader */
		int probe;            /* enum probe_when; after training: sweeps of readers */
		double probe_time;    /* s, of all of them */
		int64_t stack_bytes;  /* of rank and worker threads */
	} run;

	/* ---- not keys ---- */
	/* What dataset.file_bytes decides: nothing, the shape of a sample, or with a given shape of
	 * an image how much of it is noise. With FILE_BYTES_SHAPE, dataset.record_length_bytes is
	 * file_bytes over the samples of a file, headers included. */
	enum { FILE_BYTES_NONE, FILE_BYTES_SHAPE, FILE_BYTES_CONTENT } file_bytes_decide;
	struct node *tree;         /* the composed document, ${} resolved; root key "workload" */
	struct node *composed;     /* the same with ${} as written: what .hydra/config.yaml holds,
				    * so that a secret from the environment stays out of files */
	struct opt_origin *origin; /* one per row of workload_rows */
	struct str_list overrides; /* task overrides exactly as typed */
	struct str_list hydra_overrides; /* "hydra.*" overrides exactly as typed */
	struct str_list
		warnings;      /* sentences: unknown keys, unused keys, aliases, later features */
	struct str_list notes; /* sentences that ask for nothing: what names of frameworks were read
				* as, sections that are switched off on purpose */
	struct str_list added; /* keys that overrides add, and nothing reads */
	/* After a failure: every error found, not only the one returned. */
	struct str_list errors;
	int error_code;     /* of the first; 0: none */
	char *choice;       /* the name after "workload=" */
	char *config_dir;   /* --config-dir, or NULL */
	char *run_dir;      /* hydra.run.dir after interpolation: the output folder's default */
	char *hydra_subdir; /* hydra.output_subdir: ".hydra", or NULL to write none */
	const struct elem_type *elem;  /* of record_element_type */
	struct framework_costs *costs; /* of framework.costs; NULL: none */
	struct recorded *recorded; /* of dataset.recorded_file, where a key needs it; else NULL */
};

extern const char *const workload_framework_names[];  /* by enum framework; ends with NULL */
extern const char *const workload_probe_names[];      /* by enum probe_when; ends with NULL */
extern const char *const workload_page_cache_names[]; /* by enum page_cache; ends with NULL */
extern const struct opt workload_rows[];
extern const size_t workload_row_count;

/* What the command line asked. Lists are borrowed. */
struct workload_request {
	const char
		*workload; /* name or path of a YAML file; NULL: from an override, else "default" */
	const char *const *overrides; /* in command-line order; keys with or without "workload." */
	size_t override_count;
	const char *config_dir;
	bool strict;           /* unknown keys are errors */
	bool strict_overrides; /* those of overrides that resemble a known key are */
	bool must_name;        /* without a workload it is an error, and not "default" */
	bool inspect;          /* only to look at: features this version lacks are no errors */
	int64_t ranks;         /* for the checks of steps; 0 counts as 1 */
	int64_t start_wall_ns; /* for ${now:...} */
};

/* Finds, parses, merges, overrides, types and validates. Search order of a name:
 * config_dir/workload, config_dir, the workloads built into the program; a name with a slash or a
 * ".yaml" file that exists is a path. Every problem is found before any work: errors are ERR_USAGE
 * (or ERR_ABSENT for a feature that this version lacks) with file, line and key. Release with
 * workload_release on success and failure. All errors that can be told apart are found at once:
 * w->errors holds their sentences, `e` the first. */
int workload_load(struct workload *w, const struct workload_request *req, struct err *e);
void workload_release(struct workload *w);
/* ERR_ABSENT with one sentence when what the workflow asks for needs a feature that this version
 * does not have. workload_load ends with it unless `inspect`. */
int workload_check_features(const struct workload *w, struct err *e);
/* Whether evaluations are made without training: workflow.train off, evaluation on, no checkpoints.
 * With workflow.generate_data that only generates, as in DLIO, unless workflow.evaluation itself is
 * an override. */
bool workload_only_evaluates(const struct workload *w);
/* Whether ranks read samples: in training, or in evaluations alone. */
bool workload_reads(const struct workload *w);

/* The names of the workloads built in, sorted, NULL-terminated, and their text. */
const char *const *workload_builtin_names(void);
const char *workload_builtin_text(const char *name);

/* One line per key: key, value, origin (default, file:line, command line). For `show config`. */
void workload_print(const struct workload *w, bool only_set, struct buf *out);
/* Appends a sentence to w->warnings. */
void workload_warn(struct workload *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same to w->notes. */
void workload_note(struct workload *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Samples of all training or evaluation files; INT64_MAX where 64 bits do not count them. */
int64_t workload_samples(const struct workload *w, bool evaluation);
/* Of one file, in the mean over them: with num_files_train or _eval the product is all samples. */
double workload_file_samples(const struct workload *w, bool evaluation);
/* Whether files have different numbers of samples. */
bool workload_files_differ(const struct workload *w);
/* Whether sizes, order or requests are those of a recorded job (dataset.recorded_file). */
bool workload_is_recorded(const struct workload *w);
/* Whether a law is missing in the profile of costs that the run would spend: its AU is too high. */
bool workload_costs_in_part(const struct workload *w);
/* The reference of all keys as Markdown (docs/config.md) and as a section of a man page. */
void workload_docs_markdown(struct buf *out);
void workload_man(struct buf *out);
/* A hash of the keys that decide the bytes of the dataset. Pure. */
uint64_t workload_dataset_hash(const struct workload *w);
/* Types a configuration that an earlier run, ours or DLIO's, left behind (.hydra/config.yaml; root
 * key "workload"): what it does not name has its default, unknown keys become warnings, and no rule
 * across keys is checked. Release with workload_release on success and failure. */
int workload_read_back(struct workload *w, const struct node *config, struct err *e);
/* "model: NAME", as MLPerf Storage v0.5 and v1.0 wrote it, becomes model.name. The name's node;
 * NULL: nothing was to be mended. */
const struct node *workload_mend_model(struct node *sections);
