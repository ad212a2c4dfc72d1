/* Facts of backends by name. */
#include "workload/backend.h"

#include <string.h>

#define FIND(kind)                                                                                 \
	const struct kind##_facts *kind##_facts_find(const char *name)                             \
	{                                                                                          \
		for (size_t i = 0; name && kind##_facts_table[i]; i++)                             \
			if (strcmp(kind##_facts_table[i]->name, name) == 0)                        \
				return kind##_facts_table[i];                                      \
		return NULL;                                                                       \
	}

FIND(store)
FIND(format)
FIND(loader)
FIND(checkpoint)
