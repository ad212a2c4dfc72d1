/* stoker record: runs a command, whose processes record what they read and write. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/say.h"
#include "base/str.h"
#include "base/transfer.h"
#include "base/vector.h"
#include "cli/cli.h"
#include "cli/flags.h"
#include "trace/recording/record_folder.h"
#include "conf/quantity.h"
#include "launch/launcher.h"
#include "os/signals.h"
#include "recorder/ring.h"
#include "trace/recording/recording.h"

static struct stop_flag stop;

#define LIBRARY "libstoker_record.so"
#define LIMIT_DEFAULT ((uint64_t)2 << 30)
#define LIMIT_LEAST 65536
#define LEFT_NS (NS_PER_S)      /* for what the command left behind to end */
#define RANKS_NS (5 * NS_PER_S) /* for other ranks, once the first has ended */
#define UNRECORDED_SHOWN 5

enum { EXIT_NOT_RUN = 126, EXIT_NOT_FOUND = 127 };

struct record_args {
	struct str_list word; /* first: the operands */
	const char *output, *limit;
	bool anonymous, all;
};

struct recorded {
	struct record_folder folder;
	uint64_t limit;
	char *preload;
	pid_t pid;
	int status;           /* exit status of the command */
	const char *launches; /* the command, where it is a launcher; else NULL */
	bool ended;
	struct ring_end *end; /* of processes that were reaped; the last: of all */
	size_t ends, room, left;
};

/* ---- before the command ---- */

/* Beside the program, or where an installation has it. Heap string. */
static char *find_library(struct err *e)
{
	static const char *const places[] = {"", "../lib/", "../lib/stoker/"};
	AUTO_FREE char *self = path_of_program(e);
	AUTO_FREE char *dir = self ? path_dirname(self) : NULL;
	int why = ENOENT;

	if (!self)
		return NULL;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		AUTO_FREE char *path = xasprintf("%s/%s%s", dir, places[i], LIBRARY);
		char *real = access(path, R_OK) == 0 ? realpath(path, NULL) : NULL;

		if (!real) {
			why = why == ENOENT ? errno : why;
			continue;
		}
		if (!strpbrk(real, " :\t\n"))
			return real;
		err_set(e, ERR_USAGE,
			"%s: its name has a blank or colon, which LD_PRELOAD cannot carry: install "
			"the program in a folder without",
			real);
		free(real);
		return NULL;
	}
	err_set(e, ERR_USAGE, "%s: not found beside the program (%s) or in ../lib: %s", LIBRARY,
		dir, strerror(why));
	return NULL;
}

static int parse_limit(const char *text, uint64_t *out, struct err *e)
{
	char why[QUANTITY_WHY_MAX];
	long double v = 0;
	int64_t bytes;

	*out = LIMIT_DEFAULT;
	if (!text)
		return 0;
	if (quantity_read(text, "bytes", &v, why) != 1) {
		if (!str_to_i64(text, &bytes))
			return err_set(e, ERR_USAGE, "--limit: '%.40s' is no size, such as 500MB",
				       text);
		v = bytes;
	}
	if (v < LIMIT_LEAST || v > (long double)INT64_MAX / 2)
		return err_set(e, ERR_USAGE, "--limit: '%.40s' is not between %d bytes and 4 EiB",
			       text, LIMIT_LEAST);
	*out = (uint64_t)v;
	return 0;
}

static void set_variables(const struct recorded *j, const struct record_args *x)
{
	const char *others = getenv("LD_PRELOAD");
	char limit[32];

	snprintf(limit, sizeof(limit), "%" PRIu64, j->limit);
	setenv(RING_ENV_DIR, j->folder.path, 1);
	setenv(RING_ENV_LIB, j->preload, 1);
	setenv(RING_ENV_LIMIT, limit, 1);
	if (j->folder.key[0])
		setenv(RING_ENV_KEY, j->folder.key, 1);
	else
		unsetenv(RING_ENV_KEY);
	if (x->all)
		setenv(RING_ENV_ALL, "1", 1);
	else
		unsetenv(RING_ENV_ALL);
	if (others && *others) {
		bool last = strstr(others, RING_SANITIZER) != NULL;
		AUTO_FREE char *both =
			xasprintf("%s:%s", last ? others : j->preload, last ? j->preload : others);

		setenv("LD_PRELOAD", both, 1);
	} else {
		setenv("LD_PRELOAD", j->preload, 1);
	}
}

