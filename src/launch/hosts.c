/* The command that starts a run on several hosts: one ssh each, whose standard input and output are
 * the connection to the agent there. */
#include "launch/hosts.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/say.h"
#include "conf/opt.h"
#include "launch/launcher.h"
#include "os/signals.h"

#define PROCESSES_MAX 65536
#define PROGRAM_MAX (1u << 30)
/* After the first signal, or the end of process 0, nobody is waited for longer: a process that is
 * stuck leaves within ten seconds of itself. */
#define END_LIMIT_NS (30 * NS_PER_S)
/* After a second signal: a run ends by itself within SIGNALS_HURRY_S of it. */
#define HURRY_NS ((SIGNALS_HURRY_S + 2) * NS_PER_S)
/* What a program said last before it failed. */
#define LAST_MAX 400
/* Of one host at a time: however much it says, the others and the user are heard. */
#define PIECE 65536u
#define PIECES 16

extern char **environ;

struct remote {
	struct host_entry *host;
	_Atomic pid_t pid; /* of ssh; 0: ended; the thread of signals reads it */
	int to, from, err;
	bool here;          /* the agent has answered */
	size_t copied;      /* bytes of the program that were sent; then comes */
	struct buf out, in; /* what is to be sent; received and not yet understood */
	size_t sent;
	char last[LAST_MAX]; /* line of its error output */
	int status;          /* of ssh */
	uint32_t ended;      /* of its processes */
};

struct host_run {
	struct remote *remote;
	size_t count;
	uint32_t processes;
	struct buf copy;  /* the program, for all hosts; empty: it is there */
	struct buf words; /* of ssh, for sentences */
	bool invited;     /* process 0 has told where it is */
	bool said;        /* a process has said what is wrong */
	bool failed;      /* this command has */
	int first_status; /* of process 0; -1: not ended */
	int status;       /* the worst of the others */
	int64_t end_ns;   /* when all is ended by force; 0: not yet decided */
	int64_t limit_ns, begin_ns;
};

/* ---- the list ---- */

static bool name_is_sound(const char *name)
{
	if (!name[0] || name[0] == '-')
		return false;
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("._-@%[]:", *c))
			return false;
	return true;
}

static int take_host(const char *word, size_t n, struct host_entry *out, struct err *e)
{
	char text[sizeof(out->name)];
	const char *colon;
	int64_t processes = 1;

	if (n >= sizeof(text))
		return err_set(e, ERR_USAGE, "--hosts: the name '%.40s...' is too long", word);
	memcpy(text, word, n);
	text[n] = '\0';
	/* several colons: an IPv6 address, whose number of processes comes behind brackets */
	colon = strrchr(text, ':');
	if (colon && (strchr(text, ':') == colon || (colon > text && colon[-1] == ']'))) {
		if (!str_to_i64(colon + 1, &processes) || processes < 1 ||
		    processes > PROCESSES_MAX)
			return err_set(e, ERR_USAGE,
				       "--hosts: '%s': what follows the colon is the number of "
				       "processes on that host, 1 to %d",
				       text, PROCESSES_MAX);
		text[colon - text] = '\0';
	}
	if (!name_is_sound(text))
		return err_set(e, ERR_USAGE,
			       "--hosts: '%s' is not the name of a host: names are separated by "
			       "commas, as in node1,node2:4,user@node3",
			       text);
	*out = (struct host_entry){.processes = (uint32_t)processes};
	memcpy(out->name, text, sizeof(out->name));
	return 0;
}

int hosts_parse(const char *list, struct host_entry **out, size_t *count, struct err *e)
{
	struct host_entry *all = NULL;
	size_t n = 0;
	uint32_t first = 0;
	int rc = 0;

	for (const char *at = list; rc == 0; n++) {
		size_t length = strcspn(at, ",");

		all = xrealloc(all, (n + 1) * sizeof(*all));
		rc = take_host(at, length, &all[n], e);
		if (rc == 0) {
			all[n].first = first;
			first += all[n].processes;
			if (first > PROCESSES_MAX)
				rc = err_set(e, ERR_USAGE,
					     "--hosts: more than %d processes are too many",
					     PROCESSES_MAX);
		}
		if (!at[length]) {
			n++;
			break;
		}
		at += length + 1;
	}
	if (rc < 0) {
		free(all);
		return rc;
	}
	*out = all;
	*count = n;
	return 0;
}

