#pragma once
/* What a log tells of one job: its processes, threads, files, and every request or only their
 * counts. Each reader of logs fills one (trace_reader.h); everything behind reads nothing else.
 *
 * Times are nanoseconds since the begin of the job, in one clock for all its processes. Bounds: a
 * request takes sizeof(struct job_event) bytes; JOB_EVENTS_MAX of them at most, and no more than
 * this machine has memory for: job_add refuses both with a sentence. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"

#define JOB_NONE UINT32_MAX   /* no process, thread, file */
#define JOB_UNKNOWN INT64_MIN /* a time, offset or size that the log does not have */
#define JOB_EVENTS_MAX (UINT64_C(1) << 27)
/* Bytes of a folder and a name in it; the folder of a longer one is left out. */
#define JOB_NAME_MAX 16384
#define JOB_NUMBER_MAX ((INT64_C(1) << 62) - 1) /* either way: sums and differences of two fit */

/* What a log can show at all: where a bit is missing, the absence of events means nothing. */
enum job_sees {
	JOB_SEES_COUNTS = 1 << 0,    /* struct job_counts of each file */
	JOB_SEES_REQUESTS = 1 << 1,  /* every read and write, in order */
	JOB_SEES_TIMES = 1 << 2,     /* when each began and ended */
	JOB_SEES_OFFSETS = 1 << 3,   /* where in the file */
	JOB_SEES_OPENS = 1 << 4,     /* opens and closes as events */
	JOB_SEES_METADATA = 1 << 5,  /* stat, listings, rename, unlink, fsync, seeks */
	JOB_SEES_PIPES = 1 << 6,     /* pipes and sockets between the job's processes */
	JOB_SEES_PROCESSES = 1 << 7, /* fork, exec, exit */
	JOB_SEES_MAPPINGS = 1 << 8,  /* mmap calls (page faults are never seen) */
	JOB_SEES_COMPUTE = 1 << 9,   /* steps that the application itself marked */
	JOB_SEES_ASKED = 1 << 10,    /* bytes asked for, beside those moved */
	JOB_SEES_SIZES = 1 << 11,    /* sizes of files, from stat or at open */
	JOB_SEES_SERVERS = 1 << 12,  /* struct job_connection: what sockets lead to */
};

enum job_event_kind {
	JOB_OPEN, /* flags: as open(2); result: descriptor or -errno; asked: the file's size then */
	JOB_CLOSE,
	JOB_READ,
	JOB_WRITE,
	JOB_SEEK, /* offset: the new position */
	JOB_STAT, /* result: the size, or -errno */
	JOB_LIST, /* opendir, readdir, getdents; result: entries or bytes */
	JOB_MAP,  /* offset, asked: of the mapping */
	JOB_UNMAP,
	JOB_ADVISE, /* fadvise, madvise, readahead; flags: the advice */
	JOB_SYNC,   /* fsync, fdatasync */
	JOB_RENAME, /* other: the new file */
	JOB_UNLINK,
	JOB_MAKE_DIR,
	JOB_TRUNCATE, /* asked: the new size */
	JOB_ACCESS,   /* access, readlink and other questions */
	JOB_FORK,     /* other: the child process */
	JOB_EXEC,
	JOB_EXIT,    /* result: status, or -signal */
	JOB_WAIT,    /* for a child (other), a futex or poll: the thread was blocked */
	JOB_COMPUTE, /* marked by the application; asked: epoch, offset: step; JOB_UNKNOWN */
	JOB_MARK,    /* other marks, likewise: file holds the name (JOB_FILE_MARK) */
	JOB_LINK,    /* other: the new name of the file (hard links) */
	JOB_KINDS
};

struct job_event {
	int64_t begin_ns, end_ns; /* JOB_UNKNOWN where the log has no times */
	int64_t offset;           /* JOB_UNKNOWN */
	int64_t asked;            /* bytes; JOB_UNKNOWN */
	int64_t result;           /* bytes moved, or -errno; see the kinds */
	uint32_t thread;          /* index in job->thread */
	uint32_t file;            /* index in job->file; JOB_NONE */
	uint32_t other;           /* a process or file, by kind; JOB_NONE */
	uint32_t flags;           /* of reads and writes: the line of the log; 0: it has none */
	uint32_t descriptor;      /* JOB_NONE */
	uint8_t kind;             /* enum job_event_kind */
	uint8_t pad[3];
};

enum job_file_kind {
	JOB_FILE_REGULAR,
	JOB_FILE_FOLDER,
	JOB_FILE_PIPE, /* the name tells pipes apart: `pipe:[123]` */
	JOB_FILE_SOCKET,
	JOB_FILE_MEMORY, /* below /dev/shm, memfd */
	JOB_FILE_OTHER,  /* terminals, devices, eventfd */
	JOB_FILE_MARK,   /* no file: the name of a mark */
	JOB_FILE_OBJECT, /* of a server, over http: s3://BUCKET/KEY or http://HOST/PATH */
};

