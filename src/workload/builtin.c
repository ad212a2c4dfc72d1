/* The workloads compiled into the program. */
#include "workload/builtin.h"

#include <string.h>

#include "workload/workload.h"

const char *const *workload_builtin_names(void)
{
	return builtin_names;
}

const char *workload_builtin_text(const char *name)
{
	for (size_t i = 0; builtin_names[i]; i++)
		if (strcmp(builtin_names[i], name) == 0)
			return builtin_texts[i];
	return NULL;
}
