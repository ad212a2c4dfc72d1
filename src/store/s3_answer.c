#include "store/s3_answer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "http/xml.h"

#define SKEW_MAX 300
#define MESSAGE_MAX 200

static void copy(char *out, size_t size, const char *text)
{
	snprintf(out, size, "%.*s",
		 (int)utf8_whole(text, strlen(text) < size ? strlen(text) : size - 1), text);
}

/* Of the <Error> that a body is, if it is one. */
static void error_of(const struct s3_call *call, char *code, char *message)
{
	struct xml x;

	code[0] = '\0';
	message[0] = '\0';
	if (!call->text.len)
		return;
	xml_begin(&x, call->text.data, call->text.len);
	for (;;) {
		int event = xml_next(&x, NULL);

		if (event <= XML_END)
			break;
		if (event == XML_CLOSE && xml_is(&x, "Error/Code"))
			copy(code, S3_CODE_MAX, xml_text(&x));
		if (event == XML_CLOSE && xml_is(&x, "Error/Message"))
			copy(message, MESSAGE_MAX, xml_text(&x));
	}
	xml_end(&x);
}

void s3_error_code(const struct s3_call *call, char code[S3_CODE_MAX])
{
	char message[MESSAGE_MAX];

	error_of(call, code, message);
}

bool s3_clock_differs(const struct s3_call *call)
{
	char date[64];
	int64_t theirs, ours = clock_wall_ns() / NS_PER_S;

	if (!http_head_get(&call->x.answer, "date", date, sizeof(date)))
		return false;
	theirs = http_date(date);
	return theirs >= 0 && (theirs > ours ? theirs - ours : ours - theirs) > SKEW_MAX;
}

static const char *verb_of(enum server_request kind)
{
	static const char *const verbs[SERVER_REQUESTS] = {"read",
							   "look at",
							   "list",
							   "write",
							   "begin the upload of",
							   "upload a part of",
							   "complete the upload of",
							   "abort the upload of",
							   "copy to",
							   "remove"};

	return verbs[kind];
}

/* "s3://bucket/key", decoded. */
static char *name_of(const struct s3_call *call)
{
	const struct s3_client *c = call->client;
	char *name =
		xasprintf("s3://%s%s", c->options->bucket, call->path + strlen(c->bucket_path));

	url_decode(name);
	return name;
}

static int code_of(const struct s3_call *call, const char *code)
{
	switch (call->status) {
	case 404:
		return strcmp(code, "NoSuchBucket") == 0 ? -ENXIO : -ENOENT;
	case 401:
	case 403:
		return -EACCES;
	case 412:
		return ERR_DATA;
	case 416:
		return -ERANGE;
	case 507:
		return -ENOSPC;
	default:
		return -EIO;
	}
}

static const char *advice(const struct s3_call *call, const char *code)
{
	static const struct {
		const char *code, *advice;
	} known[] = {
		{"NoSuchBucket", "create the bucket, or name another one in storage.s3.bucket"},
		{"SignatureDoesNotMatch", "check the secret key and the region"},
		{"InvalidAccessKeyId", "check the access key and the endpoint"},
		{"ExpiredToken", "renew the credentials"},
		{"AccessDenied", "give these credentials the right to do it"},
		{"RequestTimeTooSkewed", "set the clock of this machine"},
		{"QuotaExceeded", "make room or raise the quota"},
		{"EntityTooSmall", "raise storage.s3.part_bytes"},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(known[i].code, code) == 0)
			return known[i].advice;
	switch (call->status) {
	case 301:
	case 307:
		return "use the endpoint and region where the bucket is";
	case 400: /* an answer to HEAD tells no code */
		return call->kind == SERVER_HEAD
			       ? "check the credentials, which may have expired, and "
				 "the region"
			       : NULL;
	case 403:
		return "check the credentials and their rights";
	case 404:
		return call->kind == SERVER_LIST ? "create the bucket, or name another one"
						 : "there is no such object";
	case 412:
		return "it was written anew while it was read";
	case 429:
	case 503:
		return "the server limits the rate: ask for less at once, or raise "
		       "storage.s3.retries";
	default:
		return NULL;
	}
}

int s3_refused(struct s3_call *call, const char *code)
{
	char own[S3_CODE_MAX], message[MESSAGE_MAX];
	AUTO_FREE char *name = name_of(call);
	const char *what = advice(call, code);

	error_of(call, own, message);
	if (!own[0])
		copy(own, sizeof(own), code);
	err_set(&call->err, code_of(call, code),
		"cannot %s '%.300s': %s answered %d%s%s%s%.200s%s%s%s", verb_of(call->kind), name,
		call->at->server.url.authority, call->status, own[0] ? " " : "", own,
		message[0] ? " (" : "", message, message[0] ? ")" : "", what ? "; " : "",
		what ? what : "");
	if (call->tries)
		str_append(call->err.text, sizeof(call->err.text), " (%u attempts)",
			   call->tries + 1);
	return err_named(call->err.code, &call->err);
}

