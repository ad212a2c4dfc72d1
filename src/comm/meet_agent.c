/* The processes that 'stoker run --hosts' starts meet through the connections over which it started
 * them: each has a socket to the agent on its host, which passes on what process 0 says. Nothing of
 * it is in an argument or the environment. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "comm/meet.h"

static struct {
	const struct meet_job *job;
	int fd;
} self;

static int begin(const struct meet_job *job, struct meet_place *place, struct err *e)
{
	const char *given = getenv(MEET_AGENT_FD);
	int64_t fd;

	if (!given || !str_to_i64(given, &fd) || fd < 0 || fd > INT32_MAX)
		return err_set(e, -ECONNREFUSED, "%s names no connection", MEET_AGENT_FD);
	self.job = job;
	self.fd = (int)fd;
	*place = (struct meet_place){(uint32_t)job->process, (uint32_t)job->processes};
	return 0;
}

static int say(const char *p, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t r = send(self.fd, p + at, n - at, MSG_NOSIGNAL);

		if (r < 0 && errno != EINTR)
			return ERR_CANCELED;
		at += r > 0 ? (size_t)r : 0;
	}
	return 0;
}

static int hear(char *p, size_t n, struct err *e)
{
	int64_t end = clock_now_ns() + self.job->limit_ns;

	for (size_t have = 0; have < n;) {
		int64_t left = end - clock_now_ns();
		struct pollfd wait = {.fd = self.fd, .events = POLLIN};
		ssize_t r;

		if (left <= 0)
			return err_set(
				e, -ECONNREFUSED,
				"process %lld of %lld was not told within %d s where process "
				"0 is (STOKER_START_LIMIT=<s> waits longer)",
				(long long)self.job->process, (long long)self.job->processes,
				(int)(self.job->limit_ns / NS_PER_S));
		if (poll(&wait, 1, (int)(left / 1000000) + 1) <= 0)
			continue;
		r = recv(self.fd, p + have, n - have, MSG_DONTWAIT);
		if (r == 0 || (r < 0 && errno != EINTR && errno != EAGAIN))
			return ERR_CANCELED; /* who started this process says why */
		have += r > 0 ? (size_t)r : 0;
	}
	return 0;
}

static int broadcast(void *p, size_t n, struct err *e)
{
	return self.job->process == 0 ? say(p, n) : hear(p, n, e);
}

static void end(void)
{
	close(self.fd);
	self.fd = -1;
}

const struct meet_way meet_over_agent = {begin, broadcast, end, end};
