#pragma once
/* Tar archives: the header blocks of ustar, and what pax and GNU tar put in front of them, as a
 * writer needs them and as Python's tarfile takes them. Nothing here reads a file: the caller
 * brings the bytes, and all memory is in the structs.
 *
 * (Reference: IEEE Std 1003.1, pax, "ustar Interchange Format" and "pax Extended Header"; GNU tar's
 * manual, "Basic Tar Format"; Python's Lib/tarfile.py.) */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define TAR_BLOCK 512u
/* Archives are a whole number of these. */
#define TAR_RECORD 10240u
/* The largest size that a ustar header can say: 11 octal digits. */
#define TAR_SIZE_MAX ((1ull << 33) - 1)
/* Of a member's name, with the folders in front of it; longer ones are refused. */
#define TAR_NAME_MAX 4096u
/* Of an extended header or a GNU name; a larger one is refused. */
#define TAR_EXTRA_MAX 65536u

/* n up to whole blocks. n is at most 2^63. */
static inline uint64_t tar_padded(uint64_t n)
{
	return (n + TAR_BLOCK - 1) & ~(uint64_t)(TAR_BLOCK - 1);
}

/* The header of a regular file as WebDataset's writer leaves it (mode 0444, user and group
 * "bigdata"), but with the time 0. `name` has less than 100 bytes, `bytes` at most TAR_SIZE_MAX. */
void tar_put_header(unsigned char block[TAR_BLOCK], const char *name, uint64_t bytes);
/* Puts n other characters into the name of such a header, from place `at` of it on. */
void tar_change_name(unsigned char block[TAR_BLOCK], size_t at, const char *text, size_t n);

enum tar_kind {
	TAR_FILE,      /* a regular file */
	TAR_OTHER,     /* a folder, a link, a device: no data but what its header says */
	TAR_PAX,       /* data: records for the next member */
	TAR_PAX_ALL,   /* records for all members */
	TAR_LONG_NAME, /* data: the next member's name */
	TAR_LONG_LINK, /* the next member's target */
	TAR_END        /* a block of zeros */
};

struct tar_header {
	enum tar_kind kind;
	uint64_t bytes; /* of data, behind the header */
	char name[257]; /* prefix and name */
};

/* Takes one header block. ERR_DATA with a sentence for what is none: a wrong checksum, a size that
 * is no number or negative, a sparse file. */
int tar_get_header(const unsigned char block[TAR_BLOCK], struct tar_header *out, struct err *e);

/* A member: its header and what the extended headers in front of it say. */
struct tar_member {
	bool named, sized; /* by an extended header */
	bool is_file;
	uint64_t bytes;
	char name[TAR_NAME_MAX];
};

/* Before the headers of a member. */
void tar_member_begin(struct tar_member *m);
/* The data of an extended header (TAR_PAX, TAR_LONG_NAME) of this kind. */
int tar_member_extra(struct tar_member *m, enum tar_kind kind, const unsigned char *data, size_t n,
		     struct err *e);
/* The member's own header, which ends it. */
int tar_member_end(struct tar_member *m, const struct tar_header *h, struct err *e);

/* WebDataset's division of a name into key and extension at the first dot of what follows the last
 * slash. *key gets the length of the key, *extension what is behind the dot. false: the name has no
 * dot and belongs to no sample, as does one that begins with its dot, unless it lies in a folder
 * without a dot: "a/.b" belongs to the sample "a/". */
bool tar_sample_key(const char *name, size_t *key, const char **extension);
/* Names that WebDataset passes over: "__x__" and what is below such a folder. */
bool tar_is_meta(const char *name);
