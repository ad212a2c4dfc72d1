/* Processes that meet at a local socket or over PMI: all of them, too few, too many, strangers, and
 * servers that answer anything. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "comm/meet.h"

#define BYTES 924
static unsigned char given[BYTES];
static char job_name[64];

static void new_job(void)
{
	static int jobs;

	snprintf(job_name, sizeof(job_name), "test %d %d", (int)getpid(), ++jobs);
	for (int i = 0; i < BYTES; i++)
		given[i] = (unsigned char)(i * 7 + jobs);
}

static int meet(const struct meet_way *way, int64_t process, int64_t processes, int limit_ms,
		struct err *e)
{
	struct meet_job job = {.launcher = "a launcher",
			       .name = job_name,
			       .process = process,
			       .processes = processes,
			       .limit_ns = limit_ms * (NS_PER_S / 1000)};
	unsigned char mine[BYTES] = {0};
	struct meet_place place = {99, 99};
	int rc = way->begin(&job, &place, e);

	if (process == 0)
		memcpy(mine, given, BYTES);
	if (rc == 0)
		rc = way->broadcast(mine, BYTES, e);
	if (rc == 0) {
		assert_int_equal(place.process, process);
		assert_int_equal(place.processes, processes);
		assert_memory_equal(mine, given, BYTES);
		way->end();
	}
	return rc;
}

/* A process whose exit status is what became of it. */
enum { MET, CANCELED, REFUSED, OTHER };
static pid_t start(int64_t process, int64_t processes, int limit_ms)
{
	pid_t pid = fork();
	struct err e;
	int rc;

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	rc = meet(&meet_on_host, process, processes, limit_ms, &e);
	_exit(rc == 0               ? MET
	      : rc == ERR_CANCELED  ? CANCELED
	      : rc == -ECONNREFUSED ? REFUSED
				    : OTHER);
}

static int outcome(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* FNV-1a, as meet_host.c makes the name of it: other jobs may be listening, of this test elsewhere,
 * too. */
static unsigned long long digest(const char *s, uint64_t h)
{
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3u;
	return h;
}

/* The address at which process 0 of the present job listens, once it does. */
static struct sockaddr_un address(socklen_t *n)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int length =
		snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "stoker-job-%u-%016llx%016llx",
			 (unsigned)geteuid(), digest(job_name, 0xcbf29ce484222325u),
			 digest(job_name, 0x9e3779b97f4a7c15u));

	*n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
	for (int tries = 0; tries < 5000; tries++) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		bool there = connect(fd, (struct sockaddr *)&a, *n) == 0;

		close(fd);
		if (there)
			return a;
		usleep(1000);
	}
	fail_msg("nobody listens");
	return a;
}

static void all_come(void **state)
{
	struct err e = {0};

	(void)state;
	for (int before = 0; before < 2; before++) {
		pid_t pid[4] = {0};

		new_job();
		for (int p = 1; p < 4; p++)
			pid[p] = start(p, 4, 5000);
		if (before)
			usleep(50000);
		assert_int_equal(meet(&meet_on_host, 0, 4, 5000, &e), 0);
		for (int p = 1; p < 4; p++)
			assert_int_equal(outcome(pid[p]), MET);
	}
}

static void some_are_missing(void **state)
{
	struct err e = {0};
	pid_t pid;

	(void)state;
	new_job();
	pid = start(2, 4, 5000);
	assert_int_equal(meet(&meet_on_host, 0, 4, 200, &e), -ETIMEDOUT);
	assert_non_null(strstr(e.text, "only 2 of 4"));
	assert_non_null(strstr(e.text, "missing: 1, 3."));
	assert_int_equal(outcome(pid), CANCELED);
	/* many */
	assert_int_equal(meet(&meet_on_host, 0, 3000, 20, &e), -ETIMEDOUT);
	assert_non_null(strstr(e.text, "9, 10, ..."));
	/* the first */
	assert_int_equal(meet(&meet_on_host, 1, 2, 50, &e), -ECONNREFUSED);
	assert_non_null(strstr(e.text, "process 0 did not come"));
}

static void one_ends(void **state)
{
	struct err e = {0};
	pid_t pid;
	int64_t begun = clock_now_ns();

	(void)state;
	new_job();
	pid = start(1, 3, 20000);
	if (fork() == 0) {
		usleep(100000);
		kill(pid, SIGKILL);
		_exit(0);
	}
	assert_int_equal(meet(&meet_on_host, 0, 3, 20000, &e), -EPIPE);
	assert_non_null(strstr(e.text, "process 1 of 3 ended"));
	assert_int_equal(outcome(pid), -SIGKILL);
	wait(NULL);

	new_job();
	pid = start(0, 3, 20000);
	if (fork() == 0) {
		usleep(100000);
		kill(pid, SIGKILL);
		_exit(0);
	}
	assert_int_equal(meet(&meet_on_host, 1, 3, 20000, &e), -ECONNREFUSED);
	assert_non_null(strstr(e.text, "process 0 ended"));
	assert_int_equal(outcome(pid), -SIGKILL);
	wait(NULL);
	assert_true(clock_now_ns() - begun < 15 * NS_PER_S);
}

