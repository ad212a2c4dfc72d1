/* Bytes of sockets become requests, and requests of objects the events of files. */
#include "trace/connections.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/saturate.h"
#include "base/str.h"
#include "base/vector.h"

#define PATH_MOST 8192

struct connection_state {
	bool open, waits; /* an exchange is under way; for its answer */
	bool chunked, closes, amazon;
	int64_t asked_body;          /* Content-Length of the request; -1 */
	int64_t sent_head, got_head; /* bytes of heads that are still to be counted off */
	struct job_exchange x;
	char *path; /* of the request under way, heap */
	bool s3;    /* something on the connection said so */
};

void connections_init(struct connections *c, struct job *job, bool events, struct err *e)
{
	*c = (struct connections){.job = job, .events = events, .e = e};
}

void connection_peer(const char *address, unsigned port, char *out, size_t size)
{
	unsigned char bytes[16];
	size_t n = strlen(address), digits = strspn(address, "0123456789abcdef");
	char text[INET6_ADDRSTRLEN];

	if (digits != n || (n != 8 && n != 32)) {
		snprintf(out, size, "%.200s:%u", address, port);
		return;
	}
	for (size_t i = 0; i < n / 2; i++) {
		char pair[3] = {address[2 * i], address[2 * i + 1], '\0'};

		bytes[i] = (unsigned char)strtoul(pair, NULL, 16);
	}
	if (!inet_ntop(n == 8 ? AF_INET : AF_INET6, bytes, text, sizeof(text)))
		text[0] = '\0';
	snprintf(out, size, n == 8 ? "%s:%u" : "[%s]:%u", text, port);
}

/* Digits of an address and its port. */
static bool is_address(const char *host)
{
	return host[0] == '[' || host[strspn(host, "0123456789.:")] == '\0';
}

const char *job_server_name(const struct job_connection *c)
{
	return c->host[0] && !is_address(c->host) ? c->host : c->peer;
}

uint32_t connection_made(struct connections *c, uint32_t process, const char *peer, bool local,
			 int64_t at_ns)
{
	struct job_connection v = {.peer = job_text(c->job, peer),
				   .host = job_text(c->job, ""),
				   .agent = job_text(c->job, ""),
				   .begin_ns = at_ns,
				   .end_ns = JOB_UNKNOWN,
				   .process = process,
				   .local = local};

	if (c->rc < 0)
		return JOB_NONE;
	if (c->states >= CONNECTIONS_MOST) {
		c->left_out = true;
		return JOB_NONE;
	}
	c->rc = job_add_connection(c->job, &v, c->e);
	if (c->rc < 0)
		return JOB_NONE;
	VECTOR_PUSH(c->state, c->states, c->room, {0});
	return (uint32_t)(c->states - 1);
}

static struct job_connection *connection(struct connections *c, uint32_t i)
{
	return i == JOB_NONE || i >= c->states || c->rc < 0 ? NULL : &c->job->connection[i];
}

void connection_speaks(struct connections *c, uint32_t i, enum job_speaks what)
{
	struct job_connection *v = connection(c, i);

	if (v && what != JOB_SPEAKS_UNKNOWN)
		v->speaks = what;
}

void connection_host(struct connections *c, uint32_t i, const char *host)
{
	struct job_connection *v = connection(c, i);

	if (v && *host)
		v->host = job_text(c->job, host);
}

void connection_agent(struct connections *c, uint32_t i, const char *agent)
{
	struct job_connection *v = connection(c, i);

	if (v && *agent)
		v->agent = job_text(c->job, agent);
}

/* ---- objects ---- */

