#pragma once
/* Content for tests: a pure function of file and offset that a script can compute as well. */
#include "format/format.h"

static inline void test_fill(const struct content_source *src, uint64_t file_index, uint64_t offset,
			     void *out, size_t n)
{
	unsigned char *p = out;

	(void)src;
	for (size_t i = 0; i < n; i++) {
		uint64_t o = offset + i;

		p[i] = (unsigned char)(o * 131 + (o >> 8) * 7 + (o >> 16) * 13 + file_index * 17 +
				       5);
	}
}

static inline struct content_source test_content(const struct elem_type *elem)
{
	return (struct content_source){.fill = test_fill, .seed = 1, .elem = elem};
}
