#pragma once
/* The bytes of an archive in a file that is read piece by piece, as they are or decompressed:
 * Python's tarfile, mode "r|*", looks at the first piece and takes gzip for what it is. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "format/inflater.h"

#define TAR_PLAIN_BYTES 32768u

/* The file's next piece into *piece, which stays until the next call: its bytes, 0 at the end. */
typedef ssize_t tar_piece_fn(void *arg, const unsigned char **piece, struct err *e);

struct tar_source {
	tar_piece_fn *next;
	void *arg;
	bool looked, gzip;
	const unsigned char *piece;
	size_t pos, end;
	unsigned char *plain; /* TAR_PLAIN_BYTES, lent */
	size_t plain_pos, plain_end;
	struct inflater inflater;
};

/* `memory`: INFLATER_MEMORY, lent. */
void tar_source_begin(struct tar_source *s, tar_piece_fn *next, void *arg, unsigned char *plain,
		      unsigned char *memory);
/* tar_take_fn of a struct tar_source. A piece is asked for when all before it was taken. */
ssize_t tar_source_take(void *source, unsigned char *out, uint64_t n, struct err *e);
