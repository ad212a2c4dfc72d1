/* Child processes. */
#include "os/child.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/file_out.h"
#include "base/ending.h"
#include "base/str.h"

#define POLL_NS (NS_PER_S / 50)

/* In the child, between fork and exec: only what is safe there. Never returns. */
static void become(const char *const *argv, int log_fd, int report_fd, pid_t parent)
{
	sigset_t none;
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), errnum;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(125);
	if (null >= 0)
		dup2(null, STDIN_FILENO);
	if (log_fd >= 0) {
		dup2(log_fd, STDOUT_FILENO);
		dup2(log_fd, STDERR_FILENO);
	}
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execvp(argv[0], (char *const *)(uintptr_t)argv);
	errnum = errno;
	while (write(report_fd, &errnum, sizeof(errnum)) < 0 && errno == EINTR)
		;
	_exit(127);
}

static ssize_t read_all(int fd, void *p, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t got = read(fd, (char *)p + done, n - done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		done += (size_t)got;
	}
	return (ssize_t)done;
}

int child_start(struct child *c, const char *const *argv, const char *log, struct err *e)
{
	pid_t parent = getpid();
	int report[2], log_fd = -1, errnum = 0, rc = 0;

	*c = (struct child){0};
	if (pipe2(report, O_CLOEXEC) < 0)
		return err_sys(e, errno, "starting '%s'", argv[0]);
	if (log) {
		log_fd = file_append_ours(log, 0644, e);
		rc = log_fd < 0 ? log_fd : 0;
	}
	if (rc == 0) {
		c->pid = fork();
		if (c->pid == 0)
			become(argv, log_fd, report[1], parent);
		if (c->pid < 0) {
			c->pid = 0;
			rc = err_sys(e, errno, "starting '%s'", argv[0]);
		}
	}
	close(report[1]);
	if (c->pid) {
		setpgid(c->pid, c->pid); /* whoever is first; the loser's error means nothing */
		if (read_all(report[0], &errnum, sizeof(errnum)) == (ssize_t)sizeof(errnum)) {
			child_wait(c, -1);
			rc = err_sys(e, errnum, "starting '%s'", argv[0]);
		}
	}
	close(report[0]);
	if (log_fd >= 0)
		close(log_fd);
	return rc;
}

/* An end takes time where there is much memory to give back. */
#define ENDING_NS NS_PER_S

/* Whether it has been ending for long enough; waitpid has said that it has not ended. */
static bool gave_up(struct child *c)
{
	int64_t now = clock_now_ns();
	int status;

	if (!process_ends(c->pid, &status)) {
		c->ending_ns = 0;
		return false;
	}
	if (c->ending_ns == 0)
		c->ending_ns = now;
	if (now - c->ending_ns < ENDING_NS)
		return false;
	c->status = status;
	c->pid = 0;
	return true;
}

static bool reap(struct child *c, int options)
{
	pid_t got;

	do
		got = waitpid(c->pid, &c->status, options);
	while (got < 0 && errno == EINTR);
	if (got == 0)
		return gave_up(c);
	c->pid = 0;
	return true;
}

bool child_wait(struct child *c, int64_t timeout_ns)
{
	int64_t deadline = clock_now_ns() + timeout_ns;

	if (c->pid == 0)
		return true;
	if (timeout_ns < 0)
		deadline = INT64_MAX;
	for (;;) {
		int64_t left = deadline - clock_now_ns();

		if (reap(c, WNOHANG))
			return true;
		if (left <= 0)
			return false;
		clock_sleep_until(clock_now_ns() + (left < POLL_NS ? left : POLL_NS));
	}
}

static void child_signal(const struct child *c, int sig)
{
	if (c->pid > 0)
		kill(-c->pid, sig);
}

/* Its end after SIGKILL takes this long at most, unless it cannot end. */
#define KILL_NS (10 * NS_PER_S)

void child_end(struct child *c, int64_t grace_ns, const struct stop_flag *hurry)
{
	int64_t deadline = clock_now_ns() + grace_ns;
	bool again = false;

	child_signal(c, SIGTERM);
	while (!child_wait(c, POLL_NS)) {
		if (clock_now_ns() >= deadline) {
			child_signal(c, SIGKILL);
			child_wait(c, KILL_NS);
			return;
		}
		if (!again && stop_hurries(hurry)) {
			child_signal(c, SIGTERM);
			again = true;
		}
	}
}

void child_end_rest(pid_t group)
{
	if (group > 1)
		kill(-group, SIGKILL);
}