int s3_not_answered(struct s3_call *call, enum http_end end)
{
	AUTO_FREE char *name = name_of(call);
	const char *what = NULL;

	if (end == HTTP_NO_CONNECTION)
		what = "check storage.s3.endpoints (or AWS_ENDPOINT_URL) and that the server runs";
	else if (end == HTTP_LATE_CONNECT || end == HTTP_LATE_FIRST || end == HTTP_LATE_IDLE)
		what = "the limits are storage.s3.connect_time, answer_time and idle_time";
	err_set(&call->err, call->x.err.code ? call->x.err.code : -EIO,
		"cannot %s '%.300s': the server %s %s%s%s", verb_of(call->kind), name,
		call->at->server.url.authority, call->x.err.text, what ? "; " : "",
		what ? what : "");
	if (call->err.code == -ENOENT)
		call->err.code = -EIO;
	if (call->tries)
		str_append(call->err.text, sizeof(call->err.text), " (%u attempts)",
			   call->tries + 1);
	return err_named(call->err.code, &call->err);
}

static int wrong(struct s3_call *call, const char *what)
{
	AUTO_FREE char *name = name_of(call);

	return err_named(err_set(&call->err, ERR_DATA, "cannot %s '%.300s': the server %s %s",
				 verb_of(call->kind), name, call->at->server.url.authority, what),
			 &call->err);
}

static bool take_number(const char **at, char end, uint64_t *out)
{
	const char *p = *at;
	uint64_t n = 0;

	for (; *p >= '0' && *p <= '9'; p++)
		if (n > UINT64_MAX / 10 - 1)
			return false;
		else
			n = n * 10 + (uint64_t)(*p - '0');
	if (p == *at || *p != end)
		return false;
	*at = p + (end != '\0');
	*out = n;
	return true;
}

/* "bytes 0-99/1000" has to be the range that was asked for, as far as the object goes. */
static int take_range(struct s3_call *call)
{
	const char *at;
	uint64_t from, to, all;
	char text[96];

	at = http_head_get(&call->x.answer, "content-range", text, sizeof(text)) &&
			     strncasecmp(text, "bytes ", 6) == 0
		     ? text + 6
		     : "";
	if (!take_number(&at, '-', &from) || !take_number(&at, '/', &to) ||
	    !take_number(&at, '\0', &all))
		return wrong(call, "sent a part of an object without a Content-Range");
	if (from != call->from || to < from || to >= all || all > INT64_MAX ||
	    to - from + 1 > call->n || (to - from + 1 < call->n && to + 1 != all))
		return wrong(call, "sent another range than the one that was asked for");
	if (call->got != to - from + 1)
		return wrong(call, "sent fewer bytes than its Content-Range says");
	call->length = all;
	return 0;
}

/* Whether the body is this element, to its end: an error, or nothing, can follow a status of 200.
 */
static bool is_result(const struct s3_call *call, const char *root)
{
	struct xml x;
	bool found = false;
	int event;

	if (!call->text.len)
		return false;
	xml_begin(&x, call->text.data, call->text.len);
	do {
		event = xml_next(&x, NULL);
		found = found || (event == XML_CLOSE && xml_is(&x, root));
	} while (event > XML_END);
	xml_end(&x);
	return found;
}

int s3_take_answer(struct s3_call *call)
{
	const struct http_head *h = &call->x.answer;
	char date[64];

	http_head_get(h, "etag", call->etag, sizeof(call->etag));
	if (strlen(call->etag) + 1 == sizeof(call->etag))
		call->etag[0] = '\0'; /* maybe cut */
	switch (call->kind) {
	case SERVER_GET:
		if (call->status == 206)
			return take_range(call);
		if (call->from > 0)
			return wrong(call,
				     "ignored the range that was asked for (it answered 200)");
		call->length = call->got;
		return 0;
	case SERVER_HEAD:
		if (h->has_length)
			call->length = h->length;
		else
			return wrong(call, "tells no length of the object");
		call->modified_s =
			http_head_get(h, "last-modified", date, sizeof(date)) ? http_date(date) : 0;
		return 0;
	case SERVER_PART:
		return call->etag[0] ? 0 : wrong(call, "gave a part no ETag");
	case SERVER_MULTIPART_END:
		return is_result(call, "CompleteMultipartUploadResult") ? 0 : S3_FAILED_LATER;
	case SERVER_COPY:
		return is_result(call, "CopyObjectResult") ? 0 : S3_FAILED_LATER;
	default:
		return 0;
	}
}

