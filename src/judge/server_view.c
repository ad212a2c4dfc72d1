#include "judge/server_view.h"

#include <math.h>

const char *servers_why(enum server_again why)
{
	static const char *const names[SERVER_AGAINS] = {
		[SERVER_CLOSED] = "connections that the server had closed",
		[SERVER_LOST] = "lost connections",
		[SERVER_CONNECT] = "connections that could not be opened",
		[SERVER_TIME] = "time limits",
		[SERVER_BUSY] = "503 and 429",
		[SERVER_ERROR] = "500, 502 and 504",
		[SERVER_MOVED] = "redirects",
		[SERVER_CLOCK] = "the server's clock",
		[SERVER_EXPIRED] = "credentials that had expired",
	};

	return why < SERVER_AGAINS ? names[why] : "";
}

bool servers_view_of(const struct result *r, struct servers_view *out)
{
	/* those before which there is a pause */
	static const enum server_again waits[] = {SERVER_LOST, SERVER_CONNECT, SERVER_TIME,
						  SERVER_BUSY, SERVER_ERROR};
	uint64_t all = 0, most = 0;

	*out = (struct servers_view){
		.timed = r->trained || r->only_evaluated, .again_share = NAN, .why = SERVER_AGAINS};
	out->n = servers_sum(&r->servers, out->timed);
	out->tries = (double)server_tries(&out->n);
	if (!(out->tries > 0))
		return false;
	if (out->timed)
		out->again_share = result_again_share(r);
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		uint64_t n = out->n.again[waits[i]];

		all += n;
		if (n > most) {
			most = n;
			out->why = waits[i];
		}
	}
	if (most == 0 && out->n.again[SERVER_MOVED]) {
		all = out->n.again[SERVER_MOVED];
		out->why = SERVER_MOVED;
	}
	out->again = (double)all;
	out->busy = 2 * out->n.again[SERVER_BUSY] > all;
	return true;
}
