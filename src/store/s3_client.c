#include "store/s3_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/str.h"
#include "codec/digest.h"
#include "http/base64.h"
#include "http/xml.h"
#include "store/s3_answer.h"
#include "store/servers.h"
#include "store/s3_endpoints.h"
#include "store/store.h"

#define HOPS_MAX 5
#define TEXT_MAX (8u << 20) /* of an answer that is kept as text */
#define TIMEOUT_TRIES 3     /* a server that does not answer is not asked more often */
#define WAITS_BYTES 262144  /* an answer of more may take that long by its size */

const char *const s3_kind_names[SERVER_REQUESTS] = {
	"GET",
	"HEAD",
	"LIST",
	"PUT",
	"multipart begin",
	"part",
	"multipart end",
	"multipart abort",
	"copy",
	"DELETE",
};
const char *const s3_retry_names[SERVER_AGAINS] = {
	"because a kept connection was closed",
	"because a connection was lost",
	"because the server could not be connected to",
	"after a time limit",
	"because the server was too busy (503, 429)",
	"after another error of the server",
	"after a redirect",
	"with the server's clock",
	"with new credentials",
};

static const char *const methods[SERVER_REQUESTS] = {"GET", "HEAD", "GET",    "PUT", "POST",
						     "PUT", "POST", "DELETE", "PUT", "DELETE"};

static uint64_t count(_Atomic uint64_t *counter, uint64_t n)
{
	return atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* ---- endpoints ---- */

static int add_endpoint(struct s3_client *c, const char *text, bool by_path, struct err *e)
{
	const struct s3_options *o = c->options;
	const struct http_limits limits = {.connect_ns = (int64_t)(o->connect_time * 1e9),
					   .first_ns = (int64_t)(o->answer_time * 1e9),
					   .idle_ns = (int64_t)(o->idle_time * 1e9)};
	unsigned n = atomic_load_explicit(&c->endpoints, memory_order_relaxed);
	struct s3_endpoint *p;
	struct url url;
	int rc = url_parse(&url, text, e);

	if (rc < 0)
		return err_wrap(e, "an endpoint of S3 (storage.s3.endpoints, AWS_ENDPOINT_URL)");
	if (n == S3_ENDPOINTS_MAX)
		return err_set(e, ERR_USAGE, "more than %d endpoints of S3 servers",
			       S3_ENDPOINTS_MAX);
	p = xcalloc(1, sizeof(*p));
	if (by_path)
		snprintf(p->host, sizeof(p->host), "%s", url.authority);
	else
		snprintf(p->host, sizeof(p->host), "%s.%s", o->bucket, url.authority);
	if (!by_path) {
		char host[URL_HOST_MAX];

		if (snprintf(host, sizeof(host), "%s.%s", o->bucket, url.host) >= URL_HOST_MAX) {
			free(p);
			return err_set(e, ERR_USAGE,
				       "the name of the bucket and its host is too long");
		}
		memcpy(url.host, host, sizeof(host));
	}
	rc = http_server_init(&p->server, &url, &limits, e);
	if (rc < 0) {
		free(p);
		return err_wrap(e, "the S3 endpoint %s", url.authority);
	}
	c->endpoint[n] = p;
	atomic_store_explicit(&c->endpoints, n + 1, memory_order_release);
	return 0;
}

static int add_given(struct s3_client *c, const struct str_list *given, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < given->n && rc == 0; i++)
		rc = add_endpoint(c, given->v[i], c->by_path, e);
	if (given->n == 0) {
		AUTO_FREE char *amazon = xasprintf("https://s3.%s.amazonaws.com", c->region);

		rc = add_endpoint(c, amazon, c->by_path, e);
	}
	c->given = c->endpoints;
	return rc;
}

static const char *region_of(const struct s3_options *o)
{
	const char *v = o->region && *o->region ? o->region : getenv("AWS_REGION");

	if (!v || !*v)
		v = getenv("AWS_DEFAULT_REGION");
	return v && *v ? v : "us-east-1";
}

