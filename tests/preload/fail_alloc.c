/* Loaded before the C library (LD_PRELOAD): fails one allocation of the process, and writes out
 * where it allocates and what is still allocated when it exits.
 *
 * A place is the chain of callers within the program, named by a hash. FAIL_ALLOC=PLACE:N fails the
 * N-th allocation of a place, FAIL_ALLOC=none fails none. The file FAIL_ALLOC_TOLD gets, in lines:
 *   failed KIND BYTES ADDRESS...       the allocation that failed, and its callers
 *   place HASH COUNT KIND ADDRESS...   (none) every place with its number of allocations
 *   left ADDRESS...                    callers of a block that was not released, for each such
 * block end                                the process exited by itself
 *
 * Programs that this one starts are not touched: LD_PRELOAD leaves the environment. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DEPTH = 12, SLOTS = 1 << 17, PLACES = 1 << 14 };

struct block {
	void *at;
	void *caller[DEPTH];
};

struct place {
	uint64_t hash;
	unsigned long count;
	const char *kind;
	void *caller[DEPTH];
};

static struct place *places; /* open addressing by hash */
static uint64_t fail_place;
static unsigned long fail_at;
static int told = -1;
static uintptr_t text_begin, text_end, load_base;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *blocks; /* open addressing by address */
static __thread bool inside;

/* glibc's own names, which need no look-up: dlsym allocates. */
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);
extern void *__libc_memalign(size_t align, size_t n);
extern void __libc_free(void *p);

/* The callers that belong to the program itself; how many. */
static int callers(void *out[DEPTH])
{
	void *all[32];
	int n, kept = 0;

	inside = true;
	n = backtrace(all, 32);
	inside = false;
	for (int i = 0; i < n && kept < DEPTH; i++)
		if ((uintptr_t)all[i] >= text_begin && (uintptr_t)all[i] < text_end)
			out[kept++] = all[i];
	for (int i = kept; i < DEPTH; i++)
		out[i] = NULL;
	return kept;
}

static size_t slot_of(const void *p)
{
	return ((uintptr_t)p >> 4) * 0x9E3779B97F4A7C15u >> 46 & (SLOTS - 1);
}

static void remember(void *p)
{
	struct block b = {.at = p};

	if (!p || told < 0 || inside || !callers(b.caller))
		return;
	pthread_mutex_lock(&lock);
	for (size_t i = slot_of(p);; i = (i + 1) & (SLOTS - 1)) {
		if (!blocks[i].at || blocks[i].at == (void *)-1 || blocks[i].at == p) {
			blocks[i] = b;
			break;
		}
	}
	pthread_mutex_unlock(&lock);
}

static void forget(const void *p)
{
	if (!p || told < 0)
		return;
	pthread_mutex_lock(&lock);
	for (size_t i = slot_of(p); blocks[i].at; i = (i + 1) & (SLOTS - 1)) {
		if (blocks[i].at == p) {
			blocks[i].at = (void *)-1;
			break;
		}
	}
	pthread_mutex_unlock(&lock);
}

static void write_callers(const char *what, void *const caller[DEPTH])
{
	char line[512];
	int n = snprintf(line, sizeof(line), "%s", what);

	for (int i = 0; i < DEPTH && caller[i]; i++)
		n += snprintf(line + n, sizeof(line) - (size_t)n, " %lx",
			      (unsigned long)((uintptr_t)caller[i] - load_base));
	line[n++] = '\n';
	if (write(told, line, (size_t)n) != n)
		_exit(99);
}

/* FNV-1a over the callers' places in the file. */
static uint64_t hash_of(void *const caller[DEPTH])
{
	uint64_t h = 0xCBF29CE484222325u;

	for (int i = 0; i < DEPTH && caller[i]; i++)
		h = (h ^ ((uintptr_t)caller[i] - load_base)) * 0x100000001B3u;
	return h;
}

