#pragma once
/* The names by which strace calls signals and errors. Pure. */
#include <stddef.h>

/* The signal of a name of `n` bytes without "SIG"; 0: none. */
int strace_signal(const char *name, size_t n);
/* The error of a name of `n` bytes ("ENOENT"); 0: this system has none of the name. */
int strace_error(const char *name, size_t n);
