#pragma once
/* read(2), write(2), fsync(2) and readdir(3) to their end: what a signal or the system cut short is
 * continued. */
#include <dirent.h>
#include <stddef.h>
#include <sys/types.h>

/* n bytes, fewer only at the end of the file; or -errno. */
ssize_t read_fully(int fd, void *p, size_t n);
ssize_t pread_fully(int fd, void *p, size_t n, off_t offset);
/* 0 when all was written, or -errno. */
int write_fully(int fd, const void *p, size_t n);
int pwrite_fully(int fd, const void *p, size_t n, off_t offset);
/* 0, or -errno. */
int sync_fully(int fd);

/* The beginning of a small file of the kernel (/proc): at most size - 1 bytes and a zero, always.
 * How many bytes, or -errno. */
ssize_t read_kernel_text(const char *path, char *text, size_t size);

/* openat(2), opendir(3): again after a signal. Not for what may wait for another process, as a FIFO
 * does: the signal is to end that. */
int open_fully(int folder, const char *name, int flags, mode_t mode);
DIR *folder_open(const char *path);
/* readdir(3) with its error: 1 and *out, which the next call overwrites; 0 after the last entry; or
 * -errno, when the entries that came are not all. */
int folder_next(DIR *d, struct dirent **out);