/* Names of buckets are names of hosts, nearly; older ones were freer. */
static int check_bucket(const char *bucket, struct err *e)
{
	size_t n = bucket ? strlen(bucket) : 0;

	if (n == 0)
		return err_set(e, ERR_USAGE,
			       "the store s3 needs a bucket: storage.s3.bucket, or "
			       "storage.storage_root with storage.storage_type s3");
	if (n > 63 ||
	    strspn(bucket, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
			   ".-_") != n)
		return err_set(
			e, ERR_USAGE,
			"'%.100s' is not the name of a bucket: up to 63 letters, digits, dots, "
			"hyphens and underscores, and no path",
			bucket);
	return 0;
}

int s3_client_create(struct s3_client **out, const struct s3_options *o, struct err *e)
{
	struct str_list given = {0};
	enum s3_balance balance;
	struct s3_client *c;
	int rc = check_bucket(o->bucket, e);

	if (rc == 0)
		rc = s3_balance(o, &balance, e);
	if (rc == 0)
		rc = s3_endpoints(o, &given, e);
	if (rc < 0) {
		str_list_release(&given);
		return rc;
	}
	c = xcalloc(1, sizeof(*c));
	c->balance = balance;
	c->options = o;
	pthread_mutex_init(&c->lock, NULL);
	for (unsigned i = 0; i < S3_OPENING; i++)
		pthread_mutex_init(&c->opening[i], NULL);
	/* each connection is a descriptor */
	file_allow_more();
	c->by_path = o->addressing == S3_ADDRESS_PATH ||
		     (o->addressing == S3_ADDRESS_AUTO && given.n > 0);
	if (c->by_path)
		snprintf(c->bucket_path, sizeof(c->bucket_path), "/%s", o->bucket);
	snprintf(c->region, sizeof(c->region), "%s", region_of(o));
	rc = o->sign ? s3_credentials_find(&c->credentials, o->profile, e) : 0;
	rc = rc ?: add_given(c, &given, e);
	str_list_release(&given);
	c->version = 1;
	if (rc < 0)
		s3_client_destroy(c);
	else
		*out = c;
	return rc;
}

static void free_call(struct s3_call *call)
{
	for (unsigned i = 0; i < S3_ENDPOINTS_MAX; i++)
		http_connection_free(call->kept[i]);
	buf_release(&call->head);
	buf_release(&call->text);
	free(call->moved_path);
	free(call->moved_query);
	free(call->token);
	memset(call->secret, 0, sizeof(call->secret));
	free(call);
}

void s3_client_destroy(struct s3_client *c)
{
	while (c->idle) {
		struct s3_call *next = c->idle->next;

		free_call(c->idle);
		c->idle = next;
	}
	for (unsigned i = 0; i < c->endpoints; i++) {
		http_server_release(&c->endpoint[i]->server);
		free(c->endpoint[i]);
	}
	s3_credentials_release(&c->credentials);
	pthread_mutex_destroy(&c->lock);
	for (unsigned i = 0; i < S3_OPENING; i++)
		pthread_mutex_destroy(&c->opening[i]);
	free(c);
}

/* ---- names ---- */

/* What follows "s3://", or NULL. One slash is enough, as a joined path has it. */
static const char *after_scheme(const char *name)
{
	return strncmp(name, "s3:/", 4) == 0 ? name + 4 + (name[4] == '/') : NULL;
}

const char *s3_key(const struct s3_client *c, const char *name)
{
	const char *uri = after_scheme(name);
	size_t n = strlen(c->options->bucket);

	if (uri && strncmp(uri, c->options->bucket, n) == 0 && (uri[n] == '/' || uri[n] == '\0'))
		name = uri + n;
	for (;;) {
		if (*name == '/')
			name++;
		else if (name[0] == '.' && (name[1] == '/' || name[1] == '\0'))
			name++;
		else
			return name;
	}
}

