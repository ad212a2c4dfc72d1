/* The wire of PMI-1: lines of "key=value" words, one request and one answer at a time (MPICH,
 * src/pmi/src/pmi_v1.c; Slurm, src/plugins/mpi/pmi2/pmi1.c; Flux RFC 13). */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "comm/meet.h"

/* Servers read lines of up to 1024 bytes, and values may not hold blanks: bytes go as hexadecimal
 * digits, so many of them under a key. */
#define LINE_MAX_BYTES 1024
#define PART 240
/* Process 0 reports that others are missing. They wait this long before they do, so that usually
 * there is one message. */
#define OTHERS_WAIT_NS (2 * NS_PER_S)

static struct {
	const struct meet_job *job;
	int fd;
	uint32_t process;
	int64_t processes;
	int64_t deadline_ns;
	char kvs[257];
	char line[4 * LINE_MAX_BYTES];
	size_t have; /* of the next line */
	char input[4 * LINE_MAX_BYTES];
} self = {.fd = -1};

static int broken(struct err *e, const char *doing, const char *how)
{
	return err_set(e, -ECONNREFUSED, "process %u lost %s while it was %s: %s", self.process,
		       self.job->launcher, doing, how);
}

static int late(struct err *e)
{
	return err_set(e, self.process == 0 ? -ETIMEDOUT : -ECONNREFUSED,
		       "not all of the %lld processes that %s started came within %d s: one of "
		       "them has ended, or has not begun (STOKER_START_LIMIT=<s> waits longer)",
		       (long long)self.processes, self.job->launcher,
		       (int)(self.job->limit_ns / NS_PER_S));
}

static int read_line(const char *doing, struct err *e)
{
	for (;;) {
		char *end = memchr(self.input, '\n', self.have);
		int64_t left = self.deadline_ns - clock_now_ns();
		struct pollfd p = {.fd = self.fd, .events = POLLIN};
		ssize_t n;

		if (end) {
			size_t bytes = (size_t)(end - self.input);

			memcpy(self.line, self.input, bytes);
			self.line[bytes] = '\0';
			self.have -= bytes + 1;
			memmove(self.input, end + 1, self.have);
			return 0;
		}
		if (self.have == sizeof(self.input))
			return broken(e, doing, "an answer is too long");
		if (left <= 0)
			return late(e);
		if (poll(&p, 1, (int)(left / 1000000) + 1) <= 0)
			continue;
		n = recv(self.fd, self.input + self.have, sizeof(self.input) - self.have,
			 MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR && errno != ENOTSOCK))
			return broken(e, doing, n ? strerror(errno) : "the connection is closed");
		self.have += n > 0 ? (size_t)n : 0;
	}
}

/* Copies the value of a key=value word of the answer to `out` (`size` bytes); false: no such key,
 * or the value is too long. */
static bool value_of(const char *key, char *out, size_t size)
{
	size_t n = strlen(key);

	for (const char *p = self.line; *p; p += strcspn(p, " ")) {
		p += strspn(p, " ");
		if (strncmp(p, key, n) == 0 && p[n] == '=') {
			size_t length = strcspn(p + n + 1, " ");

			if (length >= size)
				return false;
			memcpy(out, p + n + 1, length);
			out[length] = '\0';
			return true;
		}
	}
	return false;
}

/* Sends a request and reads the answer of that name; `doing` is for sentences. */
__attribute__((format(printf, 4, 5))) static int ask(const char *answer, const char *doing,
						     struct err *e, const char *fmt, ...)
{
	char request[LINE_MAX_BYTES], word[64];
	int64_t status = 0;
	va_list ap;
	int rc, n;

	va_start(ap, fmt);
	n = vsnprintf(request, sizeof(request), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(request))
		return broken(e, doing, "the request is too long");
	for (int at = 0; at < n;) {
		ssize_t r = send(self.fd, request + at, (size_t)(n - at), MSG_NOSIGNAL);

		if (r < 0 && errno != EINTR)
			return broken(e, doing, strerror(errno));
		at += r > 0 ? (int)r : 0;
	}
	rc = read_line(doing, e);
	if (rc < 0)
		return rc;
	if (!value_of("cmd", word, sizeof(word)) || strcmp(word, answer) != 0)
		return broken(e, doing, "it speaks another version of PMI");
	if (value_of("rc", word, sizeof(word)) && (!str_to_i64(word, &status) || status != 0))
		return broken(e, doing, "it refuses the request");
	return 0;
}

/* To "host:port". */
static int connect_to_port(const char *where, struct err *e)
{
	const char *colon = strrchr(where, ':');
	const struct addrinfo ask = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *all = NULL;
	char host[256];
	int fd = -1, errnum = EHOSTUNREACH, unknown;

	if (!colon || colon == where || (size_t)(colon - where) >= sizeof(host))
		return err_set(e, -ECONNREFUSED,
			       "PMI_PORT is '%.80s': it is the host and port at which %s answers, "
			       "HOST:PORT",
			       where, self.job->launcher);
	memcpy(host, where, (size_t)(colon - where));
	host[colon - where] = '\0';
	unknown = getaddrinfo(host, colon + 1, &ask, &all);
	if (unknown)
		return err_set(e, -ECONNREFUSED, "process %u cannot reach %s at PMI_PORT=%.80s: %s",
			       self.process, self.job->launcher, where, gai_strerror(unknown));
	for (const struct addrinfo *i = all; i && fd < 0; i = i->ai_next) {
		int64_t left = self.deadline_ns - clock_now_ns();
		/* connecting waits no longer than this, either */
		const struct timeval most = {.tv_sec = left > 0 ? left / NS_PER_S : 0,
					     .tv_usec = 1};

		fd = socket(i->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0)
			continue;
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
		if (connect(fd, i->ai_addr, i->ai_addrlen) != 0) {
			errnum = errno == EINPROGRESS ? ETIMEDOUT : errno;
			close(fd);
			fd = -1;
		}
	}
	if (all)
		freeaddrinfo(all);
	if (fd < 0)
		return err_set(e, -ECONNREFUSED, "process %u cannot reach %s at PMI_PORT=%s: %s",
			       self.process, self.job->launcher, where, strerror(errnum));
	self.fd = fd;
	return 0;
}

