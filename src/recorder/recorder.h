#pragma once
/* Inside the recording library. It is loaded before the C library of a program that is recorded:
 * it takes no lock, allocates from the kernel alone, leaves errno as it is, and calls the kernel
 * directly, so that nothing of it is recorded. The one exception is the first call of each wrapped
 * function in a process: dlsym(3) looks for the next one, and takes the lock of the loader. All
 * functions: any thread, signal handlers too. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recorder/ring.h"

#define WRAP __attribute__((visibility("default")))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* ---- the next function of a name: libc's, or of a library loaded after this one ---- */

void *real_find(void **slot, const char *name);

static inline void *real_of(void **slot, const char *name)
{
	void *p = __atomic_load_n(slot, __ATOMIC_RELAXED);

	return LIKELY(p != NULL) ? p : real_find(slot, name);
}

/* ---- the kernel ---- */

/* Of the recorder itself: -ENOSYS without a call once the program has a filter of calls. */
long raw6(long nr, long a, long b, long c, long d, long e, long f);
/* The program's own calls, which are made in any case. */
long kernel6(long nr, long a, long b, long c, long d, long e, long f);
#define RAW_N(_1, _2, _3, _4, _5, _6, _7, n, ...) n
#define raw(nr, ...) raw_(nr, ##__VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define raw_(nr, a, b, c, d, e, f, ...)                                                            \
	raw6((long)(nr), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

static inline bool raw_failed(long r)
{
	return r < 0 && r > -4096;
}

int64_t now_ns(void);

/* ---- memory (program_memory.c) ---- */

/* The page behind the last that was found to be readable; zeroed at first. */
struct probe {
	uintptr_t next;
	bool trusted; /* all is taken for readable */
};
/* Whether memory of the program can be read, without reading it. */
bool memory_readable(struct probe *k, const void *p, size_t n);
/* Whether a string can, up to its end or `most` bytes; its length. */
bool text_readable(struct probe *k, const char *s, size_t most, size_t *bytes);
bool text_begins(struct probe *k, const char *s, const char *with);

/* Room off the stack, for this thread until it is given back; NULL when there is none. */
#define SCRATCH 12288
char *scratch_take(void);
void scratch_give(char *p);
/* The same for what is executed: kept, also by a parent in vfork(2). */
char *exec_room(size_t n);
void rooms_end(void); /* of the thread */

/* ---- names (recorded_names.c) ---- */

/* Once a process image: whether nothing is excluded, and the key of 128 bits when names are
 * hashed. */
void names_begin(bool all, const uint64_t *key);
bool names_all(void);
bool names_hashed(void);
/* Whether calls on this file are only counted; `w`: the word of the folder of a relative name. */
bool name_excluded(const char *path, uint64_t base);
void names_cwd(char *path); /* the current folder, for relative names; with room for one more */
/* The keyed hash of a name: depth and known extensions are kept. Returns the length, at most
 * size. */
size_t name_hash(const char *path, size_t n, char *out, size_t size);

/* ---- events (ring.c) ---- */

#define RING_DIR_MAX 4096

/* Begins a ring in the folder: the process is new, and so is the file. Its head, for the caller to
 * fill in and give its magic; NULL when there is no room. */
struct ring_head *ring_begin(const char *dir, uint64_t host, uint64_t limit);
struct ring_head *ring_head(void); /* NULL: none was begun */
/* In the child of a fork: leaves the parent's. */
void ring_forked(void);
/* Once a process image: threads that end give back their chunk. */
void ring_threads_end(void);
bool thread_is_leaving(void); /* its destructors run */
/* In a handler of SIGBUS: puts memory in place of the page if it is of the ring, which ends with
 * that. */
bool ring_lost_page(const void *address);
void ring_tell_cut(void); /* the control file, if that happened */
/* From here on such pages do not end the process (cut_pages.c). */
void faults_watch(void);

/* A read or write. `word` as fd_word says; `at` is the offset of RING_PREAD and RING_PWRITE. */
void note_transfer(enum ring_kind kind, uint64_t word, int64_t begin, uint64_t asked, int64_t at,
		   int64_t result);
/* The same, of one that has ended before now. */
void note_ended(enum ring_kind kind, uint64_t word, int64_t begin, int64_t end, uint64_t asked,
		int64_t at, int64_t result);
/* Any other: the fields in the order of ring_fields, of numbers and const char *. */
void note(enum ring_kind kind, int64_t begin, ...);
/* A call on something excluded: counted. */
void note_excluded(int64_t read, int64_t written);
/* Adds to what the kernel's counters are compared with, without an event. */
void note_counted(int64_t read, int64_t written);
void note_uring_used(void);
/* Adds to a guarded word of the head or control file. Returns its value before. */
uint64_t guarded_add(uint64_t *word, uint64_t n);
uint64_t serial_next(void);

/* ---- descriptors: what each leads to, in one word (fd_table.c) ---- */

#define FD_SERIAL(w) ((w)&0xfffffffffull)
#define FD_KIND(w) ((enum ring_file)((w) >> 36 & 15))
#define FD_DOUBT(w) ((unsigned)((w) >> 40 & 0xfff))

/* Of sockets: a server is at the other end, and what is said is listened to, up to a protocol that
 * is not HTTP/1. The rest is wrap_socket.c's. */
#define FD_HEARD (UINT64_C(1) << 52)
#define FD_SPOKE (UINT64_C(1) << 53) /* a request was sent */
#define FD_TOLD (UINT64_C(1) << 54)  /* to whom, and by whom */
#define FD_SENDS (UINT64_C(1) << 55) /* a head goes on, that is sent, */
#define FD_GETS (UINT64_C(1) << 56)  /* or received */
#define FD_LINE (UINT64_C(1) << 57)  /* what is sent goes on within the target */
#define FD_PIECE (UINT64_C(1) << 58) /* how often it went on: 6 bits */
#define FD_PIECES (UINT64_C(63) << 58)
#define FD_SAID (FD_SPOKE | FD_TOLD | FD_SENDS | FD_GETS | FD_LINE | FD_PIECES)

uint64_t fd_known(int fd); /* 0: not known */
/* The word, which is found from the kernel where it is not known; 0: no descriptor. */
uint64_t fd_word(int fd);
/* The same before a transfer at the position: another process may have moved that. */
uint64_t fd_word_at_position(int fd);
/* A new file at fd. Returns its word. */
uint64_t fd_new(int fd, enum ring_file kind);
void fd_put(int fd, uint64_t word); /* a duplicate */
/* The same, if it leads to what it did. */
bool fd_change(int fd, uint64_t was, uint64_t word);
void fd_forget(int fd);
void fd_forget_range(unsigned first, unsigned last);
/* A child may have moved the positions that are shared with it. */
void fd_doubt(void);
struct fd_facts {
	enum ring_file kind;
	int64_t size;
	uint64_t inode;
};
bool fd_facts(int fd, struct fd_facts *out);
#define FD_NAME_MAX 4160
/* The name that the kernel has for the descriptor, without its mark of deleted files; those of
 * memfd_create get the number that tells them apart. `name`: FD_NAME_MAX bytes. Whether the file is
 * deleted. */
bool fd_name(int fd, uint64_t inode, char *name);
/* Of st_mode. */
enum ring_file kind_of_mode(unsigned mode);

/* ---- the process (process.c) ---- */

/* Whether calls of this thread are recorded now. The first call in a process, and in a child of
 * fork, however it was made, begins a ring. False in a child of vfork. */
bool recording(void);
/* The image ends, or may: counters of the kernel are stored. `still`: bytes that libc will write of
 * its own after this. */
void process_ends(uint64_t still);
/* fork returned to the parent; the child's first call is process_forked. */
void process_forked(void);
/* vfork follows in this thread. */
void process_vforks(void);
/* Whether this is a child of vfork: the parent's memory, which waits. */
bool process_is_vforked(void);

/* A filter of calls (seccomp(2)) comes: what the recorder would ask of the kernel might be what it
 * ends processes for. From here on nothing is asked; what memory has room for is recorded.
 * `all`: nothing is recorded any more. Returns what process_unfiltered takes if the filter was
 * refused. */
bool process_filtered(bool all);
void process_unfiltered(bool was);
bool process_is_filtered(void);
int64_t process_id(void);

/* Variables that a new program needs to be recorded: `n` strings `NAME=VALUE`, 0 when none. The
 * first is LD_PRELOAD's value alone, without the name. */
size_t process_variables(const char *const **out);

/* ---- what other files of the library need of each other ---- */

void maps_end(void); /* what is in memory of files that are mapped */
/* What libc will write of open streams when exit(3) ends: noted; the bytes. */
uint64_t stdio_end(void);
/* Of a socket that was not seen to be connected: its server, if it has one. Returns its word. */
uint64_t socket_found(int fd, uint64_t word);
int at_base(int dirfd, const char *path, uint64_t *base);
