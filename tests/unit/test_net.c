/* Processes of one run over real sockets; here they are threads, each with its own end. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "comm/comm.h"
#include "comm/net.h"
#include "comm/net_connect.h"
#include "comm/net_wire.h"

#define PROCESSES 3u
#define LOCALS 2u
#define RANKS (PROCESSES * LOCALS)
#define ROUNDS 200u

static const struct net_where anywhere;
static struct net_invitation invitation;
static _Atomic uint32_t arrived;

struct process {
	struct net_listener *l;
	uint32_t number, ranks_each;
	struct net *net;
	struct err e;
	int rc;
};

static void *open_one(void *arg)
{
	struct process *p = arg;

	p->rc = net_open(&p->net, &invitation, p->l, p->number, PROCESSES, p->ranks_each, -1,
			 &p->e);
	return NULL;
}

static void open_all(struct process *p)
{
	pthread_t t[PROCESSES];

	memset(p, 0, PROCESSES * sizeof(*p));
	assert_int_equal(net_listen(&p[0].l, &invitation, &anywhere, NULL), 0);
	for (uint32_t i = 0; i < PROCESSES; i++) {
		p[i].number = i;
		p[i].ranks_each = LOCALS;
		assert_int_equal(thread_start(&t[i], open_one, &p[i], 0, "open", NULL), 0);
	}
	for (uint32_t i = 0; i < PROCESSES; i++) {
		pthread_join(t[i], NULL);
		if (p[i].rc)
			print_error("%s\n", p[i].e.text);
		assert_int_equal(p[i].rc, 0);
	}
}

static void *close_one(void *arg)
{
	struct process *p = arg;

	net_close(p->net);
	return NULL;
}

static void close_all(struct process *p)
{
	pthread_t t[PROCESSES];

	for (uint32_t i = 0; i < PROCESSES; i++)
		thread_start(&t[i], close_one, &p[i], 0, "close", NULL);
	for (uint32_t i = 0; i < PROCESSES; i++)
		pthread_join(t[i], NULL);
}

struct rank_arg {
	struct comm comm;
	uint32_t early, errors, rounds;
	int rc;
	struct err e;
};

static void run_ranks(struct process *p, struct stop_flag *stop, void *(*fn)(void *),
		      struct rank_arg *arg)
{
	struct comm_group *g[PROCESSES];
	struct comm comms[LOCALS];
	pthread_t t[RANKS];

	for (uint32_t i = 0; i < PROCESSES; i++) {
		g[i] = comm_create(comms, LOCALS, p[i].net, COMM_RANKS, stop);
		for (uint32_t k = 0; k < LOCALS; k++)
			arg[i * LOCALS + k] = (struct rank_arg){.comm = comms[k]};
	}
	for (uint32_t r = 0; r < RANKS; r++)
		assert_int_equal(thread_start(&t[r], fn, &arg[r], 0, "rank", NULL), 0);
	for (uint32_t r = 0; r < RANKS; r++)
		pthread_join(t[r], NULL);
	for (uint32_t i = 0; i < PROCESSES; i++)
		comm_local_destroy(g[i]);
}

static void *meet(void *p)
{
	struct rank_arg *a = p;

	for (uint32_t i = 1; i <= ROUNDS; i++) {
		atomic_fetch_add(&arrived, 1);
		if (comm_barrier(&a->comm) != 0)
			break;
		a->early += atomic_load(&arrived) < i * RANKS;
		a->rounds++;
	}
	return NULL;
}

/* Process 0 is asked by the clock, and all are told with the barrier; some are not asked. */
static void *ask(void *p)
{
	struct rank_arg *a = p;

	for (uint32_t i = 1; i <= ROUNDS; i++) {
		bool mine = i % 3 == 1, due = !mine, first = a->comm.rank == 0;

		if (i % 3 == 2) {
			a->errors += comm_barrier(&a->comm) != 0;
			continue;
		}
		a->errors += comm_barrier_until(&a->comm, first == mine ? 1 : INT64_MAX, &due) != 0;
		a->errors += due != mine;
	}
	return NULL;
}

