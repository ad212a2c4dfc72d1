#pragma once
/* The metadata of an open HDF5 file: found, checked and asked for as the HDF5 library (1.10) does.
 *
 * The library reads metadata as entries, each once: a superblock, a header or a part of one, a node
 * of a tree, a page of an index. An entry whose length is not known is read with a guess first,
 * then the rest. Here the entries read last are kept as well. */
#include "format/hdf5/hdf5_shape.h"

#define HDF5_ENTRY_BYTES 24576u
/* Kept entries: of a symbol table or dense links the library reads each part once, too. */
#define HDF5_ENTRIES 8
#define HDF5_ENTRIES_MANY 16
#define HDF5_FILTERS_MAX 4

struct hdf5_entry {
	uint64_t serial, at; /* of which file, where; serial 0: none */
	uint64_t used;
	size_t have, checked; /* checked: the bytes whose checksum was found to fit */
	unsigned char *bytes; /* HDF5_ENTRY_BYTES */
};

/* Shared by all files of a reader. */
struct hdf5_cache {
	struct hdf5_entry entry[HDF5_ENTRIES_MANY];
	uint32_t entries; /* that have memory */
	uint64_t clock, serial;
};

enum hdf5_index { HDF5_CONTIGUOUS, HDF5_SINGLE, HDF5_IMPLICIT, HDF5_FIXED_ARRAY, HDF5_BTREE };

struct hdf5_dataset {
	bool known; /* its header was read */
	char name[HDF5_NAME_MAX], type[24];
	uint64_t header;         /* its address; HDF5_UNDEFINED: not found yet */
	struct hdf5_shape shape; /* what the header says; elem NULL: a type no workload has */
	uint32_t elem_bytes;
	enum hdf5_index index;
	uint64_t data;         /* the data, or the index */
	uint64_t single_bytes; /* HDF5_SINGLE, filtered */
	uint32_t single_mask;
	uint32_t filters; /* as applied when writing */
	enum hdf5_filter filter[HDF5_FILTERS_MAX];
};

struct hdf5_file {
	const struct io *io;
	struct blob *blob;
	struct hdf5_cache *cache;
	bool framework;
	uint64_t serial, used; /* serial 0: not open */
	uint64_t index;        /* file_index */
	uint64_t end;          /* as the superblock says */
	unsigned char *window; /* native: the beginning of the file, read at once */
	size_t window_bytes;   /* how much of it holds */
	uint32_t leaf_k, tree_k, chunk_k;
	uint64_t root, group_tree, group_heap; /* group_tree HDF5_UNDEFINED: links in the header */
	uint64_t link_heap, link_tree;         /* of dense links; HDF5_UNDEFINED: none */
	uint32_t datasets;
	struct hdf5_dataset *dataset; /* of `datasets` */
};

struct hdf5_chunk {
	uint64_t at, bytes; /* at HDF5_UNDEFINED: not there, all zero */
	uint32_t mask;      /* filters left out, a bit each */
};

/* Reads what opening a file reads. `f` has io, blob, cache, framework, window and datasets set;
 * file_bytes is what the store says, at
 * most INT64_MAX. */
int hdf5_file_open(struct hdf5_file *f, uint64_t file_bytes, struct err *e);
/* Reads what opening the dataset number `n` reads, unless that was done. */
int hdf5_dataset_open(struct hdf5_file *f, uint32_t n, struct err *e);
/* Finds the chunk at `origin` (elements). */
int hdf5_chunk_find(struct hdf5_file *f, const struct hdf5_dataset *d, const uint64_t *origin,
		    struct hdf5_chunk *out, struct err *e);

/* ---- entries ---- */

/* n bytes that are no entry. */
int hdf5_get_bytes(struct hdf5_file *f, uint64_t at, unsigned char *out, size_t n, const char *what,
		   struct err *e);
/* The entry at `at` with its first `guess` bytes, or as many as the file has. */
int hdf5_entry_get(struct hdf5_file *f, uint64_t at, size_t guess, const char *what,
		   struct hdf5_entry **out, struct err *e);
/* Makes it at least `bytes` long. */
int hdf5_entry_extend(struct hdf5_file *f, struct hdf5_entry *entry, uint64_t bytes,
		      const char *what, struct err *e);
/* ERR_DATA unless the entry begins with `mark` and ends at `bytes` with its checksum. */
int hdf5_entry_check(struct hdf5_entry *entry, const char *mark, size_t bytes, const char *what,
		     struct err *e);
/* The same with the checksum at sum_at, where it counts as four zeros. */
int hdf5_entry_check_at(struct hdf5_entry *entry, const char *mark, size_t bytes, size_t sum_at,
			const char *what, struct err *e);

/* ---- version 1 B-trees ---- */

#define HDF5_TREE_HEAD 24u

/* The node at `at`: `kind` 0 groups, 1 chunks; keys of key_bytes around *n addresses, at most 2 k.
 * `level` is the level it must have, or -1 for the root. */
int hdf5_tree_node(struct hdf5_file *f, uint64_t at, unsigned kind, size_t key_bytes, uint32_t k,
		   int level, struct hdf5_entry **out, uint32_t *n, struct err *e);
int hdf5_tree_bad_node(uint64_t at, struct err *e);

/* ---- headers ---- */

struct hdf5_messages {
	int (*each)(void *arg, unsigned type, unsigned flags, const unsigned char *p, size_t n,
		    uint64_t at, struct err *e);
	void *arg;
};

/* Calls `each` for every message of the object header at `at`. */
int hdf5_header_walk(struct hdf5_file *f, uint64_t at, const struct hdf5_messages *m,
		     struct err *e);

/* ---- links of the root group ---- */

struct hdf5_link {
	const char *name; /* no end: `length` bytes */
	size_t length;
	uint64_t header; /* HDF5_UNDEFINED: it leads to a name or another file */
};

/* Parses a link message of n bytes, which lies at `at`. */
int hdf5_link_parse(const unsigned char *p, size_t n, uint64_t at, struct hdf5_link *out,
		    struct err *e);
/* Looks the dataset's name up in the root group's symbol table or dense storage, unless its header
 * is known; sets that when the name is there. */
int hdf5_link_find(struct hdf5_file *f, struct hdf5_dataset *d, struct err *e);

/* ---- the reader of the format (hdf5_read.c) ---- */

/* Files that a reader keeps open at most. */
#define HDF5_KEPT_OPEN 16u
/* With compat.dlio: DLIO keeps all, and its workers are processes, of 1,024 files each. */
#define HDF5_KEPT_OPEN_DLIO 64u

/* struct format_ops' functions of the reader, by their names there. */
size_t hdf5_reader_bytes(const struct reader_config *c, const struct store *s);
int hdf5_reader_init(void *memory, const struct reader_config *c, const struct io *io,
		     struct reader **out, struct err *e);
int hdf5_read(struct reader *r, const char *path, const struct file_spec *f, uint64_t index,
	      struct sample *out, struct err *e);
int hdf5_reader_close(struct reader *r, struct err *e);