int s3_path(const struct s3_client *c, const char *name, struct buf *out, struct err *e)
{
	const char *key = s3_key(c, name), *uri = after_scheme(key);
	size_t n = strlen(key);

	if (uri)
		return err_set(e, ERR_USAGE,
			       "'%.200s' is in another bucket than '%s' (storage.storage_root)",
			       name, c->options->bucket);

	while (n && key[n - 1] == '/')
		n--;
	if (n > S3_KEY_MAX)
		return err_set(e, -ENAMETOOLONG,
			       "'%.200s...' has %zu bytes; a key of S3 has at most %d", key, n,
			       S3_KEY_MAX);
	buf_puts(out, c->bucket_path);
	buf_putc(out, '/');
	/* a doubled slash would be another key */
	for (size_t i = 0; i < n;) {
		size_t piece = 0;

		while (i + piece < n && key[i + piece] != '/')
			piece++;
		url_encode(out, key + i, piece, false);
		i += piece;
		if (i < n)
			buf_putc(out, '/');
		while (i < n && key[i] == '/')
			i++;
	}
	return 0;
}

/* ---- calls ---- */

struct s3_call *s3_call_take(struct s3_client *c)
{
	struct s3_call *call;

	pthread_mutex_lock(&c->lock);
	call = c->idle;
	if (call)
		c->idle = call->next;
	pthread_mutex_unlock(&c->lock);
	if (!call) {
		call = xcalloc(1, sizeof(*call));
		call->client = c;
	}
	call->state = S3_CALL_IDLE;
	call->query = call->if_match = call->copy_source = NULL;
	call->from = call->n = 0;
	call->body = NULL;
	call->body_n = 0;
	call->checked = false;
	call->into = NULL;
	call->sink_n = 0;
	call->plain = call->once = call->piecewise = false;
	return call;
}

void s3_call_give(struct s3_call *call)
{
	struct s3_client *c = call->client;

	if (call->state == S3_CALL_RUNNING) {
		http_close(call->conn);
		atomic_fetch_sub_explicit(&call->at->busy, 1, memory_order_relaxed);
		call->state = S3_CALL_IDLE;
	}
	pthread_mutex_lock(&c->lock);
	call->next = c->idle;
	c->idle = call;
	pthread_mutex_unlock(&c->lock);
}

static unsigned own_turn(struct s3_client *c)
{
	static _Thread_local unsigned turn;
	static _Atomic unsigned threads;

	(void)c;
	if (turn == 0)
		turn = 1 + atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed);
	return turn - 1;
}

static unsigned choose(struct s3_client *c)
{
	unsigned n = c->given, best = 0, least = UINT32_MAX;

	if (n == 1)
		return 0;
	if (c->balance == S3_BY_RANK && store_served_rank() >= 0)
		return (unsigned)(store_served_rank() % n);
	if (c->balance <= S3_BY_THREAD)
		return own_turn(c) % n;
	best = atomic_fetch_add_explicit(&c->turn, 1, memory_order_relaxed) % n;
	if (c->balance == S3_ROUND_ROBIN)
		return best;
	for (unsigned i = 0, first = best; i < n; i++) {
		unsigned at = (first + i) % n;
		unsigned busy = atomic_load_explicit(&c->endpoint[at]->busy, memory_order_relaxed);

		if (busy < least) {
			least = busy;
			best = at;
		}
	}
	return best;
}

/* A copy of what is signed with, taken anew when it has changed. */
static void refresh(struct s3_call *call)
{
	struct s3_client *c = call->client;
	unsigned version = atomic_load_explicit(&c->version, memory_order_acquire);

	if (call->version == version)
		return;
	pthread_mutex_lock(&c->lock);
	memcpy(call->access_key, c->credentials.access_key, sizeof(call->access_key));
	memcpy(call->secret, c->credentials.secret, sizeof(call->secret));
	memcpy(call->region, c->region, sizeof(call->region));
	free(call->token);
	call->token = c->credentials.token ? xstrdup(c->credentials.token) : NULL;
	call->version = version;
	pthread_mutex_unlock(&c->lock);
}

