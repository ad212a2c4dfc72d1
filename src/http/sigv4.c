#include "http/sigv4.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/map.h"

#define ALGORITHM "AWS4-HMAC-SHA256"

void sigv4_time(int64_t seconds, char out[SIGV4_TIME_MAX])
{
	static _Thread_local int64_t last = INT64_MIN;
	static _Thread_local char text[SIGV4_TIME_MAX];
	const time_t t = (time_t)seconds;
	struct tm tm = {0};

	if (seconds == last) {
		memcpy(out, text, SIGV4_TIME_MAX);
		return;
	}
	gmtime_r(&t, &tm);
	snprintf(text, SIGV4_TIME_MAX, "%04u%02u%02uT%02u%02u%02uZ",
		 (unsigned)(tm.tm_year + 1900) % 10000, (unsigned)(tm.tm_mon + 1) % 100,
		 (unsigned)tm.tm_mday % 100, (unsigned)tm.tm_hour % 100, (unsigned)tm.tm_min % 100,
		 (unsigned)tm.tm_sec % 100);
	memcpy(out, text, SIGV4_TIME_MAX);
	last = seconds;
}

static void add(struct sha256 *h, const char *text)
{
	sha256_add(h, text, strlen(text));
}

static void hash_canonical(const struct sigv4_request *r, char hex[SHA256_HEX])
{
	struct sha256 h;

	sha256_begin(&h);
	add(&h, r->method);
	add(&h, "\n");
	add(&h, r->path);
	add(&h, "\n");
	add(&h, r->query ? r->query : "");
	add(&h, "\n");
	for (size_t i = 0; i < r->headers; i++) {
		add(&h, r->header[i].name);
		add(&h, ":");
		add(&h, r->header[i].value);
		add(&h, "\n");
	}
	for (size_t i = 0; i < r->headers; i++) {
		add(&h, i ? ";" : "\n");
		add(&h, r->header[i].name);
	}
	add(&h, "\n");
	add(&h, r->payload);
	sha256_end(&h, hex);
}

static void make_key(struct sigv4_key *key, const char *date, const char *secret,
		     const char *region, const char *service)
{
	uint64_t of = fnv1a_text(fnv1a_text(fnv1a_text(FNV_START, secret), region), service);
	unsigned char first[512];
	int n;

	if (key->of == of && strcmp(key->date, date) == 0)
		return;
	n = snprintf((char *)first, sizeof(first), "AWS4%s", secret);
	hmac_sha256(first, (size_t)n < sizeof(first) ? (size_t)n : sizeof(first) - 1, date,
		    strlen(date), key->key);
	hmac_sha256(key->key, SHA256_BYTES, region, strlen(region), key->key);
	hmac_sha256(key->key, SHA256_BYTES, service, strlen(service), key->key);
	hmac_sha256(key->key, SHA256_BYTES, "aws4_request", 12, key->key);
	snprintf(key->date, sizeof(key->date), "%s", date);
	key->of = of;
}

void sigv4_sign(struct buf *out, struct sigv4_key *key, const struct sigv4_request *r,
		const char *access_key, const char *secret, const char *region, const char *service)
{
	static const char digits[] = "0123456789abcdef";
	unsigned char signature[SHA256_BYTES];
	char date[9], canonical[SHA256_HEX], text[512], hex[2 * SHA256_BYTES];
	const char *const scope[] = {date, region, service, "aws4_request"};
	int n;

	memcpy(date, r->time, 8);
	date[8] = '\0';
	make_key(key, date, secret, region, service);
	hash_canonical(r, canonical);
	n = snprintf(text, sizeof(text), ALGORITHM "\n%s\n%s/%s/%s/aws4_request\n%s", r->time, date,
		     region, service, canonical);
	hmac_sha256(key->key, SHA256_BYTES, text,
		    (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1, signature);
	for (int i = 0; i < SHA256_BYTES; i++) {
		hex[2 * i] = digits[signature[i] >> 4];
		hex[2 * i + 1] = digits[signature[i] & 15];
	}
	buf_puts(out, ALGORITHM " Credential=");
	buf_puts(out, access_key);
	for (size_t i = 0; i < sizeof(scope) / sizeof(scope[0]); i++) {
		buf_putc(out, '/');
		buf_puts(out, scope[i]);
	}
	buf_puts(out, ", SignedHeaders=");
	for (size_t i = 0; i < r->headers; i++) {
		buf_puts(out, i ? ";" : "");
		buf_puts(out, r->header[i].name);
	}
	buf_puts(out, ", Signature=");
	buf_append(out, hex, sizeof(hex));
}
