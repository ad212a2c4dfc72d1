#pragma once
/* Names of files by the extensions of formats. */
#include <stdbool.h>

#include "workload/backend.h"

/* Whether the name ends in a dot and an extension of the format ("tar.gz" is one), in any case. */
bool format_has_extension(const struct format_facts *f, const char *name);