/* Every request has some: formatting them costs more than signing it. */
static void put_number(struct buf *b, uint64_t n)
{
	char text[20];
	size_t at = sizeof(text);

	do
		text[--at] = (char)('0' + n % 10);
	while (n /= 10);
	buf_append(b, text + at, sizeof(text) - at);
}

static void put_head(struct s3_call *call)
{
	const struct http_server *server = &call->at->server;
	const char *path = call->moved_path ? call->moved_path : call->path;
	const char *query = call->moved_path ? call->moved_query : call->query;
	const char *method = methods[call->kind];
	bool absolute = server->proxied && !server->url.tls, has_body = *method == 'P';
	struct buf *b = &call->head;
	struct sigv4_header h[6];
	size_t n = 0;
	char time[SIGV4_TIME_MAX];

	buf_reset(b);
	buf_puts(b, method);
	buf_putc(b, ' ');
	if (absolute) {
		buf_puts(b, "http://");
		buf_puts(b, call->at->host);
	}
	buf_puts(b, path);
	if (query && *query) {
		buf_putc(b, '?');
		buf_puts(b, query);
	}
	buf_puts(b, " HTTP/1.1\r\n");
	h[n++] = (struct sigv4_header){"host", call->at->host};
	if (call->client->options->sign) {
		sigv4_time(clock_wall_ns() / NS_PER_S + atomic_load_explicit(&call->client->skew_s,
									     memory_order_relaxed),
			   time);
		h[n++] = (struct sigv4_header){"x-amz-content-sha256", SIGV4_UNSIGNED};
	}
	if (call->copy_source)
		h[n++] = (struct sigv4_header){"x-amz-copy-source", call->copy_source};
	if (call->client->options->sign)
		h[n++] = (struct sigv4_header){"x-amz-date", time};
	if (call->client->options->sign && call->token)
		h[n++] = (struct sigv4_header){"x-amz-security-token", call->token};
	for (size_t i = 0; i < n; i++) {
		buf_puts(b, h[i].name);
		buf_puts(b, ": ");
		buf_puts(b, h[i].value);
		buf_puts(b, "\r\n");
	}
	if (call->client->options->sign) {
		const struct sigv4_request r = {.method = method,
						.path = path,
						.query = query,
						.payload = SIGV4_UNSIGNED,
						.header = h,
						.headers = n,
						.time = time};

		buf_puts(b, "authorization: ");
		sigv4_sign(b, &call->key, &r, call->access_key, call->secret, call->region, "s3");
		buf_puts(b, "\r\n");
	}
	if (call->n && !call->plain) {
		buf_puts(b, "range: bytes=");
		put_number(b, call->from);
		buf_putc(b, '-');
		put_number(b, call->from + call->n - 1);
		buf_puts(b, "\r\n");
	}
	/* a weak one never matches */
	if (call->if_match && *call->if_match && !str_starts(call->if_match, "W/")) {
		buf_puts(b, "if-match: ");
		buf_puts(b, call->if_match);
		buf_puts(b, "\r\n");
	}
	if (call->checked) {
		unsigned char digest[16];
		char text[32];

		md5(call->body, call->body_n, digest);
		base64(digest, sizeof(digest), text, sizeof(text));
		buf_printf(b, "content-md5: %s\r\n", text);
	}
	if (has_body)
		buf_printf(b, "content-length: %zu\r\n", call->body_n);
	if (absolute && server->proxy_login[0])
		buf_printf(b, "proxy-authorization: Basic %s\r\n", server->proxy_login);
	buf_puts(b, "user-agent: stoker/" STOKER_VERSION "\r\naccept-encoding: identity\r\n\r\n");
}