int child_outcome(const struct child *c, char *out, size_t out_size)
{
	if (WIFEXITED(c->status) && WEXITSTATUS(c->status) == 0) {
		snprintf(out, out_size, "ended well");
		return 0;
	}
	if (WIFEXITED(c->status)) {
		snprintf(out, out_size, "ended with status %d", WEXITSTATUS(c->status));
		return WEXITSTATUS(c->status);
	}
	snprintf(out, out_size, "was killed by signal %d (%s)", WTERMSIG(c->status),
		 strsignal(WTERMSIG(c->status)));
	return 128 + WTERMSIG(c->status);
}

/* ---- what a child of the program said in its log ---- */

#define LOG_BYTES_MAX (16u << 20)

/* Launchers put rules and empty lines around what they say. */
static bool says_something(const char *line)
{
	for (const char *p = line; *p; p++)
		if (isalpha((unsigned char)*p))
			return true;
	return false;
}

void child_log_reason(const char *log, const char *outcome, const char *kept, char *out,
		      size_t out_size)
{
	AUTO_FREE char *how = xstrdup(outcome);
	struct buf text = {0};
	const char *best = NULL, *last = NULL;

	if (file_read(log, LOG_BYTES_MAX, &text, NULL) == 0 && text.data) {
		for (char *line = text.data, *next; line; line = next) {
			next = line + strcspn(line, "\r\n");
			if (*next)
				*next++ = '\0';
			else
				next = NULL;
			if (str_starts(line, "stoker: ") && !str_starts(line, "stoker: warning"))
				best = line + 8;
			if (says_something(line) && (!last || strstr(line, ": ")))
				last = line;
		}
	}
	if (best)
		snprintf(out, out_size, "%.900s", best);
	else
		snprintf(out, out_size, "the command %s%s%.400s; see %s", how, last ? ": " : "",
			 last ? last : "", kept);
	buf_release(&text);
}

/* Room for an environment: the kernel allows at most a quarter of the stack limit. */
#define FILE_MAX ((size_t)4 << 20)

static bool read_of(pid_t pid, const char *name, struct buf *out)
{
	char path[64];
	ssize_t n = 1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	buf_reset(out);
	while (n > 0 && out->len < FILE_MAX) {
		char part[4096];

		n = read(fd, part, sizeof(part));
		if (n > 0)
			buf_append(out, part, (size_t)n);
	}
	close(fd);
	return n >= 0 && out->data;
}

/* Parent and time of start: the 4th and the 22nd field, the second of which is a name with anything
 * in it. */
static bool read_stat(pid_t pid, pid_t *parent, uint64_t *start, struct buf *text)
{
	const char *rest = read_of(pid, "stat", text) ? strrchr(text->data, ')') : NULL;
	unsigned long long began;
	int above;

	if (!rest || sscanf(rest + 1,
			    " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
			    "%*d %*d %llu",
			    &above, &began) != 2)
		return false;
	*parent = above;
	*start = began;
	return true;
}

static bool has_mark(pid_t pid, const char *mark, struct buf *text)
{
	size_t n = strlen(mark) + 1;

	if (!read_of(pid, "environ", text))
		return false;
	for (const char *p = text->data; p < text->data + text->len; p += strlen(p) + 1)
		if ((size_t)(text->data + text->len + 1 - p) >= n && memcmp(p, mark, n) == 0)
			return true;
	return false;
}

size_t ancestors_to_launcher(const char *mark, struct ancestor out[ANCESTORS_MAX])
{
	struct buf text = {0};
	pid_t pid = getppid(), parent;
	size_t n = 0;
	bool found = false;

	while (pid > 0 && n < ANCESTORS_MAX && !found) {
		out[n].pid = pid;
		if (!read_stat(pid, &parent, &out[n].start, &text))
			break;
		found = !has_mark(pid, mark, &text);
		n++;
		pid = parent;
	}
	buf_release(&text);
	return found ? n : 0;
}

/* ---- this process ---- */

void process_drop_outputs(void)
{
	int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
	DIR *d = opendir("/proc/self/fd");
	struct dirent *entry;

	while (d && (entry = readdir(d))) {
		char what[64] = "";
		int64_t fd;

		if (str_to_i64(entry->d_name, &fd) && fd != dirfd(d) &&
		    readlinkat(dirfd(d), entry->d_name, what, sizeof(what) - 1) > 0 &&
		    (str_starts(what, "pipe:[") || str_starts(what, "socket:[") ||
		     str_starts(what, "/dev/pts/")))
			/* another thread may close it at the same time: both are the end of it,
			 * which only the C library's call would have a sanitizer call a race */
			syscall(SYS_dup3, nowhere, (int)fd, O_CLOEXEC);
	}
	if (d)
		closedir(d);
}
