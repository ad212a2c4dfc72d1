#pragma once
/* SIGINT, SIGTERM and SIGHUP: the first asks the run to end and keep what it has, the second ends
 * at once.
 */
#include "base/err.h"
#include "base/thread.h"

/* Call in the main thread before any other thread exists. */
int signals_start(struct stop_flag *stop, struct err *e);
/* How often the process was continued after having been stopped: then a shell wrote on its
 * terminal. */
unsigned signals_continued(void);
