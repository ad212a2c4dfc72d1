#pragma once
/* A flight's state, shared by its files: setup (memory, what a reader sees) and reading. */
#include "format/parts.h"
#include "loader/flight.h"
#include "loader/flight_files.h"
#include "store/async.h"

/* A sample in flight. */
struct place {
	uint64_t sample, index;
	struct flight_file *file;
	uint64_t from, end; /* what is requested: the extent, widened to what the store wants */
	uint64_t next;      /* of the next request */
	uint64_t want;      /* where the extent ends */
	uint64_t have;      /* where what was read ends */
	unsigned out;       /* requests in flight */
	bool loaded;        /* by an earlier sample of its file */
	int64_t begun_ns;
	unsigned char *buffer; /* holds from .. from + room; NULL with DECODE_NONE */
};

struct flight {
	const struct loader_config *config;
	const struct reader_config *settings;
	const struct io *io;
	struct store_queue *queue;
	struct flight_files files;
	struct file_marks loaded;
	uint64_t piece; /* of a request, at most */
	uint64_t room;  /* of a place's buffer */
	uint32_t align;
	bool broken;

	struct store_request *request; /* depth */
	unsigned *free_request;
	unsigned depth, free_requests;
	struct place *place, **free_place, **ready;
	unsigned places, free_places, ready_count;
	struct place *splitting; /* has parts that were not requested yet */

	const struct place *oldest; /* that the watchdog was told of, and since when */
	int64_t oldest_ns;

	unsigned char *buffers; /* of requests, or of places */
	uint64_t buffer_bytes;  /* of one */
	struct store_request **reaped;

	/* What the format's reader sees. */
	struct store view;
	struct io view_io;
	struct place *current;
	char path[DATASET_PATH_MAX];
	uint64_t memory_bytes;
};

/* The least multiple of `to`, a power of two, that is not below n. */
static inline uint64_t flight_round_up(uint64_t n, uint64_t to)
{
	return n > UINT64_MAX - to ? UINT64_MAX : (n + to - 1) & ~(to - 1);
}
