/* Loaded before the C library (LD_PRELOAD): the process is told of pages of 64 KiB, as some kernels
 * of ARM have. Memory has as many bytes as before. mincore, which writes a byte for each real page,
 * tells of pages of 64 KiB, too: present where all of them are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 65536L

static long real_sysconf(int name)
{
	static long (*real)(int);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "sysconf");
	return real(name);
}

long sysconf(int name)
{
	long v;

	if (name == _SC_PAGESIZE)
		return PAGE;
	v = real_sysconf(name);
	if (name == _SC_PHYS_PAGES || name == _SC_AVPHYS_PAGES)
		v = v * real_sysconf(_SC_PAGESIZE) / PAGE;
	return v;
}

int getpagesize(void)
{
	return (int)PAGE;
}

int mincore(void *start, size_t length, unsigned char *vec)
{
	size_t page = (size_t)real_sysconf(_SC_PAGESIZE), pages = (length + page - 1) / page;
	size_t each = (size_t)PAGE / page;
	unsigned char *all = malloc(pages + 1);
	long rc = syscall(SYS_mincore, start, length, all);

	for (size_t i = 0; rc == 0 && i < pages; i += each) {
		vec[i / each] = 1;
		for (size_t k = i; k < i + each && k < pages; k++)
			vec[i / each] &= all[k];
	}
	free(all);
	return (int)rc;
}
