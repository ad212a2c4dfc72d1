#include "trace/profile/job_servers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/saturate.h"
#include "base/say.h"
#include "base/str.h"
#include "base/vector.h"
#include "result/json_out.h"
#include "trace/connections.h"

#define TLS_LEAST 65536         /* bytes, either way */
#define OTHER_LEAST (4LL << 20) /* that came over a protocol that is not known, from elsewhere */
#define SERVERS_MOST 64         /* that are told apart; the rest is one for each protocol */
#define ANSWERED_MOST 3         /* in the answer */

/* The part of a host's name behind the bucket, where that is in it. */
static const char *without_bucket(const char *name)
{
	const char *s3 = strstr(name, ".s3.");

	if (!s3)
		s3 = strstr(name, ".s3-");
	return s3 && strstr(s3, ".amazonaws.com") ? s3 + 1 : name;
}

/* ---- what is counted ---- */

/* The GETs of one server. */
struct taken {
	const struct job_exchange **x;
	size_t n, room;
};

static const char other_servers[] = "other servers";

/* Of what is not told apart, this host's servers are kept from those elsewhere. */
static bool is_one_of(const struct job_server *v, const struct job_connection *c, const char *name)
{
	return v->speaks == c->speaks && strcmp(v->name, name) == 0 &&
	       (name != other_servers || v->local == c->local);
}

static struct job_server *server_of(struct job_servers *s, size_t *room,
				    const struct job_connection *c)
{
	const char *name = without_bucket(job_server_name(c));

	for (size_t i = 0; i < s->n; i++)
		if (is_one_of(&s->v[i], c, name))
			return &s->v[i];
	if (s->n >= SERVERS_MOST) {
		name = other_servers;
		for (size_t i = SERVERS_MOST; i < s->n; i++)
			if (is_one_of(&s->v[i], c, name))
				return &s->v[i];
	}
	VECTOR_PUSH(s->v, s->n, *room,
		    {.name = name,
		     .peer = c->peer,
		     .agent = c->agent,
		     .speaks = c->speaks,
		     .local = c->local,
		     .others = name == other_servers});
	return &s->v[s->n - 1];
}

/* What is worth a name comes first. */
enum rank { RANK_OBJECTS, RANK_HTTP, RANK_ENCRYPTED, RANK_UNKNOWN, RANKS };

static uint8_t *rank_connections(const struct job *job)
{
	static const uint8_t of[] = {
		[JOB_SPEAKS_UNKNOWN] = RANK_UNKNOWN,
		[JOB_SPEAKS_HTTP] = RANK_HTTP,
		[JOB_SPEAKS_TLS] = RANK_ENCRYPTED,
		[JOB_SPEAKS_HTTP2] = RANK_ENCRYPTED,
	};
	uint8_t *rank = xcalloc(job->connections + 1, sizeof(*rank));

	for (size_t i = 0; i < job->connections; i++)
		rank[i] = of[job->connection[i].speaks];
	for (size_t i = 0; i < job->exchanges; i++)
		if (job->exchange[i].file != JOB_NONE)
			rank[job->exchange[i].connection] = RANK_OBJECTS;
	return rank;
}

static int by_number(const void *a, const void *b)
{
	return ORDER(*(const int64_t *)a, *(const int64_t *)b);
}

/* The most spans [begin, end) that overlap; the arrays are sorted. */
static uint64_t most_at_once(int64_t *begin, int64_t *end, size_t n)
{
	uint64_t most = 0;

	if (n == 0)
		return 0;
	qsort(begin, n, sizeof(*begin), by_number);
	qsort(end, n, sizeof(*end), by_number);
	for (size_t i = 0, k = 0; i < n; i++) {
		while (k < n && end[k] <= begin[i])
			k++;
		if (i + 1 - k > most)
			most = i + 1 - k;
	}
	return most;
}

static double seconds_at(const int64_t *sorted, size_t n, double share)
{
	size_t i = (size_t)(share * (double)n);

	return n ? (double)sorted[i < n ? i : n - 1] / 1e9 : 0;
}