static void take_connection(struct s3_call *call)
{
	if (!call->kept[call->at_index])
		call->kept[call->at_index] = http_connection_new(&call->at->server);
	else if (call->kept[call->at_index]->fd < 0 && !call->kept[call->at_index]->dropped)
		count(&call->at->counts.reopened, 1);
	call->conn = call->kept[call->at_index];
	call->conn->dropped = false;
	call->conn->owner = call;
}

int s3_call_connect(struct s3_call *call, struct err *e)
{
	struct s3_client *c = call->client;
	pthread_mutex_t *turn;
	int rc;

	/* another thread's requests may go to another one */
	if (c->given > 1 && (c->balance != S3_BY_RANK || store_served_rank() < 0))
		return 0;
	call->at_index = choose(c);
	call->at = c->endpoint[call->at_index];
	turn = &c->opening[own_turn(c) % S3_OPENING];
	take_connection(call);
	pthread_mutex_lock(turn);
	rc = http_open(call->conn, e);
	pthread_mutex_unlock(turn);
	return rc < 0 ? rc : 1;
}

static void start(struct s3_call *call)
{
	struct http_exchange *x = &call->x;
	bool open;

	take_connection(call);
	refresh(call);
	put_head(call);
	buf_reset(&call->text);
	memset(x, 0, offsetof(struct http_exchange, answer));
	x->head = call->head.data;
	x->head_n = call->head.len;
	x->body = call->body;
	x->body_n = call->body_n;
	x->asks_head = call->kind == SERVER_HEAD;
	x->into = call->into;
	x->piecewise = call->piecewise;
	x->room = call->piecewise            ? call->room
		  : !call->into              ? 0
		  : call->n || !call->sink_n ? (size_t)call->n
					     : SIZE_MAX;
	x->sink_n = call->sink_n;
	x->text = &call->text;
	x->text_max = TEXT_MAX;
	atomic_fetch_add_explicit(&call->at->busy, 1, memory_order_relaxed);
	call->state = S3_CALL_RUNNING;
	open = call->conn->fd >= 0;
	http_begin(call->conn, x);
	/* kept, and closed by the server since */
	if (open && call->conn->fd < 0)
		count(&call->at->counts.reopened, 1);
}

void s3_call_begin(struct s3_call *call)
{
	call->at_index = choose(call->client);
	call->at = call->client->endpoint[call->at_index];
	call->rc = 0;
	call->err.code = 0;
	call->status = 0;
	call->got = 0;
	call->length = UINT64_MAX;
	call->etag[0] = '\0';
	call->tries = call->hops = 0;
	call->clock_mended = call->renewed = call->reused_again = false;
	call->begun_ns = clock_now_ns();
	call->lost_ns = 0;
	if (call->moved_path) {
		free(call->moved_path);
		free(call->moved_query);
		call->moved_path = call->moved_query = NULL;
	}
	start(call);
}

/* ---- ends ---- */

static void complete(struct s3_call *call, int rc)
{
	call->rc = rc;
	call->state = S3_CALL_DONE;
	count(&call->at->counts.requests[call->kind], 1);
	if (rc < 0 && rc != -ENOENT && !call->once)
		count(&call->at->counts.failed, 1);
}

/* Full jitter: as likely at once as after the whole pause. */
static int64_t pause_ns(const struct s3_call *call)
{
	static _Atomic uint64_t draws;
	const struct s3_options *o = call->client->options;
	double most = o->retry_first;
	uint64_t draw = rng_mix64((uint64_t)call->begun_ns ^ (uint64_t)getpid() << 32 ^
				  atomic_fetch_add_explicit(&draws, 1, memory_order_relaxed));

	for (unsigned i = 1; i < call->tries && most < o->retry_most; i++)
		most *= 2;
	if (most > o->retry_most)
		most = o->retry_most;
	return (int64_t)(most * 1e9 * (double)(draw >> 11) / 9007199254740992.0);
}

