#include "comm/meeting.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"

#define MAGIC 0x736b6d31u
/* Connections of this user's that have not said what they want, beside the processes to come. */
#define STRANGERS_MAX 16
#define RETRY_NS (NS_PER_S / 50)
/* Process 1 reports that process 0 is missing. The others wait this long before they do, so that
 * usually there is one message. */
#define OTHERS_WAIT_NS (NS_PER_S * 3 / 2)

enum answer { INVITED = 1, ENDED };

/* Both as every version of the program has them. The token goes where strangers come, too. */
struct hello {
	uint32_t magic, process, processes;
	char token[MEET_TOKEN];
};
struct welcome {
	uint32_t magic, answer;
	uint64_t bytes; /* that follow */
};

struct guest {
	int fd;
	pid_t pid;
	size_t have;
	struct hello said;
};

static struct {
	const struct meet_job *job;
	const struct meeting_point *at;
	size_t hello_bytes;
	uint32_t process, processes;
	int64_t deadline_ns;
} self;

static int seconds(void)
{
	return (int)(self.job->limit_ns / NS_PER_S);
}

/* ---- process 0 ---- */

static int listen_there(struct err *e)
{
	for (;;) {
		int fd = self.at->listen();

		if (fd >= 0)
			return fd;
		if (fd != -EADDRINUSE)
			return err_sys(e, -fd, "cannot listen for the other processes of %s %s",
				       self.job->launcher, self.at->where);
		/* the run before, in the same job, may just be beginning its work */
		if (clock_now_ns() > self.deadline_ns)
			return err_set(e, -EADDRINUSE,
				       "%s has the place at which the processes of %s meet (%s): "
				       "two runs of "
				       "one job cannot begin at once",
				       self.at->owner(), self.job->launcher, self.at->where);
		clock_sleep_until(clock_now_ns() + RETRY_NS);
	}
}

struct crowd {
	struct guest *guest;
	struct pollfd *poll;
	uint32_t guests, most;
	int *member; /* the socket of each process; -1: not here */
	uint32_t come;
};

static void drop(struct crowd *c, uint32_t i)
{
	close(c->guest[i].fd);
	c->guest[i] = c->guest[--c->guests];
}

static void let_in(struct crowd *c, int listener)
{
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		pid_t pid = 0;

		if (!self.at->trusts(fd, &pid)) {
			close(fd);
			continue;
		}
		if (c->guests == c->most)
			drop(c, 0);
		c->guest[c->guests++] = (struct guest){.fd = fd, .pid = pid};
	}
}

static int seat(struct crowd *c, const struct guest *g, struct err *e)
{
	if (g->said.processes != self.processes || g->said.process == 0 ||
	    g->said.process >= self.processes)
		return err_set(e, ERR_USAGE,
			       "process %u of %u (PID %d) came to process 0 of %u that %s started: "
			       "two runs of one job cannot begin at once",
			       g->said.process, g->said.processes, (int)g->pid, self.processes,
			       self.job->launcher);
	if (c->member[g->said.process] >= 0)
		return err_set(e, -EPROTO,
			       "two processes of %s (one has PID %d) have the same number, %u: two "
			       "runs of one job cannot begin at once",
			       self.job->launcher, (int)g->pid, g->said.process);
	c->member[g->said.process] = g->fd;
	c->come++;
	return 0;
}

static bool is_ours(const struct hello *h)
{
	return h->magic == MAGIC &&
	       (self.hello_bytes < sizeof(*h) || memcmp(h->token, self.at->token, MEET_TOKEN) == 0);
}

static int hear(struct crowd *c, struct err *e)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < c->guests;) {
		struct guest *g = &c->guest[i];
		ssize_t n = recv(g->fd, (char *)&g->said + g->have, self.hello_bytes - g->have,
				 MSG_DONTWAIT);

		if (n > 0)
			g->have += (size_t)n;
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) ||
		    (g->have == self.hello_bytes && !is_ours(&g->said))) {
			drop(c, i);
		} else if (g->have == self.hello_bytes) {
			rc = seat(c, g, e);
			if (rc == 0)
				c->guest[i] = c->guest[--c->guests];
		} else {
			i++;
		}
	}
	return rc;
}

