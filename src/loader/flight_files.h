#pragma once
/* The files that a flight has open: those of samples in flight, and with read_type memory those
 * used last. */
#include "format/parts.h"
#include "loader/loader.h"

struct flight_file {
	struct blob *blob;
	unsigned users;
	uint64_t serial; /* of its last use */
	uint64_t bytes;  /* EXTENT_TO_END: not asked yet */
	struct file_spec spec;
};

struct flight_files {
	const struct loader_config *config;
	const struct io *io;
	uint64_t *number; /* of the file at each place; UINT64_MAX: none */
	struct flight_file *file;
	unsigned count, last; /* last: the place used last */
	uint64_t serial;
	char path[DATASET_PATH_MAX];
};

void flight_files_lay_out(struct carver *c, struct flight_files *f, const struct store *s,
			  unsigned count);
/* The file, opened unless it is. There is room: at most `count` have users. */
int flight_file_get(struct flight_files *f, uint64_t number, struct flight_file **out,
		    struct err *e);
/* One user less. Closes it when nobody uses it and nothing is to be kept open. */
int flight_file_put(struct flight_files *f, struct flight_file *file, struct err *e);
/* Its size, which is asked for once. */
int flight_file_bytes(struct flight_files *f, struct flight_file *file, uint64_t *out,
		      struct err *e);
/* Closes all; nobody uses any. */
int flight_files_close(struct flight_files *f, struct err *e);
