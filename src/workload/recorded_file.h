#pragma once
/* What was recorded of a real job's dataset: the sizes of its files, the order in which its samples
 * were read, and the requests that read them. A file beside the workload (dataset.recorded_file)
 * that `stoker explain -o job.yaml` writes, and that dataset.sizes, reader.order and reader.access
 * of `recorded` use.
 *
 * The format, all numbers little-endian:
 *
 *     16 bytes   "stoker recorded\n"
 *     u32        version: 1; 2 with requests; 3 with requests and work
 *     u32        CRC-32C of all that follows
 *     u32        ranks, 1 to RECORDED_RANKS_MAX
 *     u32        0
 *     for the files of training, then for those of evaluation:
 *       u64      files
 *       u64      samples of each file, at least 1; files x samples is less than 2^32
 *       u64      1: sizes follow; 0: they are not known
 *       u64      epochs whose order follows
 *       u64[]    size of each file in bytes, by number (if known)
 *       for each epoch, for each rank:
 *         u64    visits
 *         u32[]  the sample visited: number of the file x samples of each file + place in the file
 *       u64      from version 2 on: lists of requests that follow, 0 or files x (samples of each
 * file + 1): of each file those that follow its opening, then those of each sample for each list:
 *         u32    requests
 *         for each: u64 offset, u32 bytes
 *       u32[]    version 3: microseconds that the job's reader computed beside each list
 *
 * The order of a rank is that of its sampler: that in which a job without workers reads. A sample
 * can be visited several times in an epoch, or never. Files are numbered in the order of their
 * names, as `listdir` sorted gives them. */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define RECORDED_RANKS_MAX 65536u
/* A larger file is refused. Whoever has read one holds as many bytes, and 16 for each epoch of each
 * rank and each list of requests. */
#define RECORDED_BYTES_MAX (UINT64_C(4) << 30)

enum { RECORDED_TRAIN, RECORDED_EVAL, RECORDED_PARTS };

/* A run keeps a copy of the file beside its results, with which they are judged again anywhere; a
 * larger one is not copied. */
#define RECORDED_COPY "job.recorded"
#define RECORDED_COPY_MOST ((size_t)64 << 20)

struct recorded_visits { /* of a rank in an epoch */
	uint64_t n;
	const uint32_t *sample;
};

struct recorded_requests { /* read by recorded_request */
	uint32_t n;
	const unsigned char *at;
};

#define RECORDED_REQUEST_BYTES 12u

struct recorded_part {
	uint64_t files, samples_per_file;
	const uint64_t *bytes; /* of each file; NULL: not known */
	uint64_t epochs;
	const struct recorded_visits *visits; /* epochs x ranks; NULL: no epochs */
	/* Lists as in the file; NULL: not known. */
	const struct recorded_requests *requests;
	/* Of each list, microseconds: what the reader did beside its requests. NULL: not known.
	 * Only with requests, and of both parts that have them or of none. */
	const uint32_t *work;
};

struct recorded {
	uint32_t ranks;
	struct recorded_part part[RECORDED_PARTS];
	uint32_t crc; /* of a file that was read */
	void *memory; /* of one that was read: all arrays lie in it or are `lists` */
	void *lists[RECORDED_PARTS], *requests[RECORDED_PARTS];
	uint64_t memory_bytes;
};

/* Writes the file; nobody sees it before it is whole. ERR_USAGE where the format cannot hold it. */
int recorded_write(const char *path, const struct recorded *r, struct err *e);
/* Reads it; NULL and a sentence of what is wrong and where. Release with recorded_release. */
struct recorded *recorded_read(const char *path, struct err *e);
/* The same from `n` bytes of malloc, which it frees; `path` is for sentences. */
struct recorded *recorded_parse(void *bytes, uint64_t n, const char *path, struct err *e);
void recorded_release(struct recorded *r);

/* The requests of a file's opening (index 0) or of its sample index - 1. */
const struct recorded_requests *recorded_requests_of(const struct recorded_part *p, uint64_t file,
						     uint64_t index);
/* Nanoseconds that the reader computed for sample `index` of a file, beside its requests; 0 where
 * that is not known. */
int64_t recorded_work_ns(const struct recorded_part *p, uint64_t file, uint64_t index);
/* Request `i` of a list. */
void recorded_request(const struct recorded_requests *l, uint32_t i, uint64_t *offset,
		      uint32_t *bytes);
/* Writes one, RECORDED_REQUEST_BYTES long, as it lies in lists. */
void recorded_request_put(unsigned char *out, uint64_t offset, uint32_t bytes);

/* Visits that every epoch of a part has: those of the shortest, over all ranks together. 0: its
 * order is not known. */
uint64_t recorded_visits_least(const struct recorded *r, int part);
/* The most of any epoch: the room that recorded_sequence needs. */
uint64_t recorded_visits_most(const struct recorded *r, int part);
/* The visits of epoch `epoch` (from 1; beyond the last one it begins again with the first) as one
 * sequence in which the ranks take turns: as many ranks as were recorded have every ranks-th from
 * their own on, which is their own order; with another number the sequence is divided likewise.
 * Returns how many. */
uint64_t recorded_sequence(const struct recorded *r, int part, uint64_t epoch, uint32_t *out);
