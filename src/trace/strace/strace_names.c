#include "trace/strace/strace_names.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

static const char *const signals[] = {
#define SIGNAL(name) [SIG##name] = #name,
#define ERROR(name)
#include "trace/strace/strace_names.def"
#undef SIGNAL
#undef ERROR
};

static const char *const errors[] = {
#define SIGNAL(name)
#define ERROR(name) [name] = #name,
#include "trace/strace/strace_names.def"
#undef SIGNAL
#undef ERROR
};

static int number_of(const char *const *table, size_t count, const char *name, size_t n)
{
	for (size_t i = 1; i < count; i++)
		if (table[i] && strlen(table[i]) == n && memcmp(table[i], name, n) == 0)
			return (int)i;
	return 0;
}

int strace_signal(const char *name, size_t n)
{
	return number_of(signals, sizeof(signals) / sizeof(signals[0]), name, n);
}

int strace_error(const char *name, size_t n)
{
	return number_of(errors, sizeof(errors) / sizeof(errors[0]), name, n);
}