/* ---- what is started ---- */

static void hosts_put_command(struct buf *out, const char *program, uint64_t bytes)
{
	struct buf script = {0};

	if (bytes) {
		buf_printf(
			&script,
			"umask 077 && d=$(mktemp -d \"${TMPDIR:-/tmp}/stoker.XXXXXX\") && head -c "
			"%llu > \"$d/stoker\" && chmod 700 \"$d/stoker\" && exec "
			"\"$d/stoker\" " HOSTS_AGENT " \"$d\"",
			(unsigned long long)bytes);
	} else {
		buf_puts(&script, "exec ");
		shell_put_word(&script, program);
		buf_puts(&script, " " HOSTS_AGENT);
	}
	/* whatever the user's shell is there */
	buf_puts(out, "exec sh -c ");
	shell_put_word(out, script.data);
	buf_release(&script);
}

static const char **ssh_words(const struct hosts_request *a, const char *host, const char *command,
			      struct host_run *c)
{
	static const char *const usual[] = {"ssh", "-o", "BatchMode=yes"};
	const char **argv = xcalloc(a->ssh_args->n + 8, sizeof(*argv));
	size_t n = 0;

	if (a->ssh)
		argv[n++] = a->ssh;
	for (size_t i = 0; !a->ssh && i < sizeof(usual) / sizeof(usual[0]); i++)
		argv[n++] = usual[i];
	for (size_t i = 0; i < a->ssh_args->n; i++)
		argv[n++] = a->ssh_args->v[i];
	if (c->words.len == 0)
		for (size_t i = 0; i < n; i++) {
			buf_puts(&c->words, i ? " " : "");
			shell_put_word(&c->words, argv[i]);
		}
	argv[n++] = host;
	argv[n] = command;
	return argv;
}

static _Noreturn void become_ssh(const char *const *argv, const int fd[3], pid_t parent)
{
	sigset_t none;

	/* what a terminal sends to its processes is for this command, which tells the agents */
	setsid();
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(125);
	for (int i = 0; i < 3; i++)
		dup2(fd[i], i);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	execvp(argv[0], (char *const *)(uintptr_t)argv);
	say(stderr, "%s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

static void close_pipes(int pipes[3][2])
{
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 2; k++)
			if (pipes[i][k] >= 0)
				close(pipes[i][k]);
}

/* The pipes of its standard input, output and error. */
static int start_remote(struct remote *r, const char *const *argv, struct err *e)
{
	int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}}, *in = pipes[0], *out = pipes[1],
	    *err = pipes[2];
	pid_t self = getpid();

	for (int i = 0; i < 3; i++)
		if (pipe2(pipes[i], O_CLOEXEC) != 0) {
			err_sys(e, errno, "cannot create a pipe");
			close_pipes(pipes);
			return e->code;
		}
	r->pid = fork();
	if (r->pid < 0) {
		r->pid = 0;
		err_sys(e, errno, "cannot create a process");
		close_pipes(pipes);
		return e->code;
	}
	if (r->pid == 0)
		become_ssh(argv, (const int[3]){in[0], out[1], err[1]}, self);
	close(in[0]);
	close(out[1]);
	close(err[1]);
	r->to = in[1];
	r->from = out[0];
	r->err = err[0];
	fcntl(r->to, F_SETFL, O_NONBLOCK);
	fcntl(r->from, F_SETFL, O_NONBLOCK);
	fcntl(r->err, F_SETFL, O_NONBLOCK);
	return 0;
}

static void send_message(struct remote *r, enum hosts_message type, const void *body, size_t bytes)
{
	struct hosts_head h = {HOSTS_MAGIC, type, 0, (uint32_t)bytes};

	if (r->to < 0)
		return;
	buf_append(&r->out, &h, sizeof(h));
	buf_append(&r->out, body, bytes);
}

static void put_text(struct buf *out, const char *s)
{
	buf_append(out, s, strlen(s) + 1);
}

/* The options that are for this command alone. */
static int own_words(const char *word)
{
	static const struct {
		const char *name;
		int words;
	} own[] = {{"--hosts", 2}, {"--ssh", 2}, {"--ssh-arg", 2}, {"--copy-binary", 1}};

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		size_t n = strlen(own[i].name);

		if (strncmp(word, own[i].name, n) == 0 && (!word[n] || word[n] == '='))
			return word[n] ? 1 : own[i].words;
	}
	return 0;
}

