#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>

int64_t clock_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

int64_t clock_wall_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

void clock_timestamp(int64_t wall_ns, char *out, size_t out_size)
{
	time_t s = (time_t)(wall_ns / NS_PER_S);
	int us = (int)(wall_ns % NS_PER_S / 1000);
	struct tm tm;
	char date[32];

	localtime_r(&s, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out, out_size, "%s.%06d", date, us);
}

int64_t clock_sleep_until(int64_t deadline_ns)
{
	struct timespec ts = {deadline_ns / NS_PER_S, deadline_ns % NS_PER_S};
	int64_t now = clock_now_ns();

	if (now >= deadline_ns)
		return now;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
	return clock_now_ns();
}

void clock_precise_timers(void)
{
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
}
