/* Loaded before the C library (LD_PRELOAD): counts what the ranks' and workers' threads allocate,
 * map and lock. Writes one line a kind of thread to the file named by CALL_COUNTS when the program
 * ends: "worker allocations N maps N locks N". Threads are told apart by the names that they have.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { RANK, WORKER, OTHER, KINDS };
enum { ALLOCATIONS, MAPS, LOCKS, CALLS };

static _Atomic unsigned long counts[KINDS][CALLS];

static void count(int what)
{
	char name[17] = "";
	int saved = errno, kind = OTHER;

	prctl(PR_GET_NAME, name);
	if (strncmp(name, "rank", 4) == 0)
		kind = RANK;
	else if ((name[0] == 'w' || name[0] == 'e') && name[1] >= '0' && name[1] <= '9')
		kind = WORKER;
	atomic_fetch_add(&counts[kind][what], 1);
	errno = saved;
}

/* glibc's own names, which need no look-up: dlsym allocates. */
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);
extern void *__libc_memalign(size_t align, size_t n);
extern void __libc_free(void *p);

void *malloc(size_t n)
{
	count(ALLOCATIONS);
	return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	count(ALLOCATIONS);
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	count(ALLOCATIONS);
	return __libc_realloc(p, n);
}

void free(void *p)
{
	if (p)
		count(ALLOCATIONS);
	__libc_free(p);
}

void *aligned_alloc(size_t align, size_t n)
{
	count(ALLOCATIONS);
	return __libc_memalign(align, n);
}

int posix_memalign(void **out, size_t align, size_t n)
{
	count(ALLOCATIONS);
	*out = __libc_memalign(align, n);
	return *out ? 0 : ENOMEM;
}

void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
	count(MAPS);
	return (void *)syscall(SYS_mmap, at, n, prot, flags, fd, offset);
}

#define LOCK(name, type)                                                                           \
	int name(type *lock)                                                                       \
	{                                                                                          \
		static _Atomic(int (*)(type *)) next;                                              \
                                                                                                   \
		if (!next)                                                                         \
			next = (int (*)(type *))dlsym(RTLD_NEXT, #name);                           \
		count(LOCKS);                                                                      \
		return next(lock);                                                                 \
	}

LOCK(pthread_mutex_lock, pthread_mutex_t)
LOCK(pthread_mutex_trylock, pthread_mutex_t)
LOCK(pthread_rwlock_rdlock, pthread_rwlock_t)
LOCK(pthread_rwlock_wrlock, pthread_rwlock_t)

__attribute__((destructor)) static void tell(void)
{
	static const char *const kinds[] = {"rank", "worker", "other"};
	const char *path = getenv("CALL_COUNTS");
	FILE *f = path ? fopen(path, "w") : NULL;

	for (int k = 0; f && k < KINDS; k++)
		fprintf(f, "%s allocations %lu maps %lu locks %lu\n", kinds[k],
			counts[k][ALLOCATIONS], counts[k][MAPS], counts[k][LOCKS]);
	if (f)
		fclose(f);
}
