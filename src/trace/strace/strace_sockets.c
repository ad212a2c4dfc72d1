/* Sockets in a log of strace: where they lead is in connect(2), or beside the descriptor (-yy);
 * requests and answers are in the data, of which strace prints 32 bytes unless -s says otherwise.
 * Of a head that is cut, what is missing is taken for the body. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "trace/strace/strace.h"

#define ADDRESS_MOST 128

/* The text between `before` and the next `end`; false: it is not there. */
static bool between(struct strace_text t, const char *before, char end, char *out, size_t size)
{
	const char *p = memmem(t.p, t.n, before, strlen(before)), *stop;

	if (!p)
		return false;
	p += strlen(before);
	stop = memchr(p, end, t.n - (size_t)(p - t.p));
	if (!stop || (size_t)(stop - p) >= size)
		return false;
	memcpy(out, p, (size_t)(stop - p));
	out[stop - p] = '\0';
	return true;
}

static void lead_to(struct strace_calls *s, const struct call *c, uint32_t file, const char *peer)
{
	bool local = strncmp(peer, "127.", 4) == 0 || strncmp(peer, "[::1]", 5) == 0;
	uint32_t i = connection_made(&s->servers, c->caller->process, peer, local, c->begin_ns);

	if (i != JOB_NONE)
		map_put(&s->server_of, file, i);
}

void strace_connected(struct strace_calls *s, const struct call *c, int64_t fd,
		      struct strace_text address)
{
	uint32_t file = call_file_of(&s->log, c->caller, fd);
	char host[ADDRESS_MOST], port[16], peer[2 * ADDRESS_MOST];
	bool six = false;

	if (file == JOB_NONE || (c->result < 0 && c->result != -EINPROGRESS) ||
	    !between(address, "htons(", ')', port, sizeof(port)))
		return;
	if (!between(address, "inet_addr(\"", '"', host, sizeof(host))) {
		six = true;
		if (!between(address, "inet_pton(AF_INET6, \"", '"', host, sizeof(host)))
			return;
	}
	snprintf(peer, sizeof(peer), six ? "[%s]:%s" : "%s:%s", host, port);
	lead_to(s, c, file, peer);
}

/* Of "TCP:[10.0.0.2:40000->10.0.0.1:9000]"; an IPv6 address is in brackets. */
static uint32_t by_name(struct strace_calls *s, const struct call *c, uint32_t file)
{
	const char *name = s->log.job->file[file].name, *arrow;
	char peer[ADDRESS_MOST];
	size_t n;

	if (strncmp(name, "TCP", 3) != 0 || !(arrow = strstr(name, "->")))
		return JOB_NONE;
	n = strlen(arrow + 2);
	if (n < 2 || n > sizeof(peer))
		return JOB_NONE;
	memcpy(peer, arrow + 2, n - 1);
	peer[n - 1] = '\0';
	lead_to(s, c, file, peer);
	return map_get(&s->server_of, file);
}

static uint32_t connection_of(struct strace_calls *s, const struct call *c, int64_t fd)
{
	uint32_t file = call_file_of(&s->log, c->caller, fd), i;

	if (file == JOB_NONE || s->log.job->file[file].kind != JOB_FILE_SOCKET)
		return JOB_NONE;
	i = map_get(&s->server_of, file);
	return i == JOB_NONE ? by_name(s, c, file) : i;
}

static void put_copy(struct buf *out, struct heard_text t)
{
	buf_append(out, t.p, t.n);
}

static void sent_head(struct strace_calls *s, const struct call *c, uint32_t i, struct heard *h)
{
	struct buf text = {0};

	if (h->says == HEARD_TLS || h->says == HEARD_SECOND)
		connection_speaks(&s->servers, i,
				  h->says == HEARD_TLS ? JOB_SPEAKS_TLS : JOB_SPEAKS_HTTP2);
	if (h->host.n) {
		put_copy(&text, h->host);
		connection_host(&s->servers, i, text.data);
	}
	if (h->agent.n) {
		buf_reset(&text);
		put_copy(&text, h->agent);
		connection_agent(&s->servers, i, text.data);
	}
	buf_release(&text);
	if (h->says == HEARD_REQUEST)
		connection_request(&s->servers, i, c->caller->thread, h, c->begin_ns);
}

void strace_socket_moved(struct strace_calls *s, const struct call *c, int64_t fd, bool sent,
			 struct strace_text data, struct strace_text flags)
{
	uint32_t i = connection_of(s, c, fd);
	struct strace_text string = data;
	struct heard h = {0};
	bool cut;

	if (i == JOB_NONE || c->result < 0 || strace_has(flags, "MSG_PEEK"))
		return;
	/* of several pieces of memory, the first has the begin of a head */
	if (data.n && *data.p != '"') {
		const char *p = memmem(data.p, data.n, "iov_base=", 9);

		string = p ? (struct strace_text){p + 9, data.n - (size_t)(p + 9 - data.p)} : data;
	}
	if (string.n && *string.p == '"') {
		const char *end = string.p + 1, *stop = string.p + string.n;

		while (end < stop && *end != '"')
			end += *end == '\\' && end + 1 < stop ? 2 : 1;
		/* what follows the string in a list is none of it */
		if (string.p != data.p && end < stop)
			string.n = (size_t)(end + 1 - string.p);
	}
	if (strace_string(string, &s->text, &cut) && s->text.len) {
		if (sent) {
			heard_sent(s->text.data, s->text.len, &h);
			sent_head(s, c, i, &h);
		} else {
			heard_received(s->text.data, s->text.len, &h);
			if (h.says == HEARD_ANSWER)
				connection_answer(&s->servers, i, &h, c->end_ns);
		}
	}
	connection_moved(&s->servers, i, sent, c->result, c->end_ns);
}

void strace_socket_closed(struct strace_calls *s, const struct call *c, int64_t fd)
{
	uint32_t file = call_file_of(&s->log, c->caller, fd), i;

	if (file == JOB_NONE || s->log.job->file[file].kind != JOB_FILE_SOCKET)
		return;
	i = map_get(&s->server_of, file);
	if (i != JOB_NONE)
		connection_closed(&s->servers, i, c->begin_ns);
}
