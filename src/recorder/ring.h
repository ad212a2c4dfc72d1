#pragma once
/* The files of a recording: what the library in a recorded process writes, and what the reader
 * (trace/recording/recording.c) reads. All integers are of the machine's byte order
 * (little-endian).
 *
 * A recording is a folder:
 *   RING_JOB_NAME      text: RING_JOB_MAGIC, then lines `key value`: job, anonymous,
 *                      processors (that the first host to begin may use; not in older ones)
 *   control-HEX        struct ring_control, one a host: what the processes share
 *   HEX.ring           one a process image: struct ring_head in its first RING_PAGE bytes, then
 *                      chunks, each struct ring_chunk and its events
 *   HEX.end            struct ring_end: what `stoker record` saw of a process that it reaped, and
 *                      of all
 *
 * A ring is mapped shared: what was stored stays when the process is killed. Each thread fills a
 * chunk of its own. An event is
 *   1 byte   kind, with RING_SAME (serial as the event before) and RING_FULL (result as asked)
 *   zigzag   begin, less the end of the event before in the chunk (ring_chunk.base_ns at first)
 *   varint   duration in ns
 *   fields   by kind, as ring_fields() has them
 * Varints have 7 bits a byte, low first. Names are front-coded: the number of bytes they share with
 * the name before in the chunk, the number of other bytes, those bytes.
 *
 * What is stored is checked, however the process ends (version 1 had none of it):
 *   events     the sum of a chunk's events is stored with their length, in one word
 *   chunks     the magic follows from the rest of the header that stays
 *   counts     guarded: 48 bits, and 16 that follow from them, in one word
 *   heads      a sum of what is set at the begin, one of what is set at the end (before end_ns)
 *
 * A serial numbers what open(2) made: descriptors that dup(2) or fork(2) made have the same. In a
 * process that was forked, serials below ring_head.first_serial are those of its parent's ring.
 */
#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define RING_MAGIC "STKRING\2"
#define RING_MAGIC_UNCHECKED "STKRING\1" /* of version 1, which had no checksums */
#define RING_JOB_NAME "stoker-recording"
#define RING_JOB_MAGIC "stoker recording 3\n"
#define RING_JOB_MAGIC_WITHOUT_HTTP "stoker recording 2\n" /* had no kind behind RING_LINK */
#define RING_JOB_MAGIC_UNCHECKED "stoker recording 1\n"
#define RING_PAGE 4096
#define RING_CHUNK_MAGIC 0x4b4e5543u
#define RING_CONTROL_NAME "control-" /* and the number of the host */
#define RING_CONTROL_MAGIC "STKCTRL"
#define RING_END_MAGIC "STKEND2"
#define RING_END_MAGIC_UNCHECKED "STKEND1" /* without the checksum */
#define RING_PATH_MAX 8192                 /* bytes of a name; longer ones are cut */

#define RING_SAME 0x40
#define RING_FULL 0x80
#define RING_KIND 0x3f

/* The variables by which `stoker record` tells the library what to do. */
#define RING_ENV_DIR "STOKER_RECORD_DIR"     /* absolute */
#define RING_ENV_LIB "STOKER_RECORD_LIBRARY" /* as in LD_PRELOAD */
#define RING_ENV_LIMIT "STOKER_RECORD_LIMIT" /* bytes, of all processes of a host */
#define RING_ENV_KEY "STOKER_RECORD_KEY"     /* 32 hex digits: names are hashed */
#define RING_ENV_ALL "STOKER_RECORD_ALL"     /* set: nothing is excluded */

/* In LD_PRELOAD: libraries of sanitizers, which must be first there. */
#define RING_SANITIZER "san.so"