static void count_exchange(struct job_server *v, const struct job_exchange *x)
{
	if (x->listing)
		v->listings++;
	else if (x->method < JOB_METHODS)
		v->requests[x->method]++;
	v->unnamed += x->cut && x->method == JOB_GET;
	if (x->status == 429 || x->status == 500 || (x->status >= 502 && x->status <= 504))
		v->again++;
	else if (x->status >= 400)
		v->refused++;
	if (x->status == 0)
		v->unanswered++;
	else if (x->length != JOB_UNKNOWN && x->method != JOB_HEAD && x->got < x->length)
		v->cut++;
	if (x->method == JOB_PUT && x->status / 100 == 2)
		v->put = i64_sum(v->put, x->sent);
}

static bool is_get(const struct job_exchange *x)
{
	return x->method == JOB_GET && x->file != JOB_NONE && x->status / 100 == 2;
}

static uint64_t count_objects(const struct job *job, const struct taken *t)
{
	AUTO_FREE uint8_t *seen = xcalloc(job->files + 1, sizeof(*seen));
	uint64_t n = 0;

	for (size_t i = 0; i < t->n; i++) {
		n += !seen[t->x[i]->file];
		seen[t->x[i]->file] = 1;
	}
	return n;
}

/* What GETs together tell. */
static void sum_up(const struct job *job, const struct taken *t, struct job_server *v)
{
	AUTO_FREE int64_t *a = xcalloc(t->n + 1, sizeof(*a)), *b = xcalloc(t->n + 1, sizeof(*b));
	size_t n = 0;

	v->gets = t->n;
	if (t->n == 0)
		return;
	v->objects = count_objects(job, t);
	for (size_t i = 0; i < t->n; i++) {
		v->ranged += t->x[i]->offset != JOB_UNKNOWN;
		v->got = i64_sum(v->got, t->x[i]->got);
		a[i] = t->x[i]->got;
	}
	qsort(a, t->n, sizeof(*a), by_number);
	v->least = a[0];
	v->median = a[t->n / 2];
	v->most = a[t->n - 1];
	for (size_t i = 0; i < t->n; i++) {
		if (t->x[i]->begin_ns == JOB_UNKNOWN) /* a log without times */
			return;
		a[i] = t->x[i]->begin_ns;
		b[i] = t->x[i]->last_ns == JOB_UNKNOWN ? a[i] : t->x[i]->last_ns;
	}
	v->at_once = most_at_once(a, b, t->n);
	v->span_s = (double)(b[t->n - 1] - a[0]) / 1e9;
	for (size_t i = 0; i < t->n; i++)
		if (t->x[i]->first_ns != JOB_UNKNOWN && t->x[i]->last_ns != JOB_UNKNOWN) {
			a[n] = t->x[i]->first_ns - t->x[i]->begin_ns;
			b[n++] = t->x[i]->last_ns - t->x[i]->begin_ns;
		}
	qsort(a, n, sizeof(*a), by_number);
	qsort(b, n, sizeof(*b), by_number);
	v->first_s = seconds_at(a, n, 0.5);
	v->first_99_s = seconds_at(a, n, 0.99);
	v->last_s = seconds_at(b, n, 0.5);
}

static void count_connections(const struct job *job, const uint32_t *of, uint32_t server,
			      struct job_server *v)
{
	AUTO_FREE int64_t *begin = xcalloc(job->connections + 1, sizeof(*begin));
	AUTO_FREE int64_t *end = xcalloc(job->connections + 1, sizeof(*end));
	struct texts peers = {0};
	size_t n = 0;

	for (size_t i = 0; i < job->connections; i++) {
		const struct job_connection *c = &job->connection[i];

		if (of[i] != server)
			continue;
		v->connections++;
		v->reused += c->requests > 1;
		v->sent = i64_sum(v->sent, c->sent);
		v->received = i64_sum(v->received, c->received);
		if (!v->agent[0])
			v->agent = c->agent;
		if (peers.n < 1024)
			texts_add(&peers, c->peer);
		begin[n] = c->begin_ns;
		end[n++] = c->end_ns == JOB_UNKNOWN ? INT64_MAX : c->end_ns;
	}
	v->open_at_once = most_at_once(begin, end, n);
	v->peers = peers.n;
	texts_release(&peers);
}