static void again(struct s3_call *call, enum server_again why, int64_t wait_ns)
{
	int64_t now = clock_now_ns();

	count(&call->at->counts.sent_again[why], 1);
	count(&call->at->counts.again_ns,
	      (uint64_t)(now - (call->lost_ns ? call->lost_ns : call->begun_ns) + wait_ns));
	call->not_before_ns = now + wait_ns;
	call->lost_ns = now + wait_ns;
	call->state = S3_CALL_WAITING;
}

/* False: no more. */
static bool try_again(struct s3_call *call, enum server_again why, int64_t asked_ns)
{
	int64_t most = (int64_t)(call->client->options->retry_most * 1e9), wait;
	int64_t limit = call->once ? 0 : call->client->options->retries;

	if (why == SERVER_TIME && limit > TIMEOUT_TRIES - 1)
		limit = TIMEOUT_TRIES - 1;
	if (call->tries >= limit)
		return false;
	call->tries++;
	wait = pause_ns(call);
	if (asked_ns > wait)
		wait = asked_ns < most ? asked_ns : most;
	again(call, why, wait);
	return true;
}

static void connection_failed(struct s3_call *call, enum http_end end, bool reused)
{
	static const enum server_again whys[] = {
		[HTTP_NO_CONNECTION] = SERVER_CONNECT,
		[HTTP_RESET] = SERVER_LOST,
		[HTTP_CUT] = SERVER_LOST,
		[HTTP_LATE_CONNECT] = SERVER_TIME,
		[HTTP_LATE_FIRST] = SERVER_TIME,
		[HTTP_LATE_IDLE] = SERVER_TIME,
	};

	/* the server had closed it while it was idle */
	if (end == HTTP_RESET && reused && !call->reused_again) {
		call->reused_again = true;
		again(call, SERVER_CLOSED, 0);
		return;
	}
	if (end < HTTP_MALFORMED && call->x.base == 0 && try_again(call, whys[end], 0))
		return;
	complete(call, s3_not_answered(call, end));
}

static int64_t retry_after(const struct s3_call *call)
{
	char text[32];
	double seconds;

	if (!http_head_get(&call->x.answer, "retry-after", text, sizeof(text)) ||
	    !str_to_f64(text, &seconds) || !(seconds >= 0) || seconds > 86400)
		return 0;
	return (int64_t)(seconds * 1e9);
}

/* What can stand in a request's line: no blanks, nothing but ASCII. */
static bool is_plain(const char *text)
{
	for (; *text; text++)
		if (*text <= ' ' || *text > '~')
			return false;
	return true;
}

/* A server elsewhere, or another region: true when the request is sent there. */
static bool follow(struct s3_call *call)
{
	struct s3_client *c = call->client;
	char region[64], location[2048];
	struct buf query = {0};
	struct err e;
	struct url url;
	const char *end;
	unsigned i, n;

	if (++call->hops > HOPS_MAX)
		return false;
	if (http_head_get(&call->x.answer, "x-amz-bucket-region", region, sizeof(region)) &&
	    *region && strcmp(region, call->region) != 0) {
		pthread_mutex_lock(&c->lock);
		memcpy(c->region, region, sizeof(region));
		atomic_fetch_add_explicit(&c->version, 1, memory_order_release);
		pthread_mutex_unlock(&c->lock);
		again(call, SERVER_MOVED, 0);
		return true;
	}
	if (call->status == 400 ||
	    !http_head_get(&call->x.answer, "location", location, sizeof(location)) ||
	    strlen(location) + 1 == sizeof(location) || !is_plain(location))
		return false;
	if (location[0] != '/') {
		if (!str_starts(location, "http://") && !str_starts(location, "https://"))
			return false;
		if (url_parse(&url, location, &e) < 0 || (call->at->server.url.tls && !url.tls))
			return false;
	} else {
		url = call->at->server.url;
		url.target = location;
	}
	pthread_mutex_lock(&c->lock);
	n = c->endpoints;
	for (i = 0; i < n; i++)
		if (c->endpoint[i]->server.url.tls == url.tls &&
		    c->endpoint[i]->server.url.port == url.port &&
		    strcmp(c->endpoint[i]->server.url.host, url.host) == 0)
			break;
	/* the name that it gave is whole */
	if (i == n && add_endpoint(c, location, true, &e) < 0)
		i = S3_ENDPOINTS_MAX;
	pthread_mutex_unlock(&c->lock);
	if (i == S3_ENDPOINTS_MAX)
		return false;
	again(call, SERVER_MOVED, 0);
	call->at_index = i;
	call->at = c->endpoint[i];
	free(call->moved_path);
	free(call->moved_query);
	end = url.target + strcspn(url.target, "?#");
	call->moved_path = xstrndup(url.target, (size_t)(end - url.target));
	if (!*call->moved_path) {
		free(call->moved_path);
		call->moved_path = xstrdup("/");
	}
	if (*end == '?') {
		AUTO_FREE char *given = xstrndup(end + 1, strcspn(end + 1, "#"));

		if (!url_query_sorted(&query, given))
			buf_reset(&query);
	}
	call->moved_query = buf_take(&query);
	return true;
}

