#pragma once
/* How DALI's own readers get the bytes of one sample: a reader thread that opens, maps or reads,
 * one sample after another, and threads that copy and decode what it got.
 *
 * Mapped (the default), the reader thread opens a file, asks for its size, maps it and closes it;
 * NumPy's header is looked at there, and with reader.read_ahead every page is touched. The pages
 * come in when a copying thread copies the sample to its output. A tfrecord file stays mapped while
 * its records are read and until the last of them was copied.
 *
 * With reader.dont_use_mmap the reader thread reads the sample: npy a block for the header and then
 * the array, images the whole file, a tfrecord record from a file that stays open. Stores that
 * cannot map files need it. reader.access native is the same in one request a sample.
 *
 * A tfrecord record lies where the file's index (DALI's tfrecord2idx) says; its checksums are not
 * looked at. (Reference: NVIDIA DALI's operators/reader/loader.) */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "loader/sample_reader.h"
#include "store/mapped.h"

struct dali_source {
	const struct loader_config *config;
	struct reader_config settings; /* of decoding: native, from memory */
	enum dali_kind kind;
	bool maps, touches;  /* mapped; read_ahead */
	bool decodes, keeps; /* bytes are looked at; and so are kept when they were read */
	bool whole;          /* native: one request a sample */
	uint64_t room;       /* bytes of a sample, with what lies around it in the file */
};

/* A mapped tfrecord file and the samples that still need it. */
struct dali_file {
	struct store_map map;
	uint64_t number;
	_Atomic uint32_t users; /* and one more while it is mapped; 0: free */
};
#define DALI_FILE_LAST 2 /* users before the last one leaves */

/* One sample between the reader thread and its copy. */
struct dali_item {
	uint64_t sample, file;
	uint64_t begin, bytes; /* what is copied, in the file */
	uint64_t file_bytes;
	struct store_map map;     /* npy, images */
	struct dali_file *shared; /* tfrecord */
	unsigned char *kept;      /* room for what was read, or NULL */
	struct err err;
};

/* The reader thread's. */
struct dali_reader {
	const struct dali_source *source;
	struct worker_stat *stat;
	struct io io;
	struct span_ring *ring;
	struct blob *blob;
	unsigned char *buffer; /* header; and what is read and not kept */
	uint64_t buffer_bytes;
	bool open; /* a tfrecord file */
	uint64_t open_file;
	struct dali_file *current, *file; /* mapped tfrecord files */
	uint64_t files;
	bool indexed; /* the index files were read */
	/* for the watchdog */
	_Atomic uint64_t doing; /* sample + 1, 0: nothing */
	_Atomic int64_t since_ns;
	char path[DATASET_PATH_MAX];
};

/* A copying thread's. */
struct dali_copier {
	const struct dali_source *source;
	struct worker_stat *stat;
	uint32_t number;
	struct io io;
	struct span_ring *ring;
	unsigned char *buffer; /* the output */
	void *memory;          /* of the format's reader, which decodes from memory */
	size_t memory_bytes;
	struct held_store *held;
	struct io held_io;
	struct reader *decoder;
	_Atomic uint64_t doing;
	_Atomic int64_t since_ns;
};

/* ERR_USAGE when DALI has no such reader, or the store cannot do what it asks. */
int dali_source_init(struct dali_source *s, const struct loader_config *c, struct err *e);
/* Bytes of the reader thread's memory, of a copier's and of an item's kept bytes. 0 and `e` when
 * beyond any machine. `items`: samples on their way at once. */
uint64_t dali_reader_bytes(const struct dali_source *s, uint64_t items);
uint64_t dali_copier_bytes(const struct dali_source *s, struct err *e);
uint64_t dali_item_bytes(const struct dali_source *s);

int dali_reader_init(struct dali_reader *r, const struct dali_source *s, struct worker_stat *stat,
		     uint64_t items, struct err *e);
void dali_reader_release(struct dali_reader *r);
/* Reads all index files once, as building the pipeline does. Nothing but tfrecord has any. */
int dali_reader_index(struct dali_reader *r, struct err *e);
/* Gets a sample as far as the reader thread does; item->err says how it went. */
void dali_reader_get(struct dali_reader *r, uint64_t sample, struct dali_item *item);
/* Closes what is open. */
void dali_reader_end(struct dali_reader *r);

int dali_copier_init(struct dali_copier *c, const struct dali_source *s, uint32_t number,
		     struct worker_stat *stat, struct err *e);
void dali_copier_release(struct dali_copier *c);
/* Copies and decodes; *payload gets the sample's bytes. Adds to item->err when that fails. */
void dali_copier_take(struct dali_copier *c, struct dali_item *item, uint64_t *payload);

/* Frees what a sample holds. Any thread, any state. */
void dali_item_drop(struct dali_item *item);