/* The command's name if it starts ranks, perhaps by daemons and on other hosts. */
static const char *launcher_name(const char *command)
{
	static const char *const names[] = {"srun",    "mpirun", "mpiexec",        "mpiexec.hydra",
					    "orterun", "prun",   "prterun",        "aprun",
					    "jsrun",   "ibrun",  "mpirun.openmpi", "mpirun.mpich"};
	const char *name = path_basename(command);

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return name;
	return NULL;
}

/* ---- the command ---- */

static const int passed[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH};

static void signals_of(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGCHLD);
	for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
		sigaddset(set, passed[i]);
}

/* Starts it; a program that cannot be executed gives its errno. */
static int start(struct recorded *j, char *const *argv, const sigset_t *was, struct err *e)
{
	int failed[2], error = 0;
	ssize_t n;

	if (pipe2(failed, O_CLOEXEC) < 0)
		return err_sys(e, errno, "no pipe");
	/* what the command leaves behind becomes a child of this process */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	j->pid = fork();
	if (j->pid < 0) {
		close(failed[0]);
		close(failed[1]);
		return err_sys(e, errno, "no process for the command");
	}
	if (j->pid == 0) {
		sigprocmask(SIG_SETMASK, was, NULL);
		signal(SIGXFSZ, SIG_DFL); /* main() ignores it */
		execvp(argv[0], argv);
		error = errno;
		(void)!write(failed[1], &error, sizeof(error));
		cli_leave(EXIT_NOT_FOUND);
	}
	close(failed[1]);
	do
		n = read(failed[0], &error, sizeof(error));
	while (n < 0 && errno == EINTR);
	close(failed[0]);
	if (n != (ssize_t)sizeof(error))
		return 0;
	waitpid(j->pid, NULL, 0);
	return error;
}

static void read_io(pid_t pid, struct ring_io *out)
{
	static const char *const names[] = {"rchar", "wchar",      "syscr",
					    "syscw", "read_bytes", "write_bytes"};
	uint64_t *const to[] = {&out->rchar, &out->wchar,      &out->syscr,
				&out->syscw, &out->read_bytes, &out->write_bytes};
	char path[64];
	struct buf text = {0};

	*out = (struct ring_io){0};
	snprintf(path, sizeof(path), "/proc/%ld/io", (long)pid);
	if (file_read(path, 4096, &text, NULL) == 0 && text.data) {
		out->known = 1;
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			char key[32];
			const char *p;

			snprintf(key, sizeof(key), "%s%s: ", i ? "\n" : "", names[i]);
			p = strstr(text.data, key);
			if (!p || sscanf(p + strlen(key), "%" SCNu64, to[i]) != 1)
				out->known = 0;
		}
	}
	buf_release(&text);
}

static void add_end(struct recorded *j, const struct ring_end *end)
{
	struct ring_end *to;

	VECTOR_PUSH(j->end, j->ends, j->room, *end);
	to = &j->end[j->ends - 1];
	memcpy(to->magic, RING_END_MAGIC, sizeof(to->magic));
	to->sum = ring_sum(RING_SUM, to, offsetof(struct ring_end, sum));
}

/* Takes all that has ended, with the kernel's counts, which vanish with it. False when nothing is
 * left. */
static bool reap(struct recorded *j)
{
	for (;;) {
		siginfo_t info = {0};
		struct ring_end end = {0};

		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
			return errno != ECHILD;
		if (info.si_pid == 0)
			return true;
		end.pid = info.si_pid;
		end.status = info.si_code == CLD_EXITED ? info.si_status : -info.si_status;
		end.end_ns = clock_now_ns();
		read_io(info.si_pid, &end.io);
		add_end(j, &end);
		waitpid(info.si_pid, NULL, 0);
		if (info.si_pid == j->pid) {
			j->ended = true;
			j->status =
				info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
		}
	}
}

/* The terminal sends its signals to the command, too; those that a process sent are passed on. */
static void pass(const struct recorded *j, const siginfo_t *info)
{
	if (info->si_signo != SIGCHLD && info->si_code <= 0 && !j->ended)
		kill(j->pid, info->si_signo);
}

static void watch(struct recorded *j, const sigset_t *set)
{
	struct timespec rest = {.tv_nsec = NS_PER_S / 20};
	int64_t until;
	siginfo_t info;

	while (reap(j) && !j->ended)
		if (sigwaitinfo(set, &info) > 0)
			pass(j, &info);
	until = clock_now_ns() + LEFT_NS;
	while ((j->left = reap(j)) && clock_now_ns() < until)
		(void)sigtimedwait(set, &info, &rest);
}

