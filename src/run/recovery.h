#pragma once
/* Whose files a rank reads back when it takes the place of one on another host. Private to run/. */
#include <stdint.h>

/* Under checkpoint.recovery_rank_shift: the rank whose files rank `rank` reads, where process p is
 * on host node[p] (hosts numbered from 0 without a gap) and has `each` ranks, from p times that on.
 * Hosts are taken in their order, each with its ranks in theirs, and this list is turned by as many
 * as the largest host has: with equal hosts that is the rank at the same place on the next host,
 * wherever the launcher put the ranks. All files are read, each by one rank, and none by its own
 * host unless one host has more than half of the ranks. With one host it is the rank itself. */
uint32_t recovery_source(const uint32_t *node, uint32_t processes, uint32_t each, uint32_t rank);