/* What does not differ from host to host. */
static void put_texts(struct buf *out, struct hosts_job *job, int argc, char **argv)
{
	AUTO_FREE char *folder = getcwd(NULL, 0);
	bool operands = false;

	put_text(out, folder ? folder : "/");
	put_text(out, "stoker");
	put_text(out, "run");
	job->arguments = 2;
	for (int i = 1; i < argc; i++) {
		int skip = operands ? 0 : own_words(argv[i]);

		operands = operands || strcmp(argv[i], "--") == 0;
		if (skip) {
			i += skip - 1;
			continue;
		}
		put_text(out, argv[i]);
		job->arguments++;
	}
	for (char **v = environ; *v; v++)
		if ((str_starts(*v, "STOKER_") && !str_starts(*v, "STOKER_HOSTS_")) ||
		    str_starts(*v, "DLIO_") || str_starts(*v, "AWS_") || str_starts(*v, "S3_")) {
			put_text(out, *v);
			job->variables++;
		}
}

static int read_program(struct buf *out, struct err *e)
{
	return file_read("/proc/self/exe", PROGRAM_MAX, out, e);
}

static int start_all(struct host_run *c, const struct hosts_request *a, int argc, char **argv,
		     struct err *e)
{
	char program[4096];
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	struct hosts_job job = {.processes = c->processes};
	struct buf texts = {0}, command = {0};
	int rc = 0;

	if (n <= 0)
		return err_set(e, -ENOENT, "cannot find the path of this program (/proc/self/exe)");
	program[n] = '\0';
	if (a->copy_binary)
		rc = read_program(&c->copy, e);
	put_texts(&texts, &job, argc, argv);
	hosts_put_command(&command, program, c->copy.len);
	for (size_t i = 0; rc == 0 && i < c->count; i++) {
		struct remote *r = &c->remote[i];
		const char **words = ssh_words(a, r->host->name, command.data, c);
		struct hosts_head h = {HOSTS_MAGIC, HOSTS_JOB, 0,
				       (uint32_t)(sizeof(job) + texts.len)};

		job.first = r->host->first;
		job.count = r->host->processes;
		rc = start_remote(r, words, e);
		buf_append(&r->out, &h, sizeof(h));
		buf_append(&r->out, &job, sizeof(job));
		buf_append(&r->out, texts.data, texts.len);
		free(words);
	}
	buf_release(&command);
	buf_release(&texts);
	return rc;
}

/* ---- while it runs ---- */

/* The signals that ask for the end come by a pipe from a thread of their own, which a reader of the
 * output that does not read cannot hold up. */
static struct {
	int pipe[2];
	const struct host_run *run;
	struct stop_flag stop;
} asked = {.pipe = {-1, -1}};

/* `limit_ns`: for what the processes have to end in, at most. */
static void signal_all(struct host_run *c, int32_t sig, int64_t limit_ns)
{
	int64_t end = clock_now_ns() + limit_ns;

	for (size_t i = 0; i < c->count; i++)
		send_message(&c->remote[i], HOSTS_SIGNAL, &sig, sizeof(sig));
	if (c->end_ns == 0 || end < c->end_ns)
		c->end_ns = end;
}

