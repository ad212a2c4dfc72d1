/* Standing still, told by ticks that come late and by the states of threads. */
#include "metric/standstill.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/run_delay.h"

#define LOOK_EVERY_NS (NS_PER_S / 4)
/* Between two looks lies at least this many times what one takes. */
#define REST 200

void standstill_begin(struct standstills *s)
{
	struct run_delay own;

	*s = (struct standstills){.look_every_ns = LOOK_EVERY_NS, .looked_ns = clock_now_ns()};
	run_delay_self(&own);
	s->waits_known = own.known;
	s->waited_ns = own.waited_ns;
}

static struct standstill *note(struct standstills *s, int64_t begin_ns, int64_t end_ns)
{
	struct standstill *one = &s->of[s->n];

	if (s->n == STANDSTILLS_KEPT) {
		s->dropped++;
		return NULL;
	}
	s->n++;
	*one = (struct standstill){.begin_ns = begin_ns, .end_ns = end_ns};
	return one;
}

void standstill_note_thread(struct standstills *s, int tid, const char *name, int64_t now_ns)
{
	struct standstill *one;

	for (uint32_t i = s->n; i-- > 0;)
		if (s->of[i].tid == tid && s->of[i].end_ns >= s->looked_ns) {
			s->of[i].end_ns = now_ns;
			return;
		}
	/* it began somewhere since the last look */
	one = note(s, s->looked_ns + (now_ns - s->looked_ns) / 2, now_ns);
	if (!one)
		return;
	one->tid = tid;
	snprintf(one->thread, sizeof(one->thread), "%s", name);
}

struct look {
	struct standstills *s;
	int64_t now_ns;
};

static ssize_t read_of(pid_t tid, const char *file, char *out, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", (int)tid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, out, size - 1);
	if (fd >= 0)
		close(fd);
	out[n > 0 ? n : 0] = '\0';
	return n;
}

/* Frozen by version 1 of the freezer is "in a disk sleep", too: told by where in the kernel that
 * is. A thread that was asleep stays where it was, in a wait that otherwise can be interrupted. */
static bool is_frozen(const char *wchan)
{
	static const char *const places[] = {"refrigerator", "freez", "futex", "nanosleep", "poll"};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (strstr(wchan, places[i]))
			return true;
	return false;
}

/* Stopped or traced by its state. */
static void look_at(void *arg, pid_t tid, const char *name)
{
	const struct look *l = arg;
	char text[256], *state;

	if (read_of(tid, "stat", text, sizeof(text)) <= 0)
		return;
	state = strrchr(text, ')');
	if (!state || state[1] != ' ')
		return;
	if (state[2] == 'T' || state[2] == 't' ||
	    (state[2] == 'D' && read_of(tid, "wchan", text, sizeof(text)) > 0 && is_frozen(text)))
		standstill_note_thread(l->s, tid, name, l->now_ns);
}

static void look_at_threads(struct standstills *s, int64_t now_ns)
{
	struct look l = {s, now_ns};
	int64_t took;

	run_delay_each(look_at, &l);
	took = clock_now_ns() - now_ns;
	s->looked_ns = now_ns;
	s->look_every_ns = REST * took > LOOK_EVERY_NS ? REST * took : LOOK_EVERY_NS;
}

void standstill_tick(struct standstills *s, int64_t from_ns, int64_t now_ns, int64_t tick_ns)
{
	int64_t late = now_ns - from_ns - tick_ns, waited = 0;
	struct standstill *one;
	struct run_delay own;

	if (late >= STANDSTILL_BRIEF_NS) {
		run_delay_self(&own);
		waited = own.known && s->waits_known ? own.waited_ns - s->waited_ns : 0;
		/* without that counter, a brief one may be a wait for a processor */
		one = late - waited >= (s->waits_known ? STANDSTILL_BRIEF_NS : STANDSTILL_LEAST_NS)
			      ? note(s, from_ns + tick_ns / 2, now_ns) /* begun within the tick */
			      : NULL;
		if (one && late - waited < STANDSTILL_LEAST_NS) {
			one->sure_begin_ns = from_ns + tick_ns;
			/* others may have been woken earlier than the ticking thread */
			one->sure_end_ns = one->sure_begin_ns + (late - waited) / 10 * 7;
		}
	}
	/* the look before it is too long ago to say anything about threads */
	if (late >= STANDSTILL_LEAST_NS)
		s->looked_ns = now_ns;
	if (now_ns - s->looked_ns >= s->look_every_ns) {
		look_at_threads(s, now_ns);
		run_delay_self(&own);
		s->waited_ns = own.waited_ns;
	}
}

void standstill_sift(struct standstills *s,
		     bool (*ran)(void *arg, int64_t begin_ns, int64_t end_ns), void *arg,
		     int64_t steal_ns)
{
	int64_t sum = 0;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < s->n; i++) {
		struct standstill *one = &s->of[i];

		if (!one->sure_end_ns)
			continue;
		if (ran(arg, one->sure_begin_ns, one->sure_end_ns))
			one->end_ns = one->begin_ns; /* nothing */
		sum += one->end_ns - one->begin_ns;
	}
	for (uint32_t i = 0; i < s->n; i++) {
		const struct standstill *one = &s->of[i];

		if (!one->sure_end_ns || (one->end_ns > one->begin_ns &&
					  sum >= STANDSTILL_LEAST_NS && steal_ns < sum / 2))
			s->of[kept++] = *one;
	}
	s->n = kept;
}

int64_t standstill_within(const struct standstills *s, bool thread, int64_t begin_ns,
			  int64_t end_ns, uint32_t *times, char *name)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < s->n; i++) {
		const struct standstill *one = &s->of[i];
		int64_t from = one->begin_ns > begin_ns ? one->begin_ns : begin_ns;
		int64_t to = one->end_ns < end_ns ? one->end_ns : end_ns;

		if ((one->tid != 0) != thread || to <= from)
			continue;
		sum += to - from;
		if (times)
			++*times;
		if (name)
			memcpy(name, one->thread, sizeof(one->thread));
	}
	return sum;
}
