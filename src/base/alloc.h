#pragma once
/* Memory, and what happens when the system refuses it. One policy for the whole program:
 *
 * Small amounts, bounded by code: the x-functions never return NULL. jansson allocates through them
 * (cli/main.c); what the C library or another library could not allocate is had again or ends
 * likewise (WITH_MEMORY, out_of_memory). When the system refuses, the process prints one sentence
 * and ends with status 1: nothing this small can be worked around, and an answer that lacks a part
 * would be another answer. Files are written under another name until they are whole.
 *
 * Amounts sized by a workload or a file: `try_calloc` and `buffer_alloc` report -ENOMEM with a
 * sentence, which travels as any other error.
 *
 * A run has something to lose: its results. It sets memory aside (`alloc_reserve`). The first
 * refusal of a small amount, in any thread, gives part of that back to the system, until it is had;
 * `alloc_refusal` tells of it, and the run stops and writes its results with this reason. While
 * results are written (`alloc_for_results`) all that is set aside may be used, by every function
 * here. Only a refusal after that ends the process. */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/err.h"

void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *p, size_t size);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t n);
/* Ends the process as they do: for a library that reports that it got no memory. */
_Noreturn void out_of_memory(void);
_Noreturn void out_of_memory_for(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* `call`, whose failure is NULL with errno: repeated while memory is set aside, and the end of
 * the process when it fails for want of memory. Other failures are returned. */
#define WITH_MEMORY(call)                                                                          \
	({                                                                                         \
		__typeof__(call) had_;                                                             \
		errno = 0;                                                                         \
		had_ = (call);                                                                     \
		while (!had_ && errno == ENOMEM && alloc_spend()) {                                \
			errno = 0;                                                                 \
			had_ = (call);                                                             \
		}                                                                                  \
		if (!had_ && errno == ENOMEM)                                                      \
			out_of_memory();                                                           \
		had_;                                                                              \
	})

/* getline(3), whose only failure is the end of the file or of reading. */
ssize_t xgetline(char **line, size_t *cap, FILE *f);

/* Sets `bytes` aside, which costs no memory until used, but counts against limits of address space
 * and of commitments. -ENOMEM and `e` when refused. One reserve a process; not while other threads
 * allocate. */
int alloc_reserve(size_t bytes, struct err *e);
void alloc_reserve_release(void);
/* From now on results are written. */
void alloc_for_results(void);
/* Gives some of what was set aside back to the system; false: nothing is left. Any thread. */
bool alloc_spend(void);
/* -ENOMEM and a sentence when a refusal was answered from the reserve before results were written;
 * else 0. Any thread. */
int alloc_refusal(struct err *e);
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *xvasprintf(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));

/* `count` zeroed elements of `size` bytes for `what`; NULL and `e` on overflow or refusal.
 * Released with free(). */
void *try_calloc(size_t count, size_t size, const char *what, struct err *e);
/* How many of its calls the system has refused so far, in all threads: what does with less where it
 * is refused cannot tell its caller, who may have to. */
uint64_t alloc_refusals(void);

/* `size` bytes aligned to 4096, every page touched, so that later use faults nothing in.
 * NULL and `e` when refused. Released with buffer_free(p, size). */
void *buffer_alloc(size_t size, const char *what, struct err *e);
void buffer_free(void *p, size_t size);

/* Whether n bytes are all zero. Reading fresh memory takes no page of it, writing zeros would. */
bool bytes_are_zero(const void *p, size_t n);

/* Cleanup attributes: the variable is released when it leaves scope. */
void auto_free(void *pp);
#define AUTO_FREE __attribute__((cleanup(auto_free)))
