#pragma once
/* How the accelerators of a point are spread over hosts. All processes of a run have the same
 * number of ranks. */
#include <stddef.h>
#include <stdint.h>

#include "conf/opt.h"

/* A host, and how many processes it has where every process of the list has the same ranks. */
struct spread_host {
	const char *name;
	uint32_t processes;
};

uint32_t spread_processes(const struct spread_host *host, size_t hosts);
/* Appends "--hosts", LIST, "-n", N for the run. As the list says where the processes can have as
 * many each; else the hosts get what is left in turn, and every process the most that divides what
 * each host has. Hosts without an accelerator are left out. */
void spread_put(const struct spread_host *host, size_t hosts, uint32_t accelerators,
		struct str_list *command);
