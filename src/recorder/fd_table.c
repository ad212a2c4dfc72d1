/* What each descriptor of the process leads to. Entries are one word each, in pages that are never
 * given back; forked children have their own copy. */
#include <fcntl.h>
#include <linux/stat.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "recorder/recorder.h"

#define PAGE_WORDS 512
#define PAGES 4096 /* two million descriptors */

static uint64_t *pages[PAGES];
static unsigned doubt;

static uint64_t *entry(int fd, bool make)
{
	size_t page = (size_t)fd / PAGE_WORDS;
	uint64_t *p, *none = NULL;
	long r;

	if (fd < 0 || page >= PAGES)
		return NULL;
	p = __atomic_load_n(&pages[page], __ATOMIC_ACQUIRE);
	if (LIKELY(p != NULL))
		return p + fd % PAGE_WORDS;
	if (!make)
		return NULL;
	r = raw(SYS_mmap, 0, PAGE_WORDS * sizeof(*p), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (r < 0 && r > -4096)
		return NULL;
	p = (uint64_t *)r;
	if (!__atomic_compare_exchange_n(&pages[page], &none, p, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE)) {
		raw(SYS_munmap, p, PAGE_WORDS * sizeof(*p));
		p = none;
	}
	return p + fd % PAGE_WORDS;
}

uint64_t fd_known(int fd)
{
	uint64_t *e = entry(fd, false);

	return e ? __atomic_load_n(e, __ATOMIC_RELAXED) : 0;
}

void fd_put(int fd, uint64_t word)
{
	uint64_t *e = entry(fd, word != 0);

	if (e)
		__atomic_store_n(e, word, __ATOMIC_RELAXED);
}

bool fd_change(int fd, uint64_t was, uint64_t word)
{
	uint64_t *e = entry(fd, false);

	return e && __atomic_compare_exchange_n(e, &was, word, false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED);
}

void fd_forget(int fd)
{
	fd_put(fd, 0);
}

void fd_forget_range(unsigned first, unsigned last)
{
	for (uint64_t fd = first; fd <= last && fd < (uint64_t)PAGES * PAGE_WORDS;) {
		if (!pages[fd / PAGE_WORDS]) {
			fd = (fd / PAGE_WORDS + 1) * PAGE_WORDS;
			continue;
		}
		fd_forget((int)fd++);
	}
}

static unsigned doubt_now(void)
{
	return __atomic_load_n(&doubt, __ATOMIC_RELAXED) & 0xfff;
}

void fd_doubt(void)
{
	__atomic_fetch_add(&doubt, 1, __ATOMIC_RELAXED);
}

static uint64_t word_of(uint64_t serial, enum ring_file kind)
{
	return FD_SERIAL(serial) | (uint64_t)kind << 36 | (uint64_t)doubt_now() << 40;
}

uint64_t fd_new(int fd, enum ring_file kind)
{
	uint64_t w = word_of(serial_next(), kind);

	fd_put(fd, w);
	return w;
}

enum ring_file kind_of_mode(unsigned mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return RING_REGULAR;
	case S_IFDIR:
		return RING_FOLDER;
	case S_IFIFO:
		return RING_PIPE;
	case S_IFSOCK:
		return RING_SOCKETS;
	default:
		return RING_OTHER;
	}
}

bool fd_facts(int fd, struct fd_facts *out)
{
	struct statx s;

	/* what the client of a network file system knows already */
	if (raw(SYS_statx, fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
		STATX_TYPE | STATX_SIZE | STATX_INO, &s) == 0) {
		*out = (struct fd_facts){kind_of_mode(s.stx_mode), (int64_t)s.stx_size, s.stx_ino};
		return true;
	}
	*out = (struct fd_facts){RING_UNKNOWN, -1, 0};
	return false;
}

/* Cuts `end` off. */
static bool cut(char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	if (n < m || strcmp(s + n - m, end) != 0)
		return false;
	s[n - m] = '\0';
	return true;
}

