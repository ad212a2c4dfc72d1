/* The rows of every key of a workload: DLIO's, documented or not, and ours. Defaults are what
 * DLIO's code does when a key is absent. */
#include "workload/workload.h"

#include "workload/tables.h"

const char *const workload_framework_names[] = {"tensorflow", "pytorch", NULL};
static const char *const storage_types[] = {"local_fs", "parallel_fs", "direct_fs",
					    "s3",       "aistore",     NULL};
static const char *const compressions[] = {"none", "gzip",   "lzf",  "bz2",     "zip",
					   "xz",   "snappy", "zstd", "lz4_raw", NULL};
static const char *const samplers[] = {"derive", "iterative", "index", "none", NULL};
static const char *const contexts[] = {"fork", "spawn", "forkserver", NULL};
static const char *const shuffles[] = {"off", "seed", "random", NULL};
static const char *const read_types[] = {"on_demand", "memory", NULL};
static const char *const file_accesses[] = {"multi", "shared", "collective", "mpio", "posix", NULL};
const char *const workload_page_cache_names[] = {"keep", "cold", "cold_epochs", "drop_behind",
						 NULL};
const char *const workload_probe_names[] = {"auto", "true", "false", NULL};
static const char *const barriers[] = {"sockets", "mpi", "auto", NULL};
static const char *const measures[] = {"all", "none", NULL};
static const char *const traces[] = {"none", "pfw", "chrome", "both", NULL};
static const char *const accesses[] = {"framework", "native", NULL};
static const char *const read_accesses[] = {"framework", "native", "recorded", "object", NULL};
static const char *const decodes[] = {"full", "verify", "none", NULL};
static const char *const orders[] = {"stoker",  "dlio",     "distributed", "random",
				     "sharded", "recorded", NULL};
static const char *const sizes[] = {"computed", "recorded", NULL};
static const char *const file_names[] = {"numbered", "listed", NULL};
static const char *const interleaves[] = {"reads", "calls", "one", NULL};
static const char *const shuffle_algorithms[] = {"py1e", "py1s", "naive", "py1br", "py2s", NULL};
static const char *const transports[] = {"none", "shared_memory", NULL};
static const char *const parquet_writers[] = {"s3dlio", "pyarrow", NULL};
static const char *const parquet_requests[] = {
	"derive", "dlio", "s3dlio", "pyarrow", "pyarrow_pre_buffer", NULL};
static const char *const parquet_columns[] = {"all", "marked", NULL};
static const char *const pythons[] = {"py311", "py314", NULL};
static const char *const numpys[] = {"np124", "np23", NULL};
static const char *const checkpoint_types[] = {"rank_zero", "all_ranks", NULL};
static const char *const checkpoint_modes[] = {"default", "subset", NULL};
static const char *const restores[] = {"broadcast", "all", NULL};
static const char *const torches[] = {"torch1", "torch2", NULL};
static const char *const datatypes[] = {"fp16", "bf16", "fp32", "fp64", "int8", "uint8", NULL};
static const char *const profilers[] = {"none", "iostat", "darshan", "tensorboard", NULL};

/* A row: type, key, field, default, help, then what else it has. */
#define ROW(t, ctype, k, field, d, text, ...)                                                      \
	{.key = k,                                                                                 \
	 .type = t,                                                                                \
	 .offset = OPT_FIELD(struct workload, field, ctype),                                       \
	 .def = d,                                                                                 \
	 .help = text,                                                                             \
	 __VA_ARGS__},
