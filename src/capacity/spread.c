#include "capacity/spread.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"

uint32_t spread_processes(const struct spread_host *host, size_t hosts)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < hosts; i++)
		sum += host[i].processes;
	return sum;
}

static uint32_t divisor(uint32_t a, uint32_t b)
{
	while (b) {
		uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* What is left when every process has as many: one for each host, then one more for those with two
 * processes, ... */
static void deal(const struct spread_host *host, size_t hosts, uint32_t left, uint32_t *share)
{
	for (uint32_t turn = 1; left; turn++)
		for (size_t i = 0; i < hosts && left; i++)
			if (host[i].processes >= turn) {
				share[i]++;
				left--;
			}
}

/* As hosts_parse (cli/hosts.h) reads it. */
static void put_host(struct buf *list, const char *name, uint32_t processes)
{
	bool bare = processes > 1 && strchr(name, ':') && !strchr(name, ']');

	buf_printf(list, "%s%s%s%s", list->len ? "," : "", bare ? "[" : "", name, bare ? "]" : "");
	if (processes > 1)
		buf_printf(list, ":%u", processes);
}

void spread_put(const struct spread_host *host, size_t hosts, uint32_t accelerators,
		struct str_list *command)
{
	uint32_t all = spread_processes(host, hosts), each = all ? accelerators / all : 0,
		 common = 0;
	uint32_t *share = xcalloc(hosts, sizeof(*share));
	struct buf list = {0};

	assert(all > 0 && accelerators > 0);
	for (size_t i = 0; i < hosts; i++)
		share[i] = each * host[i].processes;
	deal(host, hosts, accelerators % all, share);
	if (accelerators % all == 0)
		common = each;
	for (size_t i = 0; accelerators % all && i < hosts; i++)
		common = divisor(common, share[i]);
	for (size_t i = 0; i < hosts; i++)
		if (share[i])
			put_host(&list, host[i].name, share[i] / common);
	str_list_add(command, xstrdup("--hosts"));
	str_list_add(command, buf_take(&list));
	str_list_add(command, xstrdup("-n"));
	str_list_add(command, xasprintf("%u", accelerators));
	free(share);
}