static void two_are_one(void **state)
{
	struct err e = {0};
	pid_t pid[2];
	int how[2];

	(void)state;
	new_job();
	pid[0] = start(1, 3, 5000);
	pid[1] = start(1, 3, 5000);
	assert_int_equal(meet(&meet_on_host, 0, 3, 5000, &e), -EPROTO);
	assert_non_null(strstr(e.text, "the same number, 1"));
	for (int i = 0; i < 2; i++)
		how[i] = outcome(pid[i]);
	assert_true(how[0] == CANCELED && how[1] == CANCELED);

	new_job();
	pid[0] = start(1, 4, 5000);
	assert_int_equal(meet(&meet_on_host, 0, 2, 5000, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "process 1 of 4"));
	assert_int_equal(outcome(pid[0]), CANCELED);

	/* a second process 0 waits for the first one's name */
	new_job();
	pid[0] = start(0, 2, 3000);
	address(&(socklen_t){0});
	assert_int_equal(meet(&meet_on_host, 0, 2, 100, &e), -EADDRINUSE);
	assert_non_null(strstr(e.text, "has the place"));
	assert_int_equal(meet(&meet_on_host, 1, 2, 3000, &e), 0);
	assert_int_equal(outcome(pid[0]), MET);
}

static void strangers(void **state)
{
	struct sockaddr_un a;
	struct err e = {0};
	socklen_t n;
	int fd[40];
	pid_t pid;

	(void)state;
	new_job();
	pid = start(0, 2, 5000);
	a = address(&n);
	for (int i = 0; i < 40; i++) {
		fd[i] = socket(AF_UNIX, SOCK_STREAM, 0);
		assert_int_equal(connect(fd[i], (struct sockaddr *)&a, n), 0);
		/* silent, half a hello, another's words */
		if (i % 3)
			send(fd[i], "GET / HTTP/1.0\r\n\r\n", i % 3 == 1 ? 5 : 18, MSG_NOSIGNAL);
	}
	usleep(20000);
	assert_int_equal(meet(&meet_on_host, 1, 2, 5000, &e), 0);
	assert_int_equal(outcome(pid), MET);
	for (int i = 0; i < 40; i++)
		close(fd[i]);

	if (geteuid() != 0)
		return;
	/* another user's at this job's name */
	pid = fork();
	if (pid == 0) {
		int there = socket(AF_UNIX, SOCK_STREAM, 0);

		/* setuid clears it */
		if (setuid(65534) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 ||
		    bind(there, (struct sockaddr *)&a, n) != 0 || listen(there, 100) != 0)
			_exit(1);
		pause();
	}
	assert_int_equal(address(&n).sun_family, AF_UNIX);
	assert_int_equal(meet(&meet_on_host, 1, 2, 50, &e), -ECONNREFUSED);
	assert_non_null(strstr(e.text, "of user 65534 has the place"));
	assert_int_equal(meet(&meet_on_host, 0, 2, 50, &e), -EADDRINUSE);
	assert_non_null(strstr(e.text, "of user 65534"));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* ---- a server of PMI: what it answers to each request, in order ---- */

static const char *const right[] = {"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
				    "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024",
				    "cmd=my_kvsname kvsname=kvs_1_0 rc=0"};

/* Keeps what is put, and answers with `answers` instead where there are any. `slow`: byte by byte.
 */
static pid_t serve(const char *const *answers, int n, bool slow)
{
	static char value[16][512];
	char name[16];
	int fd[2];
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	pid = fork();
	if (pid == 0) {
		FILE *f = fdopen(fd[1], "r+");
		char line[2048], answer[2048];

		close(fd[0]);
		for (int i = 0; f && fgets(line, sizeof(line), f); i++) {
			unsigned key = 0;
			char what[64] = "", *at = strstr(line, "key=stoker-");

			if (strlen(line) > 1024)
				_exit(3);
			sscanf(line, "cmd=%63s", what);
			key = at ? (unsigned)strtoul(at + 11, NULL, 10) % 16 : 0;
			snprintf(answer, sizeof(answer), "cmd=finalize_ack\n");
			if (strcmp(what, "put") == 0) {
				sscanf(strstr(line, "value="), "value=%511s", value[key]);
				snprintf(answer, sizeof(answer),
					 "cmd=put_result rc=0 msg=success\n");
			} else if (strcmp(what, "get") == 0) {
				/* what process 0 would have put */
				size_t from = key * 240;

				snprintf(answer, sizeof(answer),
					 "cmd=get_result rc=0 msg=success value=");
				for (size_t k = from; k < from + 240 && k < BYTES; k++)
					snprintf(answer + strlen(answer), 3, "%02x", given[k]);
				snprintf(answer + strlen(answer), 2, "\n");
			} else if (strcmp(what, "barrier_in") == 0) {
				snprintf(answer, sizeof(answer), "cmd=barrier_out\n");
			} else if (i < 3) {
				snprintf(answer, sizeof(answer), "%s\n", right[i]);
			}
			if (i < n && answers[i] && !*answers[i])
				pause();
			if (i < n && answers[i])
				snprintf(answer, sizeof(answer), "%s\n", answers[i]);
			if (strcmp(answer, "close\n") == 0)
				_exit(0);
			for (size_t k = 0; k < strlen(answer);) {
				ssize_t r = write(fd[1], answer + k, slow ? 1 : strlen(answer));

				k += r > 0 ? (size_t)r : 0;
			}
		}
		_exit(0);
	}
	close(fd[1]);
	snprintf(name, sizeof(name), "%d", fd[0]);
	setenv("PMI_FD", name, 1);
	return pid;
}

static void done(pid_t pid)
{
	close((int)strtol(getenv("PMI_FD"), NULL, 10));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void over_pmi(void **state)
{
	struct err e = {0};

	(void)state;
	for (int slow = 0; slow < 2; slow++)
		for (int process = 0; process < 2; process++) {
			pid_t pid;

			new_job();
			pid = serve(NULL, 0, slow);
			assert_int_equal(meet(&meet_over_pmi, process, 2, 5000, &e), 0);
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
		}
}

static void wrong_servers(void **state)
{
	static char too_long[1500];
	static const struct {
		const char *answer[8]; /* of 8, the last the barrier's: for process 0 */
		const char *says;
	} cases[] = {
		{{"close"}, "connection"},
		{{[0] = "", [7] = "cmd=barrier_out"}, "came within 0 s"},
		{{"cmd=response_to_init rc=-1 pmi_version=2"}, "refuses"},
		{{"cmd=response_to_init rc=x"}, "refuses"},
		{{"    20cmd=response_to_init;rc=0;"}, "another version"},
		{{NULL, "cmd=my_kvsname kvsname=x"}, "another version"},
		{{NULL, NULL, "cmd=my_kvsname"}, "no space for keys"},
		{{NULL, NULL, "cmd=my_kvsname kvsname="}, NULL},
		{{[7] = ""}, "came within 0 s"},
		{{NULL, NULL, NULL, "cmd=barrier_out rc=1"}, "refuses"},
		{{NULL, NULL, NULL, NULL, "cmd=get_result rc=-1 msg=key_not_found value=unknown"},
		 "refuses"},
		{{NULL, NULL, NULL, NULL, "cmd=get_result rc=0 value=00"}, "another length"},
		{{NULL, NULL, NULL, NULL, "cmd=get_result rc=0"}, "another length"},
		{{NULL, NULL, NULL, NULL, too_long}, "another length"},
		{{NULL, NULL, NULL, NULL, "close"}, "connection"},
	};

	(void)state;
	snprintf(too_long, sizeof(too_long), "cmd=get_result rc=0 value=%01400d", 0);
	new_job();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err e = {0};
		pid_t pid = serve(cases[i].answer, 8, false);
		bool first = cases[i].answer[7] != NULL;
		int rc = meet(&meet_over_pmi, !first, 2, 50, &e);

		if (cases[i].says) {
			assert_int_equal(rc, first ? -ETIMEDOUT : -ECONNREFUSED);
			if (!strstr(e.text, cases[i].says))
				fail_msg("case %zu: '%s' lacks '%s'", i, e.text, cases[i].says);
			done(pid);
		} else {
			assert_int_equal(rc, 0);
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
		}
	}
	for (int i = 0; i < 3; i++) {
		struct err e = {0};

		setenv("PMI_FD", i == 0 ? "x" : i == 1 ? "-1" : "987", 1);
		assert_true(meet(&meet_over_pmi, 1, 2, 50, &e) < 0);
		assert_int_not_equal(e.text[0], '\0');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_come),      cmocka_unit_test(some_are_missing),
		cmocka_unit_test(one_ends),      cmocka_unit_test(two_are_one),
		cmocka_unit_test(strangers),     cmocka_unit_test(over_pmi),
		cmocka_unit_test(wrong_servers),
	};

	signal(SIGPIPE, SIG_IGN);
	alarm(120);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
