#include "http/tls.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Of openssl/ssl.h and tls1.h, the same in 1.1 and 3. */
#define VERIFY_PEER 1
#define ERROR_WANT_READ 2
#define ERROR_WANT_WRITE 3
#define ERROR_SYSCALL 5
#define ERROR_ZERO_RETURN 6
#define CTRL_SET_TLSEXT_HOSTNAME 55
#define CTRL_SET_MIN_PROTO_VERSION 123
#define CTRL_MODE 33
#define CTRL_SET_READ_AHEAD 41
#define MODE_PARTIAL_WRITE_MOVING_BUFFER 3
#define TLS1_2 0x0303

#define RECEIVE_BYTES 65536

struct tls {
	void *context;
	const void *(*method)(void);
	void *(*context_new)(const void *);
	void (*context_free)(void *);
	void (*set_verify)(void *, int, void *);
	long (*context_ctrl)(void *, int, long, void *);
	int (*default_paths)(void *);
	int (*load_locations)(void *, const char *, const char *);
	void (*buffer_size)(void *, size_t);
	void *(*session_new)(void *);
	void (*session_free)(void *);
	int (*set_fd)(void *, int);
	long (*ctrl)(void *, int, long, void *);
	int (*set_host)(void *, const char *);
	void *(*param)(void *);
	int (*set_ip)(void *, const char *);
	int (*connect)(void *);
	int (*read)(void *, void *, int);
	int (*write)(void *, const void *, int);
	int (*get_error)(const void *, int);
	long (*verify_result)(const void *);
	const char *(*verify_text)(long);
	unsigned long (*error)(void);
	void (*error_text)(unsigned long, char *, size_t);
	void (*clear_errors)(void);
};

struct tls_session {
	struct tls *tls;
	void *ssl;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tls *loaded;

static const char *look_up(void *handle, struct tls *t)
{
	const struct {
		const char *name;
		void **to;
	} functions[] = {
		{"TLS_client_method", (void **)&t->method},
		{"SSL_CTX_new", (void **)&t->context_new},
		{"SSL_CTX_free", (void **)&t->context_free},
		{"SSL_CTX_set_verify", (void **)&t->set_verify},
		{"SSL_CTX_ctrl", (void **)&t->context_ctrl},
		{"SSL_CTX_set_default_verify_paths", (void **)&t->default_paths},
		{"SSL_CTX_load_verify_locations", (void **)&t->load_locations},
		{"SSL_CTX_set_default_read_buffer_len", (void **)&t->buffer_size},
		{"SSL_new", (void **)&t->session_new},
		{"SSL_free", (void **)&t->session_free},
		{"SSL_set_fd", (void **)&t->set_fd},
		{"SSL_ctrl", (void **)&t->ctrl},
		{"SSL_set1_host", (void **)&t->set_host},
		{"SSL_get0_param", (void **)&t->param},
		{"X509_VERIFY_PARAM_set1_ip_asc", (void **)&t->set_ip},
		{"SSL_connect", (void **)&t->connect},
		{"SSL_read", (void **)&t->read},
		{"SSL_write", (void **)&t->write},
		{"SSL_get_error", (void **)&t->get_error},
		{"SSL_get_verify_result", (void **)&t->verify_result},
		{"X509_verify_cert_error_string", (void **)&t->verify_text},
		{"ERR_get_error", (void **)&t->error},
		{"ERR_error_string_n", (void **)&t->error_text},
		{"ERR_clear_error", (void **)&t->clear_errors},
	};

	for (size_t i = 0; i < COUNT(functions); i++) {
		*functions[i].to = dlsym(handle, functions[i].name);
		if (!*functions[i].to)
			return functions[i].name;
	}
	return NULL;
}

/* The file that the environment names, or the usual places, of which distributions have several. */
static int trust(struct tls *t, struct err *e)
{
	static const char *const usual[] = {"/etc/ssl/certs/ca-certificates.crt",
					    "/etc/pki/tls/certs/ca-bundle.crt",
					    "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"};
	const char *named = getenv("AWS_CA_BUNDLE");

	if (!named || !*named)
		named = getenv("SSL_CERT_FILE");
	if (named && *named) {
		if (t->load_locations(t->context, named, NULL) == 1)
			return 0;
		return err_set(e, ERR_USAGE,
			       "the file of certificates '%.300s', which AWS_CA_BUNDLE or "
			       "SSL_CERT_FILE names, cannot be used: name a file in PEM format",
			       named);
	}
	t->default_paths(t->context);
	for (size_t i = 0; i < COUNT(usual); i++)
		if (t->load_locations(t->context, usual[i], NULL) == 1)
			break;
	t->clear_errors();
	return 0;
}

static struct tls *load(struct err *e)
{
	static const char *const names[] = {"libssl.so.3", "libssl.so.1.1", "libssl.so"};
	struct tls *t = xcalloc(1, sizeof(*t));
	const char *lacks = NULL;
	void *handle = NULL;

