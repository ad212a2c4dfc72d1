#pragma once
/* The signals that ask a command to end and keep what it has:
 *
 *   SIGINT, SIGTERM, SIGQUIT   the first asks for the end; the second for a quick one, without
 *                              waiting for requests that do not come back (STOP_HURRY); the third
 *                              ends the process at once
 *   SIGHUP, SIGUSR1, SIGUSR2,  ask for the end, however often they come: the warnings of a
 *   SIGXCPU                    scheduler before a limit
 *
 * What comes within half a second of another one is the same request: launchers and 'timeout' send
 * several. SIGHUP means nothing where the process was started without it (nohup). SIGPIPE and
 * SIGXFSZ are errors of the write. SIGTSTP and SIGCONT stop and continue the process as always.
 */
#include <signal.h>

#include "base/err.h"
#include "base/thread.h"

/* All of them, without a SIGHUP that is ignored: blocked, it would be waited for all the same. */
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
