/* What a client of HTTP/1.1 costs that does nothing but GET: one connection a thread.
 *
 *   get_loop HOST PORT SECONDS THREADS PATH...         blocking sockets, into 256 KiB
 *   get_loop https://HOST:PORT SECONDS THREADS PATH... libcurl (built with -DWITH_CURL -lcurl)
 *
 * Prints what store_tool prints. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#ifdef WITH_CURL
#include <curl/curl.h>
#endif

#define PIECE 262144

static const char *base;
static char **paths;
static int port, count;
static double until;
static _Atomic uint64_t reads, bytes;
static _Atomic int turn;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int fail(const char *what)
{
	perror(what);
	exit(1);
}

static void *sockets(void *arg)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1, at = turn++;
	char *in = malloc(PIECE + 1), ask[1024];

	inet_pton(AF_INET, base, &to.sin_addr);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0)
		fail("connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	for (; now() < until; at++) {
		size_t n = 0, asked = (size_t)snprintf(ask, sizeof(ask),
						       "GET %s HTTP/1.1\r\nHost: %s:%d\r\n\r\n",
						       paths[at % count], base, port);
		char *end = NULL, *length;
		uint64_t left;
		ssize_t r;

		if (write(fd, ask, asked) != (ssize_t)asked)
			fail("write");
		while (!end && (r = recv(fd, in + n, 16384 - n, 0)) > 0) {
			n += (size_t)r;
			in[n] = '\0';
			end = strstr(in, "\r\n\r\n");
		}
		length = end ? strcasestr(in, "content-length:") : NULL;
		if (!length || strncmp(in + 9, "200", 3) != 0)
			fail("answer");
		left = strtoull(length + 15, NULL, 10);
		bytes += left;
		left -= n - (size_t)(end + 4 - in);
		while (left > 0) {
			r = recv(fd, in, left < PIECE ? left : PIECE, 0);
			if (r <= 0)
				fail("recv");
			left -= (uint64_t)r;
		}
		reads++;
	}
	close(fd);
	free(in);
	return arg;
}

#ifdef WITH_CURL
static size_t taken(char *p, size_t size, size_t n, void *arg)
{
	(void)p;
	(void)arg;
	bytes += size * n;
	return size * n;
}

static void *with_curl(void *arg)
{
	CURL *c = curl_easy_init();
	char url[2048];
	int at = turn++;

	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, taken);
	curl_easy_setopt(c, CURLOPT_BUFFERSIZE, 524288L);
	curl_easy_setopt(c, CURLOPT_CAINFO, getenv("AWS_CA_BUNDLE"));
	for (; now() < until; at++) {
		snprintf(url, sizeof(url), "%s%s", base, paths[at % count]);
		curl_easy_setopt(c, CURLOPT_URL, url);
		if (curl_easy_perform(c) != CURLE_OK)
			fail("curl");
		reads++;
	}
	curl_easy_cleanup(c);
	return arg;
}
#endif

int main(int argc, char **argv)
{
	int tls = argc > 1 && strncmp(argv[1], "https:", 6) == 0, threads;
	double seconds, cpu, begin;
	void *(*work)(void *) = sockets;
	struct rusage r;
	pthread_t *t;

	if (argc < 6)
		return 2;
	base = argv[1];
	argv += 2;
	if (!tls)
		port = atoi(*argv++);
	seconds = atof(*argv++);
	threads = atoi(*argv++);
	paths = argv;
	while (paths[count])
		count++;
#ifdef WITH_CURL
	curl_global_init(CURL_GLOBAL_ALL);
	if (tls)
		work = with_curl;
#else
	if (tls)
		return 77;
#endif
	t = calloc((size_t)threads, sizeof(*t));
	begin = now();
	until = begin + seconds;
	for (int i = 0; i < threads; i++)
		pthread_create(&t[i], NULL, work, NULL);
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	seconds = now() - begin;
	getrusage(RUSAGE_SELF, &r);
	cpu = (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
	      1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
	printf("%.1f MB/s %.1f reads/s %.4f s/GB %.2f us/read\n", (double)bytes / 1e6 / seconds,
	       (double)reads / seconds, cpu / ((double)bytes / 1e9), cpu * 1e6 / (double)reads);
	free(t);
	return 0;
}