#define BOOL(k, d, text, ...) ROW(OPT_BOOL, bool, #k, k, d, text, __VA_ARGS__)
#define I64(k, d, text, ...) ROW(OPT_I64, int64_t, #k, k, d, text, __VA_ARGS__)
#define F64(k, d, text, ...) ROW(OPT_F64, double, #k, k, d, text, __VA_ARGS__)
#define STR(k, d, text, ...) ROW(OPT_STR, char *, #k, k, d, text, __VA_ARGS__)
#define ENUM(k, d, values, text, ...)                                                              \
	ROW(OPT_ENUM, int, #k, k, d, text, .choices = values, __VA_ARGS__)
#define INTS(k, text, ...) ROW(OPT_I64_LIST, struct i64_list, #k, k, "[]", text, __VA_ARGS__)
#define STRS(k, d, text, ...) ROW(OPT_STR_LIST, struct str_list, #k, k, d, text, __VA_ARGS__)
#define TIME(k, text, ...)                                                                         \
	ROW(OPT_TIME, struct time_dist, #k, k, NULL, text, RANGE(0, WORKLOAD_SECONDS_MAX),         \
	    .unit = "s", __VA_ARGS__)
#define NODES(k, text, ...) ROW(OPT_NODES, struct node *, #k, k, NULL, text, __VA_ARGS__)
#define MAP(k, text, ...) ROW(OPT_MAP, struct node *, #k, k, NULL, text, __VA_ARGS__)

#define RANGE(lo, hi) .min = (lo), .max = (hi)
#define COUNT(lo) RANGE(lo, WORKLOAD_COUNT_MAX)
#define BYTES(lo) RANGE(lo, WORKLOAD_BYTES_MAX), .unit = "bytes"
#define OURS .flags = OPT_STOKER
#define UNUSED .flags = OPT_UNUSED
#define LATER .flags = OPT_LATER

/* clang-format off */
const struct opt workload_rows[] = {
	ENUM(framework, "tensorflow", workload_framework_names,
	      "Framework whose input pipeline is emulated; it determines the default data loader.")
	ROW(OPT_STR, char *, "framework.costs", framework_costs, "none",
	    "What the framework's own code costs, spent as processor time where the framework "
	    "would spend it. none: nothing, so that only the storage limits. torch and tensorflow: "
	    "the newest built in, which are torch-2.15 and tensorflow-2.21; torch-1.13: that of an "
	    "older one. Else the path of a profile, which 'stoker calibrate' writes. compat.dlio "
	    "makes torch-1.13 the default with PyTorch: DLIO's published results are of its "
	    "time.", OURS)

	ENUM(storage.storage_type, "local_fs", storage_types,
	      "Kind of storage. parallel_fs is treated as local_fs: both are mounted file "
	      "systems. direct_fs, of MLPerf Storage v3, is the same as local_fs with "
	      "reader.odirect.")
	STR(storage.storage_root, "./",
	      "Folder that a relative dataset.data_folder is below; the bucket for s3 and "
	      "aistore.")
	MAP(storage.storage_options,
	      "Options of the library that reaches s3, aistore or direct_fs: storage_library, "
	      "uri_scheme, endpoint_url, region, credentials, prefetch_window, stagger_workers. A "
	      "mounted file system needs none of them.")
	STR(storage.storage_library, NULL,
	      "The same as storage.storage_options.storage_library.")
	BOOL(storage.s3_force_path_style, "false",
	      "Set by MLPerf Storage v3 for s3: how a bucket is addressed. A mounted file system "
	      "has no buckets.")
	STR(storage.store, "posix",
	      "Where the data is kept: a store, or shims and a store joined by +, such as "
	      "throttle+posix. The options of a store are the keys storage.NAME.*.", OURS)
	ENUM(storage.page_cache, "keep", workload_page_cache_names,
	      "How this machine's page cache is treated; no privileges are needed. keep: it is "
	      "left alone. cold: the dataset is evicted before the first epoch; cold_epochs: "
	      "before every epoch. drop_behind: before every epoch, and the shim drop_behind "
	      "is added to storage.store, so that each file is dropped from the cache as soon "
	      "as it has been read. What the cache holds is measured in any case.", OURS)
	I64(storage.page_cache_files, "1000",
	      "Files of each kind, evenly spread over the dataset, that are inspected before "
	      "and after each epoch to measure how much of the dataset is in the page cache; "
	      "0: none.",
	      COUNT(0), .unit = "files", OURS)

	F64(dataset.record_length_bytes, "65536",
	      "Size of a sample. A sample is a square of floor(sqrt(size)) elements per side "
	      "unless record_dims is set.", BYTES(1), .alias = "dataset.record_length")
	F64(dataset.record_length_bytes_stdev, "0",
	      "Standard deviation of the sample size from file to file.",
	      BYTES(0), .alias = "dataset.record_length_stdev")
	F64(dataset.record_length_bytes_resize, "0",
	      "Size of a sample in memory after its transformation; 0 keeps the size read.",
	      BYTES(0), .alias = "dataset.record_length_resize")
	F64(dataset.file_bytes, "0",
	      "Mean size that the files should have; 0: it follows from the size of a sample. The "
	      "size of a sample follows from it, without headers; images (png, jpeg) become as "
	      "large as that takes, or with record_length_bytes or record_dims, the size of the "
	      "decoded image, have only as much noise. Files come within 3 % of it.",
	      BYTES(0), OURS)
	ENUM(dataset.sizes, "computed", sizes,
	      "Where the sizes of files come from: computed from the keys above, or recorded, one "
	      "for each file, in dataset.recorded_file. Every format makes files of these sizes as "
	      "nearly as it can; npz, npy and others of plain bytes exactly.", OURS)
	STR(dataset.recorded_file, NULL,
	      "File of recorded sizes and orders that 'stoker explain LOG -o job.yaml' writes; a "
	      "relative path is looked for beside the workload's file first.", OURS)
	I64(dataset.num_files_train, "8", "Files to train on.", COUNT(0), .unit = "files")
	I64(dataset.num_files_eval, "0",
	      "Files to evaluate on; generated whenever more than 0.", COUNT(0), .unit = "files")
	I64(dataset.num_samples_per_file, "1",
	      "Samples in each file; in the one that has most, where dataset.num_samples_train "
	      "says how many all of them have.", COUNT(1), .unit = "samples")
	ENUM(dataset.names, "numbered", file_names,
	      "Which files the dataset has. numbered: those with the names of DLIO, or of the "
	      "format. listed: those that lie in dataset.data_folder and its subfolders, whoever "
	      "wrote them; how many samples each has is read from its own index. --data FOLDER "
	      "sets this and all counts for such a folder.", OURS)
	I64(dataset.num_samples_train, "0",
	      "With dataset.names listed: samples of all training files together, where files have "
	      "different numbers of them; 0: dataset.num_samples_per_file in each.",
	      COUNT(0), .unit = "samples", OURS)
	I64(dataset.num_samples_eval, "0", "The same of the evaluation files.",
	      COUNT(0), .unit = "samples", OURS)
	I64(dataset.generation_buffer_size, "2147483648",
	      "Write size of the indexed_binary generator.", BYTES(1), LATER)
	STR(dataset.data_folder, "./data/",
	      "Folder of the dataset, below storage.storage_root unless absolute.")
	I64(dataset.num_subfolders_train, "0",
	      "Subfolders over which training files are distributed in turn; 0 and 1 mean none.",
	      COUNT(0), .unit = "folders")
	I64(dataset.num_subfolders_eval, "0",
	      "Subfolders over which evaluation files are distributed in turn; 0 and 1 mean "
	      "none.",
	      COUNT(0), .unit = "folders")
	BOOL(dataset.enable_chunking, "false",
	      "Documented by DLIO but not used by it; hdf5 chunks are set by "
	      "dataset.hdf5.chunk_dims.", UNUSED)
	I64(dataset.chunk_size, "0",
	      "Documented by DLIO but not used by it; hdf5 chunks are set by "
	      "dataset.hdf5.chunk_dims.", BYTES(0), UNUSED)
	ENUM(dataset.compression, "none", compressions, "Compression of the files.")
	I64(dataset.compression_level, "4", "Level of gzip compression.", RANGE(0, 9))
	STR(dataset.file_prefix, "img", "First part of every file name.")
	STR(dataset.format, "tfrecord",
	      "File format and file name extension. DLIO's hdf5_opt is not supported yet.")
	BOOL(dataset.keep_files, "true", "Whether the dataset is kept after the run.")
	STR(dataset.record_element_type, "uint8", "NumPy name of the element type of a sample.")
	I64(dataset.record_element_bytes, "4",
	      "DLIO replaces it with the size of dataset.record_element_type, and so does this "
	      "program.", RANGE(1, 64), .unit = "bytes", UNUSED)
	INTS(dataset.record_dims,
	      "Shape of a sample; replaces the square of record_length_bytes.",
	      RANGE(1, WORKLOAD_COUNT_MAX), .unit = "elements")
	I64(dataset.hdf5.num_dset_per_record, "1",
	      "HDF5 datasets that a sample is spread over; must divide record_dims[0].",
	      RANGE(1, 65536), .alias = "dataset.num_dset_per_record")
	INTS(dataset.hdf5.chunk_dims,
	      "HDF5 chunk shape, with the sample axis first.",
	      RANGE(1, WORKLOAD_COUNT_MAX), .alias = "dataset.chunk_dims")
	INTS(dataset.hdf5.max_shape,
	      "HDF5 maximum shape without the sample axis.",
	      RANGE(1, WORKLOAD_COUNT_MAX), .alias = "dataset.max_shape")
	NODES(dataset.parquet.columns,
	      "Columns of Parquet files: a list of {name, dtype, size}. The dtype is a NumPy "
	      "integer or float, bool, string, binary or list (of float32); a size above 1 makes a "
	      "list. Absent: one column, data, a list of all elements of a sample.")
	I64(dataset.parquet.row_group_size, "1024", "Rows of a row group of Parquet files.",
	      RANGE(1, 1e12), .unit = "rows")
	I64(dataset.parquet.generation_batch_size, "0",
	      "Rows that DLIO's generator writes at a time; no row group spans two of these "
	      "batches. 0: dataset.parquet.row_group_size.", RANGE(0, 1e12), .unit = "rows")
	STR(dataset.parquet.partition_by, NULL,
	      "DLIO's generator makes folders of a column's values then, which its readers do not "
	      "find. Not supported.", LATER)
	STR(dataset.parquet.read_mode, NULL,
	      "Written in MLPerf Storage's workloads and read by nothing: row groups are read.",
	      UNUSED)
	BOOL(dataset.parquet.use_s3dlio_gen, "false",
	      "DLIO lets s3dlio write objects then, with float32 columns only. Here "
	      "dataset.parquet.writer says whose layout files have.", UNUSED)
	ENUM(dataset.parquet.writer, "s3dlio", parquet_writers,
	      "Whose layout Parquet files have: s3dlio (required fields, plain values) or pyarrow "
	      "(optional fields, dictionaries, statistics), whose row groups are of another size.",
	      OURS)
	I64(dataset.arrow.batch_rows, "100",
	      "Rows of a record batch of Arrow files: 100 is what Hugging Face's datasets makes of "
	      "images and bytes, 1000 what it makes of text and numbers. Fewer, where they would "
	      "be 2 GiB.",
	      RANGE(1, 1e9), OURS, .unit = "rows")
	BOOL(dataset.skip_listing, "false",
	      "Set by MLPerf Storage v3: names of files are computed instead of listed. They are "
	      "computed in any case, unless the dataset has no manifest and its names must show "
	      "how many files it has.")
	I64(dataset.listing_validation_interval, "0",
	      "Set by MLPerf Storage v3. Before a run, one in so many files of each kind is "
	      "checked to be there and to have the right size, at most 1,000,000; 0: up to 1,000 "
	      "files, evenly spread.",
	      COUNT(0), .unit = "files")
	I64(dataset.total_disk_bytes, "0",
	      "Set by MLPerf Storage v3: the size of the dataset by its own estimate. Results "
	      "keep it; nothing is derived from it.", BYTES(0))
	I64(dataset.seed, "0",
	      "Seed of the content of generated samples.", RANGE(0, WORKLOAD_INT_MAX), OURS)
	I64(dataset.verify_samples, "16",
	      "Samples of the dataset whose content is compared, before the run and outside of all "
	      "measured times, with what generating them gives; chosen by train.seed. Large files "
	      "are compared at random places over their whole length. The extents of files are "
	      "looked at, too. The page cache is left as it was. 0: none.",
	      RANGE(0, 100000), .unit = "samples", OURS)

	STR(reader.data_loader, NULL,
	      "Data loader to emulate; absent or none: that of the framework. DLIO's custom is not "
	      "supported: it names a Python class.")
	STR(reader.data_loader_classname, NULL,
	      "Python class of a custom data loader. This program runs no Python: naming one is "
	      "an error.", LATER)
	STR(reader.reader_classname, NULL,
	      "Python class of a custom reader. This program runs no Python: naming one is an "
	      "error.", LATER)
	ENUM(reader.data_loader_sampler, "derive", samplers,
	      "How a loader divides samples; derive: iterative for tensorflow, index for all "
	      "others.")
	ENUM(reader.multiprocessing_context, "fork", contexts,
	      "How PyTorch starts worker processes. Here workers are threads: with "
	      "framework.costs they take as long to begin.")
	I64(reader.read_threads, "1",
	      "Workers that read for each rank; 0: the rank itself reads. TensorFlow: the "
	      "number of files that are interleaved (num_parallel_reads), read by three times "
	      "that number of threads; 0: one file after another.",
	      RANGE(0, 65536), .unit = "threads")
	I64(reader.computation_threads, "1",
	      "TensorFlow: batches of TFRecord samples transformed in parallel "
	      "(num_parallel_calls of map); 0: in the requesting thread; -1: AUTOTUNE, the "
	      "number of processors, at most 16.",
	      RANGE(-1, 65536), .unit = "threads")
	I64(reader.batch_size, "1",
	      "Samples of a training step of one rank.", COUNT(1), .unit = "samples")
	I64(reader.batch_size_eval, "1",
	      "Samples of an evaluation step of one rank.", COUNT(1), .unit = "samples")
	I64(reader.prefetch_size, "2",
	      "Batches read ahead; PyTorch: by all workers together. TensorFlow: -1 is "
	      "AUTOTUNE, which starts at 1 and doubles whenever the rank finds no batch "
	      "ready. 0 is the same where batch is the last stage (TFRecord, "
	      "reader.computation_threads 0): tf.data then adds such a prefetch itself.",
	      RANGE(-1, 65536), .unit = "batches")
	ENUM(reader.file_shuffle, "off", shuffles,
	      "Whether and how the order of files changes. A YAML boolean false means off.")
	ENUM(reader.sample_shuffle, "off", shuffles,
	      "Whether and how the order of samples changes. A YAML boolean false means off.")
	I64(reader.shuffle_size, "1024",
	      "Records in the shuffle buffer of TensorFlow and DALI, and of a WebDataset worker.",
	      COUNT(0), .unit = "samples")
	ENUM(reader.read_type, "on_demand", read_types,
	      "on_demand opens a file for each of its samples; memory keeps it open.")
	ENUM(reader.file_access, "multi", file_accesses, "Read by DLIO but not used by it.", UNUSED)
	I64(reader.transfer_size, NULL,
	      "Read buffer of TFRecord files; absent: the library's default, 256 KiB; 0: no "
	      "buffer, each record is read by separate requests.", BYTES(0))
	BOOL(reader.dont_use_mmap, "false", "Whether DALI's own readers avoid mmap.")
	BOOL(reader.odirect, "false",
	      "Whether files are read with O_DIRECT, bypassing the page cache: in "
	      "storage.store, posix is replaced by direct, and the default of reader.access "
	      "becomes native, because such readers request whole samples. Every format "
	      "supports it.")
	TIME(reader.preprocess_time,
	      "Time that a worker waits after reading a sample, in place of its transformation.")
	F64(reader.preprocess_time_stdev, "0",
	      "Standard deviation of reader.preprocess_time.",
	      RANGE(0, WORKLOAD_SECONDS_MAX), .unit = "s")
	BOOL(reader.recorded_work, "false",
	      "Whether a worker waits for each sample as long as that of the recorded job computed "
	      "for it, decoding and all else beside its reads, as dataset.recorded_file has it. In "
	      "place of reader.preprocess_time and of the framework's costs in a worker; needs "
	      "reader.access recorded.", OURS)
	BOOL(reader.pin_memory, "true",
	      "Pinning of batches needs a real accelerator; it has no effect in DLIO without one, "
	      "nor here. reader.pin_thread emulates it.", UNUSED)
	INTS(reader.transformed_record_dims,
	      "Shape of a sample in memory after its transformation.",
	      RANGE(1, WORKLOAD_COUNT_MAX), .unit = "elements")
	STR(reader.transformed_record_element_type, "uint8",
	      "Element type of a sample in memory after its transformation.")
	ENUM(reader.access, "framework", read_accesses,
	      "framework issues the requests of the real library; native the fewest and largest "
	      "that deliver the same bytes; recorded those of a real job, in "
	      "dataset.recorded_file; object asks for whole objects of the store s3 ahead of the "
	      "batches and decodes nothing, as DLIO's readers of objects do with the client "
	      "storage.s3.client. The default becomes object with storage.storage_type s3 where a "
	      "library or client is named.", OURS)
	ENUM(reader.decode, "full", decodes,
	      "What is done with bytes read: full does the framework's checks and "
	      "decompression, verify compares each byte with what was generated, none does "
	      "not look at them.", OURS)
	I64(reader.queue_depth, "1",
	      "Requests that one worker keeps in flight, for several samples of a batch and for "
	      "1 MiB pieces of large ones; more than 1 needs reader.access native.",
	      RANGE(1, 1024), .unit = "requests", OURS)
	ENUM(reader.parquet_requests, "derive", parquet_requests,
	      "Whose requests reader.access framework makes for Parquet files: dlio reads row "
	      "groups with Python's file objects; s3dlio 8 of them at once; pyarrow column by "
	      "column; pyarrow_pre_buffer joins columns with gaps of up to 8 KiB into requests of "
	      "up to 32 MiB. derive: s3dlio with storage_library s3dlio, else dlio.", OURS)
	ENUM(reader.parquet_columns, "all", parquet_columns,
	      "Which columns of Parquet files are read: all, as DLIO does unless "
	      "storage.storage_options.columns names some; marked, those of "
	      "dataset.parquet.columns with read: true, which DLIO does not look at.", OURS)
	ENUM(reader.order, "stoker", orders,
	      "Order of samples: stoker shuffles over all ranks, each sample once an epoch; "
	      "dlio gives each rank the same ascending samples each epoch; distributed is "
	      "PyTorch's DistributedSampler; random its RandomSampler, for one rank; sharded "
	      "is the order of DALI's readers; recorded is that of a real job, in "
	      "dataset.recorded_file. The default becomes dlio with compat.dlio, and sharded with "
	      "native_dali.", OURS)
	BOOL(reader.drop_last, "false",
	      "Whether the distributed order leaves out samples to give all ranks the same number, "
	      "instead of repeating some. Short batches are dropped in any case.", OURS)
	BOOL(reader.stick_to_shard, "false",
	      "Whether a rank reads the same shard in every epoch, instead of the next one.", OURS)
	BOOL(reader.pad_last_batch, "false",
	      "Whether a shard that has one sample less than others repeats one.", OURS)
	BOOL(reader.read_ahead, "false",
	      "Whether native_dali's reader thread touches a mapped sample before it is needed.",
	      OURS)
	ENUM(reader.interleave, "reads", interleaves,
	      "How tf.data interleaves the TFRecord files of reader.read_threads: reads is "
	      "TFRecordDataset's num_parallel_reads; calls is interleave with num_parallel_calls; "
	      "one is interleave without it, in the requesting thread. AUTOTUNE of "
	      "num_parallel_reads, or of cycle_length, is calls with a third of the processors, "
	      "rounded up.", OURS)
	I64(reader.block_length, "1",
	      "Records that interleave takes from a file before it turns to the next; with "
	      "reader.interleave reads always 1.", RANGE(1, 4096), .unit = "records", OURS)
	I64(reader.file_shuffle_size, "100",
	    "Shards in the shuffle buffer of each WebDataset worker (shardshuffle), with "
	    "reader.file_shuffle.",
	    RANGE(1, WORKLOAD_COUNT_MAX), .unit = "files", OURS)
	I64(reader.shuffle_initial, "100",
	    "With how many of the reader.shuffle_size samples of its shuffle buffer a WebDataset "
	    "worker begins to deliver (initial); until the buffer is full it takes two for each.",
	    RANGE(1, WORKLOAD_COUNT_MAX), .unit = "samples", OURS)
	ENUM(reader.shuffle_algorithm, "py1e", shuffle_algorithms,
	      "How loader mds shuffles (shuffle_algo), with reader.sample_shuffle.", OURS)
	I64(reader.shuffle_block_size, "0",
	    "Over how many samples py1e spreads a shard, and how many py1br shuffles together, "
	    "each a quarter more or less (shuffle_block_size). 0: 4,000,000 divided by the "
	    "canonical nodes, but at least 262,144.",
	    RANGE(0, WORKLOAD_COUNT_MAX), .unit = "samples", OURS)
	I64(reader.canonical_nodes, "0",
	    "Parts of the dataset between which loader mds takes turns (num_canonical_nodes). 0: "
	    "reader.nodes, and 64 times as many with py1s and py2s.",
	    RANGE(0, 1e6), OURS)
	I64(reader.nodes, "1",
	    "Nodes over which loader mds divides the ranks: the first ranks are those of the first "
	    "node.", RANGE(1, 1e6), OURS)
	STR(reader.cache_folder, NULL,
	      "Folder on this host into which the loaders mds and litdata download whole shards "
	      "before they read samples of them, as their libraries do with a remote dataset; "
	      "what lies there from an earlier run is not downloaded again. Unset, shards are "
	      "read where they lie.", OURS)
	I64(reader.cache_limit, "0",
	      "How many bytes reader.cache_folder may hold. mds removes the shards used longest "
	      "ago to make room (cache_limit; 0: no limit). litdata removes chunks that were "
	      "read: of a larger dataset each, else once it is reached (max_cache_size; 0: 100 "
	      "GB).",
	      BYTES(0), OURS)
	I64(reader.predownload, "0",
	      "How many samples ahead of the one that it reads an mds worker has their shards "
	      "downloaded into reader.cache_folder (predownload). 0: 8 batches.",
	      RANGE(0, WORKLOAD_COUNT_MAX), .unit = "samples", OURS)
	I64(reader.max_pre_download, "2",
	      "How many chunks a litdata worker downloads into reader.cache_folder ahead of those "
	      "that it has read (max_pre_download).",
	      RANGE(1, 1e6), .unit = "chunks", OURS)
	ENUM(reader.transport, "none", transports,
	      "How PyTorch's workers hand batches over: shared_memory makes and fills a POSIX "
	      "shared memory object of the batch's size in the worker and maps it in the rank; "
	      "none hands over nothing.", OURS)
	BOOL(reader.pin_thread, "false",
	      "Whether one thread copies every batch into memory that it keeps locked, as "
	      "PyTorch's pin_memory does with an accelerator.", OURS)
	F64(reader.worker_start_time, "0",
	      "Time that starting a PyTorch worker takes the rank, one worker after another.",
	      RANGE(0, WORKLOAD_SECONDS_MAX), .unit = "s", OURS)
	F64(reader.worker_init_time, "0",
	      "Time that a new PyTorch worker takes before its first batch.",
	      RANGE(0, WORKLOAD_SECONDS_MAX), .unit = "s", OURS)
	F64(reader.worker_resume_time, "0",
	      "Time that a persistent PyTorch worker takes at the start of a later epoch.",
	      RANGE(0, WORKLOAD_SECONDS_MAX), .unit = "s", OURS)
	BOOL(reader.in_order, "true",
	      "Whether batches are delivered in the order in which they were requested, or as soon "
	      "as they are ready.", OURS)
	BOOL(reader.persistent_workers, "true", "Whether workers are kept between epochs.", OURS)
	I64(reader.buffer_size, "0",
	      "Buffer of Python's file objects; 0: the file system's preferred size.",
	      RANGE(0, 1073741824), .unit = "bytes", OURS)
	ENUM(reader.python, "py311", pythons,
	      "Python whose file buffering is emulated: up to 3.13 (py311), or 3.14 and later "
	      "(py314).", OURS)
	ENUM(reader.numpy, "np124", numpys,
	      "NumPy whose requests for npz files are emulated: up to 2.2 (np124), or 2.3 and "
	      "later (np23), which opens an archive's member once instead of twice.", OURS)

	I64(train.epochs, "1", "Epochs to train.", RANGE(1, 1000000), .unit = "epochs")
	I64(train.total_training_steps, "-1",
	      "Steps after which training ends; -1 for no limit.",
	      RANGE(-1, WORKLOAD_COUNT_MAX), .unit = "steps")
	BOOL(train.seed_change_epoch, "true",
	      "Whether the epoch is added to train.seed for its shuffle.")
	TIME(train.computation_time, "Duration of the computation of one step, emulated by "
	      "waiting.")
	F64(train.computation_time_stdev, "0",
	      "Standard deviation of train.computation_time.",
	      RANGE(0, WORKLOAD_SECONDS_MAX), .unit = "s")
	I64(train.seed, "123", "Seed of the shuffles.", RANGE(0, WORKLOAD_INT_MAX))

	TIME(evaluation.eval_time,
	      "Duration of the computation of one evaluation step, emulated by waiting.")
	F64(evaluation.eval_time_stdev, "0",
	      "Standard deviation of evaluation.eval_time.",
	      RANGE(0, WORKLOAD_SECONDS_MAX), .unit = "s")
	I64(evaluation.eval_after_epoch, "1",
	      "First epoch that is followed by an evaluation.", RANGE(1, 1000000), .unit = "epochs")
	I64(evaluation.epochs_between_evals, "1",
	      "Epochs from one evaluation to the next.", RANGE(1, 1000000), .unit = "epochs")

	STR(checkpoint.checkpoint_folder, "./checkpoints/", "Folder of the checkpoints.")
	I64(checkpoint.checkpoint_after_epoch, "1",
	      "First epoch that is followed by a checkpoint.",
	      RANGE(1, 1000000), .unit = "epochs")
	I64(checkpoint.epochs_between_checkpoints, "1",
	      "Epochs from one checkpoint to the next.", RANGE(1, 1000000), .unit = "epochs")
	I64(checkpoint.steps_between_checkpoints, "-1",
	      "Steps from one checkpoint to the next within an epoch; -1 writes after epochs "
	      "instead, 0 never.", RANGE(-1, WORKLOAD_COUNT_MAX), .unit = "steps")
	F64(checkpoint.seconds_between_checkpoints, "0",
	      "Interval between the starts of two checkpoints during training, counted across "
	      "epochs. A checkpoint is written after the first step that all ranks have ended "
	      "once it is due; the first is due one interval after training starts. The ends "
	      "of epochs then trigger none. 0: checkpoints are scheduled by epochs or steps.",
	      RANGE(0, WORKLOAD_SECONDS_MAX), .unit = "s", OURS)
	ENUM(checkpoint.type, "rank_zero", checkpoint_types,
	      "Which ranks write with ZeRO stage 0: rank_zero, those of the first copy of the "
	      "model; all_ranks, those of every copy. It does not apply to other stages; DLIO "
	      "does not use the key.")
	ENUM(checkpoint.mode, "default", checkpoint_modes,
	      "default writes the checkpoint of all ranks; subset the part of a larger job that "
	      "these ranks hold.")
	STR(checkpoint.checkpoint_mechanism_classname, NULL,
	      "Python class of a custom checkpoint writer. This program runs no Python.", LATER)
	BOOL(checkpoint.fsync, "false",
	      "Whether each checkpoint file is synced (fsync) within the measured time.")
	F64(checkpoint.time_between_checkpoints, "-1",
	      "Pause before each write and read when only checkpoints are run.",
	      RANGE(-1, WORKLOAD_SECONDS_MAX), .unit = "s")
	I64(checkpoint.num_checkpoints_write, "-1",
	      "Checkpoints to write when only checkpoints are run.",
	      RANGE(-1, 1000000), .unit = "checkpoints")
	I64(checkpoint.num_checkpoints_read, "-1",
	      "Checkpoints to read back when only checkpoints are run.",
	      RANGE(-1, 1000000), .unit = "checkpoints")
	BOOL(checkpoint.recovery_rank_shift, "false",
	      "Whether each rank reads back what the rank in the same position on the next host "
	      "wrote.")
	BOOL(checkpoint.rank_sync, "false",
	      "Whether the ranks wait for each other within the measured time.")
	BOOL(checkpoint.randomize_tensor, "true",
	      "Whether checkpoints hold random bytes or ones.")
	MAP(checkpoint.ksm,
	      "Merging of equal memory pages while checkpointing: madv_mergeable_id, "
	      "high_ram_trigger, low_ram_exit, await_time.", LATER)
	STR(checkpoint.format, "auto",
	      "Format of the files; auto: that of the framework, torch (torch.save) or "
	      "tensorflow. distcp is torch.distributed.checkpoint's.", OURS)
	ENUM(checkpoint.access, "framework", accesses,
	      "framework writes and reads with the requests of the format's own library, native "
	      "in blocks of checkpoint.block_bytes.", OURS)
	I64(checkpoint.block_bytes, "8388608",
	      "Size of a request when checkpoint.access is native.",
	      RANGE(4096, 1073741824), .unit = "bytes", OURS)
	BOOL(checkpoint.mmap, "false",
	      "Whether checkpoints are read through a mapping, as torch.load does with mmap=True.",
	      OURS)
	BOOL(checkpoint.verify, "false",
	      "Whether every byte read back is compared with what was written; requests are then "
	      "no larger than 2 MiB.", OURS)
	ENUM(checkpoint.restore, "broadcast", restores,
	      "Which ranks read what only the first copy of the model wrote: broadcast, that "
	      "copy's ranks; all, the ranks of every copy.", OURS)
	ENUM(checkpoint.torch, "torch1", torches,
	      "Release of PyTorch whose files are written: torch1 is 1.13, torch2 is 2.x, which "
	      "adds a few small records.", OURS)
	I64(checkpoint.seed, "0", "Seed of the content of checkpoints.",
	      RANGE(0, WORKLOAD_INT_MAX), OURS)
	I64(checkpoint.pool_bytes, "4194304",
	      "Bytes of content generated for each element type; tensors repeat them. Storage "
	      "that deduplicates needs more.",
	      RANGE(2097152, 1073741824), .unit = "bytes", OURS)
	I64(checkpoint.keep_last, "0",
	      "Checkpoints that are kept, older ones are removed; 0 keeps all.",
	      RANGE(0, 1000000), .unit = "checkpoints", OURS)
	BOOL(checkpoint.async, "false",
	      "Whether training continues while a checkpoint is written.", OURS)
	F64(checkpoint.stage_rate, "0",
	      "Rate at which a rank copies its part to memory before an asynchronous checkpoint "
	      "is written; the rank does not train during that time. 0: in no time. The copy is "
	      "emulated by waiting and takes no memory.",
	      RANGE(0, WORKLOAD_BYTES_MAX), .unit = "bytes/s", OURS)

	STR(model.name, "default", "Name of the model; part of the default output folder.")
	STR(model.type, NULL,
	      "Kind of model. transformer derives the checkpoint from the model.transformer keys.")
	I64(model.model_size_bytes, "10240",
	      "Size of the model's part of a checkpoint.",
	      BYTES(0), .alias = "model.model_size")
	INTS(model.optimization_groups,
	      "Elements of each group of the optimizer's state.",
	      RANGE(0, WORKLOAD_COUNT_MAX), .unit = "elements")
	I64(model.num_layers, "-1",
	      "Layers of the model; -1 when layers are not modelled.", RANGE(-1, 1000000))
	INTS(model.layer_parameters,
	      "Elements of each tensor of a layer.",
	      RANGE(0, WORKLOAD_COUNT_MAX), .unit = "elements")
	ENUM(model.model_datatype, "fp16", datatypes,
	      "Element type of the model in a checkpoint.")
	ENUM(model.optimizer_datatype, "fp32", datatypes,
	      "Element type of the optimizer's state in a checkpoint.")
	I64(model.parallelism.tensor, "1",
	      "Ranks that share each layer.", RANGE(1, 1000000), .unit = "ranks")
	I64(model.parallelism.pipeline, "1",
	      "Groups of ranks that each hold a part of the layers.",
	      RANGE(1, 1000000), .unit = "ranks")
	I64(model.parallelism.data, "-1",
	      "Copies of the model in the whole job that the subset is part of; -1 derives it.",
	      RANGE(-1, 1000000), .unit = "ranks")
	I64(model.parallelism.zero_stage, "0",
	      "Stage of ZeRO: which parts of the training state are divided among the copies.",
	      RANGE(0, 3))
	I64(model.transformer.vocab_size, "32000",
	      "Entries of the vocabulary.", RANGE(1, WORKLOAD_COUNT_MAX))
	I64(model.transformer.hidden_size, "2048",
	      "Width of the model.", RANGE(1, WORKLOAD_COUNT_MAX))
	I64(model.transformer.ffn_hidden_size, "8192",
	      "Width of the feed-forward layers.", RANGE(1, WORKLOAD_COUNT_MAX))
	I64(model.transformer.num_attention_heads, "32",
	      "Attention heads.", RANGE(1, 1000000))
	I64(model.transformer.num_kv_heads, "8",
	      "Heads of keys and values.", RANGE(1, 1000000))

	STR(output.folder, NULL, "Folder of the results; absent: hydra.run.dir.")
	STR(output.log_file, "dlio.log", "Name of the log in the folder of the results.")
	I64(output.metric.exclude_start_steps, "1",
	      "Steps at the start of an epoch that utilization and throughput leave out.",
	      COUNT(0), .unit = "steps")
	I64(output.metric.exclude_end_steps, "0",
	      "Steps at the end of an epoch that utilization and throughput leave out.",
	      COUNT(0), .unit = "steps")

	BOOL(workflow.generate_data, "false", "Whether the dataset is generated first.")
	BOOL(workflow.train, "true", "Whether to train.")
	BOOL(workflow.evaluation, "false",
	     "Whether training is interrupted by evaluations. With workflow.train off, evaluations "
	     "alone are made; if data is generated in the same run, only when this key is an "
	     "override.")
	BOOL(workflow.checkpoint, "false", "Whether checkpoints are written.")
	BOOL(workflow.profiling, "false", "Whether the profiler of profiling.profiler runs.")
	BOOL(workflow.debug, "false",
	     "Set in DLIO's workload for BERT; DLIO does not use it.", UNUSED)
	STR(workflow.query, NULL,
	      "Key that dlio_benchmark_query prints; a run does not use it.", UNUSED)

	ENUM(profiling.profiler, "iostat", profilers,
	      "Profiler of a run with workflow.profiling. iostat: iostat.json in the results, "
	      "from this program's own sampling once a second.")
	STRS(profiling.iostat_devices, NULL,
	     "Disks and partitions in iostat.json; if none is given, every disk.")

	F64(metric.au, "0.90",
	      "Accelerator utilization, as a fraction, that a run must reach.", RANGE(0, 1))

	BOOL(compat.dlio, "false",
	      "Whether results are computed exactly as DLIO computes them, and reader.order "
	      "defaults to dlio.", OURS)

	ENUM(comm.barrier, "sockets", barriers,
	      "What the barrier between processes that ends each step goes over: sockets of this "
	      "program; mpi, the launcher's MPI library (MPI_Ibarrier), worth trying with hundreds "
	      "of hosts and one process each (tried with up to 64 processes); or auto, what is "
	      "faster in a measurement before training, which is the sockets without a library. "
	      "Given on the command line, since the library is begun first.", OURS)
	F64(comm.silence, "0",
	      "Time in which nothing is heard of a process after which it counts as lost; 0: as "
	      "long as the start of all processes took, at least 6 and at most 60 s.",
	      RANGE(0, 240), .unit = "s", OURS)

	F64(run.watchdog, "300",
	      "Time without any progress after which a run or a generation is ended, and the "
	      "results are written without the storage; 0 for never.",
	      RANGE(0, WORKLOAD_SECONDS_MAX), .unit = "s", OURS)
	F64(run.sample_interval, "0.5",
	      "Interval at which the machine (device, processors, page cache) is sampled during "
	      "training, for the curves of the report; 0: never.",
	      RANGE(0, WORKLOAD_SECONDS_MAX), .unit = "s", OURS)
	BOOL(run.sample_gpus, "true",
	     "Whether the samples include the counters of this machine's NVIDIA GPUs, if the "
	     "library of their driver (libnvidia-ml.so.1) is installed.", OURS)
	STR(run.note, NULL,
	    "A remark that the result keeps; it changes nothing. 'stoker study run --small' marks "
	    "its runs with it.", OURS)
	ENUM(run.trace, "none", traces,
	      "Trace of what every worker and rank did: pfw writes DFTracer's files as DLIO "
	      "does, chrome one file for Perfetto and chrome://tracing. If absent, "
	      "DFTRACER_ENABLE=1 in the environment means pfw.", OURS)
	I64(run.trace_events, "65536",
	      "Spans, of 64 bytes, that are kept for each reader thread and for each rank's "
	      "checkpoints; later ones are dropped and counted.",
	      RANGE(16, 134217728), OURS)
	ENUM(run.measure, "all", measures,
	      "With none, the readers' requests are neither counted nor timed, the machine is "
	      "not sampled and the page cache is not inspected; only the steps are timed, and "
	      "results that need more are missing. Use it to see what measuring costs.", OURS)
	ENUM(run.probe, "auto", workload_probe_names,
	     "Whether the storage is probed after training, outside every measured time: short "
	     "sweeps of 1, 2, 4, ... readers over the same files, beyond what the run used, tell "
	     "what more or fewer readers would do where the run itself cannot. With auto, only "
	     "where the run itself cannot, in one process, after at least 1 s of training, for "
	     "2 s at most and not longer than training; not in the runs of a study or a search.",
	     OURS)
	F64(run.probe_time, "5",
	     "Time of all sweeps of run.probe together; evicting files between them takes its "
	     "own. With run.probe=auto, 2 s of it at most.",
	     RANGE(0.1, WORKLOAD_SECONDS_MAX), .unit = "s", OURS)
	I64(run.stack_bytes, "131072",
	      "Stack of each rank and worker thread.",
	      RANGE(65536, 1073741824), .unit = "bytes", OURS)
};
/* clang-format on */

const size_t workload_row_count = sizeof(workload_rows) / sizeof(workload_rows[0]);

/* Spellings that older DLIO versions used, or that its documentation has, besides the rows' own
 * aliases. */
const struct workload_alias workload_aliases[] = {
	{"checkpoint.model_size", "model.model_size_bytes"},
	{"checkpoint.model_size_bytes", "model.model_size_bytes"},
	{"checkpoint.model_datatype", "model.model_datatype"},
	{"checkpoint.optimizer_datatype", "model.optimizer_datatype"},
	{"checkpoint.optimization_groups", "model.optimization_groups"},
	{"checkpoint.num_layers", "model.num_layers"},
	{"checkpoint.layer_parameters", "model.layer_parameters"},
	{NULL, NULL},
};