static int hex(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* Without its %XX; those of NUL stay. */
static void put_decoded(struct buf *out, const char *path)
{
	for (; *path; path++) {
		int high = *path == '%' ? hex(path[1]) : -1, low = high >= 0 ? hex(path[2]) : -1;

		if (low >= 0 && high * 16 + low > 0) {
			buf_putc(out, (char)(high * 16 + low));
			path += 2;
		} else {
			buf_putc(out, *path);
		}
	}
}

/* Amazon's names of a bucket as a host: BUCKET.s3.REGION.amazonaws.com. Bytes of the bucket; 0. */
static size_t bucket_of_host(const char *host)
{
	const char *end = strstr(host, ".s3.");

	if (!end)
		end = strstr(host, ".s3-");
	return end && strstr(end, ".amazonaws.com") ? (size_t)(end - host) : 0;
}

/* The object of the exchange; JOB_NONE: a bucket, a question, or nothing that is known. */
static uint32_t object_of(struct connections *c, const struct connection_state *s)
{
	const struct job_connection *v = &c->job->connection[s->x.connection];
	const char *path = s->path ? s->path : "";
	struct buf name = {0};
	size_t bucket = bucket_of_host(v->host), known = c->job->files;
	uint32_t file = JOB_NONE;
	bool key;

	if (*path != '/' || s->x.cut || s->x.listing || s->x.about)
		return JOB_NONE;
	path++;
	if (s->s3) {
		const char *slash = strchr(path, '/');

		key = bucket ? *path : slash && slash[1];
		buf_puts(&name, "s3://");
		if (bucket) {
			buf_append(&name, v->host, bucket);
			buf_putc(&name, '/');
		}
	} else {
		key = *path;
		buf_printf(&name, "http://%s/", job_server_name(v));
	}
	put_decoded(&name, path);
	if (key && (!c->names_most || c->name_bytes <= c->names_most)) {
		file = job_file(c->job, name.data, JOB_FILE_OBJECT);
		if (c->job->files > known)
			c->name_bytes += name.len;
	} else if (key) {
		c->rc = err_set(c->e, -EFBIG,
				"the recording is damaged: its names have more than %llu bytes",
				(unsigned long long)c->names_most);
	}
	buf_release(&name);
	return file;
}

static void add_event(struct connections *c, struct job_event *v, enum job_event_kind kind)
{
	v->kind = (uint8_t)kind;
	if (c->events && c->rc >= 0)
		c->rc = job_add(c->job, v, c->e);
}

/* The exchange as what a program does with a file. */
static void add_events(struct connections *c, const struct job_exchange *x)
{
	bool get = x->method == JOB_GET, range = get && x->offset != JOB_UNKNOWN;
	int64_t end = x->last_ns == JOB_UNKNOWN ? x->begin_ns : x->last_ns;
	struct job_event v = job_event_of(JOB_OPEN, x->thread, x->begin_ns, x->begin_ns);
	uint32_t last = map_get(&c->last, x->thread);

	v.file = x->file;
	v.result = 0;
	if (x->method == JOB_HEAD) {
		v.end_ns = end;
		v.result = x->length == JOB_UNKNOWN ? 0 : x->length;
		add_event(c, &v, JOB_STAT);
		return;
	}
	if (x->method == JOB_DELETE) {
		v.end_ns = end;
		c->job->file[x->file].deleted = true;
		add_event(c, &v, JOB_UNLINK);
		return;
	}
	if (!get && x->method != JOB_PUT)
		return;
	map_put(&c->last, x->thread, x->file);
	v.flags = get ? O_RDONLY : O_WRONLY | O_CREAT;
	if (!range || last != x->file)
		add_event(c, &v, JOB_OPEN);
	v.flags = 0;
	v.end_ns = end;
	v.offset = get ? (range ? x->offset : 0) : x->part ? JOB_UNKNOWN : 0;
	if (v.offset < 0 && v.offset != JOB_UNKNOWN) /* the last bytes */
		v.offset = x->whole == JOB_UNKNOWN
				   ? JOB_UNKNOWN
				   : (x->whole + x->offset > 0 ? x->whole + x->offset : 0);
	v.result = get ? x->got : x->sent;
	v.asked = x->asked != JOB_UNKNOWN ? x->asked : v.result;
	add_event(c, &v, get ? JOB_READ : JOB_WRITE);
	v.begin_ns = end;
	v.asked = v.offset = JOB_UNKNOWN;
	v.result = 0;
	if (!range)
		add_event(c, &v, JOB_CLOSE);
}

/* ---- exchanges ---- */

static void end_exchange(struct connections *c, struct connection_state *s)
{
	struct job_exchange *x = &s->x;

	if (!s->open)
		return;
	s->open = false;
	if (c->rc >= 0)
		x->file = object_of(c, s);
	free(s->path);
	s->path = NULL;
	if (c->rc < 0)
		return;
	if (x->status / 100 == 2 && x->file != JOB_NONE) {
		if (x->method == JOB_GET && x->offset == JOB_UNKNOWN && x->complete)
			x->whole = x->got;
		if (x->method == JOB_HEAD && x->length != JOB_UNKNOWN)
			x->whole = x->length;
		if (x->whole > c->job->file[x->file].size)
			c->job->file[x->file].size = x->whole;
		add_events(c, x);
	}
	c->requests++;
	c->cut += x->cut;
	if (c->rc >= 0 && c->events)
		c->rc = job_add_exchange(c->job, x, c->e);
}

static enum job_method method_of(unsigned method)
{
	static const enum job_method of[HEARD_METHODS] = {
		[HEARD_GOES_ON] = JOB_OTHER_METHOD,
		[HEARD_GET] = JOB_GET,
		[HEARD_HEAD] = JOB_HEAD,
		[HEARD_PUT] = JOB_PUT,
		[HEARD_POST] = JOB_POST,
		[HEARD_DELETE] = JOB_DELETE,
		[HEARD_CONNECT] = JOB_OTHER_METHOD,
		[HEARD_OTHER] = JOB_OTHER_METHOD,
	};

	return method < HEARD_METHODS ? of[method] : JOB_OTHER_METHOD;
}

/* What a head, or a part of it, says of the request. */
static void take_request(struct connection_state *s, const struct heard *h)
{
	struct job_exchange *x = &s->x;

	if (h->first != -1 && !(h->flags & HEARD_RANGES)) {
		x->offset = h->first < 0 ? h->first + 1 : h->first;
		x->asked = h->first < 0   ? -1 - h->first
			   : h->last >= 0 ? h->last - h->first + 1
					  : JOB_UNKNOWN;
	}
	if (h->length >= 0)
		s->asked_body = h->length;
	s->amazon |= (h->flags & HEARD_AMAZON) != 0;
	s->s3 |= s->amazon;
	x->listing |= (h->flags & HEARD_LISTS) != 0;
	x->part |= (h->flags & HEARD_PART) != 0;
	x->about |= (h->flags & HEARD_ABOUT) != 0;
}

/* What follows a path that was cut. */
static void take_rest(struct connection_state *s, struct heard_text rest)
{
	size_t n = s->path ? strlen(s->path) : 0;
	char *path;

	if (!s->x.cut || !s->path || n + rest.n > PATH_MOST)
		return;
	path = xasprintf("%s%.*s", s->path, (int)rest.n, rest.p);
	free(s->path);
	s->path = path;
	s->x.cut = false;
}

void connection_request(struct connections *c, uint32_t i, uint32_t thread, const struct heard *h,
			int64_t at_ns)
{
	struct job_connection *v = connection(c, i);
	struct connection_state *s;

	if (!v)
		return;
	s = &c->state[i];
	if (h->method == HEARD_GOES_ON) {
		if (s->open && s->waits) {
			if (h->flags & HEARD_REST)
				take_rest(s, h->target);
			take_request(s, h);
			s->sent_head += (int64_t)h->bytes;
		}
		return;
	}
	/* bytes of a body may look like a request */
	if (s->open && s->waits && s->asked_body > s->x.sent && s->asked_body >= 0)
		return;
	end_exchange(c, s);
	s->open = s->waits = true;
	s->chunked = s->closes = s->amazon = false;
	s->asked_body = -1;
	s->sent_head = (int64_t)h->bytes;
	s->got_head = 0;
	s->x = (struct job_exchange){
		.begin_ns = at_ns,
		.first_ns = JOB_UNKNOWN,
		.last_ns = JOB_UNKNOWN,
		.offset = JOB_UNKNOWN,
		.asked = JOB_UNKNOWN,
		.length = JOB_UNKNOWN,
		.whole = JOB_UNKNOWN,
		.connection = i,
		.thread = thread,
		.file = JOB_NONE,
		.method = (uint8_t)method_of(h->method),
	};
	s->x.cut = h->flags & HEARD_CUT || h->target.n > PATH_MOST;
	s->path = xstrndup(h->target.p ? h->target.p : "",
			   h->target.n < PATH_MOST ? h->target.n : PATH_MOST);
	take_request(s, h);
	v->speaks = JOB_SPEAKS_HTTP;
	v->requests++;
}

/* Whether nothing of the answer is missing. */
static bool is_complete(const struct connection_state *s)
{
	const struct job_exchange *x = &s->x;

	if (s->waits || s->got_head > 0)
		return false;
	return x->method == JOB_HEAD || x->status == 204 || x->status == 304 ||
	       (x->length != JOB_UNKNOWN && x->got >= x->length);
}

void connection_answer(struct connections *c, uint32_t i, const struct heard *h, int64_t at_ns)
{
	struct connection_state *s;
	struct job_exchange *x;

	if (!connection(c, i))
		return;
	s = &c->state[i];
	x = &s->x;
	if (!s->open || (!s->waits && h->status != 0))
		return; /* of a request that was not seen, or bytes of a body */
	s->got_head += (int64_t)h->bytes;
	if (h->status / 100 == 1)
		return;
	if (h->status) {
		s->waits = false;
		x->status = (uint16_t)h->status;
		x->first_ns = at_ns;
		x->got = 0;
	}
	x->last_ns = at_ns;
	if (h->length >= 0)
		x->length = h->length;
	if (h->whole >= 0)
		x->whole = h->whole;
	if (h->first >= 0 && x->offset != JOB_UNKNOWN && x->offset < 0)
		x->offset = h->first;
	/* a server may give the whole instead of a range */
	if (x->status == 200 && x->offset != JOB_UNKNOWN)
		x->offset = x->asked = JOB_UNKNOWN;
	s->chunked |= (h->flags & HEARD_CHUNKED) != 0;
	s->closes |= (h->flags & HEARD_CLOSES) != 0;
	s->s3 |= (h->flags & HEARD_AMAZON) != 0;
}

void connection_moved(struct connections *c, uint32_t i, bool sent, int64_t bytes, int64_t at_ns)
{
	struct job_connection *v = connection(c, i);
	struct connection_state *s;
	int64_t *head, of_head;

	if (!v || bytes < 0)
		return;
	s = &c->state[i];
	*(sent ? &v->sent : &v->received) = i64_sum(sent ? v->sent : v->received, bytes);
	if (!s->open)
		return;
	head = sent ? &s->sent_head : &s->got_head;
	of_head = bytes < *head ? bytes : *head;
	*head -= of_head;
	if (sent) {
		s->x.sent = i64_sum(s->x.sent, bytes - of_head);
		return;
	}
	if (!s->waits) {
		s->x.got = i64_sum(s->x.got, bytes - of_head);
		if (bytes > 0 && at_ns > s->x.last_ns)
			s->x.last_ns = at_ns;
		s->x.complete = is_complete(s);
		/* what is behind it answers a request that was sent with this one */
		if (s->x.complete && s->x.length != JOB_UNKNOWN && s->x.got > s->x.length)
			s->x.got = s->x.method == JOB_HEAD ? 0 : s->x.length;
		if (s->x.complete || bytes == 0) {
			/* without a length, an answer ends with its connection */
			s->x.complete |= s->x.length == JOB_UNKNOWN && !s->chunked;
			end_exchange(c, s);
		}
	}
}

void connection_closed(struct connections *c, uint32_t i, int64_t at_ns)
{
	struct job_connection *v = connection(c, i);

	if (!v)
		return;
	v->end_ns = at_ns;
	end_exchange(c, &c->state[i]);
}

static int by_begin(const void *a, const void *b)
{
	const struct job_exchange *x = a, *y = b;

	return x->begin_ns != y->begin_ns ? (x->begin_ns < y->begin_ns ? -1 : 1)
	       : x->connection != y->connection
		       ? (x->connection < y->connection ? -1 : 1)
		       : (x->first_ns > y->first_ns) - (x->first_ns < y->first_ns);
}

int connections_finish(struct connections *c, uint64_t *requests)
{
	int rc;

	for (size_t i = 0; i < c->states; i++) {
		end_exchange(c, &c->state[i]);
		free(c->state[i].path);
	}
	if (c->left_out)
		job_note(c->job, "the job made more than %u connections: later ones are left out",
			 CONNECTIONS_MOST);
	if (c->cut && c->printed)
		job_note(c->job, "the log has only the beginnings of request lines: record with "
				 "`strace -s 400`");
	else if (c->cut)
		job_note(c->job,
			 "the paths of %llu requests were cut: which objects they are of is "
			 "not known",
			 (unsigned long long)c->cut);
	if (c->job->exchanges)
		qsort(c->job->exchange, c->job->exchanges, sizeof(*c->job->exchange), by_begin);
	if (c->states)
		c->job->sees |= JOB_SEES_SERVERS;
	free(c->state);
	map_release(&c->last);
	if (requests)
		*requests = c->requests;
	rc = c->rc;
	*c = (struct connections){0};
	return rc;
}
