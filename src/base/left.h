#pragma once
/* Files that must not outlive the process: temporary ones and locks. Whoever makes one says so, and
 * takes it back when the file has its name or is removed. Any thread. */

#include <stdbool.h>

#define LEFT_NONE (-1)

/* In an open folder, or AT_FDCWD. A number for left_forget; LEFT_NONE where there are too many.
 * Before the file is made: one that was made since, while left_removes(), is removed by whoever
 * made it. */
int left_note(int folder, const char *name);
/* Fine with LEFT_NONE. */
void left_forget(int number);
/* Removes all of them, when the process is ended in the midst of its work. It may take as long as
 * the storage does; nothing can be noted or forgotten from here on. */
void left_remove(void);
/* Whether that has begun. */
bool left_removes(void);