enum ring_kind {
	RING_FACT = 1, /* which, text */
	RING_OPEN,
	RING_CLOSE,
	RING_DUP,
	RING_FOUND, /* a descriptor that nothing recorded made: inherited, or received */
	RING_POSITION,
	RING_READ,
	RING_WRITE,
	RING_PREAD,
	RING_PWRITE,
	RING_STDIO_READ, /* result: bytes that libc asked of the kernel for it */
	RING_STDIO_WRITE,
	RING_RECEIVE, /* recv(2) and its family: not in rchar */
	RING_SEND,
	RING_SEEK,
	RING_STAT,
	RING_FSTAT,
	RING_ACCESS,
	RING_LIST,
	RING_MAP,
	RING_UNMAP,
	RING_ADVISE,
	RING_MADVISE,
	RING_SYNC,
	RING_RENAME,
	RING_UNLINK,
	RING_MKDIR,
	RING_TRUNCATE,
	RING_FTRUNCATE,
	RING_CHDIR,
	RING_FORK,
	RING_EXEC, /* pid: the process that becomes another program */
	RING_EXEC_FAILED,
	RING_EXIT,
	RING_WAIT,
	RING_BLOCK,
	RING_PAIR,
	RING_SOCKET,
	RING_CONNECT,
	RING_COPY,
	RING_THREAD, /* another thread goes on with the chunk, from this time */
	RING_URING,
	RING_AIO_READ, /* libaio: begin is the submission */
	RING_AIO_WRITE,
	RING_LINK, /* a second name */
	RING_PEER, /* a socket leads to a server: connected, or on the way */
	RING_SPEAKS,
	RING_REQUEST, /* in front of the transfer that it was in, as RING_ANSWER */
	RING_ANSWER,
	RING_KINDS
};

/* The fields of a kind: s serial (absent with RING_SAME), u unsigned, i signed, p name, o offset
 * (zigzag, less the end of the transfer before in the chunk), r result (signed; absent with
 * RING_FULL), a asked. NULL: no such kind. */
static inline const char *ring_fields(unsigned kind)
{
	static const char *const fields[RING_KINDS] = {
		[RING_FACT] = "up",
		[RING_OPEN] = "upuiuui", /* base, name, flags, fd or -errno, serial, kind, size */
		[RING_CLOSE] = "si",
		[RING_DUP] = "si",         /* the new descriptor */
		[RING_FOUND] = "supiiuuu", /* fd, name, position, size, kind, flags, inode */
		[RING_POSITION] = "si",
		[RING_READ] = "sar",
		[RING_WRITE] = "sar",
		[RING_PREAD] = "saor",
		[RING_PWRITE] = "saor",
		[RING_STDIO_READ] = "sar",
		[RING_STDIO_WRITE] = "sar",
		[RING_RECEIVE] = "sar",
		[RING_SEND] = "sar",
		[RING_SEEK] = "siiu", /* position or -errno, requested, whence */
		[RING_STAT] = "upiu", /* base, name, size or -errno, kind */
		[RING_FSTAT] = "si",
		[RING_ACCESS] = "upi",
		[RING_LIST] = "si",
		[RING_MAP] = "siuiuui", /* address or -errno, length, offset, prot, flags, bytes in
					   memory or -1 */
		[RING_UNMAP] = "iui",   /* address, length, bytes in memory or -1 */
		[RING_ADVISE] = "siuu", /* offset, length, advice */
		[RING_MADVISE] = "iuu",
		[RING_SYNC] = "siu",
		[RING_RENAME] = "upupi",
		[RING_UNLINK] = "upi",
		[RING_MKDIR] = "upi",
		[RING_TRUNCATE] = "upui",
		[RING_FTRUNCATE] = "sui",
		[RING_CHDIR] = "upi",
		[RING_FORK] = "i",
		[RING_EXEC] = "iupu", /* pid, base, name, enum ring_image */
		[RING_EXEC_FAILED] = "ii",
		[RING_EXIT] = "i",
		[RING_WAIT] = "ii", /* pid or -errno, status */
		[RING_BLOCK] = "ui",
		[RING_PAIR] = "uuuuuuu", /* kind, fd, serial, inode, fd, serial, inode */
		[RING_SOCKET] = "uuu",   /* fd, serial, inode */
		[RING_CONNECT] = "si",
		[RING_COPY] = "suiiar", /* serial of the output, offsets or -1 */
		[RING_THREAD] = "ii",
		[RING_URING] = "i",
		[RING_AIO_READ] = "saor",
		[RING_AIO_WRITE] = "saor",
		[RING_LINK] = "upupi",
		[RING_PEER] = "suup",       /* port, flags of ring_peer, address */
		[RING_SPEAKS] = "sup",      /* enum ring_speaks, text */
		[RING_REQUEST] = "suuiiip", /* method and flags (heard.h), bytes of the head,
					       first, last, Content-Length, path */
		[RING_ANSWER] = "suuiiii",  /* status and flags, bytes of the head, first, last,
					       whole, Content-Length */
	};

	return kind < RING_KINDS ? fields[kind] : 0;
}
#define RING_FIELDS_MAX 8

