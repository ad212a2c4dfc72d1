#pragma once
/* The ledger of bytes: one line for each place between the samples and the storage where bytes of
 * training were counted, each compared with the one before it. What the lines mean and when a
 * difference counts as explained: docs/metrics.md. */
#include "base/buf.h"
#include "result/result.h"

enum ledger_key {
	LEDGER_WANTED,   /* sample data delivered from the store */
	LEDGER_ASKED,    /* of the store, by metadata and data requests */
	LEDGER_RETURNED, /* by these */
	LEDGER_CALLS,    /* by read calls of this program, as the kernel counts them (rchar) */
	LEDGER_CHARGED,  /* fetched for this program from below the page cache (read_bytes) */
	LEDGER_CLIENT,   /* given out by the client of a network file system */
	LEDGER_FETCHED,  /* fetched by it from its servers */
	LEDGER_DEVICE,   /* read from the whole devices under the dataset's file system */
	LEDGER_DISKS,    /* read from the disks that these are made of */
	LEDGER_NETWORK,  /* received by the network's interfaces */
	LEDGER_LINES
};

enum ledger_state { LEDGER_AGREES, LEDGER_EXPLAINED, LEDGER_FLAGGED };

struct ledger_line {
	bool known;
	double bytes;
	int against;             /* the line it is compared with; -1: none */
	enum ledger_state state; /* explained or flagged: they differ by more than 1 % */
	char why[200];           /* then; no full stop */
};

struct ledger {
	struct ledger_line line[LEDGER_LINES];
};

extern const char *const ledger_keys[LEDGER_LINES];
extern const char *const ledger_titles[LEDGER_LINES];

/* Of training, over all epochs that were begun. Pure. */
void ledger_of(const struct result *r, struct ledger *out);
/* The part of one epoch (from 0) in each line: of its training, or of its evaluation. NAN where it
 * is not known, or there was none; known lines of training sum up to those of ledger_of. */
void ledger_of_epoch(const struct result *r, uint32_t epoch, bool eval, double bytes[LEDGER_LINES]);
/* What the bytes of a line were counted at: "vda", "eth0", "nfs4"; "" where that needs no word. */
const char *ledger_place(const struct result *r, enum ledger_key key, char *out, size_t out_size);
/* The table of the text report, with `bold` and `plain` around its title; nothing when no line is
 * known. */
void ledger_text(const struct result *r, const char *bold, const char *plain, struct buf *out);