/* One sentence, and the end of all. */
__attribute__((format(printf, 2, 3))) static void fail(struct host_run *c, const char *fmt, ...)
{
	struct buf text = {0};
	va_list ap;

	/* by force the thread of signals ends it, and says so */
	if (!c->failed && !c->said && !signals_end_by_force()) {
		va_start(ap, fmt);
		buf_vprintf(&text, fmt, ap);
		va_end(ap);
		say(stderr, "stoker: %s\n", text.data);
		buf_release(&text);
	}
	if (!c->failed)
		signal_all(c, SIGTERM, END_LIMIT_NS);
	c->failed = true;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* true when all of it was sent. */
static bool send_from(struct remote *r, const struct buf *from, size_t *sent)
{
	while (r->to >= 0 && *sent < from->len) {
		ssize_t n = write(r->to, from->data + *sent, from->len - *sent);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return false;
		if (n < 0) /* it has ended: its output says so */
			close_fd(&r->to);
		else
			*sent += (size_t)n;
	}
	return true;
}

static void send_some(const struct host_run *c, struct remote *r)
{
	if (!send_from(r, &c->copy, &r->copied) || !send_from(r, &r->out, &r->sent))
		return;
	buf_release(&r->out);
	r->sent = 0;
}

static void note_end(struct host_run *c, struct remote *r, uint32_t process, int32_t status)
{
	r->ended++;
	if (process == 0)
		c->first_status = status;
	else if (status > c->status)
		c->status = status;
	if (status && !c->invited && process != 0)
		fail(c, "process %u on host '%s' ended with status %d before the run began",
		     process, r->host->name, status);
	/* no connection between the processes ends the others */
	if (!c->invited && !c->failed && c->processes > 1)
		signal_all(c, SIGTERM, END_LIMIT_NS);
}

static void take_message(struct host_run *c, struct remote *r, const struct hosts_head *h,
			 char *body)
{
	const struct buf text = {body, h->bytes, h->bytes};
	int32_t status;

	switch (h->type) {
	case HOSTS_INVITE:
		c->invited = true;
		for (size_t i = 0; i < c->count; i++)
			send_message(&c->remote[i], HOSTS_INVITE, body, h->bytes);
		break;
	case HOSTS_OUT:
		say_text(stdout, &text);
		fflush(stdout);
		break;
	case HOSTS_ERR:
		c->said = c->said || (h->bytes > 8 && memmem(body, h->bytes, "stoker: ", 8));
		say_text(stderr, &text);
		break;
	case HOSTS_END:
		if (h->bytes == sizeof(status)) {
			memcpy(&status, body, sizeof(status));
			note_end(c, r, h->process, status);
		}
		break;
	case HOSTS_FAILED:
		fail(c, "host '%s': %.*s", r->host->name, (int)h->bytes, body);
		break;
	default:
		fail(c, "host '%s' sent an invalid message", r->host->name);
		break;
	}
}

/* What comes before the agent's mark is a shell's. */
static bool skip_to_mark(struct remote *r)
{
	const char *mark =
		r->in.len ? memmem(r->in.data, r->in.len, HOSTS_MARK, sizeof(HOSTS_MARK) - 1)
			  : NULL;
	size_t n;

	if (!mark) {
		/* all but the beginning of a mark */
		n = r->in.len < sizeof(HOSTS_MARK) - 2 ? 0 : r->in.len - (sizeof(HOSTS_MARK) - 2);
		r->in.len -= n;
		memmove(r->in.data, r->in.data + n, r->in.len);
		return false;
	}
	n = (size_t)(mark - r->in.data) + sizeof(HOSTS_MARK) - 1;
	r->in.len -= n;
	memmove(r->in.data, r->in.data + n, r->in.len);
	r->here = true;
	return true;
}

static void understand(struct host_run *c, struct remote *r)
{
	struct hosts_head h;
	size_t at = 0;

	if (!r->here && !skip_to_mark(r))
		return;
	while (r->in.len - at >= sizeof(h)) {
		memcpy(&h, r->in.data + at, sizeof(h));
		if (h.magic != HOSTS_MAGIC || h.bytes > HOSTS_BYTES_MAX) {
			fail(c, "host '%s' sent an invalid message", r->host->name);
			close_fd(&r->from);
			break;
		}
		if (r->in.len - at - sizeof(h) < h.bytes)
			break;
		take_message(c, r, &h, r->in.data + at + sizeof(h));
		at += sizeof(h) + h.bytes;
	}
	r->in.len -= at;
	memmove(r->in.data, r->in.data + at, r->in.len);
}

static void hear(struct host_run *c, struct remote *r)
{
	for (int i = 0; i < PIECES && r->from >= 0; i++) {
		ssize_t n;

		if (!buf_room(&r->in, PIECE))
			return;
		n = read(r->from, r->in.data + r->in.len, PIECE);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			close_fd(&r->from);
			return;
		}
		r->in.len += (size_t)n;
		understand(c, r);
	}
}

/* ssh's own error output: its last line is the reason when it fails. */
static void hear_error(struct remote *r)
{
	char part[4096];
	ssize_t n;

	for (int i = 0; i < PIECES && r->err >= 0; i++) {
		char *line, *rest;

		n = read(r->err, part, sizeof(part) - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			close_fd(&r->err);
			return;
		}
		part[n] = '\0';
		for (line = strtok_r(part, "\r\n", &rest); line;
		     line = strtok_r(NULL, "\r\n", &rest))
			snprintf(r->last, sizeof(r->last), "%s", line);
	}
}