	for (size_t i = 0; i < COUNT(names) && !handle; i++) {
		handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
		lacks = handle ? look_up(handle, t) : NULL;
		if (lacks) {
			dlclose(handle);
			handle = NULL;
		}
	}
	if (!handle) {
		free(t);
		if (lacks)
			err_set(e, ERR_ABSENT,
				"https needs OpenSSL 1.1 or 3, but the libssl that is installed "
				"lacks %s: install another one, or use an http:// endpoint",
				lacks);
		else
			err_set(e, ERR_ABSENT,
				"https needs libssl.so.3 or libssl.so.1.1 (OpenSSL), which this "
				"machine does not have: install it (package libssl3 or "
				"openssl-libs), or use an http:// endpoint");
		return NULL;
	}
	t->context = t->context_new(t->method());
	if (!t->context)
		out_of_memory();
	t->context_ctrl(t->context, CTRL_SET_MIN_PROTO_VERSION, TLS1_2, NULL);
	t->context_ctrl(t->context, CTRL_MODE, MODE_PARTIAL_WRITE_MOVING_BUFFER, NULL);
	/* else each record, of at most 16 KiB, costs two calls of the system */
	t->context_ctrl(t->context, CTRL_SET_READ_AHEAD, 1, NULL);
	t->buffer_size(t->context, RECEIVE_BYTES);
	t->set_verify(t->context, VERIFY_PEER, NULL);
	if (trust(t, e) < 0) {
		t->context_free(t->context);
		free(t);
		return NULL;
	}
	return t;
}

struct tls *tls_load(struct err *e)
{
	pthread_mutex_lock(&lock);
	if (!loaded)
		loaded = load(e);
	pthread_mutex_unlock(&lock);
	return loaded;
}

struct tls_session *tls_begin(struct tls *t, int fd, const char *host, struct err *e)
{
	struct tls_session *s = xcalloc(1, sizeof(*s));
	struct in6_addr address;
	bool is_ip =
		inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1;
	int ok;

	s->tls = t;
	t->clear_errors();
	s->ssl = t->session_new(t->context);
	if (!s->ssl)
		out_of_memory();
	ok = is_ip ? t->set_ip(t->param(s->ssl), host) == 1
		   : t->set_host(s->ssl, host) == 1 && t->ctrl(s->ssl, CTRL_SET_TLSEXT_HOSTNAME, 0,
							       (void *)(uintptr_t)host) == 1;
	if (!ok || t->set_fd(s->ssl, fd) != 1) {
		tls_end(s);
		err_set(e, -EINVAL, "has a name that TLS cannot check");
		return NULL;
	}
	return s;
}

static int outcome(struct tls_session *s, int rc, const char *verb, struct err *e)
{
	struct tls *t = s->tls;
	int saved = errno, why = t->get_error(s->ssl, rc);
	unsigned long code;
	long verified;
	char text[256];

	switch (why) {
	case ERROR_WANT_READ:
		return TLS_WANTS_READ;
	case ERROR_WANT_WRITE:
		return TLS_WANTS_WRITE;
	case ERROR_ZERO_RETURN:
		return TLS_ENDED;
	default:
		break;
	}
	code = t->error();
	verified = t->verify_result(s->ssl);
	if (verified != 0) {
		err_set(e, -EPERM,
			"has a certificate that cannot be trusted (%s): name the file of the "
			"authority that signed it in AWS_CA_BUNDLE",
			t->verify_text(verified));
		return TLS_FAILED;
	}
	if (why == ERROR_SYSCALL && code == 0) {
		if (saved == 0 || saved == EPIPE || saved == ECONNRESET) {
			err_set(e, -ECONNRESET, "closed the connection");
			return TLS_ENDED;
		}
		err_sys(e, saved, "%s", verb);
		return TLS_FAILED;
	}
	t->error_text(code, text, sizeof(text));
	err_set(e, -EPROTO, "%s (%s)", verb, text);
	t->clear_errors();
	/* OpenSSL 3 tells the end of a connection without a farewell as an error */
	return strstr(text, "unexpected eof") ? TLS_ENDED : TLS_FAILED;
}

/* The library writes without MSG_NOSIGNAL: the signal of a connection that is gone is taken back.
 * Without bytes it is the handshake. */
static int quietly(struct tls_session *s, const void *p, int n)
{
	const struct timespec now = {0};
	sigset_t pipe_alone, before, pending;
	int rc, saved;

	sigemptyset(&pipe_alone);
	sigaddset(&pipe_alone, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe_alone, &before);
	errno = 0;
	rc = p ? s->tls->write(s->ssl, p, n) : s->tls->connect(s->ssl);
	saved = errno;
	if (!sigismember(&before, SIGPIPE)) {
		if (rc <= 0 && sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE))
			sigtimedwait(&pipe_alone, NULL, &now);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	errno = saved;
	return rc;
}

int tls_handshake(struct tls_session *s, struct err *e)
{
	int rc = quietly(s, NULL, 0);

	if (rc == 1)
		return 1;
	return outcome(s, rc, "could not agree on TLS", e);
}

ssize_t tls_read(struct tls_session *s, void *p, size_t n, struct err *e)
{
	int rc;

	errno = 0;
	rc = s->tls->read(s->ssl, p, n < INT_MAX ? (int)n : INT_MAX);
	return rc > 0 ? rc : outcome(s, rc, "could not be received from through TLS", e);
}

ssize_t tls_write(struct tls_session *s, const void *p, size_t n, struct err *e)
{
	int rc = quietly(s, p, n < INT_MAX ? (int)n : INT_MAX);

	return rc > 0 ? rc : outcome(s, rc, "could not be sent to through TLS", e);
}

void tls_end(struct tls_session *s)
{
	if (!s)
		return;
	s->tls->clear_errors();
	s->tls->session_free(s->ssl);
	free(s);
}