/* Beside the flags of RING_FOUND: the file has no name any more. */
#define RING_DELETED 0x40000000u

/* What the base of a name is: 0, the current folder of the process (or the name is absolute);
 * else the serial of a folder and 1. */

/* RING_NAME: of the thread, when it makes its first event. */
enum ring_fact {
	RING_COMMAND,
	RING_HOST,
	RING_CWD,
	RING_NAME,
	RING_LIBRARY, /* part of the name of a library that was loaded at the end: a framework's */
	RING_FACTS
};

/* Kinds of what a descriptor leads to. */
enum ring_file {
	RING_UNKNOWN,
	RING_REGULAR,
	RING_FOLDER,
	RING_PIPE,
	RING_SOCKETS,
	RING_MEMORY, /* below /dev/shm, memfd */
	RING_OTHER,
	RING_EXCLUDED, /* its calls are only counted */
};

/* Of RING_PEER. The address is its bytes in hexadecimal digits. */
enum ring_peer {
	RING_PEER_STREAM = 1,
	RING_PEER_LOCAL = 2, /* this host's loopback */
};

/* Of RING_SPEAKS: what is known of a connection, in front of the first request. */
enum ring_speaks {
	RING_SPEAKS_TLS = 1, /* text: the name of the server that was asked for */
	RING_SPEAKS_HTTP2,
	RING_SPEAKS_HOST,  /* of the requests behind it */
	RING_SPEAKS_AGENT, /* User-Agent; not with names hashed */
	RING_SPEAKS_OTHER, /* none that is known */
};

/* Of RING_REQUEST and RING_ANSWER: flags are shifted by so much. */
#define RING_HTTP_FLAGS 16

/* What is executed, as far as it tells why there is no recording of it. */
enum ring_image {
	RING_IMAGE_DYNAMIC,
	RING_IMAGE_STATIC,
	RING_IMAGE_SETUID,
	RING_IMAGE_OTHER_CLASS, /* 32-bit, another machine */
	RING_IMAGE_UNKNOWN,
	RING_IMAGE_FILTERED, /* by a process that has a filter of calls, which the program inherits
			      */
	RING_IMAGES
};

/* Whether a program that is executed can be recorded, from the beginning of its file. */

#define IMAGE_HEAD 2048      /* bytes of the file; aligned to 8 */
#define IMAGE_INTERPRETERS 4 /* of scripts, which the kernel follows */

/* `interpreter`: the program that runs it, when it is a script; else "". */
static inline enum ring_image ring_image_of(const char *head, long n, char *interpreter,
					    size_t room)
{
	const Elf64_Ehdr *h = (const void *)head;

	*interpreter = '\0';
	if (n >= 2 && head[0] == '#' && head[1] == '!') {
		long at = 2, m = 0;

		while (at < n && (head[at] == ' ' || head[at] == '\t'))
			at++;
		while (at + m < n && !strchr(" \t\n", head[at + m]) && (size_t)m + 1 < room) {
			interpreter[m] = head[at + m];
			m++;
		}
		interpreter[m] = '\0';
		return RING_IMAGE_DYNAMIC;
	}
	if (n < (long)sizeof(*h) || memcmp(head, ELFMAG, SELFMAG) != 0)
		return RING_IMAGE_UNKNOWN;
	if (h->e_ident[EI_CLASS] != ELFCLASS64)
		return RING_IMAGE_OTHER_CLASS;
	if (h->e_phentsize != sizeof(Elf64_Phdr))
		return RING_IMAGE_UNKNOWN;
	for (unsigned i = 0; i < h->e_phnum; i++) {
		Elf64_Phdr p;
		uint64_t at = h->e_phoff + i * sizeof(p);

		if (at + sizeof(p) > (uint64_t)n)
			return RING_IMAGE_UNKNOWN;
		memcpy(&p, head + at, sizeof(p));
		if (p.p_type == PT_INTERP)
			return RING_IMAGE_DYNAMIC;
	}
	return RING_IMAGE_STATIC;
}

/* /proc/PID/io. All 0 and known 0: not to be had. */
struct ring_io {
	uint64_t known, rchar, wchar, syscr, syscw, read_bytes, write_bytes;
};

/* ---- checks ---- */

#define RING_SUM 0x811c9dc5u