/* A process that connects sends its number; the launcher answers with four lines, one of which is
 * how many processes there are. */
static int introduce(const char *doing, struct err *e)
{
	char word[32];
	int rc = ask("initack", doing, e, "cmd=initack pmiid=%u\n", self.process);

	for (int i = 0; rc == 0 && i < 3; i++) {
		rc = read_line(doing, e);
		if (rc == 0 && value_of("size", word, sizeof(word)) &&
		    (!str_to_i64(word, &self.processes) || self.processes < 1 ||
		     self.processes > INT32_MAX))
			rc = broken(e, doing, "it says no number of processes");
	}
	if (rc == 0 && self.processes <= self.process)
		rc = broken(e, doing, "it says another number of processes");
	return rc;
}

static int begin(const struct meet_job *job, struct meet_place *place, struct err *e)
{
	static const char doing[] = "introducing itself over PMI";
	const char *port = getenv("PMI_PORT"), *given = getenv("PMI_FD");
	int64_t fd = -1;
	int rc = 0;

	self.job = job;
	self.process = (uint32_t)job->process;
	self.processes = job->processes;
	self.have = 0;
	self.deadline_ns = clock_now_ns() + job->limit_ns + (job->process ? OTHERS_WAIT_NS : 0);
	/* the descriptor comes first, as in MPICH: a port may be an outer launcher's */
	if (port && !given) {
		rc = connect_to_port(port, e);
		if (rc == 0)
			rc = introduce(doing, e);
	} else if (!given || !str_to_i64(given, &fd) || fd < 0 || fd > INT32_MAX) {
		rc = err_set(e, -EBADF, "PMI_FD is no descriptor");
	} else {
		self.fd = (int)fd;
	}
	if (rc == 0)
		rc = ask("response_to_init", doing, e, "cmd=init pmi_version=1 pmi_subversion=1\n");
	if (rc == 0)
		rc = ask("maxes", doing, e, "cmd=get_maxes\n");
	if (rc == 0)
		rc = ask("my_kvsname", doing, e, "cmd=get_my_kvsname\n");
	if (rc == 0 && !value_of("kvsname", self.kvs, sizeof(self.kvs)))
		rc = broken(e, doing, "it names no space for keys");
	*place = (struct meet_place){self.process, (uint32_t)self.processes};
	return rc;
}

static int put(const unsigned char *p, size_t n, struct err *e)
{
	int rc = 0;

	for (size_t at = 0; rc == 0 && at < n; at += PART) {
		char digits[2 * PART + 1] = "";

		for (size_t i = 0; i < PART && at + i < n; i++)
			snprintf(digits + 2 * i, 3, "%02x", p[at + i]);
		rc = ask("put_result", "telling where it is over PMI", e,
			 "cmd=put kvsname=%s key=stoker-%zu value=%s\n", self.kvs, at / PART,
			 digits);
	}
	return rc;
}

static int nibble(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int get(unsigned char *p, size_t n, struct err *e)
{
	static const char doing[] = "asking over PMI where process 0 is";

	for (size_t at = 0; at < n; at += PART) {
		char digits[2 * PART + 1] = "";
		size_t part = n - at < PART ? n - at : PART;
		int rc = ask("get_result", doing, e, "cmd=get kvsname=%s key=stoker-%zu\n",
			     self.kvs, at / PART);

		if (rc < 0)
			return rc;
		if (!value_of("value", digits, sizeof(digits)) || strlen(digits) != 2 * part)
			return broken(e, doing, "the answer has another length");
		for (size_t i = 0; i < part; i++) {
			int high = nibble(digits[2 * i]), low = nibble(digits[2 * i + 1]);

			if (high < 0 || low < 0)
				return broken(e, doing, "the answer is not what process 0 said");
			p[at + i] = (unsigned char)(high << 4 | low);
		}
	}
	return 0;
}

static int broadcast(void *p, size_t n, struct err *e)
{
	int rc = self.process == 0 ? put(p, n, e) : 0;

	if (rc == 0)
		rc = ask("barrier_out", "waiting for the other processes over PMI", e,
			 "cmd=barrier_in\n");
	if (rc == 0 && self.process != 0)
		rc = get(p, n, e);
	return rc;
}

/* A launcher takes the end of a process that has not said this as a failure of all. */
static void end(void)
{
	ask("finalize_ack", "", NULL, "cmd=finalize\n");
	close(self.fd);
	self.fd = -1;
}

static void give_up(void)
{
	static const char request[] = "cmd=abort exitcode=1\n";

	send(self.fd, request, sizeof(request) - 1, MSG_NOSIGNAL);
}

const struct meet_way meet_over_pmi = {begin, broadcast, end, give_up};