/* It has ended, and all it wrote was read. */
static void judge_end(struct host_run *c, struct remote *r)
{
	char how[64];

	/* after a signal that asks for the end it is no failure of the host */
	if (r->ended == r->host->processes || c->failed || stop_is_set(&asked.stop))
		return;
	if (WIFSIGNALED(r->status))
		snprintf(how, sizeof(how), "killed by signal %d", WTERMSIG(r->status));
	else
		snprintf(how, sizeof(how), "exit status %d", WEXITSTATUS(r->status));
	if (!r->here)
		fail(c, "host '%s': the program could not be started there with %s: %s (%s)",
		     r->host->name, c->words.data, r->last[0] ? r->last : "it said nothing", how);
	/* the other processes find it out, and say so, if they are already connected */
	else if (!c->invited)
		fail(c, "host '%s': the connection ended before the run began: %s (%s)",
		     r->host->name, r->last[0] ? r->last : "nothing was said", how);
}

static void reap(struct host_run *c)
{
	for (size_t i = 0; i < c->count; i++) {
		struct remote *r = &c->remote[i];

		if (r->pid <= 0 || waitpid(r->pid, &r->status, WNOHANG) != r->pid)
			continue;
		r->pid = 0;
		hear(c, r);
		hear_error(r);
		close_fd(&r->from);
		close_fd(&r->err);
		close_fd(&r->to);
		judge_end(c, r);
	}
}

/* true while there is something to wait for. */
static bool some_run(const struct host_run *c)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->remote[i].pid > 0)
			return true;
	return false;
}

static void keep_time(struct host_run *c)
{
	int64_t now = clock_now_ns();

	for (size_t i = 0; !c->failed && now - c->begin_ns > c->limit_ns && i < c->count; i++)
		if (!c->remote[i].here && c->remote[i].pid > 0)
			fail(c,
			     "host '%s' has not answered within %d s: it may be down, or %s waits "
			     "for an answer (STOKER_START_LIMIT=<s> waits longer)",
			     c->remote[i].host->name, (int)(c->limit_ns / NS_PER_S), c->words.data);
	for (size_t i = 0; i < c->count; i++) {
		struct remote *r = &c->remote[i];
		/* an agent that never answered has nothing to end */
		bool over = (c->end_ns && now > c->end_ns) ||
			    ((c->failed || stop_is_set(&asked.stop)) && !r->here);

		if (over && r->pid > 0)
			kill(-r->pid, SIGKILL);
	}
}

/* A process that cannot be reached any more is not waited for once process 0 has ended. */
static void note_first_end(struct host_run *c)
{
	if (c->first_status >= 0 && c->end_ns == 0)
		c->end_ns = clock_now_ns() + END_LIMIT_NS;
}