/* Goes on from `sum`: each byte that differs changes it. */
static inline uint32_t ring_sum(uint32_t sum, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	for (size_t i = 0; i < n; i++)
		sum = (sum ^ p[i]) * 0x01000193u;
	return sum;
}

#define RING_VALUE 0xffffffffffffull

static inline uint64_t ring_guarded(uint64_t value)
{
	value &= RING_VALUE;
	return value | (value * 0x9e3779b97f4a7c15ull & ~RING_VALUE);
}

/* Takes the guard off. */
static inline bool ring_value(uint64_t *word)
{
	uint64_t value = *word & RING_VALUE;
	bool sound = ring_guarded(value) == *word;

	*word = value;
	return sound;
}

struct ring_head {
	char magic[8];
	uint32_t head_bytes, ranked; /* RING_PAGE; whether rank is set */
	uint64_t id, parent;         /* parent: the ring that this process was forked from; 0 */
	uint64_t host;               /* a number that rings of one host share */
	int64_t pid, ppid;
	int64_t start_ns, start_real_ns; /* CLOCK_MONOTONIC, CLOCK_REALTIME */
	uint64_t first_serial;
	int64_t rank, local_rank; /* of the launcher; -1 */
	uint64_t anonymous, all;
	uint64_t limit;
	struct ring_io start, last;    /* last: at exit or exec; known 0: the process was killed */
	uint64_t own_rchar, own_wchar; /* of those, the recorder's; guarded */
	uint64_t own_last;             /* read by it after `last` */
	int64_t major_faults_start, major_faults_end;
	int64_t end_ns;     /* 0: it did not say */
	uint64_t allocated; /* bytes of chunks; guarded, as all that follow */
	uint64_t lost;      /* events for which there was no room, memory or descriptor */
	uint64_t lost_rchar, lost_wchar;
	uint64_t full;     /* the limit was reached */
	uint64_t uring;    /* io_uring was set up so often */
	uint64_t filtered; /* calls are filtered (seccomp(2)): nothing is asked of the kernel since
			    */
	uint64_t filtered_children; /* forked since, and not recorded */
	uint64_t refused;           /* of `allocated`: chunks that the disk had no room for */
	uint32_t begin_sum, end_sum;
};

/* Of what is set at the begin, but for the magic. */
static inline uint32_t ring_begin_sum(const struct ring_head *h)
{
	return ring_sum(RING_SUM, &h->head_bytes,
			offsetof(struct ring_head, last) - offsetof(struct ring_head, head_bytes));
}

static inline uint32_t ring_end_sum(const struct ring_head *h)
{
	return ring_sum(ring_sum(RING_SUM, &h->last, sizeof(h->last)), &h->own_last,
			offsetof(struct ring_head, allocated) -
				offsetof(struct ring_head, own_last));
}

/* Counts of a thread in a chunk, guarded. Totals of what is excluded are part of rchar and wchar.
 */
struct ring_counts {
	uint64_t rchar, wchar; /* recorded bytes that the kernel counts there */
	uint64_t excluded_calls, excluded_read, excluded_written;
	uint64_t cut_off; /* events that a signal handler interrupted and did not return to: lost */
};

struct ring_chunk {
	uint32_t magic, bytes; /* with this header */
	int64_t tid, base_ns;
	union {
		struct {
			uint32_t used, sum; /* bytes of complete events; of version 1: 0 */
		};
		uint64_t used_and_sum;
	};
	struct ring_counts counts;
};

static inline uint32_t ring_chunk_magic(const struct ring_chunk *c)
{
	return RING_CHUNK_MAGIC +
	       ring_sum(0, &c->bytes,
			offsetof(struct ring_chunk, used) - offsetof(struct ring_chunk, bytes));
}

struct ring_control {
	char magic[8];       /* not in version 1, whose file ends with `used` */
	uint64_t used;       /* bytes of all rings of this host */
	uint64_t rings, cut; /* rings that were begun; that others cut meanwhile; guarded */
};

/* Of one process that `stoker record` reaped. The last has pid 0: all that it ran. */
struct ring_end {
	char magic[8];
	int64_t pid, status; /* of waitid: exit status, or -signal */
	int64_t begin_ns, end_ns;
	struct ring_io io; /* with those of the children that the process itself reaped */
	uint64_t image;    /* pid 0: enum ring_image of the command */
	uint64_t sum;      /* of all before; not in version 1 */
};
