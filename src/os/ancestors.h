#pragma once
/* The processes above this one, up to the launcher that started it. */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ancestor {
	pid_t pid;
	uint64_t start; /* since boot, in ticks: with the number, what no other process has */
};

#define ANCESTORS_MAX 16

/* This process's parent, its parent and so on, up to the first one whose environment lacks `mark`
 * ("PMI_RANK=1") or may not be read, which is the launcher. Returns how many there are, the
 * launcher last; 0 when it is not found among ANCESTORS_MAX, or lies outside of this process's PID
 * namespace. */
size_t ancestors_to_launcher(const char *mark, struct ancestor out[ANCESTORS_MAX]);
