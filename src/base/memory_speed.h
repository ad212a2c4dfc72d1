#pragma once
/* How fast this machine copies memory. */

/* Bytes per second that `threads` threads (1 to 64) copy together from blocks larger than any
 * cache near a processor to small ones, as a read from the page cache does. Takes some 50 ms and 16
 * MiB a thread; 0 when they cannot be had. */
double memory_copy_speed(unsigned threads);