/* Of "s3://BUCKET/KEY". */
static void find_bucket(struct job_server *v, const char *object)
{
	if (!v->bucket && str_starts(object, "s3://"))
		v->bucket = xstrndup(object + 5, strcspn(object + 5, "/"));
}

static bool is_told(const struct job_server *v)
{
	switch (v->speaks) {
	case JOB_SPEAKS_HTTP:
		return v->gets > 0 || v->put > 0 || v->unnamed > 0 || v->again > 0 ||
		       v->listings > 0;
	case JOB_SPEAKS_TLS:
	case JOB_SPEAKS_HTTP2:
		return v->sent + v->received >= TLS_LEAST;
	default:
		return !v->local && v->received >= OTHER_LEAST;
	}
}

static int by_bytes(const void *x, const void *y)
{
	const struct job_server *a = x, *b = y;

	return ORDER(b->gets > 0, a->gets > 0)
		       ?: ORDER(i64_sum(b->sent, b->received), i64_sum(a->sent, a->received))
		       ?: strcmp(a->name, b->name);
}

void job_servers_find(const struct job *job, struct job_servers *out)
{
	AUTO_FREE uint32_t *of = job_numbers(job->connections);
	AUTO_FREE uint8_t *rank = rank_connections(job);
	AUTO_FREE struct taken *taken = NULL;
	size_t room = 0, told = 0;

	*out = (struct job_servers){0};
	for (uint8_t r = 0; r < RANKS; r++)
		for (size_t i = 0; i < job->connections; i++)
			if (rank[i] == r)
				of[i] = (uint32_t)(server_of(out, &room, &job->connection[i]) -
						   out->v);
	taken = xcalloc(out->n + 1, sizeof(*taken));
	for (size_t i = 0; i < job->exchanges; i++) {
		const struct job_exchange *x = &job->exchange[i];
		uint32_t server = of[x->connection];

		count_exchange(&out->v[server], x);
		if (x->file != JOB_NONE && !out->v[server].others)
			find_bucket(&out->v[server], job->file[x->file].name);
		if (is_get(x))
			VECTOR_PUSH(taken[server].x, taken[server].n, taken[server].room, x);
	}
	for (size_t i = 0; i < out->n; i++) {
		count_connections(job, of, (uint32_t)i, &out->v[i]);
		sum_up(job, &taken[i], &out->v[i]);
		free(taken[i].x);
	}
	for (size_t i = 0; i < out->n; i++) {
		if (is_told(&out->v[i]))
			out->v[told++] = out->v[i];
		else
			free(out->v[i].bucket);
	}
	out->n = told;
	if (told)
		qsort(out->v, told, sizeof(*out->v), by_bytes);
}

void job_servers_release(struct job_servers *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->v[i].bucket);
	free(s->v);
	*s = (struct job_servers){0};
}

/* ---- in words ---- */

static const char *const protocols[] = {
	[JOB_SPEAKS_UNKNOWN] = "an unknown protocol",
	[JOB_SPEAKS_HTTP] = "http",
	[JOB_SPEAKS_TLS] = "https",
	[JOB_SPEAKS_HTTP2] = "http/2",
};

static const char *some(uint64_t n, const char *what, char *out, size_t size)
{
	snprintf(out, size, "%llu %s%s", (unsigned long long)n, what, n == 1 ? "" : "s");
	return out;
}

static void put_sizes(const struct job_server *v, struct buf *out)
{
	char text[2][64];

	if (v->least == v->most)
		buf_puts(out, str_bytes((double)v->least, text[0], sizeof(text[0])));
	else
		buf_printf(out, "%s to %s", str_bytes((double)v->least, text[0], sizeof(text[0])),
			   str_bytes((double)v->most, text[1], sizeof(text[1])));
}

