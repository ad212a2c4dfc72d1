#pragma once
/* How fast this machine copies memory. */

#define MEMORY_COPIERS_MAX 64

/* Bytes per second that `threads` threads (1 to MEMORY_COPIERS_MAX) copy together from blocks
 * larger than any cache near a processor to small ones, as a read from the page cache does. Takes
 * some 50 ms, where each thread has a processor, and 16 MiB a thread; 0 when they cannot be had, or
 * would be more than half of the memory that this process can still have. */
double memory_copy_speed(unsigned threads);
