#pragma once
/* Independent pieces of work on all processors that this process may use. */
#include <stdint.h>

/* Calls work(arg, i) for each i below n, in any order, several at once, and returns when all have
 * returned. `most` at once; 0: as many as processors. The work may not lean on the order, and must
 * be safe beside itself; the caller takes part, so that it is done where no thread can be started.
 */
void at_once(uint32_t n, uint32_t most, void (*work)(void *arg, uint32_t i), void *arg);
