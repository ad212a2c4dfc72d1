#pragma once
/* Amazon's signature, version 4: of requests in their canonical form. */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "codec/digest.h"

#define SIGV4_TIME_MAX 17 /* "20150830T123600Z" and a zero */
#define SIGV4_UNSIGNED "UNSIGNED-PAYLOAD"

struct sigv4_header {
	const char *name, *value; /* in lower case; trimmed */
};

/* The key of a day, kept until the next. Zero it before its first use. */
struct sigv4_key {
	unsigned char key[SHA256_BYTES];
	char date[9];
	uint64_t of; /* a hash of what else it was made of */
};

struct sigv4_request {
	const char *method;
	const char *path;                  /* encoded, begins with / */
	const char *query;                 /* encoded, sorted, every parameter with its = */
	const char *payload;               /* SHA-256 in hex, or SIGV4_UNSIGNED */
	const struct sigv4_header *header; /* sorted by name */
	size_t headers;
	const char *time; /* as the header x-amz-date has it */
};

/* Seconds since 1970 as such a time. */
void sigv4_time(int64_t seconds, char out[SIGV4_TIME_MAX]);
/* Appends the value of the header Authorization. Pure but for `key`, which is the caller's
 * thread's.
 */
void sigv4_sign(struct buf *out, struct sigv4_key *key, const struct sigv4_request *r,
		const char *access_key, const char *secret, const char *region,
		const char *service);
