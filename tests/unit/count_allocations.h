#pragma once
/* Counts what the whole test program allocates and maps, for claims about memory. Call
 * count_allocations first. */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

static _Atomic uint64_t allocations, allocated_bytes;
static _Atomic uint64_t mappings;    /* calls of mmap and munmap by this program */
static _Atomic int64_t mapped_bytes; /* by this program's own mmap less munmap; sanitized: 0 */

#ifdef SANITIZED
/* From <sanitizer/allocator_interface.h>, in both run-time libraries. */
int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void *, size_t),
					      void (*on_free)(const volatile void *));

static void on_malloc(const volatile void *p, size_t n)
{
	(void)p;
	allocations++;
	allocated_bytes += n;
}

static void on_free(const volatile void *p)
{
	(void)p;
}

static void count_allocations(void)
{
	__sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
}
#else
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);
extern void *__libc_memalign(size_t align, size_t n);
#define VISIBLE __attribute__((visibility("default")))

static void count(size_t n)
{
	allocations++;
	allocated_bytes += n;
}

VISIBLE void *malloc(size_t n)
{
	count(n);
	return __libc_malloc(n);
}

VISIBLE void *calloc(size_t n, size_t size)
{
	count(n * size);
	return __libc_calloc(n, size);
}

VISIBLE void *realloc(void *p, size_t n)
{
	count(n);
	return __libc_realloc(p, n);
}

VISIBLE void *aligned_alloc(size_t align, size_t n)
{
	count(n);
	return __libc_memalign(align, n);
}

VISIBLE int munmap(void *at, size_t n)
{
	mappings++;
	mapped_bytes -= (int64_t)n;
	return (int)syscall(SYS_munmap, at, n);
}

VISIBLE void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
	count(n);
	mappings++;
	mapped_bytes += (int64_t)n;
	return (void *)syscall(SYS_mmap, at, n, prot, flags, fd, offset);
}

static void count_allocations(void)
{
}
#endif
