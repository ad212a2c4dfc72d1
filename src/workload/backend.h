#pragma once
/* What is true of the backends: the plain data of each store, format, loader and checkpoint format,
 * by which the layers below them and above them are told apart without comparing a name.
 *
 * Each row of a table above this layer holds its facts as its first member, `is`; the build lists
 * them here too, so that rules across keys, help and documentation see every backend there is. A
 * backend remains one file and one line. */
#include <stddef.h>

#include "conf/opt.h"

enum {
	STORE_IS_SHIM = 1u << 0,       /* needs a lower store */
	STORE_IS_VOLATILE = 1u << 1,   /* contents end with the process */
	STORE_HAS_FILES = 1u << 2,     /* names are paths that other programs can open */
	STORE_KEEPS_NOTHING = 1u << 3, /* writes vanish; no name is ever there */
	STORE_IS_UNCACHED = 1u << 4,   /* reads leave nothing in the page cache */
};

struct store_facts {
	const char *name; /* as in storage.store; its options are in the map storage.NAME */
	const char *help; /* one sentence, without its full stop */
	unsigned flags;
	const struct opt *options; /* rows of the store's own keys, under "storage.<name>." */
	size_t option_count;
	size_t config_bytes; /* size of the struct the rows fill */
};

enum {
	FORMAT_NO_IO = 1u << 0, /* reading issues no request (synthetic) */
	/* One uint8 image of at most two dimensions is the whole file, and every sample of it. */
	FORMAT_IMAGE = 1u << 1,
	/* The framework's access needs a store whose blobs can be mapped (store/map.h) */
	FORMAT_MAPS = 1u << 2,
	/* A framework reads the records of a file only one after another. */
	FORMAT_STREAM = 1u << 3,
};

struct format_facts {
	const char *name; /* as in dataset.format */
	const char *help;
	const char *extension; /* file name extension without the dot */
	unsigned flags;
};

struct loader_facts {
	const char *name; /* as in reader.data_loader */
	const char *help;
};

struct checkpoint_facts {
	const char *name; /* as in checkpoint.format */
	const char *help;
};

/* NULL-terminated, written by the build in the order of its backend() lines. */
extern const struct store_facts *const store_facts_table[];
extern const struct format_facts *const format_facts_table[];
extern const struct loader_facts *const loader_facts_table[];
extern const struct checkpoint_facts *const checkpoint_facts_table[];

/* The facts of a name, or NULL. */
const struct store_facts *store_facts_find(const char *name);
const struct format_facts *format_facts_find(const char *name);
const struct loader_facts *loader_facts_find(const char *name);
const struct checkpoint_facts *checkpoint_facts_find(const char *name);
