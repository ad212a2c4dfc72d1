#pragma once
/* Differences of the kernel's counters. */
#include <stdbool.h>
#include <stdint.h>

/* *a minus b, of an earlier moment. A counter that went back was reset in between (an interface, a
 * device or a mount that went and came): how far it got is not known, and *a is 0 then. */
static inline void counter_sub(uint64_t *a, uint64_t b, bool *known)
{
	*known = *known && *a >= b;
	*a = *a >= b ? *a - b : 0;
}

/* The same of counters that are -1 where they are not known. */
static inline int64_t counter_since(int64_t now, int64_t before)
{
	return now < 0 || before < 0 || now < before ? -1 : now - before;
}
