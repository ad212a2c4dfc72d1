#pragma once
/* Times in which this process or a thread of it stood still, put where they belong: into the parts
 * of the waits, computations and barriers of its ranks, and into the facts of each epoch. Private
 * to run/. */
#include "metric/standstill.h"
#include "result/result.h"

/* Once no rank runs any more, before the result leaves the process. Brief ones in which a rank went
 * on are taken out of `s` first (standstill_sift). A thread that stood still is
 * the reason for waits of at least STANDSTILL_LEAST_NS at the same time, of any rank. */
void stops_apply(struct standstills *s, struct result *r);
