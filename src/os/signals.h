#pragma once
/* Signals: the first that asks for the end sets the stop flag, so that what was measured is kept.
 * The second of those that insist sets STOP_HURRY, the third ends the process. What comes within
 * half a second of another one is the same request: launchers and 'timeout' send several. */
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

struct buf;

#include "base/err.h"
#include "base/thread.h"

/* What each signal does, for the manual page. */
void signals_man(struct buf *out);
/* All that ask for the end, without a SIGHUP that is ignored (nohup): blocked, it would be waited
 * for all the same. */
void signals_of_end(sigset_t *set);
/* Whether a repetition is impatience. */
bool signals_insist(int sig);
/* A closed pipe and a full limit of file sizes are errors of the write, not the end of the process.
 * Any time. */
void signals_of_writes(void);
/* Call in the main thread before any other thread exists. */
int signals_start(struct stop_flag *stop, struct err *e);
/* How often the process was continued after having been stopped: then a shell wrote on its
 * terminal. */
unsigned signals_continued(void);
