#pragma once
/* Memory for names, plans and tables. Sample buffers come from `buffer_alloc` before timing starts.
 *
 * The x-functions never return NULL: when the system refuses, the process prints one sentence and
 * exits with status 1, because nothing this small can be worked around. They are for quantities
 * bounded by code, not by input; anything sized by a workload or a file goes through
 * `try_calloc`/`buffer_alloc`, which report. */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *p, size_t size);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t n);
/* Ends the process as they do: for a library that reports that it got no memory. */
_Noreturn void out_of_memory(void);
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *xvasprintf(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));

/* `count` zeroed elements of `size` bytes for `what`; NULL and `e` on overflow or refusal.
 * Released with free(). */
void *try_calloc(size_t count, size_t size, const char *what, struct err *e);

/* `size` bytes aligned to 4096, every page touched, so that later use faults nothing in.
 * NULL and `e` when refused. Released with buffer_free(p, size). */
void *buffer_alloc(size_t size, const char *what, struct err *e);
void buffer_free(void *p, size_t size);

/* Whether n bytes are all zero. Reading fresh memory takes no page of it, writing zeros would. */
bool bytes_are_zero(const void *p, size_t n);

/* Cleanup attributes: the variable is released when it leaves scope. */
void auto_free(void *pp);
#define AUTO_FREE __attribute__((cleanup(auto_free)))
