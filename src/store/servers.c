#include "store/servers.h"

#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/str.h"

bool store_server(const struct store *s, unsigned i, struct store_server *out)
{
	while (s->lower)
		s = s->lower;
	memset(out, 0, sizeof(*out));
	return s->ops->server && s->ops->server(s, i, out);
}

static void put_kinds(struct buf *out, const uint64_t *n, const char *const *names, unsigned kinds)
{
	const char *comma = "";

	for (unsigned i = 0; i < kinds; i++)
		if (n[i]) {
			buf_printf(out, "%s%" PRIu64 " %s", comma, n[i], names[i]);
			comma = ", ";
		}
}

static uint64_t sum(const uint64_t *n, unsigned kinds)
{
	uint64_t all = 0;

	for (unsigned i = 0; i < kinds; i++)
		all += n[i];
	return all;
}

void store_servers_log(const struct store *s)
{
	struct store_server v;

	for (unsigned i = 0; store_server(s, i, &v); i++) {
		char received[32], sent[32];
		struct buf b = {0};
		double answers = v.answers ? (double)v.answers : 1;

		put_kinds(&b, v.requests, v.kind_names, v.kinds);
		log_info("%s: %s; %s received and %s sent by %" PRIu64
			 " connections; first byte after %.3f ms, last after %.3f ms (means)",
			 v.address, b.data ? b.data : "no requests",
			 str_bytes((double)v.wire_received, received, sizeof(received)),
			 str_bytes((double)v.wire_sent, sent, sizeof(sent)), v.connections,
			 (double)v.first_ns / answers / 1e6, (double)v.last_ns / answers / 1e6);
		buf_reset(&b);
		put_kinds(&b, v.again, v.again_names, v.again_kinds);
		if (sum(v.again + 1, v.again_kinds - 1))
			log_warning("%s: %" PRIu64
				    " requests; sent again: %s; these tries and pauses took %.3f s "
				    "in all threads",
				    v.address, v.all, b.data, (double)v.again_ns / 1e9);
		if (v.failed)
			log_warning("%s: %" PRIu64 " of %" PRIu64 " requests failed", v.address,
				    v.failed, v.all);
		if (v.clumped > 10 && (double)v.clumped > 0.5 * answers)
			log_warning("%s: %" PRIu64 " of %" PRIu64
				    " answers began 38 to 46 ms after their requests: the server "
				    "lacks TCP_NODELAY (radosgw: tcp_nodelay=1 in rgw_frontends)",
				    v.address, v.clumped, v.answers);
		buf_release(&b);
	}
}
