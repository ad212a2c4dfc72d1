/* The agent on a host: starts the processes of a run there, passes on between them and the command
 * that started the agent, and ends them when that is gone. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "comm/meet.h"
#include "comm/net.h"
#include "launch/hosts.h"

struct member {
	pid_t pid; /* 0: ended */
	int fd[3]; /* meeting, standard output, error output; -1: closed */
};
static const enum hosts_message of_fd[3] = {HOSTS_INVITE, HOSTS_OUT, HOSTS_ERR};

struct agent {
	struct hosts_job job;
	char *texts;                  /* of the job's message; what follows points into it */
	char **argv, **env, **folder; /* folder: one text */
	struct member *member;
	uint32_t alive;
	struct buf in;
};

static void say_whole(const void *p, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t r = write(STDOUT_FILENO, (const char *)p + at, n - at);

		if (r < 0 && errno != EINTR)
			return; /* nobody hears it: that shows at the input */
		at += r > 0 ? (size_t)r : 0;
	}
}

static void say_message(enum hosts_message type, uint32_t process, const void *body, size_t bytes)
{
	struct hosts_head h = {HOSTS_MAGIC, type, process, (uint32_t)bytes};

	say_whole(&h, sizeof(h));
	say_whole(body, bytes);
}

static void say_failed(const char *what, const char *name, int errnum)
{
	char text[512];
	int n = snprintf(text, sizeof(text), "%s '%.300s': %s", what, name, strerror(errnum));

	say_message(HOSTS_FAILED, 0, text, (size_t)n);
}

/* ---- its processes ---- */

static _Noreturn void become_member(const struct agent *a, uint32_t i, const int fd[3], pid_t agent)
{
	char text[32];
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != agent)
		_exit(125);
	for (uint32_t v = 0; v < a->job.variables; v++)
		putenv(a->env[v]);
	snprintf(text, sizeof(text), "%u", a->job.processes);
	setenv("STOKER_HOSTS_SIZE", text, 1);
	snprintf(text, sizeof(text), "%u", a->job.first + i);
	setenv("STOKER_HOSTS_RANK", text, 1);
	snprintf(text, sizeof(text), "%u", a->job.count);
	setenv("STOKER_HOSTS_LOCAL", text, 1);
	snprintf(text, sizeof(text), "%d", fcntl(fd[0], F_DUPFD, 3));
	setenv(MEET_AGENT_FD, text, 1);
	dup2(null, STDIN_FILENO);
	dup2(fd[1], STDOUT_FILENO);
	dup2(fd[2], STDERR_FILENO);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	execv("/proc/self/exe", a->argv);
	_exit(126);
}

static int start_member(struct agent *a, uint32_t i)
{
	int meet[2], out[2], err[2];
	struct member *m = &a->member[i];
	pid_t self = getpid();

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, meet) != 0)
		return -errno;
	if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0)
		return -errno;
	m->pid = fork();
	if (m->pid < 0)
		return -errno;
	if (m->pid == 0)
		become_member(a, i, (const int[3]){meet[1], out[1], err[1]}, self);
	close(meet[1]);
	close(out[1]);
	close(err[1]);
	m->fd[0] = meet[0];
	m->fd[1] = out[0];
	m->fd[2] = err[0];
	for (int k = 0; k < 3; k++)
		fcntl(m->fd[k], F_SETFL, O_NONBLOCK);
	a->alive++;
	return 0;
}

static void signal_all(const struct agent *a, int sig)
{
	for (uint32_t i = 0; i < a->job.count; i++)
		if (a->member[i].pid > 0)
			kill(a->member[i].pid, sig);
}

