#pragma once
/* Whether a program that is executed can be recorded, from the beginning of its file. */
#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "recorder/ring.h"

#define IMAGE_HEAD 2048      /* bytes of the file; aligned to 8 */
#define IMAGE_INTERPRETERS 4 /* of scripts, which the kernel follows */

/* `interpreter`: the program that runs it, when it is a script; else "". */
static inline enum ring_image ring_image_of(const char *head, long n, char *interpreter,
					    size_t room)
{
	const Elf64_Ehdr *h = (const void *)head;

	*interpreter = '\0';
	if (n >= 2 && head[0] == '#' && head[1] == '!') {
		long at = 2, m = 0;

		while (at < n && (head[at] == ' ' || head[at] == '\t'))
			at++;
		while (at + m < n && !strchr(" \t\n", head[at + m]) && (size_t)m + 1 < room) {
			interpreter[m] = head[at + m];
			m++;
		}
		interpreter[m] = '\0';
		return RING_IMAGE_DYNAMIC;
	}
	if (n < (long)sizeof(*h) || memcmp(head, ELFMAG, SELFMAG) != 0)
		return RING_IMAGE_UNKNOWN;
	if (h->e_ident[EI_CLASS] != ELFCLASS64)
		return RING_IMAGE_OTHER_CLASS;
	if (h->e_phentsize != sizeof(Elf64_Phdr))
		return RING_IMAGE_UNKNOWN;
	for (unsigned i = 0; i < h->e_phnum; i++) {
		Elf64_Phdr p;
		uint64_t at = h->e_phoff + i * sizeof(p);

		if (at + sizeof(p) > (uint64_t)n)
			return RING_IMAGE_UNKNOWN;
		memcpy(&p, head + at, sizeof(p));
		if (p.p_type == PT_INTERP)
			return RING_IMAGE_DYNAMIC;
	}
	return RING_IMAGE_STATIC;
}
