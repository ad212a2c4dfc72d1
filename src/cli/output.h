#pragma once
/* Standard output and error of the program. What a signal interrupts, what is written in part, and
 * what waits for a reader (a pipe that does not block) is continued; stdio alone would drop it. */

/* Before anything is printed: printf and its kin then go through here. Where there is no memory for
 * it, they go on as the library has them. */
void output_begin(void);
/* Writes out what was printed. 0, or why some of it did not arrive (errno), now or earlier. */
int output_end(void);
