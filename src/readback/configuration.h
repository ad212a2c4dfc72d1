#pragma once
/* The whole configurations of two runs compared: every key that either of them tells, with the
 * value that took effect, also the options of stores and keys that this version does not know. */
#include "base/map.h"
#include "readback/record.h"

struct configuration;

/* Of a whole record, with texts of its own: for configuration_keep. */
struct configuration *configuration_find(const struct run_record *r);
/* Its texts become those of `t`, which has to outlive it. Two that are compared have the same `t`.
 * For run_record.configuration; a kilobyte or two. */
void configuration_keep(struct configuration *c, struct texts *t);

struct key_difference {
	char *key, *x, *y; /* values as text, "not set" where a run lacks the key; heap */
};

struct key_differences {
	struct key_difference *v;
	size_t n, room;
	bool known;    /* at least one key could be compared */
	bool complete; /* both configurations are known in full */
};

/* Of two records whose configurations are kept. Release with key_differences_release in any case.
 */
void key_differences_find(struct key_differences *d, const struct run_record *a,
			  const struct run_record *b);
void key_differences_release(struct key_differences *d);

/* The value of a key of the workload or of a store in use, as text on the heap; NULL: not known. */
char *key_value(const struct run_record *r, const char *key);