/* The server's time is what counts. */
static bool mend_clock(struct s3_call *call)
{
	char date[64];
	int64_t theirs;

	if (call->clock_mended || !http_head_get(&call->x.answer, "date", date, sizeof(date)))
		return false;
	theirs = http_date(date);
	if (theirs < 0)
		return false;
	call->clock_mended = true;
	atomic_store_explicit(&call->client->skew_s, theirs - clock_wall_ns() / NS_PER_S,
			      memory_order_relaxed);
	again(call, SERVER_CLOCK, 0);
	return true;
}

/* The file of credentials may hold newer ones. */
static bool renew(struct s3_call *call)
{
	struct s3_client *c = call->client;
	struct s3_credentials fresh;
	bool newer;

	if (call->renewed || s3_credentials_find(&fresh, c->options->profile, NULL) < 0)
		return false;
	call->renewed = true;
	pthread_mutex_lock(&c->lock);
	newer = strcmp(fresh.access_key, call->access_key) != 0 ||
		strcmp(fresh.secret, call->secret) != 0 ||
		strcmp(fresh.token ? fresh.token : "", call->token ? call->token : "") != 0;
	if (newer) {
		s3_credentials_release(&c->credentials);
		c->credentials = fresh;
		atomic_fetch_add_explicit(&c->version, 1, memory_order_release);
	} else {
		s3_credentials_release(&fresh);
	}
	pthread_mutex_unlock(&c->lock);
	if (newer)
		again(call, SERVER_EXPIRED, 0);
	return newer;
}

/* Before its first byte, or before the last ones of few. */
static void count_waits(const struct s3_call *call, struct s3_counts *n)
{
	const struct http_exchange *x = &call->x;
	int waited = server_waited(call->conn->fd, x->first_ns - x->sent_ns);

	if (!waited && x->got <= WAITS_BYTES)
		waited = server_waited(call->conn->fd, x->done_ns - x->first_ns);
	if (waited)
		count(waited > 0 ? &n->late_ack : &n->beside_ack, 1);
}

static void take_times(struct s3_call *call, bool reused)
{
	struct s3_counts *n = &call->at->counts;
	const struct http_exchange *x = &call->x;
	uint64_t first = (uint64_t)(x->first_ns - x->sent_ns), most;

	count(&n->answers, 1);
	count(&n->first_ns, first);
	count(&n->last_ns, (uint64_t)(x->done_ns - x->sent_ns));
	count(&n->body_received, x->got);
	count(&n->body_sent, x->body_n);
	if (reused)
		count_waits(call, n);
	most = atomic_load_explicit(&n->first_max_ns, memory_order_relaxed);
	while (first > most &&
	       !atomic_compare_exchange_weak_explicit(&n->first_max_ns, &most, first,
						      memory_order_relaxed, memory_order_relaxed))
		;
}

