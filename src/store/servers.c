#include "store/servers.h"

#include <inttypes.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
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

uint64_t server_requests(const struct server_counts *n)
{
	return sum(n->requests, SERVER_REQUESTS);
}

uint64_t server_repetitions(const struct server_counts *n)
{
	return sum(n->again, SERVER_AGAINS);
}

uint64_t server_tries(const struct server_counts *n)
{
	return server_requests(n) + server_repetitions(n);
}

void store_servers_log(const struct store *s)
{
	struct store_server v;

	for (unsigned i = 0; store_server(s, i, &v); i++) {
		char received[32], sent[32];
		struct buf b = {0};
		const struct server_counts *n = &v.n;
		double answers = n->answers ? (double)n->answers : 1;

		put_kinds(&b, n->requests, v.kind_names, SERVER_REQUESTS);
		log_info("%s: %s; %s received and %s sent by %" PRIu64
			 " connections; first byte after %.3f ms, last after %.3f ms (means)",
			 v.address, b.data ? b.data : "no requests",
			 str_bytes((double)n->wire_received, received, sizeof(received)),
			 str_bytes((double)n->wire_sent, sent, sizeof(sent)), n->connections,
			 (double)n->first_ns / answers / 1e6, (double)n->last_ns / answers / 1e6);
		buf_reset(&b);
		put_kinds(&b, n->again, v.again_names, SERVER_AGAINS);
		if (server_repetitions(n) > n->again[SERVER_CLOSED])
			log_warning("%s: %" PRIu64 " requests; retries: %s; failed "
				    "attempts and pauses took %.3f s in all threads",
				    v.address, server_requests(n), b.data,
				    clock_seconds((int64_t)n->again_ns));
		if (n->failed)
			log_warning("%s: %" PRIu64 " of %" PRIu64 " requests failed", v.address,
				    n->failed, server_requests(n));
		if (v.skew_s)
			log_warning("%s: its clock is %" PRId64
				    " s %s of this machine's: requests are signed with its time",
				    v.address, v.skew_s < 0 ? -v.skew_s : v.skew_s,
				    v.skew_s < 0 ? "behind that" : "ahead");
		buf_release(&b);
	}
}

/* ---- of a run ---- */

enum { MORE = 8, NUMBERS = sizeof(struct server_counts) / sizeof(uint64_t) };
_Static_assert(NUMBERS * sizeof(uint64_t) == sizeof(struct server_counts), "nothing but numbers");

static void counts_add(struct server_counts *to, const struct server_counts *from)
{
	uint64_t *a = (uint64_t *)to;
	const uint64_t *b = (const uint64_t *)from;

	for (size_t i = 0; i < NUMBERS; i++)
		a[i] += b[i];
}

static void counts_sub(struct server_counts *to, const struct server_counts *from)
{
	uint64_t *a = (uint64_t *)to;
	const uint64_t *b = (const uint64_t *)from;

	for (size_t i = 0; i < NUMBERS; i++)
		a[i] -= b[i] < a[i] ? b[i] : a[i];
}

static int more_room(struct servers *l, uint32_t room, struct err *e)
{
	struct server_use *use;

	if (room <= l->room)
		return 0;
	use = try_calloc(room, sizeof(*use), "counts of servers", e);
	if (!use)
		return e->code;
	if (l->n)
		memcpy(use, l->use, l->n * sizeof(*use));
	free(l->use);
	l->use = use;
	l->room = room;
	return 0;
}

int servers_init(struct servers *l, const struct store *s, struct err *e)
{
	struct store_server v;
	uint32_t n = 0;

	while (store_server(s, n, &v))
		n++;
	return n ? more_room(l, n + MORE, e) : 0;
}

void servers_release(struct servers *l)
{
	free(l->use);
	*l = (struct servers){0};
}

/* Entry number `i`, of server number `i`; NULL: there is no room. A store never takes one back. */
static struct server_use *use_of(struct servers *l, const struct store_server *v, unsigned i)
{
	struct server_use *u;

	if (i >= l->room)
		return NULL;
	u = &l->use[i];
	if (i < l->n)
		return u;
	*u = (struct server_use){.tls = v->tls, .given = v->given};
	snprintf(u->address, sizeof(u->address), "%s", v->address);
	l->n = i + 1;
	return u;
}

void servers_begin(struct servers *l, const struct store *s)
{
	struct store_server v;
	struct server_use *u;

	for (unsigned i = 0; store_server(s, i, &v) && (u = use_of(l, &v, i)); i++)
		u->mark = v.n;
}

void servers_end(struct servers *l, const struct store *s)
{
	struct store_server v;
	struct server_use *u;

	for (unsigned i = 0; store_server(s, i, &v) && (u = use_of(l, &v, i)); i++) {
		struct server_counts now = v.n;

		counts_sub(&now, &u->mark);
		counts_add(&u->timed, &now);
	}
}

void servers_count(struct servers *l, const struct store *s)
{
	struct store_server v;
	struct server_use *u;

	for (unsigned i = 0; store_server(s, i, &v) && (u = use_of(l, &v, i)); i++) {
		u->whole = v.n;
		u->skew_s = v.skew_s;
		u->first_max_ns = v.first_max_ns;
	}
}

int servers_add(struct servers *l, const struct server_use *one, struct err *e)
{
	struct server_use *u = l->use;
	uint32_t i = 0;
	int rc;

	while (i < l->n &&
	       (strcmp(l->use[i].address, one->address) != 0 || l->use[i].tls != one->tls))
		i++;
	if (i == l->n && i == SERVERS_MAX)
		return 0;
	if (i == l->n) {
		rc = more_room(l, i < l->room ? l->room : l->room + MORE, e);
		if (rc < 0)
			return rc;
		l->use[i] = *one;
		l->n++;
		return 0;
	}
	u = &l->use[i];
	u->given |= one->given;
	u->skew_s = u->skew_s ? u->skew_s : one->skew_s;
	u->first_max_ns = one->first_max_ns > u->first_max_ns ? one->first_max_ns : u->first_max_ns;
	counts_add(&u->whole, &one->whole);
	counts_add(&u->timed, &one->timed);
	return 0;
}

struct server_counts servers_sum(const struct servers *l, bool timed)
{
	struct server_counts all = {0};

	for (uint32_t i = 0; i < l->n; i++)
		counts_add(&all, timed ? &l->use[i].timed : &l->use[i].whole);
	return all;
}

/* ---- answers that wait for an acknowledgement ---- */

#define MS (NS_PER_S / 1000)
#define NEAR_US 10000 /* the round trip of a network on which 40 ms are no distance */

int server_waited(int fd, int64_t gap_ns)
{
	struct tcp_info info;
	socklen_t n = sizeof(info);

	/* the kernel's 40 ms are up to a tick of its clock shorter: 4 ms with most */
	if (gap_ns < 25 * MS || gap_ns >= 56 * MS)
		return 0;
	if (gap_ns < 35 * MS || gap_ns >= 46 * MS)
		return -1;
	/* with a kernel that does not know the shortest round trip, nobody knows the distance */
	if (fd < 0 || getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n) < 0 ||
	    n < offsetof(struct tcp_info, tcpi_min_rtt) + sizeof(info.tcpi_min_rtt))
		return -1;
	return info.tcpi_min_rtt < NEAR_US ? 1 : -1;
}
