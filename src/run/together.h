#pragma once
/* What the processes of one run do together outside the timed phases: agree, share, and pass a
 * process's part of the result on. All calls are collective, and do nothing when this process is
 * alone. Private to run/. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "comm/comm.h"
#include "result/result.h"
#include "store/store.h"

/* This process's place among those of the run. Constant. */
struct run_place {
	struct net *net;        /* NULL: this process is alone */
	struct comm *processes; /* with a net: this process among them */
	uint32_t ranks;         /* of all processes */
	uint32_t locals, first; /* of this one: how many, and the first one's number */
};

/* `ranks` is a multiple of the number of processes. */
void run_place_init(struct run_place *at, struct net *net, struct comm *processes, uint32_t ranks);
bool run_leads(const struct run_place *at); /* process 0 */
/* Whether this process reads its host's counters on behalf of all processes there. */
bool run_reads_host(const struct run_place *at);
/* Processes of this one's host; hosts of the run. */
uint32_t run_processes_here(const struct run_place *at);
uint32_t run_nodes(const struct run_place *at);

/* Whether all processes got this far; see comm_agree. */
int run_agree(const struct run_place *at, int rc, struct err *e);
/* Process 0's bytes to all. */
int run_share(const struct run_place *at, void *p, size_t n, struct err *e);
/* As run_agree, for what process 0 alone did: its outcome and its bytes become everybody's. */
int run_follow(const struct run_place *at, int rc, void *p, size_t n, struct err *e);
struct run_stop;
struct shared_look {
	const struct dataset *d;
	struct store *store;
	bool eval;
	/* storage that does not answer is left behind as in run/apart.h */
	struct run_stop *stop;
	double limit_s;
	bool *stuck;
};

/* Do all hosts see the dataset that process 0 sees? Compares the manifest and a sample of files;
 * a sentence on it is appended to `note`. */
int run_check_shared(const struct run_place *at, const struct shared_look *look, char *note,
		     size_t note_size, struct err *e);

/* This process's part of the result as bytes. */
void part_pack(const struct run_place *at, const struct result *r, struct buf *out);
/* Adds the part of process `p` to process 0's result, in which there is room for its ranks, with
 * times by process 0's clocks. ERR_DATA: it is incomplete. */
int part_unpack(const struct run_place *at, struct result *r, uint32_t p, const struct buf *in,
		struct err *e);