static int status_of(int wait_status)
{
	return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

/* Of one process at a time: however much it says, the command is heard. */
#define PIECES 16

/* What a process has said; closed at its end. */
static void hear_member(struct agent *a, uint32_t i, int k)
{
	struct member *m = &a->member[i];
	char part[sizeof(struct net_invitation) > 65536 ? 1 : 65536];

	for (int pieces = 0; pieces < PIECES && m->fd[k] >= 0; pieces++) {
		ssize_t n = read(m->fd[k], part, sizeof(part));

		if (n > 0) {
			say_message(of_fd[k], a->job.first + i, part, (size_t)n);
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0 || errno != EAGAIN) {
			close(m->fd[k]);
			m->fd[k] = -1;
		}
		return;
	}
}

static void reap(struct agent *a)
{
	for (uint32_t i = 0; i < a->job.count; i++) {
		struct member *m = &a->member[i];
		int wait_status;
		int32_t status;

		if (m->pid <= 0 || waitpid(m->pid, &wait_status, WNOHANG) != m->pid)
			continue;
		m->pid = 0;
		a->alive--;
		/* all that it wrote is there; what it left behind may keep the pipes open */
		for (int k = 0; k < 3; k++) {
			hear_member(a, i, k);
			if (m->fd[k] >= 0)
				close(m->fd[k]);
			m->fd[k] = -1;
		}
		status = status_of(wait_status);
		say_message(HOSTS_END, a->job.first + i, &status, sizeof(status));
	}
}

/* ---- the command that started it ---- */

/* n texts, each with its NUL. */
static char **take_texts(const char **at, const char *end, uint32_t n)
{
	char **out = xcalloc((size_t)n + 1, sizeof(*out));

	for (uint32_t i = 0; i < n; i++) {
		const char *stop = memchr(*at, '\0', (size_t)(end - *at));

		if (!stop) {
			free(out);
			return NULL;
		}
		out[i] = (char *)(uintptr_t)*at;
		*at = stop + 1;
	}
	return out;
}

static bool take_job(struct agent *a, const char *body, size_t bytes)
{
	const char *at, *end;

	if (a->texts || bytes < sizeof(a->job))
		return false;
	a->texts = xcalloc(bytes + 1, 1);
	memcpy(a->texts, body, bytes);
	memcpy(&a->job, a->texts, sizeof(a->job));
	if (a->job.count == 0 || a->job.count > 65536 || a->job.arguments > bytes ||
	    a->job.variables > bytes)
		return false;
	at = a->texts + sizeof(a->job);
	end = a->texts + bytes;
	a->folder = take_texts(&at, end, 1);
	a->argv = a->folder ? take_texts(&at, end, a->job.arguments) : NULL;
	a->env = a->argv ? take_texts(&at, end, a->job.variables) : NULL;
	return a->env != NULL;
}

static void agent_release(struct agent *a)
{
	free(a->member);
	free(a->folder);
	free(a->argv);
	free(a->env);
	free(a->texts);
	buf_release(&a->in);
}

static bool begin_job(struct agent *a, const char *body, size_t bytes)
{
	struct err why = {0};
	int rc = 0;

	if (a->member || !take_job(a, body, bytes))
		return false;
	/* relative paths are those of the command's folder, or, without such a folder here, of the
	 * one in which ssh begins */
	if (chdir(a->folder[0]) != 0 && errno != ENOENT) {
		say_failed("cannot use the folder", a->folder[0], errno);
		return false;
	}
	if (hosts_descriptors(a->job.count, "processes", &why) < 0) {
		say_message(HOSTS_FAILED, 0, why.text, strlen(why.text));
		return false;
	}
	a->member = xcalloc(a->job.count, sizeof(*a->member));
	for (uint32_t i = 0; i < a->job.count; i++)
		a->member[i] = (struct member){.fd = {-1, -1, -1}};
	for (uint32_t i = 0; rc == 0 && i < a->job.count; i++)
		rc = start_member(a, i);
	if (rc < 0) {
		say_failed("cannot start", "stoker", -rc);
		signal_all(a, SIGKILL);
	}
	return rc == 0;
}

static void invite(const struct agent *a, const char *body, size_t bytes)
{
	for (uint32_t i = 0; i < a->job.count; i++)
		if (a->member[i].fd[0] >= 0 && a->job.first + i != 0 &&
		    send(a->member[i].fd[0], body, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			continue; /* it has ended, which is told */
}

static bool take_message(struct agent *a, const struct hosts_head *h, const char *body)
{
	int32_t sig;

	switch (h->type) {
	case HOSTS_JOB:
		return begin_job(a, body, h->bytes);
	case HOSTS_INVITE:
		if (a->member)
			invite(a, body, h->bytes);
		return true;
	case HOSTS_SIGNAL:
		if (a->member && h->bytes == sizeof(sig)) {
			memcpy(&sig, body, sizeof(sig));
			signal_all(a, sig);
		}
		return true;
	default:
		return false;
	}
}

/* false: the command is gone, or does not make sense. */
static bool hear_command(struct agent *a)
{
	struct hosts_head h;
	ssize_t n;

	if (!buf_room(&a->in, 65536))
		return false;
	n = read(STDIN_FILENO, a->in.data + a->in.len, 65536);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	if (n <= 0)
		return false;
	a->in.len += (size_t)n;
	while (a->in.len >= sizeof(h)) {
		memcpy(&h, a->in.data, sizeof(h));
		if (h.magic != HOSTS_MAGIC || h.bytes > HOSTS_BYTES_MAX)
			return false;
		if (a->in.len < sizeof(h) + h.bytes)
			return true;
		if (!take_message(a, &h, a->in.data + sizeof(h)))
			return false;
		a->in.len -= sizeof(h) + h.bytes;
		memmove(a->in.data, a->in.data + sizeof(h) + h.bytes, a->in.len);
	}
	return true;
}

static void relay(struct agent *a, int ends)
{
	struct pollfd *fds = NULL;
	bool heard = true;

	while (heard ? !a->member || a->alive : a->alive) {
		nfds_t n = 2;

		fds = xrealloc(fds,
			       (2 + 3 * (size_t)(a->member ? a->job.count : 0)) * sizeof(*fds));
		fds[0] = (struct pollfd){.fd = heard ? STDIN_FILENO : -1, .events = POLLIN};
		fds[1] = (struct pollfd){.fd = ends, .events = POLLIN};
		for (uint32_t i = 0; a->member && i < a->job.count; i++)
			for (int k = 0; k < 3; k++)
				fds[n++] =
					(struct pollfd){.fd = a->member[i].fd[k], .events = POLLIN};
		if (poll(fds, n, -1) < 0)
			continue;
		n = 2;
		for (uint32_t i = 0; a->member && i < a->job.count; i++)
			for (int k = 0; k < 3; k++)
				if (fds[n++].revents)
					hear_member(a, i, k);
		if (fds[1].revents) {
			struct signalfd_siginfo info;

			if (read(ends, &info, sizeof(info)) > 0)
				reap(a);
		}
		if (fds[0].revents && !hear_command(a)) {
			heard = false;
			if (a->member)
				signal_all(a, SIGTERM);
		}
	}
	free(fds);
}

int hosts_agent(int argc, char **argv)
{
	struct agent a = {0};
	sigset_t ends;
	int fd;

	if (argc > 0) { /* its copy is no longer needed */
		AUTO_FREE char *program = path_join(argv[0], "stoker");

		unlink(program);
		rmdir(argv[0]);
	}
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&ends);
	sigaddset(&ends, SIGCHLD);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	fd = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return 1;
	say_whole(HOSTS_MARK, sizeof(HOSTS_MARK) - 1);
	relay(&a, fd);
	agent_release(&a);
	return 0;
}
