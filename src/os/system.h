#pragma once
/* A description of this machine as pairs of words, for tables of reports: operating system, CPU,
 * sockets, NUMA nodes, memory, GPUs, block devices, the file system of a folder, limits. What
 * cannot be had is left out. */
#include "os/sysinfo.h"

struct system_facts {
	struct sysinfo_pair *pair; /* in the order of a table */
	size_t pairs;
};

/* Reads /proc, /sys and /etc below `root` ("" for the machine's own; a folder in tests). `folder`
 * (may be NULL) is the one whose file system, mount options and free space are told, or of its
 * nearest parent that exists. Opens no device and starts no program. */
void system_facts_load(struct system_facts *s, const char *root, const char *folder);
void system_facts_release(struct system_facts *s);

/* What cpuinfo's "CPU implementer" and "CPU part" ("0x41", "0xd4f"; either may be NULL) stand for:
 * "Arm Neoverse V2"; NULL: not known. */
const char *arm_processor_name(const char *implementer, const char *part);
