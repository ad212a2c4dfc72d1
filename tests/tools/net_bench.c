/* What a barrier between processes costs: net_bench PROCESSES RANKS_EACH BARRIERS WORK_US
 * [TREE_FROM] prints the time of one barrier in microseconds, less the wait of WORK_US before each,
 * how many messages process 0 handles for it, the depth of the connections, and the CPU time of all
 * processes per barrier. TREE_FROM: from how many processes on there is a tree. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "comm/comm.h"
#include "comm/net.h"

struct rank {
	struct comm comm;
	pthread_t thread;
	long barriers, work_us;
};

static void *walk(void *arg)
{
	struct rank *r = arg;

	for (long i = 0; i < r->barriers; i++) {
		if (r->work_us)
			clock_sleep_until(clock_now_ns() + r->work_us * 1000);
		comm_barrier(&r->comm);
	}
	return NULL;
}

static int process(uint32_t me, uint32_t all, uint32_t each, long barriers, long work_us,
		   const struct net_invitation *inv, struct net_listener *l)
{
	struct stop_flag stop = {0};
	struct comm *comms = calloc(each, sizeof(*comms));
	struct rank *rank = calloc(each, sizeof(*rank));
	struct comm_group *g;
	struct net *net;
	struct err e;
	int64_t begin, used;
	uint64_t messages;

	if (net_open(&net, inv, l, me, all, each, -1, &e) < 0) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	g = comm_create(comms, each, net, COMM_RANKS, &stop);
	messages = net_round_messages(net);
	begin = clock_now_ns();
	for (uint32_t k = 0; k < each; k++) {
		rank[k] = (struct rank){.comm = comms[k], .barriers = barriers, .work_us = work_us};
		thread_start(&rank[k].thread, walk, &rank[k], 0, "rank", NULL);
	}
	for (uint32_t k = 0; k < each; k++)
		pthread_join(rank[k].thread, NULL);
	used = clock_now_ns() - begin;
	if (me == 0)
		printf("%.1f us a barrier, %.1f messages, depth %u, ",
		       (double)used / 1e3 / (double)barriers - (double)work_us,
		       (double)(net_round_messages(net) - messages) / (double)barriers,
		       net_depth(net));
	fflush(stdout);
	comm_local_destroy(g);
	net_close(net);
	return 0;
}

int main(int argc, char **argv)
{
	uint32_t all, each;
	long barriers, work_us;
	struct net_invitation inv;
	struct net_listener *l;
	struct rusage u;
	int status = 0, one;

	if (argc < 5)
		return 2;
	all = (uint32_t)strtol(argv[1], NULL, 10);
	each = (uint32_t)strtol(argv[2], NULL, 10);
	barriers = strtol(argv[3], NULL, 10);
	work_us = strtol(argv[4], NULL, 10);
	if (argc > 5)
		net_set_tree_from((uint32_t)strtol(argv[5], NULL, 10));
	if (net_listen(&l, &inv, &(struct net_where){.one_host = true}, NULL) < 0)
		return 1;
	for (uint32_t p = 0; p < all; p++) {
		if (fork() == 0)
			_exit(process(p, all, each, barriers, work_us, &inv, p ? NULL : l));
	}
	while (wait(&one) > 0)
		status |= one;
	getrusage(RUSAGE_CHILDREN, &u);
	printf("%.1f us CPU of all processes\n",
	       (1e6 * (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
		(double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec)) /
		       (double)barriers);
	return status ? 1 : 0;
}
