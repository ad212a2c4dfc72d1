#pragma once
/* SIGINT, SIGTERM and SIGHUP: the first asks the run to end and keep what it has, the second ends
 * at once. SIGHUP means nothing where the process was started without it (nohup).
 */
#include <signal.h>

#include "base/err.h"
#include "base/thread.h"

/* The three of them, without a SIGHUP that is ignored: blocked, it would be waited for all the
 * same.
 */
void signals_of_end(sigset_t *set);
/* Call in the main thread before any other thread exists. */
int signals_start(struct stop_flag *stop, struct err *e);
/* How often the process was continued after having been stopped: then a shell wrote on its
 * terminal. */
unsigned signals_continued(void);