static void take_ends(struct host_run *c, int fd)
{
	struct signalfd_siginfo info;

	while (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		reap(c);
}

static void tell_signal(int sig)
{
	(void)!write(asked.pipe[1], &sig, sizeof(sig));
}

/* The ends of the connections end the processes behind them. */
static void end_remotes(void)
{
	for (size_t i = 0; i < asked.run->count; i++)
		if (asked.run->remote[i].pid > 0)
			kill(-asked.run->remote[i].pid, SIGKILL);
}

static void take_signals(struct host_run *c)
{
	int sig;

	while (read(asked.pipe[0], &sig, sizeof(sig)) == (ssize_t)sizeof(sig))
		signal_all(c, sig, stop_hurries(&asked.stop) ? HURRY_NS : END_LIMIT_NS);
}

static int listen_to_signals(const struct host_run *c, int *ends, struct err *e)
{
	const struct signal_work work = {
		.stop = &asked.stop, .hurries = true, .told = tell_signal, .last = end_remotes};
	sigset_t set;

	asked.run = c;
	if (pipe2(asked.pipe, O_CLOEXEC | O_NONBLOCK) != 0)
		return err_sys(e, errno, "cannot create a pipe");
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	*ends = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (*ends < 0)
		return err_sys(e, errno, "cannot wait for signals");
	return signals_start(&work, e);
}

static void carry_on(struct host_run *c, int ends)
{
	struct pollfd *fds = xcalloc(2 + 3 * c->count, sizeof(*fds));

	while (some_run(c)) {
		nfds_t n = 0;

		fds[n++] = (struct pollfd){.fd = ends, .events = POLLIN};
		fds[n++] = (struct pollfd){.fd = asked.pipe[0], .events = POLLIN};
		for (size_t i = 0; i < c->count; i++) {
			struct remote *r = &c->remote[i];

			fds[n++] = (struct pollfd){.fd = r->from, .events = POLLIN};
			fds[n++] = (struct pollfd){.fd = r->err, .events = POLLIN};
			fds[n++] = (struct pollfd){.fd = r->out.len > r->sent ? r->to : -1,
						   .events = POLLOUT};
		}
		poll(fds, n, 500);
		if (fds[1].revents)
			take_signals(c);
		n = 2;
		for (size_t i = 0; i < c->count; i++) {
			struct remote *r = &c->remote[i];

			if (fds[n++].revents)
				hear(c, r);
			if (fds[n++].revents)
				hear_error(r);
			if (fds[n++].revents)
				send_some(c, r);
		}
		if (fds[0].revents)
			take_ends(c, ends);
		note_first_end(c);
		keep_time(c);
	}
	free(fds);
}

static int outcome(const struct host_run *c)
{
	int status = c->first_status > 0 ? c->first_status : c->status;

	if (c->failed)
		return 1;
	return c->first_status < 0 && status == 0 ? 1 : status;
}

static int refuse_launcher(struct err *e)
{
	struct launcher l;

	launcher_find(&l);
	if (l.name && l.processes != 1)
		return err_set(
			e, ERR_USAGE,
			"--hosts starts the processes itself, and this one was started by %s: "
			"use one or the other",
			l.name);
	return 0;
}

int hosts_run(const struct hosts_request *a, int argc, char **argv, int *status, struct err *e)
{
	static struct host_run c; /* the thread of signals may look at it to the end */
	struct host_entry *host = NULL;
	struct err why = {0};
	int ends = -1, rc = refuse_launcher(e);

	c = (struct host_run){.first_status = -1, .begin_ns = clock_now_ns()};

	if (rc == 0)
		rc = hosts_parse(a->hosts, &host, &c.count, e);
	if (rc == 0)
		rc = hosts_descriptors(c.count, c.count == 1 ? "host" : "hosts", e);
	if (rc == 0)
		rc = launcher_start_limit(&c.limit_ns, e);
	if (rc < 0) {
		free(host);
		return rc;
	}
	c.remote = xcalloc(c.count, sizeof(*c.remote));
	for (size_t i = 0; i < c.count; i++) {
		c.remote[i] = (struct remote){.host = &host[i], .to = -1, .from = -1, .err = -1};
		c.processes += host[i].processes;
	}
	if (listen_to_signals(&c, &ends, &why) < 0 || start_all(&c, a, argc, argv, &why) < 0)
		fail(&c, "%s", why.text);
	carry_on(&c, ends);
	for (size_t i = 0; i < c.count; i++) {
		buf_release(&c.remote[i].out);
		buf_release(&c.remote[i].in);
		close_fd(&c.remote[i].to);
		close_fd(&c.remote[i].from);
		close_fd(&c.remote[i].err);
	}
	buf_release(&c.copy);
	buf_release(&c.words);
	*status = outcome(&c);
	/* processes that had not begun to look at signals say nothing */
	if (*status && stop_is_set(&asked.stop) && !c.said && !c.failed && !signals_end_by_force())
		say(stderr, "stoker: stopped by a signal\n");
	close_fd(&ends);
	free(host);
	return 0;
}

/* ---- the descriptors that many hosts or processes need ---- */

#define DESCRIPTORS_BESIDE 32 /* of the command itself, and pipes that are being made */

int hosts_descriptors(uint64_t n, const char *what, struct err *e)
{
	const uint64_t need = 3 * n + DESCRIPTORS_BESIDE;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= need)
		return 0;
	limit.rlim_cur = need < limit.rlim_max ? need : limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= need)
		return 0;
	return err_set(e, -EMFILE,
		       "%llu %s need %llu descriptors, and this process may have %llu: raise the "
		       "hard limit (ulimit -Hn)",
		       (unsigned long long)n, what, (unsigned long long)need,
		       (unsigned long long)limit.rlim_max);
}