/* ---- bodies ---- */

static int bad_body(const struct s3_call *call, struct err *e, const char *what)
{
	return err_named(err_set(e, ERR_DATA, "cannot %s the bucket '%s': the server %s sent %s",
				 verb_of(call->kind), call->client->options->bucket,
				 call->at->server.url.authority, what),
			 e);
}

struct page {
	s3_list_fn fn;
	void *arg;
	char *key;
	uint64_t bytes;
	bool encoded, truncated;
};

static int take_element(struct page *p, const struct xml *x, struct buf *token)
{
	int rc = 0;

	if (xml_is(x, "ListBucketResult/Contents/Key") ||
	    xml_is(x, "ListBucketResult/CommonPrefixes/Prefix")) {
		free(p->key);
		p->key = xstrdup(xml_text(x));
		/* a plus that is one is %2B */
		for (char *c = p->encoded ? strchr(p->key, '+') : NULL; c; c = strchr(c, '+'))
			*c = ' ';
		if (p->encoded)
			url_decode(p->key);
	} else if (xml_is(x, "ListBucketResult/Contents/Size")) {
		if (!str_to_u64(xml_text(x), &p->bytes))
			p->bytes = 0;
	} else if (xml_is(x, "ListBucketResult/Contents") && p->key) {
		rc = p->fn(p->arg, p->key, false, p->bytes);
	} else if (xml_is(x, "ListBucketResult/CommonPrefixes") && p->key) {
		rc = p->fn(p->arg, p->key, true, 0);
	} else if (xml_is(x, "ListBucketResult/IsTruncated")) {
		p->truncated = strcmp(xml_text(x), "true") == 0;
	} else if (xml_is(x, "ListBucketResult/NextContinuationToken")) {
		buf_reset(token);
		buf_puts(token, xml_text(x));
	}
	return rc < 0 ? rc : 0;
}

/* Keys are encoded only where the server says that it did. */
static bool says_encoded(const struct s3_call *call)
{
	return call->text.data &&
	       memmem(call->text.data, call->text.len, "<EncodingType>url</EncodingType>", 32);
}

int s3_list_page(const struct s3_call *call, s3_list_fn fn, void *arg, struct buf *token,
		 bool *more, struct err *e)
{
	struct page p = {.fn = fn, .arg = arg, .encoded = says_encoded(call)};
	struct err why = {0};
	struct xml x;
	int event, rc = 0;

	buf_reset(token);
	xml_begin(&x, call->text.data ? call->text.data : "", call->text.len);
	while (rc == 0 && (event = xml_next(&x, &why)) > XML_END)
		if (event == XML_CLOSE)
			rc = take_element(&p, &x, token);
	xml_end(&x);
	free(p.key);
	if (rc < 0)
		return rc;
	if (event < 0)
		return bad_body(call, e, why.text);
	*more = p.truncated && token->len > 0;
	if (p.truncated && !token->len)
		return bad_body(call, e,
				"a page of a list that says neither its end nor how it goes "
				"on");
	return 0;
}

unsigned s3_count_uploads(const struct s3_call *call, struct buf *key)
{
	unsigned n = 0;
	struct xml x;
	int event;

	xml_begin(&x, call->text.data ? call->text.data : "", call->text.len);
	while ((event = xml_next(&x, NULL)) > XML_END) {
		if (event != XML_CLOSE)
			continue;
		n += xml_is(&x, "ListMultipartUploadsResult/Upload");
		if (xml_is(&x, "ListMultipartUploadsResult/Upload/Key") && !key->len)
			buf_puts(key, xml_text(&x));
	}
	xml_end(&x);
	return n;
}

int s3_upload_id(const struct s3_call *call, struct buf *id, struct err *e)
{
	struct err why = {0};
	struct xml x;
	int event;

	xml_begin(&x, call->text.data ? call->text.data : "", call->text.len);
	while ((event = xml_next(&x, &why)) > XML_END)
		if (event == XML_CLOSE && xml_is(&x, "InitiateMultipartUploadResult/UploadId")) {
			buf_reset(id);
			buf_puts(id, xml_text(&x));
		}
	xml_end(&x);
	if (event < 0 || !id->len || id->len > 1024)
		return bad_body(call, e,
				event < 0 ? why.text : "no id of the upload that it began");
	return 0;
}
