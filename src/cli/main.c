/* The program: picks the subcommand, or takes DLIO's command line when called by its name. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <jansson.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/program.h"
#include "base/file.h"
#include "base/log.h"
#include "base/say.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/complete.h"
#include "cli/flags.h"
#include "launch/hosts.h"
#include "launch/launcher.h"
#include "os/child.h"
#include "os/signals.h"
#include "result/json_out.h"
#include "result/json_room.h"
#include "workload/secret.h"

#define DOCUMENT_BYTES_MAX (1u << 30)

/* ---- what is printed arrives ---- */

/* The first failure of each stream. */
static int failed[STDERR_FILENO + 1];
static char text[BUFSIZ]; /* of standard output */
static bool only_json;    /* nothing else is written there */

static ssize_t put(void *cookie, const char *p, size_t n)
{
	int fd = (int)(intptr_t)cookie;
	size_t done = fd == STDOUT_FILENO && only_json ? n : 0;

	while (done < n) {
		ssize_t w = write(fd, p + done, n - done);

		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0 && errno == EAGAIN) {
			struct pollfd ready = {.fd = fd, .events = POLLOUT};

			poll(&ready, 1, -1);
			continue;
		}
		if (w <= 0) {
			if (!failed[fd])
				failed[fd] = w < 0 ? errno : EIO;
			return 0;
		}
		done += (size_t)w;
	}
	return (ssize_t)n;
}

static void replace(FILE **stream, int fd, int buffering)
{
	cookie_io_functions_t io = {.write = put};
	FILE *f = fopencookie((void *)(intptr_t)fd, "w", io);

	if (f)
		*stream = f;
	/* the library would allocate one, which it never releases, and print each character by
	 * itself where it cannot */
	setvbuf(*stream, buffering == _IONBF ? NULL : text, buffering, sizeof(text));
}

/* Before anything is printed: printf and its kin then go through here. Where there is no memory for
 * it, they go on as the library has them. */
static void output_begin(void)
{
	replace(&stdout, STDOUT_FILENO, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF);
	replace(&stderr, STDERR_FILENO, _IONBF);
}

/* Writes out what was printed. 0, or why some of it did not arrive (errno), now or earlier. */
static int output_end(void)
{
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	if (!failed[STDOUT_FILENO])
		failed[STDOUT_FILENO] = errno ? errno : EIO;
	return failed[STDOUT_FILENO];
}

/* ---- */

static void usage(FILE *out)
{
	struct buf examples = {0};

	say(out, "usage: stoker COMMAND ...\n\n"
		 "Can this storage keep its accelerators fed? Emulates the I/O of deep-learning\n"
		 "training.\n\n"
		 "commands:\n");
	for (size_t i = 0; command_table[i]; i++)
		say(out, "  %-10s %s\n", command_table[i]->name, command_table[i]->help);
	say(out, "\n'stoker COMMAND --help' lists the options of a command,\n'stoker version' says "
		 "which program this is.\n");
	flags_put_examples(&examples, program_examples);
	say_text(out, &examples);
	buf_release(&examples);
}

void cli_print(struct buf *b)
{
	say_text(stdout, b);
	fflush(stdout);
	buf_release(b);
}

void cli_only_json(void)
{
	fflush(stdout);
	only_json = true;
}

void cli_put_json(json_t *value)
{
	bool before = only_json;
	struct buf b = {0};

	/* 15 digits, as result files have them */
	json_put_dump(&b, value, JSON_INDENT(4) | JSON_REAL_PRECISION(15), JSON_EXACT);
	buf_putc(&b, '\n');
	json_decref(value);
	fflush(stdout);
	only_json = false;
	cli_print(&b);
	only_json = before;
}

int cli_put_json_file(const char *folder, const char *name, struct err *e)
{
	AUTO_FREE char *path = path_join(folder, name);
	json_error_t why;
	struct buf b = {0};
	int rc = file_read(path, DOCUMENT_BYTES_MAX, &b, e);
	json_t *root = rc == 0 ? json_loadb(b.data ? b.data : "", b.len, 0, &why) : NULL;

	buf_release(&b);
	if (rc < 0)
		return err_wrap(e, "--json prints '%s', which was not written", name);
	if (!root)
		return err_set(e, ERR_DATA, "'%s': line %d: %s", path, why.line, why.text);
	cli_put_json(root);
	return 0;
}