static void refused(struct s3_call *call)
{
	char code[S3_CODE_MAX];
	int status = call->status;

	s3_error_code(call, code);
	switch (status) {
	case 429:
	case 503:
		if (try_again(call, SERVER_BUSY, retry_after(call)))
			return;
		break;
	case 500:
	case 502:
	case 504:
		if (try_again(call, SERVER_ERROR, retry_after(call)))
			return;
		break;
	case 301:
	case 302:
	case 307:
	case 308:
		if (follow(call))
			return;
		break;
	case 400:
		if (strcmp(code, "RequestTimeout") == 0 && try_again(call, SERVER_TIME, 0))
			return;
		if (strcmp(code, "ExpiredToken") == 0 && renew(call))
			return;
		if ((strcmp(code, "AuthorizationHeaderMalformed") == 0 ||
		     call->kind == SERVER_HEAD) &&
		    follow(call))
			return;
		break;
	case 403:
		if ((strcmp(code, "RequestTimeTooSkewed") == 0 ||
		     (call->kind == SERVER_HEAD && s3_clock_differs(call))) &&
		    mend_clock(call))
			return;
		if ((strcmp(code, "ExpiredToken") == 0 ||
		     strcmp(code, "InvalidAccessKeyId") == 0) &&
		    renew(call))
			return;
		break;
	default:
		break;
	}
	complete(call, s3_refused(call, code));
}

static void answered(struct s3_call *call, bool reused)
{
	call->status = call->x.answer.status;
	call->got = call->into && call->status / 100 == 2 ? call->x.got : 0;
	take_times(call, reused);
	if (call->status / 100 == 2) {
		int rc = s3_take_answer(call);

		/* some answer 200 first and fail later */
		if (rc == S3_FAILED_LATER) {
			if (try_again(call, SERVER_ERROR, 0))
				return;
			rc = s3_refused(call, "InternalError");
		}
		complete(call, rc);
		return;
	}
	refused(call);
}

void s3_call_step(struct s3_call *call)
{
	if (call->state == S3_CALL_WAITING && clock_now_ns() >= call->not_before_ns)
		start(call);
	while (call->state == S3_CALL_RUNNING) {
		bool reused = call->conn->reused;
		enum http_end end = http_step(call->conn);

		if (end == HTTP_RUNNING)
			return;
		atomic_fetch_sub_explicit(&call->at->busy, 1, memory_order_relaxed);
		call->state = S3_CALL_IDLE;
		if (end == HTTP_DONE)
			answered(call, reused);
		else
			connection_failed(call, end, reused);
		if (call->state == S3_CALL_WAITING && clock_now_ns() >= call->not_before_ns)
			start(call);
	}
}

void s3_calls_wait(struct s3_call *const *calls, size_t n, bool any)
{
	struct http_connection *open[64];

	for (;;) {
		int64_t until = INT64_MAX;
		size_t running = 0, done = 0;

		for (size_t i = 0; i < n; i++) {
			s3_call_step(calls[i]);
			if (calls[i]->state == S3_CALL_DONE ||
			    (calls[i]->state == S3_CALL_RUNNING && calls[i]->x.full))
				done++;
			else if (calls[i]->state == S3_CALL_RUNNING && running < 64)
				open[running++] = calls[i]->conn;
			else if (calls[i]->state == S3_CALL_WAITING &&
				 calls[i]->not_before_ns < until)
				until = calls[i]->not_before_ns;
		}
		if (done == n || (any && done > 0))
			return;
		http_wait(open, running, until);
	}
}

int s3_call_run(struct s3_call *call, struct err *e)
{
	s3_call_begin(call);
	s3_calls_wait(&call, 1, false);
	if (call->rc < 0 && e)
		*e = call->err;
	return call->rc;
}
