#pragma once
/* What is true of the backends: the plain data of each store, format, loader and checkpoint format,
 * by which the layers below them and above them are told apart without comparing a name.
 *
 * Each row of a table above this layer holds its facts as its first member, `is`; the build lists
 * them here too, so that rules across keys, help and documentation see every backend there is. A
 * backend remains one file and one line. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "conf/opt.h"

struct workload;

/* ---- stores ---- */

enum {
	STORE_IS_SHIM = 1u << 0,       /* needs a lower store */
	STORE_IS_VOLATILE = 1u << 1,   /* contents end with the process */
	STORE_HAS_FILES = 1u << 2,     /* names are paths that other programs can open */
	STORE_KEEPS_NOTHING = 1u << 3, /* writes vanish; no name is ever there */
	STORE_IS_UNCACHED = 1u << 4,   /* reads leave nothing in the page cache */
	STORE_MAPS = 1u << 5,          /* reads are page faults: no read call returns the bytes */
	/* The kernel's count of bytes returned by read calls leaves its reads out. */
	STORE_UNCOUNTED = 1u << 6,
	/* Reads files with pread through the page cache: what reader.odirect replaces by a store
	 * with STORE_IS_UNCACHED. */
	STORE_IS_BUFFERED = 1u << 7,
	/* A shim: files leave the page cache as soon as they were read (storage.page_cache). */
	STORE_DROPS_BEHIND = 1u << 8,
	/* A shim that tells calls apart: nothing below it is done for many files at once. */
	STORE_EACH_CALL = 1u << 9,
	/* A shim that limits what is below it, for its own process. */
	STORE_LIMITS = 1u << 10,
	/* Names are keys of objects of a server: an object appears whole, under its own name, when
	 * it is closed, and none is named anew. What storage.storage_type s3 uses. */
	STORE_HAS_OBJECTS = 1u << 11,
};

struct store_facts {
	const char *name; /* as in storage.store; its options are in the map storage.NAME */
	const char *help; /* one sentence, without its full stop */
	unsigned flags;
	const struct opt *options; /* rows of the store's own keys, under "storage.<name>." */
	size_t option_count;
	size_t config_bytes; /* size of the struct the rows fill */
};

/* ---- formats ---- */

enum {
	FORMAT_NO_IO = 1u << 0, /* reading issues no request (synthetic) */
	/* One uint8 image of at most two dimensions is the whole file, and every sample of it. */
	FORMAT_IMAGE = 1u << 1,
	/* The framework's access needs a store whose blobs can be mapped (store/mapped.h) */
	FORMAT_MAPS = 1u << 2,
	/* A framework reads the records of a file only one after another; DLIO has no reader of it
	 * that takes samples by index, as PyTorch's loader does. */
	FORMAT_STREAM = 1u << 3,
	/* A file is little more than its samples, back to back: nothing reads faster. */
	FORMAT_RAW_ARRAY = 1u << 4,
	/* DLIO's generator of it never compresses, whatever dataset.compression is. */
	FORMAT_DLIO_PLAIN = 1u << 5,
	/* DLIO's PyTorch readers take it from object storage. */
	FORMAT_IN_OBJECTS = 1u << 6,
	/* Native access asks for the beginning of a file before a sample that lies far from it. */
	FORMAT_HEADED = 1u << 7,
	/* DLIO's reader of it does not write its index into a message for each sample. */
	FORMAT_INDEX_UNTOLD = 1u << 8,
	/* DLIO's PyTorch readers of objects ask for whole files of it (reader.access object). */
	FORMAT_WHOLE_OBJECTS = 1u << 9,
	/* A file may be longer than its samples need: file_spec.want_bytes says how long, and zeros
	 * fill it up, so that dataset.sizes recorded is met. */
	FORMAT_FILLED = 1u << 10,
	/* Its samples lie in groups, which loaders can ask for (format_ops.unit_begin). */
	FORMAT_GROUPS = 1u << 11,
	/* Files that others wrote can be used as they are (dataset.names listed,
	 * format_ops.look). */
	FORMAT_LISTED = 1u << 12,
};

/* Which of DALI's own readers reads the format (loader/dali_source.h). */
enum dali_kind { DALI_NONE, DALI_NPY, DALI_TFRECORD, DALI_IMAGE };

struct format_facts {
	const char *name; /* as in dataset.format */
	const char *help;
	const char *extension; /* file name extension without the dot */
	/* Others that people's files have, NULL-terminated; NULL: none. Never written. */
	const char *const *other_extensions;
	/* The bytes with which its files begin, and no others; NULL: none that tell it apart. */
	const char *magic;
	unsigned flags;
	/* Names of its files are this, a number of at least `digits` digits, and the extension;
	 * NULL: dataset.file_prefix and both numbers of DLIO's ("img_03_of_64"). */
	const char *numbered;
	int digits;
	/* A file that each folder of its files has besides, which lists them
	 * (format_ops.folder_put). NULL: none. */
	const char *folder_file;
	/* Values of dataset.compression besides none, NULL-terminated; NULL: only none. */
	const char *const *compressions;
	/* Keys of `dataset` that decide the bytes of this format's files alone, NULL-terminated;
	 * NULL: none. */
	const char *const *keys;
	/* Keys of `reader` that only readers of this format look at, NULL-terminated; NULL: none.
	 */
	const char *const *reader_keys;
	/* The rules across keys. NULL: none. Fails as workload_key_error. */
	int (*check_keys)(const struct workload *w, struct err *e);
	/* Files that a reader keeps open at most with reader.read_type memory, and of which it then
	 * reads each sample by itself; 0: it loads whole files, or opens one for each sample. */
	uint32_t kept_open;
	const char *dlio_reader; /* DLIO's reader class, as in its traces; NULL: DLIO has none */
	enum dali_kind dali;
};