int cli_fail(const struct err *e)
{
	say(stderr, "stoker: %s\n", e->text);
	err_leave_code(e->code);
	return err_exit_status(e->code);
}

_Noreturn void cli_leave(int status)
{
	/* of other files nothing is flushed: they may be on the storage that does not answer */
	fflush(stdout);
	fflush(stderr);
	process_drop_outputs();
	signals_leave(status);
	_exit(status);
}

/* DLIO's own variable; a value it does not know leaves the default, where DLIO would crash. */
static void log_level_from_environment(void)
{
	static const struct {
		const char *name;
		enum log_level level;
	} levels[] = {{"debug", LOG_DEBUG},  {"info", LOG_INFO},   {"warning", LOG_WARNING},
		      {"warn", LOG_WARNING}, {"error", LOG_ERROR}, {"critical", LOG_ERROR}};
	const char *v = getenv("DLIO_LOG_LEVEL");

	for (size_t i = 0; v && i < sizeof(levels) / sizeof(levels[0]); i++)
		if (strcasecmp(v, levels[i].name) == 0)
			log_set_level(levels[i].level);
}

static const struct command *command_find(const char *name)
{
	for (size_t i = 0; command_table[i]; i++)
		if (strcmp(command_table[i]->name, name) == 0)
			return command_table[i];
	return NULL;
}

/* What was printed must have arrived: a full disk or a closed pipe is a failure. */
static int finish(int status)
{
	int code = output_end();

	status = code && !status ? 1 : status;
	signals_leave(status);
	if (code == 0)
		return status;
	say(stderr, "stoker: the output could not be written completely: %s\n", strerror(code));
	return status;
}

int main(int argc, char **argv)
{
	const char *names[32];
	const struct command *c;
	const char *near;
	size_t n = 0;
	bool help;

	output_begin();
	log_level_from_environment();
	/* a document is whole or not written: the library would leave out what has no memory */
	json_set_alloc_funcs(json_room_alloc, json_room_free);
	/* a write beyond the file size limit fails with an error instead of ending the process */
	signal(SIGXFSZ, SIG_IGN);
	secret_hide_words(argc, argv);
	/* who ignores the ends of children is not told how they ended, and may hand that on */
	signal(SIGCHLD, SIG_DFL);
	for (; command_table[n]; n++)
		if (command_table[n]->link &&
		    strcmp(path_basename(argv[0]), command_table[n]->link) == 0)
			return finish(command_main(command_table[n], argc, argv));
	if (argc < 2) {
		usage(stderr);
		return 2;
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0 ||
	    strcmp(argv[1], "version") == 0) {
		say(stdout, "stoker %s (%s%s%s%s)\n", build_id, build_commit[0] ? "commit " : "",
		    build_commit, build_commit[0] ? "; " : "", build_traits);
		return finish(0);
	}
	if (strcmp(argv[1], COMPLETE_COMMAND) == 0)
		return finish(complete_main(argc - 2, argv + 2));
	help = strcmp(argv[1], "help") == 0;
	if (help && argc > 2 && command_find(argv[2])) {
		char flag[] = "--help", *of[] = {argv[2], flag, NULL};

		return finish(command_main(command_find(argv[2]), 2, of));
	}
	if (help || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		usage(stdout);
		return finish(0);
	}
	if (strcmp(argv[1], HOSTS_AGENT) == 0)
		return hosts_agent(argc - 2, argv + 2);
	c = command_find(argv[1]);
	if (c && c->alone && !launcher_leads())
		return 0;
	if (c)
		return finish(command_main(c, argc - 1, argv + 1));
	for (size_t i = 0; i < n; i++)
		names[i] = command_table[i]->name;
	near = str_nearest(argv[1], names, n);
	say(stderr, "stoker: '%s' is not a command%s%s%s\n", argv[1],
	    near ? "; did you mean '" : "; 'stoker --help' lists the commands", near ? near : "",
	    near ? "'?" : "");
	return 2;
}
