/* Finds loaders by name. */
#include "loader/loader.h"

#include <string.h>

const struct loader_ops *loader_find(const char *name)
{
	for (size_t i = 0; loader_table[i]; i++)
		if (strcmp(loader_table[i]->name, name) == 0)
			return loader_table[i];
	return NULL;
}