/* Which allocation of its place this is, from 1. */
static unsigned long count_at(uint64_t hash, const char *kind, void *const caller[DEPTH])
{
	size_t i = hash & (PLACES - 1);
	unsigned long n;

	pthread_mutex_lock(&lock);
	while (places[i].count && places[i].hash != hash)
		i = (i + 1) & (PLACES - 1);
	if (!places[i].count) {
		places[i].hash = hash;
		places[i].kind = kind;
		memcpy(places[i].caller, caller, sizeof(places[i].caller));
	}
	n = ++places[i].count;
	pthread_mutex_unlock(&lock);
	return n;
}

/* Whether this allocation is the one that fails. */
static bool fails(const char *kind, size_t bytes)
{
	void *caller[DEPTH];
	char what[64];
	uint64_t hash;

	if (told < 0 || inside)
		return false;
	callers(caller);
	hash = hash_of(caller);
	if (count_at(hash, kind, caller) != fail_at || hash != fail_place)
		return false;
	inside = true;
	snprintf(what, sizeof(what), "failed %s %zu", kind, bytes);
	write_callers(what, caller);
	inside = false;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t n)
{
	void *p = fails("malloc", n) ? NULL : __libc_malloc(n);

	remember(p);
	return p;
}

void *calloc(size_t n, size_t size)
{
	void *p = fails("calloc", n * size) ? NULL : __libc_calloc(n, size);

	remember(p);
	return p;
}

void *realloc(void *old, size_t n)
{
	void *p;

	if (fails("realloc", n))
		return NULL;
	forget(old);
	p = __libc_realloc(old, n);
	remember(p ? p : n ? old : NULL);
	return p;
}

void free(void *p)
{
	forget(p);
	__libc_free(p);
}

void *memalign(size_t align, size_t n)
{
	void *p = fails("memalign", n) ? NULL : __libc_memalign(align, n);

	remember(p);
	return p;
}

void *aligned_alloc(size_t align, size_t n)
{
	return memalign(align, n);
}

int posix_memalign(void **out, size_t align, size_t n)
{
	void *p = memalign(align, n);

	if (!p)
		return ENOMEM;
	*out = p;
	return 0;
}

void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
	void *p;

	if (flags & MAP_ANONYMOUS && fails("mmap", n))
		return MAP_FAILED;
	p = (void *)syscall(SYS_mmap, at, n, prot, flags, fd, offset);
	if (p != MAP_FAILED)
		remember(p);
	return p;
}

int munmap(void *p, size_t n)
{
	forget(p);
	return (int)syscall(SYS_munmap, p, n);
}

/* The program is the first object listed. */
static int find_text(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	load_base = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
			text_begin = load_base + info->dlpi_phdr[i].p_vaddr;
			text_end = text_begin + info->dlpi_phdr[i].p_memsz;
		}
	}
	return 1;
}

static void *room(size_t bytes)
{
	return (void *)syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, (off_t)0);
}

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("FAIL_ALLOC_TOLD"), *which = getenv("FAIL_ALLOC");
	void *first[2];

	unsetenv("LD_PRELOAD");
	if (!path || !which)
		return;
	if (strcmp(which, "none") != 0 && sscanf(which, "%lx:%lu", &fail_place, &fail_at) != 2)
		_exit(98);
	dl_iterate_phdr(find_text, NULL);
	backtrace(first, 2); /* loads what it needs */
	blocks = room(SLOTS * sizeof(*blocks));
	places = room(PLACES * sizeof(*places));
	told = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

__attribute__((destructor)) static void end(void)
{
	char line[64];

	inside = true;
	if (told < 0)
		return;
	for (size_t i = 0; i < PLACES && !fail_at; i++) {
		if (places[i].count) {
			snprintf(line, sizeof(line), "place %lx %lu %s", places[i].hash,
				 places[i].count, places[i].kind);
			write_callers(line, places[i].caller);
		}
	}
	for (size_t i = 0; i < SLOTS; i++)
		if (blocks[i].at && blocks[i].at != (void *)-1)
			write_callers("left", blocks[i].caller);
	if (write(told, "end\n", 4) != 4)
		_exit(99);
}