/* The first rank reports of all; it does not wait for one that never comes. */
static void await_ranks(const struct recorded *j)
{
	struct timespec rest = {.tv_nsec = NS_PER_S / 50};
	int64_t until = clock_now_ns() + RANKS_NS;

	while (j->folder.ranks > 1 && record_folder_done(&j->folder) < j->folder.ranks &&
	       clock_now_ns() < until)
		nanosleep(&rest, NULL);
}

/* ---- the report ---- */

static const char *bytes_of(uint64_t n, char out[32])
{
	return str_bytes((double)n, out, 32);
}

static const char *number_of(uint64_t n, const char *one, const char *more, char out[64])
{
	snprintf(out, 64, "%" PRIu64 " %s", n, n == 1 ? one : more);
	return out;
}

static void say_kernel(const struct recording_facts *f, struct buf *out)
{
	char a[32], b[32], c[32];

	if (!f->kernel_known) {
		buf_say(out,
			"  the kernel's counts are not known: nothing says whether all was seen\n");
		return;
	}
	buf_say(out, "  counted by the kernel  %s read, %s written (%s read from storage)\n",
		bytes_of(f->kernel_read, a), bytes_of(f->kernel_written, b),
		bytes_of(f->kernel_storage_read, c));
	buf_say(out, "  recorded               %s read, %s written\n", bytes_of(f->bytes_read, a),
		bytes_of(f->bytes_written, b));
	if (f->excluded_calls)
		buf_say(out,
			"    of that              %s read, %s written in %" PRIu64
			" calls on programs and libraries: only counted\n",
			bytes_of(f->excluded_read, a), bytes_of(f->excluded_written, b),
			f->excluded_calls);
	if (f->loader_read)
		buf_say(out, "  start of programs      %s read: before recording can begin\n",
			bytes_of(f->loader_read, a));
	buf_say(out, "  unseen                 %s read, %s written%s\n",
		bytes_of((uint64_t)f->unseen_read, a), bytes_of((uint64_t)f->unseen_written, b),
		f->unseen_read + f->unseen_written == 0 ? ""
		: f->unrecorded.n || f->unseen_written
			? ": by programs that were not recorded, or by calls that bypass libc"
			: ": by calls that bypass libc, such as those of the dynamic loader");
}

static void say_blind(const struct recording_facts *f, const struct recorded *j, struct buf *out)
{
	const struct {
		uint64_t n;
		const char *what, *one, *more, *before, *after;
	} gaps[] = {
		{f->cut_off, "cut off", "request", "requests", "",
		 ": a signal handler jumped away while they were recorded"},
		{f->killed, "killed", "process", "processes", "",
		 " without a recorded end; what was done before it is recorded"},
		{f->filtered, "filtered calls", "process", "processes", "",
		 " with seccomp(2): from there on, only what needs no call of the recorder is "
		 "recorded"},
		{f->filtered_children, "not recorded", "process", "processes", "",
		 " forked behind such a filter"},
		{f->cut, "cut", "process", "processes", "the files of ",
		 ", while they were written: by another program, or their file system had no "
		 "room"},
		{f->missing, "removed", "process", "processes", "the files of ",
		 ", by another program: what they had is missing"},
		{f->damaged, "damaged", "part", "parts", "", " of the recording"},
	};
	char a[32], b[32], n[64];

	if (j->launches && !f->ranked)
		buf_say(out,
			"  ranks                  none was recorded: let '%s' pass LD_PRELOAD and "
			"STOKER_RECORD_* on, or start 'stoker record' itself\n",
			j->launches);
	for (size_t i = 0; i < f->unrecorded.n && i < UNRECORDED_SHOWN; i++)
		buf_say(out, "  not recorded           %s\n", f->unrecorded.v[i]);
	if (f->unrecorded.n > UNRECORDED_SHOWN)
		buf_say(out, "  not recorded           %zu more programs\n",
			f->unrecorded.n - UNRECORDED_SHOWN);
	if (f->uring)
		buf_say(out,
			"  io_uring               used by %s: its requests are unseen, and not in "
			"the kernel's counts of "
			"read\n",
			number_of(f->uring, "process", "processes", n));
	if (f->mapped_files)
		buf_say(out,
			"  mapped files           %s of %s: page faults are unseen; %s came into "
			"memory, %" PRIu64 " faults waited for storage\n",
			number_of(f->mapped_files, "mapping", "mappings", n),
			bytes_of(f->mapped_bytes, a), bytes_of(f->mapped_came, b), f->major_faults);
	if (f->message_bytes)
		buf_say(out,
			"  messages of sockets    %s: network and other processes, not files\n",
			bytes_of(f->message_bytes, a));
	if (f->requests)
		buf_say(out, "  servers                %s over http; connections: %" PRIu64 "\n",
			number_of(f->requests, "request", "requests", n), f->connections);
	if (f->lost)
		buf_say(out, "  missing                %s: %s\n",
			number_of(f->lost, "request", "requests", n),
			f->full ? "the limit was reached (--limit)"
				: "no room, memory or descriptor for them");
	for (size_t i = 0; i < sizeof(gaps) / sizeof(gaps[0]); i++)
		if (gaps[i].n)
			buf_say(out, "  %-23s%s%s%s\n", gaps[i].what, gaps[i].before,
				number_of(gaps[i].n, gaps[i].one, gaps[i].more, n), gaps[i].after);
	for (size_t i = 0; i < f->harmed.n; i++)
		buf_say(out, "    %s\n", f->harmed.v[i]);
	if (j->left)
		buf_say(out,
			"  still running          processes that the command left behind: they "
			"go on recording\n");
}

