/* Broadcast, gathering and agreement, each one exchange. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/group.h"
#include "comm/net.h"

static void take_one(void *arg, const struct comm_part *part, uint32_t ranks, struct buf *out)
{
	uint32_t root = *(const uint32_t *)arg;

	if (root < ranks)
		buf_append(out, part[root].p, part[root].bytes);
}

int comm_broadcast(struct comm *c, uint32_t root, void *p, size_t n)
{
	const struct buf *out;
	int rc = comm_exchange(c, p, c->rank == root ? n : 0, take_one, &root, true, &out);

	if (rc == 0 && out->len != n)
		rc = ERR_DATA;
	if (rc == 0 && n)
		memcpy(p, out->data, n);
	return rc;
}

static void gather_all(void *arg, const struct comm_part *part, uint32_t ranks, struct buf *out)
{
	(void)arg;
	for (uint32_t k = 0; k < ranks; k++) {
		uint64_t n = part[k].bytes;

		buf_append(out, &n, sizeof(n));
		buf_append(out, part[k].p, part[k].bytes);
	}
}

int comm_gather(struct comm *c, const void *mine, size_t n, struct buf *part)
{
	const struct buf *out;
	size_t at = 0;
	int rc = comm_exchange(c, mine, n, gather_all, NULL, false, &out);

	for (uint32_t k = 0; rc == 0 && c->rank == 0 && k < c->size; k++) {
		uint64_t bytes;

		memcpy(&bytes, out->data + at, sizeof(bytes));
		at += sizeof(bytes);
		part[k] = (struct buf){0};
		buf_append(&part[k], out->data + at, bytes);
		at += bytes;
	}
	return rc;
}

struct opinion {
	int32_t rc;
	char host[NET_HOST_MAX];
	char text[ERR_TEXT_MAX];
};

static bool opinion_is_worse(const struct opinion *a, const struct opinion *b)
{
	if (b->rc == 0)
		return a->rc < 0;
	return b->rc == ERR_CANCELED && a->rc < 0 && a->rc != ERR_CANCELED;
}

static void worst_opinion(void *arg, const struct comm_part *part, uint32_t ranks, struct buf *out)
{
	struct opinion verdict = {0}, one;
	bool several_hosts = *(const bool *)arg;
	uint32_t failed = 0;
	struct err e;

	for (uint32_t k = 0; k < ranks; k++) {
		if (part[k].bytes != sizeof(one))
			continue;
		memcpy(&one, part[k].p, sizeof(one));
		failed += one.rc < 0;
		if (opinion_is_worse(&one, &verdict))
			verdict = one;
	}
	if (several_hosts && failed && failed < ranks && verdict.host[0] &&
	    verdict.rc != ERR_CANCELED) {
		e.code = verdict.rc;
		memcpy(e.text, verdict.text, sizeof(e.text));
		err_wrap(&e, "host '%s'", verdict.host);
		memcpy(verdict.text, e.text, sizeof(e.text));
	}
	buf_append(out, &verdict, sizeof(verdict));
}

int comm_agree(struct comm *c, int rc, struct err *e)
{
	struct net *net = c->group->net;
	struct opinion mine = {.rc = rc < 0 ? rc : 0};
	bool several_hosts = net && net_nodes(net) > 1;
	const struct buf *out;
	int got;

	if (c->size == 1)
		return rc < 0 ? rc : 0;
	if (net)
		memcpy(mine.host, net_process(net, net_process_number(net))->host,
		       sizeof(mine.host));
	if (rc < 0)
		memcpy(mine.text, e->text, sizeof(mine.text));
	got = comm_exchange(c, &mine, sizeof(mine), worst_opinion, &several_hosts, true, &out);
	if (got < 0) {
		/* what stopped it, unless this rank has a failure of its own to tell */
		if (rc < 0 && rc != ERR_CANCELED)
			return rc;
		err_set(e, got, "the run was stopped");
		if (net)
			got = net_cause(net, NULL, e) ? e->code : got;
		return got;
	}
	memcpy(&mine, out->data, sizeof(mine));
	if (mine.rc < 0) {
		e->code = mine.rc;
		memcpy(e->text, mine.text, sizeof(e->text));
	}
	return mine.rc;
}