#define JOB_ACCESSES 4 /* most frequent sizes */
#define JOB_SIZES                                                                                  \
	10 /* up to 100 B, 1 KiB, 10 KiB, 100 KiB, 1 MiB, 4 MiB, 10 MiB, 100 MiB, 1 GiB, more */

/* What is counted of a file. From a log of requests they are computed (job_count), from a log of
 * counters they are all there is. Sums over processes. -1 where the log does not count it. */
struct job_counts {
	int64_t opens, reads, writes, seeks, stats, maps, syncs;
	int64_t bytes_read, bytes_written;
	int64_t read_end, write_end; /* greatest offset + length; 0: nothing */
	int64_t read_size[JOB_SIZES], write_size[JOB_SIZES];
	int64_t access[JOB_ACCESSES], access_count[JOB_ACCESSES];
	int64_t consecutive_reads, sequential_reads;
	double read_s, write_s, metadata_s;   /* summed over threads */
	int64_t first_ns, last_ns;            /* of all requests; JOB_UNKNOWN */
	int64_t read_begin_ns, read_end_ns;   /* JOB_UNKNOWN */
	int64_t write_begin_ns, write_end_ns; /* JOB_UNKNOWN */
};

struct job_file {
	const char
		*name; /* as the log has it, absolute where that is known; lives as long as job */
	enum job_file_kind kind;
	int64_t size; /* the largest that was seen; JOB_UNKNOWN */
	bool deleted;
	struct job_counts counts;
};

struct job_process {
	int64_t pid;              /* of the log; unique with `host` and `begin_ns` */
	uint32_t parent;          /* JOB_NONE */
	const char *host;         /* of job->names; "" */
	const char *command;      /* of job->names; "" */
	const char *libraries;    /* of job->names: parts of the names of frameworks' own; "" */
	int64_t rank;             /* from the launcher; -1 */
	int64_t begin_ns, end_ns; /* JOB_UNKNOWN */
	int64_t exit;             /* status, or -signal; JOB_UNKNOWN */
	bool complete;            /* its log reaches to its end */
	/* of the kernel (/proc/PID/io) over its life, and what of it the log accounts for;
	 * JOB_UNKNOWN */
	int64_t kernel_read_bytes, kernel_write_bytes, logged_read_bytes, logged_write_bytes;
	int64_t storage_read_bytes; /* likewise: that the kernel fetched for it; JOB_UNKNOWN */
};

struct job_thread {
	uint32_t process;
	int64_t tid;
	const char *name; /* of job->names; NULL: not in the log */
};

/* Bytes over time, from the begin of the process. A process may have several, whose sum is meant.
 */
struct job_heat {
	uint32_t process;
	double bin_s;
	size_t bins;
	int64_t *read, *written; /* bins each, owned */
};

/* ---- what sockets show ---- */

enum job_speaks {
	JOB_SPEAKS_UNKNOWN, /* nothing was sent, or nothing that is known */
	JOB_SPEAKS_HTTP,
	JOB_SPEAKS_TLS,   /* https, as a rule: what is asked cannot be seen */
	JOB_SPEAKS_HTTP2, /* the same */
};

/* A connection that the job made to a server. Texts are of job->names. */
struct job_connection {
	const char *peer;  /* "10.0.0.1:9000"; of a log with hashed names, the hash and the port */
	const char *host;  /* that was asked for: in the requests, or in TLS; "" */
	const char *agent; /* User-Agent; "" */
	int64_t begin_ns, end_ns; /* made, and closed; JOB_UNKNOWN */
	int64_t sent, received;   /* bytes, with heads */
	uint32_t process, requests;
	enum job_speaks speaks;
	bool local; /* the server is on this host */
};

enum job_method { JOB_GET, JOB_HEAD, JOB_PUT, JOB_POST, JOB_DELETE, JOB_OTHER_METHOD, JOB_METHODS };

/* A request and its answer. A GET of an object that was answered is JOB_OPEN, JOB_READ and
 * JOB_CLOSE of the object's file, too; one of a part of it JOB_READ, behind a JOB_OPEN where the
 * thread comes from another; a PUT likewise with JOB_WRITE, a HEAD is JOB_STAT. */
struct job_exchange {
	int64_t begin_ns; /* the request is sent */
	int64_t first_ns; /* first bytes of the answer; JOB_UNKNOWN: none */
	int64_t last_ns;  /* its last bytes */
	int64_t offset;   /* that a range begins at; of the last bytes, less than 0; JOB_UNKNOWN: no
			     range */
	int64_t asked;    /* bytes of the range; JOB_UNKNOWN: to the end */
	int64_t length;   /* bytes that the answer has, as it says; JOB_UNKNOWN */
	int64_t whole;    /* size of the object, as far as an answer says; JOB_UNKNOWN */
	int64_t got, sent; /* bytes of the bodies */
	uint32_t connection, thread;
	uint32_t file;   /* JOB_NONE: no object's */
	uint16_t status; /* 0: no answer was seen */
	uint8_t method;  /* enum job_method */
	bool complete;   /* all of the answer came */
	bool listing;
	bool cut;   /* the path's end is not known: no object's */
	bool part;  /* of an upload, or another call about one */
	bool about; /* a question about an object or bucket */
};

