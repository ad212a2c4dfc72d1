#pragma once
/* One run of a point: the command, the child, its folder and what its result says. */
#include "base/str.h"
#include "capacity/capacity.h"

/* What a run is told beyond what the user said. */
struct point_order {
	uint32_t accelerators;
	unsigned repeat;
	uint64_t steps;              /* of a rank, all epochs; 0: as the workload says */
	uint64_t epochs;             /* 0: as the workload says */
	const struct str_list *keys; /* further overrides, in their order */
	double expected_s;           /* NaN */
	/* Called before the run unless it is there; or NULL. */
	int (*prepare)(void *arg, struct err *e);
	void *arg;
	double limit_s; /* after which a run is ended that does not end by itself */
};

/* Makes the run, or takes the one that a former search of the same settings left. It is complete
 * under its own name at the end, or is not there. *found: it was there. Fills `out`.
 *
 * ERR_CANCELED once the stop is set; -ENOMEM when this machine has too little memory (threads,
 * descriptors) for so many ranks; otherwise the sentence with which the run ended. Call from the
 * main thread. */
int point_run(const struct capacity *c, const struct point_order *order, struct capacity_run *out,
	      bool *found, struct err *e);
/* The same of any run; only its folder (heap) is told. Steps and epochs are as the order has them.
 */
int point_make(const struct capacity *c, const struct point_order *order, char **folder,
	       bool *found, struct err *e);
/* Generates data: the user's workload and overrides and then `keys`; what it prints goes to `log`.
 */
int point_generate(const struct capacity *c, const struct str_list *keys, const char *log,
		   const struct capacity_event *tick, double limit_s, struct err *e);
/* "++workload.KEY=VALUE"; as a text in quotes. */
void point_key(struct str_list *list, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void point_key_text(struct str_list *list, const char *key, const char *value);
