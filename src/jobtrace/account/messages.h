#pragma once
/* Messages over the pipes between a trainer and its workers: Python's connections, which send four
 * bytes of length and then the message. Index pipes bring a batch's indices to a worker, result
 * pipes its batches to the trainer. */
#include "jobtrace/account/account.h"

struct message {
	uint32_t pipe;           /* its file */
	uint32_t thread, writer; /* that read and wrote it; JOB_NONE */
	int64_t ready_ns;        /* its first bytes were written; JOB_UNKNOWN */
	int64_t asked_ns;        /* the reader began to wait for it, or to read it */
	int64_t begin_ns;        /* it was there and is being read */
	int64_t taken_ns;        /* it and what it refers to (sockets, shared memory) was taken */
	uint64_t position;       /* in the stream of the pipe */
	bool waited;             /* asked_ns is the begin of a wait */
	bool fetched;            /* something that it refers to was taken */
};

struct messages {
	struct message *v; /* by pipe, then in their order */
	size_t n, room;
};

/* Pipes that hold anything but such messages have none. */
void messages_find(struct messages *m, const struct job *job);
void messages_release(struct messages *m);
/* Those of one pipe: the first, and how many. */
const struct message *messages_of(const struct messages *m, uint32_t pipe, size_t *n);
