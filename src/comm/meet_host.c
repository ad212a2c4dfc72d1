/* The processes of one host meet at a name that the job alone has, in the abstract namespace of
 * local sockets: it vanishes with the process that has it, whatever becomes of that. The kernel
 * tells each side the other's user. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/map.h"
#include "comm/meeting.h"

static struct sockaddr_un name;
static socklen_t name_bytes;

static void set_name(const char *job)
{
	/* a name has 107 characters, the name of a job as many as it likes */
	char text[64];
	int n = snprintf(text, sizeof(text), "stoker-job-%u-%016llx%016llx", (unsigned)geteuid(),
			 (unsigned long long)fnv1a_text(FNV_START, job),
			 (unsigned long long)fnv1a_text(0x9e3779b97f4a7c15u, job));

	name = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(name.sun_path + 1, text, (size_t)n);
	name_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int local_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

static int closed(int fd)
{
	int code = errno;

	close(fd);
	return -code;
}

static int listen_at_name(void)
{
	int fd = local_socket();

	if (fd < 0)
		return fd;
	if (bind(fd, (struct sockaddr *)&name, name_bytes) == 0 && listen(fd, 4096) == 0)
		return fd;
	return closed(fd);
}

static int connect_to_name(int64_t until_ns)
{
	int fd = local_socket();

	(void)until_ns;
	if (fd < 0 || connect(fd, (struct sockaddr *)&name, name_bytes) == 0)
		return fd;
	return closed(fd);
}

static struct ucred other_side(int fd)
{
	struct ucred c = {.pid = 0, .uid = (uid_t)-1};
	socklen_t n = sizeof(c);

	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n);
	return c;
}

static bool is_same_user(int fd, pid_t *pid)
{
	struct ucred who = other_side(fd);

	*pid = who.pid;
	return who.uid == geteuid();
}

static const char *owner(void)
{
	static char text[64];
	int fd = connect_to_name(0);
	struct ucred who = fd >= 0 ? other_side(fd) : (struct ucred){0};

	if (fd >= 0)
		close(fd);
	snprintf(text, sizeof(text), "process %d of user %d", (int)who.pid, (int)who.uid);
	return text;
}

static const struct meeting_point at_name = {
	.where = "on this host",
	.else_why = "run as another user or in another network namespace, as in containers",
	.listen = listen_at_name,
	.connect = connect_to_name,
	.trusts = is_same_user,
	.owner = owner,
};

static int begin(const struct meet_job *job, struct meet_place *place, struct err *e)
{
	(void)e;
	set_name(job->name);
	meeting_begin(job, &at_name, place);
	return 0;
}

const struct meet_way meet_on_host = {begin, meeting_broadcast, meeting_end, meeting_give_up};
