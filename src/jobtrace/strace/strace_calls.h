#pragma once
/* What each system call that strace names does: the calls about files, descriptors and mapped
 * memory. Those of processes are in strace.c. */
#include "jobtrace/call_log.h"
#include "jobtrace/strace/strace_line.h"

struct strace_calls {
	struct call_log log;
	struct buf name, text; /* for names taken out of lines */
};

/* Adds the events of a call. False: the call is not known here, or is of no interest; such calls
 * may be many. */
bool strace_calls_add(struct strace_calls *s, struct strace_text name, const struct call *call,
		      const struct strace_call *parsed);
/* The descriptor of an argument, whose file is what the line says, if it says it. -1: none. */
int64_t strace_calls_fd(struct strace_calls *s, struct caller *caller, struct strace_text arg);
/* The file of a folder argument (or CALL_CWD) and a path argument; JOB_NONE: no path is there. */
uint32_t strace_calls_path(struct strace_calls *s, const struct call *call, int64_t dir,
			   struct strace_text arg, bool folder);
