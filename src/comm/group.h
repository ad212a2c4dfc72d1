#pragma once
/* What the collective calls are made of. Private to comm/. */
#include <stdbool.h>

#include "comm/comm.h"

struct comm_part {
	const void *p;
	size_t bytes;
};

struct comm_group {
	uint32_t locals, size;
	const struct stop_flag *stop;
	struct net *net; /* NULL: no other process */
	unsigned channel;
	_Atomic uint32_t generation;
	_Atomic uint32_t arrived;
	int64_t due_ns;         /* rank 0's, of the barrier under way; 0: never given one */
	bool due;               /* whether that had come at the last barrier */
	struct comm_part *slot; /* of the exchange under way, one a local rank */
	struct buf answer;      /* of the last one */
};

/* Makes the answer of all ranks' parts. Runs once, in process 0, with rank 0's `arg` or that of
 * another rank of its process: it must mean the same in all of them. */
typedef void comm_answer(void *arg, const struct comm_part *part, uint32_t ranks, struct buf *out);

/* Each rank gives n bytes; *out is the answer, valid until this rank's next call. Not for_all:
 * other processes than 0 get an empty one. */
int comm_exchange(struct comm *c, const void *mine, size_t n, comm_answer *fn, void *arg,
		  bool for_all, const struct buf **out);
