#pragma once
/* One line of strace's output, taken apart (strace(1), "OUTPUT FORMAT"). Pure functions of a text
 * that may be anything. */
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "trace/call_log.h"
#include "trace/connections.h"

#define STRACE_ARGS 12
#define STRACE_CALLS 128 /* names that have a row */
#define STRACE_NO_TIME INT64_MIN

enum strace_kind {
	STRACE_NOTHING,    /* no line of strace */
	STRACE_CALL,       /* name(args) = result */
	STRACE_UNFINISHED, /* name(args <unfinished ...> */
	STRACE_RESUMED,    /* <... name resumed>args) = result */
	STRACE_EXIT,       /* +++ exited with value +++, +++ killed by SIG +++ (value: -signal) */
	STRACE_SIGNAL,     /* --- SIG ... ---, and other remarks */
	STRACE_ATTACHED,   /* strace: Process value attached */
	STRACE_SUPERSEDED, /* +++ superseded by execve in pid value +++ */
};

/* Pieces of the text, which is not changed and must outlive them. */
struct strace_text {
	const char *p;
	size_t n;
};

struct strace_line {
	enum strace_kind kind;
	int64_t pid;     /* -1: none in the line */
	int64_t time_ns; /* since 1970, or of the day; STRACE_NO_TIME */
	bool of_day;
	struct strace_text body; /* from the name, or behind `resumed>` */
	struct strace_text name;
	int64_t value;
};

struct strace_call {
	struct strace_text arg[STRACE_ARGS];
	unsigned args;
	bool has_result; /* not `?` */
	int64_t result;  /* -errno */
	struct strace_text result_text;
	int64_t duration_ns; /* STRACE_NO_TIME */
};

/* What the line is, and where its parts begin. */
void strace_line_parse(const char *text, struct strace_line *line);
/* Arguments and result of `name(args) = result <duration>`; false where it is none. */
bool strace_call_parse(const char *text, struct strace_call *call);

/* A number, decimal, octal, hexadecimal; false: none. Too large ones are cut to the type. */
bool strace_number(struct strace_text t, int64_t *value);
/* A descriptor: its number (-100 for AT_FDCWD), and the name beside it, unescaped, in `name` (""
 * without). False: no number. */
bool strace_descriptor(struct strace_text t, int64_t *fd, struct buf *name, bool *deleted);
/* A quoted string, unescaped; false: none. `cut`: `...` follows. */
bool strace_string(struct strace_text t, struct buf *out, bool *cut);
/* Whether one of the words of `A|B|C` is `word`. */
bool strace_has(struct strace_text t, const char *word);
/* The number behind `key=` outside of strings; false: it does not occur. */
bool strace_field(struct strace_text t, const char *key, int64_t *value);
/* The sum of all `iov_len=`; false where the list is abbreviated. */
bool strace_iov_bytes(struct strace_text t, int64_t *bytes);
/* The next element of `[a, b]` from *at on (0 at first); false: no more. */
bool strace_element(struct strace_text t, size_t *at, struct strace_text *element);

/* ---- calls ---- */

/* What each system call that strace names does: the calls about files, descriptors and mapped
 * memory. Those of processes are in strace.c. */
struct strace_calls {
	struct call_log log;
	struct buf name, text; /* for names taken out of lines */
	struct texts known;    /* names of calls */
	uint8_t row_of[STRACE_CALLS];
	struct connections servers; /* begun and finished by whoever reads the log */
	struct map server_of;       /* the connection of each socket, by its file */
};

/* What sockets lead to, and what is said on them (strace_sockets.c): as far as the log has their
 * data. All take the descriptor of the caller. */
void strace_connected(struct strace_calls *s, const struct call *c, int64_t fd,
		      struct strace_text address);
/* `data`: the quoted string, or a list of pieces of memory; `flags` of a message. */
void strace_socket_moved(struct strace_calls *s, const struct call *c, int64_t fd, bool sent,
			 struct strace_text data, struct strace_text flags);
void strace_socket_closed(struct strace_calls *s, const struct call *c, int64_t fd);

/* Adds the events of a call. False: the call is not known here, or is of no interest; such calls
 * may be many. */
bool strace_calls_add(struct strace_calls *s, struct strace_text name, const struct call *call,
		      const struct strace_call *parsed);
/* The descriptor of an argument, whose file is what the line says, if it says it. -1: none. */
int64_t strace_calls_fd(struct strace_calls *s, struct caller *caller, struct strace_text arg);
/* The file of a folder argument (or CALL_CWD) and a path argument; JOB_NONE: no path is there. */
uint32_t strace_calls_path(struct strace_calls *s, const struct call *call, int64_t dir,
			   struct strace_text arg, bool folder);