static int report(const struct recorded *j, const char *shown, struct err *e)
{
	struct recording_facts f = {0};
	struct buf out = {0};
	char a[32], b[32], c[32], d[32], n[3][64];
	int rc;

	rc = recording_summary(j->folder.path, &f, e);
	if (rc < 0)
		return rc;
	buf_say(&out, "recorded: %s, %s, %s, %s read, %s written; %s in '%s' (limit %s)\n",
		number_of(f.processes, "process", "processes", n[0]),
		number_of(f.files, "file", "files", n[1]),
		number_of(f.events, "request", "requests", n[2]), bytes_of(f.bytes_read, a),
		bytes_of(f.bytes_written, b), bytes_of(f.folder_bytes, c), shown,
		bytes_of(j->limit, d));
	if (f.processes == 0 && f.unrecorded.n == 0 && !f.damaged && !f.missing)
		buf_say(&out,
			"  nothing was recorded: the programs do not load LD_PRELOAD (static, "
			"set-user-ID, another libc, or a container), or there was no room in the "
			"folder\n");
	say_kernel(&f, &out);
	say_blind(&f, j, &out);
	buf_puts(&out, "next: stoker explain ");
	shell_put_word(&out, shown);
	buf_putc(&out, '\n');
	say_text(stderr, &out);
	buf_release(&out);
	recording_facts_release(&f);
	return 0;
}

/* ---- the whole ---- */

/* Searches PATH for a program name without a slash. Heap string; NULL: not found. */
static char *search(const char *file)
{
	const char *path = getenv("PATH");

	for (size_t n; path && *path; path += n + (path[n] == ':')) {
		n = strcspn(path, ":");
		AUTO_FREE char *dir = xstrndup(path, n);
		char *whole = path_join(dir, file);

		if (n > 0 && access(whole, X_OK) == 0)
			return whole;
		free(whole);
	}
	return NULL;
}

static enum ring_image image_of(const char *file)
{
	char head[IMAGE_HEAD] __attribute__((aligned(8))), interpreter[256];
	AUTO_FREE char *found = NULL;
	enum ring_image image = RING_IMAGE_UNKNOWN;

	found = strchr(file, '/') ? xstrdup(file) : search(file);
	for (int i = 0; found && i < IMAGE_INTERPRETERS; i++) {
		struct stat st;
		int fd = file_open(found, &st, NULL);
		ssize_t n = fd < 0 ? -1 : pread_fully(fd, head, sizeof(head), 0);

		if (fd >= 0)
			close(fd);
		if (n < 0)
			break;
		if (st.st_mode & S_ISUID && st.st_uid != getuid())
			return RING_IMAGE_SETUID;
		image = ring_image_of(head, n, interpreter, sizeof(interpreter));
		if (!*interpreter)
			break;
		free(found);
		found = xstrdup(interpreter);
	}
	return image;
}

