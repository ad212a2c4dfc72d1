/* Calls of the kernel itself, the clock, and the functions of the library behind this one. */
#include <dlfcn.h>
#include <time.h>

#include "recorder/recorder.h"

long raw6(long nr, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
	long result;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
#else
#error "the recorder knows the system calls of x86-64 and aarch64"
#endif
}

void *real_find(void **slot, const char *name)
{
	void *p = dlsym(RTLD_NEXT, name);

	__atomic_store_n(slot, p, __ATOMIC_RELAXED);
	return p;
}

int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