static void put_sentence(const struct job_server *v, struct buf *out)
{
	char text[64], bytes[2][64];

	if (v->speaks != JOB_SPEAKS_HTTP) {
		buf_say(out, "%s %s: %s, %s received, %s sent; what was asked cannot be seen. ",
			v->speaks == JOB_SPEAKS_TLS     ? "Over https from"
			: v->speaks == JOB_SPEAKS_HTTP2 ? "Over http/2 from"
							: "Over a protocol that is not known from",
			v->name, some(v->connections, "connection", text, sizeof(text)),
			str_bytes((double)v->received, bytes[0], sizeof(bytes[0])),
			str_bytes((double)v->sent, bytes[1], sizeof(bytes[1])));
		return;
	}
	buf_say(out, "Objects over http from %s: ", v->name);
	if (v->gets) {
		buf_printf(out, "%s of ",
			   some(v->gets, v->ranged == v->gets ? "ranged GET" : "GET", text,
				sizeof(text)));
		put_sizes(v, out);
		buf_printf(out, " (%s)", str_bytes((double)v->got, bytes[0], sizeof(bytes[0])));
	} else if (v->unnamed) {
		buf_printf(out, "%s whose paths are cut off",
			   some(v->unnamed, "GET", text, sizeof(text)));
	} else if (v->requests[JOB_PUT]) {
		buf_printf(out, "%s (%s)", some(v->requests[JOB_PUT], "PUT", text, sizeof(text)),
			   str_bytes((double)v->put, bytes[0], sizeof(bytes[0])));
	} else {
		buf_puts(out, "no GET that was answered");
	}
	buf_printf(out, " on %s", some(v->connections, "connection", text, sizeof(text)));
	if (v->at_once)
		buf_printf(out, ", %llu at once", (unsigned long long)v->at_once);
	buf_printf(out, ", %llu used more than once", (unsigned long long)v->reused);
	if (v->again)
		buf_printf(out, "; %s (429, 5xx)",
			   some(v->again, "throttled or failed response", text, sizeof(text)));
	buf_puts(out, ". ");
}

void job_servers_answer(const struct job_servers *s, struct buf *out)
{
	for (size_t i = 0; i < s->n && i < ANSWERED_MOST; i++)
		put_sentence(&s->v[i], out);
}

static void put_line(struct buf *out, const char *name, const struct buf *value)
{
	buf_printf(out, "  %-14s ", name);
	buf_wrap(out, value->data ? value->data : "", 17, 17, 100);
}

#define LINE(name, ...)                                                                            \
	do {                                                                                       \
		struct buf line = {0};                                                             \
		buf_say(&line, __VA_ARGS__);                                                       \
		put_line(out, name, &line);                                                        \
		buf_release(&line);                                                                \
	} while (0)

static void put_requests(const struct job_server *v, struct buf *out)
{
	static const char *const names[JOB_METHODS] = {
		[JOB_GET] = "GET",   [JOB_HEAD] = "HEAD",     [JOB_PUT] = "PUT",
		[JOB_POST] = "POST", [JOB_DELETE] = "DELETE", [JOB_OTHER_METHOD] = "other",
	};
	struct buf line = {0};
	char text[64];

	for (int m = 0; m < JOB_METHODS; m++)
		if (v->requests[m])
			buf_printf(&line, "%s%llu %s", line.len ? ", " : "",
				   (unsigned long long)v->requests[m], names[m]);
	if (v->listings)
		buf_printf(&line, "%s%s", line.len ? ", " : "",
			   some(v->listings, "listing", text, sizeof(text)));
	if (v->again)
		buf_printf(&line, "; %s (429, 5xx)",
			   some(v->again, "throttled or failed response", text, sizeof(text)));
	if (v->refused)
		buf_printf(&line, "; %s",
			   some(v->refused, "other error response", text, sizeof(text)));
	if (v->unanswered)
		buf_printf(&line, "; %llu without an answer", (unsigned long long)v->unanswered);
	if (v->cut)
		buf_printf(&line, "; %s cut off", some(v->cut, "answer", text, sizeof(text)));
	put_line(out, "requests", &line);
	buf_release(&line);
}

static void put_gets(const struct job_server *v, struct buf *out)
{
	char text[3][64];
	uint64_t whole = v->gets - v->ranged;

	LINE("objects", "%llu, read with %s and %s", (unsigned long long)v->objects,
	     some(whole, "whole GET", text[0], sizeof(text[0])),
	     some(v->ranged, "ranged GET", text[1], sizeof(text[1])));
	LINE("bytes of a GET", "%s, %s, %s (least, median, most)",
	     str_bytes((double)v->least, text[0], sizeof(text[0])),
	     str_bytes((double)v->median, text[1], sizeof(text[1])),
	     str_bytes((double)v->most, text[2], sizeof(text[2])));
	if (v->span_s > 0)
		LINE("rate", "%s GETs/s, %s/s, from the first to the last",
		     NUMBER((double)v->gets / v->span_s, 3),
		     str_bytes((double)v->got / v->span_s, text[0], sizeof(text[0])));
	if (v->at_once)
		LINE("times", "to the first byte %s ms (99 %%: %s ms), to the last %s ms (median)",
		     NUMBER(v->first_s * 1e3, 3), NUMBER(v->first_99_s * 1e3, 3),
		     NUMBER(v->last_s * 1e3, 3));
}

