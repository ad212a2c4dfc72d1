/* The hosts' ranks in a row, turned by a host. */
#include "run/recovery.h"

static uint32_t processes_on(const uint32_t *node, uint32_t processes, uint32_t which)
{
	uint32_t n = 0;

	for (uint32_t p = 0; p < processes; p++)
		n += node[p] == which;
	return n;
}

uint32_t recovery_source(const uint32_t *node, uint32_t processes, uint32_t each, uint32_t rank)
{
	uint32_t own = rank / each, at = 0, largest = 0, left = processes;

	for (uint32_t p = 0; p < processes; p++)
		at += node[p] < node[own] || (node[p] == node[own] && p < own);
	for (uint32_t host = 0; left > 0; host++) {
		uint32_t here = processes_on(node, processes, host);

		largest = here > largest ? here : largest;
		left -= here;
	}
	/* hosts have whole processes, so places within them stay as they are */
	at = (at + largest) % processes;
	for (uint32_t host = 0;; host++) {
		uint32_t here = processes_on(node, processes, host);

		if (at >= here) {
			at -= here;
			continue;
		}
		for (uint32_t p = 0; p < processes; p++)
			if (node[p] == host && at-- == 0)
				return p * each + rank % each;
	}
}