static void *talk(void *p)
{
	struct rank_arg *a = p;
	struct comm *c = &a->comm;
	struct buf part[RANKS];
	char word[16];

	for (uint32_t i = 0; i < 20; i++) {
		uint32_t root = i % RANKS;

		snprintf(word, sizeof(word), "%s", c->rank == root ? "said once" : "");
		a->errors += comm_broadcast(c, root, word, sizeof(word)) != 0;
		a->errors += strcmp(word, "said once") != 0;
		a->errors += comm_gather(c, word, c->rank, part) != 0;
		for (uint32_t r = 0; c->rank == 0 && r < RANKS; r++) {
			a->errors += part[r].len != r || memcmp(part[r].data, "said once", r) != 0;
			buf_release(&part[r]);
		}
		a->rc = comm_agree(c, 0, &a->e);
		a->errors += a->rc != 0;
		a->rc = c->rank == 3 ? err_set(&a->e, ERR_DATA, "one file is short") : 0;
		a->rc = comm_agree(c, a->rc, &a->e);
		a->errors += a->rc != ERR_DATA || strcmp(a->e.text, "one file is short") != 0;
		a->rc = comm_agree(c, err_set(&a->e, ERR_USAGE, "all wrong"), &a->e);
		a->errors += a->rc != ERR_USAGE || strcmp(a->e.text, "all wrong") != 0;
	}
	return NULL;
}

static void barriers_hold_everyone(void **state)
{
	struct process p[PROCESSES];
	struct stop_flag stop = {0};
	struct rank_arg arg[RANKS];

	(void)state;
	open_all(p);
	assert_int_equal(net_nodes(p[1].net), 1);
	assert_int_equal(net_process(p[2].net, 2)->on_node, 2);
	atomic_store(&arrived, 0);
	run_ranks(p, &stop, meet, arg);
	for (uint32_t r = 0; r < RANKS; r++) {
		assert_int_equal(arg[r].comm.rank, r);
		assert_int_equal(arg[r].comm.size, RANKS);
		assert_int_equal(arg[r].rounds, ROUNDS);
		assert_int_equal(arg[r].early, 0);
	}
	close_all(p);
}

static void all_hear_the_same(void **state)
{
	struct process p[PROCESSES];
	struct stop_flag stop = {0};
	struct rank_arg arg[RANKS];

	(void)state;
	open_all(p);
	run_ranks(p, &stop, talk, arg);
	for (uint32_t r = 0; r < RANKS; r++)
		assert_int_equal(arg[r].errors, 0);
	run_ranks(p, &stop, ask, arg);
	for (uint32_t r = 0; r < RANKS; r++)
		assert_int_equal(arg[r].errors, 0);
	close_all(p);
}

/* Process 2 goes without a word while the others wait for it. */
static void a_death_reaches_all(void **state)
{
	struct process p[PROCESSES];
	struct stop_flag stop = {0};
	struct comm comms[LOCALS];
	struct comm_group *g;
	enum net_cause_kind kind;
	struct buf block[PROCESSES] = {{0}};
	struct err e = {0}, late;

	(void)state;
	open_all(p);
	g = comm_create(comms, 1, p[1].net, COMM_PROCESSES, &stop);
	shutdown(p[2].net->peer[0].fd, SHUT_RDWR);
	assert_int_equal(comm_barrier(&comms[0]), ERR_CANCELED);
	assert_int_not_equal(net_cause(p[1].net, &kind, &e), 0);
	assert_int_equal(kind, NET_CAUSE_DEATH);
	assert_non_null(strstr(e.text, "ranks 4 to 5 on host '"));
	/* what else fails because of it does not hide it */
	err_set(&late, ERR_CANCELED, "ended by a signal");
	net_stop(p[0].net, NET_CAUSE_STOP, &late);
	net_cause(p[0].net, &kind, &e);
	assert_int_equal(kind, NET_CAUSE_DEATH);
	/* and the living can still hand in what they have */
	assert_int_equal(net_collect(p[1].net, "abc", 3, 5, NULL, &e), 0);
	assert_int_equal(net_collect(p[0].net, NULL, 0, 5, block, &e), 0);
	assert_int_equal(block[1].len, 3);
	assert_int_equal(block[2].len, 0);
	buf_release(&block[1]);
	assert_int_equal(net_conclude(p[0].net, -7, 5), -7);
	assert_int_equal(net_conclude(p[1].net, 0, 5), -7);
	comm_local_destroy(g);
	close_all(p);
}