static void put_server(const struct job_server *v, struct buf *out)
{
	char text[2][64];

	buf_say(out, "\n%s over %s\n", v->name, protocols[v->speaks]);
	if (v->agent[0])
		LINE("client", "%s", v->agent);
	if (v->bucket)
		LINE("bucket", "%s", v->bucket);
	if (v->speaks == JOB_SPEAKS_HTTP)
		put_requests(v, out);
	if (v->gets)
		put_gets(v, out);
	LINE("connections", "%llu, %llu open at once, %llu used more than once",
	     (unsigned long long)v->connections, (unsigned long long)v->open_at_once,
	     (unsigned long long)v->reused);
	LINE("bytes", "%s received, %s sent, including headers%s",
	     str_bytes((double)v->received, text[0], sizeof(text[0])),
	     str_bytes((double)v->sent, text[1], sizeof(text[1])),
	     v->speaks == JOB_SPEAKS_TLS ? " and encryption: what was asked cannot be seen" : "");
}

void job_servers_print(const struct job_servers *s, struct buf *out)
{
	for (size_t i = 0; i < s->n; i++)
		put_server(&s->v[i], out);
}

json_t *job_servers_json(const struct job_servers *s)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->n; i++) {
		const struct job_server *v = &s->v[i];
		json_t *o = json_object();

		json_put_text(o, "server", v->name);
		json_put_text(o, "protocol", protocols[v->speaks]);
		json_put_int(o, "addresses", v->peers);
		if (v->agent[0])
			json_put_text(o, "client", v->agent);
		if (v->bucket)
			json_put_text(o, "bucket", v->bucket);
		json_put_int(o, "connections", v->connections);
		json_put_int(o, "connections_at_once", v->open_at_once);
		json_put_int(o, "connections_reused", v->reused);
		json_put_int(o, "received_bytes", (uint64_t)v->received);
		json_put_int(o, "sent_bytes", (uint64_t)v->sent);
		if (v->speaks == JOB_SPEAKS_HTTP) {
			json_put_int(o, "get", v->requests[JOB_GET]);
			json_put_int(o, "head", v->requests[JOB_HEAD]);
			json_put_int(o, "put", v->requests[JOB_PUT]);
			json_put_int(o, "post", v->requests[JOB_POST]);
			json_put_int(o, "delete", v->requests[JOB_DELETE]);
			json_put_int(o, "listings", v->listings);
			json_put_int(o, "answers_later", v->again);
			json_put_int(o, "answers_refused", v->refused);
			json_put_int(o, "unanswered", v->unanswered);
			json_put_int(o, "answers_cut", v->cut);
			json_put_int(o, "put_bytes", (uint64_t)v->put);
		}
		if (v->gets) {
			json_put_int(o, "objects", v->objects);
			json_put_int(o, "gets", v->gets);
			json_put_int(o, "gets_ranged", v->ranged);
			if (v->at_once)
				json_put_int(o, "gets_at_once", v->at_once);
			json_put_int(o, "got_bytes", (uint64_t)v->got);
			json_put_int(o, "get_bytes_least", (uint64_t)v->least);
			json_put_int(o, "get_bytes_median", (uint64_t)v->median);
			json_put_int(o, "get_bytes_most", (uint64_t)v->most);
			if (v->span_s > 0)
				json_put_real(o, "gets_per_s", (double)v->gets / v->span_s);
			json_put_real(o, "first_byte_s", v->first_s);
			json_put_real(o, "first_byte_99_s", v->first_99_s);
			json_put_real(o, "last_byte_s", v->last_s);
		}
		json_array_append_new(list, o);
	}
	return list;
}