bool fd_name(int fd, uint64_t inode, char *name)
{
	static const char proc[] = "/proc/self/fd/";
	char link[sizeof(proc) + 12], digit[24];
	size_t at = sizeof(proc) - 1, n = 0;
	bool deleted;
	long r;

	memcpy(link, proc, at);
	for (int v = fd; n == 0 || v > 0; v /= 10)
		digit[n++] = (char)('0' + v % 10);
	while (n > 0)
		link[at++] = digit[--n];
	link[at] = '\0';
	r = raw(SYS_readlinkat, AT_FDCWD, link, name, FD_NAME_MAX - sizeof(digit) - 4);
	name[r > 0 ? r : 0] = '\0';
	deleted = cut(name, " (deleted)");
	if (strncmp(name, "/memfd:", 7) != 0)
		return deleted;
	/* many have one name */
	at = strlen(name);
	name[at++] = ' ';
	name[at++] = '[';
	for (; n == 0 || inode > 0; inode /= 10)
		digit[n++] = (char)('0' + inode % 10);
	while (n > 0)
		name[at++] = digit[--n];
	name[at++] = ']';
	name[at] = '\0';
	return false;
}

static uint64_t found(int fd, struct fd_facts facts, int64_t begin, char *name)
{
	int64_t position = -1;
	bool deleted = fd_name(fd, facts.inode, name);
	uint64_t w;
	long r;

	if (strncmp(name, "/dev/shm/", 9) == 0 || strncmp(name, "/memfd:", 7) == 0)
		facts.kind = RING_MEMORY;
	if (facts.kind == RING_REGULAR || facts.kind == RING_MEMORY)
		position = raw(SYS_lseek, fd, 0, SEEK_CUR);
	if ((facts.kind == RING_REGULAR || facts.kind == RING_FOLDER || facts.kind == RING_OTHER) &&
	    name_excluded(name, 0)) {
		w = word_of(0, RING_EXCLUDED);
		fd_put(fd, w);
		return w;
	}
	if (strcmp(name, "anon_inode:[io_uring]") == 0)
		note_uring_used();
	w = fd_new(fd, facts.kind);
	r = raw(SYS_fcntl, fd, F_GETFL);
	note(RING_FOUND, begin, FD_SERIAL(w), (uint64_t)(unsigned)fd,
	     facts.kind == RING_PIPE || facts.kind == RING_SOCKETS ? "" : name, position,
	     facts.size, (uint64_t)facts.kind,
	     (uint64_t)(r > 0 ? r : 0) | (deleted ? RING_DELETED : 0), facts.inode);
	return facts.kind == RING_SOCKETS ? socket_found(fd, w) : w;
}

static __attribute__((noinline)) uint64_t find(int fd)
{
	struct fd_facts facts;
	int64_t begin = now_ns();
	uint64_t w = 0;
	char *name;

	if (fd < 0 || !fd_facts(fd, &facts))
		return 0;
	name = scratch_take();
	if (name)
		w = found(fd, facts, begin, name);
	scratch_give(name);
	return w;
}

uint64_t fd_word(int fd)
{
	uint64_t w = fd_known(fd);

	return LIKELY(w != 0) ? w : find(fd);
}

uint64_t fd_word_at_position(int fd)
{
	uint64_t w = fd_word(fd);
	int64_t begin, position;

	if (LIKELY(FD_DOUBT(w) == doubt_now() ||
		   (FD_KIND(w) != RING_REGULAR && FD_KIND(w) != RING_MEMORY)))
		return w;
	begin = now_ns();
	position = raw(SYS_lseek, fd, 0, SEEK_CUR);
	w = word_of(w, FD_KIND(w));
	fd_put(fd, w);
	if (position >= 0)
		note(RING_POSITION, begin, FD_SERIAL(w), position);
	return w;
}