static void add_total(struct recorded *j, const char *command)
{
	struct ring_end all = {.io.known = 1, .image = image_of(command), .status = j->status};

	for (size_t i = 0; i < j->ends; i++) {
		const struct ring_io *io = &j->end[i].io;

		all.io.known = all.io.known && io->known;
		all.io.rchar += io->rchar;
		all.io.wchar += io->wchar;
		all.io.syscr += io->syscr;
		all.io.syscw += io->syscw;
		all.io.read_bytes += io->read_bytes;
		all.io.write_bytes += io->write_bytes;
	}
	add_end(j, &all);
}

static int record(struct record_args *x, int *status, struct err *e)
{
	const char *command = x->word.v[0];
	struct launcher l;
	struct recorded j = {0};
	struct err ignored = {0};
	sigset_t set, was;
	int rc;

	launcher_find(&l);
	if (l.name)
		(void)launcher_way(&l, &ignored);
	rc = parse_limit(x->limit, &j.limit, e);
	if (rc == 0 && !(j.preload = find_library(e)))
		rc = e->code;
	if (rc == 0)
		rc = record_folder_begin(&j.folder, x->output, l.name ? l.job.name : NULL,
					 l.processes, x->anonymous, e);
	if (rc < 0) {
		free(j.preload);
		return rc;
	}
	j.launches = launcher_name(command);
	set_variables(&j, x);
	signals_of(&set);
	sigprocmask(SIG_BLOCK, &set, &was);
	str_list_add(&x->word, NULL); /* the end, for execvp */
	rc = start(&j, x->word.v, &was, e);
	if (rc > 0) {
		record_folder_undo(&j.folder);
		*status = rc == ENOENT || rc == ENOTDIR ? EXIT_NOT_FOUND : EXIT_NOT_RUN;
		err_sys(e, rc, "'%s' cannot be executed", command);
		(void)cli_fail(e);
		rc = 0;
	} else if (rc == 0) {
		watch(&j, &set);
		/* the rest is quick, or waits for storage: then a second signal ends it */
		(void)signals_start(&(struct signal_work){.stop = &stop}, NULL);
		*status = j.status;
		add_total(&j, command);
		if (record_folder_ends(&j.folder, j.end, j.ends, e) < 0)
			(void)cli_fail(e);
		record_folder_end(&j.folder);
		if (l.process <= 0)
			await_ranks(&j);
		if (l.process <= 0 && report(&j, j.folder.path, e) < 0)
			(void)cli_fail(e);
	}
	free(j.preload);
	free(j.end);
	return rc;
}

static int record_main(const struct command *c, int argc, char **argv)
{
	struct record_args x = {0};
	struct err e = {0};
	int status = 0, rc = flags_parse(c, &x, argc, argv, flags_list_operand, &e);

	if (rc == 0 && x.word.n == 0)
		rc = err_set(&e, ERR_USAGE, "'record' needs a command: stoker record -- COMMAND");
	if (rc == 0)
		rc = record(&x, &status, &e);
	str_list_release(&x.word);
	return rc < 0 ? cli_fail(&e) : rc > 0 ? 0 : status;
}

#define FLAG_ARGS struct record_args

/* clang-format off */
static const struct flag *const flags[] = {
	F(OPERAND, "COMMAND",
	  "the program and its arguments, after '--'; the exit status is the program's"),
	F(TEXT, "--output", "DIR", output,
	  "folder of the recording (default: recording, recording-2, ...)", .letter = "-o"),
	F(TEXT, "--limit", "SIZE", limit,
	  "of the recording on each host (default: 2GiB); requests beyond are only counted"),
	F(SET, "--anonymize", anonymous,
	  "replace the parts of names by hashes with a random key that is not kept; leave out "
	  "command lines, environment, host and user"),
	F(SET, "--all", all,
	  "record requests to programs and libraries, too (/usr, /lib, /proc, site-packages, "
	  "*.py), which are only counted otherwise"),
	NULL};
/* clang-format on */

const struct command command_record = {
	.name = "record",
	.operands = "-- COMMAND...",
	.help = "Run a program and record what its processes read and write.",
	.about = "A library is loaded into the processes (LD_PRELOAD). At the end the kernel's "
		 "counts are compared with what was recorded, and what is unseen is named: page "
		 "faults of mapped files, io_uring, static programs. Under a launcher all ranks "
		 "record into one folder. Nothing leaves the machine.",
	.flags = flags,
	.examples = {"stoker record -o job_of_today -- sort examples/my_job.yaml",
		     "stoker record -o private --anonymize -- cat examples/my_job.yaml"},
	.carry_out = record_main,
};