static void the_first_failure_counts(void **state)
{
	struct process p[PROCESSES];
	struct err e;

	(void)state;
	open_all(p);
	err_set(&e, ERR_CANCELED, "stopped by a signal");
	net_stop(p[1].net, NET_CAUSE_STOP, &e);
	err_set(&e, -EIO, "a file is gone");
	net_stop(p[2].net, NET_CAUSE_ERROR, &e);
	err_set(&e, -EIO, "another one too");
	net_stop(p[1].net, NET_CAUSE_ERROR, &e);
	for (int i = 0; i < 200; i++) {
		int64_t now = clock_now_ns();
		int same = 0;

		for (uint32_t k = 0; k < PROCESSES; k++)
			same += net_cause(p[k].net, NULL, &e) == -EIO &&
				strcmp(e.text, "a file is gone") == 0;
		if (same == PROCESSES)
			break;
		assert_int_not_equal(i, 199);
		clock_sleep_until(now + NS_PER_S / 20);
	}
	close_all(p);
}

static void strangers_and_strange_processes_are_refused(void **state)
{
	struct process p[PROCESSES];
	pthread_t t[PROCESSES];
	int noise;
	struct sockaddr_storage a;
	socklen_t n = sizeof(a);

	(void)state;
	memset(p, 0, sizeof(p));
	assert_int_equal(net_listen(&p[0].l, &invitation, &anywhere, NULL), 0);
	/* a stranger knocks first and says nothing of sense */
	noise = socket(AF_INET6, SOCK_STREAM, 0);
	getsockname(*(int *)p[0].l, (struct sockaddr *)&a, &n);
	if (connect(noise, (struct sockaddr *)&a, n) == 0)
		assert_int_equal(send(noise, "GET / HTTP/1.1\r\nHost: example\r\n\r\n", 34, 0), 34);
	for (uint32_t i = 0; i < PROCESSES; i++) {
		p[i].number = i;
		p[i].ranks_each = i == 2 ? 5 : 1;
		thread_start(&t[i], open_one, &p[i], 0, "open", NULL);
	}
	for (uint32_t i = 0; i < PROCESSES; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(p[0].rc, ERR_USAGE);
	assert_non_null(strstr(p[0].e.text, "has 5 ranks"));
	assert_true(p[1].rc < 0 && p[2].rc < 0);
	close(noise);
}

/* Connects to a listening socket and says `bytes` of nothing. */
static int stranger(int listener, size_t bytes)
{
	static const char nothing[64];
	struct sockaddr_storage a;
	socklen_t n = sizeof(a);
	int fd;

	getsockname(listener, (struct sockaddr *)&a, &n);
	fd = socket(a.ss_family, SOCK_STREAM, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, n), 0);
	if (bytes)
		send(fd, nothing, bytes, MSG_NOSIGNAL);
	return fd;
}

/* More silent ones than wait at once, some gone again, some with half a word: nobody waits for
 * them. */
static void silent_strangers_keep_nobody_waiting(void **state)
{
	struct process p[PROCESSES];
	pthread_t t[PROCESSES];
	int silent[300];
	int64_t begin;

	(void)state;
	memset(p, 0, sizeof(p));
	assert_int_equal(net_listen(&p[0].l, &invitation, &anywhere, NULL), 0);
	for (int i = 0; i < 300; i++) {
		silent[i] = stranger(((int *)p[0].l)[i % 2], (size_t)(i % 3));
		if (i % 5 == 4)
			close(silent[i]);
	}
	begin = clock_now_ns();
	for (uint32_t i = 0; i < PROCESSES; i++) {
		p[i].number = i;
		p[i].ranks_each = LOCALS;
		thread_start(&t[i], open_one, &p[i], 0, "open", NULL);
	}
	for (uint32_t i = 0; i < PROCESSES; i++) {
		pthread_join(t[i], NULL);
		assert_int_equal(p[i].rc, 0);
	}
	/* a greeting lasts for five seconds at most */
	assert_true(clock_now_ns() - begin < 4 * NS_PER_S);
	close_all(p);
	for (int i = 0; i < 300; i++)
		if (i % 5 != 4)
			close(silent[i]);
}

static struct ifaddrs interface_of(const char *name, const char *address,
				   struct sockaddr_storage *a)
{
	memset(a, 0, sizeof(*a));
	a->ss_family = strchr(address, ':') ? AF_INET6 : AF_INET;
	assert_int_equal(inet_pton(a->ss_family, address,
				   a->ss_family == AF_INET
					   ? (void *)&((struct sockaddr_in *)a)->sin_addr
					   : (void *)&((struct sockaddr_in6 *)a)->sin6_addr),
			 1);
	return (struct ifaddrs){.ifa_name = (char *)(uintptr_t)name,
				.ifa_addr = (struct sockaddr *)a};
}