/* A process that came and ended is not waited for. */
static int find_gone(const struct crowd *c, struct err *e)
{
	for (uint32_t p = 1; p < self.processes; p++) {
		char byte;

		if (c->member[p] >= 0 && recv(c->member[p], &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
			return err_set(e, -EPIPE,
				       "process %u of %u ended before all processes that %s "
				       "started were there",
				       p, self.processes, self.job->launcher);
	}
	return 0;
}

static int say_missing(const struct crowd *c, struct err *e)
{
	struct buf missing = {0};
	uint32_t named = 0;

	for (uint32_t p = 1; p < self.processes && named < 10; p++)
		if (c->member[p] < 0)
			buf_printf(&missing, "%s%u", named++ ? ", " : "", p);
	if (self.processes - 1 - c->come > named)
		buf_puts(&missing, ", ...");
	err_set(e, -ETIMEDOUT,
		"only %u of %u processes that %s started %s came within %d s; missing: "
		"%s. They may have ended before, or %s (STOKER_START_LIMIT=<s> waits longer)",
		c->come + 1, self.processes, self.job->launcher, self.at->where, seconds(),
		missing.data, self.at->else_why);
	buf_release(&missing);
	return e ? e->code : -ETIMEDOUT;
}

static int gather(struct crowd *c, int listener, struct err *e)
{
	int rc = 0;

	while (rc == 0 && c->come + 1 < self.processes) {
		int64_t left = self.deadline_ns - clock_now_ns();
		nfds_t n = 0;

		if (left <= 0)
			return say_missing(c, e);
		c->poll[n++] = (struct pollfd){.fd = listener, .events = POLLIN};
		for (uint32_t i = 0; i < c->guests; i++)
			c->poll[n++] = (struct pollfd){.fd = c->guest[i].fd, .events = POLLIN};
		for (uint32_t p = 1; p < self.processes; p++)
			c->poll[n++] = (struct pollfd){.fd = c->member[p], .events = POLLIN};
		if (poll(c->poll, n, (int)(left / 1000000) + 1) < 0 && errno != EINTR)
			return err_sys(e, errno, "cannot wait for the other processes");
		let_in(c, listener);
		rc = hear(c, e);
		if (rc == 0)
			rc = find_gone(c, e);
	}
	return rc;
}

static bool send_whole(int fd, const void *p, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t r = send(fd, (const char *)p + at, n - at, MSG_NOSIGNAL);

		if (r < 0 && errno != EINTR)
			return false;
		at += r > 0 ? (size_t)r : 0;
	}
	return true;
}

/* Tells all who came, and those who are only just there. */
static void answer_all(struct crowd *c, enum answer answer, const void *p, size_t n)
{
	struct welcome w = {.magic = MAGIC, .answer = answer, .bytes = n};

	for (uint32_t q = 1; q < self.processes; q++) {
		if (c->member[q] < 0)
			continue;
		if (send_whole(c->member[q], &w, sizeof(w)))
			send_whole(c->member[q], p, n);
		close(c->member[q]);
	}
	for (uint32_t i = 0; i < c->guests; i++) {
		if (!self.at->strangers)
			send_whole(c->guest[i].fd, &w, sizeof(w));
		close(c->guest[i].fd);
	}
}

static int receive_all(const void *p, size_t n, struct err *e)
{
	struct crowd c = {.most = self.processes + STRANGERS_MAX};
	int listener = listen_there(e), rc = listener < 0 ? listener : 0;

	c.guest = xcalloc(c.most, sizeof(*c.guest));
	c.poll = xcalloc(1 + c.most + self.processes, sizeof(*c.poll));
	c.member = xcalloc(self.processes, sizeof(*c.member));
	for (uint32_t q = 0; q < self.processes; q++)
		c.member[q] = -1;
	if (rc == 0)
		rc = gather(&c, listener, e);
	answer_all(&c, rc == 0 ? INVITED : ENDED, p, rc == 0 ? n : 0);
	if (listener >= 0)
		close(listener);
	free(c.guest);
	free(c.poll);
	free(c.member);
	return rc;
}

/* ---- the others ---- */

static bool read_whole(int fd, void *p, size_t n)
{
	for (size_t have = 0; have < n;) {
		int64_t left = self.deadline_ns + 2 * NS_PER_S - clock_now_ns();
		struct pollfd wait = {.fd = fd, .events = POLLIN};
		ssize_t r;

		if (left <= 0)
			return false;
		if (poll(&wait, 1, (int)(left / 1000000) + 1) <= 0)
			continue;
		r = recv(fd, (char *)p + have, n - have, MSG_DONTWAIT);
		if (r == 0 || (r < 0 && errno != EINTR && errno != EAGAIN))
			return false;
		have += r > 0 ? (size_t)r : 0;
	}
	return true;
}

static int not_there(struct err *e, const char *what)
{
	if (self.process > 1)
		clock_sleep_until(clock_now_ns() + OTHERS_WAIT_NS);
	return err_set(e, -ECONNREFUSED, "process %u of %u that %s started %s: %s", self.process,
		       self.processes, self.job->launcher, self.at->where, what);
}

static int find_process_0(int *out, struct err *e)
{
	bool stranger = false;
	char what[512];

	for (;;) {
		pid_t pid = 0;
		int fd = self.at->connect(self.deadline_ns);

		if (fd >= 0 && self.at->trusts(fd, &pid)) {
			*out = fd;
			return 0;
		}
		if (fd >= 0)
			close(fd);
		stranger = fd >= 0;
		if (clock_now_ns() > self.deadline_ns)
			break;
		clock_sleep_until(clock_now_ns() + RETRY_NS);
	}
	if (stranger)
		snprintf(what, sizeof(what), "%s has the place at which they meet",
			 self.at->owner());
	else
		snprintf(what, sizeof(what),
			 "process 0 did not come within %d s. It may have ended before, or %s "
			 "(STOKER_START_LIMIT=<s> waits longer)",
			 seconds(), self.at->else_why);
	return not_there(e, what);
}

static int join(void *p, size_t n, struct err *e)
{
	struct hello h = {.magic = MAGIC, .process = self.process, .processes = self.processes};
	struct welcome w = {0};
	int fd = -1, rc = find_process_0(&fd, e);

	if (rc < 0)
		return rc;
	memcpy(h.token, self.at->token, MEET_TOKEN);
	if (!send_whole(fd, &h, self.hello_bytes) || !read_whole(fd, &w, sizeof(w)))
		rc = not_there(e, "process 0 ended, or is stuck, before the run began");
	else if (w.magic == MAGIC &&
		 w.answer == ENDED) /* each of a launcher of pods has its own log */
		rc = self.at->strangers ? not_there(e, "process 0 gave up, and says why")
					: ERR_CANCELED;
	else if (w.magic != MAGIC || w.answer != INVITED || w.bytes != n)
		rc = not_there(e, "process 0 is another version of this program");
	else if (!read_whole(fd, p, n))
		rc = not_there(e, "process 0 ended before the run began");
	close(fd);
	return rc;
}

/* ---- the way ---- */

void meeting_begin(const struct meet_job *job, const struct meeting_point *at,
		   struct meet_place *place)
{
	self.job = job;
	self.at = at;
	self.hello_bytes = at->strangers ? sizeof(struct hello) : offsetof(struct hello, token);
	self.process = (uint32_t)job->process;
	self.processes = (uint32_t)job->processes;
	self.deadline_ns = clock_now_ns() + job->limit_ns;
	*place = (struct meet_place){self.process, self.processes};
}

int meeting_broadcast(void *p, size_t n, struct err *e)
{
	return self.process == 0 ? receive_all(p, n, e) : join(p, n, e);
}

void meeting_end(void)
{
}

/* The others are told as they come, for a moment: those who come later find nobody. */
void meeting_give_up(void)
{
	struct crowd c = {.most = self.processes + STRANGERS_MAX};
	int listener;

	self.deadline_ns = clock_now_ns() + NS_PER_S;
	listener = listen_there(NULL);
	if (listener < 0)
		return;
	c.guest = xcalloc(c.most, sizeof(*c.guest));
	c.poll = xcalloc(1 + c.most + self.processes, sizeof(*c.poll));
	c.member = xcalloc(self.processes, sizeof(*c.member));
	for (uint32_t q = 0; q < self.processes; q++)
		c.member[q] = -1;
	gather(&c, listener, NULL);
	answer_all(&c, ENDED, NULL, 0);
	close(listener);
	free(c.guest);
	free(c.poll);
	free(c.member);
}
