/* Run-queue delay by thread, and the list of threads it is summed over. */
#include "base/run_delay.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A look through an open descriptor takes 0.7 us, one that opens it 5.5 us. */
#define WORTH_NS 500000
#define WORTH_OPENING_NS 4000000
/* Of the descriptors that the process may have. */
#define DESCRIPTORS_SHARE 8

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct run_delay_thread *threads; /* under the lock, as what follows */
static struct run_delay ended = {.known = true};
static uint32_t descriptors;
static atomic_bool enabled;
static _Thread_local struct run_delay_thread *self;

void run_delay_enable(bool on)
{
	atomic_store_explicit(&enabled, on, memory_order_relaxed);
}

bool run_delay_parse(const char *line, struct run_delay *out)
{
	unsigned long long ran, waited, slices;
	char *end;

	*out = (struct run_delay){0};
	ran = strtoull(line, &end, 10);
	waited = strtoull(end, &end, 10);
	slices = strtoull(end, NULL, 10);
	/* a kernel that does not count writes three zeros; a running thread had a time slice */
	if (slices == 0)
		return false;
	*out = (struct run_delay){
		.known = true, .waited_ns = (int64_t)waited, .ran_ns = (int64_t)ran};
	return true;
}

static bool read_open(int fd, struct run_delay *out)
{
	char line[96];
	ssize_t n = pread(fd, line, sizeof(line) - 1, 0);

	line[n > 0 ? n : 0] = '\0';
	return run_delay_parse(line, out);
}

static bool read_path(const char *path, struct run_delay *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool known;

	*out = (struct run_delay){0};
	if (fd < 0)
		return false;
	known = read_open(fd, out);
	close(fd);
	return known;
}

static bool read_thread(const struct run_delay_thread *t, struct run_delay *out)
{
	char path[64];

	if (t->fd >= 0)
		return read_open(t->fd, out);
	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", (int)t->tid);
	return read_path(path, out);
}

void run_delay_self(struct run_delay *out)
{
	read_path("/proc/thread-self/schedstat", out);
}

/* Under the lock. */
static bool may_keep_one(void)
{
	struct rlimit l;

	return getrlimit(RLIMIT_NOFILE, &l) == 0 && descriptors < l.rlim_cur / DESCRIPTORS_SHARE;
}

void run_delay_begin(struct run_delay_thread *t)
{
	struct run_delay now;

	*t = (struct run_delay_thread){.tid = (pid_t)syscall(SYS_gettid), .fd = -1};
	pthread_getname_np(pthread_self(), t->name, sizeof(t->name));
	if (!atomic_load_explicit(&enabled, memory_order_relaxed))
		return;
	pthread_mutex_lock(&lock);
	if (may_keep_one()) {
		t->fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
		descriptors += t->fd >= 0;
	}
	t->worth_ns = t->fd >= 0 ? WORTH_NS : WORTH_OPENING_NS;
	t->known = read_thread(t, &now);
	t->taken_ns = now.waited_ns;
	t->next = threads;
	t->link = &threads;
	if (threads)
		threads->link = &t->next;
	threads = t;
	pthread_mutex_unlock(&lock);
	self = t;
}

void run_delay_end(struct run_delay_thread *t)
{
	struct run_delay last;

	/* not a thread begun while this was enabled; t->link cannot tell: others change it */
	if (self != t)
		return;
	self = NULL;
	pthread_mutex_lock(&lock);
	ended.known = read_thread(t, &last) && ended.known;
	ended.waited_ns += last.waited_ns;
	ended.ran_ns += last.ran_ns;
	*t->link = t->next;
	if (t->next)
		t->next->link = t->link;
	if (t->fd >= 0) {
		close(t->fd);
		descriptors--;
	}
	pthread_mutex_unlock(&lock);
}

int64_t run_delay_take(int64_t took_ns)
{
	struct run_delay_thread *t = self;
	struct run_delay now;
	int64_t since;

	if (!t || !t->known || took_ns < t->worth_ns || !read_thread(t, &now))
		return 0;
	since = now.waited_ns - t->taken_ns;
	t->taken_ns = now.waited_ns;
	return since > 0 ? since : 0;
}

void run_delay_sum(struct run_delay *out)
{
	pthread_mutex_lock(&lock);
	*out = ended;
	for (const struct run_delay_thread *t = threads; t; t = t->next) {
		struct run_delay one;

		out->known = read_thread(t, &one) && out->known;
		out->waited_ns += one.waited_ns;
		out->ran_ns += one.ran_ns;
		out->threads++;
	}
	pthread_mutex_unlock(&lock);
}

void run_delay_each(void (*fn)(void *arg, pid_t tid, const char *name), void *arg)
{
	pthread_mutex_lock(&lock);
	for (const struct run_delay_thread *t = threads; t; t = t->next)
		fn(arg, t->tid, t->name);
	pthread_mutex_unlock(&lock);
}
