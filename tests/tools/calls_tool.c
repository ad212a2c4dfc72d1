/* The plain loop that a reader is compared with: repeats the system calls that
 * one worker made, with buffers at the same distances, and does nothing else.
 * tests/bench/speed.py writes the list.
 *
 *     calls_tool PASSES ARENA < LIST     prints CPU and wall seconds of each
 * pass after the first
 *
 * Calls before a line "-" are made once. Lines: O FD FLAGS PATH (open), X FD
 * (statx), T FD (fstat), F FD FLAGS (fcntl), S PATH (stat), R FD AT BYTES
 * OFFSET (pread to ARENA + AT), C FD (close), M FD MAP BYTES (mmap), U MAP
 * (munmap), N MAP (mremap, munmap), P MAP OFFSET BYTES (madvise), V MAP [OFFSET
 * BYTES]... (process_vm_readv of a map). FD and MAP are numbers of places. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define FDS 4096
#define MAPS 65536
#define PIECES 1024

struct call {
	char what;
	int fd;
	unsigned map;
	int flags;
	uint64_t at, bytes, offset;
	char *path;
	struct iovec *from; /* base: within the map */
	int pieces;
};

static int fds[FDS];
static struct {
	void *at;
	size_t bytes;
} maps[MAPS];
static unsigned char *arena;

static void fail(const char *what, const char *name)
{
	fprintf(stderr, "calls_tool: %s '%s': %s\n", what, name, strerror(errno));
	exit(1);
}

static struct call parse(char *line)
{
	struct call c = {.what = line[0]};
	unsigned long long a = 0, b = 0, d = 0, f = 0;
	int path = 0;

	switch (c.what) {
	case 'O':
		sscanf(line, "O %d %d %n", &c.fd, &c.flags, &path);
		break;
	case 'S':
		path = 2;
		break;
	case 'F':
		sscanf(line, "F %d %d", &c.fd, &c.flags);
		break;
	case 'R':
		sscanf(line, "R %d %llu %llu %llu", &c.fd, &a, &b, &d);
		break;
	case 'M':
		sscanf(line, "M %d %llu %llu", &c.fd, &f, &b);
		break;
	case 'V':
		f = strtoull(line + 2, &line, 10);
		c.from = calloc(PIECES, sizeof(*c.from));
		for (; *line && c.pieces < PIECES; c.pieces++) {
			c.from[c.pieces].iov_base = (void *)strtoull(line, &line, 10);
			c.from[c.pieces].iov_len = strtoull(line, &line, 10);
			b += c.from[c.pieces].iov_len;
		}
		break;
	case 'P':
		sscanf(line, "P %llu %llu %llu", &f, &d, &b);
		break;
	case 'N':
		sscanf(line, "N %llu", &f);
		break;
	case 'U':
		sscanf(line, "U %llu", &f);
		break;
	default:
		sscanf(line + 1, "%d", &c.fd);
	}
	c.map = (unsigned)f;
	c.at = a;
	c.bytes = b;
	c.offset = d;
	if (c.fd < 0 || c.fd >= FDS || c.map >= MAPS) {
		errno = ERANGE;
		fail("a line", line);
	}
	c.path = path ? strdup(line + path) : NULL;
	return c;
}

static void check(long long got, const struct call *c)
{
	if (got < 0)
		fail("a call failed", c->path ? c->path : (char[2]){c->what, 0});
}

static void unmap(const struct call *c)
{
	if (maps[c->map].at)
		check(munmap(maps[c->map].at, maps[c->map].bytes), c);
	maps[c->map].at = NULL;
}

static void do_call(const struct call *c)
{
	struct statx sx;
	struct stat st;
	void *at;
	struct iovec to = {arena + c->at, c->bytes};
	struct iovec from[PIECES];

	switch (c->what) {
	case 'O':
		fds[c->fd] = open(c->path, c->flags);
		check(fds[c->fd], c);
		break;
	case 'X':
		check(statx(fds[c->fd], "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
			    STATX_TYPE | STATX_SIZE, &sx),
		      c);
		break;
	case 'T':
		check(fstat(fds[c->fd], &st), c);
		break;
	case 'F':
		check(fcntl(fds[c->fd], F_SETFL, c->flags), c);
		break;
	case 'S':
		check(stat(c->path, &st), c);
		break;
	case 'R':
		check(pread(fds[c->fd], arena + c->at, c->bytes, (off_t)c->offset), c);
		break;
	case 'C':
		check(close(fds[c->fd]), c);
		break;
	case 'M':
		/* of the pass before, which this one did not unmap */
		unmap(c);
		maps[c->map].bytes = c->bytes;
		maps[c->map].at = mmap(NULL, c->bytes, PROT_READ, MAP_SHARED, fds[c->fd], 0);
		check(maps[c->map].at == MAP_FAILED ? -1 : 0, c);
		break;
	case 'P':
		check(madvise((char *)maps[c->map].at + c->offset, c->bytes, MADV_POPULATE_READ),
		      c);
		break;
	case 'N':
		at = mremap(maps[c->map].at, 0, maps[c->map].bytes, MREMAP_MAYMOVE);
		check(at == MAP_FAILED ? -1 : 0, c);
		unmap(c);
		maps[c->map].at = at;
		break;
	case 'U':
		unmap(c);
		break;
	case 'V':
		for (int i = 0; i < c->pieces; i++) {
			from[i].iov_base = (char *)maps[c->map].at + (uintptr_t)c->from[i].iov_base;
			from[i].iov_len = c->from[i].iov_len;
		}
		check(process_vm_readv(getpid(), &to, 1, from, (unsigned long)c->pieces, 0), c);
		break;
	}
}

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	size_t n = 0, once = 0, room = 0, size = 0;
	struct call *calls = NULL;
	char *line = NULL;
	ssize_t got;
	size_t bytes = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;

	if (bytes == 0) {
		fputs("usage: calls_tool PASSES ARENA < LIST\n", stderr);
		return 2;
	}
	arena = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (arena == MAP_FAILED || madvise(arena, bytes, MADV_POPULATE_WRITE) != 0)
		fail("no memory for", "the buffers");
	while ((got = getline(&line, &size, stdin)) > 0) {
		if (line[got - 1] == '\n')
			line[got - 1] = '\0';
		if (n == room) {
			room = room ? room * 2 : 4096;
			calls = realloc(calls, room * sizeof(*calls));
			if (!calls)
				fail("no memory for", "calls");
		}
		if (line[0] == '-')
			once = n;
		else
			calls[n++] = parse(line);
	}
	for (int pass = 0; pass <= atoi(argv[1]); pass++) {
		double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID), wall = seconds(CLOCK_MONOTONIC);

		for (size_t i = pass ? once : 0; i < n; i++)
			do_call(&calls[i]);
		if (pass)
			printf("%.9f %.9f\n", seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu,
			       seconds(CLOCK_MONOTONIC) - wall);
	}
	return 0;
}
