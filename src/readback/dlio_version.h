#pragma once
/* Which version of DLIO wrote a result: its rules, keys and figures differ. */
#include <stdbool.h>

#include "conf/node.h"
#include "conf/opt.h"

enum dlio_version {
	DLIO_UNKNOWN, /* nothing that is left says it, or files of both are there */
	DLIO_2_0,     /* of MLPerf Storage v1.0: per_epoch_stats.json is of rank 0, keys are
		       * record_length, AU alone leaves out the first step */
	DLIO_NEWER,
};

/* By all that is left: what programs name and write, and where there is none of that, how keys are
 * spelled. `sections`: of the configuration as it was written, may be NULL. */
enum dlio_version dlio_version_of(const char *folder, bool checkpointed,
				  const struct node *sections, const struct str_list *overrides);
