#pragma once
/* TLS through the system's libssl (OpenSSL 1.1 or 3), loaded when the first https address is used:
 * the program is linked with none. Certificates and host names are always checked. */
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

/* What every connection of the process shares; NULL with ERR_ABSENT where there is no libssl, or
 * another code when the file of certificates that AWS_CA_BUNDLE or SSL_CERT_FILE names cannot be
 * used. Loaded once; never released. Any thread. */
struct tls *tls_load(struct err *e);

struct tls_session;

enum tls_wait { TLS_FAILED = -1, TLS_ENDED = 0, TLS_WANTS_READ = -2, TLS_WANTS_WRITE = -3 };

/* A session over a connected socket that does not block, which remains the caller's. `host` is the
 * name that the certificate must have. */
struct tls_session *tls_begin(struct tls *t, int fd, const char *host, struct err *e);
/* 1 once it is done, or what it waits for; TLS_FAILED with the end of a sentence. */
int tls_handshake(struct tls_session *s, struct err *e);
/* Bytes, or one of enum tls_wait. */
ssize_t tls_read(struct tls_session *s, void *p, size_t n, struct err *e);
ssize_t tls_write(struct tls_session *s, const void *p, size_t n, struct err *e);
void tls_end(struct tls_session *s);
