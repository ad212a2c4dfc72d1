#pragma once
/* What a command on several hosts and its agents say to each other over the standard input and
 * output of the agent. Private to cli/hosts*. */
#include <stdint.h>

/* Before its first message the agent says this: what a shell printed before it is skipped. The
 * number is that of the messages' layout. */
#define HOSTS_MARK "\nstoker agent 1\n"

enum hosts_message {
	HOSTS_JOB = 1, /* to the agent: struct hosts_job and its texts */
	HOSTS_SIGNAL,  /* to the agent: an int32_t, for all its processes */
	HOSTS_INVITE,  /* from process 0, and to all others */
	HOSTS_OUT,     /* from a process: of its standard output, or */
	HOSTS_ERR,     /* error output */
	HOSTS_END,     /* a process has ended: int32_t, its exit status */
	HOSTS_FAILED,  /* the agent could not start its processes: a sentence */
	HOSTS_MESSAGES
};

struct hosts_head {
	uint32_t magic, type, process, bytes; /* bytes that follow */
};
#define HOSTS_MAGIC 0x736b6831u
#define HOSTS_BYTES_MAX (16u << 20)

/* Followed by texts, each with its NUL: the folder to work in, the arguments, the variables. */
struct hosts_job {
	uint32_t first, count, processes, arguments, variables, zero;
};
