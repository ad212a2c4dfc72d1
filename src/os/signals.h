#pragma once
/* Signals: the first that asks for the end sets the stop flag, so that what was measured is kept.
 * The second of those that insist ends the process: at once, or, where the work can end by itself
 * without waiting for what does not answer (STOP_HURRY), SIGNALS_HURRY_S after it last used a
 * processor at the latest; the third does at once. Storage does not hold that up: files that must
 * not stay (base/left.h) are removed for half a second at most. What comes within half a second of
 * another signal is the same request: launchers and 'timeout' send several. */
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
#define SIGNALS_HURRY_S 10

struct signal_work {
	struct stop_flag *stop; /* NULL: nobody looks, so the first signal ends the process */
	bool hurries;           /* the work ends by itself after STOP_HURRY */
	void (*told)(int sig);  /* of each signal, in the thread of signals; may be NULL */
	void (*last)(void);     /* before an end by force; may be NULL */
};
/* Call in the main thread before any other thread exists, and again when what is done with signals
 * changes. SIGPIPE stays as it is while `stop` is NULL. */
int signals_start(const struct signal_work *work, struct err *e);
/* Whether the process is being ended by a signal, without waiting for what it does. */
bool signals_end_by_force(void);
/* All is done, and the process ends with this status: further signals cannot change that. Does not
 * return where it is already being ended by force. */
void signals_leave(int status);
/* How often the process was continued after having been stopped: then a shell wrote on its
 * terminal. */
unsigned signals_continued(void);