/* ---- loaders ---- */

enum {
	/* Divides samples iteratively, as tf.data does: files in turn (sampler "iterative"). Others
	 * take samples by index. */
	LOADER_ITERATES = 1u << 0,
	/* Gives each rank a shard of its own: reader.order sharded, and no other. */
	LOADER_SHARDS = 1u << 1,
	/* Reads with DALI's own readers: formats with a `dali` kind, from mapped files unless
	 * reader.dont_use_mmap. */
	LOADER_READS_AS_DALI = 1u << 2,
	/* Each worker goes through files of its own from their beginning to their end, in an order
	 * that buffers of files and samples give; reader.order is not looked at. */
	LOADER_STREAMS = 1u << 3,
	/* Takes whole objects (reader.access object); unless it streams, they are read ahead of its
	 * workers. */
	LOADER_TAKES_OBJECTS = 1u << 4,
	/* Asks for groups of samples ahead of its batches: formats with FORMAT_GROUPS. */
	LOADER_GROUPS = 1u << 5,
};

/* Whose order a loader has, whatever reader.order is (dataset/deal.h). */
enum loader_deal { DEAL_NONE, DEAL_MDS, DEAL_LITDATA };

/* How far workers read ahead, for the simulation (predict/). */
enum loader_rule {
	RULE_NONE,       /* cannot be simulated */
	RULE_PYTORCH,    /* a batch a worker; prefetch_size for each of them */
	RULE_GENERATORS, /* of tf.data: a batch a generator, which is three ahead of prefetch */
	RULE_EXTERNAL    /* DALI's external source: a batch is cut into runs */
};

struct loader_key {
	const char *key; /* of the section reader; NULL ends the list */
	/* Only with reader.read_threads above 0; only without reader.dont_use_mmap. */
	enum { USED_ALWAYS, USED_BY_WORKERS, USED_BY_MAPS } when;
};

struct loader_facts {
	const char *name; /* as in reader.data_loader */
	const char *help;
	unsigned flags;
	/* Bits 1 << enum framework: the loader of its own, where reader.data_loader names none. */
	unsigned default_of;
	enum loader_rule rule;
	enum loader_deal deal;
	/* The rules across its keys, with the number of ranks. NULL: none. Fails as
	 * workload_key_error. */
	int (*check_keys)(const struct workload *w, int64_t ranks, struct err *e);
	/* Keys that not every loader uses and this one does. NULL: none of them. */
	const struct loader_key *keys;
	/* Keys that others use and this one does not, NULL-terminated, and why. NULL: none. */
	const char *const *ignores;
	const char *ignores_why;
};

/* ---- formats of checkpoints ---- */

struct checkpoint_facts {
	const char *name; /* as in checkpoint.format */
	const char *help;
	/* Bits 1 << enum framework: the format of checkpoint.format auto. */
	unsigned default_of;
};

/* NULL-terminated, written by the build in the order of its backend() lines. */
extern const struct store_facts *const store_facts_table[];
extern const struct format_facts *const format_facts_table[];
extern const struct loader_facts *const loader_facts_table[];
extern const struct checkpoint_facts *const checkpoint_facts_table[];

/* The facts of a name, or NULL. */
const struct store_facts *store_facts_find(const char *name);

/* ---- of a workload ---- */

/* The facts of what the workload names; never NULL: an unknown name has empty ones. */
const struct format_facts *workload_format(const struct workload *w);
const struct loader_facts *workload_loader(const struct workload *w);
/* Of the store below all shims of storage.store. */
const struct store_facts *workload_base_store(const struct workload *w);
/* Whether `name` is a part of the store expression ("throttle" of "throttle+posix"). */
bool store_expression_has(const char *expression, const char *name);

/* The options of a store as the workload sets them, defaults filled in: `config_bytes` of it on the
 * heap; release with opt_release and free. NULL, with a sentence, when the store refuses one. */
void *workload_store_config(const struct workload *w, const struct store_facts *s, struct err *e);

/* ERR_USAGE, naming what is supported, unless files of the format can be compressed this way
 * ("none" always). */
int format_check_compression(const struct format_facts *f, const char *compression, struct err *e);
/* The names of the formats of which `has` is true: "npz, npy and csv", with `word` before the last.
 */
void format_list(bool (*has)(const struct format_facts *f), const char *word, struct buf *out);
/* ERR_USAGE unless one of DALI's own readers takes such files, of which all but tfrecord's take a
 * file for one sample. */
int format_check_dali(const struct format_facts *f, int64_t samples_per_file, struct err *e);
