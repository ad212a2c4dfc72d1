/* What a machine takes of training in lockstep, without Stoker: threads that take a token, sleep
 * and meet, as ranks take a batch, compute and meet; behind each a thread that makes the next
 * token, as a worker does.
 *
 * Usage: lockstep_tool RANKS STEPS COMPUTE_S READ_S
 * Prints the share of sleeping in the time of all steps but the first, in percent, the mean of the
 * ranks. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

struct rank {
	pthread_t computes, reads;
	pthread_mutex_t lock;
	pthread_cond_t moved;
	int tokens;
	int64_t first_ns, last_ns, slept_ns;
};

static pthread_barrier_t met;
static int steps;
static int64_t compute_ns, read_ns;

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void sleep_until(int64_t ns)
{
	struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

/* `by` -1: takes a token; 1: adds one, of two at the most. */
static void move(struct rank *r, int by)
{
	pthread_mutex_lock(&r->lock);
	while (by < 0 ? r->tokens == 0 : r->tokens == 2)
		pthread_cond_wait(&r->moved, &r->lock);
	r->tokens += by;
	pthread_cond_signal(&r->moved);
	pthread_mutex_unlock(&r->lock);
}

static void *reads(void *arg)
{
	prctl(PR_SET_TIMERSLACK, 1);
	for (int i = 0; i < steps; i++) {
		sleep_until(now_ns() + read_ns);
		move(arg, 1);
	}
	return NULL;
}

static void *computes(void *arg)
{
	struct rank *r = arg;

	prctl(PR_SET_TIMERSLACK, 1);
	for (int i = 0; i < steps; i++) {
		int64_t begin;

		move(r, -1);
		begin = now_ns();
		sleep_until(begin + compute_ns);
		if (i > 0)
			r->slept_ns += now_ns() - begin;
		pthread_barrier_wait(&met);
		r->last_ns = now_ns();
		if (i == 0)
			r->first_ns = r->last_ns;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int ranks = argc == 5 ? atoi(argv[1]) : 0;
	struct rank *r = calloc((size_t)(ranks > 0 ? ranks : 1), sizeof(*r));
	double sum = 0;

	if (ranks < 1 || (steps = atoi(argv[2])) < 2 || !r) {
		fprintf(stderr, "usage: lockstep_tool RANKS STEPS COMPUTE_S READ_S\n");
		return 2;
	}
	compute_ns = (int64_t)(atof(argv[3]) * 1e9);
	read_ns = (int64_t)(atof(argv[4]) * 1e9);
	pthread_barrier_init(&met, NULL, (unsigned)ranks);
	for (int i = 0; i < ranks; i++) {
		pthread_mutex_init(&r[i].lock, NULL);
		pthread_cond_init(&r[i].moved, NULL);
		if (pthread_create(&r[i].reads, NULL, reads, &r[i]) ||
		    pthread_create(&r[i].computes, NULL, computes, &r[i])) {
			fprintf(stderr, "lockstep_tool: cannot create a thread\n");
			exit(1);
		}
	}
	for (int i = 0; i < ranks; i++) {
		pthread_join(r[i].computes, NULL);
		pthread_join(r[i].reads, NULL);
		sum += 100.0 * (double)r[i].slept_ns / (double)(r[i].last_ns - r[i].first_ns);
	}
	printf("%.3f\n", sum / ranks);
	free(r);
	return 0;
}
