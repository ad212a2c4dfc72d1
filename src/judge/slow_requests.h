#pragma once
/* A few requests of one kind that take far longer than the others of it, while requests of other
 * kinds, or of other readers, are served: a tail, and no stall of the storage. */
#include "result/result.h"

/* Of training; needs r->judged.time. Tells a kind only where it is nearly all that is slow, and
 * where a storage that stood still as a whole would have met others, too. */
struct slow_requests slow_requests_find(const struct result *r);