static void interfaces_are_named(void **state)
{
	struct sockaddr_storage a, b;
	struct ifaddrs four = interface_of("ib0", "10.3.7.9", &a);
	struct ifaddrs six = interface_of("eth1", "fd00:1::7", &b);

	(void)state;
	assert_true(interface_is_named(&four, "ib0"));
	assert_true(interface_is_named(&four, "eth0, ib0"));
	assert_true(interface_is_named(&four, "10.3.0.0/16"));
	assert_true(interface_is_named(&four, "10.3.7.8/31 lo"));
	assert_true(interface_is_named(&four, "0.0.0.0/0"));
	assert_true(interface_is_named(&four, "10.3.7.9"));
	assert_false(interface_is_named(&four, ""));
	assert_false(interface_is_named(&four, "ib"));
	assert_false(interface_is_named(&four, "10.3.7.8/32,10.3.6.0/24"));
	assert_false(interface_is_named(&four, "10.3.0.0/33"));
	assert_false(interface_is_named(&four, "10.3.0.0/-1,10.3.0.0/,/8,,"));
	assert_false(interface_is_named(&four, "fd00::/8"));
	assert_true(interface_is_named(&six, "fd00::/8"));
	assert_true(interface_is_named(&six, "fd00:1::/33,x"));
	assert_false(interface_is_named(&six, "fd01::/16"));
	assert_false(interface_is_named(&six, "10.3.0.0/16"));
	assert_false(interface_is_named(&(struct ifaddrs){.ifa_name = (char[]){"x"}}, "x"));
}

/* Where it is listened: on the loopback interface if all are on this host, at the addresses that
 * are named, and everywhere if none of them is here. */
static void listens_where_the_others_are(void **state)
{
	static const struct {
		struct net_where where;
		const char *address;
	} cases[] = {
		{{.one_host = true}, "127.0.0.1"},
		{{.one_host = true, .interfaces = "nothing9"}, "127.0.0.1"},
		{{.interfaces = "nothing9"}, NULL},
		{{.interfaces = "192.0.2.0/24"}, NULL},
	};
	struct ifaddrs *all = NULL, *one = NULL;
	struct net_listener *l;
	struct net_invitation inv;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sockaddr_in6 a = {0};
		socklen_t n = sizeof(a);

		assert_int_equal(net_listen(&l, &inv, &cases[i].where, NULL), 0);
		getsockname(*(int *)l, (struct sockaddr *)&a, &n);
		if (cases[i].address) {
			assert_int_equal(a.sin6_family, AF_INET);
			assert_string_equal(inv.address[0], cases[i].address);
			assert_int_equal(((struct sockaddr_in *)&a)->sin_addr.s_addr,
					 htonl(INADDR_LOOPBACK));
			assert_int_equal(inv.addresses, 1);
		} else if (a.sin6_family == AF_INET6) {
			assert_true(IN6_IS_ADDR_UNSPECIFIED(&a.sin6_addr));
		}
		net_listener_close(l);
	}
	assert_int_equal(getifaddrs(&all), 0);
	for (one = all; one; one = one->ifa_next)
		if (one->ifa_addr && one->ifa_addr->sa_family == AF_INET &&
		    !(one->ifa_flags & IFF_LOOPBACK) && one->ifa_flags & IFF_UP)
			break;
	if (one) {
		const struct net_where there = {.interfaces = one->ifa_name};
		struct sockaddr_in a = {0};
		socklen_t n = sizeof(a);

		assert_int_equal(net_listen(&l, &inv, &there, NULL), 0);
		getsockname(*(int *)l, (struct sockaddr *)&a, &n);
		assert_int_equal(a.sin_family, AF_INET);
		assert_int_equal(a.sin_addr.s_addr,
				 ((struct sockaddr_in *)one->ifa_addr)->sin_addr.s_addr);
		net_listener_close(l);
	}
	freeifaddrs(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(barriers_hold_everyone),
		cmocka_unit_test(all_hear_the_same),
		cmocka_unit_test(a_death_reaches_all),
		cmocka_unit_test(the_first_failure_counts),
		cmocka_unit_test(strangers_and_strange_processes_are_refused),
		cmocka_unit_test(silent_strangers_keep_nobody_waiting),
		cmocka_unit_test(interfaces_are_named),
		cmocka_unit_test(listens_where_the_others_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