struct job {
	unsigned sees;      /* enum job_sees: what every part of the log has */
	const char *source; /* the reader's name for people: "Darshan 3.41 with DXT" */
	int64_t start_s;    /* since 1970; JOB_UNKNOWN */
	int64_t wall_ns;    /* JOB_UNKNOWN */
	double processors;  /* that a host had for it; 0: not known */
	struct texts names;
	struct job_file *file;
	size_t files;
	struct job_process *process;
	size_t processes;
	struct job_thread *thread;
	size_t threads;
	struct job_event *event; /* by begin_ns once finished, in the log's order where that ties */
	size_t events;
	struct job_heat *heat;
	size_t heats;
	struct job_connection *connection;
	size_t connections;
	struct job_exchange *exchange; /* by begin_ns once finished */
	size_t exchanges;
	struct texts notes;     /* sentences: what is missing or was left out, each once */
	bool lacks;             /* requests that it made are known to be missing */
	struct texts file_keys; /* the kind as one character and the name, by index of the file */
	size_t file_room, process_room, thread_room, event_room, heat_room, connection_room,
		exchange_room;
	uint64_t look_at;   /* bytes of the job at which the memory that is left is looked at */
	uint64_t left_most; /* for tests: that the machine has left at most; 0: as much as it has */
};

void job_init(struct job *job);
void job_release(struct job *job);

/* Indices. A file of the same name and kind is one file. `name` is copied; of any bytes, cut at
 * the first NUL. */
uint32_t job_file(struct job *job, const char *name, enum job_file_kind kind);
uint32_t job_process(struct job *job, int64_t pid, const char *host, uint32_t parent);
/* A new one at each call, whatever its number. */
uint32_t job_add_thread(struct job *job, uint32_t process, int64_t tid);
/* A copy of `s` that lives as long as the job. */
const char *job_text(struct job *job, const char *s);
/* Adds one event: -EFBIG beyond JOB_EVENTS_MAX; -ENOMEM where it is refused, or where what is left
 * of the machine's memory is not twice what the job has, which its end may take. The indices in it
 * must exist. Numbers beyond JOB_NUMBER_MAX become that. */
int job_add(struct job *job, const struct job_event *event, struct err *e);
/* Likewise. The process, connection, thread and file in it must exist. */
int job_add_connection(struct job *job, const struct job_connection *c, struct err *e);
int job_add_exchange(struct job *job, const struct job_exchange *x, struct err *e);
/* An event without anything but these: the rest is unknown or none. */
struct job_event job_event_of(enum job_event_kind kind, uint32_t thread, int64_t begin_ns,
			      int64_t end_ns);
static inline bool job_failed(const struct job_event *v)
{
	return v->result < 0 && v->result != JOB_UNKNOWN;
}
/* Whether it lies on storage: a regular file or a folder. */
static inline bool job_is_stored(const struct job_file *f)
{
	return f->kind == JOB_FILE_REGULAR || f->kind == JOB_FILE_FOLDER;
}
/* Whether it may hold data: a regular file or an object. */
static inline bool job_has_data(const struct job_file *f)
{
	return f->kind == JOB_FILE_REGULAR || f->kind == JOB_FILE_OBJECT;
}
/* n numbers, and one more, all JOB_NONE. */
uint32_t *job_numbers(size_t n);
/* Indices of files by name; equal names, of several kinds, by index. */
void job_sort_by_name(const struct job *job, uint32_t *file, size_t n);
/* The same with numbers in the names by their values: "chunk-2" before "chunk-10". */
void job_sort_by_number(const struct job *job, uint32_t *file, size_t n);
/* Appends the parts of `path` to the absolute path in `to`, without empty ones and dots. */
void job_walk(struct buf *to, const char *path);
/* A sentence for people, once. */
void job_note(struct job *job, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Once all is read, with times since the begin of the job: sorts the events by begin (stable),
 * fills sizes and wall_ns where they are unknown, and computes the counts of all files when the log
 * has requests and no counts of its own. */
int job_finish(struct job *job, struct err *e);

/* Adds a row of bytes over time: both arrays have `bins` zeros. */
struct job_heat *job_heat(struct job *job, uint32_t process, double bin_s, size_t bins);
/* "open", "read", ...: what the request is called. */
const char *job_kind_name(enum job_event_kind kind);
/* Index of the bucket of job_counts.read_size for a request that moved `bytes`. */
size_t job_size_bucket(int64_t bytes);
