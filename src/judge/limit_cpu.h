#pragma once
/* Whether the lack of processors held a run back: judge/limit.h asks. */
#include <stdbool.h>
#include <stddef.h>

#include "result/result.h"

/* Whether threads without a processor are what cost most, or cost so much that the verdict `client`
 * says that this machine was measured; then `cause` is the word for it (at least
 * 32 bytes) and `out` a sentence that begins with "limited by"; and the outlook is not known,
 * because it would be for a machine that is short of processors in this way. */
bool limit_cpu(const struct result *r, char *cause, struct outlook *outlook, char *out,
	       size_t size);
